//! `kubernetes_job`: the peer plays the API of a cluster; what a Job's script says is what becomes of it.

use std::sync::Arc;

use proofhouse_tools::actions::KubernetesJobs;
use proofhouse_tools::runtime::{ActionFailure, ToolLimits, ToolTask};
use serde_json::{Value, json};

use super::{Does, Peer, actions, plainly, runtimes, tool};
use crate::kubernetes_support::{Fate, Player, limits, script};
use crate::support;

struct Jobs {
    player: Player,
}

pub(crate) async fn start() -> Box<dyn Peer> {
    let player = Player::choosing(fate).await;
    Box::new(Jobs { player })
}

fn fate(job: &Value) -> Fate {
    let script = &job["spec"]["template"]["spec"]["containers"][0]["command"][2];
    let script = script.as_str().unwrap_or_default();
    match script.split(' ').next() {
        Some("fail") => Fate::failed(1, "Error", script),
        Some("hang") => Fate::endless(),
        _ => Fate::completed(None, script),
    }
}

impl Jobs {
    fn task_in(&self, context: &str) -> ToolTask {
        let cluster = self.player.cluster().context(context);
        let limits = ToolLimits {
            // A hundred Jobs at a time take a while on a busy machine.
            http: std::time::Duration::from_secs(20),
            ..limits()
        };
        let jobs = Arc::new(KubernetesJobs::new(cluster, &limits));
        let blocks = actions(|name| {
            let spec = script(&format!("{name} {{x}} {{settings.api_key}}"));
            let block = json!({"namespace": "jobs", "spec": spec});
            Some(format!("kubernetes_job: {block}"))
        });
        ToolTask::new(
            tool(&blocks),
            support::environment(),
            runtimes().with(proofhouse_manifest::BackendKind::KubernetesJob, jobs),
            limits,
        )
    }
}

impl Peer for Jobs {
    fn task(&self) -> ToolTask {
        self.task_in("good")
    }

    fn broken(&self) -> (ToolTask, ActionFailure) {
        (self.task_in("lost"), ActionFailure::Setting)
    }

    fn call(&self, does: Does, text: &str) -> Option<(&'static str, Value)> {
        Some(plainly(does, text))
    }

    fn failure(&self) -> ActionFailure {
        ActionFailure::JobFailed
    }

    fn running(&self) -> usize {
        self.player.jobs().len()
    }
}
