//! `proofhouse serve`: agents as a service, with an HTTP API, webhooks, polls, schedules and a dashboard.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use proofhouse_agent::model::RedactText;
use proofhouse_campaign::config::{InvalidDuration, duration, positive_duration};
use proofhouse_manifest::interpolate::Secrets;
use proofhouse_server::api::{Api, ApiConfig, is_essential};
use proofhouse_server::audit;
use proofhouse_server::engine::{
    Engine, EngineOptions, EngineRetention, MAX_LEASE, MIN_LEASE, ManifestSource, OperatorSetup,
};
use proofhouse_server::key_change::{self, KeyOrder};
use proofhouse_server::keys::{KeyScope, KeySecret};
use proofhouse_server::listen::{self, ConnectionLimits, Listener};
use proofhouse_server::metrics::Metrics;
use proofhouse_server::oidc::IdentityProvider;
use proofhouse_server::rate::RateQuota;
use proofhouse_store::Store;
use proofhouse_subjects::agent_models::TaskClock;
use proofhouse_subjects::operator::Operator;
use proofhouse_tools::operator::{SignInConfig, proxy_network};
use proofhouse_wire::files::FileInput;
use proofhouse_wire::sync::{lock, read, write};
use proofhouse_wire::{
    CancellationToken, TrustedProxies, allow_open_files, listen_address, write_files,
};
use serde_json::json;
use tokio::net::TcpListener;

use super::audit::signing_key;
use crate::agents::models::ModelArgs;
use crate::environment::environment;
use crate::exit_code::Exit;
use crate::input::{named_directory, named_files};
use crate::output::{CommandError, StdoutData, printable_line, shown_path, talk};
use crate::proxies;
use crate::retention_options::RetentionOptions;
use crate::signals::{ReloadRequests, survive_file_limits};
use crate::store_options::StoreOptions;
use crate::telemetry::TelemetryOptions;
use crate::tools::options::OperatorOptions;
use crate::tools::work::until_server_ends;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;
/// The largest file of certificates or of a key.
const MAX_PEM: usize = 1 << 20;
/// Files that may be open: the connections of both ports, and as many for everything else.
const OPEN_FILES: u64 = 4_096;
/// What the log says when the server is asked to stop.
const STOPPING: &str = "stopping: not ready any more; serves for --drain, then work may finish for --grace; a second signal quits at once";
/// The most bytes of a webhook: with the message that is made of it, it must fit into a turn of a task.
const MAX_WEBHOOK: i64 = 8 << 20;

/// Serve agents in production: an HTTP API, webhooks, polls, schedules and a dashboard
///
/// Reads the manifests in a directory and reloads them when they change. If a changed manifest is invalid, the last
/// valid version stays in use. All work is stored before it is done, so the process can stop at any time without
/// losing any. Several processes can share one PostgreSQL database. Clients of the API need a key (see `proofhouse
/// keys`); the first start creates an admin key and shows it in the terminal, or writes it to a file that only you
/// can read. SIGHUP reloads the settings file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse serve examples/agents\n  \
    proofhouse serve manifests/ --settings operator.yaml --public-url https://hooks.example.com\n  \
    PROOFHOUSE_STORE=postgres://user:password@db/proofhouse proofhouse serve manifests/\n\n\
    Exit codes:\n  \
    0   stopped by Ctrl-C or a signal\n  \
    3   the store, an address, a certificate or the model cannot be used\n  \
    64  invalid arguments, or the directory does not exist")]
pub(crate) struct Serve {
    /// The directory with the manifests of agents, tools, triggers and schedules
    #[arg(value_name = "DIR")]
    manifests: PathBuf,

    #[command(flatten)]
    store: StoreOptions,

    /// The address of the API and the dashboard
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8460", value_parser = listen_address)]
    listen: SocketAddr,

    /// The address that receives webhooks
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8461", value_parser = listen_address)]
    webhook_listen: SocketAddr,

    /// The public URL at which senders reach the webhook address; {runtime.api_root} contains it [default: the webhook
    /// address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// Require no keys; only allowed if other machines cannot reach the API
    #[arg(long)]
    open: bool,

    /// A host name under which the API is reached, such as the name of a reverse proxy; can be repeated. Requests
    /// for other host names are then refused
    #[arg(long = "allowed-host", value_name = "NAME", value_parser = host_name)]
    allowed_hosts: Vec<String>,

    /// The address or network of a reverse proxy before the server; can be repeated. Its `X-Forwarded-For` or
    /// `Forwarded` says where requests come from, for the audit log and for limits
    #[arg(long = "trusted-proxy", value_name = "CIDR", value_parser = proxy_network)]
    trusted_proxies: Vec<IpNet>,

    /// Where to write the first key if there is no terminal to show it [default: next to the store]
    #[arg(long, value_name = "FILE")]
    first_key_file: Option<PathBuf>,

    /// The file with the key that signs checkpoints of the audit log; created if it does not exist
    #[arg(long, value_name = "FILE")]
    audit_key: Option<PathBuf>,

    /// Refuse webhooks without a signature
    #[arg(long)]
    strict_webhooks: bool,

    /// The largest webhook to accept, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=MAX_WEBHOOK))]
    max_webhook_bytes: u32,

    /// Requests per second for each key, with bursts of twice as many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,

    /// Webhooks per second from each address, with bursts of twice as many
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    webhook_rate: u32,

    /// Connections from each address to each of the two ports, up to 1024. Raise it if all clients come through one
    /// proxy
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=1024))]
    peer_connections: u16,

    /// The TLS certificate chain, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// How long running work may take after the server was asked to stop; other processes take over the rest
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    grace: Duration,

    /// How long to keep serving after the server was asked to stop, while /v1/ready already reports that it is not
    /// ready, so that load balancers stop sending requests
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    drain: Duration,

    /// How long accepted work may wait before /v1/ready reports that this process is not ready
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "5m")]
    max_lag: Duration,

    #[command(flatten)]
    retention: RetentionOptions,

    /// How many tasks may work at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: u16,

    /// How long a process keeps its work without a sign of life, from 300ms to 15s. Other processes take over the
    /// work of a process that died after at most twice this time
    #[arg(long, value_name = "DURATION", value_parser = lease, default_value = "15s")]
    lease: Duration,

    /// How long a sleeping task keeps the sessions and servers of its tools open, unless their manifest forbids
    /// closing them
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15m")]
    idle_tools: Duration,

    #[command(flatten)]
    model: ModelArgs,

    /// The directory for the files of agents that have a mount
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,

    #[command(flatten)]
    operator: OperatorOptions,

    /// How to report the addresses
    #[arg(long, value_enum, default_value_t = ServeFormat::Human)]
    format: ServeFormat,

    #[command(flatten)]
    telemetry: TelemetryOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServeFormat {
    /// As sentences on stderr
    Human,
    /// As a line of JSON on stdout
    Json,
}

impl Serve {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        if self.open && !self.listen.ip().is_loopback() {
            return Err(CommandError::usage(format!(
                "--open: other machines can reach {}; remove --open and create keys with `proofhouse keys`",
                self.listen
            )));
        }
        if let Some(url) = &self.public_url {
            check_public(url)?;
        }
        named_directory(&self.manifests)?;
        let named = [&self.tls_cert, &self.tls_key].into_iter().flatten();
        named_files(named.map(PathBuf::as_path))?;
        let stop = CancellationToken::new();
        let serving = self.serve(stop.clone());
        until_server_ends(&stop, || self.telemetry.tell(STOPPING), serving)?.into_inner()?;
        Ok(Exit::Success)
    }

    async fn serve(&self, stop: CancellationToken) -> Result<(), CommandError> {
        survive_file_limits();
        let telemetry = self.telemetry.begin()?;
        let mut reloads = ReloadRequests::listen();
        let key = self.audit_key.as_deref();
        let signer = key.map(|path| signing_key(path, |new| self.telemetry.tell(new)));
        let signer = signer.transpose()?;
        let tls = self.tls()?;
        let (api_listener, hook_listener) =
            (bind(self.listen).await?, bind(self.webhook_listen).await?);
        let (api_at, hooks_at) = (api_listener.local_addr()?, hook_listener.local_addr()?);
        for address in [api_at, hooks_at] {
            if !address.ip().is_loopback() && tls.is_none() {
                self.telemetry.warn(&format!(
                    "warning: other machines can reach {address} without TLS; use --tls-cert or a TLS proxy"
                ));
            }
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        let places = ListenAddresses {
            api: format!("{scheme}://{api_at}"),
            hooks: format!("{scheme}://{hooks_at}"),
        };
        allow_open_files(OPEN_FILES);
        // What is wrong in the settings is told before a store is made.
        let setups = self.setups(&places)?;
        // Until everything has ended.
        let _alone = self.store.lock()?;
        let store = self.store.open_told(|new| self.telemetry.tell(new)).await?;
        let metrics = Arc::new(Metrics::of(store.as_ref()));
        let engine = self.engine(Arc::clone(&store), &setups, Arc::clone(&metrics));
        let engine = Arc::new(engine.await?);
        let first_key = self.first_key(store.as_ref()).await?;
        self.tell(&places, &engine, first_key.as_ref())?;
        let config = ApiConfig {
            open: self.open,
            tls: tls.is_some(),
            max_webhook_bytes: self.max_webhook_bytes as usize,
            rate: rate(self.rate),
            webhook_rate: rate(self.webhook_rate),
            allowed_hosts: self.allowed_hosts.clone(),
            ..ApiConfig::at(api_at)
        };
        let api = Api::new(Arc::clone(&engine), Arc::clone(&metrics), config);
        api.set_identity_provider(setups.identity_provider()?);
        api.set_trusted_proxies(self.trusted_proxies(&setups));
        let limits = ConnectionLimits {
            of_peer: usize::from(self.peer_connections),
            ..ConnectionLimits::default()
        };
        let listeners = vec![
            Listener {
                socket: api_listener,
                tls: tls.clone(),
                router: api.router(),
                limits,
                essential: is_essential,
            },
            Listener {
                socket: hook_listener,
                tls,
                router: api.webhook_router(),
                limits,
                essential: |_| false,
            },
        ];
        // Requests finish while the engine does: a stream of a task ends with its connection.
        let closing = CancellationToken::new();
        let serving = listen::serve(listeners, metrics, closing.clone(), self.grace);
        let working = async {
            stop.cancelled().await;
            engine.drain();
            tokio::time::sleep(self.drain).await;
            closing.cancel();
            engine.shutdown(self.grace).await;
        };
        let upkeep = async {
            let running = (engine.as_ref(), api.as_ref());
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.heed(&mut reloads, &setups, running, store.as_ref()) => {}
                () = audit::keep(&engine, signer.as_ref()) => {}
            }
        };
        tokio::join!(serving, working, upkeep);
        store.close().await;
        telemetry.finish();
        Ok(())
    }

    /// What makes the engine's setups, now and whenever the operator's file is read again.
    fn setups(&self, places: &ListenAddresses) -> Result<Setups, CommandError> {
        let root = self.public_url.as_deref().unwrap_or(&places.hooks);
        let operator = self.operator.operator()?;
        let secrets = Arc::new(RwLock::new(operator.secrets(std::iter::empty())));
        let known = Arc::clone(&secrets);
        let redactor: RedactText = Arc::new(move |text| read(&known).redact(text));
        let models = self.model.choice();
        let models = models
            .open(None, redactor, &environment())
            .map_err(|error| CommandError::of(&error, error.is_usage()))?;
        let files = self.files.as_deref().map(directory).transpose()?;
        Ok(Setups {
            api_root: root.trim_end_matches('/').to_owned(),
            dashboard: format!("{}/dashboard", places.api),
            first: Mutex::new(Some(operator)),
            secrets,
            sign_in: Mutex::default(),
            proxies: Mutex::default(),
            main: models.main,
            others: models.others,
            options: models.options,
            clock: models.clock,
            files,
        })
    }

    /// How long things are kept. What takes the place of old entries of the audit log is signed.
    fn kept(&self, operator: &Operator) -> Result<EngineRetention, CommandError> {
        let kept = self.retention.retention(&operator.retention());
        if kept.audit_ms.is_some() && self.audit_key.is_none() {
            return Err(CommandError::usage(
                "retention.audit: add --audit-key, whose key signs what takes the place of old entries",
            ));
        }
        Ok(kept)
    }

    async fn engine(
        &self,
        store: Arc<Store>,
        setups: &Setups,
        metrics: Arc<Metrics>,
    ) -> Result<Engine, CommandError> {
        let operator = lock(&setups.first).take();
        let operator = operator.map_or_else(|| self.operator.operator(), Ok)?;
        let setup = setups.of(self.kept(&operator)?, operator)?;
        let mut options = EngineOptions::new(setup.host, setup.environment, setup.client);
        options.webhooks = setup.webhooks;
        options.prices = setup.prices;
        options.strict = self.strict_webhooks;
        options.payload.max_bytes = self.max_webhook_bytes as usize;
        options.workers = usize::from(self.workers);
        options.lease = self.lease;
        options.idle_tools = self.idle_tools;
        options.max_lag = self.max_lag;
        options.retention = setup.retention;
        options.metrics = metrics;
        let source = ManifestSource::Directory(self.manifests.clone());
        Engine::open(store, source, options)
            .await
            .map_err(|error| CommandError::cannot_run(printable_line(&error.to_string())))
    }

    /// Reads the operator's file again whenever somebody asks for it.
    async fn heed(
        &self,
        reloads: &mut ReloadRequests,
        setups: &Setups,
        running: (&Engine, &Api),
        store: &Store,
    ) {
        loop {
            reloads.next().await;
            self.reload(setups, running, store).await;
        }
    }

    /// Reads the operator's file again. One that cannot be used changes nothing.
    async fn reload(&self, setups: &Setups, (engine, api): (&Engine, &Api), store: &Store) {
        let setup = self.operator.operator();
        let setup = setup.and_then(|operator| {
            let setup = setups.of(self.kept(&operator)?, operator)?;
            Ok((setup, setups.identity_provider()?))
        });
        let outcome = match setup {
            Ok((setup, provider)) => {
                engine.reconfigure(setup);
                api.set_identity_provider(provider);
                api.set_trusted_proxies(self.trusted_proxies(setups));
                self.telemetry.tell("settings reloaded");
                "done"
            }
            Err(error) => {
                self.telemetry
                    .warn(&format!("the old settings stay in use: {}", error.message));
                "failed"
            }
        };
        let object = json!({"kind": "settings", "id": "operator"});
        let entry = audit::by_server("settings.reload", &object, outcome);
        if let Err(error) = store.append_audit(entry).await {
            self.telemetry.warn(&printable_line(&format!(
                "the audit log cannot be written: {error}"
            )));
        }
    }

    /// The proxies that are believed: those of the flags, and those of the file that was last read.
    fn trusted_proxies(&self, setups: &Setups) -> TrustedProxies {
        let of_file = lock(&setups.proxies).clone();
        TrustedProxies::of(self.trusted_proxies.iter().copied().chain(of_file))
    }

    /// Nobody could use the API at first, so there is a key, once. It is shown to a person at a terminal; otherwise it goes to
    /// a file, because what a program prints ends up in logs.
    async fn first_key(&self, store: &Store) -> Result<Option<FirstKey>, CommandError> {
        let known = store.api_keys().await;
        let known =
            known.map_err(|error| CommandError::cannot_run(printable_line(&error.to_string())))?;
        if self.open || !known.is_empty() {
            return Ok(None);
        }
        let secret =
            KeySecret::new().map_err(|error| CommandError::cannot_run(error.to_string()))?;
        let is_person = self.format == ServeFormat::Human && !self.telemetry.log_json;
        let is_terminal = is_person && std::io::stderr().is_terminal();
        let first = if is_terminal && self.first_key_file.is_none() {
            FirstKey::Shown(secret.reveal().to_owned())
        } else {
            let path = match &self.first_key_file {
                Some(path) => path.clone(),
                None => self.store.first_key_file()?,
            };
            // Before it is kept: a key that nobody can have must not be there.
            let written = write_files::create_private(&path, &format!("{}\n", secret.reveal()));
            written.map_err(|error| {
                CommandError::cannot_run(format!("{}: {error}", shown_path(&path)))
            })?;
            FirstKey::File(path)
        };
        let order = KeyOrder {
            name: "made at the first start",
            scopes: &[KeyScope::Admin],
            ..KeyOrder::default()
        };
        let kept = key_change::keep(store, &secret, order).await;
        kept.map_err(|error| CommandError::of(&error, false))?;
        Ok(Some(first))
    }

    fn tls(&self) -> Result<Option<Arc<listen::TlsConfig>>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let config = listen::tls(&pem(certificate)?, &pem(key)?);
        config
            .map(Some)
            .map_err(|error| CommandError::cannot_run(format!("--tls-cert, --tls-key: {error}")))
    }

    fn tell(
        &self,
        places: &ListenAddresses,
        engine: &Engine,
        first_key: Option<&FirstKey>,
    ) -> Result<(), CommandError> {
        let snapshot = engine.manifests();
        for file in &snapshot.files {
            for problem in &file.problems {
                self.telemetry.warn(&printable_line(&format!(
                    "{}:{}:{}: {}: {} [{}]",
                    file.path,
                    problem.line,
                    problem.column,
                    problem.severity,
                    problem.message,
                    problem.code
                )));
            }
        }
        match self.format {
            ServeFormat::Human => {
                let agents = snapshot.catalog().agents().count();
                self.telemetry.tell(&format!(
                    "serving {agents} agents; dashboard and API at {}",
                    places.api
                ));
                self.telemetry.tell(&format!(
                    "webhooks at {}/v1/webhooks/events/NAMESPACE/TOOL",
                    places.hooks
                ));
                match first_key {
                    None => {}
                    Some(FirstKey::Shown(key)) => {
                        talk(
                            "Created an admin key. It is shown only once; create others with `proofhouse keys`:",
                        );
                        talk(key);
                    }
                    Some(FirstKey::File(path)) => self.telemetry.tell(&format!(
                        "Created an admin key in {}; create others with `proofhouse keys`",
                        shown_path(path)
                    )),
                }
                Ok(())
            }
            ServeFormat::Json => {
                let key_file = match first_key {
                    Some(FirstKey::File(path)) => Some(path.display().to_string()),
                    Some(FirstKey::Shown(_)) | None => None,
                };
                let told = json!({
                    "version": VERSION, "api": places.api, "webhooks": places.hooks, "key_file": key_file,
                    "owner": engine.owner(),
                });
                let mut data = StdoutData::new();
                data.line(&told.to_string())?;
                data.finish()
            }
        }
    }
}

/// Where the doors are.
struct ListenAddresses {
    api: String,
    hooks: String,
}

/// Where the first key went.
enum FirstKey {
    /// To the terminal.
    Shown(String),
    /// To a file.
    File(PathBuf),
}

/// Makes what an engine needs of what the operator configures.
struct Setups {
    api_root: String,
    dashboard: String,
    /// What was read at the start.
    first: Mutex<Option<Operator>>,
    /// Every secret that was ever configured; none of them is told.
    secrets: Arc<RwLock<Secrets>>,
    /// How people sign in, as it was last read.
    sign_in: Mutex<Option<SignInConfig>>,
    /// Which proxies are believed, as it was last read.
    proxies: Mutex<Vec<IpNet>>,
    main: Arc<dyn proofhouse_agent::model::Model>,
    others: Option<Arc<proofhouse_agent::task::ModelSource>>,
    options: proofhouse_agent::model::ModelOptions,
    clock: TaskClock,
    files: Option<PathBuf>,
}

impl Setups {
    /// The identity provider, if the file that was last read names one.
    fn identity_provider(&self) -> Result<Option<IdentityProvider>, CommandError> {
        let config = lock(&self.sign_in).clone();
        let provider =
            config.map(|config| IdentityProvider::new(config, proxies::from_environment()));
        let provider = provider.transpose();
        provider.map_err(|error| CommandError::cannot_run(error.to_string()))
    }

    fn of(
        &self,
        retention: EngineRetention,
        operator: Operator,
    ) -> Result<OperatorSetup, CommandError> {
        *lock(&self.sign_in) = operator.sign_in();
        *lock(&self.proxies) = operator.trusted_proxies().to_vec();
        let operator = operator.reached_at(&self.api_root, &self.dashboard);
        write(&self.secrets).extend(&operator.secrets(std::iter::empty()));
        let environment = operator.common_environment();
        let client = operator
            .client()
            .map_err(|error| CommandError::cannot_run(error.to_string()))?;
        let (webhooks, prices) = (operator.webhooks(), operator.prices());
        let (main, clock) = (Arc::clone(&self.main), Arc::clone(&self.clock));
        let (others, options) = (self.others.clone(), self.options.clone());
        let files = self.files.clone();
        let host = move |catalog| {
            let host = operator.host(catalog, &clock, Arc::clone(&main));
            let mut host = host.with_options(options.clone());
            if let Some(others) = &others {
                host = host.with_models(Arc::clone(others));
            }
            match &files {
                Some(files) => host.with_files(files.clone()),
                None => host,
            }
        };
        Ok(OperatorSetup {
            host: Arc::new(host),
            environment,
            client: Arc::new(client),
            webhooks,
            prices,
            retention,
        })
    }
}

/// A name that is no host.
#[derive(Debug, thiserror::Error)]
#[error("write the name of a host, such as agents.example.com, without a scheme, a port or a path")]
struct NotHostName;

fn host_name(text: &str) -> Result<String, NotHostName> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    let is_name = !text.is_empty() && text.len() <= 253 && text.chars().all(is_fine);
    // A colon is only part of an IPv6 address.
    let is_plain = !text.contains(':') || text.parse::<std::net::Ipv6Addr>().is_ok();
    (is_name && is_plain)
        .then(|| text.to_ascii_lowercase())
        .ok_or(NotHostName)
}

fn rate(per_second: u32) -> RateQuota {
    RateQuota {
        burst: per_second.saturating_mul(2),
        per_second: per_second.into(),
    }
}

/// A text that is no lease.
#[derive(Debug, thiserror::Error)]
enum InvalidLease {
    #[error(transparent)]
    InvalidDuration(#[from] InvalidDuration),
    #[error("a lease must be from {} ms to {} s", MIN_LEASE.as_millis(), MAX_LEASE.as_secs())]
    OutOfRange,
}

/// Reads a lease. A shorter one could not be renewed in time on a loaded machine; with a longer one, work would not move as
/// soon as is promised.
fn lease(text: &str) -> Result<Duration, InvalidLease> {
    let lease = duration(text)?;
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        Ok(lease)
    } else {
        Err(InvalidLease::OutOfRange)
    }
}

/// Platforms are told this address with a path behind it, so that nothing else may be.
fn check_public(text: &str) -> Result<(), CommandError> {
    let fits = |url: &url::Url| {
        let is_plain = url.query().is_none() && url.fragment().is_none();
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        ["http", "https"].contains(&url.scheme()) && url.has_host() && is_plain && is_anonymous
    };
    if url::Url::parse(text).is_ok_and(|url| fits(&url)) {
        return Ok(());
    }
    // It may hold a password, so that it is not repeated.
    Err(CommandError::usage(
        "--public-url: write an address such as https://hooks.example.com/path, without a user, `?` and `#`",
    ))
}

async fn bind(address: SocketAddr) -> Result<TcpListener, CommandError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| CommandError::cannot_run(format!("cannot listen on {address}: {error}")))
}

fn directory(path: &Path) -> Result<PathBuf, CommandError> {
    let wrong = |why: String| CommandError::usage(format!("--files {}: {why}", shown_path(path)));
    let found = path
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    if found.is_dir() {
        Ok(found)
    } else {
        Err(wrong("this is not a directory".to_owned()))
    }
}

fn pem(path: &Path) -> Result<Vec<u8>, CommandError> {
    let text = FileInput::File(path.to_owned()).read(MAX_PEM);
    let text = text.map_err(|error| {
        CommandError::cannot_run(printable_line(&format!("{}: {error}", shown_path(path))))
    })?;
    Ok(text.into_bytes())
}
