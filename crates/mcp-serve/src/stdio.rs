//! Lines over standard input and output: one client, both eras.

use std::sync::Arc;

use proofhouse_protocol::mcp::{McpEra, McpMethod, McpNotification, era_of};
use proofhouse_protocol::rpc::{self, RpcFailure, RpcMessage};
use proofhouse_wire::{LineReader, WireLine};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::core::{Core, RequestStart};
use super::envelope;
use super::protocol::{McpRequest, RequestResult, response};
use super::session::McpSession;
use super::streams::{ChangeSubscription, ServerOutlet, write_call, write_changes};

/// Lines that wait for a slow reader; whoever has more to say waits with it.
const QUEUE: usize = 64;

/// Serves one client until it is gone or the server is to end.
pub(super) async fn serve(
    core: &Arc<Core>,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) {
    let (lines, waiting) = mpsc::channel(QUEUE);
    let patience = core.limits.wire.idle_timeout;
    let writing = tokio::spawn(write(output, waiting, patience));
    let connection = StdioConnection {
        session: core.connection(),
        core: Arc::clone(core),
        outlet: ServerOutlet::Lines(lines.clone()),
    };
    tokio::select! {
        () = connection.read(input) => {
            // What was asked before the input ended is answered, if that does not take long.
            let _ = tokio::time::timeout(core.limits.drain, connection.session.drained()).await;
        }
        () = core.stop.cancelled() => {}
        () = lines.closed() => {}
    }
    core.end(&connection.session).await;
    core.stop.cancel();
    drop((connection, lines));
    // Calls let go of their end when they are over; a client that does not read is not waited for.
    let mut writing = writing;
    if tokio::time::timeout(core.limits.drain, &mut writing)
        .await
        .is_err()
    {
        writing.abort();
    }
}

/// Writes lines until there are no more or the other end does not take them.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<String>,
    patience: std::time::Duration,
) {
    while let Some(mut line) = waiting.recv().await {
        line.push('\n');
        let writing = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        let Ok(Ok(())) = tokio::time::timeout(patience, writing).await else {
            return;
        };
    }
}

struct StdioConnection {
    core: Arc<Core>,
    session: Arc<McpSession>,
    outlet: ServerOutlet,
}

impl StdioConnection {
    async fn read(&self, input: impl AsyncRead + Unpin) {
        let most = self.core.limits.wire.max_message_bytes;
        let mut reader = LineReader::new(BufReader::new(input), most);
        loop {
            let text = match reader.next().await {
                Ok(Some(WireLine::Whole(text) | WireLine::Cut(text))) => text,
                Ok(Some(WireLine::TooLong { .. })) => {
                    let failure = RpcFailure::new(rpc::INVALID_REQUEST, "the message is too large");
                    self.say(&Value::Null, Err(failure)).await;
                    continue;
                }
                Ok(None) | Err(_) => return,
            };
            match rpc::parse(&text) {
                Ok(RpcMessage::Request { id, method, params }) => {
                    let era = era_of(&method, &params, None);
                    let request = McpRequest {
                        era,
                        id,
                        method,
                        params,
                    };
                    self.take(request).await;
                }
                Ok(RpcMessage::Notification { method, params }) => self.hear(&method, &params),
                // Nobody was asked anything.
                Ok(RpcMessage::Response { .. }) => {}
                Err(invalid) => {
                    let _ = self.outlet.send(&invalid.to_response()).await;
                }
            }
        }
    }

    async fn say(&self, id: &Value, outcome: RequestResult) {
        // That the client is gone is noticed elsewhere.
        let _ = self.outlet.send(&response(id, outcome)).await;
    }

    fn hear(&self, method: &str, params: &Value) {
        match McpNotification::parse(method) {
            Some(McpNotification::Cancelled) => {
                if let Some(id) = params.get("requestId") {
                    self.session.cancel(id);
                }
            }
            Some(McpNotification::Initialized) => {
                let (session, outlet) = (Arc::clone(&self.session), self.outlet.clone());
                // Another one takes the place of the first.
                let over = session.listen();
                self.core.spawn(async move {
                    let changes = session.tools.changes();
                    write_changes(&outlet, changes, ChangeSubscription::Session, &over).await;
                });
            }
            _ => {}
        }
    }

    async fn take(&self, request: McpRequest) {
        let core = &self.core;
        match request.era {
            McpEra::Modern => {
                if let Err(failure) = envelope::check(&request, None) {
                    return self.say(&request.id, Err(failure)).await;
                }
            }
            McpEra::Legacy if request.method == McpMethod::Initialize.as_str() => {
                let outcome = core.initialize(&self.session, &request.params);
                return self.say(&request.id, outcome).await;
            }
            McpEra::Legacy => {
                if request.method != McpMethod::Ping.as_str() && !self.session.is_initialized() {
                    let message = "the session must begin with `initialize`";
                    let failure = RpcFailure::new(rpc::INVALID_REQUEST, message);
                    return self.say(&request.id, Err(failure)).await;
                }
            }
        }
        match core.begin(&self.session, &request, true) {
            RequestStart::Ready(outcome) => self.say(&request.id, outcome).await,
            RequestStart::Running(running) => {
                let outlet = self.outlet.clone();
                core.spawn(async move {
                    write_call(&outlet, request.era, &request.id, running).await;
                });
            }
            RequestStart::Listening(listening) => {
                let outlet = self.outlet.clone();
                core.spawn(async move { listening.serve(&outlet, &request.id).await });
            }
        }
    }
}
