//! The pages about events: all of them, and one with what became of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use proofhouse_store::model::{EventFilter, EventSummary};
use serde::Deserialize;

use super::html::{Page, badge, escape, json, link};
use super::{trouble, visitor};
use crate::api::{Api, Caller, EventDetailView, Path, Query, moment, store_problem};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Rows of a page.
const PAGE: usize = 50;

#[derive(Debug, Deserialize)]
pub(super) struct Before {
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
    query: Result<Query<Before>, Problem>,
) -> Response {
    if let Err(elsewhere) = visitor(caller, KeyScope::EventsRead) {
        return *elsewhere;
    }
    let filter = EventFilter {
        before: query.ok().and_then(|Query(query)| query.before),
        limit: PAGE,
        ..EventFilter::default()
    };
    let events = match api.store.events(filter).await {
        Ok(events) => events,
        Err(error) => return trouble(&store_problem(error)),
    };
    let older = events.last().filter(|_| events.len() == PAGE);
    let older = older.map(|event| format!("/dashboard/events?before={}", event.id));
    let row = |event: &EventSummary| {
        vec![
            link(
                "/dashboard/events",
                &event.id.to_string(),
                &event.id.to_string(),
            ),
            escape(&event.tool.name),
            escape(event.kind.as_str()),
            badge(delivery_outcome(event)),
            event.matched.to_string(),
            moment(event.received_at),
        ]
    };
    let rows: Vec<Vec<String>> = events.iter().map(row).collect();
    let heads = ["Event", "Tool", "Kind", "Fate", "Tasks", "Received"];
    let page = Page::new("Events").table("Events, newest first", &heads, &rows);
    page.older(older).finish().into_response()
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    event: Result<Path<i64>, Problem>,
) -> Response {
    if let Err(elsewhere) = visitor(caller, KeyScope::EventsRead) {
        return *elsewhere;
    }
    match page(&api, event).await {
        Ok(page) => page.finish().into_response(),
        Err(problem) => trouble(&problem),
    }
}

async fn page(api: &Api, event: Result<Path<i64>, Problem>) -> Result<Page, Problem> {
    let Path(id) = event?;
    let detail = api.store.event(id).await.map_err(store_problem)?;
    let word = delivery_outcome(&detail.event.summary);
    let view = EventDetailView::from(detail);
    let mut page = Page::new(&format!("Event {id}")).markup(&format!(
        "<p>{} a {} for {}, {} bytes, {}</p>",
        badge(word),
        escape(&view.event.kind),
        escape(&view.event.tool),
        view.event.bytes,
        escape(&view.event.received_at)
    ));
    let rows: Vec<Vec<String>> = view
        .deliveries
        .iter()
        .map(|delivery| {
            vec![
                link("/dashboard/tasks", &delivery.task, &delivery.task),
                escape(&delivery.name),
                badge(&delivery.state),
                escape(delivery.reason.as_deref().unwrap_or_default()),
                delivery
                    .turn
                    .map_or_else(String::new, |turn| turn.to_string()),
            ]
        })
        .collect();
    let heads = ["Task", "Event", "State", "Why", "Turn"];
    page = page.table("Deliveries", &heads, &rows);
    if let Some(outcome) = &view.event.outcome {
        page = page
            .markup("<h2>What was decided, and why</h2>")
            .markup(&json(outcome));
    }
    page = page.markup("<h2>Payload</h2>").markup(&json(&view.payload));
    Ok(page.markup("<h2>Headers</h2>").markup(&json(&view.headers)))
}
