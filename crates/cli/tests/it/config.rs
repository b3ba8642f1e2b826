//! `proofhouse.yaml` as a user has it: what is wrong with it is shown in its place, and campaigns obey it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use proofhouse_source::{ReadLimits, Source};
use serde_json::Value;

use crate::support::documents::INJECTED;

const AGENT: &str = "kind: commonagents.info/v1beta2/agent\nnamespace: test\nname: clerk\ndescription: d\n\
    prompt: You are an assistant.\nmodel: sim:careful\n";

/// A project in a directory of its own.
struct Project(tempfile::TempDir);

impl Project {
    fn new(config: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        let category = "category: response_fabrication";
        let two = INJECTED.replace(category, &format!("{category}, tags: [mail]"));
        let one = two
            .replace("T-002", "T-001")
            .replace("level: low", "level: high");
        project.write("attacks/one.yaml", &one);
        project.write("attacks/two.yaml", &two);
        project.write("agents/clerk.yaml", AGENT);
        project.write("proofhouse.yaml", config);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proofhouse"));
        command
            .current_dir(self.0.path())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a campaign and gives its result.
    fn campaign(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.run(&[&["run", "--format", "json"], arguments].concat());
        let result = serde_json::from_slice(&output.stdout);
        let result = result.unwrap_or_else(|_| panic!("{}", stderr(&output)));
        (code(&output), result)
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The values of a list by a key, in order.
fn texts<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap()).collect()
}

/// Everything that a file can say, and that is there.
const WHOLE: &str = r#"proofhouse: 1
subjects:
  - sim:careful
  - {name: mild, simulation: sim:gullible}
  - {name: clerk, manifest: agents/clerk.yaml, agent: clerk, model: sim:gullible, allow: 10.1.0.0/16, deadline: 1m}
  - {name: bare, model: sim:careful, base_url: "http://127.0.0.1:1", instructions: Be kind.}
  - name: started
    command: [sh, agent.sh, "{mcp_url}"]
    copy_of: agents
    environment: {OPENAI_API_KEY: "${SECRET}", LOG: 1}
    serves: ag-ui
    ready: {url: /health}
    headers: {Authorization: "Bearer ${SECRET}"}
    mcp_config: {file: proofhouse.yaml, in_place: true}
    max_disk: 8M
  - name: running
    endpoint: {ag_ui: "http://127.0.0.1:1/", a2a: "${WHERE}", mcp: "http://127.0.0.1:1/mcp"}
    listen: {mcp: "127.0.0.1:2", a2a: "127.0.0.1:3"}
documents: attacks
filters: {ids: T-*, tags: [mail], categories: response_fabrication, severities: [high], protocols: mcp}
prompt: Do it.
repeats: 2
jobs: 4
seed: 7
fail_fast: false
fail_on: [exploited, severity=high]
baseline: attacks/one.yaml
threshold: 0.1
out: results/{time}
reports: [html, sarif]
accepted: {id: T-001, subject: running, until: 2026-12-31, reason: Ticket 7}
"#;

/// The same, with something wrong at nearly every line.
const BROKEN: &str = r#"proofhouse: 2
subjects:
  - sim:carful
  - {name: a, comand: x}
  - {name: a b, manifest: nowhere.yaml, serves: mcp}
  - {name: two, command: x, manifest: agents/clerk.yaml}
  - {name: nobody}
  - command: "sh 'x"
  - name: leaky
    command: x
    environment: {API_KEY: sk-very-secret}
    headers: {Authorization: "Bearer sk-very-secret", "X Y": a}
    ready: {line: a, url: b}
  - {name: bad-url, endpoint: {mcp: "http://me:sk-very-secret@h/", a2a: ftp://x}, listen: {mcp: here}}
  - {name: clerk, manifest: agents/clerk.yaml, deadline: soon, allow: [mars], model: "${"}
  - {name: clerk, model: sim:careful, base_url: "${"}
  - 7
repeats: 0
jobs: "4"
seed: -1
early_stop: true
threshold: 1.5
fail_on: [regression, badly]
filters: {severity: [high], categories: [nonsense]}
reports: [html, pdf]
accepted: [{id: T-001, until: soon}]
prompt:
"#;

#[test]
fn a_whole_file_is_valid() {
    let project = Project::new(WHOLE);
    let output = project.run(&["validate", "proofhouse.yaml"]);
    assert_eq!(
        (code(&output), stdout(&output).as_str()),
        (0, "1 document: 1 valid\n")
    );
    let output = project.run(&["validate", "attacks", "agents", "proofhouse.yaml"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
}

/// YAML as JSON.
fn yaml(text: &str) -> Value {
    let source = Source::read(text, &ReadLimits::default()).unwrap();
    source.root().to_value(&mut |_| panic!("an odd number"))
}

#[test]
fn the_schema_agrees_with_the_reader() {
    let project = Project::new(WHOLE);
    let printed = project.run(&["schema", "config"]);
    let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&yaml(WHOLE))
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, [""; 0]);
    let printed = project.run(&["init", "--print", "--no-probe", "--command", "sh {prompt}"]);
    assert!(validator.is_valid(&yaml(&stdout(&printed))));
    for (right, wrong) in [
        ("repeats: 2", "repeats: 0"),
        ("jobs: 4", "jobs: \"4\""),
        ("threshold: 0.1", "threshold: 2"),
        ("serves: ag-ui", "serves: agui"),
        ("proofhouse: 1", "proofhouse: 2"),
        ("instructions", "instruction"),
        ("reports: [html, sarif]", "reports: [pdf]"),
        ("until: 2026-12-31", "until: soon"),
        ("- sim:careful", "- sim:other"),
        ("protocols: mcp", "protocols: http"),
    ] {
        let text = WHOLE.replacen(right, wrong, 1);
        assert_ne!(text, WHOLE, "{right}");
        assert!(!validator.is_valid(&yaml(&text)), "{wrong}");
        project.write("proofhouse.yaml", &text);
        assert_eq!(
            code(&project.run(&["validate", "proofhouse.yaml"])),
            1,
            "{wrong}"
        );
    }
}

#[test]
fn everything_that_is_wrong_is_shown_in_its_place() {
    let project = Project::new(BROKEN);
    let output = project.run(&["validate", "proofhouse.yaml"]);
    assert_eq!(code(&output), 1);
    insta::assert_snapshot!("config-broken", stdout(&output));
    for format in ["human", "json", "sarif", "github"] {
        let output = project.run(&["validate", "proofhouse.yaml", "--format", format]);
        let all = stdout(&output) + &stderr(&output);
        assert!(
            all.contains("PC-008") && !all.contains("sk-very-secret"),
            "{all}"
        );
    }
    let output = project.run(&["run"]);
    assert_eq!(code(&output), 64);
    let all = stderr(&output);
    assert!(
        all.contains("proofhouse.yaml:4:15") && all.contains("did you mean `command`?"),
        "{all}"
    );
    assert!(!all.contains("sk-very-secret"), "{all}");
    assert!(all.contains("--no-config ignores it"), "{all}");
}

#[test]
fn every_code_is_explained_and_can_be_found() {
    let project = Project::new(BROKEN);
    let output = project.run(&["validate", "proofhouse.yaml", "--format", "json"]);
    let mut shown = stdout(&output);
    // A text that is no YAML, a variable that is not set, and a file without its first line.
    project.write("proofhouse.yaml", "proofhouse: 1\nsubjects: [\n");
    shown += &stdout(&project.run(&["validate", "proofhouse.yaml"]));
    project.write(
        "proofhouse.yaml",
        "subjects: [{name: x, endpoint: {mcp: \"${PROOFHOUSE_NOT_SET}\"}}]\n",
    );
    shown += &stdout(&project.run(&["validate", "proofhouse.yaml"]));
    let ran = project.run(&["run"]);
    shown += &stderr(&ran);
    for number in 1..=13 {
        let code = format!("PC-{number:03}");
        assert!(shown.contains(&code), "{code} in {shown}");
        assert!(project.run(&["explain", &code]).status.success(), "{code}");
    }
}

#[test]
fn files_are_known_by_their_mark_and_their_name() {
    let project = Project::new("repeats: 1\n");
    project.write("other.yaml", "# mine\nproofhouse: 1\nrepeets: 1\n");
    project.write("flow.yaml", "{\"proofhouse\": 1, \"repeets\": 1}\n");
    for (name, expected) in [
        ("proofhouse.yaml", "needs `proofhouse`"),
        ("other.yaml", "did you mean `repeats`?"),
        ("flow.yaml", "did you mean `repeats`?"),
    ] {
        let output = project.run(&["validate", name]);
        assert_eq!(code(&output), 1, "{name}");
        let formatted = project.run(&["fmt", "--check", name]);
        assert_eq!(code(&formatted), 0, "{}", stderr(&formatted));
        assert!(stderr(&formatted).contains("left alone"), "{name}");
        assert!(
            stdout(&output).contains(expected),
            "{name}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn a_campaign_obeys_the_file_and_flags_win() {
    let project = Project::new(
        "proofhouse: 1\nsubjects: [sim:careful, {name: mild, simulation: sim:gullible}]\n\
         documents: attacks\nfilters: {severities: high}\nrepeats: 2\nseed: 7\nout: results\nreports: [markdown]\n",
    );
    let output = project.run(&["run", "--format", "json"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("using proofhouse.yaml"),
        "{}",
        stderr(&output)
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(texts(&result["subjects"], "name"), ["sim:careful", "mild"]);
    assert_eq!(texts(&result["documents"], "id"), ["T-001"]);
    assert_eq!(result["runs"].as_array().unwrap().len(), 4);
    assert!(project.path("results/report.md").is_file());
    assert!(!project.path("results/report.html").exists());

    let flags = [
        "--subject",
        "sim:careful",
        "--severity",
        "low",
        "--repeats",
        "1",
        "--out",
        "other",
    ];
    let (code_of, result) =
        project.campaign(&[&["--config", "proofhouse.yaml"], &flags[..]].concat());
    // It has no control, so nothing is proved.
    assert_eq!(code_of, 2);
    assert_eq!(texts(&result["documents"], "id"), ["T-002"]);
    assert_eq!(result["runs"].as_array().unwrap().len(), 1);

    let (code_of, result) = project.campaign(&[
        "--subject",
        "mild",
        "--out",
        "third",
        "--fail-on",
        "tier=ingested",
    ]);
    assert_eq!(
        (code_of, texts(&result["subjects"], "name")),
        (1, vec!["mild"])
    );
}

#[test]
fn who_is_attacked_decides_whether_the_file_is_read() {
    let project = Project::new(
        "proofhouse: 1\nsubjects: [{name: mild, simulation: sim:gullible}]\ndocuments: attacks\n",
    );
    for (arguments, is_read, expected) in [
        (&["run"][..], true, 1),
        // Nor is anything shown of an agent that resists.
        (&["run", "--no-config", "attacks"], false, 2),
        // Without a control, nothing is proved of who does not give way.
        (&["run", "--subject", "sim:careful", "attacks"], false, 2),
        (&["run", "--subject", "mild"], true, 1),
        (
            &["run", "--subject", "mild", "--subject", "sim:careful"],
            true,
            1,
        ),
        (
            &[
                "run",
                "--config",
                "proofhouse.yaml",
                "--subject",
                "sim:careful",
            ],
            true,
            2,
        ),
        (&["run", "--subject", "milt"], true, 64),
        (
            &["run", "--no-config", "--subject", "mild", "attacks"],
            false,
            64,
        ),
        (&["run", "--config", "nowhere.yaml"], false, 64),
        (
            &["run", "--config", "proofhouse.yaml", "--no-config"],
            false,
            64,
        ),
    ] {
        let output = project.run(arguments);
        assert_eq!(
            code(&output),
            expected,
            "{arguments:?}: {}",
            stderr(&output)
        );
        let says = stderr(&output).contains("using proofhouse.yaml");
        assert_eq!(says, is_read, "{arguments:?}: {}", stderr(&output));
    }
    let output = project.run(&["run", "--subject", "milt"]);
    assert!(
        stderr(&output).contains("did you mean mild?"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_command_finds_its_files_and_its_secrets_from_anywhere() {
    let project = Project::new("");
    let script = r#"
test "$MY_KEY" = "x-canary-value" || exit 4
test "$LEVEL" = "3" || exit 5
test -n "$PROOFHOUSE_MCP_URL" || exit 6
echo done
"#;
    project.write("conf/bin/agent.sh", script);
    project.write(
        "conf/proofhouse.yaml",
        "proofhouse: 1\nsubjects:\n  - name: mine\n    command: sh bin/agent.sh\n    environment:\n      \
         MY_KEY: ${PROOFHOUSE_TEST_CANARY}\n      LEVEL: 3\n  \
         - {name: other, endpoint: {mcp: \"${PROOFHOUSE_NOT_SET}\"}}\n\
         documents: [../attacks/one.yaml]\n",
    );
    let arguments = [
        "run",
        "--config",
        "conf/proofhouse.yaml",
        "--subject",
        "mine",
        "--format",
        "json",
    ];
    let output = project
        .command(&arguments)
        .env("PROOFHOUSE_TEST_CANARY", "x-canary-value")
        .output()
        .unwrap();
    // It never went to the server, so nothing is proved; but it ran, which says that all was there.
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["runs"][0]["outcome"], "inconclusive", "{result}");
    assert!(!stdout(&output).contains("x-canary-value"));
    let output = project.run(&arguments);
    assert_eq!(code(&output), 64);
    let all = stderr(&output);
    assert!(all.contains("`PROOFHOUSE_TEST_CANARY` is not set"), "{all}");
    assert!(
        !all.contains("PROOFHOUSE_NOT_SET"),
        "nobody wanted it: {all}"
    );
}

#[test]
fn every_campaign_may_have_a_directory_of_its_own() {
    let project = Project::new(
        "proofhouse: 1\nsubjects: [sim:careful]\ndocuments: attacks\nout: results/{time}\n",
    );
    for _ in 0..2 {
        let output = project.run(&["run"]);
        // They have no control, so nothing is proved.
        assert_eq!(code(&output), 2, "{}", stderr(&output));
    }
    assert_eq!(
        std::fs::read_dir(project.path("results")).unwrap().count(),
        2
    );
    let output = project.run(&["run", "--resume"]);
    assert_eq!(code(&output), 64, "{}", stderr(&output));
}

#[test]
fn hostile_files_end_with_a_message() {
    let project = Project::new("");
    let many: String = (0..3_000)
        .map(|n| format!("  - {{name: n{n}, simulation: sim:careful}}\n"))
        .collect();
    for text in [
        "proofhouse: 1\nsubjects:\n".to_owned() + &many,
        "[".repeat(100_000),
        "proofhouse: 1\nsubjects: &a [*a]\n".to_owned(),
        "proofhouse: 1\nsubjects: {}\n".to_owned(),
        "proofhouse: 1\n---\nproofhouse: 1\n".to_owned(),
        "- proofhouse\n".to_owned(),
        String::new(),
        format!("proofhouse: 1\nprompt: {}\n", "x".repeat(2 << 20)),
        "proofhouse: 1\nsubjects: [{name: x, command: \"\"}, {name: y, command: []}]\n".to_owned(),
    ] {
        project.write("proofhouse.yaml", &text);
        for command in [&["validate", "proofhouse.yaml"][..], &["run"]] {
            let output = project.run(command);
            let expected = if command[0] == "run" { 64 } else { 1 };
            let start: String = text.chars().take(60).collect();
            assert_eq!(code(&output), expected, "{start}: {}", stderr(&output));
        }
    }
}

/// An agent that runs by itself; it ends with the test.
struct Running(std::process::Child);

impl Running {
    /// Starts one, and gives where it speaks AG-UI.
    fn start(project: &Project) -> (Self, String) {
        let arguments = [
            "agent",
            "serve",
            "agents/clerk.yaml",
            "--ag-ui",
            "127.0.0.1:0",
            "--format",
            "json",
        ];
        let mut child = project
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        let places: Value = serde_json::from_str(&line).unwrap();
        (Self(child), places["ag_ui"].as_str().unwrap().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_kind_of_subject_is_attacked_from_the_file() {
    let project = Project::new("");
    let (_running, url) = Running::start(&project);
    let program = env!("CARGO_BIN_EXE_proofhouse");
    let file = format!(
        r#"proofhouse: 1
subjects:
  - {{name: simulated, simulation: sim:gullible}}
  - {{name: clerk, manifest: agents/clerk.yaml, model: sim:gullible}}
  - {{name: bare, model: sim:gullible}}
  - name: once
    command: ['{program}', agent, run, agents/clerk.yaml, --model, sim:gullible, --mcp, '{{mcp_url}}', --allow, 127.0.0.1, --message, '{{prompt}}']
  - name: served
    command: ['{program}', agent, serve, agents/clerk.yaml, --model, sim:gullible, --mcp, '{{mcp_url}}', --allow, 127.0.0.1, --ag-ui, '127.0.0.1:{{port}}']
    serves: ag-ui
    copy_of: .
documents: attacks/one.yaml
"#
    );
    project.write("proofhouse.yaml", &file);
    let (code_of, result) = project.campaign(&[]);
    assert_eq!(code_of, 1);
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 5);
    for run in runs {
        assert_eq!(run["outcome"], "exploited", "{run}");
    }
    // One that runs already is reached over its own protocol.
    let file = format!(
        "proofhouse: 1\nsubjects: [{{name: running, endpoint: {{ag_ui: '{url}'}}}}]\nfilters: {{ids: PROOF-041}}\n"
    );
    project.write("proofhouse.yaml", &file);
    let (code_of, result) = project.campaign(&[]);
    assert_eq!(
        (code_of, &result["runs"][0]["outcome"]),
        (0, &"resisted".into()),
        "{result}"
    );
}

#[test]
fn secrets_are_known_by_their_look() {
    for (value, is_secret) in [
        ("postgres://me:hunter2hunter2@db/x", true),
        ("sk-hunter2hunter2hunter2", true),
        ("-----BEGIN PRIVATE KEY----- hunter2hunter2", true),
        ("postgres://me:${PASSWORD}@db/x", false),
        ("hunter2hunter2", false),
    ] {
        let project = Project::new(&format!(
            "proofhouse: 1\nsubjects:\n  - name: mine\n    command: [\"true\"]\n    environment: {{WHERE: \"{value}\"}}\n"
        ));
        let output = project.run(&["validate", "proofhouse.yaml"]);
        let all = stdout(&output) + &stderr(&output);
        assert_eq!(code(&output), i32::from(is_secret), "{all}");
        assert_eq!(all.contains("PC-008"), is_secret, "{all}");
        assert!(!all.contains("hunter2"), "{all}");
    }
}

#[test]
fn slips_in_placeholders_are_shown_in_their_place() {
    let project = Project::new(
        "proofhouse: 1\nsubjects:\n  - name: mine\n    command: python agent.py {promt}\n",
    );
    let output = project.run(&["validate", "proofhouse.yaml"]);
    let all = stdout(&output);
    assert_eq!(code(&output), 1, "{all}");
    assert!(
        all.contains("proofhouse.yaml:4") && all.contains("did you mean `{prompt}`?"),
        "{all}"
    );
}
