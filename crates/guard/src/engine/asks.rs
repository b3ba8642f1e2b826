//! Asks: a call is held while the person at the client is asked, through the elicitation of MCP.
//!
//! The terminal belongs to the client, so the guard cannot use it. A client that cannot ask its user gets a denial at
//! once, and an ask that nobody answers in time is one, too.

use proofhouse_protocol::mcp::{McpMethod, McpNotification};
use proofhouse_protocol::rpc;
use proofhouse_source::printable_line;
use proofhouse_wire::trace::Span;
use serde_json::{Value, json};

use super::answers::refusal;
use super::open_calls::PendingCall;
use super::{AskRoute, GuardAction, GuardSession, OneMessage};
use crate::finding::{FindingCode, GuardDecision};
use crate::share::SharedFact;
use crate::taint::CallTaint;

/// What the ids of our requests begin with. Servers may not use it.
const PREFIX: &str = "proofhouse-guard:";

/// How many asks may be open.
const MAX_ASKS: usize = 16;

/// How many characters of an argument a person is shown.
const SHOWN: usize = 300;

/// A call that waits for a person.
#[derive(Debug)]
pub(super) struct HeldAsk {
    pub(super) call: PendingCall,
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) arguments: Value,
    pub(super) taint: CallTaint,
    /// The message as it came.
    pub(super) line: String,
}

/// The number of an ask, by the id of our request; zero where the id is ours and the number is not.
pub(super) fn number_of(id: &Value) -> Option<u64> {
    let number = id.as_str()?.strip_prefix(PREFIX)?;
    Some(number.parse().unwrap_or(0))
}

impl GuardSession {
    /// Holds a call and asks about it, if that is possible.
    pub(super) fn hold(&mut self, mut ask: HeldAsk, line: &[u8]) -> Vec<GuardAction> {
        match self.setup.asks {
            AskRoute::Client if !self.can_ask || ask.call.is_modern => {
                return self.deny(ask, "the client cannot ask its user");
            }
            AskRoute::Nobody => return self.deny(ask, "there is nobody to ask"),
            AskRoute::Client | AskRoute::Person => {}
        }
        if self.asks.len() >= MAX_ASKS {
            return self.deny(ask, "too many calls wait for a person");
        }
        let Ok(text) = str::from_utf8(line) else {
            return self.deny(ask, "the call is not UTF-8");
        };
        text.clone_into(&mut ask.line);
        let number = self.next_ask;
        self.next_ask += 1;
        if self.setup.asks == AskRoute::Person {
            let text = self.question(&ask);
            self.asks.insert(number, ask);
            return vec![
                GuardAction::Question { number, text },
                GuardAction::Await(number),
            ];
        }
        let request = rpc::request(
            &json!(format!("{PREFIX}{number}")),
            McpMethod::ElicitationCreate.as_str(),
            Some(&json!({
                "message": self.question(&ask),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"allow": {"type": "boolean", "title": "Allow this call"}},
                    "required": ["allow"],
                },
            })),
        );
        self.asks.insert(number, ask);
        vec![
            GuardAction::ToClient(rpc::to_text(&request)),
            GuardAction::Await(number),
        ]
    }

    fn question(&self, ask: &HeldAsk) -> String {
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
        let allowed = match outcome {
            Ok(result) => {
                result.get("action").and_then(Value::as_str) == Some("accept")
                    && result.pointer("/content/allow") == Some(&Value::Bool(true))
            }
            Err(_) => false,
        };
        self.settled(ask, allowed)
    }

    /// A person answered a [`GuardAction::Question`]; an answer that comes too late does nothing.
    pub fn answer(&mut self, number: u64, allowed: bool) -> Vec<GuardAction> {
        self.sequence = 0;
        let Some(ask) = self.asks.remove(&number) else {
            return Vec::new();
        };
        let settled = self.settled(ask, allowed);
        self.span = Span::none();
        match settled {
            OneMessage::Actions(actions) => actions,
            OneMessage::Answer(answer) => vec![GuardAction::ToClient(rpc::to_text(&answer))],
            OneMessage::Pass | OneMessage::Drop | OneMessage::Replace(_) | OneMessage::Hold(_) => {
                Vec::new()
            }
        }
    }

    fn settled(&mut self, ask: HeldAsk, allowed: bool) -> OneMessage {
        if !allowed {
            return OneMessage::Actions(self.deny(ask, "the user said no"));
        }
        self.span = ask.call.span.clone();
        let tool = ask.call.item().to_owned();
        let finding = self.finding(
            FindingCode::AskAllowed,
            GuardDecision::Allow,
            "the user allowed it",
        );
        self.tell(finding.about(&*tool).by(&*ask.rule));
        if let Err(reason) = self.open.check(ask.call.exchange, &ask.call.id) {
            return OneMessage::Answer(refusal(&ask.call, reason));
        }
        let values = self.taint.approve(&ask.arguments, &ask.taint);
        self.fact(|| SharedFact::Approved { values });
        self.passes(&tool, &ask.arguments, &ask.taint);
        self.open.add(ask.call);
        OneMessage::Actions(vec![GuardAction::ToServer(ask.line)])
    }

    /// Nobody answered in time.
    pub fn expire(&mut self, number: u64) -> Vec<GuardAction> {
        self.sequence = 0;
        let Some(ask) = self.asks.remove(&number) else {
            return Vec::new();
        };
        let mut actions = self.deny(ask, "nobody answered in time");
        self.span = Span::none();
        if self.setup.asks != AskRoute::Client {
            return actions;
        }
        let cancel = rpc::notification(
            McpNotification::Cancelled.as_str(),
            Some(
                &json!({"requestId": format!("{PREFIX}{number}"), "reason": "nobody answered in time"}),
            ),
        );
        actions.push(GuardAction::ToClient(rpc::to_text(&cancel)));
        actions
    }

    pub(super) fn deny(&mut self, ask: HeldAsk, why: &str) -> Vec<GuardAction> {
        self.span = ask.call.span.clone();
        let finding = self.finding(FindingCode::AskDenied, GuardDecision::Block, why);
        self.tell(finding.about(ask.call.item()).by(ask.rule));
        self.history.refused();
        let message = format!("{} ({why})", ask.message);
        vec![GuardAction::ToClient(rpc::to_text(&refusal(
            &ask.call, &message,
        )))]
    }
}
