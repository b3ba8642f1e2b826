//! The link to a server that is a child process: a line each way per message.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proofhouse_wire::{CancellationToken, LineReader, WireLine};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::BufReader;
use tokio::process::ChildStdout;
use tokio::sync::mpsc;

use super::failure::{LinkError, too_long};
use super::sieve::{Sieve, is_answer};
use crate::runtime::ActionFailure;

/// How much a server may write between two answers: notifications, log lines that went astray, garbage.
/// After that it is cut off.
const MAX_UNASKED_BYTES: u64 = 64 << 20;

/// The client's end of the pipes.
pub(super) struct StdioTransport {
    lines: LineReader<BufReader<ChildStdout>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    closing: CancellationToken,
    sieve: Arc<Sieve>,
    unasked: u64,
    /// The requests that have no answer yet, by the text of their ids: some servers make texts of numbers.
    waiting: HashMap<String, PendingRequest>,
    /// Whether a server said that it is of the modern era after it was no longer asked.
    late_discovery: Arc<AtomicBool>,
}

/// A request that has no answer yet.
struct PendingRequest {
    id: RequestId,
    /// Whether it is one for news, whose answer comes at the end of everything.
    listens: bool,
}

impl StdioTransport {
    pub(super) fn new(
        lines: LineReader<BufReader<ChildStdout>>,
        outgoing: mpsc::Sender<Vec<u8>>,
        closing: CancellationToken,
        sieve: Arc<Sieve>,
        late_discovery: Arc<AtomicBool>,
    ) -> Self {
        Self {
            lines,
            outgoing,
            closing,
            sieve,
            unasked: 0,
            waiting: HashMap::new(),
            late_discovery,
        }
    }

    fn remember(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        match item {
            ClientJsonRpcMessage::Request(request) => {
                // The first question is no longer waited for; its answer would be taken for this one's.
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.waiting.clear();
                }
                let waiting = PendingRequest {
                    id: request.id.clone(),
                    listens: matches!(
                        request.request,
                        ClientRequest::SubscriptionsListenRequest(_)
                    ),
                };
                self.waiting.insert(request.id.to_string(), waiting);
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.remove(&id.to_string());
                }
            }
            _ => {}
        }
    }

    /// Whether somebody waits for an answer.
    fn is_awaited(&mut self, answer: &ServerJsonRpcMessage) -> bool {
        let id = match answer {
            ServerJsonRpcMessage::Response(response) => &response.id,
            ServerJsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return false,
            },
            _ => return false,
        };
        let is_awaited = self.waiting.remove(&id.to_string()).is_some();
        if let (false, ServerJsonRpcMessage::Response(response)) = (is_awaited, answer)
            && matches!(response.result, ServerResult::DiscoverResult(_))
        {
            self.late_discovery.store(true, Ordering::Relaxed);
        }
        is_awaited
    }

    /// A line that was passed over must have been the answer, if there is but one that it can be to.
    fn instead_of_a_long_answer(&self) -> Option<ServerJsonRpcMessage> {
        let mut waiting = self.waiting.values().filter(|waiting| !waiting.listens);
        match (waiting.next(), waiting.next()) {
            (Some(one), None) => {
                let id = Some(one.id.clone());
                Some(ServerJsonRpcMessage::error(too_long(), id))
            }
            _ => None,
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = LinkError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), LinkError>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        self.remember(&item);
        async move {
            let mut line = serde_json::to_vec(&item)
                .map_err(|error| LinkError::new(ActionFailure::Arguments, error.to_string()))?;
            line.push(b'\n');
            let sent = outgoing.send(line).await;
            sent.map_err(|_| {
                LinkError::new(ActionFailure::Broken, "the server reads no more messages")
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line.ok()??,
                () = self.closing.cancelled() => return None,
            };
            let (size, message) = match line {
                WireLine::Whole(line) => (line.len() as u64, self.sieve.admit(&line)),
                WireLine::TooLong { bytes } => (bytes, self.instead_of_a_long_answer()),
                WireLine::Cut(line) => (line.len() as u64, None),
            };
            let answer = message.as_ref().filter(|message| is_answer(message));
            let is_awaited = answer.is_some_and(|answer| self.is_awaited(answer));
            if is_awaited {
                self.unasked = 0;
            } else {
                self.unasked += size;
                if self.unasked > MAX_UNASKED_BYTES {
                    tracing::warn!(
                        "an MCP server was cut off: it wrote too much that nobody asked for"
                    );
                    self.closing.cancel();
                    return None;
                }
            }
            match message {
                // An error without an id may be to anything.
                Some(message) if is_awaited || !is_answer(&message) || is_nameless(&message) => {
                    return Some(message);
                }
                _ => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        self.closing.cancel();
        Ok(())
    }
}

fn is_nameless(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Error(error) if error.id.is_none())
}
