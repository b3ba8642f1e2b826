//! A model over OpenAI's chat completions, so that an agent of somebody else can be given a simulation or a
//! recording in place of its own model.
//!
//! Every request brings the whole conversation, and nothing is kept between two of them. A reply is sent once it
//! is whole, as events where the client asks for a stream.

mod read;
mod write;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_wire::server::{BoundServer, Handler, Reply, ReplyBody, Request};
use proofhouse_wire::{CancellationToken, Method, StatusCode, origin};
use serde_json::json;
use tokio::sync::Semaphore;

use self::read::CompletionsRequest;
use crate::model::{Model, ModelError, ModelErrorKind, ModelEvent};

/// What clients append to the base URL that they are given.
const COMPLETIONS: &str = "/v1/chat/completions";
/// Where clients ask which models there are.
const MODELS: &str = "/v1/models";

/// How much clients may ask of a served model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelServerLimits {
    /// Sizes and times of connections.
    pub wire: proofhouse_wire::WireLimits,
    /// Replies under way; a client is told to come back for more.
    pub max_replies: usize,
    /// Messages of one conversation.
    pub max_messages: usize,
    /// Tools in one request.
    pub max_tools: usize,
    /// How long one reply may take.
    pub reply: Duration,
}

impl Default for ModelServerLimits {
    /// 64 replies at a time of at most two minutes; conversations of 2,000 messages with 512 tools.
    fn default() -> Self {
        Self {
            wire: proofhouse_wire::WireLimits::default(),
            max_replies: 64,
            max_messages: 2_000,
            max_tools: 512,
            reply: Duration::from_secs(120),
        }
    }
}

/// A model that others can reach.
///
/// ```
/// use proofhouse_agent::model::{self, ModelConfig};
/// use proofhouse_agent::serve::{ModelServer, ModelServerLimits};
/// use proofhouse_wire::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = model::open("sim:gullible", &ModelConfig::default())?;
/// let here = "127.0.0.1:0".parse()?;
/// let server = ModelServer::bind(model, here, ModelServerLimits::default()).await?;
/// assert!(server.base_url().ends_with("/v1"));
/// let stop = CancellationToken::new();
/// stop.cancel();
/// server.serve(stop).await;
/// # Ok(())
/// # }
/// ```
pub struct ModelServer {
    bound: BoundServer,
    model: Arc<dyn Model>,
    limits: ModelServerLimits,
}

impl ModelServer {
    /// Takes the address; port 0 takes a free one. Connections wait until [`ModelServer::serve`].
    ///
    /// # Errors
    ///
    /// Returns the error of the system when the address cannot be had.
    pub async fn bind(
        model: Arc<dyn Model>,
        address: SocketAddr,
        limits: ModelServerLimits,
    ) -> std::io::Result<Self> {
        let bound = BoundServer::new(address).await?;
        Ok(Self {
            bound,
            model,
            limits,
        })
    }

    /// The base URL that clients are given.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.bound.address())
    }

    /// Serves until `stop` is cancelled.
    pub async fn serve(self, stop: CancellationToken) {
        let wire = self.limits.wire.clone();
        let handler = CompletionsHttp {
            address: self.bound.address(),
            room: Semaphore::new(self.limits.max_replies),
            model: self.model,
            limits: self.limits,
        };
        self.bound.serve(Arc::new(handler), wire, stop).await;
    }
}

struct CompletionsHttp {
    address: SocketAddr,
    room: Semaphore,
    model: Arc<dyn Model>,
    limits: ModelServerLimits,
}

impl Handler for CompletionsHttp {
    async fn handle(&self, request: Request) -> Reply {
        if !origin::is_allowed(&request.headers, self.address) {
            return refuse(StatusCode::FORBIDDEN, "this origin is not allowed");
        }
        let wanted = match request.path.as_str() {
            COMPLETIONS => Method::POST,
            MODELS => Method::GET,
            _ => {
                let message = format!("there is only {COMPLETIONS} and {MODELS}");
                return refuse(StatusCode::NOT_FOUND, &message);
            }
        };
        if request.method != wanted {
            let refused = refuse(StatusCode::METHOD_NOT_ALLOWED, &format!("use {wanted}"));
            return refused.with_header("allow", wanted.as_str());
        }
        if wanted == Method::GET {
            return Reply::json(StatusCode::OK, self.models());
        }
        let body = match &request.body {
            Ok(body) => body,
            Err(problem) => return refuse(problem.status(), &problem.to_string()),
        };
        match CompletionsRequest::read(body, &self.limits) {
            Ok(question) => self.answer(&question).await,
            Err(error) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

impl CompletionsHttp {
    fn models(&self) -> String {
        let model = json!({
            "id": self.model.name(), "object": "model", "created": 0, "owned_by": "proofhouse",
        });
        json!({"object": "list", "data": [model]}).to_string()
    }

    async fn answer(&self, question: &CompletionsRequest) -> Reply {
        let Ok(_permit) = self.room.try_acquire() else {
            return refuse(StatusCode::TOO_MANY_REQUESTS, "too many replies at a time");
        };
        let mut events: Vec<ModelEvent> = Vec::new();
        let cancel = CancellationToken::new();
        // A client that leaves drops this future, and the model is told.
        let _told = cancel.clone().drop_guard();
        let replying = self.model.complete(&question.request, &mut events, &cancel);
        let reply = match tokio::time::timeout(self.limits.reply, replying).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => return refuse(status(&error), &error.message),
            Err(_) => {
                return refuse(StatusCode::GATEWAY_TIMEOUT, "the reply took too long");
            }
        };
        if question.stream {
            Reply::empty(StatusCode::OK)
                .with_header("content-type", "text/event-stream")
                .with_header("cache-control", "no-store")
                .with_body(ReplyBody::Whole(
                    write::events(&reply, &events, question.tell_usage).into(),
                ))
        } else {
            Reply::json(StatusCode::OK, write::whole(&reply))
        }
    }
}

/// Clients ask again for statuses of 500 and above, and should only where that may help.
fn status(error: &ModelError) -> StatusCode {
    match error.kind {
        ModelErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ModelErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        _ if error.is_recoverable() => StatusCode::BAD_GATEWAY,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    let kind = if status.is_server_error() {
        "server_error"
    } else {
        "invalid_request_error"
    };
    let error = json!({"message": message, "type": kind, "param": null, "code": null});
    Reply::json(status, json!({"error": error}).to_string())
}
