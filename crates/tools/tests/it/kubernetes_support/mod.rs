//! A cluster for tests: it plays the API's Job, Pod, log and watch endpoints, and what controllers do.

mod objects;
mod player;
pub(crate) mod tls;

use std::sync::Arc;
use std::time::Duration;

use proofhouse_tools::actions::{Cluster, KubernetesJobs};
use proofhouse_tools::runtime::{
    ActionError, ActionResult, JobLimits, Runtimes, ToolLimits, ToolTask,
};
use serde_json::{Value, json};

pub(crate) use player::{Fate, Player, Watching, refusal};

use crate::support::{self, act};

pub(crate) type Acted = Result<ActionResult, ActionError>;

/// What the player's kubeconfig signs in with.
pub(crate) const TOKEN: &str = "kube-token-1234567";

/// Short times between things, and long ones for whatever must not happen on a busy machine.
pub(crate) fn limits() -> ToolLimits {
    ToolLimits {
        job: JobLimits {
            deadline: Duration::from_secs(20),
            poll: Duration::from_millis(30),
            start_patience: Duration::from_millis(150),
            silence: Duration::from_millis(400),
            ..JobLimits::default()
        },
        http: Duration::from_secs(5),
        ..support::limits()
    }
}

/// A kubeconfig file for an address, kept as long as the directory.
pub(crate) fn kubeconfig(directory: &tempfile::TempDir, server: &str) -> std::path::PathBuf {
    let file = directory.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [
            {"name": "good", "context": {"cluster": "c", "user": "u"}},
            {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}},
        ],
        "current-context": "good",
    });
    std::fs::write(&file, text.to_string()).expect("the test is set up");
    file
}

/// A JobSpec that runs a script. The player does not run it; a real cluster does.
pub(crate) fn script(text: &str) -> Value {
    json!({"template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", text]},
    ]}}})
}

/// An `execute` block; JSON is YAML.
pub(crate) fn execute(namespace: &str, spec: &Value) -> String {
    format!(
        "kubernetes_job: {}",
        json!({"namespace": namespace, "spec": spec})
    )
}

/// A task whose one action runs this.
pub(crate) fn task(cluster: Cluster, execute: &str, limits: &ToolLimits) -> ToolTask {
    let runtimes = Runtimes::new(limits, support::loopback()).expect("the test is set up");
    let jobs = Arc::new(KubernetesJobs::new(cluster, limits));
    ToolTask::new(
        support::tool(execute),
        support::environment(),
        runtimes.with(proofhouse_manifest::BackendKind::KubernetesJob, jobs),
        limits.clone(),
    )
}

/// A task in the player's cluster with a script that the player does not run.
pub(crate) fn playing(player: &Player) -> ToolTask {
    task(
        player.cluster(),
        &execute("jobs", &script("true")),
        &limits(),
    )
}

/// Acts, and makes sure that nothing is left.
pub(crate) async fn act_and_leave(player: &Player, task: &ToolTask) -> Acted {
    let acted = act(task, json!({})).await;
    assert_eq!(player.jobs(), Vec::<String>::new());
    assert_eq!(task.teardown().await, []);
    acted
}

pub(crate) fn value(acted: Acted) -> Value {
    acted.expect("it succeeds").value
}

pub(crate) fn failure(acted: Acted) -> ActionError {
    acted.expect_err("it fails")
}
