//! `kubernetes_job`: a Job in the operator's cluster whose output is the action's.
//!
//! The Job is named after the invocation, so that making it twice makes one. It is deleted when its output
//! was read, when it failed, when its time is up and when the call is cancelled; what could not be deleted
//! then is deleted at the end of the task, and what is left after that the cluster deletes.

mod api;
mod cluster;
mod document;
mod events;
mod judge;
mod objects;
mod output;
mod wait;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

pub use api::{ClusterApi, ClusterError};
pub use cluster::{Cluster, is_dns_label};
pub use document::{MANAGED_BY, OWNER, plain_label};

use crate::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Preview,
    Setup, ToolLimits,
};
use document::JobIdentity;
use judge::JobEnd;
use objects::ClusterJob;
use proofhouse_manifest::interpolate::{Secrets, TemplateScope};
use proofhouse_manifest::{Execute, KubernetesJob};
use wait::ObservedPods;

/// How long a cancelled call waits for the answer to the request that makes its Job: without it, the Job
/// could appear after it was looked for.
const CREATE_GRACE: Duration = Duration::from_secs(1);

/// No clock can add up more than some centuries, so a limit that means "none" is made one that can be added.
const MAX_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The runtime, as far as it needs nothing from an operator.
pub(super) fn runtime(setup: &Setup<'_>) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    Ok(Arc::new(KubernetesJobs::new(Cluster::none(), setup.limits)))
}

/// Runs Jobs in one cluster.
#[derive(Debug, Clone)]
pub struct KubernetesJobs {
    cluster: Cluster,
    limits: ToolLimits,
}

/// A task's connection to the cluster.
struct ClusterSession {
    jobs: KubernetesJobs,
    api: ClusterApi,
    /// The credentials of the connection.
    secrets: Secrets,
    /// The Jobs that may be there, by name, with their uid once it is known.
    live: Mutex<BTreeMap<String, (JobIdentity, Option<String>)>>,
}

impl KubernetesJobs {
    /// A runtime for this cluster. Nothing is read and nobody is talked to before the first call.
    #[must_use]
    pub fn new(cluster: Cluster, limits: &ToolLimits) -> Self {
        Self {
            cluster,
            limits: limits.clone(),
        }
    }

    /// Everything after the references have their values.
    async fn run(
        &self,
        open: &ClusterSession,
        call: &ActionCall,
        scope: &TemplateScope,
        secrets: &Secrets,
    ) -> Result<Value, ActionError> {
        let manifest = job_of(call)?;
        let namespace = scope.text(&manifest.namespace)?.into_exposed();
        self.cluster.allows(&manifest.namespace, &namespace)?;
        let identity = JobIdentity::new(call, &namespace);
        let chosen = cluster::is_chosen(manifest);
        let spec = manifest.spec.render(scope)?.into_exposed();
        let document = document::document(spec, &identity, &self.limits.job);
        let document = document.map_err(|mut error| {
            if chosen {
                error.failure = ActionFailure::Arguments;
            }
            error
        })?;
        open.note(&identity, None);
        let result = supervise(open, call, &identity, &document, chosen, secrets).await;
        // What went wrong with deleting is told at the end of the task, if it is wrong then too.
        let _ = timeout(self.limits.job.cleanup, open.remove(&identity.name)).await;
        result
    }
}

impl ActionRuntime for KubernetesJobs {
    fn initialize<'a>(
        &'a self,
        _call: &'a ActionCall,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async move {
            let connected = self.cluster.connect(self.limits.connect).await?;
            Ok(Arc::new(ClusterSession {
                jobs: self.clone(),
                api: ClusterApi::new(connected.client, connected.host, self.limits.clone()),
                secrets: connected.secrets,
                live: Mutex::default(),
            }) as Arc<dyn ActionSession>)
        })
    }

    fn cancels_itself(&self) -> bool {
        true
    }

    fn preview(&self, mut preview: Preview<'_>) -> Result<Value, ActionError> {
        let job = job_of(preview.call)?;
        let namespace = preview.text(&job.namespace)?;
        Ok(json!({"namespace": namespace, "spec": preview.body(&job.spec)?}))
    }
}

impl ActionSession for ClusterSession {
    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            let manifest = job_of(call)?;
            let mut templates = manifest.spec.templates();
            templates.push(&manifest.namespace);
            let references = templates.iter().flat_map(|template| template.references());
            let scope = environment.scope(call, references, false).await?;
            scope.check_handed_to("a Job")?;
            let mut secrets = call.secrets.clone();
            secrets.extend(scope.secrets());
            secrets.extend(&self.secrets);
            let result = self.jobs.run(self, call, &scope, &secrets).await;
            result.map_err(|error| output::clean(error, &secrets))
        })
    }

    fn teardown<'a>(
        &'a self,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async move {
            let mut failed = None;
            for name in self.names() {
                let removed = timeout(self.jobs.limits.http, self.remove(&name)).await;
                if let Err(error) = removed.unwrap_or(Err(ClusterError::Slow)) {
                    let error = self
                        .api
                        .failure(error, &format!("delete the Job {name}"), true);
                    failed = Some(output::clean(error, &self.secrets));
                }
            }
            failed.map_or(Ok(()), Err)
        })
    }
}

/// Makes the Job and stays with it to its end.
async fn supervise(
    open: &ClusterSession,
    call: &ActionCall,
    identity: &JobIdentity,
    document: &Value,
    chosen: bool,
    secrets: &Secrets,
) -> Result<Value, ActionError> {
    let api = &open.api;
    let deadline = Instant::now() + api.limits.job.deadline.min(MAX_DEADLINE);
    let mut seen = ObservedPods::default();
    let job = {
        let mut making = std::pin::pin!(timeout_at(deadline, api.create(identity, document)));
        let made = tokio::select! {
            biased;
            made = &mut making => made,
            () = call.cancel.cancelled() => {
                if let Ok(Ok(Ok(job))) = timeout(CREATE_GRACE, making).await {
                    open.note(identity, job.metadata.uid);
                }
                return Err(cancelled());
            }
        };
        match made {
            Ok(Ok(job)) => job,
            Ok(Err(error)) => {
                let is_definite = error.is_definite();
                if is_definite {
                    open.forget(&identity.name);
                }
                let mut failed = api.failure(error, "make the Job", chosen);
                failed.outcome_unknown = !is_definite;
                return Err(failed);
            }
            Err(_) => return Err(output::deadline(&seen)),
        }
    };
    let uid = job.metadata.uid.clone().unwrap_or_default();
    open.note(identity, Some(uid.clone()));
    let attended = attend(api, identity, job, &uid, &mut seen, secrets);
    let ended = tokio::select! {
        biased;
        () = call.cancel.cancelled() => return Err(cancelled()),
        ended = timeout_at(deadline, attended) => ended,
    };
    match ended {
        Ok(ended) => ended,
        Err(_) => {
            let mut error = output::deadline(&seen);
            let telling = output::evidence(api, identity, &uid, &mut error);
            let _ = timeout(api.limits.job.cleanup, telling).await;
            Err(error)
        }
    }
}

/// Waits for the end and reads what there is to read.
async fn attend(
    api: &ClusterApi,
    identity: &JobIdentity,
    job: ClusterJob,
    uid: &str,
    seen: &mut ObservedPods,
    secrets: &Secrets,
) -> Result<Value, ActionError> {
    match wait::until_end(api, identity, job, uid, seen).await {
        Ok(JobEnd::Complete) => output::result(api, identity, uid, secrets).await,
        Ok(end) => Err(output::failure(api, identity, uid, end, seen).await),
        Err(error) => {
            let mut failed = api.failure(error, "wait for the Job", true);
            failed.outcome_unknown = true;
            Err(failed)
        }
    }
}

impl ClusterSession {
    fn live(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (JobIdentity, Option<String>)>> {
        // Nothing that holds it can leave it half changed.
        lock(&self.live)
    }

    fn note(&self, identity: &JobIdentity, uid: Option<String>) {
        self.live()
            .insert(identity.name.clone(), (identity.clone(), uid));
    }

    fn forget(&self, name: &str) {
        self.live().remove(name);
    }

    fn names(&self) -> Vec<String> {
        self.live().keys().cloned().collect()
    }

    /// Deletes a Job of ours, if it may be there. One whose uid is not known is looked at first: another
    /// one of the same name is not ours to delete.
    async fn remove(&self, name: &str) -> Result<(), ClusterError> {
        let Some((identity, uid)) = self.live().get(name).cloned() else {
            return Ok(());
        };
        let uid = match uid {
            Some(uid) => Some(uid),
            None => {
                let job = self.api.job(&identity).await?;
                let ours = job.filter(|job| identity.owns(&job.metadata.labels));
                ours.and_then(|job| job.metadata.uid)
            }
        };
        if let Some(uid) = uid {
            self.api.delete(&identity, &uid).await?;
        }
        self.forget(name);
        Ok(())
    }
}

fn job_of(call: &ActionCall) -> Result<&KubernetesJob, ActionError> {
    match &call.action.execute {
        Execute::KubernetesJob(job) => Ok(job),
        _ => Err(ActionError::new(
            ActionFailure::Manifest,
            "this is not a `kubernetes_job` action",
        )),
    }
}

fn cancelled() -> ActionError {
    let mut error = ActionError::new(ActionFailure::Cancelled, "the call was cancelled");
    error.outcome_unknown = true;
    error
}
