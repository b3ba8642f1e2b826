//! Streams of a task over HTTP: its turns as server-sent events, and what its model says while it says it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use http::HeaderMap;
use proofhouse_store::model::TaskState;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::caller::{May, ReadTasks};
use super::stream_budget::{HeldBytes, READER_BYTES, StreamPermit, fitting};
use super::{AccessWatch, Api, Path, TurnView};
use crate::engine::TaskFollower;
use crate::problem::Problem;

/// How long it takes until the store is looked at though nobody told of a change. The feed tells of all there are.
const LOOK: Duration = Duration::from_secs(5 * 60);
/// How often something is sent though nothing happens, so that nobody on the way closes the connection. Every one of them
/// wakes the stream: with many streams, that is most of what they cost.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Turns that are read at a time, if they are small.
const BATCH: usize = 100;
/// How long a stream lasts; the client comes back with `Last-Event-ID`.
const LONGEST: Duration = Duration::from_secs(60 * 60);

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
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
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
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer.ip());
    let permit = api.streams.admit(peer).ok_or_else(|| {
        Problem::unavailable("there are too many streams; the rest of the server needs room too")
    })?;
    let now = Instant::now();
    let reader = StreamReader {
        follower: api.engine().follow(&task),
        text: api.engine().texts(&task),
        access: api.access.watch(&api, &caller),
        api,
        _permit: permit,
        look_at: now,
        task,
        from,
        state: None,
        ready: VecDeque::new(),
        held: None,
        until: now + LONGEST,
        over: false,
    };
    let events = futures_util::stream::unfold(reader, StreamReader::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

struct StreamReader {
    api: Arc<Api>,
    /// Whether the caller may still follow.
    access: AccessWatch,
    _permit: StreamPermit,
    /// When the store is looked at next.
    look_at: Instant,
    task: String,
    from: i64,
    state: Option<TaskState>,
    ready: VecDeque<Event>,
    /// The right to hold what is ready. It is given back when the client has taken all of it and wants more.
    held: Option<HeldBytes>,
    follower: TaskFollower,
    text: broadcast::Receiver<String>,
    until: Instant,
    over: bool,
}

impl StreamReader {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            self.held = None;
            // Whoever follows comes back with `Last-Event-ID`, to another process if there is one.
            let is_late = Instant::now() >= self.until;
            if self.over || is_late || self.api.engine().is_stopping() {
                return None;
            }
            if let Some(problem) = self.access.problem() {
                self.end(&problem);
                continue;
            }
            if Instant::now() >= self.look_at && !self.look().await {
                return None;
            }
            if self.ready.is_empty() && !self.over && Instant::now() < self.look_at {
                self.wait().await;
            }
        }
    }

    /// Ends the stream with the reason.
    fn end(&mut self, problem: &Problem) {
        self.over = true;
        let said = json!({"code": problem.code, "detail": problem.detail});
        self.push(Event::default().event("end").json_data(said));
    }

    /// Reads what is new, as much as one reader may have; `false` when there is nothing to follow any more.
    async fn look(&mut self) -> bool {
        // The state first: turns that come after it are seen the next time.
        let store = &self.api.store;
        let Ok(task) = store.task(&self.task).await else {
            return false;
        };
        let Ok(sizes) = store.turn_sizes(&self.task, self.from, BATCH).await else {
            return false;
        };
        let (count, bytes) = fitting(sizes.iter().copied(), READER_BYTES);
        let mut is_all = true;
        if count > 0 {
            self.held = self.api.streams.hold(bytes).await;
            if self.held.is_none() {
                let others =
                    "others do not read what they asked for; come back with `Last-Event-ID`";
                self.end(&Problem::unavailable(others));
                return true;
            }
            let Ok(turns) = store.turns(&self.task, self.from, count).await else {
                return false;
            };
            is_all = turns.len() == sizes.len() && sizes.len() < BATCH;
            for turn in turns {
                self.from = turn.seq.saturating_add(1);
                let event = Event::default().event("turn").id(turn.seq.to_string());
                self.push(event.json_data(TurnView::from(turn)));
            }
        }
        if is_all && self.state != Some(task.state) {
            self.state = Some(task.state);
            let state = json!({"state": task.state.as_str(), "detail": task.detail});
            self.push(Event::default().event("state").json_data(state));
            self.over = task.state == TaskState::Ended;
        }
        if is_all {
            self.look_at = Instant::now() + LOOK;
        }
        true
    }

    fn push(&mut self, event: Result<Event, axum::Error>) {
        self.ready.extend(event.ok());
    }

    /// Waits for text, for a change of the task, or until something is due.
    async fn wait(&mut self) {
        let due = self.until.min(self.look_at);
        let text = tokio::select! {
            () = self.api.engine().stopping() => return,
            () = tokio::time::sleep_until(due) => return,
            () = self.access.ended() => return,
            () = self.follower.changed() => {
                self.look_at = Instant::now();
                return;
            }
            text = self.text.recv() => text,
        };
        match text {
            Ok(piece) => {
                let event = Event::default().event("text");
                self.push(event.json_data(json!({"text": piece})));
            }
            Err(broadcast::error::RecvError::Closed) => {
                self.text = self.api.engine().texts(&self.task);
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {}
        }
    }
}
