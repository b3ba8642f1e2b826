//! What runs tools and agents, made of what the operator configures: settings, tokens, runtimes, and where tools may
//! connect.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipnet::IpNet;
use jiff::Timestamp;
use proofhouse_agent::model::Model;
use proofhouse_agent::task::Host;
use proofhouse_manifest::interpolate::{Root, Sealed, Secrets};
use proofhouse_manifest::{Catalog, Tool};
use proofhouse_mcp_auth::{Consent, TokenVault};
use proofhouse_tools::actions::{KubernetesJobs, McpAuthorization, McpRuntime};
use proofhouse_tools::auth::Providers;
use proofhouse_tools::http::{EgressPolicy, HttpClient};
use proofhouse_tools::operator::{
    McpOauthConfig, ModelPrices, OperatorConfig, RetentionConfig, SignInConfig, WebhookConfig,
};
use proofhouse_tools::runtime::{
    ActionError, ActionFailure, Environment, Runtimes, ToolLimits, ToolTask,
};
use proofhouse_tools::serve::ManifestTools;
use serde_json::{Map, Value, json};

use crate::tool_manifests::Located;
use proofhouse_wire::files::FileInput;

/// What the operator configured, ready for use.
pub struct Operator {
    settings: Sealed<Map<String, Value>>,
    /// Settings of the command line, for the tool that declares them.
    declared: Sealed<Map<String, Value>>,
    runtimes: Runtimes,
    /// The runtime of MCP servers, for logging in.
    mcp: McpRuntime,
    authorization: McpAuthorization,
    tokens: Arc<Providers>,
    limits: ToolLimits,
    egress: EgressPolicy,
    webhooks: WebhookConfig,
    sign_in: Option<SignInConfig>,
    trusted_proxies: Vec<IpNet>,
    retention: RetentionConfig,
    prices: ModelPrices,
    runtime: Value,
}

impl Operator {
    /// Sets up what runs tools: what is configured, more settings, and networks that may be reached although they are
    /// not public. A setting that is called `namespace/tool.name` is that tool's; others are for the tool that declares them.
    /// `variable` looks up the environment, of which the cluster and the search path of commands are read.
    /// `limits` are those of the tools.
    ///
    /// # Errors
    ///
    /// Returns an error when a runtime cannot be set up.
    pub fn new(
        config: OperatorConfig,
        more: &[(String, String)],
        allow: &[IpNet],
        limits: ToolLimits,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ActionError> {
        let mut settings = config.settings.into_exposed();
        let mut declared = Map::new();
        for (name, value) in more {
            // A name behind a tool's is for that tool.
            let of_tool = name.split_once('/').and_then(|(namespace, rest)| {
                let (tool, setting) = rest.split_once('.')?;
                Some((format!("{namespace}/{tool}"), setting))
            });
            match of_tool {
                None => drop(declared.insert(name.clone(), value.clone().into())),
                Some((tool, setting)) => {
                    let own = settings.entry(tool).or_insert_with(|| json!({}));
                    own[setting] = value.clone().into();
                }
            }
        }
        let egress = config.egress.and_allowing(allow.iter().copied());
        let tokens = Providers::new(&config.auth, &limits, egress.clone(), seconds);
        let cluster = config.kubernetes.cluster(variable);
        let jobs = KubernetesJobs::new(cluster, &limits);
        let mcp = McpRuntime::new(&limits, egress.clone())?;
        // Servers that are commands are found where a shell would find them.
        let path = variable("PATH").and_then(|path| path.into_string().ok());
        let mcp = match path {
            None => mcp,
            Some(path) => mcp.with_environment([("PATH", path)]),
        };
        let mcp = mcp.with_variables(config.mcp_environment.into_exposed());
        let vault = vault(&config.mcp_oauth, variable)?;
        let authorization = McpAuthorization::new(config.mcp_oauth.tools, vault, Arc::new(seconds));
        let mcp = mcp.with_authorization(authorization.clone());
        let runtimes = Runtimes::new(&limits, egress.clone())?;
        Ok(Self {
            settings: Sealed::new(settings),
            declared: Sealed::new(declared),
            runtimes: runtimes
                .with(
                    proofhouse_manifest::BackendKind::KubernetesJob,
                    Arc::new(jobs),
                )
                .with(proofhouse_manifest::BackendKind::Mcp, Arc::new(mcp.clone())),
            mcp,
            authorization,
            tokens: Arc::new(tokens?),
            limits,
            egress,
            webhooks: config.webhooks,
            sign_in: config.sign_in,
            trusted_proxies: config.trusted_proxies,
            retention: config.retention,
            prices: config.prices,
            runtime: json!({"version": env!("CARGO_PKG_VERSION"), "dashboard_url": "", "api_root": ""}),
        })
    }

    /// How tools are authorized with MCP servers.
    #[must_use]
    pub fn authorization(&self) -> &McpAuthorization {
        &self.authorization
    }

    /// Gets a token for the MCP server of a tool, with the consent of a person, and keeps it. Yields the server's address.
    ///
    /// # Errors
    ///
    /// Returns an error when nothing is configured for the tool, or there is no way to get a token.
    pub async fn log_in(
        &self,
        located: &Located,
        consent: Arc<dyn Consent>,
    ) -> Result<String, ActionError> {
        let environment = self.environment(located);
        let logged_in = self.mcp.log_in(&located.tool, &environment, consent).await;
        logged_in.map(String::from)
    }

    /// Makes sure that settings without the name of a tool are for one of these.
    ///
    /// # Errors
    ///
    /// Returns an error when several tools declare such a setting.
    pub fn check_settings<'t>(
        &self,
        tools: impl Iterator<Item = &'t Arc<Tool>>,
    ) -> Result<(), ActionError> {
        self.bare_environment(now).check_shared(tools)
    }

    /// A task of one tool.
    #[must_use]
    pub fn task(&self, located: &Located) -> ToolTask {
        ToolTask::new(
            Arc::clone(&located.tool),
            self.environment(located),
            self.runtimes.clone(),
            self.limits.clone(),
        )
    }

    /// Tools that a server can open for each of its sessions.
    #[must_use]
    pub fn served(&self, tools: &[Located]) -> ManifestTools {
        let tools = tools.iter();
        let tools = tools.map(|located| (Arc::clone(&located.tool), self.environment(located)));
        ManifestTools::new(tools.collect(), self.runtimes.clone(), self.limits.clone())
    }

    /// A host for the tasks of agents.
    #[must_use]
    pub fn host(
        &self,
        catalog: Catalog,
        clock: &Arc<dyn Fn() -> String + Send + Sync>,
        model: Arc<dyn Model>,
    ) -> Host {
        let clock = Arc::clone(clock);
        Host::new(
            catalog,
            self.runtimes.clone(),
            self.limits.clone(),
            self.bare_environment(move || clock()),
            model,
        )
    }

    /// The secrets among the settings of all these tools.
    #[must_use]
    pub fn secrets<'t>(&self, tools: impl Iterator<Item = &'t Arc<Tool>>) -> Secrets {
        let environment = self.bare_environment(now);
        let mut secrets = Secrets::default();
        for tool in tools {
            secrets.extend(&environment.secrets(tool));
        }
        secrets
    }

    fn environment(&self, located: &Located) -> Environment {
        self.bare_environment(now)
            .with(Root::Agent, agent(&located.tool))
            .with_base(&located.directory)
    }

    /// The same, where platforms and people reach it at these addresses.
    #[must_use]
    pub fn reached_at(mut self, api_root: &str, dashboard: &str) -> Self {
        self.runtime["api_root"] = api_root.into();
        self.runtime["dashboard_url"] = dashboard.into();
        self
    }

    /// A client under the same rules as the tools, for polls and subscriptions.
    ///
    /// # Errors
    ///
    /// Returns an error when there can be none.
    pub fn client(&self) -> Result<HttpClient, ActionError> {
        // They come again by themselves, and must not keep others waiting meanwhile.
        let limits = ToolLimits {
            outage: Duration::ZERO,
            ..self.limits.clone()
        };
        HttpClient::new(&limits, self.egress.clone())
    }

    /// How webhooks are signed.
    #[must_use]
    pub fn webhooks(&self) -> WebhookConfig {
        self.webhooks.clone()
    }

    /// The identity provider that people sign in with, if there is one.
    #[must_use]
    pub fn sign_in(&self) -> Option<SignInConfig> {
        self.sign_in.clone()
    }

    /// Proxies before a server that are believed about whom they speak for.
    #[must_use]
    pub fn trusted_proxies(&self) -> &[IpNet] {
        &self.trusted_proxies
    }

    /// How long a server keeps things.
    #[must_use]
    pub fn retention(&self) -> RetentionConfig {
        self.retention
    }

    /// What models cost.
    #[must_use]
    pub fn prices(&self) -> ModelPrices {
        self.prices.clone()
    }

    /// What calls know that belong to no task.
    #[must_use]
    pub fn common_environment(&self) -> Environment {
        self.bare_environment(now)
    }

    fn bare_environment(&self, clock: impl Fn() -> String + Send + Sync + 'static) -> Environment {
        let (by_tool, declared) = (self.settings.expose(), self.declared.expose());
        Environment::for_tools(by_tool.clone(), declared.clone(), clock)
            .with(Root::Runtime, self.runtime.clone())
            .with_tokens(Arc::clone(&self.tokens) as Arc<_>)
    }
}

/// The context of a call that no agent makes.
#[must_use]
pub fn context(tool: &Tool) -> Value {
    json!({"agent": agent(tool)})
}

fn agent(tool: &Tool) -> Value {
    json!({"name": "proofhouse", "namespace": tool.namespace})
}

/// The time as RFC 3339 in UTC, always of the same width.
#[must_use]
pub fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.as_ref().map_or(0, Duration::as_secs)
}

/// The variable with the key that tokens are sealed with.
const TOKEN_KEY: &str = "PROOFHOUSE_TOKEN_KEY";
/// A key has 44 characters; a file of it may have a line more.
const MAX_KEY_FILE: usize = 4096;

/// Where tokens are kept, if the operator names a place.
fn vault(
    config: &McpOauthConfig,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Arc<TokenVault>>, ActionError> {
    let Some(directory) = &config.tokens else {
        return Ok(None);
    };
    let wrong = |message: String| ActionError::new(ActionFailure::Setting, message);
    let key = match &config.token_key_file {
        Some(file) => FileInput::File(file.clone())
            .read(MAX_KEY_FILE)
            .map_err(|error| wrong(format!("`mcp.token_key_file` {}: {error}", file.display())))?,
        None => variable(TOKEN_KEY)
            .and_then(|key| key.into_string().ok())
            .ok_or_else(|| {
                wrong(format!(
                    "`mcp.tokens` needs a key: name a file in `mcp.token_key_file`, or set {TOKEN_KEY}"
                ))
            })?,
    };
    let vault = TokenVault::new(directory, &key).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(Arc::new(vault)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_has_one_width() {
        let now = now();
        assert_eq!(now.len(), "2026-01-02T03:04:05.678Z".len(), "{now}");
        assert!(now.ends_with('Z'));
    }
}
