//! Streams of a task over HTTP: its turns as server-sent events, and what its model says while it says it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use http::HeaderMap;
use proofhouse_store::model::TaskState;
use serde_json::json;
use tokio::sync::broadcast;
use utoipa::ToSchema;

use super::caller::{May, ReadTasks};
use super::{Api, Caller, Path, TurnView};
use crate::problem::Problem;

/// How often the store is looked at. Another process may run the task, so there is nobody else to ask.
const LOOK: Duration = Duration::from_millis(250);
/// Turns that are read at a time.
const BATCH: usize = 100;
/// How long a stream lasts; the client comes back with `Last-Event-ID`.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// How often it is looked whether the caller may still follow.
const CHECK: Duration = Duration::from_secs(3);

/// An event of a stream.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes what the library writes")]
struct StreamEvent {
    /// `turn`, `text`, `state` or `end`.
    event: String,
    /// The number of the turn.
    id: Option<String>,
    /// JSON: a turn, `{"text"}`, `{"state", "detail"}` or `{"code", "detail"}`.
    data: String,
}

/// Follow a task
///
/// Server-sent events: `turn` with a turn as it is listed elsewhere, `text` with a piece of what the model is saying,
/// `state` when the task begins or stops working. `Last-Event-ID` goes on after that turn. It ends with the task, or
/// with `end` within a few seconds after the key was revoked or has expired.
#[utoipa::path(
    get, path = "/v1/tasks/{task}/stream", tag = "tasks", security(("key" = [])),
    params(
        ("task" = String, Path, description = "The id of the task"),
        ("Last-Event-ID" = Option<i64>, Header, description = "The number of the last turn seen", minimum = 0)
    ),
    responses(
        (status = 200, body = StreamEvent, content_type = "text/event-stream"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn stream(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadTasks>,
    Path(task): Path<String>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let last = headers.get("last-event-id");
    let last = last.map(|value| {
        value
            .to_str()
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
    });
    let from = match last {
        None => 0,
        Some(Some(number)) if number >= 0 => number.saturating_add(1),
        Some(_) => {
            return Err(Problem::bad_request(
                "`Last-Event-ID` is the number of a turn",
            ));
        }
    };
    api.seen_by(&caller).task(&task).await?;
    let follower = StreamReader {
        text: Some(api.engine().texts(&task)),
        api,
        caller,
        checked: tokio::time::Instant::now(),
        task,
        from,
        state: None,
        ready: VecDeque::new(),
        until: tokio::time::Instant::now() + LONGEST,
        over: false,
    };
    let events = futures_util::stream::unfold(follower, StreamReader::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

struct StreamReader {
    api: Arc<Api>,
    caller: Caller,
    /// When the caller was last let in.
    checked: tokio::time::Instant,
    task: String,
    from: i64,
    state: Option<TaskState>,
    ready: VecDeque<Event>,
    text: Option<broadcast::Receiver<String>>,
    until: tokio::time::Instant,
    over: bool,
}

impl StreamReader {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            // Whoever follows comes back with `Last-Event-ID`, to another process if there is one.
            let is_late = tokio::time::Instant::now() >= self.until;
            if self.over || is_late || self.api.engine().is_stopping() {
                return None;
            }
            if !self.is_let_in().await {
                continue;
            }
            if !self.look().await {
                return None;
            }
            if self.ready.is_empty() && !self.over {
                self.wait().await;
            }
        }
    }

    /// Whether the caller may still follow; if not, that is the last event.
    async fn is_let_in(&mut self) -> bool {
        if self.checked.elapsed() < CHECK {
            return true;
        }
        match self.caller.is_still_let_in(&self.api).await {
            Ok(()) => {
                self.checked = tokio::time::Instant::now();
                true
            }
            Err(problem) => {
                self.over = true;
                let said = json!({"code": problem.code, "detail": problem.detail});
                self.push(Event::default().event("end").json_data(said));
                false
            }
        }
    }

    /// Reads what is new; `false` when there is nothing to follow any more.
    async fn look(&mut self) -> bool {
        // The state first: turns that come after it are seen the next time.
        let Ok(task) = self.api.store.task(&self.task).await else {
            return false;
        };
        let Ok(turns) = self.api.store.turns(&self.task, self.from, BATCH).await else {
            return false;
        };
        let all = turns.len() < BATCH;
        for turn in turns {
            self.from = turn.seq.saturating_add(1);
            let event = Event::default().event("turn").id(turn.seq.to_string());
            self.push(event.json_data(TurnView::from(turn)));
        }
        if all && self.state != Some(task.state) {
            self.state = Some(task.state);
            let state = json!({"state": task.state.as_str(), "detail": task.detail});
            self.push(Event::default().event("state").json_data(state));
            self.over = task.state == TaskState::Ended;
        }
        if self.text.is_none() {
            self.text = Some(self.api.engine().texts(&self.task));
        }
        true
    }

    fn push(&mut self, event: Result<Event, axum::Error>) {
        self.ready.extend(event.ok());
    }

    /// Waits for text, or until it is time to look again.
    async fn wait(&mut self) {
        let Some(text) = &mut self.text else {
            return tokio::time::sleep(LOOK).await;
        };
        match tokio::time::timeout(LOOK, text.recv()).await {
            Ok(Ok(piece)) => {
                let event = Event::default().event("text");
                self.push(event.json_data(json!({"text": piece})));
            }
            Ok(Err(broadcast::error::RecvError::Closed)) => self.text = None,
            Ok(Err(broadcast::error::RecvError::Lagged(_))) | Err(_) => {}
        }
    }
}
