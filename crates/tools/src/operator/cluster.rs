//! The `kubernetes` block: which cluster runs Jobs, and in which namespaces.

use std::ffi::OsString;
use std::path::PathBuf;

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};

use super::fields::KUBERNETES;
use super::reader::{OperatorFields, OperatorReader};
use crate::actions::Cluster;

/// Which cluster runs Jobs. By default, the one that `kubectl` would use.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KubernetesConfig {
    /// The file that names clusters and holds the credentials, in the place of the usual ones.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the file, if not its current one.
    pub context: Option<String>,
    /// The only namespaces that may be used, unless there are none.
    pub namespaces: Vec<String>,
    /// Whether it is the cluster around this program.
    pub in_cluster: bool,
}

impl KubernetesConfig {
    /// The cluster. `variable` looks up what is not configured, as in [`Cluster::infer`].
    ///
    /// ```
    /// use proofhouse_tools::operator::KubernetesConfig;
    ///
    /// let config = KubernetesConfig { kubeconfig: Some("ci.kubeconfig".into()), ..Default::default() };
    /// assert!(config.cluster(|_| None).is_configured());
    /// assert!(!KubernetesConfig::default().cluster(|_| None).is_configured());
    /// ```
    #[must_use]
    pub fn cluster(&self, variable: impl Fn(&str) -> Option<OsString>) -> Cluster {
        let cluster = match &self.kubeconfig {
            Some(file) => Cluster::kubeconfig(file),
            None if self.in_cluster => {
                Cluster::infer(|name| variable(name).filter(|_| name.starts_with("KUBERNETES_")))
            }
            None => Cluster::infer(variable),
        };
        let cluster = match &self.context {
            Some(context) => cluster.context(context),
            None => cluster,
        };
        cluster.allowing(&self.namespaces)
    }
}

impl std::fmt::Debug for KubernetesConfig {
    /// Says what is configured and not how: any text may come from a variable with a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesConfig")
            .field("kubeconfig", &self.kubeconfig.is_some())
            .field("context", &self.context.is_some())
            .field("namespaces", &self.namespaces.len())
            .field("in_cluster", &self.in_cluster)
            .finish()
    }
}

/// Reads the block. What has an error is left out.
pub(super) fn read<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> KubernetesConfig {
    let mut config = KubernetesConfig::default();
    let Some(mut fields) = reader.fields(node, &KUBERNETES) else {
        return config;
    };
    config.kubeconfig = text(&mut fields, "kubeconfig").map(PathBuf::from);
    config.context = text(&mut fields, "context");
    let namespaces = fields.read("namespaces", |reader, list| {
        let before = reader.findings();
        let names = reader.texts(list).into_iter();
        let names: Vec<String> = names.map(|(name, _)| name).collect();
        // Without a name, the list would allow everything, which is the opposite of what it says.
        if names.is_empty() && reader.findings() == before {
            reader.error(
                "OC-005",
                "the list names no namespace".to_owned(),
                Some("leave it out to allow those that manifests name".to_owned()),
            );
        }
        Some(names)
    });
    config.namespaces = namespaces.unwrap_or_default();
    config.in_cluster = fields.flag("in_cluster").unwrap_or_default();
    for (key, is_set) in [
        ("kubeconfig", config.kubeconfig.is_some()),
        ("context", config.context.is_some()),
    ] {
        if config.in_cluster && is_set {
            fields.reader.within(PathSegment::Key(key), |reader| {
                reader.error(
                    "OC-005",
                    format!("`{key}` names another cluster than `in_cluster`"),
                    Some("use one of them".to_owned()),
                );
            });
        }
    }
    config
}

fn text(fields: &mut OperatorFields<'_, '_, '_>, key: &'static str) -> Option<String> {
    fields.read(key, |reader, value| {
        let text = reader.text(value)?;
        if text.is_empty() {
            reader.error("OC-005", format!("`{key}` is an empty text"), None);
        }
        Some(text).filter(|text| !text.is_empty())
    })
}
