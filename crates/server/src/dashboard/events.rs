//! The pages about events: all of them, and one with what became of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use proofhouse_store::model::{EventFilter, EventSummary};
use serde::Deserialize;

use super::page::{Page, badge, json, link, older, table};
use super::{admitted, page_of};
use crate::api::{Api, Caller, EventDetailView, Path, Query, moment};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Rows of a page.
const PAGE_ROWS: usize = 50;

#[derive(Debug, Deserialize)]
pub(super) struct EventQuery {
    before: Option<i64>,
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
    let filter = EventFilter {
        before: query.ok().and_then(|Query(query)| query.before),
        limit: PAGE_ROWS,
        ..EventFilter::default()
    };
    let events = api.seen_by(caller).events(filter).await?;
    let last = events.last().filter(|_| events.len() == PAGE_ROWS);
    let next = last.map(|event| format!("/dashboard/events?before={}", event.id));
    let rows: Vec<Vec<Markup>> = events.iter().map(row).collect();
    let headings = ["Event", "Tool", "Kind", "Fate", "Tasks", "Received"];
    let body = html! { (table("Events, newest first", &headings, &rows)) (older(next)) };
    Ok(Page::new("Events", body))
}

fn row(event: &EventSummary) -> Vec<Markup> {
    vec![
        link("/dashboard/events", &event.id.to_string()),
        html! { (event.tool.name) },
        html! { (event.kind.as_str()) },
        badge(delivery_outcome(event)),
        html! { (event.matched) },
        html! { (moment(event.received_at)) },
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
            (event.received_at)
        }
        (table("Deliveries", &headings, &rows))
        @if let Some(outcome) = &event.outcome { h2 { "What was decided, and why" } (json(outcome)) }
        h2 { "Payload" } (json(&payload))
        h2 { "Headers" } (json(&headers))
    };
    Ok(Page::new(format!("Event {id}"), body))
}
