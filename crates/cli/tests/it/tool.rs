//! Calls of tools as a user makes them: every example for real, exit codes, previews, traces, and what
//! becomes of a call that is interrupted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests, helpers included"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proofhouse_manifest::Bundle;
use proofhouse_test_support::http::{TestReply, TestServer};
use proofhouse_test_support::process::signal;
use proofhouse_test_support::wait::until_true;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{Runtimes, ToolLimits};
use serde_json::{Value, json};

use crate::support::{self, Demo, Ran, command, finish, json, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "our own examples")]
    fs::read_to_string(path).unwrap()
}

/// The examples, copied so that they talk to one demo service.
struct Examples {
    demo: Demo,
    directory: tempfile::TempDir,
}

impl Examples {
    fn new() -> Self {
        let demo = Demo::start(&[]);
        let directory = tempfile::tempdir().unwrap();
        let examples = root().join("examples");
        let tools = fs::read_dir(examples.join("tools")).unwrap();
        let files = tools.map(|entry| entry.unwrap().path());
        for file in files.chain([examples.join("tool-settings.yaml")]) {
            let text = read(&file).replace("127.0.0.1:8765", &demo.address);
            fs::write(directory.path().join(file.file_name().unwrap()), text).unwrap();
        }
        Self { demo, directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// Runs a line of the documentation.
    fn run(&self, line: &str) -> Ran {
        let words = shlex::split(line).unwrap();
        let mut words: Vec<String> = words
            .into_iter()
            .skip(1)
            .map(|word| match word.strip_prefix("examples/") {
                Some(path) => self.path(path.strip_prefix("tools/").unwrap_or(path)),
                None => word,
            })
            .collect();
        if line.contains("echo.yaml") {
            let program = env!("CARGO_BIN_EXE_proofhouse");
            words.extend(["--setting".to_owned(), format!("proofhouse={program}")]);
        }
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// The backends that a manifest uses.
fn backends(text: &str) -> Vec<&'static str> {
    let (bundle, findings) = Bundle::read(text);
    assert!(findings.is_empty(), "{findings:?}");
    let tools: Vec<_> = bundle.tools().collect();
    let of_actions = tools.iter().flat_map(|tool| &tool.actions);
    let of_blocks = tools.iter().flat_map(|tool| tool.deriving());
    of_actions
        .map(|action| action.execute.key())
        .chain(of_blocks.map(|block| block.key()))
        .collect()
}

/// The commands in the comment at the top of a manifest.
fn commands(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| line.starts_with('#'))
        .filter_map(|line| line.strip_prefix("#   proofhouse tool "))
        .map(|line| format!("proofhouse tool {line}"))
        .collect()
}

#[test]
fn every_example_runs_as_its_comment_says() {
    let examples = Examples::new();
    let runtimes = Runtimes::new(&ToolLimits::default(), EgressPolicy::default()).unwrap();
    let there: Vec<&str> = runtimes.keys().collect();
    let mut seen = Vec::new();
    for entry in fs::read_dir(root().join("examples/tools")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = read(&path);
        let used = backends(&text);
        seen.extend(used.iter().copied());
        if let Some(missing) = used.iter().find(|key| !there.contains(key)) {
            eprintln!("SKIPPED: {}: no runtime for `{missing}`", path.display());
            continue;
        }
        let commands = commands(&text);
        assert!(!commands.is_empty(), "{}: no commands", path.display());
        for line in commands {
            let ran = examples.run(&line);
            assert_eq!(ran.code, Some(0), "{line}: {}{}", ran.stderr, ran.stdout);
            assert_eq!(ran.stderr, "", "{line}");
            if line.contains(" call ") {
                json(&ran.stdout);
            }
        }
    }
    for key in [
        "cel",
        "stateless_http",
        "stateful_session",
        "openapi",
        "mcp",
        "kubernetes_job",
    ] {
        assert!(seen.contains(&key), "there is no example of {key}");
    }
    let (_, sessions) = examples.demo.ask("GET /sessions HTTP/1.1", "");
    assert_eq!(json(&sessions)["open"], 0, "every session was ended");
}

#[test]
fn the_overview_shows_commands_of_the_manifests() {
    let overview = read(&root().join("examples/tools/README.md"));
    let shown = overview.lines().filter_map(|line| {
        let (_, command) = line.strip_suffix("` |")?.rsplit_once("| `")?;
        Some(command)
    });
    let shown: Vec<&str> = shown.collect();
    assert_eq!(shown.len(), 6);
    for command in shown {
        let name = command.split("examples/tools/").nth(1).unwrap();
        let name = name.split(' ').next().unwrap();
        let text = read(&root().join("examples/tools").join(name));
        assert!(
            commands(&text).iter().any(|known| known == command),
            "{command}"
        );
    }
}

#[test]
fn results_are_the_real_ones() {
    let examples = Examples::new();
    let settings = "--settings examples/tool-settings.yaml";
    for (line, expected) in [
        (
            "clock.yaml greet --arg name=Ada --arg times=2".to_owned(),
            json!({"greetings": ["Hello, Ada!", "Hello, Ada!"]}),
        ),
        (
            // By the name of the function, with text that must be encoded.
            format!(
                "weather.yaml weather_forecast --json '{{\"city\": \"São/Paulo?\", \"days\": 1}}' {settings}"
            ),
            json!([{"day": 1, "sky": "snow", "celsius": 5}]),
        ),
        (
            format!("weather.yaml account {settings}"),
            json!({"account": "demo", "plan": "free"}),
        ),
        (
            "sums.yaml sums --arg number=2.5 --allow 127.0.0.1".to_owned(),
            json!(2.5),
        ),
    ] {
        let ran = examples.run(&format!("proofhouse tool call examples/tools/{line}"));
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
        assert_eq!(json(&ran.stdout), expected, "{line}");
    }
    let ran = examples
        .run("proofhouse tool call examples/tools/clock.yaml greet --arg name=A --format json");
    let told = json(&ran.stdout);
    assert_eq!(told["function"], "clock_greet");
    assert_eq!(
        told["tool"],
        json!({"namespace": "examples", "name": "clock"})
    );
    assert_eq!(told["result"]["greetings"], json!(["Hello, A!"]));
    assert_eq!(
        (&told["truncated"], &told["version"]),
        (&json!(false), &json!(1))
    );
}

#[test]
fn ways_to_fail_have_their_codes() {
    let examples = Examples::new();
    let settings = "--settings examples/tool-settings.yaml";
    let weather = "proofhouse tool call examples/tools/weather.yaml";
    for (line, code, words) in [
        // A model would be told.
        (
            format!("{weather} forecast --arg days=many {settings}"),
            1,
            "bad_arguments",
        ),
        (
            format!("{weather} forecast --arg city=.. {settings}"),
            1,
            "refused",
        ),
        (
            format!(
                "{weather} forecast --arg city=Oslo --settings examples/tool-settings.yaml --setting api_key=wrong-key"
            ),
            1,
            "http_status",
        ),
        // The task would end.
        (
            format!("{weather} forecast --arg city=Oslo --setting api_key=demo-key"),
            3,
            "egress.allow",
        ),
        (
            format!("{weather} forecast --arg city=Oslo --allow 127.0.0.1"),
            3,
            "missing_setting",
        ),
        (
            format!("{weather} account --allow 127.0.0.1"),
            3,
            "no_token",
        ),
        // The command line does not make sense.
        (
            format!("{weather} forcast {settings}"),
            64,
            "did you mean `forecast`?",
        ),
        (
            format!("{weather} forecast --json '[1]' {settings}"),
            64,
            "write an object",
        ),
        (
            format!("{weather} forecast --arg city {settings}"),
            64,
            "NAME=VALUE",
        ),
        (
            format!("{weather} forecast --settings examples/nothing.yaml"),
            64,
            "no such file",
        ),
        (
            format!("{weather} forecast --allow localhost"),
            64,
            "127.0.0.1",
        ),
        (
            "proofhouse tool call examples/tools/nothing.yaml x".to_owned(),
            64,
            "no such file",
        ),
        (
            format!("{weather} forecast --trace examples/tools/weather.yaml {settings}"),
            64,
            "this file is also an input",
        ),
        (
            format!("{weather} forecast --settings - --json @-"),
            64,
            "only once",
        ),
        (
            format!("{weather} forecast --trace t.jsonl --dry-run"),
            64,
            "cannot be used with",
        ),
    ] {
        let ran = examples.run(&line);
        assert_eq!(ran.code, Some(code), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{line}");
    }
    // Every missing argument is named at once, and programs get the error as JSON.
    let ran = examples.run(&format!(
        "{weather} forecast --arg dayz=1 {settings} --format json"
    ));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let error = &json(&ran.stdout)["error"];
    assert_eq!(
        (&error["error"], &error["recoverable"]),
        (&json!("bad_arguments"), &json!(true))
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("city") && message.contains("dayz"),
        "{message}"
    );
}

#[test]
fn mistakes_in_manifests_and_settings_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head = "kind: commonagents.info/v1/tool\nnamespace: a\nname: b\ndescription: c\nactions:\n";
    let broken = write(
        "broken.yaml",
        &format!("{head}  - {{name: x, description: y, execute: {{}}}}\n"),
    );
    for command in ["list", "call"] {
        let ran = match command {
            "list" => run(&["tool", command, &broken]),
            _ => run(&["tool", command, &broken, "x"]),
        };
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("TM-007") && ran.stderr.contains("broken.yaml:6:"),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stdout, "");
    }
    let action = "{name: x, description: y, execute: {cel: {expression: '1'}}}";
    let good = write("good.yaml", &format!("{head}  - {action}\n"));
    // What is wrong with settings is told without showing the line, which may hold a secret.
    let settings = write(
        "settings.yaml",
        "settings: {n/t: {api_key: sk-secret-1}}\nauht: {a: sk-secret-2}\n",
    );
    let ran = run(&["tool", "call", &good, "x", "--settings", &settings]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("did you mean `auth`?"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("sk-secret"), "{}", ran.stderr);
    // Two tools with one action must be told apart.
    let both = write(
        "both.yaml",
        &format!(
            "{head}  - {action}\n---\n{}  - {action}\n",
            head.replace("name: b", "name: d")
        ),
    );
    let ran = run(&["tool", "call", &both, "x"]);
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.stderr.contains("name the function: b, d"),
        "{}",
        ran.stderr
    );
    assert_eq!(run(&["tool", "call", &both, "d"]).stdout, "1\n");
}

#[test]
fn settings_come_from_the_environment() {
    let examples = Examples::new();
    let settings = "settings: {examples/weather: {api_key: '${DEMO_KEY_OF_THE_TEST}'}}\negress: {allow: [127.0.0.1]}\n";
    let path = examples.path("own.yaml");
    fs::write(&path, settings).unwrap();
    let weather = examples.path("weather.yaml");
    let args = [
        "tool",
        "call",
        &weather,
        "forecast",
        "--arg",
        "city=Oslo",
        "--settings",
        &path,
    ];
    let mut with = command(&args);
    with.env("DEMO_KEY_OF_THE_TEST", "demo-key");
    let ran = finish(with.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(&args);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("DEMO_KEY_OF_THE_TEST"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_dry_run_sends_nothing_and_shows_no_secret() {
    // Nobody listens on the port of the examples' own settings, and nothing is allowed.
    for (line, name) in [
        (
            "weather.yaml forecast --arg city=Oslo --setting api_key=sk-secret/1",
            "dry-run-http",
        ),
        (
            "weather.yaml account --setting api_key=sk-secret/1",
            "dry-run-token",
        ),
        ("sums.yaml add --arg number=2.5", "dry-run-session"),
    ] {
        let line = format!("tool call examples/tools/{line} --dry-run");
        let args: Vec<&str> = line.split(' ').collect();
        let ran = run(&args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{line}");
        assert!(!ran.stdout.contains("sk-secret"), "{}", ran.stdout);
        insta::assert_snapshot!(name, ran.stdout);
    }
    let ran = run(&[
        "tool",
        "call",
        "examples/tools/weather.yaml",
        "forecast",
        "--dry-run",
    ]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("city"), "{}", ran.stderr);
}

#[test]
fn traces_can_be_judged() {
    let examples = Examples::new();
    let trace = examples.path("calls.jsonl");
    let clock = "proofhouse tool call examples/tools/clock.yaml greet --arg name=CANARY-0badcafe";
    assert_eq!(
        examples.run(&format!("{clock} --trace {trace}")).code,
        Some(0)
    );
    let lines: Vec<Value> = read(Path::new(&trace)).lines().map(json).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["proofhouse_trace"], 1);
    let expected = json!({"name": "clock_greet", "arguments": {"name": "CANARY-0badcafe"}});
    assert_eq!(lines[1]["content"], expected);
    assert_eq!(lines[1]["direction"], "request");
    let result = json!({"greetings": ["Hello, CANARY-0badcafe!"]});
    assert_eq!(
        lines[2]["content"],
        json!({
            "content": [{"type": "text", "text": result.to_string()}],
            "isError": false,
            "structuredContent": result,
        })
    );
    for line in &lines[1..] {
        assert_eq!(
            (&line["protocol"], &line["operation"]),
            (&json!("mcp"), &json!("tools/call"))
        );
        assert!(line["time"].is_string());
    }
    let rules = support::Case::new(&json!([{
        "protocol": "mcp", "surface": "tools/call", "direction": "request",
        "target": "arguments.name", "pattern": {"regex": "CANARY-[0-9a-f]{8}"},
    }]));
    let judged = rules.judge("scan", Path::new(&trace), &[]);
    assert_eq!(judged.code, Some(1), "{}{}", judged.stdout, judged.stderr);
    assert!(judged.stdout.contains("exploited"), "{}", judged.stdout);

    // A failed call is a result with isError, and the secret stays out of the file.
    let weather = "proofhouse tool call examples/tools/weather.yaml forecast --arg city=Oslo";
    let line = format!("{weather} --allow 127.0.0.1 --setting api_key=sk-secret-1 --trace {trace}");
    assert_eq!(examples.run(&line).code, Some(1));
    let text = read(Path::new(&trace));
    let last = json(text.lines().last().unwrap());
    assert_eq!(last["content"]["isError"], true);
    assert_eq!(last["content"]["structuredContent"]["status"], 401);
    assert!(!text.contains("sk-secret"), "{text}");

    let line = format!(
        "{clock} --trace {}",
        examples.path("no/such/directory.jsonl")
    );
    let ran = examples.run(&line);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("cannot write"), "{}", ran.stderr);
}

/// A session service whose `execute` never answers.
fn stuck_service() -> TestServer {
    TestServer::start(|request, _| {
        if request.path.contains("/add") {
            return TestReply::Held;
        }
        TestReply::Json(json!({"session": {"id": "s1"}}))
    })
}

/// Waits until a service has been asked this.
fn wait_for(service: &TestServer, words: &str) {
    until_true(words, || {
        let requests = service.requests();
        let mut lines = requests
            .iter()
            .map(|asked| format!("{} {}", asked.method, asked.path));
        lines.any(|line| line.contains(words))
    });
}

#[test]
fn a_call_that_takes_too_long_is_ended_with_its_session() {
    let service = stuck_service();
    let base = format!("base_url=http://{}", service.address());
    let ran = run(&[
        "tool",
        "call",
        "examples/tools/sums.yaml",
        "add",
        "--arg",
        "number=1",
        "--setting",
        &base,
        "--allow",
        "127.0.0.1",
        "--timeout",
        "500ms",
        "--format",
        "json",
    ]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let error = &json(&ran.stdout)["error"];
    assert_eq!(
        (&error["error"], &error["outcome_unknown"]),
        (&json!("timeout"), &json!(true))
    );
    assert!(
        error["message"].as_str().unwrap().contains("0.5 s"),
        "{error}"
    );
    wait_for(&service, "DELETE /sessions/s1");
}

#[cfg(unix)]
#[test]
fn an_interrupted_call_ends_its_session() {
    let service = stuck_service();
    let base = format!("base_url=http://{}", service.address());
    let child = command(&[
        "tool",
        "call",
        "examples/tools/sums.yaml",
        "add",
        "--arg",
        "number=1",
        "--setting",
        &base,
        "--allow",
        "127.0.0.1",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    wait_for(&service, "/add");
    signal(child.id(), "-INT");
    let ran = finish(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("cancelled"), "{}", ran.stderr);
    wait_for(&service, "DELETE /sessions/s1");
}
