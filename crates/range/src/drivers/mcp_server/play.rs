//! A call that takes its time: progress, logs and questions before the answer.

use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{McpEra, McpLogLevel, McpNotification};
use proofhouse_protocol::rpc::{self, RpcFailure};
use serde_json::{Map, Value, json};

use super::answer::{AcceptedRequest, AnswerScript, Carried, finish};
use super::call::{CallReply, ServerCall};
use super::content::{ContentKind, asks, find, view};
use super::outlet::{MessageOutlet, OutletClosed};
use super::results::Built;
use super::service::{McpServerService, carrier};
use super::steps::{Ask, DeliveryStep};
use crate::CarrierKind;
use crate::branches::of_message;
use crate::delivery_note::DeliveryNote;

impl McpServerService {
    /// Plays a call to its end and sends the answer; stops when the client does not want it any
    /// more.
    pub(super) async fn play(
        self: &Arc<Self>,
        call: &ServerCall,
        begun: &mut AcceptedRequest,
        script: &AnswerScript,
        outlet: &MessageOutlet,
    ) {
        let token = call.peer.as_ref().and_then(|peer| peer.start(&call.id));
        if token.is_none() && call.peer.is_some() {
            let warning = format!("the id {} is of a call that still runs", call.id);
            self.context.warn(&warning);
        }
        let cancelled = async {
            match &token {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let answered = async {
            let outcome = self.perform(call, begun, script, outlet).await?;
            self.reply(call, begun, outcome, outlet).await
        };
        tokio::select! {
            () = cancelled => {}
            () = outlet.abandoned() => {}
            _ = answered => {}
        }
        if let (Some(peer), true) = (&call.peer, token.is_some()) {
            peer.finish(&call.id);
        }
        outlet.end();
    }

    /// Sends an answer that is ready, as the phase delivers.
    pub(super) async fn reply(
        &self,
        call: &ServerCall,
        begun: &mut AcceptedRequest,
        outcome: CallReply,
        outlet: &MessageOutlet,
    ) -> Result<(), OutletClosed> {
        let delivery = &begun.phase.delivery;
        if let Some(delay) = delivery.delay {
            tokio::time::sleep(delay).await;
        }
        let (text, message) = self.written(call, begun, &outcome);
        let note = self.note(begun, call).numbered(message);
        outlet
            .reply(&text, &note, delivery, self.patience())
            .await?;
        begun.advances.clear();
        Ok(())
    }

    /// Records an answer and writes it down. The number is that of the answer in the trace.
    pub(super) fn written(
        &self,
        call: &ServerCall,
        begun: &AcceptedRequest,
        outcome: &CallReply,
    ) -> (String, u64) {
        let phase = &begun.phase;
        let sent = |content: &Value| {
            let (method, direction) = (&call.method, Direction::Response);
            let context = &self.context;
            context.sent_numbered(phase, method, direction, content, None)
        };
        let message = match outcome {
            CallReply::Result(result) => sent(result),
            CallReply::Error(_) => sent(&outcome.content()),
        };
        (phase.delivery.shape(outcome.to_text(&call.id)), message)
    }

    /// Does what has to happen before the answer, and returns that.
    pub(super) async fn perform(
        self: &Arc<Self>,
        call: &ServerCall,
        begun: &mut AcceptedRequest,
        script: &AnswerScript,
        outlet: &MessageOutlet,
    ) -> Result<CallReply, OutletClosed> {
        let surface = Arc::clone(&begun.surface);
        let Some((item, _)) = find(&surface, script.kind, &script.name) else {
            // It was there when the call began, and a surface never changes.
            return Ok(CallReply::Error(RpcFailure::new(
                rpc::INTERNAL_ERROR,
                "gone",
            )));
        };
        let mut answers = match script.view.get("inputResponses") {
            Some(Value::Object(answers)) if call.era == McpEra::Modern => answers.clone(),
            _ => Map::new(),
        };
        let asks = asks(call, script.kind, item, &surface, &self.context);
        if call.era == McpEra::Legacy {
            let steps: Vec<&str> = item
                .steps
                .iter()
                .filter_map(|step| match step {
                    DeliveryStep::Ask(ask) => Some(ask.key.as_str()),
                    _ => None,
                })
                .collect();
            // Those of the state come before the steps of the item.
            for ask in asks.iter().filter(|ask| !steps.contains(&ask.key.as_str())) {
                let view = view(&script.view, &answers, None);
                if let Some(answer) = self.ask(call, begun, ask, &view, outlet).await? {
                    answers.insert(ask.key.clone(), answer);
                }
            }
        }
        for step in &item.steps {
            let view = view(&script.view, &answers, None);
            match step {
                DeliveryStep::Pause(pause) => tokio::time::sleep(*pause).await,
                DeliveryStep::CloseStream => outlet.detach(),
                DeliveryStep::Broadcast { method, params } => {
                    let params = self.resolved(params, &view);
                    self.notify(&begun.phase, method, &params).await;
                }
                DeliveryStep::Ask(ask) => {
                    let wanted = call.era == McpEra::Legacy && asks.contains(ask);
                    if wanted
                        && let Some(answer) = self.ask(call, begun, ask, &view, outlet).await?
                    {
                        answers.insert(ask.key.clone(), answer);
                    }
                }
                DeliveryStep::Notify { method, params } => {
                    let branch = of_message(method, Some(params));
                    let params = self.resolved(params, &view);
                    self.say(begun, method, &params, &branch, outlet).await?;
                }
                DeliveryStep::Progress(progress) => {
                    let Some(token) = call.meta("progressToken") else {
                        continue;
                    };
                    let mut params = Map::from_iter([("progressToken".to_owned(), token.clone())]);
                    params.extend(progress.clone());
                    let params = self.resolved(&Value::Object(params), &view);
                    let method = McpNotification::Progress.as_str();
                    let branch = of_message(method, Some(&Value::Object(progress.clone())));
                    self.say(begun, method, &params, &branch, outlet).await?;
                }
                DeliveryStep::Log(message) => {
                    let level = message.get("level").and_then(Value::as_str);
                    let level = level
                        .and_then(McpLogLevel::parse)
                        .unwrap_or(McpLogLevel::Info);
                    if call.level.is_some_and(|least| level >= least) {
                        let message = Value::Object(message.clone());
                        let params = self.resolved(&message, &view);
                        let method = McpNotification::Message.as_str();
                        let branch = of_message(method, Some(&message));
                        self.say(begun, method, &params, &branch, outlet).await?;
                    }
                }
            }
        }
        let view = view(&script.view, &answers, None);
        let branch = self.chosen_branch(script.kind, item, &view);
        begun.carried = Carried::One(script.kind.carrier(), script.name.clone(), branch);
        let result = match self.build(script.kind, item, &view) {
            Built::Ready(result) => result,
            Built::Generated { prompt, otherwise } => {
                let context = json!({"request": *view, "method": call.method});
                let content = self.context.generate(&prompt, context).await;
                content
                    .and_then(|content| self.generated(script.kind, content))
                    .unwrap_or(otherwise)
            }
        };
        let cacheable = script.kind == ContentKind::Resource;
        Ok(CallReply::Result(finish(
            result, call.era, &surface, cacheable,
        )))
    }

    /// Sends a notification on the stream of the call.
    async fn say(
        &self,
        begun: &AcceptedRequest,
        method: &str,
        params: &Value,
        branch: &Value,
        outlet: &MessageOutlet,
    ) -> Result<(), OutletClosed> {
        self.context
            .sent(&begun.phase, method, Direction::Response, params, None);
        let bare = (!params.is_null()).then_some(params);
        let text = rpc::notification(method, bare).to_string();
        let (kind, branch) = (CarrierKind::Notification, branch.clone());
        let note = DeliveryNote::of_branch(&self.context, &begun.phase, kind, method, branch);
        outlet.send(&text, &note, self.patience()).await
    }

    /// Asks the client and waits for its answer; `None` when it does not come in time.
    async fn ask(
        &self,
        call: &ServerCall,
        begun: &AcceptedRequest,
        ask: &Ask,
        view: &Value,
        outlet: &MessageOutlet,
    ) -> Result<Option<Value>, OutletClosed> {
        let Some(peer) = &call.peer else {
            return Ok(None);
        };
        let Some((id, answer)) = peer.ask(&ask.method) else {
            self.context
                .warn("a client leaves too many requests unanswered");
            return Ok(None);
        };
        let params = self.resolved(&ask.params, view);
        let text = rpc::request(&json!(id), &ask.method, Some(&params)).to_string();
        self.context
            .sent(&begun.phase, &ask.method, Direction::Request, &params, None);
        let (kind, branch) = (carrier(&ask.method), ask.branch());
        let note = DeliveryNote::of_branch(&self.context, &begun.phase, kind, &ask.method, branch);
        outlet.send(&text, &note, self.patience()).await?;
        let patience = self.context.limits().response_timeout;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            _ => {
                peer.forget(id);
                let warning = format!("the client did not answer `{}` in time", ask.method);
                self.context.warn(&warning);
                let params = json!({"requestId": id, "reason": "no answer in time"});
                let method = McpNotification::Cancelled.as_str();
                self.say(begun, method, &params, &Value::Null, outlet)
                    .await?;
                Ok(None)
            }
        }
    }
}
