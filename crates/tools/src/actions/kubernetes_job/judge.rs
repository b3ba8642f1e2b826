//! Judging: what the state of a Job and of its Pods means.

use serde_json::{Map, Value};

use super::objects::{ClusterJob, ClusterPod, ContainerStateTerminated, ContainerStatus};
use crate::runtime::ActionFailure;

/// How a Job ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobEnd {
    /// It completed.
    Complete,
    /// It failed, and the cluster says why.
    Failed { reason: String, message: String },
    /// It was deleted, or is about to be.
    Gone,
    /// It will not start.
    Stuck(Stuck),
}

/// Why a container does not start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stuck {
    pub(super) container: String,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Stuck {
    /// Whether the image is at fault, or something else the container needs.
    pub(super) fn failure(&self) -> ActionFailure {
        match STUCK.iter().find(|(reason, _, _)| *reason == self.reason) {
            Some((_, failure, _)) => *failure,
            None => ActionFailure::JobFailed,
        }
    }

    /// Whether the registry is slow or busy, and the image may still come.
    pub(super) fn is_slow(&self) -> bool {
        const SLOW: [&str; 9] = [
            "timeout",
            "timed out",
            "deadline exceeded",
            "toomanyrequests",
            "too many requests",
            "connection re",
            "unavailable",
            "eof",
            "pull qps exceeded",
        ];
        let message = self.message.to_ascii_lowercase();
        self.failure() == ActionFailure::Image && SLOW.iter().any(|word| message.contains(word))
    }

    /// Whether waiting could help.
    pub(super) fn may_pass(&self) -> bool {
        !STUCK
            .iter()
            .any(|(reason, _, final_)| *reason == self.reason && *final_)
    }
}

/// The reasons a container waits for that seldom pass: what they mean, and whether they never pass.
const STUCK: &[(&str, ActionFailure, bool)] = &[
    ("ErrImagePull", ActionFailure::Image, false),
    ("ImagePullBackOff", ActionFailure::Image, false),
    ("ErrImageNeverPull", ActionFailure::Image, true),
    ("InvalidImageName", ActionFailure::Image, true),
    ("ImageInspectError", ActionFailure::Image, false),
    ("RegistryUnavailable", ActionFailure::Image, false),
    ("SignatureValidationFailed", ActionFailure::Image, false),
    (
        "CreateContainerConfigError",
        ActionFailure::JobFailed,
        false,
    ),
    ("CreateContainerError", ActionFailure::JobFailed, false),
    ("RunContainerError", ActionFailure::JobFailed, false),
];

/// Whether a Job has ended. One with another uid has taken the place of ours.
pub(super) fn end(job: &ClusterJob, uid: &str) -> Option<JobEnd> {
    if job.metadata.uid.as_deref() != Some(uid) {
        return Some(JobEnd::Gone);
    }
    for condition in &job.status.conditions {
        match (condition.kind.as_str(), condition.status.as_str()) {
            ("Complete", "True") => return Some(JobEnd::Complete),
            ("Failed", "True") => {
                return Some(JobEnd::Failed {
                    reason: condition.reason.clone(),
                    message: condition.message.clone(),
                });
            }
            _ => {}
        }
    }
    job.metadata
        .deletion_timestamp
        .is_some()
        .then_some(JobEnd::Gone)
}

/// How many containers of a Pod have started: one of them may have had an effect, and with all of them no
/// image is missing.
pub(super) fn started(pod: &ClusterPod) -> usize {
    let states = pod.status.container_statuses.iter();
    let started = states.filter(|status| {
        let state = &status.state;
        state.running.is_some() || state.terminated.is_some()
    });
    started.count()
}

/// How many containers a Pod has.
pub(super) fn containers(pod: &ClusterPod) -> usize {
    pod.spec.containers.len()
}

/// The first container that does not start, for a reason that seldom passes.
pub(super) fn stuck(pod: &ClusterPod) -> Option<Stuck> {
    statuses(pod).find_map(|status| {
        let waiting = status.state.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        STUCK
            .iter()
            .any(|(known, _, _)| *known == reason)
            .then(|| Stuck {
                container: status.name.clone(),
                reason: reason.to_owned(),
                message: waiting.message.clone().unwrap_or_default(),
            })
    })
}

/// Why no node takes a Pod.
pub(super) fn unschedulable(pod: &ClusterPod) -> Option<String> {
    let mut conditions = pod.status.conditions.iter();
    conditions
        .find(|condition| {
            condition.kind == "PodScheduled"
                && condition.status == "False"
                && condition.reason == "Unschedulable"
        })
        .map(|condition| condition.message.clone())
}

/// The youngest Pod in a phase; the youngest of all, if none is in it.
pub(super) fn youngest<'p>(pods: &'p [ClusterPod], phase: &str) -> Option<&'p ClusterPod> {
    let is_in = |pod: &&ClusterPod| pod.status.phase.as_deref() == Some(phase);
    let age = |pod: &&ClusterPod| (pod.metadata.creation_timestamp, pod.metadata.name.clone());
    let pods = || pods.iter();
    pods()
        .filter(is_in)
        .max_by_key(age)
        .or_else(|| pods().max_by_key(age))
}

/// The container whose output is the Pod's: the one an annotation names, else the first.
pub(super) fn main_container(pod: &ClusterPod) -> Option<&str> {
    let containers = &pod.spec.containers;
    let annotations = &pod.metadata.annotations;
    let named = annotations.get("kubectl.kubernetes.io/default-container");
    let found = containers
        .iter()
        .find(|container| Some(&container.name) == named);
    found
        .or(containers.first())
        .map(|container| container.name.as_str())
}

/// What a container left as its message when it ended.
pub(super) fn termination_message<'p>(pod: &'p ClusterPod, container: &str) -> Option<&'p str> {
    let status = statuses(pod).find(|status| status.name == container)?;
    let message = ended(status)?.message.as_deref()?;
    (!message.is_empty()).then_some(message)
}

/// The container that failed, first of those that prepare and then of those that work, and how.
pub(super) fn culprit(pod: &ClusterPod) -> (Option<String>, Map<String, Value>) {
    let mut detail = Map::new();
    let mut note = |key: &str, value: Value| {
        if !value.is_null() && value != "" {
            detail.insert(key.to_owned(), value);
        }
    };
    let failed = statuses(pod).find(|status| ended(status).is_some_and(|end| end.exit_code != 0));
    let status = &pod.status;
    // The Pod's own reason, such as an eviction, says more than the signal that carried it out.
    note("reason", status.reason.clone().into());
    if let Some((failed, end)) = failed.and_then(|failed| Some((failed, ended(failed)?))) {
        note("container", failed.name.clone().into());
        note("exit_code", end.exit_code.into());
        note("signal", end.signal.filter(|signal| *signal != 0).into());
        if status.reason.is_none() {
            note("reason", end.reason.clone().into());
        }
        note("message", end.message.clone().into());
    } else {
        note("message", status.message.clone().into());
    }
    (failed.map(|failed| failed.name.clone()), detail)
}

pub(super) fn statuses(pod: &ClusterPod) -> impl Iterator<Item = &ContainerStatus> {
    let before = pod.status.init_container_statuses.iter();
    before.chain(&pod.status.container_statuses)
}

fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let now = status.state.terminated.as_ref();
    // It was started again and waits.
    now.or(status.last_state.terminated.as_ref())
}
