//! Connecting: from the block of a manifest to a server that has listed its tools.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_wire::Spawn;
use proofhouse_wire::client::Client;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, JsonObject, ProtocolVersion,
    TASKS_EXTENSION_ID,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::time::{Instant, timeout_at};

use super::authorization::McpAuthorization;
use super::catalog::ToolCatalog;
use super::connection::McpConnection;
use super::endpoint::Endpoint;
use super::failure::{MAX_SAID, may_be_legacy, of_start, status, tail};
use super::http::SdkHttpTransport;
use super::known_secrets::KnownSecrets;
use super::legacy_sse::LegacySse;
use super::link::ServerLink;
use super::process::{self, ServerProcess};
use super::sieve::Sieve;
use crate::runtime::{ActionCall, ActionError, ActionFailure, Environment, ToolLimits};
use proofhouse_manifest::interpolate::Template;
use proofhouse_manifest::{Mcp, McpTransport};

/// How often a stream that broke is asked for again before it is given up.
const MAX_RESUMES: usize = 3;

/// What it takes to connect to a server, the first time and again.
pub(super) struct Connector {
    pub(super) client: Client,
    pub(super) auth_client: Client,
    pub(super) authorization: Option<McpAuthorization>,
    pub(super) limits: ToolLimits,
    /// What every server finds in its environment.
    pub(super) base: Vec<(String, String)>,
    pub(super) block: Mcp,
    /// The call that the block is filled in for.
    pub(super) call: ActionCall,
    pub(super) environment: Environment,
    pub(super) secrets: KnownSecrets,
    pub(super) catalog: Arc<ToolCatalog>,
}

/// What is known of a server before it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Unknown,
    Modern,
    Legacy,
}

type StartedClient = Result<RunningService<RoleClient, ClientConfig>, ClientInitializeError>;

impl Connector {
    /// Starts the server or connects to it, and lists its tools.
    pub(super) async fn connect(&self) -> Result<McpConnection, ActionError> {
        let deadline = Instant::now() + self.limits.mcp_start;
        let connected = match self.block.transport {
            Some(McpTransport::Stdio) => self.stdio(deadline).await,
            Some(McpTransport::StreamableHttp) => self.http(deadline).await,
            Some(McpTransport::Sse) => match self.http(deadline).await {
                Err(error) if is_no_streamable_http(&error) => self.legacy_sse(deadline).await,
                other => other,
            },
            None => Err(ActionError::new(
                ActionFailure::Manifest,
                "the block has no `transport`",
            )),
        };
        let connection = connected.map_err(|error| error.redacted(&self.secrets.all()))?;
        let listed = match timeout_at(deadline, connection.list()).await {
            Ok(listed) => listed,
            Err(_) => Err(self.too_slow("did not list its tools")),
        };
        match listed {
            Ok(tools) => {
                self.catalog.replace(tools);
                Ok(connection)
            }
            Err(error) => {
                let error = self.with_words(error, &connection.said().await);
                connection.close().await;
                Err(error)
            }
        }
    }

    /// An error with what the server wrote to its error output, without secrets.
    pub(super) fn with_words(&self, error: ActionError, said: &str) -> ActionError {
        let secrets = self.secrets.all();
        let mut error = error.redacted(&secrets);
        let visible = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let said: String = secrets.redact(said).chars().filter(visible).collect();
        let said = tail(said.trim(), MAX_SAID);
        if !said.is_empty() {
            error.detail.insert("stderr".to_owned(), said.into());
        }
        error
    }

    fn too_slow(&self, what: &str) -> ActionError {
        let seconds = self.limits.mcp_start.as_secs_f32();
        let message = format!("the MCP server {what} in {seconds} s");
        ActionError::new(ActionFailure::Timeout, message)
    }

    /// The error of a server that was not ready in time: of one that nobody can connect to, it is that.
    fn not_ready(&self, endpoint: &Endpoint) -> ActionError {
        match self.client.circuits().is_open(endpoint.url()) {
            Some(open) => {
                let host = endpoint.url().host_str().unwrap_or("the host");
                let waited = self.limits.mcp_start.min(self.limits.outage);
                ActionError::unreachable(host, &open.reason, waited)
            }
            None => self.too_slow("was not ready"),
        }
    }

    async fn stdio(&self, deadline: Instant) -> Result<McpConnection, ActionError> {
        let spawn = self.spawn().await?;
        let mut era = Era::Unknown;
        loop {
            let sieve = Arc::new(Sieve::new());
            let limit = self.limits.max_response_bytes;
            let (process, transport) = process::start(&spawn, Arc::clone(&sieve), limit)?;
            let link = ServerLink::Stdio(transport);
            let started = timeout_at(deadline, serve(link, era)).await;
            let error = match started {
                Ok(Ok(running)) => return Ok(self.connection(running, Some(process), sieve).await),
                // It takes longer to start than the SDK waits for its first word.
                Ok(Err(_)) if era == Era::Unknown && process.is_modern_but_slow() => {
                    process.stop().await;
                    era = Era::Modern;
                    continue;
                }
                Ok(Err(error)) if era == Era::Unknown && may_be_legacy(&error) => {
                    // A server that ends because of a question it does not know is asked otherwise.
                    process.stop().await;
                    era = Era::Legacy;
                    continue;
                }
                Ok(Err(error)) => of_start(&error),
                Err(_) => self.too_slow("was not ready"),
            };
            let error = self.with_words(error, &process.said().await);
            process.stop().await;
            return Err(error);
        }
    }

    async fn spawn(&self) -> Result<Spawn, ActionError> {
        let block = &self.block;
        let command = block.command.as_ref();
        let command = command.ok_or_else(|| {
            ActionError::new(ActionFailure::Manifest, "the block has no `command`")
        })?;
        let arguments = block.args.as_deref().unwrap_or_default();
        let values = block.env.iter().map(|(_, value)| value);
        let templates: Vec<&Template> = std::iter::once(command)
            .chain(arguments)
            .chain(values)
            .collect();
        let references = templates.iter().flat_map(|template| template.references());
        let references: Vec<_> = references.collect();
        let scope = self
            .environment
            .scope(&self.call, references.into_iter(), false)
            .await?;
        scope.check_handed_to("a command")?;
        self.secrets.learn(scope.secrets());
        let text = |template: &Template| scope.text(template).map(|text| text.into_exposed());
        let mut environment = self.base.clone();
        for (name, value) in &block.env {
            environment.retain(|(known, _)| known != name);
            environment.push((name.clone(), text(value)?));
        }
        Ok(Spawn {
            program: text(command)?,
            arguments: arguments.iter().map(text).collect::<Result<_, _>>()?,
            environment,
            clean_environment: true,
            directory: None,
        })
    }

    async fn endpoint(&self, sieve: &Arc<Sieve>) -> Result<Endpoint, ActionError> {
        Endpoint::new(
            self.client.clone(),
            &self.block,
            &self.call,
            &self.environment,
            self.secrets.clone(),
            &self.limits,
            Arc::clone(sieve),
            self.authorization
                .as_ref()
                .map(|authorization| (authorization, &self.auth_client)),
        )
        .await
    }

    async fn http(&self, deadline: Instant) -> Result<McpConnection, ActionError> {
        let sieve = Arc::new(Sieve::new());
        let endpoint = self.endpoint(&sieve).await?;
        let mut era = Era::Unknown;
        loop {
            let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url().as_str());
            // A new session is a matter of ours: the list of tools is asked for again with it.
            config.reinit_on_expired_session = false;
            let mut retry = FixedInterval::default();
            retry.max_times = Some(MAX_RESUMES);
            config.retry_config = Arc::new(retry);
            let client = SdkHttpTransport::new(endpoint.clone());
            let transport = StreamableHttpClientTransport::with_client(client, config);
            let link = ServerLink::Http(transport);
            match timeout_at(deadline, serve(link, era)).await {
                Ok(Ok(running)) => return Ok(self.connection(running, None, sieve).await),
                Ok(Err(error)) if era == Era::Unknown && may_be_legacy(&error) => {
                    era = Era::Legacy;
                }
                Ok(Err(error)) => return Err(of_start(&error)),
                Err(_) => return Err(self.not_ready(&endpoint)),
            }
        }
    }

    async fn legacy_sse(&self, deadline: Instant) -> Result<McpConnection, ActionError> {
        let sieve = Arc::new(Sieve::new());
        let endpoint = self.endpoint(&sieve).await?;
        let starting = async {
            let transport = LegacySse::open(endpoint.clone())
                .await
                .map_err(|error| error.0)?;
            let started = serve(ServerLink::LegacySse(Box::new(transport)), Era::Legacy).await;
            started.map_err(|error| of_start(&error))
        };
        match timeout_at(deadline, starting).await {
            Ok(Ok(running)) => Ok(self.connection(running, None, sieve).await),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.not_ready(&endpoint)),
        }
    }

    async fn connection(
        &self,
        running: RunningService<RoleClient, ClientConfig>,
        process: Option<ServerProcess>,
        sieve: Arc<Sieve>,
    ) -> McpConnection {
        let refresh: Duration = self.limits.mcp_start;
        McpConnection::new(running, process, sieve, Arc::clone(&self.catalog), refresh).await
    }
}

/// Begins a session: finds out the era, or takes it as given. The client offers nothing but to wait for tasks:
/// nobody to ask, no model and no files.
async fn serve(link: ServerLink, era: Era) -> StartedClient {
    // Without the builder of the SDK, which is only there with its servers.
    let mut capabilities = ClientCapabilities::default();
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
    let this = Implementation::new("proofhouse", env!("CARGO_PKG_VERSION"));
    let config =
        ClientConfig::new(capabilities, this).with_protocol_version(ProtocolVersion::V_2025_11_25);
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
        Era::Unknown => ClientLifecycleMode::Auto {
            preferred_versions,
            // By itself the SDK asks for the modern version here; a server that says yes to that would
            // be of neither era.
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    };
    config.serve_with_lifecycle(link, lifecycle).await
}

/// Whether a server says that nobody posts to this address.
fn is_no_streamable_http(error: &ActionError) -> bool {
    error.failure == ActionFailure::HttpStatus
        && status(error).is_some_and(|status| {
            (400..500).contains(&status) && !matches!(status, 401 | 403 | 429)
        })
}
