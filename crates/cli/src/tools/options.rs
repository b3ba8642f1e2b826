//! What the operator configures on the command line: settings, tokens, and where tools may connect.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use ipnet::IpNet;
use jiff::Timestamp;
use proofhouse_agent::model::Model;
use proofhouse_agent::task::Host;
use proofhouse_manifest::interpolate::{Root, Sealed, Secrets};
use proofhouse_manifest::{Catalog, Tool};
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};
use proofhouse_tools::actions::{KubernetesJobs, McpRuntime};
use proofhouse_tools::auth::Providers;
use proofhouse_tools::http::{EgressPolicy, HttpClient};
use proofhouse_tools::operator::{KubernetesConfig, OperatorConfig, WebhookConfig};
use proofhouse_tools::runtime::{ActionError, Environment, Limits, Runtimes, ToolTask};
use proofhouse_tools::serve::ManifestTools;
use serde_json::{Map, Value, json};

use super::arguments::pair;
use super::manifests::Located;
use crate::input::Input;
use crate::output::{CommandError, talk};

/// How large a file of settings may be; its reader has the same limit.
const MAX_SETTINGS: usize = 1 << 20;

/// What tools are told that no model says.
#[derive(Debug, Args)]
pub(crate) struct OperatorOptions {
    /// What the operator configures: `settings`, `auth`, `egress`, `kubernetes`, `mcp` and `webhooks`, in YAML
    /// or JSON; `${NAME}` in it is a variable of the environment
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// One setting, as text; may be given again. Secrets belong into a file: others can see command lines
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = pair)]
    setting: Vec<(String, String)>,

    /// A network that tools may connect to although it is not public, such as 127.0.0.1; may be given again
    #[arg(long, value_name = "CIDR", value_parser = network)]
    allow: Vec<IpNet>,
}

/// What the operator configured, ready for use.
pub(crate) struct Operator {
    settings: Sealed<Value>,
    runtimes: Runtimes,
    tokens: Arc<Providers>,
    limits: Limits,
    egress: EgressPolicy,
    webhooks: WebhookConfig,
    runtime: Value,
}

impl OperatorOptions {
    /// Whether the settings come from stdin.
    pub(crate) fn read_stdin(&self) -> bool {
        self.settings.as_deref() == Some(Path::new("-"))
    }

    /// The file of settings, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.settings.as_deref()
    }

    /// Reads the file and sets up what runs tools.
    pub(crate) fn operator(&self) -> Result<Operator, CommandError> {
        let config = self.config()?;
        let mut settings = match config.settings.into_exposed() {
            Value::Object(settings) => settings,
            _ => Map::new(),
        };
        for (name, value) in &self.setting {
            settings.insert(name.clone(), value.clone().into());
        }
        let egress = config.egress.and_allowing(self.allow.iter().copied());
        let limits = Limits::default();
        let failed = |error: ActionError| CommandError::cannot_run(error.to_string());
        let tokens = Providers::new(&config.auth, &limits, egress.clone(), seconds);
        let cluster = self.beside_file(config.kubernetes).cluster(variable);
        let jobs = KubernetesJobs::new(cluster, &limits);
        let mcp = McpRuntime::new(&limits, egress.clone()).map_err(failed)?;
        let mcp = match search_path() {
            path if path.is_empty() => mcp,
            path => mcp.with_environment(path),
        };
        let mcp = mcp.with_variables(config.mcp_environment.into_exposed());
        let runtimes = Runtimes::new(&limits, egress.clone()).map_err(failed)?;
        Ok(Operator {
            settings: Sealed::new(Value::Object(settings)),
            runtimes: runtimes
                .with("kubernetes_job", Arc::new(jobs))
                .with("mcp", Arc::new(mcp)),
            tokens: Arc::new(tokens.map_err(failed)?),
            limits,
            egress,
            webhooks: config.webhooks,
            runtime: json!({"version": env!("CARGO_PKG_VERSION"), "dashboard_url": "", "api_root": ""}),
        })
    }

    /// A kubeconfig is looked for beside the file that names it.
    fn beside_file(&self, mut config: KubernetesConfig) -> KubernetesConfig {
        let directory = self.settings.as_deref().and_then(Path::parent);
        if let (Some(file), Some(directory), false) =
            (&mut config.kubeconfig, directory, self.read_stdin())
        {
            *file = directory.join(&file);
        }
        config
    }

    fn config(&self) -> Result<OperatorConfig, CommandError> {
        let Some(path) = &self.settings else {
            return Ok(OperatorConfig::default());
        };
        let input = match self.read_stdin() {
            true => Input::Stdin,
            false => Input::File(path.clone()),
        };
        let text = input.read(MAX_SETTINGS).map_err(|error| {
            CommandError::usage(format!("--settings {}: {error}", input.shown()))
        })?;
        let lookup = |name: &str| variable(name)?.into_string().ok();
        let (config, findings) = OperatorConfig::read(&text, &lookup);
        for finding in &findings {
            talk(&shown(&input, finding));
        }
        match findings
            .iter()
            .any(|finding| finding.severity == DiagnosticSeverity::Error)
        {
            true => Err(CommandError::cannot_run("the settings cannot be used")),
            false => Ok(config),
        }
    }
}

fn variable(name: &str) -> Option<OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator names the variable, or means the cluster that kubectl would use"
    )]
    std::env::var_os(name)
}

/// Where commands are looked for: servers that are commands are found where a shell would find them.
fn search_path() -> Vec<(&'static str, String)> {
    let path = variable("PATH").and_then(|path| path.into_string().ok());
    path.map(|path| ("PATH", path)).into_iter().collect()
}

/// A finding on one line. The line of the file is not shown: it may hold a secret.
fn shown(input: &Input, finding: &Diagnostic) -> String {
    let place = finding
        .span
        .map(|span| format!(":{}:{}", span.line, span.column));
    let help = finding.help.as_ref().map(|help| format!("; {help}"));
    format!(
        "{}{}: {}[{}]: {}{}",
        input.shown(),
        place.unwrap_or_default(),
        finding.severity,
        finding.code,
        finding.message,
        help.unwrap_or_default(),
    )
}

impl Operator {
    /// A task of one tool.
    pub(crate) fn task(&self, located: &Located) -> ToolTask {
        ToolTask::new(
            Arc::clone(&located.tool),
            self.environment(located),
            self.runtimes.clone(),
            self.limits.clone(),
        )
    }

    /// Tools that a server can open for each of its sessions.
    pub(crate) fn served(&self, tools: &[Located]) -> ManifestTools {
        let tools = tools.iter();
        let tools = tools.map(|located| (Arc::clone(&located.tool), self.environment(located)));
        ManifestTools::new(tools.collect(), self.runtimes.clone(), self.limits.clone())
    }

    /// A host for the tasks of agents.
    pub(crate) fn host(
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
    pub(crate) fn secrets<'t>(&self, tools: impl Iterator<Item = &'t Arc<Tool>>) -> Secrets {
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
    pub(crate) fn reached_at(mut self, api_root: &str, dashboard: &str) -> Self {
        self.runtime["api_root"] = api_root.into();
        self.runtime["dashboard_url"] = dashboard.into();
        self
    }

    /// A client under the same rules as the tools, for polls and subscriptions.
    pub(crate) fn client(&self) -> Result<HttpClient, CommandError> {
        HttpClient::new(&self.limits, self.egress.clone())
            .map_err(|error| CommandError::cannot_run(error.to_string()))
    }

    /// How webhooks are signed.
    pub(crate) fn webhooks(&self) -> WebhookConfig {
        self.webhooks.clone()
    }

    /// What calls know that belong to no task.
    pub(crate) fn common_environment(&self) -> Environment {
        self.bare_environment(now)
    }

    fn bare_environment(&self, clock: impl Fn() -> String + Send + Sync + 'static) -> Environment {
        Environment::new(self.settings.expose().clone(), clock)
            .with(Root::Runtime, self.runtime.clone())
            .with_tokens(Arc::clone(&self.tokens) as Arc<_>)
    }
}

/// The context of a call that no agent makes.
pub(crate) fn context(tool: &Tool) -> Value {
    json!({"agent": agent(tool)})
}

fn agent(tool: &Tool) -> Value {
    json!({"name": "proofhouse", "namespace": tool.namespace})
}

/// The time as RFC 3339 in UTC, always of the same width.
pub(crate) fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.as_ref().map_or(0, Duration::as_secs)
}

pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().ok();
    network
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        .ok_or_else(|| "write an address or a network, such as 127.0.0.1 or 10.1.0.0/16".to_owned())
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

    #[test]
    fn networks_are_addresses_too() {
        assert_eq!(network("127.0.0.1").unwrap().to_string(), "127.0.0.1/32");
        assert_eq!(network("fd00::/8").unwrap().to_string(), "fd00::/8");
        assert!(network("localhost").is_err() && network("10.0.0.0/40").is_err());
    }
}
