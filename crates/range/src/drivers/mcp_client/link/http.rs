//! A server over Streamable HTTP: every message is a POST, its answer JSON or a stream.

use std::time::Duration;

use proofhouse_protocol::mcp::header;
use proofhouse_protocol::{ACCEPT_JSON_OR_EVENTS, EVENT_STREAM, JSON};
use proofhouse_wire::client::{ClientError, StreamedResponse};
use proofhouse_wire::{HeaderMap, Method};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::delivery::DeliveryModifiers;
use crate::drivers::client::post::Poster;
use crate::facts::UnseenKind;

use super::{
    Arrival, Garbage, Inbound, LinkEnd, MessageOrigin, OutgoingMessage, SendError, Sender, flood,
    messages,
};

/// Requests under way; a server that does not answer is not sent more.
const MAX_POSTS: usize = 64;
/// How often a stream that broke off is asked for the rest.
const MAX_RESUMES: usize = 3;
/// How long to wait before that, unless the server says otherwise, and at most.
const RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(5);
/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// A server that is posted to.
pub(in super::super) struct HttpLink {
    poster: Poster,
    inbound: Sender,
    tasks: JoinSet<()>,
    posts: u64,
    max_batch: usize,
    /// The session, once the server has given one.
    pub(in super::super) session: Option<String>,
    /// The version that every request names in the legacy era, once it is agreed on.
    pub(in super::super) version: Option<String>,
}

impl HttpLink {
    pub(in super::super) fn new(poster: Poster, inbound: Sender, max_batch: usize) -> Self {
        Self {
            poster,
            inbound,
            tasks: JoinSet::new(),
            posts: 0,
            max_batch,
            session: None,
            version: None,
        }
    }

    pub(in super::super) fn url(&self) -> &str {
        self.poster.url()
    }

    fn headers(&self, accept: &str, more: &[(String, String)]) -> HeaderMap {
        let session = self.session.as_deref().map(|id| (header::SESSION_ID, id));
        let version = self.version.as_deref();
        let version = version.map(|version| (header::PROTOCOL_VERSION, version));
        let more = more.iter().map(|(name, value)| (&**name, &**value));
        let own = [("content-type", JSON), ("accept", accept)];
        self.poster
            .headers(own.into_iter().chain(session).chain(version).chain(more))
    }

    /// Posts a message in a task of its own; the number is that of its answer.
    pub(super) fn send(
        &mut self,
        outgoing: &OutgoingMessage<'_>,
    ) -> Result<MessageOrigin, SendError> {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MAX_POSTS {
            return Err(SendError::TooManyWait { limit: MAX_POSTS });
        }
        let headers = self.headers(ACCEPT_JSON_OR_EVENTS, &outgoing.headers);
        let text = outgoing.delivery.shape(outgoing.message.to_string());
        let copies = if outgoing.delivery.duplicate_ids {
            2
        } else {
            1
        };
        let mut source = MessageOrigin::Post(self.posts);
        for copy in 0..copies {
            self.posts += 1;
            if copy == 0 {
                source = MessageOrigin::Post(self.posts);
            }
            let post = Post {
                poster: self.poster.clone(),
                to: ArrivalSink {
                    inbound: self.inbound.clone(),
                    source: MessageOrigin::Post(self.posts),
                    max_batch: self.max_batch,
                },
                // Only a request can be left without an answer.
                id: outgoing
                    .message
                    .get("method")
                    .and(outgoing.message.get("id"))
                    .cloned(),
                headers: headers.clone(),
                resume: self.headers(EVENT_STREAM, &[]),
            };
            let (text, delivery) = (text.clone(), outgoing.delivery.clone());
            self.tasks.spawn(post.run(text, delivery));
        }
        Ok(source)
    }

    /// Opens the stream that the server may use at any time; one that offers none says so.
    pub(in super::super) fn listen(&mut self) {
        let listening = Post {
            poster: self.poster.clone(),
            to: ArrivalSink {
                inbound: self.inbound.clone(),
                source: MessageOrigin::Stream,
                max_batch: self.max_batch,
            },
            id: None,
            headers: HeaderMap::new(),
            resume: self.headers(EVENT_STREAM, &[]),
        };
        self.tasks.spawn(listening.listen());
    }

    /// Ends the session where there is one.
    pub(super) async fn close(mut self) {
        self.tasks.shutdown().await;
        if self.session.is_some() {
            let headers = self.headers(JSON, &[]);
            let goodbye = self.poster.bare(Method::DELETE, headers);
            let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        }
    }
}

/// Where what arrives goes.
struct ArrivalSink {
    inbound: Sender,
    source: MessageOrigin,
    max_batch: usize,
}

impl ArrivalSink {
    async fn push(&self, what: Arrival) {
        let source = self.source;
        // Nobody listens any more when the run is over.
        let _ = self.inbound.send(Inbound { source, what }).await;
    }
}

/// One request under way.
struct Post {
    poster: Poster,
    to: ArrivalSink,
    /// The id of the request, when it is one.
    id: Option<Value>,
    headers: HeaderMap,
    /// Headers for asking for the rest of a stream.
    resume: HeaderMap,
}

/// How far a stream was read.
#[derive(Default)]
struct StreamProgress {
    last_id: Option<String>,
    retry: Option<Duration>,
    answered: bool,
}

impl Post {
    async fn run(self, text: String, delivery: DeliveryModifiers) {
        for notification in flood(&delivery) {
            let plain = DeliveryModifiers::default();
            let posting = self.poster.post(&plain, self.headers.clone(), notification);
            if posting.await.is_err() {
                break;
            }
        }
        let posting = self.poster.post(&delivery, self.headers.clone(), text);
        let end = match posting.await {
            Ok(response) => self.take(response).await,
            Err(error) => LinkEnd {
                unreachable: matches!(error, ClientError::Connect { .. }),
                problem: Some(error.to_string()),
            },
        };
        self.to.push(Arrival::Ended(end)).await;
    }

    async fn take(&self, response: StreamedResponse) -> LinkEnd {
        let session = response.header(header::SESSION_ID).map(str::to_owned);
        let status = response.status.as_u16();
        self.to.push(Arrival::Head { status, session }).await;
        if !response.is_event_stream() {
            return match response.bytes().await {
                Ok(body) if body.iter().all(u8::is_ascii_whitespace) => LinkEnd::default(),
                Ok(body) => {
                    for what in messages(&body, self.to.max_batch) {
                        self.to.push(what).await;
                    }
                    LinkEnd::default()
                }
                Err(error) => self.unread(&error).await,
            };
        }
        let mut progress = StreamProgress::default();
        let mut end = self.follow(response, &mut progress).await;
        for _ in 0..MAX_RESUMES {
            let Some(last) = &progress.last_id else { break };
            if progress.answered || self.id.is_none() {
                break;
            }
            pause(progress.retry).await;
            match self.get(Some(last)).await {
                Ok(response) if response.status.is_success() && response.is_event_stream() => {
                    end = self.follow(response, &mut progress).await;
                }
                Ok(response) => {
                    let status = response.status;
                    let problem = format!("the stream cannot be resumed: status {status}");
                    end.problem = Some(problem);
                    break;
                }
                Err(error) => end = failed(&error),
            }
        }
        end
    }

    /// Reads a stream to its end, or to the answer.
    async fn follow(&self, response: StreamedResponse, progress: &mut StreamProgress) -> LinkEnd {
        let mut events = response.events();
        loop {
            match events.next().await {
                Ok(Some(event)) => {
                    progress.last_id = event.id.or(progress.last_id.take());
                    progress.retry = event.retry.map(Duration::from_millis).or(progress.retry);
                    if event.data.is_empty() {
                        continue;
                    }
                    for what in messages(event.data.as_bytes(), self.to.max_batch) {
                        if let Arrival::Message(message) = &what
                            && self.id.is_some()
                            && message.get("method").is_none()
                            && message.get("id") == self.id.as_ref()
                        {
                            progress.answered = true;
                        }
                        self.to.push(what).await;
                    }
                    // A resumed stream may be the server's general one, which has no end.
                    if progress.answered && progress.last_id.is_some() {
                        return LinkEnd::default();
                    }
                }
                Ok(None) => return LinkEnd::default(),
                // One that can be resumed has lost nothing yet.
                Err(error) if progress.last_id.is_some() || self.id.is_none() => {
                    return failed(&error);
                }
                Err(error) => return self.unread(&error).await,
            }
        }
    }

    /// An answer could not be read to its end.
    async fn unread(&self, error: &ClientError) -> LinkEnd {
        if let Some(kind) = UnseenKind::of_answer(error) {
            let garbage = Garbage::lost(kind, error.to_string(), 0);
            self.to.push(Arrival::Garbage(garbage)).await;
        }
        failed(error)
    }

    async fn get(&self, last: Option<&str>) -> Result<StreamedResponse, ClientError> {
        let mut headers = self.resume.clone();
        if let Some(last) = last.and_then(|last| last.parse().ok()) {
            headers.insert(header::LAST_EVENT_ID, last);
        }
        self.poster.bare(Method::GET, headers).await
    }

    async fn listen(self) {
        let mut progress = StreamProgress::default();
        let mut end = LinkEnd::default();
        for attempt in 0..=MAX_RESUMES {
            if attempt > 0 {
                pause(progress.retry).await;
            }
            end = match self.get(progress.last_id.as_deref()).await {
                Ok(response) if response.status.is_success() && response.is_event_stream() => {
                    let (status, session) = (response.status.as_u16(), None);
                    self.to.push(Arrival::Head { status, session }).await;
                    self.follow(response, &mut progress).await
                }
                // Most servers offer no such stream.
                Ok(_) => break,
                Err(error) => failed(&error),
            };
        }
        self.to.push(Arrival::Ended(end)).await;
    }
}

async fn pause(retry: Option<Duration>) {
    tokio::time::sleep(retry.unwrap_or(RETRY).min(MAX_RETRY)).await;
}

fn failed(error: &ClientError) -> LinkEnd {
    LinkEnd {
        problem: Some(error.to_string()),
        unreachable: false,
    }
}
