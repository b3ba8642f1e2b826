//! `mcp`: the peer is a server process, which keeps a diary of what happened to it.

use proofhouse_test_support::process::children;
use proofhouse_tools::runtime::{ActionFailure, ToolTask};
use serde_json::{Value, json};

use super::{Does, Peer, task, tool};
use crate::mcp_support::{self, server::DIARY};
use crate::support;

struct Processes {
    directory: tempfile::TempDir,
}

pub(crate) async fn start() -> Box<dyn Peer> {
    let directory = tempfile::tempdir().expect("the test is set up");
    Box::new(Processes { directory })
}

impl Processes {
    fn count(&self, what: &str) -> usize {
        let diary = self.directory.path().join("diary");
        let diary = std::fs::File::open(diary).and_then(std::io::read_to_string);
        diary.map_or(0, |text| text.lines().filter(|line| *line == what).count())
    }

    fn tool(&self, command: Option<&str>) -> ToolTask {
        let diary = self.directory.path().join("diary");
        let block = mcp_support::block("plain", "  ");
        let block = block.replace("env: {", &format!("env: {{{DIARY}: {}, ", json!(diary)));
        let block: String = block
            .lines()
            .map(
                |line| match (command, line.trim_start().starts_with("command:")) {
                    (Some(command), true) => format!("  command: {command}\n"),
                    _ => format!("{line}\n"),
                },
            )
            .collect();
        let limits = mcp_support::limits();
        let runtimes =
            proofhouse_tools::runtime::Runtimes::new(&limits, support::loopback()).expect("set up");
        task(tool(&format!("mcp:\n{block}")), runtimes)
    }
}

impl Peer for Processes {
    fn task(&self) -> ToolTask {
        self.tool(None)
    }

    fn broken(&self) -> (ToolTask, ActionFailure) {
        (self.tool(Some("/no/such/command")), ActionFailure::Command)
    }

    fn call(&self, does: Does, text: &str) -> Option<(&'static str, Value)> {
        Some(match does {
            Does::Work => ("echo", json!({"text": text})),
            Does::Fail => ("fail", json!({})),
            Does::Hang => ("hang", json!({})),
        })
    }

    fn failure(&self) -> ActionFailure {
        ActionFailure::Tool
    }

    fn initialized(&self) -> Option<usize> {
        Some(self.count("started"))
    }

    fn torn_down(&self) -> Option<usize> {
        Some(self.count("ended"))
    }

    fn running(&self) -> usize {
        // A server that is gone does nothing any more.
        let told = self.count("cancelled");
        if children().is_empty() {
            return 0;
        }
        self.count("hanging").saturating_sub(told)
    }
}
