//! What an engine is opened with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proofhouse_agent::model::Usage;
use proofhouse_agent::task::Host;
use proofhouse_manifest::{Catalog, Tool};
use proofhouse_store::model::{Millis, Retention};
use proofhouse_tools::http::HttpClient;
use proofhouse_tools::operator::{
    AmbiguousSource, ModelCost, ModelPrices, WebhookConfig, WebhookSource,
};
use proofhouse_tools::receive::webhook::{PayloadLimits, WebhookKeys};
use proofhouse_tools::runtime::Environment;
use proofhouse_wire::sync::{read, write};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Notify;

use crate::metrics::Metrics;

/// The longest lease: work of a process that was killed moves within twice this time.
pub const MAX_LEASE: Duration = Duration::from_secs(15);
/// The shortest: a loaded machine must be able to renew it in time.
pub const MIN_LEASE: Duration = Duration::from_millis(300);

/// How far apart clocks are, in milliseconds, when it is worth a warning.
const WORTH_TELLING: u64 = 5_000;

/// Tells the time. Lease times are counted by the store's clock, not by this one.
pub type EngineClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Fills bytes with random numbers that nobody can guess; whether it could.
pub type RandomSource = Arc<dyn Fn(&mut [u8]) -> bool + Send + Sync>;

/// Makes a host of tasks for manifests; asked again whenever they change.
pub type HostFactory = Arc<dyn Fn(Catalog) -> Host + Send + Sync>;

/// What the operator configures, which may change while the engine runs.
#[derive(Clone)]
pub struct OperatorSetup {
    /// Makes the host of tasks.
    pub host: HostFactory,
    /// What the calls of polls and subscriptions know.
    pub environment: Environment,
    /// Sends the calls of polls and subscriptions.
    pub client: Arc<HttpClient>,
    /// How webhooks are signed.
    pub webhooks: WebhookConfig,
    /// What models cost.
    pub prices: ModelPrices,
    /// How long things are kept.
    pub retention: EngineRetention,
}

/// What took the place of what the engine was opened with.
#[derive(Default)]
struct ChangedSetup {
    setup: RwLock<Option<Arc<OperatorSetup>>>,
    version: AtomicU64,
    told: Notify,
}

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineRetention {
    /// How long a task that is finished stays idle before it ends; never if there is no time. A task that still listens to
    /// something is not finished.
    pub idle_tasks_ms: Option<Millis>,
    /// When rows are removed.
    pub rows: Retention,
    /// When entries of the audit log make way for a checkpoint; never if there is no time.
    pub audit_ms: Option<Millis>,
}

impl Default for EngineRetention {
    fn default() -> Self {
        Self {
            idle_tasks_ms: Some(30 * 24 * 60 * 60 * 1000),
            rows: Retention::default(),
            audit_ms: None,
        }
    }
}

/// A fault of old that is put back, so that a simulation can show that it would find it. Never for anything else.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutBackFault {
    /// A lease that could not be released is renewed for ever, though nobody works under it.
    LeasesAreForgotten,
    /// Commands are looked for among the deliveries that came first, and not found behind many others.
    CommandsWaitInLine,
}

/// What an engine is opened with.
#[derive(Clone)]
pub struct EngineOptions {
    /// Makes the host of tasks.
    pub host: HostFactory,
    /// What the calls of polls and subscriptions know: settings, tokens, `{runtime.api_root}`.
    pub environment: Environment,
    /// Sends the calls of polls and subscriptions.
    pub client: Arc<HttpClient>,
    /// How webhooks are signed.
    pub webhooks: WebhookConfig,
    /// What models cost.
    pub prices: ModelPrices,
    /// Whether unsigned webhooks are refused.
    pub strict: bool,
    /// How large payloads may be.
    pub payload: PayloadLimits,
    /// Names this process among those on the store; made up if it is empty.
    pub owner: String,
    /// Tasks that work at the same time in this process.
    pub workers: usize,
    /// How long leases last without a heartbeat.
    pub lease: Duration,
    /// How long a task stays in memory after its last input, if its tools have nothing open.
    pub linger: Duration,
    /// How long a task that sleeps keeps the sessions and servers of its tools, unless their manifest forbids to end them.
    pub idle_tools: Duration,
    /// How often the store is asked for work that nobody told this process about.
    pub look: Duration,
    /// How long a task may wait for a person before it is put away; it goes on when the person answers.
    pub park: Duration,
    /// How long things are kept.
    pub retention: EngineRetention,
    /// How often it is looked for what is finished or old.
    pub sweep_every: Duration,
    /// How long acknowledged work may wait before this process is not ready any more.
    pub max_lag: Duration,
    /// The most that any task listens after its last activity, if the operator says so.
    pub max_timeout: Option<Duration>,
    /// Where it counts what it does.
    pub metrics: Arc<Metrics>,
    /// Tells the time.
    pub clock: EngineClock,
    /// Where random numbers come from.
    pub random: RandomSource,
    /// Whether that clock is set by the store's when the engine is opened. Processes on several machines then agree about
    /// when a task was last active and when a schedule is due, however their own clocks are set.
    pub by_store_clock: bool,
    /// A fault of old, in simulations.
    #[doc(hidden)]
    pub put_back: Option<PutBackFault>,
    changed: Arc<ChangedSetup>,
}

impl EngineOptions {
    /// The usual values.
    #[must_use]
    pub fn new(host: HostFactory, environment: Environment, client: Arc<HttpClient>) -> Self {
        Self {
            host,
            environment,
            client,
            webhooks: WebhookConfig::default(),
            prices: ModelPrices::default(),
            strict: false,
            payload: PayloadLimits::default(),
            owner: String::new(),
            workers: 32,
            lease: MAX_LEASE,
            linger: Duration::from_secs(2),
            idle_tools: Duration::from_secs(900),
            look: Duration::from_millis(500),
            park: Duration::from_secs(60),
            retention: EngineRetention::default(),
            sweep_every: Duration::from_secs(600),
            max_lag: Duration::from_secs(300),
            max_timeout: None,
            metrics: Arc::default(),
            clock: Arc::new(Timestamp::now),
            random: Arc::new(|bytes| SystemRandom::new().fill(bytes).is_ok()),
            by_store_clock: true,
            put_back: None,
            changed: Arc::default(),
        }
    }

    pub(super) fn lease(&self) -> Duration {
        self.lease.clamp(MIN_LEASE, MAX_LEASE)
    }

    pub(super) fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease().as_millis()).unwrap_or(15_000)
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Sets the clock by what the store's clock says now.
    pub(super) fn set_clock(&mut self, stores: Millis) {
        let ahead = self.now().as_millisecond().saturating_sub(stores);
        if ahead.unsigned_abs() > WORTH_TELLING {
            tracing::warn!(
                milliseconds = ahead,
                "this machine's clock is ahead of the store's, which is gone by"
            );
        }
        let clock = Arc::clone(&self.clock);
        self.clock = Arc::new(move || {
            let now = clock();
            let set = now.checked_sub(SignedDuration::from_millis(ahead));
            set.unwrap_or(now)
        });
    }
}

impl EngineOptions {
    /// Uses what the operator configures now, from the next call, webhook and snapshot of the manifests on.
    pub(super) fn reconfigure(&self, setup: OperatorSetup) {
        *write(&self.changed.setup) = Some(Arc::new(setup));
        self.changed.version.fetch_add(1, Ordering::SeqCst);
        self.changed.told.notify_one();
    }

    /// Waits until that happens.
    pub(super) async fn reconfigured(&self) {
        self.changed.told.notified().await;
    }

    /// How often that happened.
    pub(super) fn setup_version(&self) -> u64 {
        self.changed.version.load(Ordering::SeqCst)
    }

    fn changed_setup(&self) -> Option<Arc<OperatorSetup>> {
        read(&self.changed.setup).clone()
    }

    /// A host of tasks for these manifests.
    pub(super) fn host_of(&self, catalog: Catalog) -> Host {
        match self.changed_setup() {
            Some(setup) => (setup.host)(catalog),
            None => (self.host)(catalog),
        }
    }

    /// What the calls of polls and subscriptions know now.
    pub(super) fn call_environment(&self) -> Environment {
        let changed = self.changed_setup();
        changed.map_or_else(
            || self.environment.clone(),
            |setup| setup.environment.clone(),
        )
    }

    /// What sends them now.
    pub(super) fn call_client(&self) -> Arc<HttpClient> {
        let changed = self.changed_setup();
        Arc::clone(changed.as_ref().map_or(&self.client, |setup| &setup.client))
    }

    /// What so many tokens of a model cost by the prices of now, and in which currency.
    pub(super) fn cost(&self, model: &str, usage: Usage) -> Option<(ModelCost, String)> {
        let changed = self.changed_setup();
        let prices = changed.as_ref().map_or(&self.prices, |setup| &setup.prices);
        let cost = prices.cost(model, usage.prompt, usage.completion)?;
        Some((cost, prices.currency().to_owned()))
    }

    /// How long things are kept now.
    pub(super) fn retention(&self) -> EngineRetention {
        let changed = self.changed_setup();
        changed.map_or(self.retention, |setup| setup.retention)
    }

    /// How a tool or a source signs now.
    pub(super) fn webhook_source(&self, name: &str) -> Option<WebhookSource> {
        match self.changed_setup() {
            Some(setup) => setup.webhooks.source(name).cloned(),
            None => self.webhooks.source(name).cloned(),
        }
    }

    /// How a tool among others signs now; whoever it cannot be told for takes nothing.
    pub(super) fn webhook_keys(
        &self,
        tool: &Tool,
        catalog: &Catalog,
    ) -> Result<WebhookKeys, AmbiguousSource> {
        let changed = self.changed_setup();
        let webhooks = changed
            .as_ref()
            .map_or(&self.webhooks, |setup| &setup.webhooks);
        let source = webhooks.of_tool(tool, catalog.tools())?;
        Ok(WebhookKeys::of_tool(tool, source, &self.call_environment()))
    }
}
