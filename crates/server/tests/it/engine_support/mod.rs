//! What the tests of the engine share: manifests of a small agent, a model that does what it is told, engines on
//! one file, and waiting for conditions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use http::HeaderMap;
use jiff::Timestamp;
use proofhouse_agent::model::{
    ChatMessage, Model, ModelError, ModelEvent, ModelReply, ModelRequest, ModelSink, ToolCall,
};
use proofhouse_agent::task::{Host, Turn};
use proofhouse_manifest::interpolate::Root;
use proofhouse_manifest::{Bundle, Catalog};
use proofhouse_server::engine::{
    Engine, EngineOptions, ManifestSource, TaskRequest, WebhookOutcome,
};
use proofhouse_source::DiagnosticSeverity;
use proofhouse_store::model::{EventDetail, EventState, TaskRecord, TaskState};
use proofhouse_store::{SqliteOptions, Store};
use proofhouse_tools::http::{EgressPolicy, HttpClient};
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

/// Longer than anything here takes, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Does what the last message says: `call NAME {json}` calls a function, everything else is repeated. After
/// results it says `done`.
pub(crate) struct Obedient;

impl Model for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let mut reply = ModelReply {
                model: "obedient".to_owned(),
                ..ModelReply::default()
            };
            match request.messages.last() {
                Some(ChatMessage::User { text }) => match text.strip_prefix("call ") {
                    Some(rest) => {
                        let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                        let arguments = arguments.as_object().cloned().unwrap_or_default();
                        let id = format!("call-{}", request.messages.len());
                        reply.calls.push(ToolCall::new(id, name, arguments));
                    }
                    None if text.starts_with("wait") => {
                        // Until somebody stops it.
                        cancel.cancelled().await;
                        reply.text = "stopped".to_owned();
                    }
                    None => reply.text = format!("heard: {text}"),
                },
                _ => reply.text = "done".to_owned(),
            }
            events.event(ModelEvent::Text(reply.text.clone()));
            Ok(reply)
        })
    }
}

/// A tool with webhooks, and an agent that listens to it for one owner.
pub(crate) const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: hub
description: A platform.
parameters: {properties: {owner: {type: string, default: nobody}}}
actions:
  - name: open
    description: Opens a request.
    parameters: {properties: {number: {type: integer}}}
    execute: {cel: {expression: "{'opened': input.number}"}}
events:
  - name: comment
    message: "{event.payload.user} said {event.payload.text}"
    timeout: 1h
    parameters: {properties: {number: {type: integer}}}
    receive:
      webhook:
        filter: "event.payload.kind == 'comment' && event.payload.owner == parameters.owner && event.payload.number == parameters.number"
  - name: ping
    message: "ping {event.payload.id}"
    receive:
      webhook:
        filter: "event.payload.kind == 'ping' && event.payload.owner == parameters.owner"
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities:
  hub:
    bindings: {owner: "'acme'"}
    before:
      - assert: "!has(event) || event.payload.user != 'bot'"
        error_message: bots are not heard
    after:
      - condition: "has(event) && event.payload.kind == 'comment'"
        transform: "'[!] ' + input.message"
"#;

/// A clock that tests move.
#[derive(Clone, Default)]
pub(crate) struct Shift(Arc<AtomicI64>);

impl Shift {
    pub(crate) fn forward(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.0.fetch_add(by, Ordering::SeqCst);
    }

    /// A clock that is wrong by so many milliseconds.
    pub(crate) fn wrong_by(milliseconds: i64) -> Self {
        Self(Arc::new(AtomicI64::new(milliseconds)))
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = Timestamp::now().as_millisecond() + self.0.load(Ordering::SeqCst);
        Timestamp::from_millisecond(now).unwrap()
    }
}

/// A directory with a database and manifests.
pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) shift: Shift,
    pub(crate) model: Arc<dyn Model>,
}

impl World {
    pub(crate) fn new(manifests: &str) -> Self {
        let world = Self {
            directory: tempfile::tempdir().unwrap(),
            shift: Shift::default(),
            model: Arc::new(Obedient),
        };
        std::fs::create_dir(world.manifests()).unwrap();
        world.write("all.yaml", manifests);
        world
    }

    pub(crate) fn manifests(&self) -> PathBuf {
        self.directory.path().join("manifests")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let (bundle, findings) = Bundle::read(text);
        let wrong = findings
            .iter()
            .find(|finding| finding.severity == DiagnosticSeverity::Error);
        assert!(wrong.is_none() || name.contains("bad"), "{wrong:?}");
        let mut catalog = Catalog::default();
        catalog.add(&bundle);
        std::fs::write(self.manifests().join(name), text).unwrap();
    }

    pub(crate) fn options(&self, api_root: &str) -> EngineOptions {
        options(self.shift.clone(), Arc::clone(&self.model), api_root)
    }

    pub(crate) async fn engine(&self) -> Engine {
        self.engine_with(|_| {}).await
    }

    pub(crate) async fn engine_with(&self, change: impl FnOnce(&mut EngineOptions)) -> Engine {
        let mut options = self.options("http://127.0.0.1:9");
        change(&mut options);
        open(&self.database(), &self.manifests(), options).await
    }
}

pub(crate) fn options(shift: Shift, model: Arc<dyn Model>, api_root: &str) -> EngineOptions {
    options_by(move || shift.now(), model, api_root)
}

/// Options with this clock.
pub(crate) fn options_by(
    clock: impl Fn() -> Timestamp + Clone + Send + Sync + 'static,
    model: Arc<dyn Model>,
    api_root: &str,
) -> EngineOptions {
    let limits = ToolLimits {
        outage: Duration::ZERO,
        ..ToolLimits::default()
    };
    let egress = || EgressPolicy::allowing(["127.0.0.0/8".parse().unwrap()]);
    let client = HttpClient::new(&limits, egress()).unwrap();
    let runtimes = Runtimes::new(&limits, egress()).unwrap();
    let tells = clock.clone();
    let now = move || format!("{:.3}", tells());
    let environment = Environment::new(json!({"hub_secret": "s3cret-s3cret-s3cret"}), now)
        .with(Root::Runtime, json!({"api_root": api_root, "version": "0"}));
    let known = environment.clone();
    let host = move |catalog: Catalog| {
        Host::new(
            catalog,
            runtimes.clone(),
            limits.clone(),
            known.clone(),
            Arc::clone(&model),
        )
    };
    let mut options = EngineOptions::new(Arc::new(host), environment, Arc::new(client));
    options.lease = Duration::from_secs(3);
    options.look = Duration::from_millis(50);
    options.linger = Duration::from_millis(50);
    options.clock = Arc::new(clock);
    // Tests move it to see what time brings about.
    options.by_store_clock = false;
    options
}

pub(crate) async fn store(path: &Path) -> Arc<Store> {
    let store = Store::open_sqlite(SqliteOptions::file(path)).await;
    Arc::new(store.expect("the file opens"))
}

pub(crate) async fn open(database: &Path, manifests: &Path, options: EngineOptions) -> Engine {
    let source = ManifestSource::Directory(manifests.to_owned());
    let store = store(database).await;
    Engine::open(store, source, options).await.unwrap()
}

pub(crate) async fn begin(engine: &Engine, message: Option<&str>) -> TaskRecord {
    engine
        .start_task(TaskRequest {
            namespace: "demo".to_owned(),
            agent: "clerk".to_owned(),
            message: message.map(str::to_owned),
            origin: json!({"by": "test"}),
            ..TaskRequest::default()
        })
        .await
        .unwrap()
}

pub(crate) async fn post(engine: &Engine, tool: &str, body: &Value) -> WebhookOutcome {
    let text = body.to_string();
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    engine.accept(tool, &headers, None, text.as_bytes()).await
}

/// Posts, and waits until it is decided what becomes of it.
pub(crate) async fn routed(engine: &Engine, tool: &str, body: &Value) -> EventDetail {
    let WebhookOutcome::Stored(ids) = post(engine, tool, body).await else {
        panic!("{body} is not stored");
    };
    routed_event(engine, ids[0]).await
}

pub(crate) async fn routed_event(engine: &Engine, event: i64) -> EventDetail {
    let (store, started) = (engine.store(), Instant::now());
    loop {
        let detail = store.event(event).await.unwrap();
        if detail.event.summary.state == EventState::Routed {
            return detail;
        }
        assert!(started.elapsed() < PATIENCE, "{detail:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn turns(store: &Arc<Store>, task: &str) -> Vec<Turn> {
    let mut all = Vec::new();
    loop {
        let from = i64::try_from(all.len()).unwrap();
        let page = store.turns(task, from, 500).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(
            page.into_iter()
                .map(|turn| serde_json::from_value(turn.body).unwrap()),
        );
    }
}

/// The inputs of a task: what was said, and the delivery.
pub(crate) fn inputs(turns: &[Turn]) -> Vec<(String, Option<String>)> {
    turns
        .iter()
        .filter_map(|turn| match turn {
            Turn::Input {
                message, delivery, ..
            } => Some((message.clone(), delivery.clone())),
            _ => None,
        })
        .collect()
}

/// Waits until this holds of the task and its turns.
pub(crate) async fn until(
    engine: &Engine,
    task: &str,
    holds: impl Fn(&TaskRecord, &[Turn]) -> bool,
) -> Vec<Turn> {
    let started = Instant::now();
    loop {
        let row = engine.store().task(task).await.unwrap();
        let turns = turns(engine.store(), task).await;
        // The two are read one after the other; only those that fit together count.
        let fits = usize::try_from(row.next_seq).is_ok_and(|next| next == turns.len());
        if fits && holds(&row, &turns) {
            return turns;
        }
        assert!(started.elapsed() < PATIENCE, "{row:#?} {turns:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the task is idle after this many inputs.
pub(crate) async fn idle_after(engine: &Engine, task: &str, count: usize) -> Vec<Turn> {
    until(engine, task, |row, turns| {
        row.state == TaskState::Idle && inputs(turns).len() >= count
    })
    .await
}

pub(crate) fn comment(id: u64, owner: &str, number: i64, user: &str) -> Value {
    json!({"kind": "comment", "id": id, "owner": owner, "number": number, "user": user,
           "text": format!("comment {id}")})
}

pub(crate) fn ping(id: u64) -> Value {
    json!({"kind": "ping", "id": id, "owner": "acme", "user": "ann"})
}
