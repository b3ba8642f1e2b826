//! The pages about events: all of them, and one with what became of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use proofhouse_store::model::{EventFilter, EventKind, EventState, EventSummary};
use serde::Deserialize;
use serde_json::Value;

use super::filters::{encoded, text_field};
use super::page::{Page, badge, json, link, older, table};
use super::words::{time, time_text};
use super::{actions, admitted, page_of};
use crate::api::{Api, Caller, EventDetailView, Path, Query};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Rows of a page.
const PAGE_ROWS: usize = 50;

/// What the form for events says.
#[derive(Debug, Default, Deserialize)]
pub(super) struct EventQuery {
    tool: Option<String>,
    kind: Option<String>,
    /// What became of it, as [`delivery_outcome`] says it.
    outcome: Option<String>,
    before: Option<i64>,
}

/// What became of events, as words of the form: one row each.
const OUTCOMES: [&str; 3] = ["received", "discarded", "delivered"];

impl EventQuery {
    fn filter(&self) -> Result<EventFilter, Problem> {
        let said = |value: &Option<String>| {
            let value = value.as_deref().map(str::trim);
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let kind = said(&self.kind).map(|word| {
            EventKind::from_word(&word)
                .ok_or_else(|| Problem::bad_request("`kind` has no such value"))
        });
        let (state, discarded) = match said(&self.outcome).as_deref() {
            None => (None, None),
            Some("received") => (Some(EventState::ReceiveOutcome), None),
            Some("discarded") => (None, Some(true)),
            Some("delivered") => (None, Some(false)),
            Some(_) => return Err(Problem::bad_request("`outcome` has no such value")),
        };
        Ok(EventFilter {
            tool: said(&self.tool),
            kind: kind.transpose()?,
            state,
            discarded,
            before: self.before,
            limit: PAGE_ROWS,
            ..EventFilter::default()
        })
    }

    fn path(&self, before: i64) -> String {
        let before = before.to_string();
        let text = |value: &'_ Option<String>| value.clone().unwrap_or_default();
        let (tool, kind, outcome) = (text(&self.tool), text(&self.kind), text(&self.outcome));
        let pairs = [
            ("tool", &tool),
            ("kind", &kind),
            ("outcome", &outcome),
            ("before", &before),
        ];
        let said = pairs.iter().filter(|(_, value)| !value.is_empty());
        let said: Vec<(&str, &str)> = said.map(|(name, value)| (*name, value.as_str())).collect();
        format!("/dashboard/events?{}", encoded(&said))
    }

    fn form(&self) -> Markup {
        let select = |name: &str, label: &str, words: &[&str], value: &Option<String>| {
            html! {
                div {
                    label for=(name) { (label) }
                    select id=(name) name=(name) {
                        option value="" { "any" }
                        @for word in words { option value=(word) selected[value.as_deref() == Some(*word)] { (word) } }
                    }
                }
            }
        };
        let kinds: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        html! {
            form.filters method="get" action="/dashboard/events" role="search" aria-label="Events" {
                (text_field("tool", "Tool", &self.tool))
                (select("kind", "Kind", &kinds, &self.kind))
                (select("outcome", "Outcome", &OUTCOMES, &self.outcome))
                div.submit { button { "Search" } }
            }
        }
    }
}

/// One word for what became of an event.
fn delivery_outcome(event: &EventSummary) -> &'static str {
    match (event.routed_at, event.matched) {
        (None, _) => "received",
        (Some(_), 0) => "discarded",
        (Some(_), _) => "delivered",
    }
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    query: Result<Query<EventQuery>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::EventsRead) {
        Ok(caller) => page_of(&caller, list_page(&api, &caller, query).await),
        Err(answer) => *answer,
    }
}

async fn list_page(
    api: &Api,
    caller: &Caller,
    query: Result<Query<EventQuery>, Problem>,
) -> Result<Page, Problem> {
    let Query(query) = query?;
    let events = api.seen_by(caller).events(query.filter()?).await?;
    let last = events.last().filter(|_| events.len() == PAGE_ROWS);
    let next = last.map(|event| query.path(event.id));
    let rows: Vec<Vec<Markup>> = events.iter().map(row).collect();
    let headings = ["Event", "Tool", "Kind", "Outcome", "Tasks", "Received"];
    let body =
        html! { (query.form()) (table("Events, newest first", &headings, &rows)) (older(next)) };
    Ok(Page::new("Events", body))
}

fn row(event: &EventSummary) -> Vec<Markup> {
    vec![
        link("/dashboard/events", &event.id.to_string()),
        html! { (event.tool.name) },
        html! { (event.kind.as_str()) },
        badge(delivery_outcome(event)),
        html! { (event.matched) },
        time(event.received_at),
    ]
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    event: Result<Path<i64>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::EventsRead) {
        Ok(caller) => page_of(&caller, show_page(&api, &caller, event).await),
        Err(answer) => *answer,
    }
}

async fn show_page(
    api: &Api,
    caller: &Caller,
    event: Result<Path<i64>, Problem>,
) -> Result<Page, Problem> {
    let Path(id) = event?;
    let detail = api.seen_by(caller).event(id).await?;
    let outcome = delivery_outcome(&detail.event.summary);
    let EventDetailView {
        event,
        deliveries,
        payload,
        headers,
        ..
    } = EventDetailView::from(detail);
    let rows: Vec<Vec<Markup>> = deliveries
        .iter()
        .map(|delivery| {
            vec![
                link("/dashboard/tasks", &delivery.task),
                html! { (delivery.name) },
                badge(&delivery.state),
                html! { (delivery.reason.as_deref().unwrap_or_default()) },
                html! { @if let Some(turn) = delivery.turn { (turn) } },
            ]
        })
        .collect();
    let headings = ["Task", "Event", "State", "Why", "Turn"];
    let body = html! {
        p {
            (badge(outcome)) " a " (event.kind) " for " (event.tool) ", " (event.bytes) " bytes, "
            (time_text(&event.received_at))
            @if event.attempt > 1 { ", routed " (event.attempt) " times" }
        }
        (actions::replay_form(caller, id))
        (table("Deliveries", &headings, &rows))
        @if let Some(outcome) = &event.outcome {
            h2 { "What was decided, and why" }
            p { (decided(outcome)) }
            (json(outcome))
        }
        h2 { "Payload" } (json(&payload))
        h2 { "Headers" } (json(&headers))
    };
    Ok(Page::new(format!("Event {id}"), body))
}

/// What was decided about an event, in a sentence.
fn decided(outcome: &Value) -> String {
    let total = |name: &str| outcome[name]["total"].as_u64().unwrap_or(0);
    let tasks = |count: u64| match count {
        0 => "No task".to_owned(),
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    };
    let mut text = format!("{} received this event.", tasks(total("matched")));
    let kept_out = total("discarded");
    if kept_out > 0 {
        let because = outcome["discarded"]["because"].as_object();
        let because = because.into_iter().flatten();
        let because: Vec<String> = because
            .map(|(reason, count)| format!("{reason} ({count})"))
            .collect();
        let listening = match kept_out {
            1 => "1 listening task".to_owned(),
            count => format!("{count} listening tasks"),
        };
        text.push_str(&format!(" {listening} did not: {}.", because.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_decided_is_a_sentence() {
        let outcome =
            json!({"matched": {"total": 1}, "discarded": {"total": 2, "because": {"filter": 2}}});
        assert_eq!(
            decided(&outcome),
            "1 task received this event. 2 listening tasks did not: filter (2)."
        );
        assert_eq!(decided(&json!({})), "No task received this event.");
    }
}
