//! Has workers of a cluster work on a campaign: starts them, tells how far they are, and cleans up.

use std::time::{Duration, Instant};

use proofhouse_tools::actions::{ClusterApi, ClusterError};
use proofhouse_wire::CancellationToken;

use super::follow::{Follow, WorkersEnd, WorkersJob};
use super::job::WorkerPods;
use super::told::{CampaignStanding, ProgressTeller};

/// How long the workers are waited for beyond the time that they have to finish their runs.
const LEAVING: Duration = Duration::from_secs(30);

/// Why the cluster did not do something, and what helps.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {error}{hint}")]
pub struct WorkersError {
    what: &'static str,
    error: ClusterError,
    hint: &'static str,
}

impl WorkersError {
    fn new(error: ClusterError, what: &'static str) -> Self {
        let hint = match (error.code(), error.passing_cause()) {
            (_, Some("quota")) => ". Ask for less, or for a larger quota",
            (Some(401 | 403), None) => {
                ". deploy/kubernetes/rbac.yaml has the rights that are needed"
            }
            (Some(404), _) => ". Is the namespace there? --namespace names another",
            _ => "",
        };
        Self { what, error, hint }
    }
}

/// What there is to tell meanwhile.
#[derive(Debug)]
pub enum WorkersNews {
    /// How it goes on.
    Progress(String),
    /// What went wrong.
    Trouble(String),
}

/// Starts the workers and waits until the campaign is over, they are, or somebody wants it to end. `ask` says how far the
/// campaign is, if the store answers.
///
/// # Errors
///
/// Returns what the cluster refuses.
pub async fn run_workers(
    api: ClusterApi,
    pods: &WorkerPods,
    cancel: &CancellationToken,
    mut ask: impl AsyncFnMut() -> Option<CampaignStanding>,
    tell: &dyn Fn(WorkersNews),
) -> Result<WorkersEnd, WorkersError> {
    let made = WorkersJob::create(api, pods).await;
    let job = made.map_err(|error| WorkersError::new(error, "create the Job"))?;
    let (workers, namespace) = (pods.workers, &pods.namespace);
    tell(WorkersNews::Progress(format!(
        "Created the Job {} in the namespace {namespace}, with {workers} workers.",
        job.name()
    )));
    let (times, mut teller) = (Follow::default(), ProgressTeller::default());
    let begun = Instant::now();
    let followed = job
        .follow(&times, cancel, async |view| {
            let standing = ask().await;
            for line in teller.hear(view, standing, begun.elapsed()) {
                tell(WorkersNews::Progress(line));
            }
            standing.is_some_and(|standing| standing.is_over)
        })
        .await;
    if matches!(followed, Ok(WorkersEnd::Cancelled)) {
        tell(WorkersNews::Progress(
            "Interrupted. The workers finish the runs that they have; press Ctrl-C again to quit."
                .to_owned(),
        ));
    }
    if let Ok(WorkersEnd::Failed { reason, message }) = &followed {
        tell(WorkersNews::Trouble(format!(
            "the workers failed: {reason}: {message}"
        )));
        if let Some((pod, log)) = job.failed_log().await {
            tell(WorkersNews::Trouble(format!(
                "the end of the log of {pod}:"
            )));
            for line in log.lines() {
                tell(WorkersNews::Trouble(format!("  {line}")));
            }
        }
    }
    match job.delete().await {
        Ok(()) => {
            if !job.until_gone(&times, pods.drain + LEAVING).await {
                tell(WorkersNews::Progress(
                    "warning: Pods of the Job are still there; the cluster removes them".to_owned(),
                ));
            }
        }
        Err(error) => tell(WorkersNews::Trouble(format!(
            "the Job {} could not be deleted, and the cluster keeps it for a while: {error}",
            job.name()
        ))),
    }
    followed.map_err(|error| WorkersError::new(error, "follow the Job"))
}
