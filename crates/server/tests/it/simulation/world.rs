//! The world of one simulation: a database, processes on it, clients that talk to them, and a script of faults.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_manifest::{Bundle, Catalog};
use proofhouse_server::engine::{Engine, EngineError, ManifestSource, PutBackFault};
use proofhouse_store::{SimulatedDatabase, Store};
use proofhouse_tools::operator::{OperatorConfig, WebhookConfig};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::checks;
use super::clients::{self, Ledger};
use super::faults::{self, SimFault};
use super::process::{SimModel, SimProcess, SimStage};
use super::{BOUND, SimReport};
use crate::engine_support::{MANIFESTS, options_by};

/// How long a client waits for an answer before it asks again.
const CLIENT_PATIENCE: Duration = Duration::from_secs(3);
/// How long nothing may happen any more at the end: late duplicates would show.
const QUIET: Duration = Duration::from_secs(6);
/// How long leases last.
pub(super) const LEASE: Duration = Duration::from_secs(3);

/// An agent that asks a person before it calls anything.
const ASKER: &str = r#"
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: asker
description: Asks first.
prompt: You ask.
capabilities:
  hub:
    bindings: {owner: "'acme'"}
    before:
      - {condition: "!has(event)", assert: "review('ann')"}
"#;

/// A process that runs.
#[derive(Clone)]
struct RunningProcess {
    process: Arc<SimProcess>,
    engine: Arc<Engine>,
}

/// Everything.
pub(super) struct SimWorld {
    pub(super) stage: Arc<SimStage>,
    database: Arc<SimulatedDatabase>,
    catalog: Catalog,
    webhooks: WebhookConfig,
    /// A fault of old that all processes have.
    put_back: Option<PutBackFault>,
    running: Mutex<Vec<RunningProcess>>,
    /// Engines whose processes are dead or stopped: they are not dropped, for a crash drops nothing.
    gone: Mutex<Vec<Arc<Engine>>>,
    started: Mutex<u64>,
    /// Sees the database as it is.
    pub(super) observer: Arc<Store>,
    pub(super) ledger: Mutex<Ledger>,
}

impl SimWorld {
    pub(super) fn new(seed: u64, put_back: Option<PutBackFault>) -> Arc<Self> {
        let stage = SimStage::new(seed);
        let database = SimulatedDatabase::new().unwrap();
        let (bundle, _) = Bundle::read(&format!("{MANIFESTS}{ASKER}"));
        let mut catalog = Catalog::default();
        catalog.add(&bundle);
        // Who sends again what was not answered is not to be heard twice, also where nobody signs.
        let once = "webhooks: {hub: {scheme: none, dedupe: id}}\n";
        let (operator, _) = OperatorConfig::read(once, &|_| None);
        let observer = SimProcess::new(&stage, 0, false);
        Arc::new(Self {
            observer: Arc::new(Store::simulated(Arc::clone(&database), observer)),
            stage,
            database,
            catalog,
            webhooks: operator.webhooks,
            put_back,
            running: Mutex::default(),
            gone: Mutex::default(),
            started: Mutex::new(0),
            ledger: Mutex::default(),
        })
    }

    /// Starts a process in this place; tries until the store lets it.
    async fn start(&self, place: usize) {
        let number = {
            let mut started = self.started.lock().unwrap();
            *started += 1;
            *started
        };
        let process = SimProcess::new(&self.stage, number, true);
        let (clock, random) = (Arc::clone(&process), Arc::clone(&self.stage));
        let model = Arc::new(SimModel(Arc::clone(&process)));
        let mut options = options_by(move || clock.now(), model, "http://127.0.0.1:9");
        options.lease = LEASE;
        options.look = Duration::from_secs(2);
        options.linger = Duration::from_millis(700);
        options.park = Duration::from_millis(1_500);
        options.workers = 4;
        options.put_back = self.put_back;
        options.by_store_clock = true;
        options.webhooks = self.webhooks.clone();
        options.random = Arc::new(move |bytes| {
            for byte in bytes {
                *byte = u8::try_from(random.dice.below(256)).unwrap_or(0);
            }
            true
        });
        let faults = Arc::clone(&process);
        let store = Arc::new(Store::simulated(Arc::clone(&self.database), faults));
        let engine = loop {
            let source = ManifestSource::Fixed(self.catalog.clone());
            match Engine::open(Arc::clone(&store), source, options.clone()).await {
                Ok(engine) => break Arc::new(engine),
                Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
            }
        };
        let new = RunningProcess { process, engine };
        let mut running = self.running.lock().unwrap();
        match running.get_mut(place) {
            Some(old) => {
                let old = std::mem::replace(old, new);
                self.gone.lock().unwrap().push(old.engine);
            }
            None => running.push(new),
        }
    }

    fn process(&self, place: usize) -> Option<RunningProcess> {
        self.running.lock().unwrap().get(place).cloned()
    }

    /// The engines of the processes that run.
    pub(super) fn engines(&self) -> Vec<Arc<Engine>> {
        let running = self.running.lock().unwrap();
        running.iter().map(|one| Arc::clone(&one.engine)).collect()
    }

    /// Asks one of the processes after the other until one answers. Clients do not know which of them are well.
    pub(super) async fn ask<T>(
        &self,
        question: impl AsyncFn(&Engine) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        loop {
            let engine = {
                let engines = self.engines();
                self.stage.dice.pick(&engines).cloned()
            };
            if let Some(engine) = engine {
                match tokio::time::timeout(CLIENT_PATIENCE, question(&engine)).await {
                    Ok(Err(EngineError::Unavailable(_))) | Err(_) => {}
                    Ok(answer) => return answer,
                }
            }
            let pause = self.stage.dice.between(50, 400);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Plays everything.
    pub(super) async fn play(self: &Arc<Self>) -> Result<SimReport, String> {
        let processes = usize::try_from(self.stage.dice.between(2, 4)).unwrap_or(2);
        for place in 0..processes {
            self.start(place).await;
        }
        let script = faults::draw(&self.stage.dice, processes);
        let mut clients = JoinSet::new();
        clients::spawn(self, &mut clients);
        for (pause, fault) in &script {
            tokio::time::sleep(*pause).await;
            self.strike(*fault).await;
        }
        self.heal().await;
        let healed = Instant::now();
        let ended = tokio::time::timeout(BOUND, async {
            while let Some(ended) = clients.join_next().await {
                ended.map_err(|error| error.to_string())??;
            }
            Ok::<(), String>(())
        });
        let name = |problem: String| format!("{problem}; faults: {script:?}");
        match ended.await {
            Ok(outcome) => outcome.map_err(name)?,
            Err(_) => {
                let unmet = checks::unmet(self).await.map_err(name)?;
                return Err(name(format!("clients still wait: {unmet:?}")));
            }
        }
        loop {
            let Some(unmet) = checks::unmet(self).await.map_err(name)? else {
                break;
            };
            if healed.elapsed() > BOUND {
                return Err(name(format!("no progress: {unmet}")));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let settled_ms = u64::try_from(healed.elapsed().as_millis()).unwrap_or(u64::MAX);
        tokio::time::sleep(QUIET).await;
        if let Some(unmet) = checks::unmet(self).await.map_err(name)? {
            return Err(name(format!("undone again: {unmet}")));
        }
        checks::nothing_is_held(self).await.map_err(name)?;
        Ok(SimReport {
            fingerprint: self.stage.fingerprint(),
            transactions: self.stage.transactions(),
            faults: script.len(),
            settled_ms,
        })
    }

    async fn strike(self: &Arc<Self>, fault: SimFault) {
        let stage = &self.stage;
        match fault {
            SimFault::Crash {
                process,
                steps,
                restart,
            } => {
                if let Some(running) = self.process(process) {
                    running.process.die_after(steps);
                }
                let world = Arc::clone(self);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(restart + Duration::from_secs(1)).await;
                    world.restart_if_dead(process).await;
                });
            }
            SimFault::Pause { process, time } => {
                if let Some(running) = self.process(process) {
                    running.process.pause(time);
                }
            }
            SimFault::CutOff { process, time } => {
                if let Some(running) = self.process(process) {
                    running.process.cut_off(time);
                }
            }
            SimFault::StoreGone { time } => {
                let running = self.running.lock().unwrap().clone();
                for one in running {
                    one.process.cut_off(time);
                }
            }
            SimFault::Flaky { time } => {
                stage.is_flaky.store(true, Ordering::SeqCst);
                tokio::time::sleep(time).await;
                stage.is_flaky.store(false, Ordering::SeqCst);
            }
            SimFault::DatabaseClock { by } => {
                stage.database_ahead.fetch_add(by, Ordering::SeqCst);
            }
            SimFault::ProcessClock { process, by } => {
                if let Some(running) = self.process(process) {
                    running.process.ahead.fetch_add(by, Ordering::SeqCst);
                }
            }
            SimFault::Shutdown { process } => {
                if let Some(running) = self.process(process) {
                    let engine = running.engine;
                    tokio::task::spawn_local(async move {
                        engine.shutdown(Duration::from_secs(2)).await;
                    });
                    self.start(process).await;
                }
            }
        }
    }

    async fn restart_if_dead(&self, place: usize) {
        let dead = self
            .process(place)
            .is_some_and(|running| running.process.is_dead());
        if dead {
            self.start(place).await;
        }
    }

    /// Ends all faults: whoever is dead is started again, and whoever is about to die does so now.
    async fn heal(&self) {
        let count = self.running.lock().unwrap().len();
        for place in 0..count {
            if let Some(running) = self.process(place) {
                running.process.pause(Duration::ZERO);
                running.process.cut_off(Duration::ZERO);
                running.process.be_well();
            }
            self.restart_if_dead(place).await;
        }
    }
}
