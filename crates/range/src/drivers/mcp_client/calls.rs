//! The client's own calls: one action of a document, through all rounds that it takes.

use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{
    McpMethod, McpNotification, McpRevision, content_of_params, error, result_type,
};
use serde_json::{Map, Value};

use crate::actor::ActorContext;
use crate::branches::of_message;
use crate::exposure::CarrierKind;
use crate::phases::PhaseView;

use super::answers;
use super::era::{enriched, supported};
use super::link::Link;
use super::session::{McpClientSession, RequestOutcome};

/// Rounds of one call, so that a server that always asks back comes to an end.
const MAX_ROUNDS: usize = 10;
/// Questions of one round that are answered.
const MAX_QUESTIONS: usize = 100;

impl McpClientSession {
    /// Does one action of the document: a notification, or a request through all its rounds.
    pub(super) async fn perform(
        &mut self,
        phase: &Arc<PhaseView>,
        method: &str,
        params: Option<&Value>,
    ) {
        self.context.planned(CarrierKind::Message, method);
        let branch = of_message(method, params);
        let delivered = |context: &ActorContext| {
            context.delivered_branch(phase, CarrierKind::Message, method, &branch);
        };
        if method.starts_with(McpNotification::PREFIX) {
            self.notify(phase, method, params).await;
            delivered(&self.context);
            return;
        }
        if method == McpMethod::SubscriptionsListen.as_str() && self.stateless.is_some() {
            self.subscribe(phase, method, params).await;
            delivered(&self.context);
            return;
        }
        let patience = self.context.limits().response_timeout;
        let mut extra = None;
        // Each of these mends the conversation once, and the call is made again.
        let (mut renewed, mut renegotiated) = (false, false);
        let mut round = 0;
        loop {
            let outcome = self
                .request(phase, method, params, extra.as_ref(), patience)
                .await;
            let (outcome, raw, status) = match outcome {
                RequestOutcome::Answered {
                    outcome,
                    raw,
                    status,
                } => (outcome, Some(raw), status),
                RequestOutcome::Failed { status, reason, .. } => {
                    if self.session_is_gone(status) && !renewed {
                        renewed = true;
                        if self.renew(phase).await {
                            continue;
                        }
                    }
                    self.context.warn(&format!("`{method}`: {reason}"));
                    return;
                }
            };
            if self.session_is_gone(status) && !renewed {
                renewed = true;
                if self.renew(phase).await {
                    continue;
                }
            }
            // Who refuses at the door has not seen what was sent.
            if status.is_none_or(|status| status < 300) {
                delivered(&self.context);
            }
            if !renegotiated && self.renegotiate(&outcome) {
                renegotiated = true;
                let content = enriched(method, params, outcome);
                self.context
                    .overheard(method, Direction::Response, &content, raw);
                continue;
            }
            if let Ok(result) = &outcome
                && let Some(answers) = self.input_required(method, params, result, &raw).await
            {
                round += 1;
                if round < MAX_ROUNDS {
                    extra = Some(answers);
                    continue;
                }
                self.context
                    .warn(&format!("`{method}`: the server asks back for ever"));
                return;
            }
            if method == McpMethod::ToolsList.as_str()
                && let Ok(result) = &outcome
            {
                self.tools.learn(result);
            }
            let content = enriched(method, params, outcome);
            let turn = self
                .context
                .received(method, Direction::Response, &content, raw);
            drop(turn);
            return;
        }
    }

    fn session_is_gone(&self, status: Option<u16>) -> bool {
        let Link::Http(link) = &self.link else {
            return false;
        };
        status == Some(404) && link.session.is_some() && self.stateless.is_none()
    }

    async fn renew(&mut self, phase: &Arc<PhaseView>) -> bool {
        self.context
            .warn("the server ended the session; a new one begins");
        match self.initialize(phase, None).await {
            Ok(()) => true,
            Err(error) => {
                self.context.warn(&error.message);
                false
            }
        }
    }

    /// Takes over the version that the server asks for; whether there is one.
    fn renegotiate(&mut self, outcome: &Result<Value, Value>) -> bool {
        let Some(version) = &mut self.stateless else {
            return false;
        };
        match outcome {
            Err(refusal) if refusal["code"] == error::UNSUPPORTED_VERSION => {
                match supported(&refusal["data"]["supported"]) {
                    Some(offered) => {
                        *version = offered;
                        true
                    }
                    None => false,
                }
            }
            _ => false,
        }
    }

    /// What to send along in the next round, if the result asks for one and it can be answered.
    async fn input_required(
        &mut self,
        method: &str,
        params: Option<&Value>,
        result: &Value,
        raw: &Option<Value>,
    ) -> Option<Value> {
        let is_modern = self.stateless.is_some();
        if !is_modern || result[result_type::KEY] != result_type::INPUT_REQUIRED {
            return None;
        }
        if !McpMethod::parse(method).is_some_and(McpMethod::may_require_input) {
            let latest = McpRevision::LATEST;
            let warning = format!("`{method}` must not ask for input (version {latest})");
            self.context.warn(&warning);
            return None;
        }
        let context = self.context.clone();
        let requests = result.get("inputRequests").and_then(Value::as_object);
        let questions: Vec<_> = requests
            .into_iter()
            .flatten()
            .take(MAX_QUESTIONS)
            .map(|(key, request)| {
                let asked = request["method"].as_str().unwrap_or("unknown");
                let question = content_of_params(request.get("params"));
                (key, request, asked, question)
            })
            .collect();
        let phase = context.phase();
        let refused = |(_, _, asked, question): &&(_, _, &str, Value)| {
            !answers::can_answer(&context, &phase, asked, question)
        };
        if let Some((_, _, asked, _)) = questions.iter().find(refused) {
            // There is no way to refuse one question of many.
            let warning = format!("`{method}` is not tried again: no answer to `{asked}`");
            context.warn(&warning);
            return None;
        }
        let content = enriched(method, params, Ok(result.clone()));
        context.overheard(method, Direction::Response, &content, raw.clone());
        let mut responses = Map::new();
        for (key, request, asked, question) in questions {
            let origin = Some(request.clone());
            let turn = context.received(asked, Direction::Request, &question, origin);
            let answer = answers::answer(&context, &turn.phase, asked, &question).await;
            if let Ok(answer) = answer {
                context.sent(&turn.phase, asked, Direction::Response, &answer, None);
                answers::delivered(&context, &turn.phase, asked, &question);
                responses.insert(key.clone(), answer);
            }
        }
        let mut extra = Map::new();
        if !responses.is_empty() {
            extra.insert("inputResponses".to_owned(), responses.into());
        }
        if let Some(state) = result.get("requestState") {
            extra.insert("requestState".to_owned(), state.clone());
        }
        Some(Value::Object(extra))
    }
}
