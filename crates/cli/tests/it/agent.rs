//! Agents as a user runs them: every example for real, exit codes, approvals, recordings, MCP servers, and
//! conversations line by line.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests, helpers included"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use proofhouse_test_support::peers;
use proofhouse_test_support::process::signal;
use serde_json::{Value, json};

use crate::support::{self, Ran, command, finish, json, run, run_with_input};

const SUPPORT: &str = "examples/agents/support.yaml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "our own files")]
    fs::read_to_string(path).unwrap()
}

/// The program, for servers that are commands.
fn program() -> String {
    format!("proofhouse={}", env!("CARGO_BIN_EXE_proofhouse"))
}

fn server() -> String {
    format!(
        "{} demo-service --mcp-stdio",
        env!("CARGO_BIN_EXE_proofhouse")
    )
}

/// What a command says on the first of its two streams, as JSON.
fn run_json(args: &[&str]) -> (Value, Ran) {
    let ran = run(&[&["agent", "run"], args, &["--format", "json"]].concat());
    (json(&ran.stdout), ran)
}

/// The functions that were called, with how it went.
fn calls(output: &Value) -> Vec<(String, String)> {
    let turns = output["turns"].as_array().unwrap().iter();
    let calls = turns.filter(|turn| turn["turn"] == "capability");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    calls
        .map(|turn| (text(&turn["function"]), text(&turn["status"])))
        .collect()
}

/// The commands in the comment at the top of a manifest.
fn commands(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| line.starts_with('#'))
        .filter_map(|line| line.strip_prefix("#   proofhouse agent "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_example_runs_as_its_comment_says() {
    let files = tempfile::tempdir().unwrap();
    let mut ran_commands = 0;
    for entry in fs::read_dir(root().join("examples/agents")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let lines = commands(&read(&path));
        assert!(!lines.is_empty(), "{}", path.display());
        for line in lines {
            let mut words = shlex::split(&line).unwrap();
            for word in &mut words {
                if word == "." {
                    *word = files.path().to_str().unwrap().to_owned();
                }
            }
            words.insert(0, "agent".to_owned());
            words.extend(["--setting".to_owned(), program()]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = match words[1] {
                "chat" => run_with_input(&words, b"Read ticket 7\n"),
                _ => run(&words),
            };
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("a simulation"),
                "{line}: {}",
                ran.stderr
            );
            assert!(
                ran.stderr.contains('→'),
                "{line} calls nothing: {}",
                ran.stderr
            );
            assert!(!ran.stderr.contains('\x1b'), "{line}");
            ran_commands += 1;
        }
    }
    assert!(ran_commands >= 9, "{ran_commands}");
    let written = files.path().join("examples/coder/notes/todo.txt");
    assert_eq!(read(&written), "hello");
}

#[test]
fn examples_are_valid() {
    let ran = run(&["validate", "examples/agents", "--deny-warnings"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

#[test]
fn the_answer_comes_with_its_turns() {
    let (output, ran) = run_json(&[
        SUPPORT,
        "--param",
        "customer=c-1",
        "--message",
        "Read ticket 7",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(output["version"], 1);
    assert_eq!(
        output["model"],
        json!({"name": "sim:careful", "simulation": true})
    );
    let turns = output["turns"].as_array().unwrap();
    let words: Vec<&str> = turns
        .iter()
        .map(|turn| turn["turn"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["input", "llm", "capability", "llm"]);
    assert_eq!(turns[0]["parameters"], json!({"customer": "c-1"}));
    assert_eq!(turns[1]["simulation"], true);
    assert_eq!(
        turns[2]["arguments"],
        json!({"ticket": 7, "customer": "c-1"})
    );
    assert!(output["message"].as_str().unwrap().contains("The lamp"));
    assert!(output["tokens"]["total"].as_u64().unwrap() > 0);
    assert_eq!(
        (&output["ended"], &output["failed"]),
        (&json!(null), &json!(null))
    );
}

#[test]
fn approvals_are_given_and_denied() {
    let message = "Refund ticket 7, amount: 20";
    let base = [SUPPORT, "--param", "customer=c-1", "--message", message];
    for (flag, decision, status) in [
        (Some("--approve"), "approved", "successful"),
        (Some("--deny"), "denied", "restricted"),
        (None, "denied", "restricted"),
    ] {
        let more: Vec<&str> = flag.into_iter().collect();
        let (output, ran) = run_json(&[&base[..], &more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(
            calls(&output),
            [("tickets_refund".to_owned(), status.to_owned())]
        );
        let review = &output["reviews"][0];
        assert_eq!(review["decision"], decision);
        assert_eq!(review["reviewer"], "local");
        assert_eq!(
            review["arguments"],
            json!({"ticket": 7, "amount": 20, "customer": "c-1"})
        );
    }
    let (output, _) = run_json(&[&base[..], &["--user", "ada", "--approve"]].concat());
    assert_eq!(output["reviews"][0]["reviewer"], "ada");
}

#[test]
fn a_conversation_goes_line_by_line_and_asks_in_between() {
    let args = ["agent", "chat", SUPPORT, "--param", "customer=c-1"];
    let input =
        "Read ticket 7\n\nRefund ticket 7, amount: 20\ny\nRefund ticket 8, amount: 30\nno\n";
    let ran = run_with_input(&args, input.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("refunded: 20"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("refunded: 30"), "{}", ran.stdout);
    assert!(ran.stdout.contains("was not approved"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("approve tickets_refund {"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("\napproved\n") && ran.stderr.contains("\ndenied\n"));
    // At the end of the input nobody approves.
    let ran = run_with_input(&args, b"Refund ticket 7, amount: 20\n");
    assert!(ran.stdout.contains("was not approved"), "{}", ran.stdout);
}

#[test]
fn a_task_that_its_rules_end_has_an_exit_code() {
    let long = "x ".repeat(4_000);
    let args = [SUPPORT, "--param", "customer=c-1", "--message", &long];
    let (output, ran) = run_json(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(output["ended"]["reason"], "locked");
    assert_eq!(output["ended"]["message"], "The message is too long.");
    let chat = ["agent", "chat", SUPPORT, "--param", "customer=c-1"];
    let ran = run_with_input(&chat, format!("{long}\nRead ticket 7\n").as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("locked"), "{}", ran.stderr);
}

#[test]
fn exit_codes_say_whose_fault_it_is() {
    let script = tempfile::tempdir().unwrap();
    let file = script.path().join("script.yaml");
    fs::write(&file, "- error: the provider is down\n").unwrap();
    let scripted = format!("sim:scripted:{}", file.display());
    let message = ["--param", "customer=c-1", "--message", "hello"];
    for (args, code, said) in [
        (vec![SUPPORT, "--message", "hello"], 64, "customer"),
        (vec![SUPPORT, "--param", "customer=c-1"], 64, "--message"),
        (
            [&[SUPPORT, "--param", "x=1"], &message[..]].concat(),
            64,
            "no such parameter",
        ),
        (
            [&[SUPPORT, "--model", "sim:careless"], &message[..]].concat(),
            64,
            "did you mean",
        ),
        (
            [&[SUPPORT, "--model", "openai:gpt-5"], &message[..]].concat(),
            64,
            "OPENAI_API_KEY",
        ),
        (
            [&[SUPPORT, "--agent", "suport"], &message[..]].concat(),
            64,
            "did you mean `support`?",
        ),
        (
            [&[SUPPORT, "--files", "no/such"], &message[..]].concat(),
            64,
            "--files",
        ),
        (
            [&[SUPPORT, "--trace", SUPPORT], &message[..]].concat(),
            64,
            "this file is already used",
        ),
        (
            [&[SUPPORT, "--model", &scripted], &message[..]].concat(),
            3,
            "the provider is down",
        ),
        (
            [&[SUPPORT, "--replay", "no/such"], &message[..]].concat(),
            64,
            "no/such: no such file",
        ),
        (
            [&[SUPPORT, "--mcp", "no-such-server"], &message[..]].concat(),
            3,
            "no-such-server",
        ),
        (
            vec!["examples/tools/clock.yaml", "--message", "x"],
            3,
            "no agent",
        ),
        (vec!["--message", "hello"], 64, "AGENT"),
    ] {
        let mut command = command(&[&["agent", "run"], args.as_slice()].concat());
        let ran = finish(command.env_remove("OPENAI_API_KEY").output().unwrap());
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_recorded_task_replays_the_same_without_its_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (recording, setting) = (path("recording.jsonl"), program());
    for (at, args) in [
        vec![
            "examples/agents/delegation.yaml",
            "--message",
            "Ask the librarian to find the book with the title \"Emma\"",
        ],
        vec![
            "examples/agents/coding.yaml",
            "--setting",
            &setting,
            "--message",
            "Add a: 1 and b: 2",
        ],
        vec![
            SUPPORT,
            "--param",
            "customer=c-1",
            "--approve",
            "--message",
            "Read ticket 7. Then refund ticket 7, amount: 20",
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let recording = format!("{recording}-{at}");
        let one = (path("one.jsonl"), path("two.jsonl"));
        let recorded = [
            "--record",
            &recording,
            "--trace",
            &one.0,
            "--model",
            "sim:careful",
        ];
        let (first, ran) = run_json(&[&args[..], &recorded].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!calls(&first).is_empty());
        let replayed = ["--replay", &recording, "--trace", &one.1];
        let (second, ran) = run_json(&[&args[..], &replayed].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(first, second);
        let traces = (read(Path::new(&one.0)), read(Path::new(&one.1)));
        assert_eq!(traces.0, traces.1);
        assert!(traces.0.contains("tools/call"), "{}", traces.0);
        // Another conversation is not in it, and a recording is not written over.
        let other = ["--replay", &recording, "--message", "Something else"];
        let other = [&args[..args.len() - 2], &other].concat();
        let (output, ran) = run_json(&other);
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert_eq!(output["ended"]["reason"], "model_error");
        let again = run(&[&["agent", "run"], &args[..], &["--record", &recording]].concat());
        assert_eq!(again.code, Some(3), "{}", again.stderr);
    }
}

#[test]
fn a_trace_can_be_judged() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let trace = trace.to_str().unwrap();
    let args = [SUPPORT, "--param", "customer=c-1", "--trace", trace];
    let (_, ran) = run_json(&[&args[..], &["--message", "Read ticket 7"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let case = support::Case::new(&json!([{
        "target": "arguments.customer",
        "surface": "tools/call",
        "pattern": {"contains": "c-1"},
    }]));
    let judged = case.judge("scan", Path::new(trace), &[]);
    assert_eq!(judged.code, Some(1), "{}{}", judged.stdout, judged.stderr);
}

#[test]
fn servers_are_capabilities_without_a_manifest() {
    let server = server();
    let (output, ran) = run_json(&["--mcp", &server, "--message", "Add a: 1 and b: 2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(output["agent"]["name"], "assistant");
    let call = ("proofhouse_add".to_owned(), "successful".to_owned());
    assert_eq!(calls(&output), [call]);
    // Beside a manifest, and twice: the tools do not get in each other's way.
    let (output, ran) = run_json(&[
        SUPPORT,
        "--param",
        "customer=c-1",
        "--mcp",
        &server,
        "--mcp",
        &server,
        "--message",
        "Add a: 1 and b: 2",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(calls(&output).len(), 1);
    let named = format!("sums={server}");
    let (output, _) = run_json(&["--mcp", &named, "--message", "Add a: 1 and b: 2"]);
    assert_eq!(calls(&output)[0].0, "sums_add");
}

#[test]
fn the_filesystem_server_works_where_it_is_installed() {
    let package = "mcp-servers/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let Some(peers) = peers::installed("the filesystem server", package) else {
        return;
    };
    let script = peers.join(package);
    let files = tempfile::tempdir().unwrap();
    let directory = files.path().canonicalize().unwrap();
    fs::write(directory.join("hello.txt"), "The sky is blue.").unwrap();
    let server = format!("node {} {}", script.display(), directory.display());
    let message = format!("Read the text file {}/hello.txt", directory.display());
    let (output, ran) = run_json(&["--mcp", &server, "--message", &message]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(output.to_string().contains("The sky is blue."), "{output}");
}

#[test]
fn what_models_and_tools_say_does_not_drive_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}";
    let replies = json!([
        {"calls": [{"name": "tickets_refund", "arguments": {"ticket": 1, "amount": 1, hostile: hostile}}]},
        {"calls": [{"name": format!("x{hostile}"), "arguments": {}}]},
        {"text": format!("done {hostile}")},
    ]);
    fs::write(&script, replies.to_string()).unwrap();
    let model = format!("sim:scripted:{}", script.display());
    let args = [SUPPORT, "--param", "customer=c-1", "--model", &model];
    let once = [
        &["agent", "run"],
        &args[..],
        &["--message", "go", "--approve"],
    ]
    .concat();
    let chat = [&["agent", "chat"], &args[..]].concat();
    for ran in [run(&once), run_with_input(&chat, b"go\ny\n")] {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("done"), "{}", ran.stdout);
        for text in [&ran.stdout, &ran.stderr] {
            let drives = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(drives), "{text:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_answer_and_a_second_one_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = directory.path().join("slow.yaml");
    // Somebody is asked who never answers.
    let text = read(&root().join(SUPPORT));
    fs::write(&manifest, text).unwrap();
    let args = [
        "agent",
        "chat",
        manifest.to_str().unwrap(),
        "--param",
        "customer=c-1",
    ];
    let mut child = command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut wait_for = |wanted: &str| {
        let found = stderr.find(|line| line.as_ref().is_ok_and(|line| line.contains(wanted)));
        assert!(found.is_some(), "{wanted} never came");
    };
    let id = child.id();
    let interrupt = || signal(id, "-INT");
    stdin.write_all(b"Refund ticket 7, amount: 20\n").unwrap();
    wait_for("is asked to approve");
    interrupt();
    wait_for("cancelling the answer");
    wait_for("the answer was cancelled");
    // The task goes on.
    stdin.write_all(b"Read ticket 7\n").unwrap();
    wait_for("tickets_read");
    assert!(stdout.any(|line| line.unwrap().contains("paid: 20.0")));
    // While the answer is not over, which its last words do not say, a signal cancels the answer again.
    for _ in 0..5 {
        interrupt();
        let patience = Instant::now() + Duration::from_secs(10);
        while child.try_wait().unwrap().is_none() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let _ = child.kill();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// An agent that is served; it ends with the test.
struct Served(std::process::Child, Value);

impl Served {
    fn start(args: &[&str]) -> Self {
        let all = [&["agent", "serve"], args, &["--format", "json"]].concat();
        let mut child = command(&all).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        Self(child, json(&line))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_agent_is_served_and_used_by_another() {
    let mut served = Served::start(&[
        "examples/agents/delegation.yaml",
        "--ag-ui",
        "127.0.0.1:0",
        "--a2a",
        "127.0.0.1:0",
        "--mcp",
        "127.0.0.1:0",
    ]);
    let told = served.1.clone();
    assert_eq!(
        told["model"],
        json!({"name": "sim:careful", "simulation": true})
    );
    assert_eq!(told["agent"]["name"], "receptionist");
    for key in ["ag_ui", "a2a", "mcp"] {
        assert!(
            told[key].as_str().unwrap().starts_with("http://127.0.0.1:"),
            "{told}"
        );
    }
    // Another agent has it as a capability, over MCP.
    let server = format!("desk={}", told["mcp"].as_str().unwrap());
    let (output, ran) = run_json(&[
        "--mcp",
        &server,
        "--allow",
        "127.0.0.1",
        "--message",
        "Ask the receptionist to find the title \"Emma\"",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let called = calls(&output);
    assert!(
        called.iter().all(|(name, _)| name.starts_with("desk_")),
        "{called:?}"
    );
    assert!(!called.is_empty(), "{output:#}");
    signal(served.0.id(), "-TERM");
    assert_eq!(served.0.wait().unwrap().code(), Some(0));
}

#[test]
fn an_agent_is_served_over_stdio() {
    let server = format!(
        "desk={} agent serve {} --mcp stdio",
        env!("CARGO_BIN_EXE_proofhouse"),
        root().join("examples/agents/delegation.yaml").display(),
    );
    let message = "Ask the receptionist to find the title \"Emma\"";
    let (output, ran) = run_json(&["--mcp", &server, "--message", message]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!calls(&output).is_empty(), "{output:#}");
}

#[test]
fn nothing_is_served_by_accident() {
    let pair = "examples/agents/delegation.yaml";
    for (args, said) in [
        (vec![pair], "choose where to serve"),
        (vec![pair, "--a2a", "0.0.0.0:0"], "--allow-remote"),
        (
            vec![pair, "--mcp", "stdio", "--mcp", "127.0.0.1:0"],
            "one place",
        ),
        (vec![pair, "--mcp", "stdio", "--format", "json"], "stdout"),
        (vec!["-", "--mcp", "stdio"], "stdin"),
    ] {
        let ran = run(&[&["agent", "serve"], args.as_slice()].concat());
        assert_eq!(ran.code, Some(64), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

const CLERK: &str = "\
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities:
  notes: {bindings: {ownr: context.user.id}}
  nots: '*'
guardrails:
  before: [{invoke: 'audit:record'}]
";

const NOTES: &str = "\
kind: commonagents.info/v1beta2/tool
namespace: demo
name: notes
description: Notes.
parameters: {properties: {owner: {type: string, require_binding: true}}}
actions:
  - {name: read, description: d, execute: {cel: {expression: input.owner}}}
";

#[test]
fn bundles_are_checked_across_files() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("clerk.yaml", CLERK);
    write("notes.yaml", NOTES);
    let path = directory.path().to_str().unwrap();
    let report = json(&run(&["validate", path, "--format", "json"]).stdout);
    let of = |file: &Value| -> Vec<(String, u64)> {
        let findings = file["diagnostics"].as_array().unwrap().iter();
        findings
            .map(|finding| {
                let code = finding["code"].as_str().unwrap().to_owned();
                (code, finding["span"]["line"].as_u64().unwrap())
            })
            .collect()
    };
    let files = report["files"].as_array().unwrap();
    let expected = [("TM-021", 7), ("TM-022", 7), ("TM-020", 8), ("TM-020", 10)];
    let expected = expected.map(|(code, line)| (code.to_owned(), line));
    assert_eq!(of(&files[0]), expected, "{report:#}");
    assert_eq!(files[1]["valid"], true);
    for format in ["human", "sarif", "github"] {
        let ran = run(&["validate", path, "--format", format]);
        assert_eq!(ran.code, Some(1), "{format}");
        assert!(
            ran.stdout.contains("TM-020") && ran.stdout.contains("nots"),
            "{}",
            ran.stdout
        );
    }
    // The file of the tool alone is fine, and what the agent lacks without it is said.
    let alone = directory.path().join("clerk.yaml");
    let ran = run(&["validate", alone.to_str().unwrap()]);
    assert!(
        ran.stdout.contains("give the file that has it, too"),
        "{}",
        ran.stdout
    );
    // What validate finds, run shows too.
    let ran = run(&["agent", "run", path, "--message", "x"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("TM-022"), "{}", ran.stderr);
}

#[test]
fn every_code_of_agents_is_explained() {
    for number in 20..=28 {
        let ran = run(&["explain", &format!("TM-0{number}")]);
        assert_eq!(ran.code, Some(0), "{number}: {}", ran.stderr);
        assert!(ran.stdout.starts_with("TM-0"), "{}", ran.stdout);
    }
}
