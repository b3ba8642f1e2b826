//! What a cluster tells of a Job and its Pods, as far as people who wait for it want to know.

use std::collections::BTreeSet;

use serde_json::Value;

use super::follow::WorkersEnd;
use super::job::WORKER;

/// How much of a message is told.
const MAX_MESSAGE: usize = 512;

/// How the workers of a Job are doing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobView {
    /// Pods that are there.
    pub active: u64,
    /// Pods that work.
    pub ready: u64,
    /// Workers that ended with success.
    pub succeeded: u64,
    /// Pods that failed.
    pub failed: u64,
    /// What keeps Pods from working, or ended them.
    pub troubles: Vec<PodTrouble>,
    /// How the Job ended, if it has.
    pub end: Option<WorkersEnd>,
}

/// Something that is wrong with a Pod, or with making Pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTrouble {
    /// The Pod; the Job, if there is none.
    pub object: String,
    /// What is wrong, in a word.
    pub reason: String,
    /// What the cluster says of it.
    pub message: String,
}

impl JobView {
    /// Reads a Job, its Pods and the warnings about it.
    #[must_use]
    pub fn read(job: &Value, pods: &Value, events: &Value) -> Self {
        let status = &job["status"];
        let count = |key: &str| status[key].as_u64().unwrap_or_default();
        let mut troubles: BTreeSet<PodTrouble> = BTreeSet::new();
        let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
        for pod in items(pods) {
            troubles.extend(trouble(&pod));
        }
        for event in items(events) {
            troubles.insert(PodTrouble {
                object: format!("Job {}", text(&event["involvedObject"]["name"])),
                reason: text(&event["reason"]),
                message: text(&event["message"]),
            });
        }
        Self {
            active: count("active"),
            ready: count("ready"),
            succeeded: count("succeeded"),
            failed: count("failed"),
            troubles: troubles.into_iter().collect(),
            end: end(job),
        }
    }
}

/// How a Job ended, if it has. One that is about to end has not: its Pods may still work.
fn end(job: &Value) -> Option<WorkersEnd> {
    let conditions = job["status"]["conditions"].as_array();
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let mut holding = conditions.iter().filter(|one| one["status"] == "True");
    let ended = holding.find_map(|condition| match condition["type"].as_str() {
        Some("Complete") => Some(WorkersEnd::Complete),
        Some("Failed") => Some(WorkersEnd::Failed {
            reason: text(&condition["reason"]),
            message: text(&condition["message"]),
        }),
        _ => None,
    });
    let is_going = job["metadata"]["deletionTimestamp"].is_string();
    ended.or(is_going.then_some(WorkersEnd::Gone))
}

/// What is wrong with a Pod, if something is.
fn trouble(pod: &Value) -> Option<PodTrouble> {
    let object = format!("Pod {}", text(&pod["metadata"]["name"]));
    let about = |reason: &str, message: String| PodTrouble {
        object: object.clone(),
        reason: reason.to_owned(),
        message,
    };
    let status = &pod["status"];
    let list = |key: &str| status[key].as_array().cloned().unwrap_or_default();
    for condition in list("conditions") {
        if condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable" {
            return Some(about("Unschedulable", text(&condition["message"])));
        }
        if condition["type"] == "DisruptionTarget" && condition["status"] == "True" {
            let reason = text(&condition["reason"]);
            return Some(about(&reason, text(&condition["message"])));
        }
    }
    let containers = list("initContainerStatuses").into_iter();
    for container in containers.chain(list("containerStatuses")) {
        let waiting = &container["state"]["waiting"];
        let reason = text(&waiting["reason"]);
        let is_usual = ["", "ContainerCreating", "PodInitializing"].contains(&reason.as_str());
        if !is_usual {
            return Some(about(&reason, text(&waiting["message"])));
        }
        let ended = &container["state"]["terminated"];
        let code = ended["exitCode"].as_i64().unwrap_or_default();
        if code != 0 {
            let name = text(&container["name"]);
            let part = if name == WORKER {
                "the worker".to_owned()
            } else {
                format!("the container {name}")
            };
            let last_words = text(&ended["message"]);
            let reason = text(&ended["reason"]);
            let told = format!("{part} ended with exit code {code}: {}", last_words.trim());
            return Some(about(&reason, told.trim_end_matches([':', ' ']).to_owned()));
        }
    }
    (status["phase"] == "Failed").then(|| about(&text(&status["reason"]), text(&status["message"])))
}

/// A text of the cluster, from its start.
fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text[..text.floor_char_boundary(MAX_MESSAGE)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn troubles_are_told_by_what_they_are() {
        let pod = |status: Value| json!({"metadata": {"name": "p"}, "status": status});
        let container =
            |state: Value| json!({"containerStatuses": [{"name": "worker", "state": state}]});
        for (status, expected) in [
            (container(json!({"running": {}})), None),
            (
                container(json!({"waiting": {"reason": "ContainerCreating"}})),
                None,
            ),
            (
                container(json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}})),
                Some(("ErrImagePull", "not found")),
            ),
            (
                container(
                    json!({"terminated": {"exitCode": 3, "reason": "Error", "message": "no store\n"}}),
                ),
                Some(("Error", "the worker ended with exit code 3: no store")),
            ),
            (
                container(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})),
                Some(("OOMKilled", "the worker ended with exit code 137")),
            ),
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}),
                Some(("Unschedulable", "0/1 nodes")),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}),
                Some(("Evicted", "disk")),
            ),
        ] {
            let told = trouble(&pod(status.clone()));
            let told = told.map(|told| (told.reason, told.message));
            let expected =
                expected.map(|(reason, message)| (reason.to_owned(), message.to_owned()));
            assert_eq!(told, expected, "{status}");
        }
    }

    #[test]
    fn a_job_ends_when_the_cluster_says_so() {
        let job = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m"}]}});
        let none = json!({});
        let end = |job: &Value| JobView::read(job, &none, &none).end;
        assert_eq!(end(&job("Complete", "True")), Some(WorkersEnd::Complete));
        assert_eq!(end(&job("Complete", "False")), None);
        assert_eq!(end(&job("SuccessCriteriaMet", "True")), None);
        let failed = end(&job("Failed", "True"));
        assert!(matches!(failed, Some(WorkersEnd::Failed { reason, .. }) if reason == "R"));
        assert_eq!(end(&none), None);
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(end(&going), Some(WorkersEnd::Gone));
    }
}
