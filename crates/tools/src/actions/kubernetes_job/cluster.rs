//! Clusters: which one the operator means, how to sign in to it, and which namespaces may be used.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::api::ClusterApi;
use crate::runtime::{ActionError, ActionFailure, ToolLimits};
use proofhouse_manifest::KubernetesJob;
use proofhouse_manifest::interpolate::{Root, Secrets, Template};

/// A kubeconfig of a large organization has some hundred kilobytes.
const MAX_KUBECONFIG_BYTES: u64 = 4 << 20;

/// Commands that yield credentials ask a server for them.
const MAX_SIGN_IN: Duration = Duration::from_secs(30);

/// What to do when no cluster is configured.
const HOW_TO: &str = "name a kubeconfig file and a context, or run inside a cluster";

/// A cluster that runs Jobs, as the operator configured it.
///
/// Nothing is read before the first call. Its address is the operator's, so the egress policy does not
/// apply to it. A kubeconfig may name a command that yields credentials; it is run without a terminal.
///
/// ```
/// use proofhouse_tools::actions::Cluster;
/// let cluster = Cluster::kubeconfig("ci.kubeconfig").context("staging").allowing(["agent-jobs"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    source: ClusterSource,
    namespaces: BTreeSet<String>,
}

#[derive(Debug, Clone, Default)]
enum ClusterSource {
    #[default]
    None,
    Kubeconfig {
        files: Vec<PathBuf>,
        context: Option<String>,
    },
    InCluster {
        host: String,
        port: u16,
    },
}

/// A cluster that can be talked to, and the credentials that must not be shown.
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) secrets: Secrets,
    /// Where it is, for messages.
    pub(super) host: String,
}

impl Cluster {
    /// No cluster: every call says what to configure.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The cluster of a kubeconfig file's current context.
    #[must_use]
    pub fn kubeconfig(file: impl Into<PathBuf>) -> Self {
        Self::of_files(vec![file.into()])
    }

    /// The cluster this program runs in, with the service account of its Pod. The address is what the
    /// variables `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` say there.
    #[must_use]
    pub fn in_cluster(host: impl Into<String>, port: u16) -> Self {
        Self {
            source: ClusterSource::InCluster {
                host: host.into(),
                port,
            },
            namespaces: BTreeSet::new(),
        }
    }

    /// The cluster that `kubectl` would use, found in the caller's environment: the files of
    /// `KUBECONFIG`, else `~/.kube/config` if it is there, else the cluster around this program, else
    /// none. The library reads no environment, so the caller says how a variable is looked up.
    ///
    /// ```
    /// use proofhouse_tools::actions::Cluster;
    /// let cluster = Cluster::infer(|name| (name == "KUBECONFIG").then(|| "ci.kubeconfig".into()));
    /// assert!(cluster.is_configured());
    /// assert!(!Cluster::infer(|_| None).is_configured());
    /// ```
    #[must_use]
    pub fn infer(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let listed: Vec<PathBuf> = variable("KUBECONFIG")
            .map(|value| std::env::split_paths(&value).collect())
            .unwrap_or_default();
        let files: Vec<PathBuf> = listed
            .into_iter()
            .filter(|file| !file.as_os_str().is_empty())
            .collect();
        if !files.is_empty() {
            return Self::of_files(files);
        }
        let home = variable("HOME").map(|home| Path::new(&home).join(".kube").join("config"));
        if let Some(file) = home.filter(|file| file.is_file()) {
            return Self::kubeconfig(file);
        }
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        let port = text("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse().ok());
        match (text("KUBERNETES_SERVICE_HOST"), port) {
            (Some(host), Some(port)) => Self::in_cluster(host, port),
            _ => Self::none(),
        }
    }

    /// The same with another context of its kubeconfig.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        if let ClusterSource::Kubeconfig { context, .. } = &mut self.source {
            *context = Some(name.into());
        }
        self
    }

    /// The same with a list of the namespaces that may be used. With a list, nothing else is allowed,
    /// whoever chose it. Without one, the namespace must be written in the manifest or come from the
    /// operator's settings; a model cannot choose any.
    #[must_use]
    pub fn allowing<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces
            .extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !matches!(self.source, ClusterSource::None)
    }

    fn of_files(files: Vec<PathBuf>) -> Self {
        Self {
            source: ClusterSource::Kubeconfig {
                files,
                context: None,
            },
            namespaces: BTreeSet::new(),
        }
    }

    /// Whether a Job may run in this namespace, which the template yielded.
    pub(super) fn allows(&self, template: &Template, namespace: &str) -> Result<(), ActionError> {
        let forbid = |message: String| Err(ActionError::new(ActionFailure::Forbidden, message));
        if !is_dns_label(namespace) {
            return forbid("what the manifest names is not a namespace".to_owned());
        }
        if self.namespaces.contains(namespace) {
            return Ok(());
        }
        if !self.namespaces.is_empty() {
            return forbid(format!(
                "the operator does not allow Jobs in the namespace `{namespace}`"
            ));
        }
        let chosen = template
            .references()
            .find(|reference| !matches!(reference.root, Root::Settings | Root::Runtime));
        match chosen {
            None => Ok(()),
            Some(reference) => forbid(format!(
                "`{reference}` may choose a namespace only from a list of the operator's"
            )),
        }
    }

    /// Signs in, for requests of one's own.
    ///
    /// # Errors
    ///
    /// If no cluster is configured, or its credentials cannot be had.
    pub async fn open(&self, limits: &ToolLimits) -> Result<ClusterApi, ActionError> {
        let connected = self.connect(limits.connect).await?;
        let (client, host) = (connected.client, connected.host);
        Ok(ClusterApi::new(client, host, limits.clone()))
    }

    /// Signs in. Reads files and may run a command, so it happens beside the async threads.
    pub(super) async fn connect(&self, connect_time: Duration) -> Result<Connected, ActionError> {
        let mut config = match &self.source {
            ClusterSource::None => {
                let message = format!("no Kubernetes cluster is configured: {HOW_TO}");
                return Err(ActionError::new(ActionFailure::Setting, message));
            }
            ClusterSource::Kubeconfig { files, context } => {
                let (files, context) = (files.clone(), context.clone());
                let merged = beside(move || read(&files)).await??;
                from_kubeconfig(merged, context).await?
            }
            ClusterSource::InCluster { host, port } => {
                let address = address(host, *port);
                let mut config = beside(Config::incluster_dns).await?.map_err(|_| {
                    setting(
                        "the service account of a Pod is not there; is this running in a cluster?",
                    )
                })?;
                config.cluster_url = address.parse().map_err(|_| {
                    setting("KUBERNETES_SERVICE_HOST and _PORT do not make an address")
                })?;
                config
            }
        };
        config.connect_timeout = Some(connect_time);
        // Repeating is ours: bounded, and the same as everywhere.
        config.default_retry = false;
        if let Some(exec) = &mut config.auth_info.exec {
            exec.interactive_mode = Some(ExecInteractiveMode::Never);
        }
        let host = config
            .cluster_url
            .host()
            .unwrap_or("the cluster")
            .to_owned();
        let secrets = credentials(&config);
        let client = beside(move || {
            // What went wrong may quote the output of the command, which is a credential.
            Client::try_from(config).map_err(|error| match error {
                kube::Error::Auth(_) => setting("the credentials of the kubeconfig cannot be had"),
                kube::Error::RustlsTls(_) => {
                    setting("the certificates of the kubeconfig cannot be used")
                }
                _ => setting("the kubeconfig cannot be used"),
            })
        });
        Ok(Connected {
            client: client.await??,
            secrets,
            host,
        })
    }
}

/// Whether a call's own values decide what is submitted: then a refusal is told to the model.
pub(super) fn is_chosen(job: &KubernetesJob) -> bool {
    let mut templates = job.spec.templates();
    templates.push(&job.namespace);
    templates
        .iter()
        .flat_map(|template| template.references())
        .any(|reference| matches!(reference.root, Root::Parameters | Root::Context))
}

/// The names that Kubernetes takes for namespaces: they are safe in a path.
#[must_use]
pub fn is_dns_label(name: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    name.len() <= 63
        && edge(name.as_bytes().first())
        && edge(name.as_bytes().last())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Runs something that blocks, within the runtime: the client's own task needs one. A thread of its own,
/// since a command that never ends would keep the runtime's threads, and with them the program.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ActionError> {
    let handle = tokio::runtime::Handle::current();
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _within = handle.enter();
        // Nobody waits any more if this fails.
        let _ = done.send(work());
    });
    match tokio::time::timeout(MAX_SIGN_IN, result).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err(setting("the kubeconfig cannot be used")),
        Err(_) => Err(setting(format!(
            "signing in to the cluster took longer than {} s",
            MAX_SIGN_IN.as_secs()
        ))),
    }
}

fn read(files: &[PathBuf]) -> Result<Kubeconfig, ActionError> {
    let mut merged = Kubeconfig::default();
    for file in files {
        let shown = file.display();
        let about = std::fs::metadata(file)
            .map_err(|error| setting(format!("the kubeconfig {shown} cannot be read: {error}")))?;
        if !about.is_file() || about.len() > MAX_KUBECONFIG_BYTES {
            return Err(setting(format!(
                "{shown} is no file of at most {MAX_KUBECONFIG_BYTES} bytes"
            )));
        }
        let next = Kubeconfig::read_from(file).map_err(|error| unusable(&error, &shown))?;
        merged = merged
            .merge(next)
            .map_err(|error| unusable(&error, &shown))?;
    }
    Ok(merged)
}

async fn from_kubeconfig(
    mut file: Kubeconfig,
    context: Option<String>,
) -> Result<Config, ActionError> {
    // The library would look for a proxy in the environment where the file names none.
    for named in &mut file.clusters {
        if let Some(cluster) = &mut named.cluster {
            let proxy = cluster.proxy_url.get_or_insert_default();
            if proxy.is_empty() {
                *proxy = NO_PROXY.to_owned();
            }
        }
    }
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    let mut config = Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|error| unusable(&error, &"file"))?;
    if config
        .proxy_url
        .take()
        .is_some_and(|proxy| proxy != NO_PROXY)
    {
        return Err(setting(
            "the kubeconfig names a proxy, which is not supported",
        ));
    }
    Ok(config)
}

/// Stands for the absence of a proxy.
const NO_PROXY: &str = "http://none.invalid/";

/// Why a kubeconfig cannot be used, without quoting it: it holds credentials.
fn unusable(error: &KubeconfigError, file: &dyn std::fmt::Display) -> ActionError {
    let why = match error {
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context `{name}`"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster `{name}`"),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the server of its cluster is no URL".to_owned(),
        KubeconfigError::Parse(_) => "it is not a kubeconfig".to_owned(),
        KubeconfigError::ReadConfig(error, _) => format!("it cannot be read: {error}"),
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "its certificate authority cannot be read".to_owned()
        }
        KubeconfigError::LoadClientCertificate(_) | KubeconfigError::LoadClientKey(_) => {
            "its client certificate cannot be read".to_owned()
        }
        _ => "its parts do not fit".to_owned(),
    };
    setting(format!("the kubeconfig {file} cannot be used: {why}"))
}

/// The credentials in a configuration. A server that echoes them must not get them to the model.
fn credentials(config: &Config) -> Secrets {
    let mut secrets = Secrets::default();
    let info = serde_json::to_value(&config.auth_info).unwrap_or_default();
    for key in ["token", "password", "client-key-data"] {
        secrets.add_value(&info[key]);
    }
    secrets
}

fn address(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(host)) => format!("https://[{host}]:{port}"),
        _ => format!("https://{host}:{port}"),
    }
}

fn setting(message: impl Into<String>) -> ActionError {
    ActionError::new(ActionFailure::Setting, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_names_and_on_the_list() {
        let any = Cluster::none();
        let listed = Cluster::none().allowing(["jobs", "more"]);
        let long = "a".repeat(64);
        for (cluster, template, namespace, allowed) in [
            (&any, "jobs", "jobs", true),
            (&any, "{settings.ns}", "jobs", true),
            (&any, "{parameters.ns}", "jobs", false),
            (&any, "a-{ns}", "a-jobs", false),
            (&any, "{context.ns}", "jobs", false),
            (&listed, "jobs", "jobs", true),
            (&listed, "{ns}", "more", true),
            (&listed, "{ns}", "kube-system", false),
            (&listed, "kube-system", "kube-system", false),
            (&any, "x", "../jobs", false),
            (&any, "x", "", false),
            (&any, "x", "-a", false),
            (&any, "x", "a-", false),
            (&any, "x", "A", false),
            (&any, "x", "a/b", false),
            (&any, "x", long.as_str(), false),
        ] {
            let result = cluster.allows(&Template::parse(template), namespace);
            assert_eq!(result.is_ok(), allowed, "{template} {namespace}");
            if let Err(error) = result {
                assert_eq!(error.failure, ActionFailure::Forbidden);
            }
        }
    }

    #[test]
    fn a_cluster_is_inferred_as_kubectl_does() {
        let shown = |pairs: &'static [(&str, &str)]| {
            let cluster = Cluster::infer(|name| {
                let found = pairs.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.into())
            });
            format!("{:?}", cluster.source)
        };
        assert_eq!(
            shown(&[("KUBECONFIG", ":a:b:"), ("HOME", "/nowhere")]),
            "Kubeconfig { files: [\"a\", \"b\"], context: None }"
        );
        assert_eq!(
            shown(&[
                ("KUBECONFIG", ""),
                ("HOME", "/nowhere"),
                ("KUBERNETES_SERVICE_HOST", "fd00::1"),
                ("KUBERNETES_SERVICE_PORT", "443"),
            ]),
            "InCluster { host: \"fd00::1\", port: 443 }"
        );
        assert_eq!(shown(&[("KUBERNETES_SERVICE_HOST", "h")]), "None");
        assert_eq!(address("fd00::1", 443), "https://[fd00::1]:443");
        assert_eq!(address("10.0.0.1", 6443), "https://10.0.0.1:6443");
    }
}
