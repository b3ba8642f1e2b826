//! What a task listens to, over HTTP: its polls and its push channels, and how they fare.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use proofhouse_store::model::{ChannelRecord, PollRecord, TraceEntry};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::caller::{May, ReadTasks};
use super::{Api, Path, moment};
use crate::problem::Problem;

/// Channels that are shown of a task.
const MAX_CHANNELS: usize = 200;
/// Notices that are shown of a task, the newest.
const MAX_NOTICES: usize = 200;

/// What a task listens to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListeningView {
    polls: Vec<PollView>,
    channels: Vec<ChannelView>,
    /// What happened to them that people should know, oldest first: channels that were lost, and why.
    notices: Vec<NoticeView>,
}

/// Something that happened to what a task listens to.
#[derive(Debug, Serialize, ToSchema)]
struct NoticeView {
    /// `channel_lost`.
    notice: String,
    /// The tool, the event and the error.
    #[schema(value_type = Object)]
    about: Value,
    /// When.
    at: String,
}

impl NoticeView {
    fn of(entry: &TraceEntry) -> Option<Self> {
        Some(Self {
            notice: entry.entry.get("notice")?.as_str()?.to_owned(),
            about: entry.entry.get("about").cloned().unwrap_or_default(),
            at: moment(entry.created_at),
        })
    }
}

/// A poll of a task.
#[derive(Debug, Serialize, ToSchema)]
struct PollView {
    /// The tool.
    tool: String,
    /// The event of the tool.
    event: String,
    /// Whether there was an answer to compare the next one with.
    polled: bool,
    /// When it is due.
    next_due: String,
    /// How often it failed since it last did not.
    consecutive_failures: i64,
    /// Why, the last time.
    last_error: Option<String>,
}

impl From<PollRecord> for PollView {
    fn from(poll: PollRecord) -> Self {
        Self {
            tool: poll.tool.name,
            event: poll.event,
            polled: poll.cursor.is_some(),
            next_due: moment(poll.next_due),
            consecutive_failures: poll.failures,
            last_error: poll.last_error,
        }
    }
}

/// A push channel that a task has at a platform.
#[derive(Debug, Serialize, ToSchema)]
struct ChannelView {
    /// Names it, at the platform too.
    id: String,
    /// The tool.
    tool: String,
    /// The event of the tool.
    event: String,
    /// `subscribing`, `active`, `replaced`, `closing`, `closed` or `lost`.
    state: String,
    /// When it ends unless it is renewed.
    expires_at: Option<String>,
    /// When it is renewed.
    renew_at: Option<String>,
    /// What went wrong last.
    last_error: Option<String>,
}

impl From<ChannelRecord> for ChannelView {
    fn from(channel: ChannelRecord) -> Self {
        Self {
            id: channel.id,
            tool: channel.tool.name,
            event: channel.event,
            state: channel.state.as_str().to_owned(),
            expires_at: channel.expires_at.map(moment),
            renew_at: channel.renew_at.map(moment),
            last_error: channel.last_error,
        }
    }
}

/// Show the polls and push channels of a task, and what happened to them
#[utoipa::path(
    get, path = "/v1/tasks/{task}/listening", tag = "tasks", security(("key" = [])),
    params(("task" = String, Path, description = "The id of the task")),
    responses(
        (status = 200, body = ListeningView),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadTasks>,
    Path(task): Path<String>,
) -> Result<Json<ListeningView>, Problem> {
    let store = api.seen_by(&caller);
    let polls = store.polls(&task).await?;
    let trace = store.trace(&task, MAX_NOTICES).await?;
    let channels = store.channels(&task, MAX_CHANNELS).await?;
    Ok(Json(ListeningView {
        polls: polls.into_iter().map(Into::into).collect(),
        channels: channels.into_iter().map(Into::into).collect(),
        notices: trace.iter().filter_map(NoticeView::of).collect(),
    }))
}
