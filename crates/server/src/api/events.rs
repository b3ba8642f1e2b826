//! Events over HTTP: what came, what became of it and why, and routing it again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use proofhouse_store::model::{EventFilter, EventKind, EventState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::caller::{May, ReadEvents, ReplayEvents};
use super::tasks::page;
use super::{Api, EventDetailView, EventView, Path, Query, operations};
use crate::problem::Problem;

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListEvents {
    /// Only those for this tool.
    tool: Option<String>,
    /// Only `webhook`, `subscription` or `poll`.
    #[param(pattern = "^(webhook|subscription|poll)$")]
    kind: Option<String>,
    /// Only those that are `received` or `routed`.
    #[param(pattern = "^(received|routed)$")]
    state: Option<String>,
    /// Only those that were given to this task.
    task: Option<String>,
    /// Only those that reached nobody (`true`) or somebody (`false`).
    discarded: Option<bool>,
    /// Those before this one: the id of the last one seen.
    before: Option<i64>,
    /// How many, 50 unless said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Events, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventList {
    events: Vec<EventView>,
    /// What `before` is for the next page; none at the end.
    next: Option<i64>,
}

fn word<T>(
    name: &str,
    value: Option<String>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let read = |word: String| {
        read(&word).ok_or_else(|| Problem::bad_request(format!("`{name}` has no such value")))
    };
    value.map(read).transpose()
}

/// List events, newest first
#[utoipa::path(
    get, path = "/v1/events", tag = "events", security(("key" = [])), params(ListEvents),
    responses(
        (status = 200, body = EventList),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadEvents>,
    Query(query): Query<ListEvents>,
) -> Result<Json<EventList>, Problem> {
    let limit = page(query.limit)?;
    let filter = EventFilter {
        namespaces: None,
        source: None,
        tool: query.tool,
        kind: word("kind", query.kind, EventKind::from_word)?,
        state: word("state", query.state, EventState::from_word)?,
        task: query.task,
        discarded: query.discarded,
        before: query.before,
        limit,
    };
    let events = api.seen_by(&caller).events(filter).await?;
    let full = events.len() == limit;
    let next = events.last().filter(|_| full).map(|event| event.id);
    let events = events.into_iter().map(Into::into).collect();
    Ok(Json(EventList { events, next }))
}

/// Show an event with its payload, whom it was given to, and why not to others
#[utoipa::path(
    get, path = "/v1/events/{event}", tag = "events", security(("key" = [])),
    params(("event" = i64, Path, description = "The id of the event")),
    responses(
        (status = 200, body = EventDetailView),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadEvents>,
    Path(event): Path<i64>,
) -> Result<Json<EventDetailView>, Problem> {
    let event = api.seen_by(&caller).event(event).await?;
    Ok(Json(event.into()))
}

/// An event will be routed again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventReplayed {
    /// The number of the attempt.
    attempt: i64,
}

/// Route an event again, to whoever it is for by now
#[utoipa::path(
    post, path = "/v1/events/{event}/replay", tag = "events", security(("key" = [])),
    params(("event" = i64, Path, description = "The id of the event")),
    responses(
        (status = 202, body = EventReplayed),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn replay(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReplayEvents>,
    Path(event): Path<i64>,
) -> Result<(StatusCode, Json<EventReplayed>), Problem> {
    let attempt = operations::replay(&api, &caller, event, None).await?;
    Ok((StatusCode::ACCEPTED, Json(EventReplayed { attempt })))
}
