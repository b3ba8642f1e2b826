//! Making a Job of workers, staying with it to its end, and cleaning up.
//!
//! The cluster is asked now and then. That needs no watch that could break, and a control plane that restarts is waited for.

use std::time::Duration;

use http::Method;
use proofhouse_tools::actions::{ClusterApi, ClusterError};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::job::{WORKER, WorkerPods, manifest};
use super::view::JobView;

/// How many Pods are looked at.
const MAX_PODS: u32 = 500;
/// How many warnings are read.
const MAX_EVENTS: u32 = 50;
/// How many lines of a log are told, and how many bytes of them.
const LOG_LINES: i64 = 40;
const MAX_LOG: usize = 8192;

/// How a Job of workers ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkersEnd {
    /// A worker found the campaign over.
    Complete,
    /// The campaign is over, as the store says.
    CampaignOver,
    /// The cluster gave up.
    Failed {
        /// Why, in a word.
        reason: String,
        /// What it says of it.
        message: String,
    },
    /// Somebody deleted the Job.
    Gone,
    /// Whoever waited was asked to end.
    Cancelled,
}

impl WorkersEnd {
    /// What there is to say if the campaign of this name is not over, unless somebody wanted it so.
    #[must_use]
    pub fn unfinished(&self, name: &str) -> Option<String> {
        let why = match self {
            Self::Gone => "somebody deleted their Job",
            Self::Failed { .. } => "the cluster gave up on them",
            Self::Complete | Self::CampaignOver => "they ended",
            Self::Cancelled => return None,
        };
        Some(format!(
            "the workers are gone before the campaign {name} is finished: {why}. Run the same command again to continue it"
        ))
    }
}

/// How a Job is followed.
#[derive(Debug, Clone, Copy)]
pub struct Follow {
    /// How often the cluster is asked.
    pub poll: Duration,
    /// How long it may not answer. Control planes restart.
    pub silence: Duration,
}

impl Default for Follow {
    /// Every 2 s; 5 min of silence.
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(2),
            silence: Duration::from_secs(300),
        }
    }
}

/// A Job of workers that is there.
#[derive(Debug, Clone)]
pub struct WorkersJob {
    api: ClusterApi,
    namespace: String,
    name: String,
    uid: String,
}

impl WorkersJob {
    /// Makes the Job. A request whose answer was lost is recognized by the name, which is of this start alone.
    ///
    /// # Errors
    ///
    /// If the cluster refuses it or cannot be reached.
    pub async fn create(api: ClusterApi, pods: &WorkerPods) -> Result<Self, ClusterError> {
        let path = jobs(&pods.namespace);
        let strict = format!("{path}?fieldManager=proofhouse&fieldValidation=Strict");
        let made = api.ask(Method::POST, &strict, Some(&manifest(pods))).await;
        let name = pods.name();
        let job = match made {
            Ok(job) => job,
            Err(error) if error.code() == Some(409) || matches!(error, ClusterError::Slow) => {
                api.ask(Method::GET, &format!("{path}/{name}"), None)
                    .await?
            }
            Err(error) => return Err(error),
        };
        let uid = job["metadata"]["uid"].as_str();
        let uid = uid.ok_or(ClusterError::Garbage("what the cluster answered is no Job"))?;
        Ok(Self {
            uid: uid.to_owned(),
            namespace: pods.namespace.clone(),
            api,
            name,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its workers are doing.
    ///
    /// # Errors
    ///
    /// If the cluster does not say it.
    pub async fn look(&self) -> Result<JobView, ClusterError> {
        let path = format!("{}/{}", jobs(&self.namespace), self.name);
        let job = match self.api.ask(Method::GET, &path, None).await {
            Ok(job) => job,
            Err(error) if error.code() == Some(404) => Value::Null,
            Err(error) => return Err(error),
        };
        if job["metadata"]["uid"] != self.uid.as_str() {
            return Ok(JobView {
                end: Some(WorkersEnd::Gone),
                ..JobView::default()
            });
        }
        let pods = self.api.ask(Method::GET, &self.pods(), None).await?;
        let events = format!(
            "/api/v1/namespaces/{}/events?fieldSelector=involvedObject.uid%3D{},type%3DWarning&limit={MAX_EVENTS}",
            self.namespace, self.uid
        );
        // An account that may not read them is told nothing.
        let events = self.api.ask(Method::GET, &events, None).await;
        Ok(JobView::read(&job, &pods, &events.unwrap_or_default()))
    }

    /// Stays with the Job to its end. `tell` hears how it is doing, and says whether the campaign is over.
    ///
    /// # Errors
    ///
    /// If the cluster refuses, or does not answer for too long.
    pub async fn follow(
        &self,
        times: &Follow,
        cancel: &CancellationToken,
        mut tell: impl AsyncFnMut(&JobView) -> bool,
    ) -> Result<WorkersEnd, ClusterError> {
        let mut heard = Instant::now();
        loop {
            match self.look().await {
                Ok(view) => {
                    heard = Instant::now();
                    if tell(&view).await {
                        return Ok(WorkersEnd::CampaignOver);
                    }
                    if let Some(end) = view.end {
                        return Ok(end);
                    }
                }
                Err(error) if error.is_refusal() && error.passing_cause().is_none() => {
                    return Err(error);
                }
                Err(error) if heard.elapsed() >= times.silence => return Err(error),
                Err(_) => {}
            }
            tokio::select! {
                () = cancel.cancelled() => return Ok(WorkersEnd::Cancelled),
                () = tokio::time::sleep(times.poll) => {}
            }
        }
    }

    /// The end of a failed worker's log, with the name of its Pod, if there is one.
    pub async fn failed_log(&self) -> Option<(String, String)> {
        let pods = self.api.ask(Method::GET, &self.pods(), None).await.ok()?;
        let failed = pods["items"].as_array()?.iter();
        let mut failed = failed.filter(|pod| pod["status"]["phase"] == "Failed");
        let pod = failed.next_back()?["metadata"]["name"].as_str()?;
        let log = self.api.log_tail(&self.namespace, pod, WORKER, LOG_LINES);
        let log = log.await.ok()?;
        let from = log.ceil_char_boundary(log.len().saturating_sub(MAX_LOG));
        Some((pod.to_owned(), log[from..].to_owned()))
    }

    /// Deletes the Job; its workers are asked to finish the runs that they are at. One that is gone is fine, and so is another
    /// one of the same name.
    ///
    /// # Errors
    ///
    /// If the cluster refuses or cannot be reached.
    pub async fn delete(&self) -> Result<(), ClusterError> {
        let options = json!({
            "propagationPolicy": "Foreground", "preconditions": {"uid": self.uid},
        });
        let path = format!("{}/{}", jobs(&self.namespace), self.name);
        match self.api.ask(Method::DELETE, &path, Some(&options)).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the Job and its Pods are gone, or the time is up. Says whether they are.
    pub async fn until_gone(&self, times: &Follow, longest: Duration) -> bool {
        let began = Instant::now();
        loop {
            let view = self.api.ask(Method::GET, &self.pods(), None).await;
            let is_empty = |list: &Value| list["items"].as_array().is_some_and(Vec::is_empty);
            if view.is_ok_and(|list| is_empty(&list)) {
                return true;
            }
            if began.elapsed() >= longest {
                return false;
            }
            tokio::time::sleep(times.poll).await;
        }
    }

    fn pods(&self) -> String {
        format!(
            "/api/v1/namespaces/{}/pods?labelSelector=batch.kubernetes.io/controller-uid%3D{}&limit={MAX_PODS}",
            self.namespace, self.uid
        )
    }
}

fn jobs(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}
