//! Polls: asking an endpoint once, and what is new in its answer.
//!
//! A step gets the state and returns the next one with the items that fire. The caller commits both
//! together: then no item is lost and none fires twice, wherever the process ends. Each item that `detect` gives fires.
//! With a `key`, one whose key was seen does not, and what exceeds the cap of one step is not remembered as seen, and the
//! time and the tags of the endpoint stay as they were, so the next step finds it again.

mod detect;
mod state;

use std::time::Duration;

use jiff::Timestamp;
use proofhouse_wire::retry::{Jitter, RetryAfter, RetryPolicy};
use proofhouse_wire::{HeaderName, Method};
use serde_json::Value;

pub use detect::MAX_DETECTED;
pub use state::{MAX_SEEN, PollState};

use super::EventListener;
use crate::http::HttpClient;
use crate::runtime::ActionError;
use detect::detect;
use proofhouse_manifest::interpolate::{HeaderTemplate, Template, TemplatePiece};
use proofhouse_manifest::{HttpCall, Poll};

/// How many items of a poll with a `key` fire in one step; the rest fire in the next ones.
pub const MAX_ITEMS: usize = 1_000;
/// The time between steps while there is a rest.
const BACKLOG_PAUSE: Duration = Duration::from_secs(1);
/// The shortest time between two steps.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The longest wait after failures.
const MAX_BACK_OFF: Duration = Duration::from_secs(3600);
/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How the steps of many polls are spread.
const JITTER: Jitter = Jitter::Tenth;
/// The longest tag of an endpoint that is sent back.
const MAX_TAG_BYTES: usize = 1_024;

/// An item that fires.
#[derive(Debug, Clone, PartialEq)]
pub struct PollItem {
    /// What it is told from others by, also after a restart, if the poll has a `key`.
    pub id: Option<String>,
    /// The item: `item` in aliases, `event.payload` in the message and the filter.
    pub item: Value,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct PollStep {
    /// The state to store, together with what becomes of the items.
    pub state: PollState,
    /// The items that fire, in the order of the answer.
    pub items: Vec<PollItem>,
    /// How long to wait until the next step.
    pub wait: Duration,
    /// Whether items were left for the next step.
    pub more: bool,
    /// What went wrong, if something did. The state then only counts it.
    pub problem: Option<PollProblem>,
}

/// What can go wrong in a step.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PollProblem {
    /// The request could not be made, or the answer was an error.
    #[error("{0}")]
    Request(ActionError),
    /// `detect` failed.
    #[error("`detect` failed: {0}")]
    Detect(String),
    /// `key` failed.
    #[error("`key` failed: {0}")]
    Key(String),
    /// `detect` gave something else than a list.
    #[error("`detect` must give a list, and gave {0}")]
    NotAList(&'static str),
    /// `detect` gave more items than can be told from those that were seen.
    #[error(
        "`detect` gave {0} items; {MAX_DETECTED} can be kept apart, so narrow it down, for example by \
         `poll.last_fetched_at`"
    )]
    TooMany(usize),
}

/// Asks an endpoint once. `chance`, between 0 and 1, spreads the steps of many polls.
pub async fn step(
    client: &HttpClient,
    poll: &Poll,
    listener: &EventListener,
    state: &PollState,
    now: Timestamp,
    chance: f64,
) -> PollStep {
    let call = conditional(&poll.call, state);
    let sent = listener.send(client, &call, &listener.environment).await;
    let exchanged = match sent {
        Ok(exchanged) => exchanged,
        Err(error) => return failed(poll, state, PollProblem::Request(error), None, chance),
    };
    let answer = &exchanged.answer;
    if answer.status.as_u16() == 304 && state.has_baseline() {
        let mut state = state.clone();
        state.unchanged(now);
        return PollStep {
            state,
            items: Vec::new(),
            wait: jittered(poll.interval, chance),
            more: false,
            problem: None,
        };
    }
    let response = match exchanged.result(&call) {
        Ok(response) => response,
        Err(error) => {
            let waits = answer.retry_cause().asks_to_wait();
            let asked = RetryAfter::of(&answer.headers).filter(|_| waits);
            let asked = asked.map(|asked| asked.wait(now));
            return failed(poll, state, PollProblem::Request(error), asked, chance);
        }
    };
    let detected = match detect(poll, &response, &listener.parameters, state, now) {
        Ok(detected) => detected,
        Err(problem) => return failed(poll, state, problem, None, chance),
    };
    let mut next = state.clone();
    let (items, more) = next.take(detected, MAX_ITEMS);
    if more {
        // Neither the tags nor the time move on: the rest has to be found again.
        next.failures = 0;
    } else {
        let tag = |name: &str| {
            let tag = answer.header(name)?;
            (tag.len() <= MAX_TAG_BYTES).then(|| tag.to_owned())
        };
        next.fetched(now, tag("etag"), tag("last-modified"));
    }
    PollStep {
        state: next,
        items,
        wait: if more {
            BACKLOG_PAUSE
        } else {
            jittered(poll.interval, chance)
        },
        more,
        problem: None,
    }
}

/// The call with the conditions that let a server answer that nothing changed.
fn conditional(call: &HttpCall, state: &PollState) -> HttpCall {
    let mut call = call.clone();
    let is_get = call.method.as_ref().map(Template::source) == Some(Method::GET.as_str());
    let conditions = [
        ("if-none-match", &state.etag),
        ("if-modified-since", &state.last_modified),
    ];
    for (name, tag) in conditions {
        let name = HeaderName::from_static(name);
        let Some(tag) = tag.as_ref().filter(|_| is_get) else {
            continue;
        };
        let value = Template::parse(tag);
        // A tag of the server's making is sent as it is; one that would be read as a reference is not.
        let is_plain = matches!(value.parts(), [TemplatePiece::Text(text)] if text == tag);
        if is_plain && !call.headers.iter().any(|header| header.name == name) {
            call.headers.push(HeaderTemplate { name, value });
        }
    }
    call
}

fn failed(
    poll: &Poll,
    state: &PollState,
    problem: PollProblem,
    asked: Option<Duration>,
    chance: f64,
) -> PollStep {
    let mut state = state.clone();
    state.failures = state.failures.saturating_add(1);
    let policy = policy(poll);
    // The first step of a poll that works is its first attempt, so one failure already doubles the wait.
    let attempt = state.failures.saturating_add(1);
    let wait = policy.back_off(attempt, chance).max(MIN_INTERVAL);
    let asked = asked.unwrap_or_default().min(policy.max_retry_after);
    PollStep {
        state,
        items: Vec::new(),
        wait: asked.max(wait),
        more: false,
        problem: Some(problem),
    }
}

/// How long a poll that failed waits. It is never given up: whoever declared it ends it.
fn policy(poll: &Poll) -> RetryPolicy {
    RetryPolicy {
        attempts: u32::MAX,
        base: poll.interval,
        cap: MAX_BACK_OFF.max(poll.interval),
        max_retry_after: MAX_RETRY_AFTER,
        jitter: JITTER,
    }
}

/// The interval, a tenth more or less.
fn jittered(interval: Duration, chance: f64) -> Duration {
    JITTER.spread(interval, chance).max(MIN_INTERVAL)
}
