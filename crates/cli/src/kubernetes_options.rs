//! The flags that say how the workers of a campaign run on Kubernetes.

use std::time::Duration;

use clap::Args;
use proofhouse_campaign::config::positive_duration;
use proofhouse_fleet::kubernetes::{
    EnvironmentPair, PodLabel, PodToleration, Quantity, SecretVariable, WorkerPods, fresh_suffix,
};
use proofhouse_fleet::worker::WorkerSettings;
use proofhouse_tools::actions::{Cluster, ClusterApi};
use proofhouse_tools::runtime::ToolLimits;

use crate::output::{CommandError, printable_line};

/// Where workers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WorkerPlatform {
    /// In Pods of an Indexed Job
    Kubernetes,
}

/// How a campaign runs on Kubernetes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct KubernetesOptions {
    /// Run the campaign on other machines: plan it in --store, start workers there, wait for them, and report. With
    /// --dry-run, print the manifests instead
    #[arg(long, value_name = "WHERE", value_enum, requires = "image")]
    on: Option<WorkerPlatform>,

    /// The image that contains your agent. It is not changed: Proofhouse is mounted into its container. It must have the
    /// GNU C library (glibc)
    #[arg(long, value_name = "IMAGE", requires = "on")]
    image: Option<String>,

    /// The image that contains Proofhouse, made from deploy/container/Containerfile [default: proofhouse:VERSION]
    #[arg(long, value_name = "IMAGE", requires = "on")]
    proofhouse_image: Option<String>,

    /// How many workers to start
    #[arg(long, value_name = "N", default_value_t = 4, requires = "on", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,

    /// The namespace of the workers
    #[arg(long, value_name = "NAME", default_value = "default", requires = "on")]
    namespace: String,

    /// The context of the kubeconfig [default: its current one; inside a cluster, that cluster]
    #[arg(long, value_name = "NAME", requires = "on")]
    kube_context: Option<String>,

    /// The Secret whose key `url` holds the URL of the store, as the workers reach it
    #[arg(
        long,
        value_name = "SECRET",
        default_value = "proofhouse-store",
        requires = "on"
    )]
    store_secret: String,

    /// An environment variable of the workers, with its value from a key of a Secret, such as an API key; can be repeated
    #[arg(long = "secret-env", value_name = "NAME=SECRET:KEY", requires = "on")]
    secret_variables: Vec<SecretVariable>,

    /// A Secret whose keys all become environment variables of the workers; can be repeated
    #[arg(long = "env-from-secret", value_name = "SECRET", requires = "on")]
    env_from_secrets: Vec<String>,

    /// An environment variable of the workers; can be repeated. Anyone who can read Jobs can see its value
    #[arg(long = "worker-env", value_name = "NAME=VALUE", requires = "on")]
    worker_env: Vec<EnvironmentPair>,

    /// How much CPU a worker asks for, such as 500m or 2
    #[arg(long = "worker-cpu", value_name = "AMOUNT", requires = "on")]
    cpu: Option<Quantity>,

    /// How much memory a worker asks for and may use, such as 1Gi
    #[arg(long = "worker-memory", value_name = "AMOUNT", requires = "on")]
    memory: Option<Quantity>,

    /// A taint of nodes that the workers tolerate; can be repeated
    #[arg(
        long = "toleration",
        value_name = "KEY[=VALUE][:EFFECT]",
        requires = "on"
    )]
    tolerations: Vec<PodToleration>,

    /// A label that the nodes of the workers must have; can be repeated
    #[arg(long = "node-selector", value_name = "NAME=VALUE", requires = "on")]
    node_selector: Vec<PodLabel>,

    /// A label for the Job and its Pods; can be repeated
    #[arg(long = "pod-label", value_name = "NAME=VALUE", requires = "on")]
    pod_labels: Vec<PodLabel>,

    /// The service account of the workers; its token is not mounted
    #[arg(long, value_name = "NAME", requires = "on")]
    service_account: Option<String>,

    /// A Secret with the credentials for the registry of the images; can be repeated
    #[arg(long = "image-pull-secret", value_name = "SECRET", requires = "on")]
    image_pull_secrets: Vec<String>,

    /// Run the workers under the Pod Security Standard `restricted`; the image must name a user other than root
    #[arg(long, requires = "on")]
    restricted: bool,

    /// How often a worker that failed is started again. Drained and evicted workers do not count
    #[arg(long, value_name = "N", default_value_t = 3, requires = "on", value_parser = clap::value_parser!(u32).range(0..=100))]
    worker_retries: u32,

    /// The time limit for the workers. After it the cluster stops them; the campaign can be continued later
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "24h", requires = "on")]
    job_deadline: Duration,

    /// How long the cluster keeps a finished Job that could not be deleted
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "1h", requires = "on")]
    job_ttl: Duration,
}

impl KubernetesOptions {
    /// Whether workers run elsewhere.
    pub(crate) fn is_wanted(&self) -> bool {
        match self.on {
            Some(WorkerPlatform::Kubernetes) => true,
            None => false,
        }
    }

    /// What the workers of a campaign shall be, with these arguments beside those of all workers.
    pub(crate) fn pods(
        &self,
        campaign: &str,
        settings: &WorkerSettings,
        arguments: Vec<String>,
    ) -> Result<WorkerPods, CommandError> {
        let image = self.image.clone();
        let image = image.ok_or_else(|| CommandError::usage("--on kubernetes needs --image"))?;
        let own = || format!("proofhouse:{}", env!("CARGO_PKG_VERSION"));
        let pods = WorkerPods {
            campaign: campaign.to_owned(),
            suffix: fresh_suffix(),
            namespace: self.namespace.clone(),
            program_image: self.proofhouse_image.clone().unwrap_or_else(own),
            workers: self.workers,
            store_secret: self.store_secret.clone(),
            arguments,
            secret_variables: self.secret_variables.clone(),
            secrets: self.env_from_secrets.clone(),
            environment: self.worker_env.clone(),
            cpu: self.cpu.clone(),
            memory: self.memory.clone(),
            tolerations: self.tolerations.clone(),
            node_selector: self.node_selector.clone(),
            labels: self.pod_labels.clone(),
            service_account: self.service_account.clone(),
            pull_secrets: self.image_pull_secrets.clone(),
            restricted: self.restricted,
            retries: self.worker_retries,
            deadline: self.job_deadline,
            lease: settings.lease,
            drain: settings.drain,
            keep: self.job_ttl,
            jobs: settings.jobs,
            image,
        };
        pods.check()
            .map_err(|error| CommandError::usage(error.to_string()))?;
        Ok(pods)
    }

    /// Signs in to the cluster, which is found where `kubectl` looks.
    pub(crate) async fn cluster(&self) -> Result<ClusterApi, CommandError> {
        #[expect(clippy::disallowed_methods, reason = "where kubectl looks")]
        let mut cluster = Cluster::infer(|name| std::env::var_os(name));
        if let Some(context) = &self.kube_context {
            cluster = cluster.context(context);
        }
        let opened = cluster.open(&ToolLimits::default()).await;
        opened.map_err(|error| CommandError::cannot_run(printable_line(&error.message)))
    }
}
