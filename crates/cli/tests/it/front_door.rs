//! The first five minutes: results that stay, the preflight, accepted risks, what the terminal shows, and the mistakes that
//! people make.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support;

pub(crate) struct Project(tempfile::TempDir);

impl Project {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        text(&self.path(name))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proofhouse"));
        command.current_dir(self.0.path()).args(arguments);
        command.env_remove("BROWSER").env_remove("DISPLAY");
        command.env_remove("WAYLAND_DISPLAY").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn text(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "a file of this test")]
    let text = std::fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The attack of the library that is quickest to play.
const ONE: [&str; 4] = ["run", "--no-config", "--id", "PROOF-001"];

fn gullible(more: &[&str]) -> Vec<String> {
    let arguments = ONE.iter().chain(&["--subject", "sim:gullible"]).chain(more);
    arguments.map(|word| (*word).to_owned()).collect()
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn results_stay_and_the_last_one_is_found() {
    let project = Project::new();
    let nothing = project.run(&["open"]);
    assert_eq!(nothing.code, 3);
    assert!(
        nothing.stderr.starts_with("error: there is no report"),
        "{}",
        nothing.stderr
    );

    let ran = project.run(&words(&gullible(&[])));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let results = project.path(".proofhouse/results");
    let latest = results.join("latest");
    for file in ["result.json", "report.html"] {
        assert!(latest.join(file).is_file(), "{file}");
    }
    let report = ran
        .stderr
        .lines()
        .find(|line| line.starts_with("Report: "))
        .unwrap();
    assert!(
        report.contains("report.html") && report.contains("proofhouse open"),
        "{report}"
    );
    // The end has the worst findings with evidence and fix, and the rate with its interval.
    let findings = ran.stdout.find("The finding").unwrap();
    let end = &ran.stdout[findings..];
    for expected in [
        "[high] PROOF-001",
        "Evidence: message",
        "Fix in the agent:",
        "Attack success rate: 100%",
        "95% interval",
    ] {
        assert!(end.contains(expected), "{expected}: {end}");
    }

    let first = latest.canonicalize().unwrap();
    let again = project.run(&words(&gullible(&["--out", "elsewhere"])));
    assert_eq!(again.code, 1, "{}", again.stderr);
    assert!(
        again.stderr.contains("proofhouse open elsewhere"),
        "{}",
        again.stderr
    );
    assert_eq!(
        latest.canonicalize().unwrap(),
        first,
        "what goes elsewhere is not the latest"
    );
    let second = project.run(&words(&gullible(&[])));
    assert_eq!(second.code, 1, "{}", second.stderr);
    let newest = latest.canonicalize().unwrap();
    assert_ne!(newest, first);

    let opened = project.run(&["open"]);
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    assert_eq!(
        opened.stdout.trim_end(),
        newest.join("report.html").to_str().unwrap()
    );
    assert!(opened.stderr.contains("No browser"), "{}", opened.stderr);
    let named = project.run(&["open", "elsewhere", "--print"]);
    assert!(
        named.stdout.trim_end().ends_with("elsewhere/report.html"),
        "{}",
        named.stdout
    );
}

#[test]
fn nothing_is_kept_where_nothing_should_be() {
    let project = Project::new();
    let ran = project.run(&words(&gullible(&["--no-keep"])));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(!project.path(".proofhouse").exists());
    assert!(!ran.stderr.contains("Report:"), "{}", ran.stderr);
    let clash = project.run(&words(&gullible(&["--no-keep", "--out", "x"])));
    assert_eq!(clash.code, 64);
    let unknown = project.run(&words(&gullible(&["--resume"])));
    assert_eq!(unknown.code, 64, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("--resume"), "{}", unknown.stderr);
}

#[test]
#[cfg(unix)]
fn a_report_is_opened_in_the_browser() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    assert_eq!(project.run(&words(&gullible(&[]))).code, 1);
    project.write(
        "browser",
        "#!/bin/sh\necho \"$1\" > shown.part && mv shown.part shown\n",
    );
    let browser = project.path("browser");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let opened = project
        .command(&["open"])
        .env("BROWSER", &browser)
        .output()
        .unwrap();
    let opened = Ran::of(&opened);
    assert_eq!((opened.code, opened.stderr.as_str()), (0, ""));
    // The browser is not waited for.
    let shown = project.path("shown");
    while !shown.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(text(&shown), opened.stdout);
}

/// An agent that is broken in some way, and counts how often it is started.
const AGENT: &str = concat!(
    include_str!("support/mcp_client.py"),
    r#"
import sys, time
how, count = sys.argv[1], sys.argv[2]
with open(count, "a") as file:
    file.write("x")
if how == "crash":
    import no_such_module_of_mine
if how == "unwired":
    print("I looked at my own servers.")
    print("connected to https://mine.example/mcp", file=sys.stderr)
    sys.exit(0)
initialize()
tools = call(2, "tools/list", {})
if how == "no-model":
    print("calling the model", file=sys.stderr)
    raise RuntimeError("AuthenticationError: no key")
if how == "idle":
    print("I would rather not.")
    sys.exit(0)
"#
);

#[test]
fn an_agent_that_is_not_wired_up_is_started_once() {
    let project = Project::new();
    project.write("agent.py", AGENT);
    for (how, step, told) in [
        (
            "crash",
            "start FAILED",
            "ModuleNotFoundError: No module named 'no_such_module_of_mine'",
        ),
        ("unwired", "connect FAILED", "PROOFHOUSE_MCP_URLS"),
        (
            "no-model",
            "model answers FAILED",
            "AuthenticationError: no key",
        ),
        ("idle", "task done FAILED", "I would rather not."),
    ] {
        let count = project.path(how);
        let command = format!("python3 agent.py {how} {}", count.display());
        let ran = project.run(&[
            "run",
            "--no-config",
            "--protocol",
            "mcp",
            "--command",
            &command,
        ]);
        assert_eq!(ran.code, 3, "{how}: {}", ran.stderr);
        assert_eq!(text(&count), "x", "{how} was started once");
        assert!(ran.stderr.contains(step), "{how}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{how}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("error: \"command\" is not ready"),
            "{how}: {}",
            ran.stderr
        );
        assert_eq!(ran.stdout, "", "{how}");
        assert!(
            !project.path(".proofhouse/results/latest").exists(),
            "{how}"
        );
    }
    let missing = project.run(&[
        "run",
        "--no-config",
        "--protocol",
        "mcp",
        "--command",
        "no-such-program {prompt}",
    ]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    assert!(
        missing.stderr.contains("start FAILED"),
        "{}",
        missing.stderr
    );
    assert!(
        missing
            .stderr
            .contains("There is no such program in PATH: check its name"),
        "{}",
        missing.stderr
    );
    assert!(!missing.stderr.contains("os error"), "{}", missing.stderr);
    // Who wants the attacks all the same gets them.
    let command = format!("python3 agent.py idle {}", project.path("all").display());
    let ran = project.run(&[
        "run",
        "--no-config",
        "--id",
        "PROOF-001",
        "--no-preflight",
        "--no-probes",
        "--command",
        &command,
    ]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(
        text(&project.path("all")),
        "xx",
        "the attack and its control"
    );
}

#[test]
fn a_preflight_that_goes_well_is_one_of_the_runs() {
    let project = Project::new();
    let counted = format!(
        "open({:?}, 'a').write('x')\n{}",
        project.path("count").display().to_string(),
        crate::outcomes::AGENT
    );
    project.write("agent.py", &counted);
    project.write("attacks/t-100.yaml", crate::outcomes::ATTACK);
    project.write("attacks/t-100.twin.yaml", crate::outcomes::CONTROL);
    let ran = project.run(&[
        "run",
        "attacks",
        "--no-config",
        "--no-probes",
        "--format",
        "json",
        "--command",
        "python3 agent.py careful",
    ]);
    assert_eq!(
        ran.code, 2,
        "without probes nothing is resisted: {}",
        ran.stderr
    );
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["runs"].as_array().unwrap().len(), 2);
    assert_eq!(text(&project.path("count")), "xx", "no run was made twice");
}

fn config(accepted: &str) -> String {
    format!(
        "proofhouse: 1\nsubjects: [{{name: mine, simulation: sim:gullible}}]\nfilters: {{ids: [PROOF-001]}}\n{accepted}"
    )
}

#[test]
fn an_accepted_risk_is_reported_and_fails_after_its_date() {
    let project = Project::new();
    let accepted = |until: &str, subject: &str| {
        config(&format!(
            "accepted:\n  - {{id: PROOF-001, subject: {subject}, until: {until}, reason: \"Ticket SEC-12.\"}}\n"
        ))
    };
    project.write("proofhouse.yaml", &accepted("2999-12-31", "mine"));
    let ran = project.run(&[
        "run", "--report", "markdown", "--report", "sarif", "--report", "html",
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let sentence =
        "Accepted until 2999-12-31: PROOF-001 on mine got through in 1 run. Reason: Ticket SEC-12";
    assert!(!ran.stderr.contains(sentence), "said twice: {}", ran.stderr);
    let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(sentence), "{}", ran.stdout);
    assert!(
        flat.contains("accepted") && flat.contains("100%"),
        "{}",
        ran.stdout
    );
    let latest = |file: &str| project.read(&format!(".proofhouse/results/latest/{file}"));
    assert!(latest("report.md").contains("Accepted until 2999-12-31"));
    assert!(latest("report.html").contains("Accepted until 2999-12-31"));
    let sarif: Value = serde_json::from_str(&latest("report.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["suppressions"][0]["status"], "accepted");
    let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "proofhouse.yaml", "a file that the user has");
    let rule = &sarif["runs"][0]["tool"]["driver"]["rules"][0];
    assert!(
        rule["help"]["text"]
            .as_str()
            .unwrap()
            .contains("In the agent:"),
        "{rule}"
    );

    project.write("proofhouse.yaml", &accepted("2020-01-01", "mine"));
    let expired = project.run(&["run"]);
    assert_eq!(expired.code, 1, "{}", expired.stderr);
    let flat = expired.stdout.split_whitespace().collect::<Vec<_>>();
    assert!(
        flat.join(" ")
            .contains("Expired on 2020-01-01: PROOF-001 on mine"),
        "{}",
        expired.stdout
    );

    project.write("proofhouse.yaml", &accepted("2999-12-31", "mien"));
    let other = project.run(&["run", "--format", "github"]);
    assert_eq!(other.code, 1, "{}", other.stderr);
    assert!(
        other
            .stderr
            .contains("was not tested in this campaign; did you mean the subject mine?"),
        "{}",
        other.stderr
    );

    for wrong in ["until: soon", "until: 2026-02-30", "reason: \"\""] {
        let text = accepted("2999-12-31", "mine");
        let text = match wrong.split_once(':').unwrap().0 {
            "until" => text.replace("until: 2999-12-31", wrong),
            _ => text.replace("reason: \"Ticket SEC-12.\"", wrong),
        };
        project.write("proofhouse.yaml", &text);
        assert_ne!(
            project.run(&["validate", "proofhouse.yaml"]).code,
            0,
            "{wrong}"
        );
    }
}

#[test]
fn progress_fits_a_pipe() {
    let project = Project::new();
    let all = [
        "run",
        "--no-config",
        "--no-keep",
        "--category",
        "capability_poisoning",
    ];
    let lines = |more: &[&str]| {
        let ran = project.run(&[&all, more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
            .lines()
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let plain = lines(&[]);
    let tenths: Vec<&String> = plain.iter().filter(|line| line.contains("% ")).collect();
    assert!((5..=10).contains(&tenths.len()), "{plain:?}");
    assert!(tenths.last().unwrap().starts_with("100%"), "{plain:?}");
    assert!(plain.len() < 20, "{plain:?}");
    assert_eq!(lines(&["-q"]), [""; 0]);
    let verbose = lines(&["-v"]);
    assert!(
        verbose.iter().filter(|line| line.starts_with('[')).count() > 20,
        "{verbose:?}"
    );
    let silent = lines(&["--progress", "none"]);
    assert!(!silent.iter().any(|line| line.contains("% ")), "{silent:?}");
}

#[test]
fn colours_come_when_they_are_asked_for() {
    let project = Project::new();
    for (when, colours) in [("always", true), ("never", false), ("auto", false)] {
        let ran = project.run(&words(&gullible(&["--no-keep", "--color", when])));
        assert_eq!(ran.stdout.contains('\u{1b}'), colours, "{when}");
    }
}

#[test]
fn what_would_be_run_is_printed_and_not_run() {
    let project = Project::new();
    let list = project.run(&["run", "--no-config", "--list", "--severity", "critical"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    assert!(list.stdout.lines().count() > 2, "{}", list.stdout);
    assert!(
        list.stdout
            .lines()
            .all(|line| line.starts_with("PROOF-") && line.contains(" critical ")),
        "{}",
        list.stdout
    );
    let json = project.run(&[
        "run",
        "--no-config",
        "--list",
        "--id",
        "PROOF-001",
        "--format",
        "json",
    ]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&json[0]["id"], &json[0]["severity"]),
        (&"PROOF-001".into(), &"high".into())
    );
    let dry = project.run(&[
        "run",
        "--no-config",
        "--dry-run",
        "--repeats",
        "3",
        "--id",
        "PROOF-001",
    ]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    for expected in [
        "1 attack with 3 repeats each (8 runs in all)",
        "sim:gullible: 3 attack runs, 1 control run",
        "Nothing was run",
    ] {
        assert!(dry.stdout.contains(expected), "{}", dry.stdout);
    }
    assert!(!project.path(".proofhouse").exists());
}

#[test]
fn mistakes_are_answered_with_what_to_do() {
    let project = Project::new();
    let threat = "examples/documents/poisoned-tool.yaml";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(root.join(threat).is_file());
    let manifest = "examples/tools/clock.yaml";
    assert!(root.join(manifest).is_file());
    for (arguments, code, expected) in [
        (
            &["agent", "run", threat, "--message", "x"][..],
            64,
            "is a threat document, not a manifest; use: proofhouse attack",
        ),
        (
            &["tool", "list", threat],
            64,
            "is a threat document, not a manifest",
        ),
        (
            &["attack", manifest],
            64,
            "is a tool manifest, not a threat document; use: proofhouse tool list",
        ),
        (
            &["run", manifest],
            64,
            "is a tool manifest, not a threat document",
        ),
        (
            &["run", "--subject", threat],
            64,
            "is a threat document, not an agent; use: proofhouse run",
        ),
        (
            &["scan", threat, "--rules", threat],
            64,
            "is a threat document, not a trace; use: proofhouse scan TRACE --rules",
        ),
        (
            &["run", "--config", threat],
            64,
            "is a threat document, not a configuration; use: proofhouse attack",
        ),
        (
            &["open", "crates/cli/Cargo.toml"],
            64,
            "Cargo.toml is not a report; name the directory of a campaign",
        ),
        (
            &["new", "--id", "lower"],
            64,
            "upper-case words and a three-digit number, such as ACME-007",
        ),
        (&["rnu"], 64, "tip: a similar subcommand exists: 'run'"),
        (&["scenaros"], 64, "'scenarios'"),
        (
            &["scenario"],
            64,
            "tip: a similar subcommand exists: 'scenarios'",
        ),
        (&["test"], 64, "tip: a similar subcommand exists: 'run'"),
        (
            &["scenarios", "show", "weather-key"],
            64,
            "did you mean weather-key-theft?",
        ),
        (
            &["attack", "nowhere.yaml"],
            64,
            "nowhere.yaml: no such file",
        ),
        (&["run", "nowhere.yaml"], 64, "nowhere.yaml: no such file"),
        (
            &["attack", "weather-key-theft"],
            64,
            "`proofhouse scenarios show PROOF-001 > weather-key-theft.yaml`",
        ),
        (
            &["validate", "weather-key-theft"],
            64,
            "`proofhouse scenarios show PROOF-001 > weather-key-theft.yaml`",
        ),
        (
            &["explain", "PROOF-001"],
            64,
            "`proofhouse run --id PROOF-001`",
        ),
        (
            &["validate", "nowhere.yaml"],
            64,
            "nowhere.yaml: no such file",
        ),
        (
            &["run", "--config", "nowhere.yaml"],
            64,
            "nowhere.yaml: no such file",
        ),
        (
            &["run", "--no-config", "--baseline", "nowhere.json"],
            64,
            "nowhere.json: no such file",
        ),
        (
            &["run", "--no-config", "--category", "nonsense"],
            64,
            "capability_poisoning",
        ),
        (
            &["run", "--no-config", "--subject", "model:nonsense:x"],
            64,
            "openai",
        ),
        (&["scenarios", "list", "--entry", "nonsense"], 64, "ASI01"),
        (
            &["run", "--no-config", "examples/first-agent/agent.py"],
            64,
            "agent.py is a program, not a threat document; use: proofhouse run --command 'python \
             examples/first-agent/agent.py {prompt}'",
        ),
        (
            &["run", "--no-config", "--baseline", "docs"],
            64,
            "--baseline docs: a directory; name the file in it: --baseline docs/result.json",
        ),
        (
            &["run", "--no-config", "--baseline", "README.md"],
            64,
            "; name the result.json of a campaign",
        ),
        (
            &["run", "--no-config", "--protocol", "http"],
            64,
            "choose from: a2a, ag-ui, mcp",
        ),
        (
            &["campaigns", "list", "--store", "nowhere.db"],
            64,
            "or, for campaigns, `proofhouse run --name NAME`",
        ),
        (
            &["keys", "list", "--store", "nowhere.db"],
            64,
            "create one with `proofhouse serve`, `proofhouse keys create`",
        ),
        (
            &["explain", "resist"],
            64,
            "`resist` (did you mean resisted?); `proofhouse explain` lists them all",
        ),
        (
            &["guard", "check", "examples/action/proofhouse.yaml"],
            64,
            "proofhouse.yaml is a configuration of proofhouse, not a guard policy; use: proofhouse run --config",
        ),
        (
            &["open", "nowhere"],
            64,
            "nowhere: no such file; name the directory of a campaign",
        ),
        (
            &["agent", "run", "examples/agents/support.yaml"],
            64,
            "\"customer\" is a required property. Set the parameters of the agent with --param NAME=VALUE",
        ),
        (
            &["run", "--no-config", "--subject", "sim:nobody"],
            64,
            "sim:careful",
        ),
    ] {
        let ran = support::run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains("os error"),
            "{arguments:?}: {}",
            ran.stderr
        );
        let first = ran
            .stderr
            .lines()
            .find(|line| line.contains("error"))
            .unwrap_or_default();
        assert!(
            first.starts_with("error: "),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    let typo = project.run(&["man", "--dir", "shrae/man/man1"]);
    assert_eq!(typo.code, 3, "{}", typo.stderr);
    assert!(!project.path("shrae").exists());
    assert_eq!(project.run(&["man", "--dir", "man1"]).code, 0);
}

#[test]
fn a_named_file_that_is_missing_is_the_same_error_everywhere() {
    let project = Project::new();
    for arguments in [
        &["guard", "check", "gone.yaml"][..],
        &["guard", "install", "gone.yaml"],
        &["guard", "uninstall", "gone.yaml"],
        &["guard", "--policy", "gone.yaml", "--", "cat"],
        &["open", "gone.yaml"],
        &["replay", "gone.yaml"],
        &["validate", "gone.yaml"],
        &[
            "serve",
            ".",
            "--tls-cert",
            "gone.yaml",
            "--tls-key",
            "gone.yaml",
        ],
        &["serve", ".", "--settings", "gone.yaml"],
        &["run", "--command", "cat", "--mcp-config", "gone.yaml"],
    ] {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 64, "{arguments:?}: {}", ran.stderr);
        let said = "gone.yaml: no such file";
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!project.path("proofhouse.db").exists());
    project.write("a.txt", "");
    let ran = project.run(&["serve", "a.txt"]);
    assert_eq!(ran.code, 64, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("a file, not a directory"),
        "{}",
        ran.stderr
    );
    let ran = project.run(&["man", "--dir", "a/b"]);
    assert!(ran.stderr.contains("create it first"), "{}", ran.stderr);
}

#[test]
fn files_of_another_kind_are_recognized() {
    let project = Project::new();
    assert_eq!(project.run(&words(&gullible(&["--out", "kept"]))).code, 1);
    let stock = project.run(&["guard", "check", "--stock"]);
    project.write("policy.yaml", &stock.stdout);
    project.write(
        "trace.json",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}\n",
    );
    let result = "result.json is the result of a campaign, not a";
    for (arguments, expected) in [
        (&["attack", "kept/result.json"][..], result),
        (&["validate", "kept/result.json"], result),
        (
            &["open", "kept/result.json"],
            "use: proofhouse open kept, or proofhouse replay kept",
        ),
        (
            &["scan", "kept/result.json", "--rules", "policy.yaml"],
            result,
        ),
        (
            &["run", "policy.yaml"],
            "policy.yaml is a guard policy, not a threat document",
        ),
        (&["validate", "trace.json"], "trace.json is a trace, not a"),
    ] {
        let ran = project.run(arguments);
        assert_eq!(ran.code, 64, "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn quiet_commands_still_say_what_is_wrong() {
    let project = Project::new();
    project.write("proofhouse.yaml", "proofhouse: 1\nrepeat: 3\n");
    let ran = project.run(&["run", "-q"]);
    assert_eq!(ran.code, 64, "{}", ran.stderr);
    assert!(ran.stderr.contains("repeat"), "{}", ran.stderr);
}

#[test]
fn a_target_that_exists_is_the_same_exit_code_everywhere() {
    let project = Project::new();
    assert_eq!(project.run(&["new", "--out", "a.yaml"]).code, 0);
    assert_eq!(project.run(&["new", "--out", "a.yaml"]).code, 3);
    let kept = gullible(&["--out", "kept"]);
    assert_eq!(project.run(&words(&kept)).code, 1);
    let taken = project.run(&words(&kept));
    assert_eq!(taken.code, 3, "{}", taken.stderr);
    project.write("proofhouse.yaml", "proofhouse: 1\n");
    assert_eq!(
        project.run(&["init", "--simulation", "sim:careful"]).code,
        3
    );
}

#[test]
fn no_message_has_an_error_number_of_the_system() {
    let project = Project::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let busy = "this address is already in use";
    let endpoint = [
        "run",
        "--no-config",
        "--id",
        "PROOF-001",
        "--ag-ui-url",
        "http://127.0.0.1:1/",
        "--mcp-listen",
        &address,
    ];
    // Before a campaign, in its report, in its result and in what is told on the way.
    let stopped = project.run(&endpoint);
    assert_eq!(stopped.code, 3, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("prepare FAILED"),
        "{}",
        stopped.stderr
    );
    assert!(stopped.stderr.contains(busy), "{}", stopped.stderr);
    let more = ["--no-preflight", "--no-probes", "-v", "--out", "busy"];
    let ran = project.run(&[&endpoint[..], &more[..]].concat());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let result = text(&project.path("busy/result.json"));
    let report = text(&project.path("busy/report.html"));
    assert!(result.contains(busy), "{result}");
    for shown in [&stopped.stderr, &ran.stdout, &ran.stderr, &result, &report] {
        assert!(!shown.contains("os error"), "{shown}");
    }
    for (arguments, code, expected) in [
        (
            &["model", "serve", "sim:careful", "--listen", &address][..],
            3,
            busy,
        ),
        (&["demo-service", "--listen", &address], 3, busy),
        (
            &["run", "--no-config", "--baseline", "nowhere.json"],
            64,
            "nowhere.json: no such file",
        ),
        (
            &["new", "--out", "nowhere/attack.yaml"],
            3,
            "its directory does not exist; create it first",
        ),
    ] {
        let ran = project.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains("os error"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    assert!(
        !project.path("nowhere").exists(),
        "a typo makes no directory"
    );
}

#[test]
fn limits_of_no_time_are_refused() {
    for arguments in [
        &["run", "--no-config", "--list", "--deadline", "0s"][..],
        &["attack", "a.yaml", "--idle-limit", "0ms"],
        &["attack", "a.yaml", "--max-session", "PT0S"],
        &["tool", "call", "a.yaml", "b", "--timeout", "0m"],
        &["keys", "create", "--role", "admin", "--expires", "0d"],
    ] {
        let ran = support::run(arguments);
        assert_eq!(ran.code, Some(64), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr
                .contains("the duration must be greater than zero"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_run_that_waits_for_its_control_is_not_called_inconclusive() {
    let project = Project::new();
    let ran = project.run(&[
        "run",
        "--no-config",
        "--id",
        "PROOF-00*",
        "-v",
        "--jobs",
        "4",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("control_not_run"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("inconclusive"), "{}", ran.stderr);
    // However the runs come, each attack is told with its result.
    for number in 1..=9 {
        for (subject, outcome) in [("sim:gullible", "exploited"), ("sim:careful", "resisted")] {
            let line = format!("PROOF-00{number}/{subject}/1: {outcome}");
            assert!(
                ran.stderr.contains(&line),
                "{line} is not in {}",
                ran.stderr
            );
        }
    }
}
