//! Objects in the shapes that a cluster of version 1.33 gives them.

use serde_json::{Value, json};

/// A Job as the API server stores it, from what was posted.
pub(super) fn stored(mut job: Value, uid: &str, version: u64) -> Value {
    let name = job["metadata"]["name"].clone();
    let generated = json!({
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    });
    let metadata = &mut job["metadata"];
    metadata["uid"] = uid.into();
    metadata["resourceVersion"] = version.to_string().into();
    metadata["generation"] = 1.into();
    metadata["creationTimestamp"] = "2026-01-02T03:04:05Z".into();
    metadata["managedFields"] = json!([{
        "manager": "proofhouse", "operation": "Update", "apiVersion": "batch/v1",
        "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}},
    }]);
    let spec = &mut job["spec"];
    for (key, value) in [
        ("parallelism", json!(1)),
        ("completions", json!(1)),
        ("completionMode", json!("NonIndexed")),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("suspend", json!(false)),
    ] {
        if spec[key].is_null() {
            spec[key] = value;
        }
    }
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    for (key, value) in generated.as_object().into_iter().flatten() {
        spec["template"]["metadata"]["labels"][key] = value.clone();
    }
    job["status"] = json!({});
    job
}

/// The status of a Job that runs.
pub(super) fn running() -> Value {
    json!({
        "active": 1, "ready": 0, "startTime": "2026-01-02T03:04:05Z", "terminating": 0,
        "uncountedTerminatedPods": {},
    })
}

/// The status of a Job that completed.
pub(super) fn complete() -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "lastProbeTime": "2026-01-02T03:04:09Z",
            "lastTransitionTime": "2026-01-02T03:04:09Z", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods",
        })
    };
    json!({
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        "startTime": "2026-01-02T03:04:05Z", "completionTime": "2026-01-02T03:04:09Z",
        "succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
    })
}

/// The status of a Job that failed.
pub(super) fn failed(reason: &str, message: &str) -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "lastProbeTime": "2026-01-02T03:04:09Z",
            "lastTransitionTime": "2026-01-02T03:04:09Z", "reason": reason, "message": message,
        })
    };
    json!({
        "conditions": [condition("FailureTarget"), condition("Failed")],
        "startTime": "2026-01-02T03:04:05Z", "failed": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {},
    })
}

/// A Pod of a Job with a status.
pub(super) fn pod(job: &Value, suffix: &str, owner: &str, status: &Value) -> Value {
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    let template = &job["spec"]["template"];
    json!({
        "metadata": {
            "name": format!("{name}-{suffix}"),
            "generateName": format!("{name}-"),
            "namespace": job["metadata"]["namespace"],
            "uid": format!("pod-{suffix}-of-{owner}"),
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:06Z",
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": owner,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
        "status": status,
    })
}

/// The status of a Pod with one container in a state.
pub(super) fn pod_status(phase: &str, container: &str, state: &Value) -> Value {
    json!({
        "phase": phase, "hostIP": "10.0.0.2", "podIP": "10.1.0.9", "qosClass": "BestEffort",
        "startTime": "2026-01-02T03:04:06Z",
        "conditions": [{
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2026-01-02T03:04:06Z",
        }],
        "containerStatuses": [{
            "name": container, "state": state, "lastState": {}, "ready": false, "restartCount": 0,
            "image": "busybox:1.36", "imageID": "", "started": false,
        }],
    })
}

/// A container that ended.
pub(super) fn terminated(code: i32, reason: &str, message: Option<&str>) -> Value {
    let mut end = json!({
        "exitCode": code, "reason": reason, "containerID": "containerd://0123456789abcdef",
        "startedAt": "2026-01-02T03:04:07Z", "finishedAt": "2026-01-02T03:04:08Z",
    });
    if let Some(message) = message {
        end["message"] = message.into();
    }
    json!({"terminated": end})
}

/// A Pod that no node takes.
pub(super) fn unschedulable() -> Value {
    json!({
        "phase": "Pending", "qosClass": "BestEffort",
        "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastProbeTime": null, "lastTransitionTime": "2026-01-02T03:04:06Z",
            "message": "0/1 nodes are available: 1 Insufficient memory.",
        }],
    })
}

/// What the API answers instead of an object.
pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": {}, "code": code,
    })
}
