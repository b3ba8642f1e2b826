//! `cel`, which has no peer: nothing is seen but its results, and no expression may take long enough to hang.

use proofhouse_tools::runtime::{ActionFailure, ToolTask};
use serde_json::Value;

use super::{Does, Peer, actions, plainly, runtimes, task, tool};

struct Expressions;

pub(crate) async fn start() -> Box<dyn Peer> {
    Box::new(Expressions)
}

fn blocks() -> String {
    actions(|name| {
        let expression = match name {
            "work" => "[input.x]",
            "fail" => "input.nothing.there",
            _ => return None,
        };
        Some(format!("cel: {{expression: \"{expression}\"}}"))
    })
}

impl Peer for Expressions {
    fn task(&self) -> ToolTask {
        task(tool(&blocks()), runtimes())
    }

    fn broken(&self) -> (ToolTask, ActionFailure) {
        let runtimes = runtimes().without(proofhouse_manifest::BackendKind::Cel);
        (task(tool(&blocks()), runtimes), ActionFailure::NoRuntime)
    }

    fn call(&self, does: Does, text: &str) -> Option<(&'static str, Value)> {
        (does != Does::Hang).then(|| plainly(does, text))
    }

    fn failure(&self) -> ActionFailure {
        ActionFailure::Cel
    }
}
