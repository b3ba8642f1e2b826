//! What the operator configures, in one file: settings, auth providers, egress, Kubernetes, MCP, webhooks and how
//! people sign in.
//!
//! ```yaml
//! settings:
//!   demo/weather: {api_key: "${WEATHER_KEY}"}
//! auth:
//!   github: {type: env, variable: GITHUB_TOKEN, tools: demo/issues, hosts: api.github.com}
//! egress:
//!   allow: [10.1.0.0/16]
//! ```
//!
//! A file with none of the seven keys is all settings, by tool. `${NAME}` in a text is a variable that the caller
//! looks up, and `$${` is the text `${`. Neither a finding nor the debug form of a configuration shows a
//! value of the file.
//!
//! ```
//! use proofhouse_tools::operator::OperatorConfig;
//!
//! let lookup = |name: &str| (name == "KEY").then(|| "sk-1".to_owned());
//! let (config, findings) = OperatorConfig::read("demo/weather: {api_key: \"${KEY}\"}\n", &lookup);
//! assert!(findings.is_empty());
//! assert_eq!(config.settings.expose()["demo/weather"]["api_key"], "sk-1");
//! ```

mod cluster;
mod fields;
mod prices;
mod provider;
mod proxies;
mod reader;
mod retention;
mod schema;
mod servers;
mod sign_in;
pub mod variables;
mod webhooks;

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use proofhouse_source::format::{FileFormat, FormatReader};
use proofhouse_source::{Diagnostic, NodeRef, PathSegment, ReadLimits, did_you_mean, starred};
use serde_json::{Map, Value};

use crate::auth::AuthConfig;
use crate::http::EgressPolicy;
pub use cluster::KubernetesConfig;
use fields::{EGRESS, OPERATOR};
pub use prices::{ModelCost, ModelPrices};
use proofhouse_manifest::interpolate::Sealed;
pub use proxies::{ProxyNetworkError, proxy_network};
use reader::OperatorReader;
pub use retention::{KeepTime, RetentionConfig};
pub use schema::{json_schema, reference};
pub use servers::{McpOauthConfig, McpOauthTool};
pub use sign_in::{GroupGrant, SignInConfig};
pub use webhooks::{AmbiguousSource, WebhookConfig, WebhookSource};

/// A configuration that people write has a few KiB; one that a program writes, some more.
const LIMITS: ReadLimits = ReadLimits {
    max_bytes: 1 << 20,
    max_depth: 32,
    max_nodes: 50_000,
};

/// The code of a variable that is not set.
pub const NOT_SET: &str = "OC-006";

/// The codes of findings about a configuration, and what each means.
///
/// ```
/// use proofhouse_tools::operator::CODES;
/// assert!(CODES.iter().any(|(code, _)| *code == "OC-006"));
/// ```
pub const CODES: &[(&str, &str)] = &[
    (
        "OC-001",
        "The text is not YAML that can be read, or is larger than it may be.",
    ),
    ("OC-002", "A value has the wrong type."),
    ("OC-003", "A key is unknown."),
    ("OC-004", "A key that is needed is missing."),
    ("OC-005", "A value cannot be used."),
    (NOT_SET, "An environment variable is not set."),
    ("OC-007", "A `${` is not the start of a variable."),
    (
        "OC-008",
        "The file is all settings, and one of them looks like a key of the file.",
    ),
    ("OC-009", "A secret would be sent without TLS."),
    ("OC-010", "A key is empty and counts as absent."),
    ("OC-011", "The egress policy allows every address."),
    ("OC-012", "A setting does not say which tool it is for."),
];

/// What the operator configures.
#[derive(Debug, Clone)]
pub struct OperatorConfig {
    /// The settings of tools, by namespace and name.
    pub settings: Sealed<Map<String, Value>>,
    /// The providers of `{auth.name()}`.
    pub auth: AuthConfig,
    /// Where tools may connect to.
    pub egress: EgressPolicy,
    /// Where `kubernetes_job` runs Jobs.
    pub kubernetes: KubernetesConfig,
    /// Variables that are added to the environment of MCP servers that are commands.
    pub mcp_environment: Sealed<Vec<(String, String)>>,
    /// How tools are authorized with MCP servers.
    pub mcp_oauth: McpOauthConfig,
    /// How webhooks are signed.
    pub webhooks: WebhookConfig,
    /// The identity provider that people sign in with, if there is one.
    pub sign_in: Option<SignInConfig>,
    /// Proxies before a server that are believed about whom they speak for.
    pub trusted_proxies: Vec<IpNet>,
    /// How long a server keeps things.
    pub retention: RetentionConfig,
    /// What models cost.
    pub prices: ModelPrices,
}

/// The names of the roles that groups may be granted.
pub const ACCESS_ROLES: &[&str] = fields::ROLES;

impl Default for OperatorConfig {
    /// Nothing is configured.
    fn default() -> Self {
        Self {
            settings: Sealed::new(Map::new()),
            auth: AuthConfig::default(),
            egress: EgressPolicy::default(),
            kubernetes: KubernetesConfig::default(),
            mcp_environment: Sealed::new(Vec::new()),
            mcp_oauth: McpOauthConfig::default(),
            webhooks: WebhookConfig::default(),
            sign_in: None,
            trusted_proxies: Vec::new(),
            retention: RetentionConfig::default(),
            prices: ModelPrices::default(),
        }
    }
}

/// Whether a text is meant to be an operator's file: its first key is one of that format.
///
/// ```
/// use proofhouse_tools::operator::is_meant_by;
///
/// assert!(is_meant_by("# Ours.\nsettings:\n  demo/weather: {api_key: x}\n"));
/// assert!(!is_meant_by("oatf: \"0.1\"\n"));
/// ```
#[must_use]
pub fn is_meant_by(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let first = lines.find(|line| {
        let line = line.trim_end();
        !line.is_empty() && !line.starts_with('#') && line != "---"
    });
    let key = first.and_then(|line| line.split_once(':'));
    key.is_some_and(|(key, _)| OPERATOR.knows(key))
}

/// The text with stars for everything that may be secret: of each line, only the key is shown.
///
/// ```
/// use proofhouse_tools::operator::shown;
///
/// assert_eq!(shown("a:\n  key: sk-1\n"), "a:\n  key: ****\n");
/// ```
#[must_use]
pub fn shown(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let indent = line.len() - line.trim_start().len();
        let key = line.find(':').map_or(indent, |colon| colon + 1);
        format!("{}{}", &line[..key], starred(&line[key..]))
    });
    lines.collect()
}

impl OperatorConfig {
    /// Reads a configuration, in YAML or JSON. `lookup` finds the variables that `${NAME}` names.
    ///
    /// What has an error is left out of the configuration; who finds an error among the findings should
    /// not use it. An empty file configures nothing.
    #[must_use]
    pub fn read(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> (Self, Vec<Diagnostic>) {
        let format = FileFormat {
            limits: &LIMITS,
            unreadable: "OC-001",
            may_be_empty: true,
        };
        let (config, findings) = format.read(text, |source| {
            let mut config = Self::default();
            let mut reader = OperatorReader::new(source, lookup);
            config.fill(source.root(), &mut reader);
            (Some(config), reader.into_findings())
        });
        (config.unwrap_or_default(), findings)
    }

    fn fill<'s>(&mut self, root: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) {
        if root.is_null() {
            return;
        }
        let keys = root.entries().into_iter().flatten().map(|(key, _)| key);
        let keys: Vec<&str> = keys.collect();
        if root.entries().is_some() && !keys.iter().any(|key| OPERATOR.knows(key)) {
            warn_of_near_misses(&keys, reader);
            self.settings = Sealed::new(read_settings(root, reader));
            return;
        }
        let Some(mut fields) = reader.fields(root, &OPERATOR) else {
            return;
        };
        let settings = fields.read("settings", |reader, node| {
            reader.is_mapping(node).then(|| read_settings(node, reader))
        });
        self.settings = Sealed::new(settings.unwrap_or_default());
        let auth = fields.read("auth", |reader, node| {
            Some(provider::read_all(node, reader))
        });
        self.auth = auth.unwrap_or_default();
        let egress = fields.read("egress", |reader, node| Some(read_egress(node, reader)));
        self.egress = egress.unwrap_or_default();
        let cluster = fields.read("kubernetes", |reader, node| {
            Some(cluster::read(node, reader))
        });
        self.kubernetes = cluster.unwrap_or_default();
        let mcp = fields.read("mcp", |reader, node| Some(servers::read(node, reader)));
        let (environment, oauth) = mcp.unwrap_or_default();
        self.mcp_environment = Sealed::new(environment);
        self.mcp_oauth = oauth;
        let webhooks = fields.read("webhooks", |reader, node| {
            Some(webhooks::read(node, reader))
        });
        self.webhooks = webhooks.unwrap_or_default();
        self.sign_in = fields.read("sign_in", |reader, node| sign_in::read(node, reader));
        let proxies = fields.read("trusted_proxies", |reader, node| {
            Some(proxies::read(node, reader))
        });
        self.trusted_proxies = proxies.unwrap_or_default();
        let retention = fields.read("retention", |reader, node| {
            Some(retention::read(node, reader))
        });
        self.retention = retention.unwrap_or_default();
        let prices = fields.read("prices", |reader, node| Some(prices::read(node, reader)));
        self.prices = prices.unwrap_or_default();
    }
}

/// The settings of each tool. One that is nobody's, as all were once, is an error that says how to write it.
fn read_settings<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Map<String, Value> {
    let mut settings = Map::new();
    for (tool, of) in node.entries().into_iter().flatten() {
        reader.within(PathSegment::Key(tool), |reader| {
            let mut parts = tool.split('/');
            let is_tool = [parts.next(), parts.next()]
                .into_iter()
                .all(|part| part.is_some_and(|part| !part.is_empty()));
            if !is_tool || parts.next().is_some() {
                let shown: String = tool.chars().take(60).collect();
                reader.walk().error_at_key(
                    "OC-012",
                    format!("`{shown}` does not say which tool it is for"),
                    Some(format!(
                        "settings belong to tools: write `NAMESPACE/TOOL: {{{shown}: …}}`, once for each tool that has it"
                    )),
                );
            } else if reader.is_mapping(of) {
                settings.insert(tool.to_owned(), reader.value(of));
            }
        });
    }
    settings
}

/// In a file that is all settings, a key like `setings` or `egress.allow` is probably a slip.
fn warn_of_near_misses<'s>(keys: &[&'s str], reader: &mut OperatorReader<'s, '_>) {
    for key in keys {
        let first = key.split('.').next().unwrap_or_default();
        let near = match OPERATOR.keys().find(|known| *known == first) {
            Some(known) => Some(known),
            None => did_you_mean(key, OPERATOR.keys()),
        };
        if let Some(near) = near {
            reader.within(PathSegment::Key(key), |reader| {
                let shown: String = key.chars().take(60).collect();
                let keys: Vec<&str> = OPERATOR.keys().collect();
                reader.walk().warn_at_key(
                    "OC-008",
                    format!(
                        "`{shown}` is a setting here, since the file has none of the keys {}",
                        keys.join(", ")
                    ),
                    Some(format!(
                        "write `{near}:` for that key, or put the settings below `settings:`"
                    )),
                );
            });
        }
    }
}

fn read_egress<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> EgressPolicy {
    let mut networks = Vec::new();
    let Some(mut fields) = reader.fields(node, &EGRESS) else {
        return EgressPolicy::allowing(networks);
    };
    fields.read("allow", |reader, allow| {
        for (text, index) in reader.texts(allow) {
            reader.within(PathSegment::Index(index), |reader| match network(&text) {
                Some(network) => {
                    if network.prefix_len() == 0 {
                        reader.warn(
                            "OC-011",
                            "this lets tools reach every address, those of this machine too"
                                .to_owned(),
                            Some("name the networks that are needed".to_owned()),
                        );
                    }
                    networks.push(network);
                }
                None => reader.error(
                    "OC-005",
                    "this is not a network".to_owned(),
                    Some("write it as `10.1.0.0/16` or `fd00::/8`".to_owned()),
                ),
            });
        }
        Some(())
    });
    let mut policy = EgressPolicy::allowing(networks);
    let hosts = fields.read("hosts", |reader, hosts| Some(read_hosts(hosts, reader)));
    for (name, address) in hosts.unwrap_or_default() {
        policy = policy.with_host(&name, address);
    }
    let believing = fields.read("certificates", |reader, node| {
        let pem = reader.text(node)?;
        let believing = policy.clone().believing(&pem);
        if let Err(error) = &believing {
            reader.error("OC-005", error.to_string(), None);
        }
        believing.ok()
    });
    believing.unwrap_or(policy)
}

/// The addresses of names.
fn read_hosts<'s>(
    node: NodeRef<'s>,
    reader: &mut OperatorReader<'s, '_>,
) -> Vec<(String, SocketAddr)> {
    let mut hosts = Vec::new();
    if !reader.is_mapping(node) {
        return hosts;
    }
    for (name, address) in node.entries().into_iter().flatten() {
        reader.within(PathSegment::Key(name), |reader| {
            let Some(text) = reader.text(address) else {
                return;
            };
            let text = text.trim();
            let ip = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
            match ip.or_else(|_| text.parse::<SocketAddr>()) {
                Ok(address) => hosts.push((name.to_owned(), address)),
                Err(_) => reader.error(
                    "OC-005",
                    "this is not an address".to_owned(),
                    Some("write it as `10.1.0.7`, `10.1.0.7:8443` or `[fd00::7]:8443`".to_owned()),
                ),
            }
        });
    }
    hosts
}

/// A network in CIDR form, or one address.
fn network(text: &str) -> Option<IpNet> {
    let text = text.trim();
    let parsed = text.parse::<IpNet>().ok();
    parsed.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}
