//! The engine: judges the messages of one session between a client and a server, without knowing how they travel.
//!
//! It is a machine without input and output of its own: a message goes in, and out comes whether it passes or what is
//! to be sent instead. Pins and what was seen are written to files; everything else stays in memory, within bounds.

mod agents;
mod answers;
mod asks;
mod calls;
mod footprint;
mod history;
mod id_finder;
mod json;
mod listings;
mod mentions;
mod open_calls;
mod pin_asks;
mod results;
mod shared;
mod tasks;
mod used_values;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proofhouse_detect::{ScanSession, TraceMessage, UNPARSED};
use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{
    McpEra, McpMethod, McpNotification, answer_with_call, content_of_params, era_of,
};
use proofhouse_protocol::rpc::{self, RpcMessage};
use proofhouse_source::printable_line;
use proofhouse_wire::trace::Span;
use serde_json::Value;

pub use answers::BLOCKED;
pub use footprint::SessionFootprint;
pub(crate) use id_finder::IdFinder;
pub use results::TextPassage;
pub(crate) use results::structured;
pub use watch::{WatchError, Watcher};

use crate::finding::{FindingCode, GuardDecision, GuardFinding};
use crate::pins::{CardKind, LockFile, LockFileError, PinKind, ServerPins};
use crate::policy::{ALLOW_LIST, Policy};
use crate::record::{GuardMetrics, GuardRecorder, SharedRecorder, spans};
use crate::share::SharedFact;
use crate::taint::TaintTracker;
use asks::HeldAsk;
use history::GuardHistory;
use listings::ExpectedPages;
use mentions::ToolMentions;
use open_calls::{OpenCalls, PendingCall};
use pin_asks::PinAnswers;
use tasks::TaskOrigins;
use used_values::UsedValues;

/// What a session is about.
#[derive(Debug)]
pub struct GuardSetup {
    /// The name of the server, as the client's configuration has it.
    pub server: String,
    /// How it is started or reached, for those who review the lock.
    pub origin: Option<String>,
    /// What is allowed.
    pub policy: Arc<Policy>,
    /// Where pins are kept; without it, there are none.
    pub lock: Option<LockFile>,
    /// Indicators that watch.
    pub watcher: Option<Arc<Watcher>>,
    /// Who is asked.
    pub asks: AskRoute,
}

/// Who is asked about a call that a rule does not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskRoute {
    /// The user of the client, through the elicitation of MCP.
    Client,
    /// A person whom the proxy reaches; it gets [`GuardAction::Question`].
    Person,
    /// Nobody: every ask is a denial.
    Nobody,
}

/// What a client and its server speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GuardProtocol {
    /// The Model Context Protocol.
    #[default]
    Mcp,
    /// The Agent2Agent protocol, in both generations.
    A2a,
}

impl GuardProtocol {
    /// Its word in traces and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::A2a => "a2a",
        }
    }
}

/// A word that names no protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write mcp or a2a")]
pub struct UnknownProtocol;

impl std::str::FromStr for GuardProtocol {
    type Err = UnknownProtocol;

    fn from_str(word: &str) -> Result<Self, UnknownProtocol> {
        match word {
            "mcp" => Ok(Self::Mcp),
            "a2a" => Ok(Self::A2a),
            _ => Err(UnknownProtocol),
        }
    }
}

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFrom {
    /// The client: the agent that is guarded.
    Client,
    /// Its server.
    Server,
}

impl MessageFrom {
    /// Its word in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// It passes as it is.
    Pass,
    /// It does not; this is done instead.
    Instead(Vec<GuardAction>),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardAction {
    /// Send a message to the server.
    ToServer(String),
    /// Send a message to the client.
    ToClient(String),
    /// Ask a person, and call [`GuardSession::answer`].
    Question {
        /// The ask.
        number: u64,
        /// What to ask.
        text: String,
    },
    /// Wait for the answer to this ask, and call [`GuardSession::expire`] when the policy's time is over.
    Await(u64),
}

/// What becomes of one message of a line.
enum OneMessage {
    Pass,
    /// It goes nowhere.
    Drop,
    /// Another one goes in its place.
    Replace(Value),
    /// It does not pass, and its sender's client gets this.
    Answer(Value),
    /// It is held until somebody answers.
    Hold(Box<HeldAsk>),
    /// It goes nowhere, and these follow from it.
    Actions(Vec<GuardAction>),
}

/// Why a card cannot be written for clients of the guard.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CardRewriteError(pub(crate) String);

/// Writes a card for clients of the guard.
pub(crate) type CardRewriter = dyn Fn(Value) -> Result<Value, CardRewriteError> + Send;

/// One session.
pub struct GuardSession {
    setup: GuardSetup,
    protocol: GuardProtocol,
    /// The cards of the agent that are not approved, as they were seen last.
    withheld_cards: BTreeSet<CardKind>,
    card_rewriter: Option<Box<CardRewriter>>,
    /// Whether the card that everybody gets was compared, or looked for in vain.
    has_card: bool,
    recorder: SharedRecorder,
    scan: Option<ScanSession<'static>>,
    taint: TaintTracker,
    history: GuardHistory,
    /// What arguments had in calls that passed; nothing where no rule looks at it.
    used_values: Option<UsedValues>,
    open: OpenCalls,
    /// The methods of requests of the server, by id.
    asked_by_server: HashMap<String, String>,
    listings: ExpectedPages,
    /// Lists of which it was told that they did not end.
    unfinished: BTreeSet<PinKind>,
    withheld: BTreeMap<PinKind, BTreeSet<String>>,
    /// The tools that the lock has for this server, if it has any list of them.
    pinned_tools: Option<BTreeSet<String>>,
    /// What the lock had when the session began: somebody approved it, or an earlier session recorded it.
    approved: Option<ServerPins>,
    /// What the server says besides its tools and nobody approved, by its origin: it may name tools that are listed later.
    unapproved_texts: BTreeMap<String, Value>,
    /// Tools whose definitions were compared with the lock, as they were listed last in this session.
    compared: BTreeSet<String>,
    /// Tools of the lock that were called before that.
    called_early: BTreeSet<String>,
    /// Why the lock could not be used, until it can be used again.
    lock_failure: Option<String>,
    /// What people said about definitions that are not approved.
    pin_answers: PinAnswers,
    /// Tools whose definitions are followed.
    described: BTreeSet<String>,
    /// What tools say of themselves, for rules.
    annotations: HashMap<String, Value>,
    /// What tasks were begun with, by their ids.
    tasks: TaskOrigins,
    /// Tools that results and definitions name.
    mentions: ToolMentions,
    /// What partners are to be told; nothing where the session is not shared.
    facts: Option<Vec<SharedFact>>,
    asks: BTreeMap<u64, HeldAsk>,
    next_ask: u64,
    can_ask: bool,
    sequence: u64,
    /// That of the request that is judged.
    span: Span,
    metrics: Option<Arc<GuardMetrics>>,
    /// The exchange of the message that is judged.
    exchange: u64,
}

/// How many requests of a server may be open.
const MAX_ASKED_BY_SERVER: usize = 1000;

impl GuardSession {
    /// A session that has seen nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when the lock is there and cannot be used: the guard then guards nothing, and must not look as
    /// if it did.
    pub fn new(setup: GuardSetup, recorder: SharedRecorder) -> Result<Self, LockFileError> {
        let session = Self::uncounted(setup, recorder)?;
        if let Some(metrics) = &session.metrics {
            metrics.session();
        }
        Ok(session)
    }

    /// One that no client has.
    pub(crate) fn uncounted(
        setup: GuardSetup,
        recorder: SharedRecorder,
    ) -> Result<Self, LockFileError> {
        let approved = match &setup.lock {
            Some(file) => file.read()?.servers.remove(&setup.server),
            None => None,
        };
        let pinned_tools = approved.as_ref().and_then(listings::tools_of_pins);
        let metrics = recorder.with(|recorder| recorder.metrics());
        let used_values = setup.policy.sees(ALLOW_LIST).then(UsedValues::default);
        let scan = setup.watcher.as_ref().map(|watcher| watcher.session());
        Ok(Self {
            taint: TaintTracker::new(setup.policy.taint),
            setup,
            protocol: GuardProtocol::default(),
            withheld_cards: BTreeSet::new(),
            card_rewriter: None,
            has_card: false,
            recorder,
            scan,
            history: GuardHistory::default(),
            used_values,
            open: OpenCalls::default(),
            asked_by_server: HashMap::new(),
            listings: ExpectedPages::default(),
            unfinished: BTreeSet::new(),
            withheld: BTreeMap::new(),
            approved,
            unapproved_texts: BTreeMap::new(),
            described: BTreeSet::new(),
            pinned_tools,
            compared: BTreeSet::new(),
            called_early: BTreeSet::new(),
            lock_failure: None,
            pin_answers: PinAnswers::default(),
            annotations: HashMap::new(),
            tasks: TaskOrigins::default(),
            mentions: ToolMentions::default(),
            facts: None,
            asks: BTreeMap::new(),
            next_ask: 1,
            can_ask: false,
            sequence: 0,
            span: Span::none(),
            metrics,
            exchange: 0,
        })
    }

    /// The same for another protocol than MCP.
    #[must_use]
    pub fn of_protocol(mut self, protocol: GuardProtocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// The same with who puts the guard's addresses into a card that is in an answer.
    #[must_use]
    pub(crate) fn with_card_rewriter(mut self, rewriter: Box<CardRewriter>) -> Self {
        self.card_rewriter = Some(rewriter);
        self
    }

    /// What the client and its server speak.
    #[must_use]
    pub fn protocol(&self) -> GuardProtocol {
        self.protocol
    }

    /// The name of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.setup.server
    }

    /// How long an answer is waited for.
    #[must_use]
    pub fn ask_timeout(&self) -> std::time::Duration {
        self.setup.policy.ask_timeout
    }

    /// Judges one message of an exchange: over HTTP, ids of requests are unique in one exchange only.
    pub fn judge_in(&mut self, exchange: u64, from: MessageFrom, line: &[u8]) -> Passage {
        self.exchange = exchange;
        let passage = self.judge(from, line);
        self.exchange = 0;
        passage
    }

    /// An exchange ended. Answers that are due may come in another one.
    pub fn exchange_ended(&mut self, exchange: u64) {
        self.open.detach(exchange);
    }

    /// Whether a request of an exchange waits for its answer.
    pub fn waits_in(&self, exchange: u64) -> bool {
        self.open.has_exchange(exchange)
    }

    /// Whether a stream that ended in good order left a request of an exchange without its answer.
    pub fn lacks_answer_in(&self, exchange: u64) -> bool {
        // Streams of agents have no last answer, and one of notifications goes on until it ends.
        let has_answer = |call: &PendingCall| {
            self.protocol == GuardProtocol::Mcp
                && call.method != McpMethod::SubscriptionsListen.as_str()
        };
        self.open.of_exchange(exchange).iter().any(has_answer)
    }

    /// An exchange cannot be judged any more: every request of it gets an error.
    pub fn exchange_failed(&mut self, exchange: u64, why: &str) -> Vec<GuardAction> {
        let waiting = self.open.take_exchange(exchange);
        let message = format!("{why}; {} waited for an answer", waiting.len());
        self.tell(self.finding(FindingCode::ServerEnded, GuardDecision::Log, message));
        ended(&waiting, why)
    }

    /// The server redirects to where no guard is.
    pub fn redirected(&mut self, message: &str) {
        self.tell(self.finding(FindingCode::Redirected, GuardDecision::Block, message));
    }

    /// Something that is no message of the protocol does not pass.
    pub fn refused(&mut self, message: &str) {
        self.tell(self.finding(FindingCode::Malformed, GuardDecision::Block, message));
    }

    /// Judges one line: a message, or a batch of them.
    pub fn judge(&mut self, from: MessageFrom, line: &[u8]) -> Passage {
        let begun = std::time::Instant::now();
        let passage = self.judge_line(from, line);
        self.span = Span::none();
        if let Some(metrics) = &self.metrics {
            metrics.judged(from.as_str(), passage == Passage::Pass, begun.elapsed());
        }
        passage
    }

    fn judge_line(&mut self, from: MessageFrom, line: &[u8]) -> Passage {
        let value = match json::read(line) {
            Ok(value) => value,
            Err(error) => match json::with_whole_characters(line) {
                // Half a character is no reason to lose the message: a copy is judged, and the message passes as it is.
                Some(copy) => return self.judge_line(from, &copy),
                None => return self.malformed(from, line, &error.to_string()),
            },
        };
        if let Value::Array(items) = value {
            return self.batch(from, items, line);
        }
        if let Some(reason) = self.ambiguity(&value) {
            return self.malformed(from, line, &reason);
        }
        let copy = value.clone();
        match rpc::of_text(value, line) {
            Ok(message) => {
                let one = self.one(from, message, &copy);
                self.carry_out(from, one, line)
            }
            Err(error) => self.malformed(from, line, &error.to_string()),
        }
    }

    /// Why a message could be read in another way, if so.
    fn ambiguity(&self, message: &Value) -> Option<String> {
        let has = |key| message.get(key).is_some();
        // Some readers look for an answer first.
        if has("method") && (has("result") || has("error")) {
            return Some("it is a request and an answer at once".to_owned());
        }
        let twin = json::twin_of_rpc(message).or_else(|| match self.protocol {
            GuardProtocol::Mcp => json::twin_of_mcp(message),
            GuardProtocol::A2a => json::twin_of_a2a(message),
        });
        twin.map(|key| {
            let key = printable_line(key);
            format!("`{key}` is a member of the protocol in other letters")
        })
    }

    /// What becomes of a line that another reader could take for several.
    pub fn not_one_line(&mut self, from: MessageFrom, line: &[u8]) -> Vec<GuardAction> {
        let reason = "it has a carriage return that does not end it";
        self.unreadable(from, line, &[IdFinder::in_text(line)], reason)
    }

    /// What becomes of a line that is longer than what is judged; `id` is the one it carries, where that could be told.
    pub fn too_long(
        &mut self,
        from: MessageFrom,
        bytes: u64,
        id: Option<&Value>,
    ) -> Vec<GuardAction> {
        let message =
            format!("a message of {bytes} bytes is longer than what is judged, so it did not pass");
        self.tell(GuardFinding::new(
            FindingCode::TooLong,
            GuardDecision::Block,
            &self.setup.server.clone(),
            message.clone(),
        ));
        match (from, id) {
            (MessageFrom::Client, id) => {
                let id = id.cloned().unwrap_or_default();
                let answer = rpc::error(&id, rpc::INVALID_REQUEST, &message, None);
                vec![GuardAction::ToClient(rpc::to_text(&answer))]
            }
            (MessageFrom::Server, Some(id)) => match self.open.take(self.exchange, id) {
                Some(call) => {
                    let answer = answers::refusal(&call, &message);
                    vec![GuardAction::ToClient(rpc::to_text(&answer))]
                }
                None => Vec::new(),
            },
            (MessageFrom::Server, None) => Vec::new(),
        }
    }

    /// The server is gone: every request that waits for it gets an error.
    pub fn server_ended(&mut self, why: &str) -> Vec<GuardAction> {
        let open = self.open.take_all();
        let held = std::mem::take(&mut self.asks).into_values();
        let held = held.filter_map(HeldAsk::into_waiting);
        let waiting: Vec<PendingCall> = open.into_iter().chain(held).collect();
        if !waiting.is_empty() {
            let message = format!("{why}; {} waited for an answer", waiting.len());
            self.tell(self.finding(FindingCode::ServerEnded, GuardDecision::Log, message));
        }
        self.flush();
        ended(&waiting, why)
    }

    /// Writes out what was recorded.
    pub fn flush(&mut self) {
        self.recorder.with(GuardRecorder::flush);
    }

    fn batch(&mut self, from: MessageFrom, items: Vec<Value>, line: &[u8]) -> Passage {
        if items.is_empty() || items.len() > answers::MAX_BATCH {
            let ids: Vec<Option<Value>> =
                items.iter().map(|item| item.get("id").cloned()).collect();
            let reason = "a batch is empty or too large";
            return Passage::Instead(self.unreadable(from, line, &ids, reason));
        }
        let (mut passing, mut answers, mut is_same) = (Vec::new(), Vec::new(), true);
        for item in items {
            let read = match self.ambiguity(&item) {
                Some(reason) => Err(reason),
                None => rpc::from_value(item.clone()).map_err(|error| error.to_string()),
            };
            let one = match read {
                Ok(message) => self.one(from, message, &item),
                Err(reason) => {
                    let text = item.to_string();
                    let id = item.get("id").cloned();
                    OneMessage::Actions(self.unreadable(from, text.as_bytes(), &[id], &reason))
                }
            };
            match one {
                OneMessage::Pass => {
                    passing.push(item);
                    continue;
                }
                OneMessage::Replace(value) => passing.push(value),
                OneMessage::Answer(value) => {
                    answers.push(GuardAction::ToClient(rpc::to_text(&value)));
                }
                OneMessage::Hold(ask) => {
                    // A batch is answered as one, so none of it can wait for a person.
                    answers.extend(self.deny(*ask, "what is in a batch cannot be asked about"));
                }
                OneMessage::Actions(actions) => answers.extend(actions),
                OneMessage::Drop => {}
            }
            is_same = false;
        }
        if is_same {
            return Passage::Pass;
        }
        let passing: Vec<String> = passing.iter().map(rpc::to_text).collect();
        let (mut to_client, mut actions) = (Vec::new(), Vec::new());
        match from {
            MessageFrom::Client if passing.is_empty() => {}
            MessageFrom::Client => actions.push(GuardAction::ToServer(batch_of(&passing))),
            MessageFrom::Server => to_client = passing,
        }
        for answer in answers {
            match answer {
                GuardAction::ToClient(text) => to_client.push(text),
                other => actions.push(other),
            }
        }
        // A batch is answered with a batch.
        if !to_client.is_empty() {
            actions.push(GuardAction::ToClient(batch_of(&to_client)));
        }
        Passage::Instead(actions)
    }

    fn carry_out(&mut self, from: MessageFrom, one: OneMessage, line: &[u8]) -> Passage {
        Passage::Instead(match one {
            OneMessage::Pass => return Passage::Pass,
            OneMessage::Drop => Vec::new(),
            OneMessage::Replace(value) => {
                let text = rpc::to_text(&value);
                vec![match from {
                    MessageFrom::Client => GuardAction::ToServer(text),
                    MessageFrom::Server => GuardAction::ToClient(text),
                }]
            }
            OneMessage::Answer(value) => vec![GuardAction::ToClient(rpc::to_text(&value))],
            OneMessage::Hold(ask) => self.hold(*ask, line),
            OneMessage::Actions(actions) => actions,
        })
    }

    fn one(&mut self, from: MessageFrom, message: RpcMessage, value: &Value) -> OneMessage {
        // Only what is written into the trace has a number, so that it has no gaps.
        self.sequence = 0;
        self.span = Span::none();
        if self.protocol == GuardProtocol::A2a {
            return self.one_of_agents(from, message, value);
        }
        match (from, message) {
            (MessageFrom::Client, RpcMessage::Request { id, method, params }) => {
                self.client_request(id, method, params, value)
            }
            (MessageFrom::Client, RpcMessage::Response { id, outcome }) => {
                self.client_response(&id, outcome)
            }
            // Some servers do what it says all the same, and no rule was tried.
            (_, RpcMessage::Notification { method, .. }) if McpMethod::parse(&method).is_some() => {
                let message = "a request has no id, so nobody waits for its answer";
                let finding = self.finding(FindingCode::Malformed, GuardDecision::Block, message);
                self.tell(finding.about(method));
                OneMessage::Drop
            }
            (MessageFrom::Client, RpcMessage::Notification { method, params }) => {
                if method == McpNotification::Cancelled.as_str() {
                    self.cancelled(params.get("requestId").unwrap_or(&Value::Null));
                }
                let content = content_of_params(Some(&params));
                match self.saw_of_client(&method, Direction::Request, content) {
                    // Nobody waits for an answer.
                    Some(_) => OneMessage::Drop,
                    None => OneMessage::Pass,
                }
            }
            (MessageFrom::Server, RpcMessage::Response { id, outcome }) => {
                self.server_response(&id, outcome, value)
            }
            (MessageFrom::Server, RpcMessage::Request { id, method, params }) => {
                self.server_request(&id, &method, &params)
            }
            (MessageFrom::Server, RpcMessage::Notification { method, params }) => {
                self.saw(
                    &method,
                    Some(Direction::Request),
                    content_of_params(Some(&params)),
                );
                let said = said_by(&method, &params);
                self.follow(&method, &method, &said);
                OneMessage::Pass
            }
        }
    }

    /// A message of A2A, where clients ask and agents answer.
    fn one_of_agents(
        &mut self,
        from: MessageFrom,
        message: RpcMessage,
        value: &Value,
    ) -> OneMessage {
        match (from, message) {
            (MessageFrom::Client, RpcMessage::Request { id, method, params }) => {
                self.agent_request(id, &method, params, value)
            }
            (MessageFrom::Server, RpcMessage::Response { id, outcome }) => {
                self.agent_response(&id, outcome, value)
            }
            (from, _) => {
                let message = match from {
                    MessageFrom::Client => "the client sent what A2A does not have",
                    MessageFrom::Server => "the agent sent what A2A does not have",
                };
                self.tell(self.finding(FindingCode::Unasked, GuardDecision::Block, message));
                OneMessage::Drop
            }
        }
    }

    /// The client waits no longer for an answer.
    fn cancelled(&mut self, id: &Value) {
        self.open.detach_one(self.exchange, id);
        let key = open_calls::key(id);
        let is_waited_for = |call: &PendingCall| open_calls::key(&call.id) == key;
        self.asks
            .retain(|_, ask| !ask.waiting().is_some_and(is_waited_for));
    }

    fn client_request(
        &mut self,
        id: Value,
        method: String,
        params: Value,
        value: &Value,
    ) -> OneMessage {
        self.span = spans::of_request(&self.setup.server, &method, &params);
        let content = content_of_params(Some(&params));
        let enforced = self.saw_of_client(&method, Direction::Request, content);
        let is_modern = era_of(&method, &params, None) == McpEra::Modern;
        if method == McpMethod::Initialize.as_str() {
            self.can_ask = asks::can_ask(params.get("capabilities"));
        }
        let arguments = params.get("arguments").cloned().unwrap_or_default();
        let call = PendingCall {
            exchange: self.exchange,
            id,
            method,
            params,
            arguments,
            tail: String::new(),
            is_modern,
            span: self.span.clone(),
        };
        if let Err(reason) = self.open.check(self.exchange, &call.id) {
            let finding = self.finding(FindingCode::Malformed, GuardDecision::Block, reason);
            self.tell(finding);
            return OneMessage::Answer(rpc::error(&call.id, rpc::INVALID_REQUEST, reason, None));
        }
        if let Some(indicator) = enforced {
            let message = format!("the indicator {indicator} matches this message");
            return OneMessage::Answer(answers::refusal(&call, &message));
        }
        if let Some(number) = asks::number_of_round(&call.params) {
            return self.came_again(number, call, value);
        }
        let one = if call.method == McpMethod::ToolsCall.as_str() {
            self.judge_call(call, value)
        } else {
            Ok((OneMessage::Pass, call))
        };
        match one {
            Ok((one, call)) => {
                self.open.add(call);
                one
            }
            Err(one) => one,
        }
    }

    fn client_response(&mut self, id: &Value, outcome: Result<Value, Value>) -> OneMessage {
        if let Some(ask) = asks::number_of(id) {
            return self.answered(ask, &outcome);
        }
        let method = self.asked_by_server.remove(&open_calls::key(id));
        let content = outcome.unwrap_or_else(|error| error);
        let method = method.as_deref().unwrap_or(UNPARSED);
        match self.saw_of_client(method, Direction::Response, content) {
            Some(indicator) => {
                let message = format!("the indicator {indicator} matches this answer");
                OneMessage::Replace(rpc::error(id, answers::BLOCKED, &message, None))
            }
            None => OneMessage::Pass,
        }
    }

    fn server_request(&mut self, id: &Value, method: &str, params: &Value) -> OneMessage {
        if asks::number_of(id).is_some() {
            // Its answer would count as a person's answer to us.
            let message = "the server used an id of the guard's own";
            self.tell(
                self.finding(FindingCode::Unasked, GuardDecision::Block, message)
                    .about(method),
            );
            return OneMessage::Drop;
        }
        if self.asked_by_server.len() < MAX_ASKED_BY_SERVER {
            let method = method.to_owned();
            self.asked_by_server.insert(open_calls::key(id), method);
        }
        self.saw(
            method,
            Some(Direction::Request),
            content_of_params(Some(params)),
        );
        self.follow(method, method, params);
        OneMessage::Pass
    }

    fn server_response(
        &mut self,
        id: &Value,
        outcome: Result<Value, Value>,
        value: &Value,
    ) -> OneMessage {
        let Some(call) = self.open.take(self.exchange, id) else {
            return self.unasked_response(id, outcome, value);
        };
        self.span = call.span.clone();
        let content = match &outcome {
            Ok(result) => answer_with_call(&call.method, Some(&call.params), result.clone()),
            Err(error) => error.clone(),
        };
        self.saw(&call.method, Some(Direction::Response), content);
        match outcome {
            Ok(result) if asks::is_forged(&result) => {
                // What the person says to it would count as said to us.
                let message = "the server used a name of the guard's own";
                let finding = self.finding(FindingCode::Unasked, GuardDecision::Block, message);
                self.tell(finding.about(call.item()));
                OneMessage::Answer(answers::refusal(&call, message))
            }
            Ok(result) => self.judge_result(&call, result, value),
            Err(error) => self.judge_error(&call, error, value),
        }
    }

    /// A line that is no message. It is not passed on: what we cannot read, we cannot judge.
    fn malformed(&mut self, from: MessageFrom, line: &[u8], reason: &str) -> Passage {
        let id = IdFinder::in_text(line);
        Passage::Instead(self.unreadable(from, line, &[id], reason))
    }

    /// The same for a text with these ids. Whoever waits for its answer gets an error.
    fn unreadable(
        &mut self,
        from: MessageFrom,
        line: &[u8],
        ids: &[Option<Value>],
        reason: &str,
    ) -> Vec<GuardAction> {
        let (who, direction) = match from {
            MessageFrom::Client => ("client", Direction::Request),
            MessageFrom::Server => ("server", Direction::Response),
        };
        self.saw(UNPARSED, Some(direction), beginning_of(line));
        let message = format!("the {who} sent what is no message, so it did not pass: {reason}");
        self.tell(self.finding(
            FindingCode::Malformed,
            GuardDecision::Block,
            message.as_str(),
        ));
        match from {
            MessageFrom::Client => {
                // An id of another request would end that one, and an answer has none of its own.
                let is_request = memchr::memmem::find(line, b"\"method\"").is_some();
                let id = match ids {
                    [Some(id)] if is_request && self.open.peek(self.exchange, id).is_none() => {
                        Some(id.clone()).filter(|id| id.is_string() || id.is_number())
                    }
                    _ => None,
                };
                let id = id.unwrap_or_default();
                let answer = rpc::error(&id, rpc::PARSE_ERROR, reason, None);
                vec![GuardAction::ToClient(rpc::to_text(&answer))]
            }
            MessageFrom::Server => {
                let mut errors = Vec::new();
                for id in ids.iter().flatten() {
                    if let Some(call) = self.open.take(self.exchange, id) {
                        let answer = rpc::error(&call.id, answers::BLOCKED, &message, None);
                        errors.push(GuardAction::ToClient(rpc::to_text(&answer)));
                    }
                }
                errors
            }
        }
    }

    /// Writes a message into the trace and lets the indicators look at it.
    fn saw(&mut self, operation: &str, direction: Option<Direction>, content: Value) {
        self.saw_from(MessageFrom::Server, operation, direction, content);
    }

    /// The same for a message of the client. Returns the indicator that may block it, if one matches.
    fn saw_of_client(
        &mut self,
        operation: &str,
        direction: Direction,
        content: Value,
    ) -> Option<String> {
        self.saw_from(MessageFrom::Client, operation, Some(direction), content)
    }

    fn saw_from(
        &mut self,
        from: MessageFrom,
        operation: &str,
        direction: Option<Direction>,
        content: Value,
    ) -> Option<String> {
        // Several sessions may write one trace: the number and the line belong together.
        let message = self.recorder.with(|recorder| {
            let message = TraceMessage {
                sequence: recorder.next_sequence(),
                time: recorder.has_trace().then(|| recorder.now()),
                direction,
                ..TraceMessage::new(self.protocol.as_str(), operation, content)
            };
            recorder.message(&message);
            message
        });
        self.sequence = message.sequence;
        let (Some(scan), Some(watcher)) = (&mut self.scan, &self.setup.watcher) else {
            return None;
        };
        let found = scan.feed_and_tell(&message);
        let told = watcher.tell(&found, from, &self.setup.server);
        let mut enforced = None;
        for finding in told {
            if finding.decision == GuardDecision::Block {
                enforced = finding.rule.clone();
            }
            self.tell(finding.about(operation));
        }
        enforced
    }

    fn finding(
        &self,
        code: FindingCode,
        decision: GuardDecision,
        message: impl Into<String>,
    ) -> GuardFinding {
        GuardFinding::new(code, decision, &self.setup.server, message)
    }

    fn tell(&mut self, mut finding: GuardFinding) {
        finding.sequence = (self.sequence > 0).then_some(self.sequence);
        spans::of_finding(&self.span, &finding);
        self.recorder.with(|recorder| recorder.finding(&finding));
    }
}

/// What a notification of the server tells: figures and tokens of progress are no words of anybody.
fn said_by(method: &str, params: &Value) -> Value {
    if method == McpNotification::Progress.as_str() {
        return params.get("message").cloned().unwrap_or_default();
    }
    params.clone()
}

/// As much as is written down of what is no message.
fn beginning_of(text: &[u8]) -> Value {
    let beginning = &text[..text.len().min(64 << 10)];
    String::from_utf8_lossy(beginning).into_owned().into()
}

/// Messages as one batch.
fn batch_of(messages: &[String]) -> String {
    format!("[{}]", messages.join(","))
}

/// The errors of requests that nobody answers any more.
fn ended(waiting: &[PendingCall], why: &str) -> Vec<GuardAction> {
    let errors = waiting.iter().map(|call| {
        let answer = rpc::error(&call.id, answers::CLOSED, why, None);
        GuardAction::ToClient(rpc::to_text(&answer))
    });
    errors.collect()
}
