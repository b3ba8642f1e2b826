//! The keeper of push channels: opens them when a task listens, renews them before they end, and closes them
//! on every way out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use proofhouse_store::model::{
    Channel, ChannelFilter, ChannelState, ChannelUpdate, ClaimedChannel, DirectDelivery,
    NewChannel, SweptChannel, Task, TaskState, ToolRef,
};
use proofhouse_store::{Result, StoreError};
use proofhouse_tools::manifest::{Receive, Subscription};
use proofhouse_tools::receive::Listener;
use proofhouse_tools::receive::subscription::{
    self, DEFAULT_LIFETIME, Opening, Subscribed, Unsubscribed,
};
use serde_json::{Value, json};

use super::Inner;
use super::listener;

/// Channels that are worked on at once.
const BATCH: usize = 16;
/// Channels of one task that are looked at.
const MAX_CHANNELS: usize = 1_000;
/// The pause after a failure, which doubles up to the longest one.
const PAUSE_MS: i64 = 1_000;
const MAX_PAUSE_MS: i64 = 5 * 60 * 1_000;
/// How long an interrupted task is waited for that is about to go on: its tools may have to be started.
const LISTENS_TRIES: u32 = 300;
const LISTENS_PAUSE: Duration = Duration::from_millis(100);
/// How often closing is tried; after that the platform ends the channel by itself.
const MAX_CLOSE_FAILURES: i64 = 10;
/// How often opening is tried when there is no older channel that still works.
const MAX_OPEN_FAILURES: i64 = 5;

/// Renews and sweeps until the engine stops.
pub(super) async fn run(inner: Arc<Inner>) {
    loop {
        let lease = inner.options.lease_ms();
        match inner.store.claim_renewals(&inner.owner, lease, BATCH).await {
            Ok(claimed) => {
                for channel in claimed {
                    let inner = Arc::clone(&inner);
                    let tracker = inner.tracker.clone();
                    tracker.spawn(async move { renew(&inner, channel).await });
                }
            }
            Err(error) => inner.trouble("channels cannot be claimed", &error),
        }
        match inner.store.claim_sweeps(&inner.owner, lease, BATCH).await {
            Ok(claimed) => {
                for channel in claimed {
                    let inner = Arc::clone(&inner);
                    let tracker = inner.tracker.clone();
                    tracker.spawn(async move { close(&inner, channel).await });
                }
            }
            Err(error) => inner.trouble("channels cannot be claimed", &error),
        }
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
}

/// The tasks whose channels are being opened by this process: nobody opens them twice.
#[derive(Default)]
pub(super) struct InProgress {
    tasks: Mutex<BTreeSet<String>>,
}

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the channels that a task wants and does not have, while the task goes on.
pub(super) fn ensure(inner: &Arc<Inner>, task: &str) {
    if !inner.opening.lock().insert(task.to_owned()) {
        return;
    }
    let (inner, task) = (Arc::clone(inner), task.to_owned());
    let tracker = inner.tracker.clone();
    tracker.spawn(async move {
        let opened = open_missing(&inner, &task).await;
        inner.opening.lock().remove(&task);
        match opened {
            Ok(()) | Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {}
            Err(error) => inner.trouble("channels cannot be opened", &error),
        }
    });
}

async fn open_missing(inner: &Arc<Inner>, id: &str) -> Result<()> {
    let snapshot = inner.manifests.current();
    let interests = inner.store.interests(id).await?;
    let is_push = |tool: &ToolRef, event: &str| {
        let event = snapshot.tool(tool).and_then(|tool| tool.event(event));
        event.is_some_and(|event| matches!(event.receive, Receive::Subscription(_)))
    };
    let mut wanted: Vec<_> = interests
        .into_iter()
        .filter(|interest| is_push(&interest.tool, &interest.event))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let filter = ChannelFilter {
        task: Some(id.to_owned()),
        limit: MAX_CHANNELS,
        ..ChannelFilter::default()
    };
    for channel in inner.store.channels(filter).await? {
        if matches!(
            channel.state,
            ChannelState::Subscribing | ChannelState::Active
        ) {
            wanted.retain(|one| one.tool != channel.tool || one.event != channel.event);
        }
    }
    let Some(task) = listening(inner, id).await? else {
        return Ok(());
    };
    for interest in wanted {
        open(inner, &task, &interest.tool, &interest.event, None).await?;
    }
    Ok(())
}

/// The task, once it listens: one that goes on after an interruption does so with its next turn, and a channel
/// that opens before that would be closed again.
async fn listening(inner: &Arc<Inner>, id: &str) -> Result<Option<Task>> {
    for _ in 0..LISTENS_TRIES {
        let task = inner.store.task(id).await?;
        match task.state {
            TaskState::Ended => return Ok(None),
            TaskState::Interrupted => tokio::time::sleep(LISTENS_PAUSE).await,
            _ => return Ok(Some(task)),
        }
        if inner.stopping.is_cancelled() {
            break;
        }
    }
    Ok(None)
}

/// How asking for a channel went.
enum Opened {
    Yes,
    /// It makes sense to try again.
    NotYet(String),
    /// It makes no sense.
    Never(String),
}

/// Asks for a channel. It is known before the platform is asked, so that it can be closed whatever happens.
async fn open(
    inner: &Arc<Inner>,
    task: &Task,
    tool: &ToolRef,
    event: &str,
    replaces: Option<&Channel>,
) -> Result<Opened> {
    let snapshot = inner.manifests.current();
    let Some(listener) = listener::of(inner, &snapshot, task, tool).await? else {
        return Ok(Opened::Never("the tool is gone".to_owned()));
    };
    let Some(declared) = subscription_of(&listener, event) else {
        return Ok(Opened::Never("the event is gone".to_owned()));
    };
    let now = inner.options.now();
    let opening = match Opening::new(now, DEFAULT_LIFETIME) {
        Ok(opening) => opening,
        Err(error) => return Ok(Opened::NotYet(error.to_string())),
    };
    let mut failures = 0;
    let mut opening = opening;
    loop {
        let new = NewChannel {
            id: opening.id.clone(),
            task: task.id.clone(),
            tool: tool.clone(),
            event: event.to_owned(),
            expires_at: Some(opening.expires_at.as_millisecond()),
            replaces: replaces.map(|channel| channel.id.clone()),
        };
        let lease = inner.options.lease_ms();
        let claimed = inner.store.open_channel(new, &inner.owner, lease).await?;
        let client = &inner.options.client;
        let answer = subscription::subscribe(client, declared, &listener, &opening, now).await;
        let held = Some(claimed.lease.held());
        let error = match answer {
            Subscribed::Active(active) => {
                let update = ChannelUpdate {
                    to: Some(ChannelState::Active),
                    from: vec![ChannelState::Subscribing],
                    expires_at: Some(active.expires_at.as_millisecond()),
                    renew_at: Some(active.renew_at.as_millisecond()),
                    response: Some(active.response),
                    held,
                    ..update(&opening.id)
                };
                inner.store.update_channel(update).await?;
                return Ok(Opened::Yes);
            }
            // It may be open at the platform: it is closed like any other.
            Subscribed::Unknown { error } => {
                let update = ChannelUpdate {
                    to: Some(ChannelState::Closing),
                    last_error: Some(error.to_string()),
                    held,
                    ..update(&opening.id)
                };
                inner.store.update_channel(update).await?;
                error
            }
            Subscribed::Failed { error } => {
                let update = ChannelUpdate {
                    to: Some(ChannelState::Lost),
                    last_error: Some(error.to_string()),
                    held,
                    ..update(&opening.id)
                };
                inner.store.update_channel(update).await?;
                error
            }
        };
        failures += 1;
        let message = error.to_string();
        tracing::warn!(task = %task.id, %event, error = %message, "a channel cannot be opened");
        if !error.is_recoverable() {
            lost(inner, task, tool, event, OPENING, &message).await?;
            return Ok(Opened::Never(message));
        }
        if replaces.is_some() {
            return Ok(Opened::NotYet(message));
        }
        if failures >= MAX_OPEN_FAILURES {
            lost(inner, task, tool, event, OPENING, &message).await?;
            return Ok(Opened::NotYet(message));
        }
        let pause = u64::try_from(pause(failures)).unwrap_or(1_000);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause)) => {}
            () = inner.stopping.cancelled() => return Ok(Opened::NotYet(message)),
        }
        let state = inner.store.task(&task.id).await?.state;
        if matches!(state, TaskState::Interrupted | TaskState::Ended) {
            return Ok(Opened::Never("the task listens no longer".to_owned()));
        }
        opening = match Opening::new(inner.options.now(), DEFAULT_LIFETIME) {
            Ok(opening) => opening,
            Err(error) => return Ok(Opened::NotYet(error.to_string())),
        };
    }
}

/// Opens the successor of a channel; the old one stays open until that is done.
async fn renew(inner: &Arc<Inner>, claimed: ClaimedChannel) {
    let (channel, lease) = (claimed.channel, claimed.lease);
    let held = lease.held();
    match successor(inner, &channel).await {
        Ok(mut update) => {
            update.held = Some(held.clone());
            match inner.store.update_channel(update).await {
                Ok(_) | Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {}
                Err(error) => inner.trouble("a channel cannot be changed", &error),
            }
        }
        Err(error) => inner.trouble("a channel cannot be renewed", &error),
    }
    let _ = inner.store.release(held).await;
}

/// What becomes of the old channel.
async fn successor(inner: &Arc<Inner>, channel: &Channel) -> Result<ChannelUpdate> {
    let task = inner.store.task(&channel.task).await?;
    let now = inner.options.now().as_millisecond();
    let interests = inner.store.interests(&channel.task).await?;
    let interest = interests
        .iter()
        .find(|one| one.tool == channel.tool && one.event == channel.event);
    let is_over = match interest.and_then(|interest| interest.timeout_ms) {
        Some(timeout) => now.saturating_sub(task.last_activity) > timeout,
        None => interest.is_none(),
    };
    if is_over {
        // The task listens no longer, so there is nothing to renew.
        return Ok(ChannelUpdate {
            to: Some(ChannelState::Closing),
            ..update(&channel.id)
        });
    }
    let opened = open(inner, &task, &channel.tool, &channel.event, Some(channel)).await?;
    Ok(match opened {
        // The successor has made it `replaced`; nothing is left to change.
        Opened::Yes => ChannelUpdate {
            failures: Some(0),
            ..update(&channel.id)
        },
        Opened::Never(error) => ChannelUpdate {
            to: Some(ChannelState::Closing),
            last_error: Some(error),
            ..update(&channel.id)
        },
        Opened::NotYet(error) => {
            let failures = channel.failures.saturating_add(1);
            let expired = channel.expires_at.is_some_and(|end| end <= now);
            if expired {
                let (tool, event) = (&channel.tool, &channel.event);
                lost(inner, &task, tool, event, &channel.id, &error).await?;
            }
            ChannelUpdate {
                to: expired.then_some(ChannelState::Lost),
                renew_at: Some(now.saturating_add(pause(failures))),
                failures: Some(failures),
                last_error: Some(error),
                ..update(&channel.id)
            }
        }
    })
}

/// Closes a channel at the platform.
async fn close(inner: &Arc<Inner>, swept: SweptChannel) {
    let (channel, held) = (swept.channel, swept.lease.held());
    let change = match closing(inner, &channel).await {
        Ok(Unsubscribed::Gone) => ChannelUpdate {
            to: Some(ChannelState::Closed),
            ..update(&channel.id)
        },
        Ok(Unsubscribed::Impossible { error }) => ChannelUpdate {
            to: Some(ChannelState::Closed),
            last_error: Some(format!("it ends by itself: {error}")),
            ..update(&channel.id)
        },
        Ok(Unsubscribed::Failed { error }) => {
            let failures = channel.failures.saturating_add(1);
            let now = inner.options.now().as_millisecond();
            let gives_up = failures >= MAX_CLOSE_FAILURES;
            ChannelUpdate {
                to: Some(match gives_up {
                    true => ChannelState::Closed,
                    false => ChannelState::Closing,
                }),
                renew_at: Some(now.saturating_add(pause(failures))),
                failures: Some(failures),
                last_error: Some(error.to_string()),
                ..update(&channel.id)
            }
        }
        Err(error) => {
            inner.trouble("a channel cannot be closed", &error);
            let _ = inner.store.release(held).await;
            return;
        }
    };
    let change = ChannelUpdate {
        held: Some(held),
        ..change
    };
    match inner.store.update_channel(change).await {
        Ok(_) | Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {}
        Err(error) => inner.trouble("a channel cannot be changed", &error),
    }
}

async fn closing(inner: &Arc<Inner>, channel: &Channel) -> Result<Unsubscribed> {
    let snapshot = inner.manifests.current();
    let task = match inner.store.task(&channel.task).await {
        Ok(task) => task,
        // A task that was deleted has left its channels to be closed with what is known of the tool.
        Err(StoreError::NotFound(_)) => nobody(channel),
        Err(error) => return Err(error),
    };
    let Some(listener) = listener::of(inner, &snapshot, &task, &channel.tool).await? else {
        return Ok(Unsubscribed::Gone);
    };
    let Some(declared) = subscription_of(&listener, &channel.event) else {
        return Ok(Unsubscribed::Gone);
    };
    let opening = Opening {
        id: channel.id.clone(),
        expires_at: channel
            .expires_at
            .and_then(|end| Timestamp::from_millisecond(end).ok())
            .unwrap_or(Timestamp::MAX),
    };
    let response = channel.response.clone().unwrap_or(Value::Null);
    let client = &inner.options.client;
    Ok(subscription::unsubscribe(client, declared, &listener, &opening, &response).await)
}

/// Stands for a channel that could not be opened, in the key of the notice about it.
const OPENING: &str = "opening";

/// Tells a task, once, and those who look after it, that events will be missing.
async fn lost(
    inner: &Inner,
    task: &Task,
    tool: &ToolRef,
    event: &str,
    channel: &str,
    error: &str,
) -> Result<()> {
    tracing::error!(task = %task.id, tool = %tool.name, %event, %error, "a channel is lost");
    let about = json!({"tool": tool.name, "event": event, "error": error});
    let entry = json!({"notice": "channel_lost", "about": about});
    inner.store.append_trace(&task.id, vec![entry]).await?;
    // What the platform said is for people: a task hears only what is ours to say.
    let message = format!(
        "Notice: the subscription to `{event}` of `{}` is lost. Such events do not come until it can be \
         opened again.",
        tool.name
    );
    let notice = DirectDelivery {
        key: Some(format!("channel_lost:{}:{event}:{channel}", tool.name)),
        name: "message".to_owned(),
        body: json!({"message": message}),
    };
    match inner.store.deliver(&task.id, notice).await {
        Ok(_) => {
            if !inner.working.notify(&task.id) {
                inner.wake_deliverer.notify_one();
            }
            Ok(())
        }
        // The task has ended meanwhile.
        Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn subscription_of<'l>(listener: &'l Listener, event: &str) -> Option<&'l Subscription> {
    match &listener.event(event)?.receive {
        Receive::Subscription(subscription) => Some(subscription),
        _ => None,
    }
}

fn update(id: &str) -> ChannelUpdate {
    ChannelUpdate {
        id: id.to_owned(),
        held: None,
        from: Vec::new(),
        to: None,
        expires_at: None,
        renew_at: None,
        response: None,
        failures: None,
        last_error: None,
        release: true,
    }
}

fn pause(failures: i64) -> i64 {
    let doubled = u32::try_from(failures.clamp(0, 16)).unwrap_or(16);
    PAUSE_MS.saturating_mul(1 << doubled).min(MAX_PAUSE_MS)
}

/// What stands for a task that is not there any more.
fn nobody(channel: &Channel) -> Task {
    Task {
        id: channel.task.clone(),
        agent_namespace: channel.tool.namespace.clone(),
        agent_name: String::new(),
        model: None,
        user_id: String::new(),
        user_email: None,
        params: Value::Null,
        origin: Value::Null,
        state: TaskState::Ended,
        detail: None,
        next_seq: 0,
        created_at: 0,
        last_activity: 0,
    }
}
