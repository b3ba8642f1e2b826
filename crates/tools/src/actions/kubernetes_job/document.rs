//! Documents: from what a manifest says to the Job that is submitted.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::runtime::{ActionCall, ActionError, ActionFailure, JobLimits};

/// The label that says whose an object is.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value for what we make.
pub const OWNER: &str = "proofhouse";
const TOOL: &str = "proofhouse/tool";
const ACTION: &str = "proofhouse/action";
pub(super) const INVOCATION: &str = "proofhouse/invocation";

/// The longest name of a Job whose Pods can be named after it, and the longest value of a label.
const MAX_NAME: usize = 63;
/// How many hexadecimal digits stand for an invocation: 96 bits do not meet by chance.
const HASH_DIGITS: usize = 24;

/// The largest number of seconds the cluster takes: its field has 32 bits in places.
const MAX_SECONDS: f64 = 2_147_483_647.0;

/// What an author may not say about a Job's metadata, since the cluster or we say it.
const NOT_THE_AUTHORS: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// The name and the labels of one invocation's Job: the same each time it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobIdentity {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) invocation: String,
    tool: String,
    action: String,
}

impl JobIdentity {
    pub(super) fn new(call: &ActionCall, namespace: &str) -> Self {
        let (tool, action) = (&call.tool, &call.action);
        Self::of(
            [&tool.namespace, &tool.name, &action.name, &call.invocation],
            namespace,
        )
    }

    fn of([space, tool, action, invocation]: [&str; 4], namespace: &str) -> Self {
        // The lengths keep `a` + `bc` and `ab` + `c` apart.
        let mut text = String::new();
        for part in [space, tool, action, invocation] {
            text.push_str(&format!("{}:{part};", part.len()));
        }
        let hash = digest(&SHA256, text.as_bytes());
        let mut hash = HEXLOWER.encode(hash.as_ref());
        hash.truncate(HASH_DIGITS);
        let prefix = plain_label(&format!("{tool}-{action}"), MAX_NAME - HASH_DIGITS - 1);
        // A name starts with a letter, since some versions of Kubernetes make host names of it.
        let prefix = match prefix.as_bytes().first() {
            Some(first) if first.is_ascii_lowercase() => prefix,
            _ => plain_label(&format!("job-{prefix}"), MAX_NAME - HASH_DIGITS - 1),
        };
        Self {
            name: format!("{prefix}-{hash}"),
            namespace: namespace.to_owned(),
            invocation: hash,
            tool: plain_label(&format!("{space}-{tool}"), MAX_NAME),
            action: plain_label(action, MAX_NAME),
        }
    }

    fn labels(&self) -> [(&'static str, &str); 4] {
        [
            (MANAGED_BY, OWNER),
            (TOOL, &self.tool),
            (ACTION, &self.action),
            (INVOCATION, &self.invocation),
        ]
    }

    /// Whether an object carries our labels for this invocation.
    pub(super) fn owns(&self, labels: &BTreeMap<String, String>) -> bool {
        [(MANAGED_BY, OWNER), (INVOCATION, &self.invocation)]
            .into_iter()
            .all(|(key, value)| labels.get(key).is_some_and(|there| there == value))
    }

    /// What finds the Pods of the Job.
    pub(super) fn selector(&self) -> String {
        format!("{MANAGED_BY}={OWNER},{INVOCATION}={}", self.invocation)
    }
}

/// Lower-case letters, digits and single hyphens, from the start to the length: the part of a text that names and labels may
/// have.
#[must_use]
pub fn plain_label(text: &str, length: usize) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= length {
            break;
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

/// The Job to submit. `spec` is what the manifest says, filled in: a JobSpec or a whole Job.
pub(super) fn document(
    spec: Value,
    identity: &JobIdentity,
    limits: &JobLimits,
) -> Result<Value, ActionError> {
    let Value::Object(spec) = spec else {
        return Err(wrong("`spec` is not an object"));
    };
    let is_whole = ["apiVersion", "kind", "metadata", "spec"]
        .iter()
        .any(|key| spec.contains_key(*key));
    let [mut metadata, mut spec] = if is_whole {
        parts(spec)?
    } else {
        [Map::new(), spec]
    };
    for key in NOT_THE_AUTHORS {
        metadata.remove(*key);
    }
    metadata.insert("name".to_owned(), identity.name.as_str().into());
    metadata.insert("namespace".to_owned(), identity.namespace.as_str().into());
    label(&mut metadata, identity)?;

    spec.entry("backoffLimit").or_insert(0.into());
    // Rounded up: the cluster's clock backs ours up and must not be ahead of it.
    let longest = limits.deadline.as_secs_f64().ceil().clamp(1.0, MAX_SECONDS) as u64;
    let deadline = seconds(&spec, "activeDeadlineSeconds")?.map_or(longest, |own| own.min(longest));
    spec.insert("activeDeadlineSeconds".to_owned(), deadline.into());
    // A Job that vanished as it finished could not be read.
    let keep = seconds(&spec, "ttlSecondsAfterFinished")?.unwrap_or(0);
    let keep = keep.max(limits.keep.as_secs());
    spec.insert("ttlSecondsAfterFinished".to_owned(), keep.into());

    let template = object(&mut spec, "template")?;
    label(object(template, "metadata")?, identity)?;
    if !template.contains_key("spec") {
        return Err(wrong("the template has no `spec`"));
    }
    object(template, "spec")?
        .entry("restartPolicy")
        .or_insert("Never".into());
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": spec,
    }))
}

/// The metadata and the spec of a whole Job.
fn parts(mut job: Map<String, Value>) -> Result<[Map<String, Value>; 2], ActionError> {
    for (key, expected) in [("apiVersion", "batch/v1"), ("kind", "Job")] {
        if job.get(key).is_some_and(|value| value != expected) {
            return Err(wrong(format!("`{key}` of a Job is `{expected}`")));
        }
    }
    let metadata = std::mem::take(object(&mut job, "metadata")?);
    if !job.contains_key("spec") {
        return Err(wrong("the Job has no `spec`"));
    }
    let spec = std::mem::take(object(&mut job, "spec")?);
    Ok([metadata, spec])
}

fn label(metadata: &mut Map<String, Value>, identity: &JobIdentity) -> Result<(), ActionError> {
    let labels = object(metadata, "labels")?;
    for (key, value) in identity.labels() {
        labels.insert(key.to_owned(), value.into());
    }
    Ok(())
}

/// The object under a key, which is made if nothing is there.
fn object<'m>(
    map: &'m mut Map<String, Value>,
    key: &str,
) -> Result<&'m mut Map<String, Value>, ActionError> {
    let value = map.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value
        .as_object_mut()
        .ok_or_else(|| wrong(format!("`{key}` is not an object")))
}

fn seconds(spec: &Map<String, Value>, key: &str) -> Result<Option<u64>, ActionError> {
    match spec.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(wrong(format!("`{key}` is not a number of seconds"))),
        },
    }
}

fn wrong(message: impl Into<String>) -> ActionError {
    ActionError::new(ActionFailure::Manifest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::kubernetes_job::cluster::is_dns_label;

    fn identity() -> JobIdentity {
        JobIdentity::of(["demo", "reports", "build", "call-1"], "jobs")
    }

    #[test]
    fn names_are_valid_stable_and_apart() {
        let name = identity().name;
        assert!(name.starts_with("reports-build-"), "{name}");
        assert_eq!(name, identity().name);
        assert_ne!(
            name,
            JobIdentity::of(["demo", "reports", "build", "call-2"], "jobs").name
        );
        let glued = |a, b| JobIdentity::of(["n", a, b, "i"], "jobs").invocation;
        assert_ne!(glued("a", "bc"), glued("ab", "c"));
        let long = "Ünï_".repeat(100);
        for (tool, action) in [
            ("", ""),
            ("---", "..."),
            ("../../evil", "a/b?c=d"),
            ("1st", "x"),
            (long.as_str(), long.as_str()),
            ("UPPER_case", "x\r\ny"),
        ] {
            let identity = JobIdentity::of(["n", tool, action, long.as_str()], "jobs");
            assert!(is_dns_label(&identity.name), "{}", identity.name);
            assert!(identity.name.as_bytes()[0].is_ascii_lowercase());
            for (_, value) in identity.labels() {
                assert!(value.is_empty() || is_dns_label(value), "{value}");
            }
        }
    }

    #[test]
    fn a_spec_gets_what_it_does_not_say() {
        let job = document(
            json!({"template": {"spec": {"containers": []}}}),
            &identity(),
            &JobLimits::default(),
        )
        .unwrap();
        assert_eq!(job["kind"], "Job");
        assert_eq!(job["metadata"]["namespace"], "jobs");
        assert_eq!(job["metadata"]["labels"][MANAGED_BY], OWNER);
        assert_eq!(job["spec"]["backoffLimit"], 0);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 600);
        assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 300);
        let template = &job["spec"]["template"];
        assert_eq!(template["spec"]["restartPolicy"], "Never");
        assert_eq!(
            template["metadata"]["labels"][INVOCATION],
            identity().invocation
        );
    }

    #[test]
    fn a_job_keeps_its_own_except_what_is_ours() {
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "mine", "namespace": "kube-system", "uid": "u", "generateName": "g",
                "annotations": {"a": "b"},
                "labels": {"team": "x", MANAGED_BY: "helm"},
            },
            "spec": {
                "backoffLimit": 2, "activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 0,
                "template": {"metadata": {"labels": {"t": "u"}}, "spec": {"restartPolicy": "OnFailure"}},
            },
            "status": {"succeeded": 1},
        });
        let job = document(job, &identity(), &JobLimits::default()).unwrap();
        assert_eq!(job["metadata"]["name"], identity().name);
        assert_eq!(job["metadata"]["namespace"], "jobs");
        assert_eq!(job["metadata"]["annotations"]["a"], "b");
        assert_eq!(job["metadata"]["labels"]["team"], "x");
        assert_eq!(job["metadata"]["labels"][MANAGED_BY], OWNER);
        assert!(job["metadata"].get("uid").is_none() && job.get("status").is_none());
        assert_eq!(job["spec"]["backoffLimit"], 2);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 5);
        assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 300);
        assert_eq!(job["spec"]["template"]["metadata"]["labels"]["t"], "u");
        assert_eq!(
            job["spec"]["template"]["spec"]["restartPolicy"],
            "OnFailure"
        );
        let long = json!({"activeDeadlineSeconds": 99_999, "template": {"spec": {}}});
        let long = document(long, &identity(), &JobLimits::default()).unwrap();
        assert_eq!(long["spec"]["activeDeadlineSeconds"], 600);
    }

    #[test]
    fn what_is_no_job_is_refused() {
        for (spec, message) in [
            (json!("text"), "`spec` is not an object"),
            (json!({}), "the template has no `spec`"),
            (json!({"template": 1}), "`template` is not an object"),
            (json!({"template": {"spec": []}}), "`spec` is not an object"),
            (
                json!({"kind": "Pod", "spec": {}}),
                "`kind` of a Job is `Job`",
            ),
            (json!({"kind": "Job"}), "the Job has no `spec`"),
            (
                json!({"metadata": 1, "spec": {}}),
                "`metadata` is not an object",
            ),
            (
                json!({"activeDeadlineSeconds": "5", "template": {"spec": {}}}),
                "`activeDeadlineSeconds` is not a number of seconds",
            ),
            (
                json!({"template": {"metadata": {"labels": []}, "spec": {}}}),
                "`labels` is not an object",
            ),
        ] {
            let error = document(spec.clone(), &identity(), &JobLimits::default()).unwrap_err();
            assert_eq!(error.message, message, "{spec}");
        }
    }
}
