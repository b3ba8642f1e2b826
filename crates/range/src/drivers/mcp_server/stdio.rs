//! Lines over standard input and output, both eras in one process.

use std::sync::Arc;

use proofhouse_detect::read_lenient;
use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{McpEra, McpLogLevel, McpMethod, era_of, meta};
use proofhouse_protocol::rpc::{self, RpcFailure, RpcMessage};
use proofhouse_wire::server::BodyPermit;
use proofhouse_wire::{LineReader, WireLine};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use super::answer::RemainingWork;
use super::call::{CallReply, ServerCall};
use super::envelope;
use super::http::listen;
use super::incoming::Received;
use super::outlet::{MessageOutlet, StdoutLines};
use super::peer::McpPeer;
use super::service::McpServerService;
use crate::UnseenKind;
use crate::delivery_note::DeliveryNote;

/// Serves one client until it is gone or the run is over.
pub(super) async fn serve(
    service: &Arc<McpServerService>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) {
    let context = &service.context;
    let lines = Arc::new(StdoutLines::new(output, service.patience()));
    let peer = Arc::new(McpPeer::new("stdio".to_owned(), Some(Arc::clone(&lines))));
    service.admit(Arc::clone(&peer));
    let mut reader = LineReader::new(BufReader::new(input), context.limits().max_message_bytes);
    loop {
        let line = tokio::select! {
            () = context.over().cancelled() => return,
            () = lines.closed.cancelled() => return,
            line = reader.next() => line,
        };
        let text = match line {
            Ok(Some(WireLine::Whole(text))) => text,
            // The last line may lack its end; it is a message if it can be read as one.
            Ok(Some(WireLine::Cut(text))) if read_lenient(&text).is_ok() => text,
            Ok(Some(WireLine::Cut(text))) => {
                context.warn(&format!(
                    "the input ended in a line of {} bytes",
                    text.len()
                ));
                service.no_message(UnseenKind::CutOff, &text);
                return;
            }
            Ok(Some(WireLine::TooLong { bytes })) => {
                context.warn(&format!("a line of {bytes} bytes was passed over"));
                context.unparsed(UnseenKind::TooLong, Direction::Request, b"", bytes);
                let failure = RpcFailure::new(rpc::INVALID_REQUEST, "the message is too large");
                say(
                    service,
                    &lines,
                    &CallReply::Error(failure).to_text(&Value::Null),
                )
                .await;
                continue;
            }
            Ok(None) => return,
            Err(error) => {
                context.warn(&format!("the input cannot be read: {error}"));
                service.no_message(UnseenKind::CutOff, b"");
                return;
            }
        };
        match service.read(&text) {
            Ok(Received::Message(message)) => {
                tokio::select! {
                    () = context.over().cancelled() => return,
                    () = take(service, &peer, &lines, message) => {}
                }
            }
            Ok(Received::Batch(messages)) => {
                tokio::select! {
                    () = context.over().cancelled() => return,
                    () = take_batch(service, &peer, &lines, messages) => {}
                }
            }
            Err(invalid) => say(service, &lines, &rpc::to_text(&invalid.to_response())).await,
        }
    }
}

async fn say(service: &McpServerService, lines: &Arc<StdoutLines>, text: &str) {
    let outlet = MessageOutlet::Lines(Arc::clone(lines));
    // A client that is gone is noticed by the reader.
    let nothing = DeliveryNote::default();
    let _ = outlet.send(text, &nothing, service.patience()).await;
}

async fn take_batch(
    service: &Arc<McpServerService>,
    peer: &Arc<McpPeer>,
    lines: &Arc<StdoutLines>,
    messages: Vec<Value>,
) {
    let call = |id, method, params| ServerCall {
        id,
        method,
        params,
        era: McpEra::Legacy,
        peer: Some(Arc::clone(peer)),
        capabilities: peer.capabilities(),
        level: Some(peer.level().unwrap_or(McpLogLevel::Debug)),
        origin: "stdio".to_owned(),
        _permit: BodyPermit::default(),
    };
    let batch = match service.take_batch(peer, messages, call).await {
        Ok(batch) if batch.is_quiet() => return,
        Ok(batch) => batch,
        Err(failure) => {
            let text = CallReply::Error(failure).to_text(&Value::Null);
            return say(service, lines, &text).await;
        }
    };
    let is_ready = batch.is_ready();
    let (background, outlet) = (Arc::clone(service), MessageOutlet::Lines(Arc::clone(lines)));
    let answering = async move {
        let (text, note, advances) = background.answer_batch(batch, &outlet).await;
        let _ = outlet.send(&text, &note, background.patience()).await;
        drop(advances);
    };
    if is_ready {
        answering.await;
    } else if !service.spawn(answering) {
        let failure = RpcFailure::new(rpc::INTERNAL_ERROR, "too many calls at a time");
        let text = CallReply::Error(failure).to_text(&Value::Null);
        say(service, lines, &text).await;
    }
}

async fn take(
    service: &Arc<McpServerService>,
    peer: &Arc<McpPeer>,
    lines: &Arc<StdoutLines>,
    message: RpcMessage,
) {
    let (id, method, params) = match message {
        RpcMessage::Request { id, method, params } => (id, method, params),
        RpcMessage::Notification { method, params } => {
            return service.notified(Some(peer), &method, &params).await;
        }
        RpcMessage::Response { id, outcome } => return service.responded(peer, &id, outcome),
    };
    let era = era_of(&method, &params, None);
    let meta = |key: &str| meta::get(&params, key);
    let (capabilities, level) = match era {
        McpEra::Legacy => (
            peer.capabilities(),
            Some(peer.level().unwrap_or(McpLogLevel::Debug)),
        ),
        McpEra::Modern => (
            Arc::new(meta(meta::CLIENT_CAPABILITIES).cloned().unwrap_or_default()),
            meta(meta::LOG_LEVEL)
                .and_then(Value::as_str)
                .and_then(McpLogLevel::parse),
        ),
    };
    let outlet = MessageOutlet::Lines(Arc::clone(lines));
    if era == McpEra::Modern {
        let surface = service.surface();
        if let Err(failure) = envelope::check(&method, &params, None, &surface) {
            let refused = service.refused(&method, &params, failure);
            return say(service, lines, &refused.to_text(&id)).await;
        }
    } else if !matches!(
        McpMethod::parse(&method),
        Some(McpMethod::Initialize | McpMethod::Ping)
    ) {
        service.ready_now(peer).await;
    }
    let call = ServerCall {
        id,
        method,
        params,
        era,
        peer: Some(Arc::clone(peer)),
        capabilities,
        level,
        origin: "stdio".to_owned(),
        _permit: BodyPermit::default(),
    };
    let mut begun = service.begin(&call);
    let work = std::mem::replace(&mut begun.work, RemainingWork::Listen(Value::Null));
    let delivery = &begun.phase.delivery;
    let takes_time = delivery.delay.is_some() || delivery.slow_stream.is_some();
    let work = match work {
        RemainingWork::Ready(outcome) if !takes_time => {
            let _ = service.reply(&call, &mut begun, outcome, &outlet).await;
            return;
        }
        work => work,
    };
    let (background, id) = (Arc::clone(service), call.id.clone());
    let started = service.spawn(async move {
        match work {
            RemainingWork::Ready(outcome) => {
                let _ = background.reply(&call, &mut begun, outcome, &outlet).await;
            }
            RemainingWork::Play(script) => {
                background.play(&call, &mut begun, &script, &outlet).await;
            }
            RemainingWork::Listen(filter) => {
                drop(begun);
                listen(&background, &call, filter, &outlet).await;
            }
        }
    });
    if !started {
        let failure = RpcFailure::new(rpc::INTERNAL_ERROR, "too many calls at a time");
        say(service, lines, &CallReply::Error(failure).to_text(&id)).await;
    }
}
