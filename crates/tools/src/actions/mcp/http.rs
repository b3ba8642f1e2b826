//! The link to a server over Streamable HTTP: what the SDK wants to send goes out through the guarded
//! client, and what comes back passes the sieve.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use proofhouse_protocol::mcp::header;
use proofhouse_protocol::{ACCEPT_JSON_OR_EVENTS, EVENT_STREAM, JSON};
use proofhouse_wire::client::{SseEvents, StreamedResponse};
use proofhouse_wire::trace::TRACEPARENT;
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, RequestParamsMeta as _,
    ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use url::Url;

use super::endpoint::Endpoint;
use super::failure::LinkError;
use super::sieve::{Allowance, Sieve, is_answer};
use crate::runtime::ActionFailure;

/// How long a server of the legacy era may think about a question that it does not know.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(5);

/// The shortest and the longest wait before a broken stream is taken up again; servers may ask for
/// something in between.
const RESUME_WAIT_MS: std::ops::RangeInclusive<u64> = 250..=10_000;

/// How many streams are opened at once, and how many per second in the long run. A server whose streams
/// all break would be asked again without end.
const STREAM_BURST: f64 = 5.0;
const STREAMS_PER_SECOND: f64 = 0.2;

type StreamResponse<T> = Result<T, StreamableHttpError<LinkError>>;
type SseStream = BoxStream<'static, Result<Sse, SseError>>;

/// Sends the messages of the SDK.
#[derive(Clone)]
pub(super) struct SdkHttpTransport {
    endpoint: Endpoint,
    streams: Arc<Allowance>,
}

impl SdkHttpTransport {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            streams: Arc::new(Allowance::new(STREAM_BURST, STREAMS_PER_SECOND)),
        }
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> StreamResponse<StreamableHttpPostResponse> {
        let request = match message {
            ClientJsonRpcMessage::Request(request) => Some(request),
            _ => None,
        };
        let discovers = request
            .filter(|request| matches!(request.request, ClientRequest::DiscoverRequest(_)))
            .map(|request| request.id.clone());
        let mut all = protocol_headers(headers, session)?;
        all.insert("content-type", HeaderValue::from_static(JSON));
        // What the call is for stands in a header as well, for those on the way that do not read bodies.
        let traceparent = request.and_then(|request| match &request.request {
            ClientRequest::CallToolRequest(call) => call.params.traceparent(),
            _ => None,
        });
        if let Some(value) = traceparent.and_then(|value| HeaderValue::from_str(value).ok()) {
            all.insert(TRACEPARENT, value);
        }
        let body = serde_json::to_vec(message)?;
        let url = url(uri)?;
        let sending = self
            .endpoint
            .send(Method::POST, &url, &all, Bytes::from(body));
        let response = match &discovers {
            None => sending.await,
            Some(id) => match tokio::time::timeout(DISCOVER_PATIENCE, sending).await {
                Ok(response) => response,
                Err(_) => return Ok(legacy(id, "no answer in time")),
            },
        };
        let response = response.map_err(StreamableHttpError::Client)?;
        let status = response.status.as_u16();
        let new_session = response.header(header::SESSION_ID).map(str::to_owned);
        if matches!(status, 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == 404 && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !response.status.is_success() {
            return self
                .refused(response, request.map(|request| &request.id), discovers)
                .await;
        }
        if response.is_event_stream() {
            let stream = self.stream(response.events());
            return Ok(StreamableHttpPostResponse::Sse(stream, new_session));
        }
        let body = response.bytes().await;
        let body =
            body.map_err(|error| StreamableHttpError::Client(self.endpoint.failure(&error)))?;
        match self.endpoint.sieve().admit(&body) {
            Some(answer) if is_answer(&answer) => {
                Ok(StreamableHttpPostResponse::Json(answer, new_session))
            }
            // Notifications and answers of ours need no reply, whatever the server says to them.
            _ if request.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            _ => match discovers {
                Some(id) => Ok(legacy(&id, "no JSON-RPC answer")),
                None => Err(StreamableHttpError::Client(LinkError::new(
                    ActionFailure::Response,
                    "the server answers with something else than JSON-RPC",
                ))),
            },
        }
    }

    /// A status that is an error. Its body may be an answer all the same.
    async fn refused(
        &self,
        response: StreamedResponse,
        request: Option<&RequestId>,
        discovers: Option<RequestId>,
    ) -> StreamResponse<StreamableHttpPostResponse> {
        let status = response.status.as_u16();
        let body = response.bytes().await.unwrap_or_default();
        if !matches!(status, 401 | 403) {
            if let (Some(id), Some(ServerJsonRpcMessage::Error(mut error))) =
                (request, self.endpoint.sieve().admit(&body))
            {
                // Whoever could not read the request cannot repeat its id.
                error.id = Some(id.clone());
                let answer = ServerJsonRpcMessage::Error(error);
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
            if let (Some(id), 400..=499) = (discovers, status) {
                return Ok(legacy(&id, &format!("HTTP {status}")));
            }
        }
        Err(StreamableHttpError::Client(
            self.endpoint.status_error(status, &body),
        ))
    }

    fn stream(&self, events: SseEvents) -> SseStream {
        let sieve = Arc::clone(self.endpoint.sieve());
        let endpoint = self.endpoint.clone();
        futures_util::stream::unfold(Some(events), move |events| {
            let (sieve, endpoint) = (Arc::clone(&sieve), endpoint.clone());
            async move {
                let mut events = events?;
                match events.next().await {
                    Ok(Some(event)) => Some((Ok(sifted(event, &sieve)), Some(events))),
                    Ok(None) => None,
                    Err(error) => {
                        let error = Box::new(endpoint.failure(&error));
                        Some((Err(SseError::Body(error)), None))
                    }
                }
            }
        })
        .boxed()
    }
}

/// An event whose data the SDK can read, or none.
fn sifted(event: proofhouse_wire::sse::SseEvent, sieve: &Sieve) -> Sse {
    let data = (!event.data.is_empty())
        .then(|| sieve.admit_text(event.data.as_bytes()))
        .flatten();
    Sse {
        event: event.event,
        data,
        id: event.id,
        retry: event
            .retry
            .map(|wait| wait.clamp(*RESUME_WAIT_MS.start(), *RESUME_WAIT_MS.end())),
    }
}

/// The answer to `server/discover` of a server that does not know it.
fn legacy(id: &RequestId, reason: &str) -> StreamableHttpPostResponse {
    let error = ErrorData::invalid_request(reason.to_owned(), None);
    StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id.clone())), None)
}

fn url(uri: &str) -> StreamResponse<Url> {
    Url::parse(uri).map_err(|error| {
        StreamableHttpError::Client(LinkError::new(ActionFailure::Setting, error.to_string()))
    })
}

fn protocol_headers(
    headers: HashMap<HeaderName, HeaderValue>,
    session: Option<&str>,
) -> StreamResponse<HeaderMap> {
    let mut all: HeaderMap = headers.into_iter().collect();
    let accept = HeaderValue::from_static(ACCEPT_JSON_OR_EVENTS);
    all.insert("accept", accept);
    if let Some(session) = session {
        let session = HeaderValue::from_str(session).map_err(|_| {
            let error = LinkError::new(ActionFailure::Response, "the session's id is no header");
            StreamableHttpError::Client(error)
        })?;
        all.insert(header::SESSION_ID, session);
    }
    Ok(all)
}

impl StreamableHttpClient for SdkHttpTransport {
    type Error = LinkError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> StreamResponse<StreamableHttpPostResponse> {
        self.post(&uri, &message, session_id.as_deref(), custom_headers)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> StreamResponse<()> {
        let headers = protocol_headers(custom_headers, Some(&session_id))?;
        let url = url(&uri)?;
        let sent = self
            .endpoint
            .send(Method::DELETE, &url, &headers, Bytes::new());
        let response = sent.await.map_err(StreamableHttpError::Client)?;
        match response.status.as_u16() {
            200..=299 | 404 | 410 => Ok(()),
            405 => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            status => Err(StreamableHttpError::Client(
                self.endpoint.status_error(status, &[]),
            )),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> StreamResponse<SseStream> {
        if !self.streams.take() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let mut headers = protocol_headers(custom_headers, session_id.as_deref())?;
        headers.insert("accept", HeaderValue::from_static(EVENT_STREAM));
        if let Some(id) = last_event_id
            && let Ok(id) = HeaderValue::from_str(&id)
        {
            headers.insert(header::LAST_EVENT_ID, id);
        }
        let url = url(&uri)?;
        let sent = self
            .endpoint
            .send(Method::GET, &url, &headers, Bytes::new());
        let response = sent.await.map_err(StreamableHttpError::Client)?;
        if !response.status.is_success() || !response.is_event_stream() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.stream(response.events()))
    }
}
