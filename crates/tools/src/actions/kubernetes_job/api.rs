//! The cluster's API: the few requests a Job needs, bounded in size and time, repeated with care.
//!
//! Requests are built and sent by the `kube` client. Answers are read here, because the client's own
//! readers have no limit and log what they cannot parse, which may hold secrets.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{
    DeleteParams, GetParams, ListParams, LogParams, PostParams, Preconditions, WatchParams,
};
use kube::client::Body;
use kube::core::Request as Requests;
use proofhouse_wire::retry::{RetryAfter, RetryCause, RetryOn, chance};
use serde_json::Value;
use tokio::time::Instant;

use super::document::JobIdentity;
use super::events::{WatchChange, WatchEvents, take};
use super::objects::{ClusterJob, ClusterPod};
use crate::runtime::{ActionError, ActionFailure, ToolLimits};

/// How many warnings of a namespace are looked through, and how many of them are told.
const MAX_EVENTS: u32 = 500;
const MAX_WARNINGS: usize = 10;
/// How many Pods of a Job are looked at; a retried Job has one per try.
const MAX_PODS: u32 = 100;
/// The longest wait between two attempts to reach a cluster that is away.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// After so many seconds the cluster ends a watch by itself.
const WATCH_SECONDS: u32 = 290;

/// Why a request to a cluster came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The cluster answered with an error.
    #[error("the cluster answers {code}: {message}")]
    Status {
        /// The status.
        code: u16,
        /// Its reason in a word.
        reason: String,
        /// What it says.
        message: String,
        /// When to ask again.
        retry_after: Option<Duration>,
    },
    /// No connection, or one that broke after something may have been sent.
    #[error("the cluster cannot be reached: {reason}")]
    Unreachable {
        /// Why.
        reason: String,
        /// Whether the cluster may have heard the request.
        was_sent: bool,
    },
    /// No whole answer in time.
    #[error("the cluster gave no whole answer in time")]
    Slow,
    /// An answer larger than it may be.
    #[error("the answer of the cluster is too large")]
    TooLarge,
    /// An answer that is none.
    #[error("{0}")]
    Garbage(&'static str),
    /// A Job of the name is there and is not ours.
    #[error("a Job of the same name is there, which is not ours")]
    Foreign,
}

impl ClusterError {
    /// The status that the cluster answered with.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Unreachable { .. }
            | Self::Slow
            | Self::TooLarge
            | Self::Garbage(_)
            | Self::Foreign => None,
        }
    }

    /// Why it was forbidden, if not because of who asks: `quota` or `admission`. Both may pass.
    #[must_use]
    pub fn passing_cause(&self) -> Option<&'static str> {
        match self {
            Self::Status { code, message, .. } => passing_cause(*code, message),
            Self::Unreachable { .. }
            | Self::Slow
            | Self::TooLarge
            | Self::Garbage(_)
            | Self::Foreign => None,
        }
    }

    /// Whether the cluster will not change its mind.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Whether the cluster did not do what was asked, for sure.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        matches!(self.code(), Some(400..=499))
            || matches!(
                self,
                Self::Foreign
                    | Self::Unreachable {
                        was_sent: false,
                        ..
                    }
            )
    }

    fn retry_cause(&self) -> RetryCause {
        match self {
            Self::Status {
                code, retry_after, ..
            } => RetryCause::Status {
                code: *code,
                retry_after: *retry_after,
            },
            Self::Unreachable { was_sent, .. } => {
                if *was_sent {
                    RetryCause::Broken
                } else {
                    RetryCause::NotSent
                }
            }
            Self::Slow | Self::TooLarge | Self::Garbage(_) | Self::Foreign => RetryCause::Final,
        }
    }
}

/// What was read of a log.
pub(super) struct Log {
    pub(super) bytes: Vec<u8>,
    /// Whether it went on.
    pub(super) is_cut: bool,
}

/// Sends requests to one cluster, bounded in size and time and repeated where that may help.
#[derive(Clone)]
pub struct ClusterApi {
    client: Client,
    host: String,
    pub(super) limits: ToolLimits,
}

impl std::fmt::Debug for ClusterApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The client holds credentials.
        f.debug_struct("ClusterApi")
            .field("host", &self.host)
            .finish()
    }
}

impl ClusterApi {
    pub(super) fn new(client: Client, host: String, limits: ToolLimits) -> Self {
        Self {
            client,
            host,
            limits,
        }
    }

    /// Asks for something else than a tool's Job: the path with its query, and the object that is sent, if one is. Returns what
    /// the cluster answers.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached, refuses, or answers with what is no JSON.
    pub async fn ask(
        &self,
        method: http::Method,
        path: &str,
        object: Option<&Value>,
    ) -> Result<Value, ClusterError> {
        let body = object.map(|object| object.to_string().into_bytes());
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.unwrap_or_default());
        let request = request.map_err(kube::core::request::Error::BuildRequest);
        let bytes = self.send(request, self.limits.max_response_bytes).await?;
        serde_json::from_slice(&bytes)
            .map_err(|_| ClusterError::Garbage("what the cluster answered is no JSON"))
    }

    /// The end of a container's log, as text.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub async fn log_tail(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        lines: i64,
    ) -> Result<String, ClusterError> {
        let params = log_params(container, lines, self.limits.max_response_bytes);
        let request = Requests::new(ClusterPod::path(namespace)).logs(pod, &params);
        let log = self
            .send_for(request, self.limits.max_response_bytes)
            .await?;
        Ok(String::from_utf8_lossy(&log.bytes).into_owned())
    }

    /// Makes the Job. One that is there already and is ours is adopted, so a request whose answer was
    /// lost can be sent again.
    pub(super) async fn create(
        &self,
        identity: &JobIdentity,
        document: &Value,
    ) -> Result<ClusterJob, ClusterError> {
        let params = PostParams {
            field_manager: Some("proofhouse".to_owned()),
            ..PostParams::default()
        };
        let mut request = jobs(identity).create(&params, document.to_string().into_bytes());
        if let Ok(request) = &mut request
            && let Ok(strict) = format!("{}&fieldValidation=Strict", request.uri()).parse()
        {
            // A field that the cluster does not know is an error, as it is for `kubectl`.
            *request.uri_mut() = strict;
        }
        let answer = self.send(request, self.limits.max_response_bytes).await;
        match answer {
            Ok(bytes) => job(&bytes),
            Err(error) if error.code() == Some(409) || matches!(error, ClusterError::Slow) => {
                match self.job(identity).await? {
                    Some(job) if identity.owns(&job.metadata.labels) => Ok(job),
                    Some(_) => Err(ClusterError::Foreign),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The Job as it is now; none if it is gone.
    pub(super) async fn job(
        &self,
        identity: &JobIdentity,
    ) -> Result<Option<ClusterJob>, ClusterError> {
        let request = jobs(identity).get(&identity.name, &GetParams::default());
        match self.send(request, self.limits.max_response_bytes).await {
            Ok(bytes) => job(&bytes).map(Some),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The Pods of the Job with this uid. Labels can be put on anything; owners cannot.
    pub(super) async fn pods(
        &self,
        identity: &JobIdentity,
        uid: &str,
    ) -> Result<Vec<ClusterPod>, ClusterError> {
        let params = ListParams::default()
            .labels(&identity.selector())
            .limit(MAX_PODS);
        let request = pods(identity).list(&params);
        let bytes = self.send(request, self.limits.max_response_bytes).await?;
        let garbage = ClusterError::Garbage("the list of Pods cannot be read");
        let list = serde_json::from_slice::<Value>(&bytes).ok();
        let Some(Value::Array(items)) = list.and_then(|mut list| take(&mut list, "items")) else {
            return Err(garbage);
        };
        let mut found = Vec::new();
        for item in items {
            let Some(pod) = ClusterPod::read(item) else {
                return Err(garbage);
            };
            let mut owners = pod.metadata.owner_references.iter();
            if owners.any(|owner| owner.uid == uid) {
                found.push(pod);
            }
        }
        Ok(found)
    }

    /// What the cluster warned of about these objects, oldest first. An account that may not read it is told nothing.
    pub(super) async fn warnings(&self, identity: &JobIdentity, uids: &[&str]) -> Vec<String> {
        let path = format!("/api/v1/namespaces/{}/events", identity.namespace);
        let params = ListParams::default()
            .fields("type=Warning")
            .limit(MAX_EVENTS);
        let request = Requests::new(path).list(&params);
        let Ok(bytes) = self.send(request, self.limits.max_response_bytes).await else {
            return Vec::new();
        };
        let list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let events = list["items"].as_array().into_iter().flatten();
        let about_them = events.filter(|event| {
            let uid = event["involvedObject"]["uid"].as_str();
            uid.is_some_and(|uid| uids.contains(&uid)) && event["type"] == "Warning"
        });
        let mut told: Vec<String> = about_them
            .map(|event| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (about, reason) = (&event["involvedObject"], text(&event["reason"]));
                let (kind, name) = (text(&about["kind"]), text(&about["name"]));
                format!("{kind} {name}: {reason}: {}", text(&event["message"]))
            })
            .collect();
        told.dedup();
        told.split_off(told.len().saturating_sub(MAX_WARNINGS))
    }

    /// The last lines of a container's log; of these the first bytes, if they are too many. With `previous`, of the
    /// container before it was started again.
    pub(super) async fn log(
        &self,
        identity: &JobIdentity,
        pod: &str,
        container: &str,
        lines: i64,
        previous: bool,
    ) -> Result<Log, ClusterError> {
        let most = self.limits.max_response_bytes;
        let params = LogParams {
            previous,
            ..log_params(container, lines, most)
        };
        let request = pods(identity).logs(pod, &params);
        self.send_for(request, most).await
    }

    /// Deletes the Job with this uid, and its Pods in the background. One that is gone is fine, and so is
    /// another one of the same name.
    pub(super) async fn delete(
        &self,
        identity: &JobIdentity,
        uid: &str,
    ) -> Result<(), ClusterError> {
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        });
        let request = jobs(identity).delete(&identity.name, &params);
        match self.send(request, self.limits.max_response_bytes).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The changes of the Job after a version, as the cluster tells them. It ends at the first trouble;
    /// whoever listens asks for the Job and watches again.
    pub(super) fn watch(
        &self,
        identity: &JobIdentity,
        version: &str,
    ) -> BoxStream<'static, WatchChange> {
        let params = WatchParams::default()
            .fields(&format!("metadata.name={}", identity.name))
            .timeout(WATCH_SECONDS);
        let Ok(request) = jobs(identity).watch(&params, version) else {
            return stream::empty().boxed();
        };
        let client = self.client.clone();
        let opening = stream::once(async move {
            let response = client.send(request.map(Body::from)).await.ok()?;
            let is_watch = response.status().is_success();
            is_watch.then(|| WatchEvents::new(response.into_body()))
        });
        opening
            .filter_map(|events| async { events })
            .flat_map(|events| {
                stream::unfold(Some(events), |events| async {
                    let mut events = events?;
                    let change = events.next().await?;
                    let is_over = matches!(change, WatchChange::Broken | WatchChange::Deleted(_));
                    Some((change, (!is_over).then_some(events)))
                })
            })
            .boxed()
    }

    /// Sends, repeats if that may help, and reads a whole answer.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
        most: usize,
    ) -> Result<Vec<u8>, ClusterError> {
        let answer = self.send_for(request, most).await?;
        if answer.is_cut {
            return Err(ClusterError::TooLarge);
        }
        Ok(answer.bytes)
    }

    async fn send_for(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
        most: usize,
    ) -> Result<Log, ClusterError> {
        let request =
            request.map_err(|_| ClusterError::Garbage("the request cannot be written"))?;
        let retry = &self.limits.retry;
        let mut attempt = 1;
        let mut sent_before = false;
        let patience = Instant::now() + self.limits.outage;
        loop {
            let exchange = self.once(request.clone(), most);
            let answer = tokio::time::timeout(self.limits.http, exchange).await;
            let mut error = match answer.unwrap_or(Err(ClusterError::Slow)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match &mut error {
                ClusterError::Unreachable { was_sent, .. } => {
                    *was_sent |= sent_before;
                    sent_before = *was_sent;
                }
                _ => sent_before = true,
            }
            let cause = error.retry_cause();
            let mut wait = retry.next_wait(RetryOn::Failed, cause, attempt, chance());
            // Nothing here has its effect twice: a Job has a name, and the one that is there is adopted.
            let is_away = matches!(cause, RetryCause::NotSent | RetryCause::Broken);
            if is_away && Instant::now() < patience {
                wait = Some(retry.back_off(attempt, chance()).min(LONGEST_WAIT));
            }
            let Some(wait) = wait else {
                return Err(error);
            };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn once(
        &self,
        request: http::Request<Vec<u8>>,
        most: usize,
    ) -> Result<Log, ClusterError> {
        let sent = self.client.send(request.map(Body::from)).await;
        let response = sent.map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        let is_success = response.status().is_success();
        let retry_after = RetryAfter::of(response.headers()).and_then(RetryAfter::delay);
        let answer = collect(response.into_body(), most).await?;
        if is_success {
            return Ok(answer);
        }
        let told: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        Err(ClusterError::Status {
            code: status,
            reason: text("reason"),
            message: text("message"),
            retry_after,
        })
    }

    /// What an error means for the task. With `chosen`, the model decided what was asked for.
    pub(super) fn failure(&self, error: ClusterError, doing: &str, chosen: bool) -> ActionError {
        let host = &self.host;
        match error {
            ClusterError::Status {
                code,
                reason,
                message,
                ..
            } => {
                let cause = passing_cause(code, &message);
                let failure = match code {
                    _ if cause.is_some() => ActionFailure::HttpStatus,
                    401 | 403 => ActionFailure::Forbidden,
                    400 | 404 | 413 | 422 if !chosen => ActionFailure::Manifest,
                    _ => ActionFailure::HttpStatus,
                };
                let message = match (message.is_empty(), code) {
                    (false, _) => format!("the cluster refuses to {doing}: {message}"),
                    (true, 401) => "the cluster does not accept the credentials".to_owned(),
                    (true, _) => format!("the cluster refuses to {doing}: HTTP {code}"),
                };
                let mut error = ActionError::new(failure, message);
                error.detail.insert("status".to_owned(), code.into());
                if !reason.is_empty() {
                    error.detail.insert("reason".to_owned(), reason.into());
                }
                if let Some(cause) = cause {
                    error.detail.insert("cause".to_owned(), cause.into());
                }
                error
            }
            ClusterError::Unreachable { reason, .. } => ActionError::new(
                ActionFailure::Unreachable,
                format!("cannot talk to the cluster at {host} to {doing}: {reason}"),
            ),
            ClusterError::Slow => {
                let seconds = self.limits.http.as_secs_f32();
                let message = format!("{host} gave no whole answer in {seconds} s to {doing}");
                ActionError::new(ActionFailure::Timeout, message)
            }
            ClusterError::TooLarge => {
                let most = self.limits.max_response_bytes;
                let message = format!("the answer of {host} has more than {most} bytes");
                ActionError::new(ActionFailure::TooLarge, message)
            }
            ClusterError::Garbage(what) => ActionError::new(ActionFailure::Response, what),
            ClusterError::Foreign => {
                let message = "a Job of the same name is there, which this tool did not make";
                let mut error = ActionError::new(ActionFailure::HttpStatus, message);
                error.detail.insert("status".to_owned(), 409.into());
                error
            }
        }
    }
}

/// Why a request was refused, if it is not for who made it: a quota that is used up, or a rule of admission about what was
/// asked for. Both may pass, or be met by asking for something else.
fn passing_cause(code: u16, message: &str) -> Option<&'static str> {
    const QUOTA: [&str; 2] = ["exceeded quota", "failed quota"];
    const ADMISSION: [&str; 7] = [
        "admission webhook",
        "admissionpolicy",
        "violates podsecurity",
        "denied the request",
        "maximum ",
        "minimum ",
        "is being terminated",
    ];
    // Webhooks and policies choose their status; without a choice, policies say 422.
    const RULES: [&str; 2] = ["admission webhook", "admissionpolicy"];
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    // What an authorizer says names the account and what it cannot do.
    if says(&["user \""]) && says(&[" cannot "]) {
        None
    } else if (400..500).contains(&code) && says(&RULES) && says(&["denied"]) {
        Some("admission")
    } else if code != 403 {
        None
    } else if says(&QUOTA) {
        Some("quota")
    } else {
        says(&ADMISSION).then_some("admission")
    }
}

fn log_params(container: &str, lines: i64, most: usize) -> LogParams {
    LogParams {
        container: Some(container.to_owned()),
        tail_lines: Some(lines),
        // One more, to know whether there was more.
        limit_bytes: i64::try_from(most).ok().map(|most| most + 1),
        ..LogParams::default()
    }
}

fn jobs(identity: &JobIdentity) -> Requests {
    Requests::new(ClusterJob::path(&identity.namespace))
}

fn pods(identity: &JobIdentity) -> Requests {
    Requests::new(ClusterPod::path(&identity.namespace))
}

fn job(bytes: &[u8]) -> Result<ClusterJob, ClusterError> {
    let object = serde_json::from_slice(bytes).ok();
    // Without a uid it could be mistaken for another of the same name.
    object
        .and_then(ClusterJob::read)
        .filter(|job| job.metadata.uid.is_some())
        .ok_or(ClusterError::Garbage("what the cluster answered is no Job"))
}

/// Reads a body up to a size.
async fn collect(mut body: Body, most: usize) -> Result<Log, ClusterError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreachable(&error))?;
        if let Some(data) = frame.data_ref() {
            let room = most - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                return Ok(Log {
                    bytes,
                    is_cut: true,
                });
            }
        }
    }
    Ok(Log {
        bytes,
        is_cut: false,
    })
}

/// The innermost reason of a failed connection: the outer ones only say that it failed.
fn unreachable(error: &kube::Error) -> ClusterError {
    if matches!(error, kube::Error::Auth(_)) {
        // It may quote what a command printed, which is a credential.
        return ClusterError::Unreachable {
            reason: "no credentials could be had".to_owned(),
            was_sent: false,
        };
    }
    let mut was_sent = true;
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
        let connection = inner.downcast_ref::<hyper_util::client::legacy::Error>();
        was_sent &= !connection.is_some_and(hyper_util::client::legacy::Error::is_connect);
    }
    ClusterError::Unreachable {
        reason: inner.to_string(),
        was_sent,
    }
}
