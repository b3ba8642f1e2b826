//! Judges again what a guard recorded, with a policy: which calls would have passed, been asked about, or not passed.
//!
//! A call that is asked about goes on as if somebody had allowed it, as in the session that was recorded; one that does not pass
//! has no result, so the recorded one is left out. Pins are not compared, and values of other servers are not known.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use proofhouse_detect::{
    MessageSource as _, TraceItem, TraceMessage, TraceReadError, TraceReader, UNPARSED,
};
use proofhouse_oatf::{Direction, Protocol};
use proofhouse_protocol::mcp::{McpMethod, McpParty};
use proofhouse_protocol::rpc;
use proofhouse_source::printable_line;
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::{AskRoute, GuardAction, GuardSession, MessageFrom, Passage};
use crate::finding::GuardFinding;
use crate::open::{OpenedGuard, OpenedPolicy};
use crate::pins::LockFileError;
use crate::record::GuardRecorder;

/// How many requests may wait for a result.
const MAX_WAITING: usize = 10_000;

/// What became of the calls of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReplayedCalls {
    /// Those that pass, as they are or without a part of them.
    pub passed: u64,
    /// Those that somebody is asked about.
    pub asked: u64,
    /// Those that do not pass.
    pub blocked: u64,
}

impl ReplayedCalls {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.passed + self.asked + self.blocked
    }

    /// These together with those of another recording.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            asked: self.asked + other.asked,
            blocked: self.blocked + other.blocked,
        }
    }
}

impl fmt::Display for ReplayedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "calls: {}; passed {}, asked about {}, blocked {}",
            self.all(),
            self.passed,
            self.asked,
            self.blocked
        )
    }
}

/// What replaying traces came to.
#[derive(Debug, Default)]
pub struct ReplayedTraces {
    calls: ReplayedCalls,
    traces: Vec<ReplayedTrace>,
}

/// One trace that was judged again.
#[derive(Debug, Serialize)]
struct ReplayedTrace {
    trace: String,
    calls: ReplayedCalls,
    /// How many lines could not be used.
    skipped: u64,
    /// By the numbers of the messages.
    findings: Vec<GuardFinding>,
}

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", printable_line(trace))]
pub struct ReplayTraceError {
    /// The trace.
    pub trace: String,
    /// Why.
    pub problem: ReplayTraceProblem,
}

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum ReplayTraceProblem {
    /// It cannot be read to its end.
    #[error(transparent)]
    Read(#[from] TraceReadError),
    /// It is no trace of a guard.
    #[error("no guard recorded it; `proofhouse guard --record FILE` does")]
    NotOfGuard,
    /// No session can be begun.
    #[error(transparent)]
    Lock(#[from] LockFileError),
}

impl ReplayedTraces {
    /// Judges a trace that a guard recorded.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be read to its end, or no guard recorded it.
    pub fn read(
        &mut self,
        policy: &OpenedPolicy,
        name: &str,
        trace: impl Read,
    ) -> Result<(), ReplayTraceError> {
        let replayed = replayed(policy, name, trace).map_err(|problem| ReplayTraceError {
            trace: name.to_owned(),
            problem,
        })?;
        self.calls = self.calls.and(replayed.calls);
        self.traces.push(replayed);
        Ok(())
    }

    /// For people: a line for each finding, and one for all calls.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.traces {
            for finding in &one.findings {
                let number = finding.sequence.unwrap_or_default();
                let line = format!("{}: {number}: {}", one.trace, finding.line());
                text.push_str(&printable_line(&line));
                text.push('\n');
            }
        }
        text.push_str(&format!("{}\n", self.calls));
        text
    }

    /// For programs.
    #[must_use]
    pub fn value(&self) -> Value {
        json!({"version": 1, "calls": self.calls, "traces": self.traces})
    }

    /// Whether every call passes; nothing where there is none, or lines were skipped, and none was stopped.
    #[must_use]
    pub fn all_pass(&self) -> Option<bool> {
        let is_whole = self.traces.iter().all(|one| one.skipped == 0);
        match self.calls.asked + self.calls.blocked {
            0 if self.calls.passed == 0 || !is_whole => None,
            stopped => Some(stopped == 0),
        }
    }
}

fn replayed(
    policy: &OpenedPolicy,
    name: &str,
    trace: impl Read,
) -> Result<ReplayedTrace, ReplayTraceProblem> {
    let mut reader = TraceReader::new(trace);
    let mut begun: Option<PolicyReplay> = None;
    let mut findings = Vec::new();
    while let Some(item) = reader.next() {
        let TraceItem::Message { message, .. } = item? else {
            continue;
        };
        let replay = match &mut begun {
            Some(replay) => replay,
            None => {
                let server = reader.header().and_then(|header| header.get("server"));
                let server = server.and_then(Value::as_str);
                let server = server.ok_or(ReplayTraceProblem::NotOfGuard)?;
                begun.insert(PolicyReplay::new(policy, server)?)
            }
        };
        findings.extend(replay.feed(&message));
    }
    Ok(ReplayedTrace {
        trace: name.to_owned(),
        calls: begun.map(|replay| replay.calls()).unwrap_or_default(),
        skipped: reader.summary().skipped(),
        findings,
    })
}

/// A request whose result comes later.
#[derive(Debug)]
struct ReplayedRequest {
    operation: String,
    item: Option<Value>,
    /// Nothing where it did not pass.
    id: Option<u64>,
}

/// A recording that is judged with a policy, message by message.
pub struct PolicyReplay {
    session: GuardSession,
    found: Arc<Mutex<Vec<GuardFinding>>>,
    waiting: VecDeque<ReplayedRequest>,
    next: u64,
    calls: ReplayedCalls,
}

impl PolicyReplay {
    /// Nothing was judged yet. `server` is the name that the policy knows the server by.
    ///
    /// ```
    /// use proofhouse_detect::TraceMessage;
    /// use proofhouse_guard::OpenedPolicy;
    /// use proofhouse_guard::replay::PolicyReplay;
    /// use proofhouse_oatf::Direction;
    /// use serde_json::json;
    ///
    /// let mut replay = PolicyReplay::new(&OpenedPolicy::open(None)?, "notes")?;
    /// let mut call = TraceMessage::new("mcp", "tools/call", json!({"name": "save", "arguments": {"text": "key AKIAIOSFODNN7EXAMPLE"}}));
    /// call.direction = Some(Direction::Request);
    /// let found = replay.feed(&call);
    /// assert!(found.iter().any(|finding| finding.rule.as_deref() == Some("credential-in-call")));
    /// assert_eq!(replay.calls().blocked, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error when no session can be begun.
    pub fn new(policy: &OpenedPolicy, server: &str) -> Result<Self, LockFileError> {
        let found = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&found);
        let recorder = GuardRecorder::default().with_listener(Box::new(move |finding| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(finding.clone());
        }));
        let (name, origin) = (server.to_owned(), String::new());
        let opened = OpenedGuard::new(policy.clone(), name, origin, None, recorder.shared());
        Ok(Self {
            session: opened.session(AskRoute::Person)?,
            found,
            waiting: VecDeque::new(),
            next: 1,
            calls: ReplayedCalls::default(),
        })
    }

    /// Judges the next message. Returns what is found about it, with its number in the recording.
    pub fn feed(&mut self, message: &TraceMessage) -> Vec<GuardFinding> {
        let is_mcp = message.protocol == Protocol::Mcp;
        match message.direction {
            _ if !is_mcp || message.operation == UNPARSED => {}
            Some(Direction::Request) => self.request(&message.operation, &message.content),
            Some(Direction::Response) => self.response(&message.operation, &message.content),
            None => {}
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = std::mem::take(&mut *found);
        for finding in &mut found {
            finding.sequence = Some(message.sequence);
        }
        found
    }

    /// What became of the calls so far.
    #[must_use]
    pub const fn calls(&self) -> ReplayedCalls {
        self.calls
    }

    fn judge(&mut self, from: MessageFrom, message: &Value) -> Passage {
        self.session.judge(from, rpc::to_text(message).as_bytes())
    }

    fn request(&mut self, operation: &str, params: &Value) {
        let method = McpMethod::parse(operation);
        let id = self.next;
        self.next += 1;
        if method.map(McpMethod::sender) == Some(McpParty::Server) {
            // Its answer says nothing that is judged.
            let id = json!(format!("server-{id}"));
            let request = rpc::request(&id, operation, Some(params));
            self.judge(MessageFrom::Server, &request);
            return;
        }
        if method.is_none() && operation.starts_with("notifications/") {
            let notification = rpc::notification(operation, Some(params));
            // Nobody knows who sent it: what a server says is followed, and what a client says changes nothing.
            self.judge(MessageFrom::Server, &notification);
            return;
        }
        let request = rpc::request(&json!(id), operation, Some(params));
        let (mut passes, mut is_asked) = (true, false);
        if let Passage::Instead(mut actions) = self.judge(MessageFrom::Client, &request) {
            let question = actions.iter().find_map(|action| match action {
                GuardAction::Question { number, .. } => Some(*number),
                _ => None,
            });
            if let Some(number) = question {
                is_asked = true;
                actions = self.session.answer(number, true);
            }
            let is_sent = |action: &GuardAction| matches!(action, GuardAction::ToServer(_));
            passes = actions.iter().any(is_sent);
        }
        if method == Some(McpMethod::ToolsCall) {
            let counter = match (is_asked, passes) {
                (true, _) => &mut self.calls.asked,
                (false, true) => &mut self.calls.passed,
                (false, false) => &mut self.calls.blocked,
            };
            *counter += 1;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(ReplayedRequest {
            operation: operation.to_owned(),
            item: item_of(method, params),
            id: passes.then_some(id),
        });
    }

    fn response(&mut self, operation: &str, content: &Value) {
        let item = item_of(McpMethod::parse(operation), content);
        let fits = |waiting: &ReplayedRequest| {
            waiting.operation == operation && (item.is_none() || waiting.item == item)
        };
        let at = self.waiting.iter().position(fits);
        let waiting = at.and_then(|at| self.waiting.remove(at));
        let Some(id) = waiting.and_then(|waiting| waiting.id) else {
            return;
        };
        let error = content.get("code").and_then(Value::as_i64);
        let error = error.zip(content.get("message").and_then(Value::as_str));
        let answer = match error {
            Some((code, message)) => {
                rpc::error(&json!(id), code, message, content.get("data").cloned())
            }
            None => rpc::response(&json!(id), content.clone()),
        };
        self.judge(MessageFrom::Server, &answer);
    }
}

/// What a request uses; results of calls and prompts are recorded with it.
fn item_of(method: Option<McpMethod>, content: &Value) -> Option<Value> {
    let method = method.filter(|method| method.result_needs_call())?;
    content.get(method.item_param()?).cloned()
}
