//! What keeps an open page of the dashboard up to date: a stream that says when the page shows something else by now.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use http::header;
use http::request::Parts;
use proofhouse_store::model::{DeliveryRecord, TaskRecord};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::campaigns::{self, CampaignQuery};
use super::filters::TaskQuery;
use super::tasks;
use crate::api::{
    AccessWatch, Api, CAMPAIGN_LOOK, Caller, KEEP_ALIVE, Path, Query, StreamPermit, campaign_detail,
};
use crate::engine::TaskFollower;
use crate::keys::{self, KeyScope};
use crate::problem::Problem;

/// How long it takes until the page is looked at though nobody told of a change: things get stuck by nothing happening.
const LOOK: Duration = Duration::from_secs(30);
/// How long changes are collected before one is told.
const COLLECT: Duration = Duration::from_millis(300);
/// How long a stream lasts; browsers come back by themselves.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The script of pages that keep themselves up to date.
pub(super) async fn script() -> impl IntoResponse {
    let form = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (form, include_str!("live.js"))
}

/// What is looked at.
enum LivePage {
    List(Box<TaskQuery>),
    Task(String),
    Campaigns(CampaignQuery),
    Campaign(String),
}

impl LivePage {
    /// What changes when the page shows something else.
    async fn mark(&self, api: &Api, caller: &Caller) -> Result<String, Problem> {
        match self {
            Self::List(query) => Ok(list_mark(&tasks::found(api, caller, query).await?)),
            Self::Task(id) => {
                let store = api.seen_by(caller);
                let task = store.task(id).await?;
                let deliveries = store.delivery_list(id, tasks::PAGE_ROWS).await?;
                Ok(task_mark(&task, &deliveries))
            }
            Self::Campaigns(query) => {
                let listed = campaigns::found(api, caller, query).await?;
                Ok(mark_of(&campaigns::list_mark(&listed)))
            }
            Self::Campaign(name) => {
                let detail = campaign_detail(api, caller, name).await?;
                Ok(mark_of(&campaigns::campaign_mark(&detail)))
            }
        }
    }

    /// What whoever looks at it must be allowed to see.
    fn scope(&self) -> KeyScope {
        match self {
            Self::List(_) | Self::Task(_) => KeyScope::TasksRead,
            Self::Campaigns(_) | Self::Campaign(_) => KeyScope::CampaignsRead,
        }
    }

    /// How long it takes until the page is looked at though nobody told of a change. Nobody tells of campaigns.
    fn look(&self) -> Duration {
        match self {
            Self::List(_) | Self::Task(_) => LOOK,
            Self::Campaigns(_) | Self::Campaign(_) => CAMPAIGN_LOOK,
        }
    }
}

/// What stands for the rows of a list.
pub(super) fn list_mark(found: &tasks::FoundTasks) -> String {
    let rows = found.tasks.iter().map(|task| {
        let status = found.status(task).word();
        json!([task.id, task.next_seq, status])
    });
    let rows: Vec<_> = rows.collect();
    mark_of(&json!([rows, found.is_stalled()]))
}

/// What stands for a task.
pub(super) fn task_mark(task: &TaskRecord, deliveries: &[DeliveryRecord]) -> String {
    let deliveries = deliveries.iter();
    let deliveries = deliveries.map(|delivery| json!([delivery.id, delivery.state.as_str()]));
    let deliveries: Vec<_> = deliveries.collect();
    mark_of(&json!([
        task.next_seq,
        task.state.as_str(),
        task.detail,
        deliveries
    ]))
}

/// What stands for what a page shows.
pub(super) fn mark_of(value: &serde_json::Value) -> String {
    keys::digest(&value.to_string())
}

pub(super) async fn list(
    opening: Opening,
    Query(query): Query<TaskQuery>,
) -> Result<Response, Problem> {
    let seen = query.seen.clone();
    let follower = opening.api.engine().follow_all();
    let page = LivePage::List(Box::new(query));
    opening.open(page, seen, Some(follower)).await
}

/// What whoever follows a task has seen last.
#[derive(Debug, Deserialize)]
pub(super) struct SeenQuery {
    seen: Option<String>,
}

pub(super) async fn task(
    opening: Opening,
    Path(task): Path<String>,
    Query(query): Query<SeenQuery>,
) -> Result<Response, Problem> {
    let follower = opening.api.engine().follow(&task);
    let page = LivePage::Task(task);
    opening.open(page, query.seen, Some(follower)).await
}

pub(super) async fn campaign_list(
    opening: Opening,
    Query(query): Query<CampaignQuery>,
) -> Result<Response, Problem> {
    let seen = query.seen.clone();
    opening.open(LivePage::Campaigns(query), seen, None).await
}

pub(super) async fn campaign(
    opening: Opening,
    Path(campaign): Path<String>,
    Query(query): Query<SeenQuery>,
) -> Result<Response, Problem> {
    let page = LivePage::Campaign(campaign);
    opening.open(page, query.seen, None).await
}

/// A request for a stream: who asks, from where, and what they were told last.
pub(super) struct Opening {
    api: Arc<Api>,
    caller: Caller,
    peer: Option<IpAddr>,
    last: Option<String>,
}

impl FromRequestParts<Arc<Api>> for Opening {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, api).await?;
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        // A browser that comes back says what it was told last.
        let last = parts.headers.get("last-event-id");
        let last = last.and_then(|value| value.to_str().ok());
        Ok(Self {
            api: Arc::clone(api),
            caller,
            peer: peer.map(|ConnectInfo(peer)| peer.ip()),
            last: last.map(str::to_owned),
        })
    }
}

impl Opening {
    async fn open(
        self,
        page: LivePage,
        seen: Option<String>,
        follower: Option<TaskFollower>,
    ) -> Result<Response, Problem> {
        let Self {
            api,
            caller,
            peer,
            last,
        } = self;
        caller.needs(page.scope())?;
        page.mark(&api, &caller).await?;
        let permit = api.streams.admit(peer).ok_or_else(|| {
            Problem::unavailable("there are too many streams; load the page again to see changes")
        })?;
        let now = Instant::now();
        let reader = LiveReader {
            access: api.access.watch(&api, &caller),
            api,
            caller,
            _permit: permit,
            page,
            follower,
            seen: last.or(seen).unwrap_or_default(),
            look_at: now,
            until: now + LONGEST,
        };
        let events = unfold(reader, LiveReader::next);
        let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
        Ok(stream.into_response())
    }
}

struct LiveReader {
    api: Arc<Api>,
    caller: Caller,
    /// Whether the caller may still look.
    access: AccessWatch,
    _permit: StreamPermit,
    page: LivePage,
    /// Tells of changes, where somebody does.
    follower: Option<TaskFollower>,
    /// What the page showed last.
    seen: String,
    look_at: Instant,
    until: Instant,
}

impl LiveReader {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if Instant::now() >= self.until || self.api.engine().is_stopping() {
                return None;
            }
            // Whoever may not look any more is asked to sign in when the browser comes back.
            if self.access.problem().is_some() {
                return None;
            }
            if Instant::now() >= self.look_at {
                self.look_at = Instant::now() + self.page.look();
                let mark = self.page.mark(&self.api, &self.caller).await.ok()?;
                if mark != self.seen {
                    self.seen = mark;
                    // Browsers do not tell of an event without data.
                    let event = Event::default()
                        .event("changed")
                        .id(&self.seen)
                        .data("changed");
                    return Some((Ok(event), self));
                }
            }
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        let due = self.until.min(self.look_at);
        tokio::select! {
            () = self.api.engine().stopping() => {}
            () = tokio::time::sleep_until(due) => {}
            () = self.access.ended() => {}
            () = changed(&mut self.follower) => self.look_at = self.look_at.min(Instant::now() + COLLECT),
        }
    }
}

/// Waits until somebody tells of a change.
async fn changed(follower: &mut Option<TaskFollower>) {
    match follower {
        Some(follower) => follower.changed().await,
        None => std::future::pending().await,
    }
}
