//! Objects: what the cluster tells of a Job and of its Pods, as far as anybody here reads it.
//!
//! The types of the whole API would bring a reader for each of hundreds of structs. As every client of
//! Kubernetes must, these pass over keys that they do not know, and a key with `null` is one that is not there.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A Job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClusterJob {
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: ObjectMeta,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: JobStatus,
}

impl ClusterJob {
    /// Where the Jobs of a namespace are.
    pub(super) fn path(namespace: &str) -> String {
        format!("/apis/batch/v1/namespaces/{namespace}/jobs")
    }

    /// Reads one; none if it is something else.
    pub(super) fn read(object: Value) -> Option<Self> {
        read(object, "batch/v1", "Job")
    }
}

/// A Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClusterPod {
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: ObjectMeta,
    #[serde(deserialize_with = "or_default")]
    pub(super) spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: PodStatus,
}

impl ClusterPod {
    /// Where the Pods of a namespace are.
    pub(super) fn path(namespace: &str) -> String {
        format!("/api/v1/namespaces/{namespace}/pods")
    }

    /// Reads one; none if it is something else.
    pub(super) fn read(object: Value) -> Option<Self> {
        read(object, "v1", "Pod")
    }
}

/// What every object says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ObjectMeta {
    pub(super) name: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) owner_references: Vec<OwnerReference>,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) deletion_timestamp: Option<Timestamp>,
}

/// An object that another one belongs to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OwnerReference {
    #[serde(deserialize_with = "or_default")]
    pub(super) uid: String,
}

/// How a Job is doing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JobStatus {
    #[serde(deserialize_with = "or_default")]
    pub(super) conditions: Vec<ObjectCondition>,
}

/// Something that is true of a Job or of a Pod, or is not.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectCondition {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(super) kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub(super) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
}

/// What a Pod shall be.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodSpec {
    #[serde(deserialize_with = "or_default")]
    pub(super) containers: Vec<PodContainer>,
}

/// A container that a Pod shall have.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodContainer {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
}

/// How a Pod is doing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub(super) phase: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) conditions: Vec<ObjectCondition>,
    #[serde(deserialize_with = "or_default")]
    pub(super) init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    pub(super) container_statuses: Vec<ContainerStatus>,
}

/// How a container is doing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) state: ContainerState,
    /// Its state before it was started again.
    #[serde(deserialize_with = "or_default")]
    pub(super) last_state: ContainerState,
}

/// The state of a container: one of these.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerState {
    pub(super) waiting: Option<ContainerStateWaiting>,
    pub(super) running: Option<IgnoredAny>,
    pub(super) terminated: Option<ContainerStateTerminated>,
}

/// Why a container has not started yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerStateWaiting {
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

/// How a container ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStateTerminated {
    #[serde(deserialize_with = "or_default")]
    pub(super) exit_code: i32,
    pub(super) signal: Option<i32>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

/// Reads an object that is of this kind, or does not say of which, as the items of a list do.
fn read<T: DeserializeOwned>(object: Value, version: &str, kind: &str) -> Option<T> {
    let is = |key: &str, expected: &str| {
        let told = object.get(key).filter(|told| !told.is_null());
        told.is_none_or(|told| told == expected)
    };
    let is_one = object.is_object() && is("apiVersion", version) && is("kind", kind);
    is_one
        .then(|| serde_json::from_value(object).ok())
        .flatten()
}

fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_keys_are_passed_over_and_null_is_nothing() {
        let job = ClusterJob::read(json!({
            "apiVersion": "batch/v1", "kind": "Job", "later": {"a": [1]},
            "metadata": {
                "uid": "u", "labels": null, "ownerReferences": null, "deletionTimestamp": null,
                "managedFields": [{}],
            },
            "spec": 7,
            "status": {"conditions": [{"type": "Complete", "status": "True", "reason": null}]},
        }))
        .unwrap();
        assert_eq!(job.metadata.uid.as_deref(), Some("u"));
        assert!(job.metadata.labels.is_empty() && job.metadata.deletion_timestamp.is_none());
        assert_eq!(job.status.conditions[0].kind, "Complete");
        assert_eq!(job.status.conditions[0].reason, "");
        for status in [json!({"status": null}), json!({}), json!({"kind": null})] {
            assert!(
                ClusterJob::read(status)
                    .unwrap()
                    .status
                    .conditions
                    .is_empty()
            );
        }
    }

    #[test]
    fn what_is_no_job_is_none() {
        for other in [
            json!(null),
            json!([]),
            json!("Job"),
            json!({"kind": "Status", "apiVersion": "v1"}),
            json!({"kind": "Job", "apiVersion": "batch/v2"}),
            json!({"metadata": 1}),
            json!({"metadata": {"uid": 1}}),
            json!({"metadata": {"deletionTimestamp": "soon"}}),
            json!({"status": {"conditions": [null]}}),
        ] {
            assert!(ClusterJob::read(other.clone()).is_none(), "{other}");
        }
    }

    #[test]
    fn containers_have_states() {
        let pod = ClusterPod::read(json!({
            "metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"},
            "status": {"initContainerStatuses": [
                {"name": "a", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 3}}},
                {"name": "b", "state": {"running": null, "waiting": {"reason": "ErrImagePull"}}},
            ]},
        }))
        .unwrap();
        assert!(pod.metadata.creation_timestamp.is_some() && pod.spec.containers.is_empty());
        let [a, b] = &pod.status.init_container_statuses[..] else {
            panic!("not two");
        };
        assert!(a.state.running.is_some() && b.state.running.is_none());
        assert_eq!(a.last_state.terminated.as_ref().unwrap().exit_code, 3);
        let waiting = b.state.waiting.as_ref().unwrap();
        assert_eq!(waiting.reason.as_deref(), Some("ErrImagePull"));
    }
}
