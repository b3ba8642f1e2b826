//! Subjects that misbehave: each is a line of its run, the others go on, and nothing of it is left.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::net::TcpListener;
use std::path::Path;

use proofhouse_test_support::process::signal;
use proofhouse_test_support::wait::until_true;

use crate::subjects_support::{Bench, agent, bytes, runs};

/// Waits until a process that wrote its number into a file is gone.
fn check_gone(file: &Path) {
    assert!(file.exists(), "it ran");
    until_true("the process is gone", || !runs(file));
}

#[test]
fn processes_that_leave_their_group_are_found() {
    let bench = Bench::new();
    let script = r#"
import os, sys, time
# Twice, and in a session of its own: nobody is its parent any more.
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if sys.argv[2] == "clean":
            # Not even its environment tells where it comes from.
            os.chdir("/")
            code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
            os.execve(sys.executable, [sys.executable, "-c", code, sys.argv[1]], {})
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print("done")
"#;
    let script = bench.write("daemon.py", script);
    for how in ["plain", "clean"] {
        let file = bench.path(how);
        let command = format!("python3 {} {} {how}", script.display(), file.display());
        let ran = bench.run(&["--command", &command]);
        assert_eq!(ran.outcomes(), ["inconclusive"], "{}", ran.stdout);
        let run = ran.result()["runs"][0].clone();
        assert_eq!(run["answer"], "done\n", "its daemon does not hold it up");
        check_gone(&file);
        if how == "plain" {
            let warning = run["warnings"][0].as_str().unwrap();
            assert!(warning.contains("left behind"), "{warning}");
        }
    }
    bench.check_empty();
}

#[test]
fn a_full_disk_is_prevented() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    let script = format!(
        "echo $$ > {}; while true; do dd if=/dev/zero bs=1M count=4 2>/dev/null >> big; sleep 0.01; done",
        pid.display()
    );
    let script = bench.write("fill.sh", &script);
    let command = format!("sh {}", script.display());
    for serves in [&[][..], &["--serves", "ag-ui"]] {
        let arguments = [&["--command", &command, "--max-disk", "8M"], serves].concat();
        let ran = bench.run(&arguments);
        let error = &ran.errors()[0];
        assert!(error.contains("wrote more than 8 MiB"), "{error}");
        check_gone(&pid);
        bench.check_empty();
    }
}

#[test]
fn what_ignores_every_request_to_end_is_killed() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    let script = format!(
        "trap '' TERM INT HUP\necho $$ > {}\n{} --comply --serve ag-ui --port $1 --mcp $2 &\n\
         while true; do sleep 1; done\n",
        pid.display(),
        agent()
    );
    let script = bench.write("stubborn.sh", &script);
    let command = format!("sh {} {{port}} {{mcp_url}}", script.display());
    let ran = bench.run(&["--command", &command, "--serves", "ag-ui"]);
    assert_eq!(ran.outcomes(), ["exploited"], "{}", ran.stdout);
    check_gone(&pid);
    bench.check_empty();
}

#[test]
fn nonsense_is_an_error_of_its_run() {
    let bench = Bench::new();
    let script = r#"
import http.server, sys
answers = {
    "events": ("text/event-stream", b"data: {nonsense\n\ndata: 7\n\n"),
    "empty": ("text/event-stream", b""),
    "binary": ("application/json", bytes(range(256)) * 64),
    "null": ("application/json", b"null"),
    "other": ("application/json", b'{"jsonrpc": "2.0", "id": 99, "result": []}'),
    "huge": ("application/json", b"[" * 200000),
}
class Nonsense(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        kind, body = answers[sys.argv[2]]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)
    do_GET = lambda self: self.send_error(404)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Nonsense).serve_forever()
"#;
    let script = bench.write("nonsense.py", script);
    for (protocol, id) in [("ag-ui", "T-002"), ("a2a", "T-002"), ("mcp", "T-003")] {
        // All kinds side by side: none spoils the others.
        let kinds = ["events", "empty", "binary", "null", "other", "huge"];
        let commands = kinds.map(|kind| format!("python3 {} {{port}} {kind}", script.display()));
        let mut arguments = vec!["--serves", protocol, "--id", id, "--deadline", "60s"];
        for command in &commands {
            arguments.extend(["--command", command]);
        }
        let ran = bench.run(&arguments);
        assert_eq!(ran.code, 2, "{protocol}: {}", ran.stdout);
        for (kind, error) in kinds.iter().zip(ran.errors()) {
            assert!(!error.is_empty(), "{protocol} {kind}");
            if protocol == "ag-ui" {
                assert!(error.contains("not AG-UI"), "{kind}: {error}");
            }
        }
    }
    bench.check_empty();
}

#[test]
fn floods_are_read_away() {
    let bench = Bench::new();
    let flood = "i=0; while [ $i -lt 20000 ]; do echo flood-$i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done";
    let script = bench.write("flood.sh", &format!("{flood}; {flood} >&2\n"));
    let command = format!("sh {}", script.display());
    let ran = bench.run(&["--command", &command]);
    assert_eq!(ran.outcomes(), ["inconclusive"], "{}", ran.stderr);
    // A server that says much before it serves does not wait for us either.
    let serve = format!(
        "{flood}\nexec {} --comply --serve ag-ui --port $1 --mcp $2\n",
        agent()
    );
    let script = bench.write("serve.sh", &serve);
    let command = format!("sh {} {{port}} {{mcp_url}}", script.display());
    let ran = bench.run(&["--command", &command, "--serves", "ag-ui"]);
    assert_eq!(ran.outcomes(), ["exploited"], "{}", ran.stdout);
}

#[test]
fn a_port_that_is_taken_is_told() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    // The attack cannot listen where the agent looks.
    let ran = bench.run(&[
        "--ag-ui-url",
        "http://127.0.0.1:1/",
        "--mcp-listen",
        &address,
        "--subject",
        "sim:careful",
    ]);
    assert_eq!(
        ran.outcomes(),
        ["inconclusive", "inconclusive"],
        "{}",
        ran.stdout
    );
    let error = ran.result()["runs"][1]["error"].to_string();
    assert!(
        error.contains("in use") && error.contains(&address),
        "{error}"
    );
    // The command cannot listen where it wants to.
    let port = taken.local_addr().unwrap().port();
    let command = format!("{} --serve ag-ui --port {port}", agent());
    let ran = bench.run(&["--command", &command, "--serves", "ag-ui"]);
    let error = &ran.errors()[0];
    assert!(
        error.contains("exited before it was ready") && error.contains("in use"),
        "{error}"
    );
}

#[test]
fn what_an_interrupted_campaign_started_is_ended() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    let script = format!("trap '' INT TERM; echo $$ > {}; sleep 600", pid.display());
    let script = bench.write("sleeper.sh", &script);
    let command = format!("sh {}", script.display());
    let arguments = [
        "--command",
        command.as_str(),
        "--subject",
        "sim:careful",
        "--out",
        "out",
    ];
    let child = bench.begin(&arguments);
    let known = || {
        let file = bench.path("out/result.json");
        let kept = file.exists().then(|| bytes(&file))?;
        let result: serde_json::Value = serde_json::from_slice(&kept).ok()?;
        Some(result["runs"].as_array()?.len())
    };
    // Whoever hangs holds up nobody else, not even before its own runs.
    until_true("the command runs, and the other subject has runs", || {
        pid.exists() && !bytes(&pid).is_empty() && known().is_some_and(|runs| runs > 0)
    });
    signal(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    check_gone(&pid);
    bench.check_empty();
    let result: serde_json::Value =
        serde_json::from_slice(&bytes(&bench.path("out/result.json"))).unwrap();
    assert_eq!(result["complete"], false, "it is marked");
    assert!(
        !result["runs"].as_array().unwrap().is_empty(),
        "what is known is kept"
    );
}
