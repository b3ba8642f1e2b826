//! The public threat documents against the gullible simulation, over real connections: every one comes to a
//! verdict, and replaying the recordings comes to the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proofhouse_oatf::{Protocol, load};
use proofhouse_test_support::workspace::vectors;
use serde_json::Value;

use crate::campaigns::{Campaigns, code, stderr, stdout, text};

/// How many there are.
const ALL: usize = 40;

/// Documents whose indicators look where no message of their protocol has anything, so that nothing is found
/// whatever the agent does. A message is judged by its content root: the params of a request, the result of a
/// response, an AG-UI event (section 5 of the format). These look for `response.content`,
/// `a2a.task.message` or `body`, or in A2A and AG-UI for `name` and `arguments`, which only MCP has. That the
/// gullible agent did what it was told can be read in the recordings of 009, 022, 023 and 030. So what the
/// verdicts say is right by the format, and it is the documents that would have to look elsewhere.
const BLIND: [&str; 10] = [
    "OATF-009", "OATF-022", "OATF-023", "OATF-027", "OATF-028", "OATF-029", "OATF-030", "OATF-033",
    "OATF-034", "OATF-035",
];

fn documents() -> Option<PathBuf> {
    let folder = vectors("the public documents", "oatf-scenarios")?;
    folder.canonicalize().ok()
}

/// Whether a target names what messages of the protocol do not have.
fn is_nowhere(protocol: Option<&Protocol>, target: &str) -> bool {
    match target {
        "response.content" | "a2a.task.message" | "body" => true,
        "name" | "arguments" => protocol != Some(&Protocol::Mcp),
        _ => false,
    }
}

/// The documents in which every indicator looks where nothing can be.
fn blind(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["benchmark", "traffic-only"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let document = load(&text(&entry.unwrap().path())).unwrap().document;
            let mut indicators = document.attack.indicators().iter();
            let nowhere = indicators
                .all(|indicator| is_nowhere(indicator.protocol.as_ref(), &indicator.target));
            if nowhere {
                found.push(document.attack.id.unwrap());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn all_of_them_come_to_a_verdict() {
    let Some(folder) = documents() else {
        return;
    };
    let campaigns = Campaigns::new();
    let folder_name = folder.to_str().unwrap();
    let run = [
        "run",
        folder_name,
        // Ten of them cannot find anything, and would be refused.
        "--allow-unknown",
        "--subject",
        "sim:gullible",
        "--out",
        "out",
    ];
    let output = campaigns.proofhouse(&run);
    assert_eq!(code(&output), 1, "it gives way: {}", stderr(&output));
    let result = campaigns.result("out");
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), ALL);
    assert_eq!(result["complete"], true);
    let outcomes: BTreeMap<&str, &Value> = runs
        .iter()
        .map(|run| (run["document"].as_str().unwrap(), run))
        .collect();
    assert_eq!(
        blind(&folder),
        BLIND,
        "which documents cannot find anything"
    );
    for (id, run) in outcomes {
        let expected = match id {
            id if BLIND.contains(&id) => "inconclusive",
            _ => "exploited",
        };
        assert_eq!(run["outcome"], expected, "{id}: {}", run["error"]);
        assert!(run["broken"].is_null(), "{id}: {}", run["broken"]);
        assert!(!run["tier"].is_null() || expected != "exploited", "{id}");
    }
    let output = campaigns.proofhouse(&["replay", "out", "--fail-on-change"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
}
