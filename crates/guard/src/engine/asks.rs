//! Asks: a call, or a list of definitions, is held while the person at the client is asked, through the elicitation of MCP.
//!
//! The terminal belongs to the client, so the guard cannot use it. A client that cannot ask its user gets a denial at
//! once, and an ask that nobody answers in time is one, too. The stateless revisions have no requests of a server: there
//! the call is answered with what has to be asked, and comes again with what the person said.

use proofhouse_protocol::mcp::{McpMethod, McpNotification, meta, result_type};
use proofhouse_protocol::rpc;
use proofhouse_source::printable_line;
use proofhouse_wire::trace::Span;
use serde_json::{Value, json};

use super::answers::refusal;
use super::open_calls::PendingCall;
use super::pin_asks::HeldDefinitions;
use super::{AskRoute, GuardAction, GuardSession, OneMessage};
use crate::finding::{FindingCode, GuardDecision};
use crate::share::SharedFact;
use crate::taint::CallTaint;

/// What the ids of our requests and our `requestState` begin with. Servers may not use it.
const PREFIX: &str = "proofhouse-guard:";

/// What our question is called among those that a call is answered with.
const KEY: &str = "proofhouse-guard";

/// How many asks may be open.
const MAX_ASKS: usize = 16;

/// How many characters of an argument a person is shown.
const SHOWN: usize = 300;

/// Why an ask ends that nobody answered.
const LATE: &str = "nobody answered in time";

/// What waits for a person.
#[derive(Debug)]
pub(super) enum HeldAsk {
    /// A call.
    Call(HeldCall),
    /// What a server says of itself.
    Definitions(HeldDefinitions),
}

/// A call that waits for a person.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub(super) call: PendingCall,
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) arguments: Value,
    pub(super) taint: CallTaint,
    /// The message as it came.
    pub(super) line: String,
    /// Whether the client has an answer, and comes again with what the person said.
    pub(super) comes_again: bool,
}

impl HeldAsk {
    /// The request that waits, if one does.
    pub(super) fn waiting(&self) -> Option<&PendingCall> {
        match self {
            Self::Call(held) => Some(&held.call).filter(|_| !held.comes_again),
            Self::Definitions(held) => held.call(),
        }
    }

    /// The same, where it waits no longer.
    pub(super) fn into_waiting(self) -> Option<PendingCall> {
        self.waiting().cloned()
    }

    /// Whether the client speaks a stateless revision.
    fn is_modern(&self) -> bool {
        match self {
            Self::Call(held) => held.call.is_modern,
            Self::Definitions(held) => held.call().is_some_and(|call| call.is_modern),
        }
    }

    /// What people are asked to allow.
    const fn title(&self) -> &'static str {
        match self {
            Self::Call(_) => "Allow this call",
            Self::Definitions(_) => "Allow these definitions",
        }
    }
}

/// The number of an ask, by the id of our request; zero where the id is ours and the number is not.
pub(super) fn number_of(id: &Value) -> Option<u64> {
    let number = id.as_str()?.strip_prefix(PREFIX)?;
    Some(number.parse().unwrap_or(0))
}

/// The number of the ask that a call comes again for.
pub(super) fn number_of_round(params: &Value) -> Option<u64> {
    number_of(params.get("requestState")?)
}

/// Whether a result of the server asks for what only we ask for.
pub(super) fn is_forged(result: &Value) -> bool {
    result
        .get("requestState")
        .is_some_and(|state| number_of(state).is_some())
        || result
            .pointer("/inputRequests")
            .is_some_and(|asked| asked.get(KEY).is_some())
}

/// Whether capabilities of a client say that it asks its user by a form.
pub(super) fn can_ask(capabilities: Option<&Value>) -> bool {
    let elicitation = capabilities.and_then(|all| all.get("elicitation")?.as_object());
    // One that says nothing more asks by forms.
    elicitation.is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
}

/// Whether what the client answered allows it.
fn allows(answer: &Value) -> bool {
    answer.get("action").and_then(Value::as_str) == Some("accept")
        && answer.pointer("/content/allow") == Some(&Value::Bool(true))
}

impl GuardSession {
    /// Holds what a person is asked about, if somebody can be asked.
    pub(super) fn hold(&mut self, mut ask: HeldAsk, line: &[u8]) -> Vec<GuardAction> {
        if let Some(why) = self.unreachable(&ask) {
            return self.deny(ask, why);
        }
        let Ok(text) = str::from_utf8(line) else {
            return self.deny(ask, "the message is not UTF-8");
        };
        let number = self.next_ask;
        self.next_ask += 1;
        let question = match &mut ask {
            HeldAsk::Call(held) => {
                text.clone_into(&mut held.line);
                self.question(held)
            }
            HeldAsk::Definitions(held) => {
                text.clone_into(&mut held.line);
                held.question(&self.setup.server)
            }
        };
        if self.setup.asks == AskRoute::Person {
            self.asks.insert(number, ask);
            return vec![
                GuardAction::Question {
                    number,
                    text: question,
                },
                GuardAction::Await(number),
            ];
        }
        let params = json!({
            "message": question,
            "requestedSchema": {
                "type": "object",
                "properties": {"allow": {"type": "boolean", "title": ask.title()}},
                "required": ["allow"],
            },
        });
        let method = McpMethod::ElicitationCreate.as_str();
        let name = format!("{PREFIX}{number}");
        let message = match &mut ask {
            HeldAsk::Call(held) if held.call.is_modern => {
                held.comes_again = true;
                let result = json!({
                    result_type::KEY: result_type::INPUT_REQUIRED,
                    "inputRequests": {KEY: {"method": method, "params": params}},
                    "requestState": name,
                });
                rpc::response(&held.call.id, result)
            }
            HeldAsk::Call(_) | HeldAsk::Definitions(_) => {
                rpc::request(&json!(name), method, Some(&params))
            }
        };
        self.asks.insert(number, ask);
        vec![
            GuardAction::ToClient(rpc::to_text(&message)),
            GuardAction::Await(number),
        ]
    }

    /// Why nobody can be asked, if so.
    fn unreachable(&self, ask: &HeldAsk) -> Option<&'static str> {
        let begins = |call: &PendingCall| call.method == McpMethod::Initialize.as_str();
        let why = match (self.setup.asks, ask) {
            (AskRoute::Nobody, _) => "there is nobody to ask",
            (AskRoute::Person, _) => "",
            (AskRoute::Client, HeldAsk::Call(held)) if held.call.is_modern => {
                if can_ask(meta::get(&held.call.params, meta::CLIENT_CAPABILITIES)) {
                    ""
                } else {
                    "the client cannot ask its user"
                }
            }
            (AskRoute::Client, _) if !self.can_ask || ask.is_modern() => {
                "the client cannot ask its user"
            }
            (AskRoute::Client, _) if ask.waiting().is_some_and(begins) => {
                "the client cannot ask its user before the session has begun"
            }
            (AskRoute::Client, _) => "",
        };
        if why.is_empty() && self.asks.len() >= MAX_ASKS {
            return Some("too many questions wait for a person");
        }
        Some(why).filter(|why| !why.is_empty())
    }

    fn question(&self, ask: &HeldCall) -> String {
        let arguments = printable_line(&ask.arguments.to_string());
        let mut shown: String = arguments.chars().take(SHOWN).collect();
        let more = arguments.chars().count().saturating_sub(SHOWN);
        if more > 0 {
            shown.push_str(&format!("… ({more} more characters)"));
        }
        let mut text = format!(
            "Proofhouse guard: allow the call of `{}` on the server `{}`? {} Arguments: {shown}",
            printable_line(ask.call.item()),
            printable_line(&self.setup.server),
            ask.message,
        );
        for hit in &ask.taint.untrusted {
            let words = printable_line(&hit.words);
            let origin = printable_line(&hit.origin);
            text.push_str(&format!(
                " `{}` comes from {origin}: {words}.",
                printable_line(&hit.path)
            ));
        }
        text
    }

    /// The client answered one of our requests.
    pub(super) fn answered(&mut self, number: u64, outcome: &Result<Value, Value>) -> OneMessage {
        let Some(ask) = self.asks.remove(&number) else {
            // It came too late.
            return OneMessage::Drop;
        };
        let allowed = outcome.as_ref().is_ok_and(allows);
        OneMessage::Actions(self.settled(ask, allowed))
    }

    /// A call comes again with what the person said.
    pub(super) fn came_again(
        &mut self,
        number: u64,
        call: PendingCall,
        value: &Value,
    ) -> OneMessage {
        let waits = |ask: &HeldAsk| matches!(ask, HeldAsk::Call(held) if held.comes_again);
        let ask = self.asks.remove(&number).filter(waits);
        let Some(HeldAsk::Call(mut held)) = ask else {
            return OneMessage::Answer(refusal(&call, LATE));
        };
        let said = call.params.get("inputResponses");
        let allowed = said.and_then(|said| said.get(KEY)).is_some_and(allows);
        let is_same = call.item() == held.call.item() && call.arguments == held.arguments;
        let mut again = value.clone();
        if let Some(params) = again.get_mut("params").and_then(Value::as_object_mut) {
            // The server gets what it would have got without us.
            for key in ["requestState", "inputResponses"] {
                match held.call.params.get(key) {
                    Some(before) => params.insert(key.to_owned(), before.clone()),
                    None => params.shift_remove(key),
                };
            }
        }
        held.line = rpc::to_text(&again);
        held.comes_again = false;
        held.call = PendingCall {
            params: again.get("params").cloned().unwrap_or_default(),
            ..call
        };
        let ask = HeldAsk::Call(held);
        OneMessage::Actions(if is_same {
            self.settled(ask, allowed)
        } else {
            self.deny(
                ask,
                "this is another call than the one that was asked about",
            )
        })
    }

    /// A person answered a [`GuardAction::Question`]; an answer that comes too late does nothing.
    pub fn answer(&mut self, number: u64, allowed: bool) -> Vec<GuardAction> {
        self.sequence = 0;
        let Some(ask) = self.asks.remove(&number) else {
            return Vec::new();
        };
        let actions = self.settled(ask, allowed);
        self.span = Span::none();
        actions
    }

    fn settled(&mut self, ask: HeldAsk, allowed: bool) -> Vec<GuardAction> {
        if !allowed {
            return self.deny(ask, "the user said no");
        }
        let ask = match ask {
            HeldAsk::Call(held) => held,
            HeldAsk::Definitions(held) => return self.settle_definitions(held, true, ""),
        };
        self.span = ask.call.span.clone();
        let tool = ask.call.item().to_owned();
        let finding = self.finding(
            FindingCode::AskAllowed,
            GuardDecision::Allow,
            "the user allowed it",
        );
        self.tell(finding.about(&*tool).by(&*ask.rule));
        if let Err(reason) = self.open.check(ask.call.exchange, &ask.call.id) {
            let refused = refusal(&ask.call, reason);
            return vec![GuardAction::ToClient(rpc::to_text(&refused))];
        }
        let values = self.taint.approve(&ask.arguments, &ask.taint);
        self.fact(|| SharedFact::Approved { values });
        self.passes(&tool, &ask.arguments, &ask.taint);
        self.open.add(ask.call);
        vec![GuardAction::ToServer(ask.line)]
    }

    /// Nobody answered in time.
    pub fn expire(&mut self, number: u64) -> Vec<GuardAction> {
        self.sequence = 0;
        let Some(ask) = self.asks.remove(&number) else {
            return Vec::new();
        };
        let has_request = self.setup.asks == AskRoute::Client && ask.waiting().is_some();
        let mut actions = self.deny(ask, LATE);
        self.span = Span::none();
        if !has_request {
            return actions;
        }
        let cancel = rpc::notification(
            McpNotification::Cancelled.as_str(),
            Some(&json!({"requestId": format!("{PREFIX}{number}"), "reason": LATE})),
        );
        actions.push(GuardAction::ToClient(rpc::to_text(&cancel)));
        actions
    }

    pub(super) fn deny(&mut self, ask: HeldAsk, why: &str) -> Vec<GuardAction> {
        let ask = match ask {
            HeldAsk::Call(held) => held,
            HeldAsk::Definitions(held) => return self.settle_definitions(held, false, why),
        };
        self.span = ask.call.span.clone();
        let finding = self.finding(FindingCode::AskDenied, GuardDecision::Block, why);
        self.tell(finding.about(ask.call.item()).by(ask.rule));
        self.history.refused();
        if ask.comes_again {
            return Vec::new();
        }
        let message = format!("{} ({why})", ask.message);
        vec![GuardAction::ToClient(rpc::to_text(&refusal(
            &ask.call, &message,
        )))]
    }
}
