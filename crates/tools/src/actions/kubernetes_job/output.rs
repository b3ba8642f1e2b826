//! Outputs: what a Job that ended has to say, and what is told of one that failed.

use serde_json::{Value, json};

use super::api::{ClusterApi, ClusterError};
use super::document::JobIdentity;
use super::judge::{self, JobEnd};
use super::objects::ClusterPod;
use super::wait::ObservedPods;
use crate::runtime::{ActionError, ActionFailure};
use proofhouse_manifest::interpolate::Secrets;

/// How many lines of a log are asked for, from its end. The cluster counts bytes from the first of them, so
/// fewer are asked for when they are too many bytes.
const LOG_LINES: [i64; 4] = [10_000, 500, 20, 1];
/// How much of a log is told with an error, from its end.
const MAX_ERROR_LOG: usize = 4096;
/// How much of a message is told.
const MAX_MESSAGE: usize = 2048;
/// How much of an event is told.
const MAX_EVENT: usize = 512;
/// How many logs are told with an error.
const MAX_LOGS: usize = 12;
/// Stands before a text whose start is missing.
const CUT: &str = "[earlier output left out]\n";

/// The output of a Job that completed: the message its container left, else the end of its log.
pub(super) async fn result(
    api: &ClusterApi,
    identity: &JobIdentity,
    uid: &str,
    secrets: &Secrets,
) -> Result<Value, ActionError> {
    // It has done what it was for; only what it said is not known.
    let unread = |error: ClusterError| {
        let mut failed = api.failure(error, "read the output", true);
        if failed.failure == ActionFailure::Unreachable {
            failed.failure = ActionFailure::Broken;
        }
        failed.message = format!("the Job completed, but {}", failed.message);
        failed.outcome_unknown = true;
        failed
    };
    let pods = api.pods(identity, uid).await.map_err(unread)?;
    let pod = judge::youngest(&pods, "Succeeded");
    let found = pod.and_then(|pod| Some((pod, judge::main_container(pod)?)));
    let Some((pod, container)) = found else {
        let message = "the Job completed, but its Pod is gone and its output with it";
        let mut error = ActionError::new(ActionFailure::Response, message);
        error.outcome_unknown = true;
        return Err(error);
    };
    let most = api.limits.max_result_bytes;
    if let Some(message) = judge::termination_message(pod, container) {
        return Ok(value(message, false, secrets, most));
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let log = log(api, identity, name, container, false).await;
    let (text, is_part) = log.map_err(unread)?;
    Ok(value(&text, is_part, secrets, most))
}

/// The error of a Job that did not complete.
pub(super) async fn failure(
    api: &ClusterApi,
    identity: &JobIdentity,
    uid: &str,
    end: JobEnd,
    seen: &ObservedPods,
) -> ActionError {
    let (reason, message) = match end {
        JobEnd::Failed { reason, message } => (reason, message),
        JobEnd::Stuck(stuck) => {
            let text = format!(
                "the container `{}` cannot start: {}",
                stuck.container, stuck.reason
            );
            let mut error = ActionError::new(stuck.failure(), text);
            tell(&mut error, "reason", &stuck.reason);
            tell(&mut error, "message", &stuck.message);
            error.outcome_unknown = seen.started;
            evidence(api, identity, uid, &mut error).await;
            return error;
        }
        JobEnd::Gone | JobEnd::Complete => {
            let message = "the Job was deleted before it ended";
            let mut error = ActionError::new(ActionFailure::JobDeleted, message);
            error.outcome_unknown = true;
            return error;
        }
    };
    if reason == "DeadlineExceeded" {
        let mut error = deadline(seen);
        evidence(api, identity, uid, &mut error).await;
        return error;
    }
    let mut text = format!("the Job failed: {reason}");
    let mut error = ActionError::new(ActionFailure::JobFailed, "");
    let pods = api.pods(identity, uid).await.unwrap_or_default();
    if let Some(pod) = judge::youngest(&pods, "Failed") {
        let (culprit, detail) = judge::culprit(pod);
        error.detail = detail;
        if let Some(code) = error.detail.get("exit_code") {
            text.push_str(&format!("; it ended with exit code {code}"));
        }
        let container = culprit.or_else(|| judge::main_container(pod).map(str::to_owned));
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if let Some(container) = container
            && let Ok((log, _)) = log(api, identity, name, &container, false).await
        {
            tell(&mut error, "log", &log);
        }
    }
    let logs = all_logs(api, identity, &pods).await;
    if logs.len() > 1 {
        error.detail.insert("logs".to_owned(), logs.into());
    }
    warnings(api, identity, uid, &pods, &mut error).await;
    if !error.detail.contains_key("reason") {
        tell(&mut error, "reason", &reason);
    }
    if !error.detail.contains_key("message") {
        tell(&mut error, "message", &message);
    }
    error.message = text;
    error
}

/// The end of the log of every container of every try, oldest first, with the names of its Pod and container. A container
/// that was started again in its Pod has two: of the start before and of the last one.
async fn all_logs(api: &ClusterApi, identity: &JobIdentity, pods: &[ClusterPod]) -> Vec<Value> {
    let mut pods: Vec<&ClusterPod> = pods.iter().collect();
    pods.sort_by_key(|pod| pod.metadata.creation_timestamp);
    let mut logs = Vec::new();
    for pod in pods {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        for status in judge::statuses(pod) {
            let runs = status.state.running.is_some() || status.state.terminated.is_some();
            let ran = status.last_state.terminated.is_some();
            for previous in [true, false] {
                let has_run = if previous { ran } else { runs };
                if !has_run || logs.len() >= MAX_LOGS {
                    continue;
                }
                let Ok((log, _)) = log(api, identity, name, &status.name, previous).await else {
                    continue;
                };
                let mut told = json!({"pod": name, "container": status.name, "log": log});
                if previous {
                    told["previous"] = true.into();
                }
                logs.push(told);
            }
        }
    }
    logs
}

/// Tells what there is to read of a Job that did not end: what its containers said, and what the cluster warned of.
pub(super) async fn evidence(
    api: &ClusterApi,
    identity: &JobIdentity,
    uid: &str,
    error: &mut ActionError,
) {
    let pods = api.pods(identity, uid).await.unwrap_or_default();
    let mut logs = all_logs(api, identity, &pods).await;
    match logs.as_mut_slice() {
        [] => {}
        [only] => {
            let log = only["log"].take();
            tell(error, "log", log.as_str().unwrap_or_default());
        }
        _ => {
            error.detail.insert("logs".to_owned(), logs.into());
        }
    }
    warnings(api, identity, uid, &pods, error).await;
}

/// Tells what the cluster warned of about a Job and its Pods.
async fn warnings(
    api: &ClusterApi,
    identity: &JobIdentity,
    uid: &str,
    pods: &[ClusterPod],
    error: &mut ActionError,
) {
    let of_pods = pods.iter().filter_map(|pod| pod.metadata.uid.as_deref());
    let uids: Vec<&str> = std::iter::once(uid).chain(of_pods).collect();
    let told = api.warnings(identity, &uids).await;
    if !told.is_empty() {
        error.detail.insert("events".to_owned(), told.into());
    }
}

/// The error of a Job whose time is up.
pub(super) fn deadline(seen: &ObservedPods) -> ActionError {
    let mut text = "the Job did not end in time".to_owned();
    let obstacle = seen.obstacle();
    if let Some((reason, _)) = &obstacle {
        text.push_str(&format!("; it has not started: {reason}"));
    }
    let mut error = ActionError::new(ActionFailure::Deadline, text);
    if let Some((reason, message)) = obstacle {
        tell(&mut error, "reason", &reason);
        tell(&mut error, "message", &message);
    }
    error.outcome_unknown = seen.started;
    error
}

/// An error without secrets, and only then cut: half of a secret would not be found.
pub(super) fn clean(error: ActionError, secrets: &Secrets) -> ActionError {
    let mut error = error.redacted(secrets);
    error.message = start(&error.message, MAX_MESSAGE).to_owned();
    for (key, value) in &mut error.detail {
        match value {
            Value::String(text) if key == "log" => *text = tail(text, MAX_ERROR_LOG),
            Value::String(text) => *text = start(text, MAX_MESSAGE).to_owned(),
            Value::Array(items) => items.iter_mut().for_each(|item| match item {
                Value::String(text) => *text = start(text, MAX_EVENT).to_owned(),
                item => {
                    if let Some(Value::String(text)) = item.get_mut("log") {
                        *text = tail(text, MAX_ERROR_LOG / 4);
                    }
                }
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    error
}

fn tell(error: &mut ActionError, key: &str, text: &str) {
    if !text.is_empty() {
        error.detail.insert(key.to_owned(), text.into());
    }
}

/// The end of a container's log as text, and whether there may be more before it. What is no UTF-8 is
/// replaced.
async fn log(
    api: &ClusterApi,
    identity: &JobIdentity,
    pod: &str,
    container: &str,
    previous: bool,
) -> Result<(String, bool), ClusterError> {
    for lines in LOG_LINES {
        let log = api.log(identity, pod, container, lines, previous).await?;
        // The end of what is cut is missing, and half of a secret could not be found in it.
        if !log.is_cut {
            let text = String::from_utf8_lossy(&log.bytes).into_owned();
            let is_part = text.lines().count() as i64 >= lines;
            return Ok((text, is_part));
        }
    }
    Err(ClusterError::TooLarge)
}

/// JSON if it is JSON, else text without secrets, of which the end is kept.
fn value(text: &str, is_part: bool, secrets: &Secrets, most: usize) -> Value {
    match serde_json::from_str(text.trim()) {
        Ok(value) => secrets.redact_value(value),
        Err(_) if is_part => tail(&format!("{CUT}{}", secrets.redact(text)), most).into(),
        Err(_) => tail(&secrets.redact(text), most).into(),
    }
}

/// The start of a text, up to so many bytes.
fn start(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The end of a text, up to so many bytes, from the start of a line where there is one.
fn tail(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let from = text.len() - most.saturating_sub(CUT.len());
    let from = text.ceil_char_boundary(from);
    let line = text[from..].find('\n').map(|at| from + at + 1);
    let from = line.filter(|at| *at < text.len()).unwrap_or(from);
    format!("{CUT}{}", &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_json_or_text() {
        let mut secrets = Secrets::default();
        secrets.add("hunter22");
        for (text, expected) in [
            ("{\"a\": 1}\n", json!({"a": 1})),
            (" 42 ", json!(42)),
            ("", json!("")),
            ("a\nb\n", json!("a\nb\n")),
            (
                "{\"a\": 1}\n{\"a\": 2}\n",
                json!("{\"a\": 1}\n{\"a\": 2}\n"),
            ),
            ("is hunter22", json!("is [redacted]")),
            ("[\"hunter22\"]", json!(["[redacted]"])),
        ] {
            assert_eq!(value(text, false, &secrets, 1000), expected, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(value(&deep, false, &secrets, 1 << 20), json!(deep));
    }

    #[test]
    fn the_end_of_a_text_is_kept() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(tail(text, 100), text);
        assert_eq!(
            tail(&format!("{}\nlast\n", "x".repeat(90)), 50),
            format!("{CUT}last\n")
        );
        let long = "é".repeat(100);
        let cut = tail(&long, 51);
        assert!(cut.len() <= 51 && cut.starts_with(CUT), "{cut}");
        assert!(tail(&long, 3).starts_with(CUT));
        assert_eq!(start("éé", 3), "é");
    }

    #[test]
    fn errors_are_cut_after_secrets_are_gone() {
        let mut secrets = Secrets::default();
        secrets.add("hunter22");
        let mut error = ActionError::new(ActionFailure::JobFailed, "hunter22 ".repeat(1000));
        tell(&mut error, "log", &"hunter22 ".repeat(1000));
        let error = clean(error, &secrets);
        assert!(error.message.len() <= MAX_MESSAGE && !error.message.contains("hunter"));
        let log = error.detail["log"].as_str().unwrap();
        assert!(
            log.len() <= MAX_ERROR_LOG && !log.contains("hunter22"),
            "{log}"
        );
    }
}
