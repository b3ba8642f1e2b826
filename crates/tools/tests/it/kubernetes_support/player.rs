//! The player: a small API server on the loopback address that holds Jobs and Pods and carries out a fate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proofhouse_test_support::loopback::Serving;
use proofhouse_tools::actions::Cluster;
use proofhouse_wire::server::{self, Handler, Reply, Request, StreamWriter};
use proofhouse_wire::{StatusCode, WireLimits};
use serde_json::{Value, json};

use super::objects;

/// What becomes of a Job that was made.
#[derive(Clone, Default)]
pub(crate) struct Fate {
    /// The Job's last status; it stays as it is without one.
    job: Option<Value>,
    /// The status of its Pod.
    pod: Option<Value>,
    log: Vec<u8>,
    is_deleted: bool,
    /// Deleted and made again by someone else.
    is_replaced: bool,
    /// A Pod that only pretends to belong to the Job, and its log.
    pub(crate) impostor: Option<Vec<u8>>,
    /// The Job is made, and the connection breaks before the answer.
    pub(crate) loses_answer: bool,
}

impl Fate {
    /// Completes with a termination message, or without one and with a log.
    pub(crate) fn completed(message: Option<&str>, log: impl AsRef<[u8]>) -> Self {
        let state = objects::terminated(0, "Completed", message);
        Self {
            job: Some(objects::complete()),
            pod: Some(objects::pod_status("Succeeded", "main", &state)),
            log: log.as_ref().to_vec(),
            ..Self::default()
        }
    }

    pub(crate) fn failed(code: i32, reason: &str, log: &str) -> Self {
        let state = objects::terminated(code, reason, None);
        let message = "Job has reached the specified backoff limit";
        Self {
            job: Some(objects::failed("BackoffLimitExceeded", message)),
            pod: Some(objects::pod_status("Failed", "main", &state)),
            log: log.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// The cluster's own deadline passes, and takes the Pod along.
    pub(crate) fn overdue() -> Self {
        let message = "Job was active longer than specified deadline";
        Self {
            job: Some(objects::failed("DeadlineExceeded", message)),
            ..Self::default()
        }
    }

    /// The container waits for ever.
    pub(crate) fn waiting(reason: &str, message: &str) -> Self {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        Self {
            pod: Some(objects::pod_status("Pending", "main", &state)),
            ..Self::default()
        }
    }

    pub(crate) fn unschedulable() -> Self {
        Self {
            pod: Some(objects::unschedulable()),
            ..Self::default()
        }
    }

    /// Runs for ever.
    pub(crate) fn endless() -> Self {
        let state = json!({"running": {"startedAt": "2026-01-02T03:04:07Z"}});
        Self {
            pod: Some(objects::pod_status("Running", "main", &state)),
            ..Self::default()
        }
    }

    pub(crate) fn deleted() -> Self {
        Self {
            is_deleted: true,
            ..Self::endless()
        }
    }

    pub(crate) fn replaced() -> Self {
        Self {
            is_replaced: true,
            ..Self::endless()
        }
    }

    /// Runs for ever, for the second time.
    pub(crate) fn restarted(log: &str) -> Self {
        let mut fate = Self::endless();
        if let Some(pod) = &mut fate.pod {
            let status = &mut pod["containerStatuses"][0];
            status["restartCount"] = 1.into();
            status["lastState"] = objects::terminated(1, "Error", None);
        }
        fate.log = log.as_bytes().to_vec();
        fate
    }

    /// Completes, and its Pod is gone by then.
    pub(crate) fn completed_without_pod() -> Self {
        Self {
            job: Some(objects::complete()),
            ..Self::default()
        }
    }
}

/// How watches go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    Works,
    /// Ends as soon as it began.
    Ends,
    /// Says nothing.
    Silent,
    /// Not even a status.
    NoAnswer,
    /// The version is too old, as an event.
    Gone,
    /// The version is too old, as a status.
    GoneAtOnce,
    Garbage,
    /// A line without end.
    LongLine,
    /// Cut in the middle of an event.
    Cut,
    Forbidden,
}

/// Answers a request otherwise: by method, path, and how often such a request came before.
type Trouble = dyn Fn(&str, &str, usize) -> Option<Reply> + Send + Sync;

struct Inner {
    state: Mutex<State>,
    fate: Box<dyn Fn(&Value) -> Fate + Send + Sync>,
    watching: Watching,
    trouble: Box<Trouble>,
}

#[derive(Default)]
struct State {
    version: u64,
    jobs: BTreeMap<(String, String), Value>,
    pods: Vec<Value>,
    logs: BTreeMap<String, Vec<u8>>,
    watchers: Vec<(String, StreamWriter)>,
    requests: Vec<Asked>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
    pub(crate) authorization: String,
}

/// A cluster that plays.
pub(crate) struct Player {
    inner: Arc<Inner>,
    directory: tempfile::TempDir,
    serving: Serving,
}

impl Player {
    pub(crate) async fn start(fate: Fate) -> Self {
        Self::troubled(fate, Watching::Works, |_, _, _| None).await
    }

    pub(crate) async fn watched(fate: Fate, watching: Watching) -> Self {
        Self::troubled(fate, watching, |_, _, _| None).await
    }

    pub(crate) async fn troubled(
        fate: Fate,
        watching: Watching,
        trouble: impl Fn(&str, &str, usize) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::playing(move |_| fate.clone(), watching, trouble).await
    }

    /// One where each Job decides its own fate.
    pub(crate) async fn choosing(fate: fn(&Value) -> Fate) -> Self {
        Self::playing(fate, Watching::Works, |_, _, _| None).await
    }

    async fn playing(
        fate: impl Fn(&Value) -> Fate + Send + Sync + 'static,
        watching: Watching,
        trouble: impl Fn(&str, &str, usize) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(Inner {
            state: Mutex::default(),
            fate: Box::new(fate),
            watching,
            trouble: Box::new(trouble),
        });
        let playing = Arc::new(Playing(Arc::clone(&inner)));
        Self {
            inner,
            directory: tempfile::tempdir().expect("the test is set up"),
            serving: Serving::start(playing, WireLimits::default()).await,
        }
    }

    /// The cluster as an operator configures it.
    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::kubeconfig(super::kubeconfig(&self.directory, &self.serving.url()))
    }

    /// The Jobs that are there, by name.
    pub(crate) fn jobs(&self) -> Vec<String> {
        let state = self.inner.state();
        state.jobs.keys().map(|(_, name)| name.clone()).collect()
    }

    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.inner.state().requests.clone()
    }

    /// How many requests of a method went to a path that ends so.
    pub(crate) fn count(&self, method: &str, ending: &str) -> usize {
        let requests = self.requests();
        let matching = requests
            .iter()
            .filter(|asked| asked.method == method && asked.path.ends_with(ending));
        matching.count()
    }

    /// The Job that was posted first.
    pub(crate) fn posted(&self) -> Value {
        let requests = self.requests();
        let mut posts = requests.iter().filter(|asked| asked.method == "POST");
        posts.next().expect("a Job was posted").body.clone()
    }

    /// Puts a Job there, as someone else would.
    pub(crate) fn put(&self, job: Value) {
        self.inner.make(job);
    }

    /// Waits until a Job is there, for two seconds at most.
    pub(crate) async fn has_job(&self) {
        for _ in 0..200 {
            if !self.jobs().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_ne!(self.jobs().len(), 0, "no Job was made");
    }
}

struct Playing(Arc<Inner>);

impl Handler for Playing {
    async fn handle(&self, request: Request) -> Reply {
        let asked = Asked {
            method: request.method.to_string(),
            path: request.path.clone(),
            query: request.query.clone().unwrap_or_default(),
            body: request
                .body
                .as_ref()
                .ok()
                .and_then(|bytes| serde_json::from_slice(bytes).ok())
                .unwrap_or_default(),
            authorization: request
                .header("authorization")
                .unwrap_or_default()
                .to_owned(),
        };
        let nth = {
            let mut state = self.0.state();
            let same = |other: &&Asked| other.method == asked.method && other.path == asked.path;
            let nth = state.requests.iter().filter(same).count();
            state.requests.push(asked.clone());
            nth
        };
        if let Some(reply) = (self.0.trouble)(&asked.method, &asked.path, nth) {
            return reply;
        }
        let path = asked.path.clone();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (asked.method.as_str(), parts.as_slice()) {
            ("POST", ["apis", "batch", "v1", "namespaces", namespace, "jobs"]) => {
                self.0.create(namespace, asked.body)
            }
            ("GET", ["apis", "batch", "v1", "namespaces", _, "jobs"]) => {
                self.0.watch(&asked.query).await
            }
            ("GET", ["apis", "batch", "v1", "namespaces", namespace, "jobs", name]) => {
                let state = self.0.state();
                match state
                    .jobs
                    .get(&((*namespace).to_owned(), (*name).to_owned()))
                {
                    Some(job) => ok(job),
                    None => missing("jobs.batch", name),
                }
            }
            ("DELETE", ["apis", "batch", "v1", "namespaces", namespace, "jobs", name]) => {
                self.0.delete(namespace, name, &asked.body)
            }
            ("GET", ["api", "v1", "namespaces", namespace, "pods"]) => {
                self.0.pods(namespace, &asked.query)
            }
            ("GET", ["api", "v1", "namespaces", _, "pods", name, "log"]) => {
                self.0.log(name, &asked.query)
            }
            _ => missing("things", "unknown"),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the test is set up")
    }

    fn create(self: &Arc<Self>, namespace: &str, job: Value) -> Reply {
        if !["jobs", "other"].contains(&namespace) {
            return missing("namespaces", namespace);
        }
        let name = job["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if job["metadata"]["namespace"] != namespace {
            return refusal(400, "BadRequest", "the namespaces do not match");
        }
        if self
            .state()
            .jobs
            .contains_key(&(namespace.to_owned(), name.clone()))
        {
            let message = format!("jobs.batch \"{name}\" already exists");
            return refusal(409, "AlreadyExists", &message);
        }
        let containers = job["spec"]["template"]["spec"]["containers"].as_array();
        if containers.is_none_or(Vec::is_empty) {
            let message = format!(
                "Job.batch \"{name}\" is invalid: spec.template.spec.containers: Required value"
            );
            return refusal(422, "Invalid", &message);
        }
        let job = self.make(job);
        if (self.fate)(&job).loses_answer {
            return Reply::cut();
        }
        Reply::json(StatusCode::CREATED, job.to_string())
    }

    /// Stores a Job and lets its fate begin.
    fn make(self: &Arc<Self>, job: Value) -> Value {
        let mut state = self.state();
        state.version += 1;
        let uid = format!("0b5c-{}", state.version);
        let job = objects::stored(job, &uid, state.version);
        let text = |key: &str| job["metadata"][key].as_str().unwrap_or_default().to_owned();
        let key = (text("namespace"), text("name"));
        state.jobs.insert(key.clone(), job.clone());
        drop(state);
        let player = Arc::clone(self);
        tokio::spawn(async move { player.play(key, uid).await });
        job
    }

    async fn play(self: Arc<Self>, key: (String, String), uid: String) {
        tokio::time::sleep(Duration::from_millis(15)).await;
        self.change(&key, &uid, |job| job["status"] = objects::running());
        tokio::time::sleep(Duration::from_millis(60)).await;
        let Some(job) = self.state().jobs.get(&key).cloned() else {
            return;
        };
        let fate = (self.fate)(&job);
        {
            let mut state = self.state();
            if let Some(impostor) = fate.impostor {
                let status = objects::terminated(0, "Completed", None);
                let status = objects::pod_status("Succeeded", "main", &status);
                // It sorts after the real one, and would be taken for the younger.
                let pod = objects::pod(&job, "zzzzz", "someone-else", &status);
                state.add(pod, impostor);
            }
            if let Some(status) = fate.pod {
                let pod = objects::pod(&job, "abcde", &uid, &status);
                state.add(pod, fate.log);
            }
        }
        if fate.is_deleted || fate.is_replaced {
            let gone = self.state().jobs.remove(&key);
            if let (true, Some(job)) = (fate.is_replaced, gone) {
                let mut state = self.state();
                let job = objects::stored(job, "another-one", 99);
                state.jobs.insert(key, job);
            } else {
                self.tell(&key.1, "DELETED", &json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": key.1, "uid": uid}}));
            }
            return;
        }
        if let Some(status) = fate.job {
            self.change(&key, &uid, |job| job["status"] = status.clone());
        }
    }

    fn change(&self, key: &(String, String), uid: &str, change: impl Fn(&mut Value)) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version.to_string();
        let Some(job) = state.jobs.get_mut(key) else {
            return;
        };
        if job["metadata"]["uid"] != uid {
            return;
        }
        change(job);
        job["metadata"]["resourceVersion"] = version.into();
        let job = job.clone();
        drop(state);
        self.tell(&key.1, "MODIFIED", &job);
    }

    fn tell(&self, name: &str, kind: &str, job: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": job}));
        let watchers = &mut self.state().watchers;
        for (_, writer) in watchers.iter().filter(|(watched, _)| watched == name) {
            let _ = writer.try_write(line.clone());
        }
    }

    async fn watch(&self, query: &str) -> Reply {
        let (writer, body) = server::stream();
        let reply = || Reply::empty(StatusCode::OK).with_header("content-type", "application/json");
        let name = parameter(query, "fieldSelector");
        let name = name.trim_start_matches("metadata.name=").to_owned();
        let too_old = objects::status(410, "Expired", "too old resource version: 1 (2)");
        let piece = match self.watching {
            Watching::NoAnswer => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                return Reply::cut();
            }
            Watching::Forbidden => return refusal(403, "Forbidden", "cannot watch jobs"),
            Watching::GoneAtOnce => return refusal(410, "Expired", "too old resource version"),
            Watching::Works => {
                // What happened since the version is told first.
                let since: u64 = parameter(query, "resourceVersion").parse().unwrap_or(0);
                let mut state = self.state();
                let found = state.jobs.iter().find(|((_, known), _)| *known == name);
                if let Some((_, job)) = found {
                    let version = job["metadata"]["resourceVersion"].as_str();
                    if version.and_then(|v| v.parse::<u64>().ok()) > Some(since) {
                        let line = json!({"type": "MODIFIED", "object": job});
                        let _ = writer.try_write(format!("{line}\n"));
                    }
                }
                state.watchers.push((name, writer));
                return reply().with_body(server::ReplyBody::Stream(body));
            }
            Watching::Silent => {
                // Kept, and never told anything.
                self.state().watchers.push((String::new(), writer));
                return reply().with_body(server::ReplyBody::Stream(body));
            }
            Watching::Ends => String::new(),
            Watching::Gone => format!("{}\n", json!({"type": "ERROR", "object": too_old})),
            Watching::Garbage => {
                "[]\n{\"type\": \"MODIFIED\", \"object\": 7}\nnot json\n".to_owned()
            }
            Watching::LongLine => "x".repeat(5 << 20),
            Watching::Cut => "{\"type\": \"MODI".to_owned(),
        };
        let is_cut = self.watching == Watching::Cut;
        tokio::spawn(async move {
            let _ = writer.write(piece).await;
            if is_cut {
                writer.cut().await;
            }
        });
        reply().with_body(server::ReplyBody::Stream(body))
    }

    fn delete(&self, namespace: &str, name: &str, options: &Value) -> Reply {
        let key = (namespace.to_owned(), name.to_owned());
        let mut state = self.state();
        let Some(job) = state.jobs.get(&key).cloned() else {
            return missing("jobs.batch", name);
        };
        let uid = &options["preconditions"]["uid"];
        if !uid.is_null() && *uid != job["metadata"]["uid"] {
            return refusal(
                409,
                "Conflict",
                "the UID in the precondition does not match",
            );
        }
        state.jobs.remove(&key);
        if options["propagationPolicy"] == "Background" {
            state.pods.retain(|pod| {
                pod["metadata"]["ownerReferences"][0]["uid"] != job["metadata"]["uid"]
            });
        }
        drop(state);
        self.tell(name, "DELETED", &job);
        ok(&json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
    }

    fn pods(&self, namespace: &str, query: &str) -> Reply {
        let selector = parameter(query, "labelSelector");
        let state = self.state();
        let items: Vec<&Value> = state
            .pods
            .iter()
            .filter(|pod| {
                pod["metadata"]["namespace"] == namespace
                    && selector.split(',').all(|term| {
                        let (key, value) = term.split_once('=').unwrap_or_default();
                        pod["metadata"]["labels"][key] == value
                    })
            })
            .collect();
        ok(&json!({
            "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
            "items": items,
        }))
    }

    /// The last lines, and of these the first bytes, as a kubelet cuts them.
    fn log(&self, pod: &str, query: &str) -> Reply {
        let state = self.state();
        let Some(log) = state.logs.get(pod) else {
            return missing("pods", pod);
        };
        if parameter(query, "container") != "main" {
            return refusal(400, "BadRequest", "container is not valid for pod");
        }
        if parameter(query, "previous") == "true" {
            return Reply::empty(StatusCode::OK)
                .with_body(server::ReplyBody::Whole("before\n".into()));
        }
        let lines: usize = parameter(query, "tailLines").parse().unwrap_or(usize::MAX);
        let bytes: usize = parameter(query, "limitBytes").parse().unwrap_or(usize::MAX);
        let whole = log.strip_suffix(b"\n").unwrap_or(log);
        let breaks: Vec<usize> = whole
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1)
            .collect();
        let from = if breaks.len() >= lines {
            breaks[breaks.len() - lines]
        } else {
            0
        };
        let tail = &log[from..];
        let tail = tail[..tail.len().min(bytes)].to_vec();
        Reply::empty(StatusCode::OK)
            .with_header("content-type", "text/plain")
            .with_body(server::ReplyBody::Whole(tail.into()))
    }
}

impl State {
    fn add(&mut self, pod: Value, log: Vec<u8>) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        self.logs.insert(name.to_owned(), log);
        self.pods.push(pod);
    }
}

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> String {
    let url = url::Url::parse(&format!("http://x/?{query}")).expect("the query is one");
    let found = url.query_pairs().find(|(key, _)| key == name);
    found
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn ok(value: &Value) -> Reply {
    Reply::json(StatusCode::OK, value.to_string())
}

fn missing(what: &str, name: &str) -> Reply {
    refusal(404, "NotFound", &format!("{what} \"{name}\" not found"))
}

/// An error of the API.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    let status = StatusCode::from_u16(code).expect("it is a status");
    Reply::json(status, objects::status(code, reason, message).to_string())
}
