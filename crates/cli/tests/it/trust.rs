//! When the answer of `proofhouse scan` can be trusted, and how it says so when it cannot.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, helpers included")]

use std::fs;
use std::path::PathBuf;

use proofhouse_test_support::process::signal;
use serde_json::{Value, json};

use crate::support::{self, Case, Ran, json, run};

const TRACE: &str = "examples/traces/poisoned-tool.jsonl";
const RULES: &str = "examples/documents/poisoned-tool.yaml";

/// Runs a command over a trace of these bytes.
fn judge(case: &Case, command: &str, bytes: impl AsRef<[u8]>, more: &[&str]) -> Ran {
    case.judge(command, &case.write("trace.jsonl", bytes), more)
}

/// A line of a trace whose content is this JSON.
fn line(content: &str) -> String {
    format!("{{\"protocol\":\"mcp\",\"operation\":\"x\",\"content\":{content}}}\n")
}

fn text(text: &str) -> String {
    line(&json!({ "text": text }).to_string())
}

#[test]
fn what_was_skipped_is_not_passed_off_as_clean() {
    let case = Case::secret();
    let bad = text("fine") + "no json\n" + &text("fine");
    let ran = judge(&case, "scan", &bad, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let last = ran.stdout.lines().last().unwrap();
    assert!(
        last.ends_with(": 1 not exploited; 1 bad line skipped"),
        "{last}"
    );
    assert_eq!(
        judge(&case, "scan", &bad, &["--allow-skipped"]).code,
        Some(0)
    );
    let report = json(&judge(&case, "scan", &bad, &["--format", "json"]).stdout);
    assert_eq!(report["summary"]["skipped"], 1);
    // What was found stands.
    let found = bad + &text("secret");
    assert_eq!(judge(&case, "scan", &found, &[]).code, Some(1));
    // A trace that was not read to its end is named in the last line, too.
    let ended = text("fine") + "{\"proofhouse_trace\": 9}\n";
    let ran = judge(&case, "scan", &ended, &["--allow-skipped"]);
    assert_eq!(ran.code, Some(3));
    let last = ran.stdout.lines().last().unwrap();
    assert!(
        last.ends_with("1 not exploited; 1 trace not read to the end"),
        "{last}"
    );
}

#[test]
fn messages_cannot_hide_behind_odd_json() {
    let case = Case::secret();
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    for content in [
        r#"{"text":"secret","x":"\ud83d"}"#,
        r#"{"text":"secret","x":1e400}"#,
        r#"{"text":"secret","text":"fine"}"#,
        &format!(r#"{{"text":"secret","x":{deep}}}"#),
    ] {
        let ran = judge(&case, "scan", line(content), &[]);
        assert_eq!(ran.code, Some(1), "{content}: {}", ran.stderr);
        assert!(ran.stderr.contains("(kept)"), "{content}: {}", ran.stderr);
        let harmless = content.replace("secret", "fine");
        assert_eq!(judge(&case, "scan", line(&harmless), &[]).code, Some(0));
    }
}

#[test]
fn one_odd_line_does_not_choose_the_format() {
    let case = Case::secret();
    let rpc = "{\"jsonrpc\":\"2.0\",\"method\":\"x/y\",\"params\":{\"text\":\"secret\"}}\n";
    for (first, rest, format) in [
        (
            "{\"protocol\":\"http\",\"operation\":\"listen\"}\n",
            rpc.repeat(3),
            "json-rpc",
        ),
        (
            "{\"level\":\"info\",\"msg\":\"up\",\"data\":{}}\n",
            text("secret").repeat(3),
            "trace",
        ),
    ] {
        let ran = judge(
            &case,
            "scan",
            first.to_owned() + &rest,
            &["--format", "json"],
        );
        let report = json(&ran.stdout);
        assert_eq!(report["traces"][0]["format"], format);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(!ran.stderr.contains("--from"), "{}", ran.stderr);
    }
    // Whoever makes the first lines look otherwise is told on.
    let flooded = text("fine").repeat(70) + &rpc.repeat(200);
    for command in ["scan", "explain-verdict"] {
        let ran = judge(&case, command, &flooded, &[]);
        assert_eq!(ran.code, Some(2), "{command}");
        assert!(
            ran.stderr
                .contains("most of it does not fit the format `trace`"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn an_error_beside_a_match_does_not_take_the_match_back() {
    let case = Case::new(&json!([
        {"target": "text", "pattern": {"contains": "secret"}},
        {"target": "text", "expression": {"cel": "message.text > 1"}},
    ]));
    let ran = judge(&case, "scan", text("secret"), &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("1 error"), "{}", ran.stdout);
    assert_eq!(judge(&case, "scan", text("fine"), &[]).code, Some(2));
}

#[test]
fn the_example_judges_calls_without_arguments() {
    let case = Case::secret();
    let call = r#"{"protocol":"mcp","operation":"tools/call","direction":"request","content":{"name":"now"}}"#;
    let trace = case.write("t.jsonl", call);
    let ran = run(&[
        "scan",
        trace.to_str().unwrap(),
        "--allow-unknown",
        "--rules",
        RULES,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_read_costs_only_itself() {
    let case = Case::secret();
    let traces = case.directory.path().join("traces");
    fs::create_dir(&traces).unwrap();
    fs::write(traces.join("a.jsonl"), text("secret")).unwrap();
    // Permissions do not stop everybody who runs tests; paths that are too long do.
    let half: PathBuf = vec!["b".repeat(200); 12].into_iter().collect();
    fs::create_dir_all(traces.join(&half)).unwrap();
    let other = case.directory.path().join("c");
    fs::create_dir_all(other.join(&half)).unwrap();
    fs::rename(&other, traces.join(&half).join("c")).unwrap();
    let ran = run(&[
        "scan",
        traces.to_str().unwrap(),
        "--allow-unknown",
        "--rules",
        &case.rules,
    ]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot read"), "{}", ran.stderr);
    assert!(ran.stdout.contains("2 traces, 1 message"), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("1 exploited, 1 not judged; 1 trace not read")
    );
}

#[test]
fn explaining_goes_by_the_same_rules() {
    let case = Case::secret();
    let noise: Vec<u8> = (0..4000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let ran = judge(&case, "explain-verdict", noise, &["--format", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let report = json(&ran.stdout);
    assert_eq!(report["complete"], false);
    assert!(report["skipped"].as_u64().unwrap() > 0);
    let bad = text("fine") + "no json\n";
    assert_eq!(judge(&case, "explain-verdict", &bad, &[]).code, Some(2));
    let allowed = judge(&case, "explain-verdict", &bad, &["--allow-skipped"]);
    assert_eq!(allowed.code, Some(0));
}

#[test]
fn nothing_invisible_leaves_the_machine_formats() {
    let case = Case::new(&json!([{"target": "text", "pattern": {"regex": "(?s)secret.*"}}]));
    let nasty = "secret\u{9b}31m\u{202e}\u{200b}\u{feff}\u{e0041}\u{7f}";
    for (command, format) in [
        ("scan", "json"),
        ("scan", "sarif"),
        ("explain-verdict", "json"),
    ] {
        let ran = judge(&case, command, text(nasty), &["--format", format]);
        let bad = |c: char| {
            (c.is_control() && c != '\n') || "\u{202e}\u{200b}\u{feff}\u{e0041}".contains(c)
        };
        assert!(!ran.stdout.contains(bad), "{}", ran.stdout);
        assert!(
            json(&ran.stdout).to_string().contains(nasty),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn rules_of_sarif_do_not_depend_on_what_was_found() {
    let case = Case::secret();
    let document = |words: &str| {
        json!({"oatf": "0.1", "attack": {
            "severity": "critical",
            "execution": {"mode": "mcp_server", "state": {}},
            "indicators": [{"target": "text", "description": "Reads it.", "pattern": {"contains": words}}],
        }})
        .to_string()
    };
    case.write("a.yaml", document("first"));
    case.write("b.yaml", document("second"));
    let directory = case.directory.path().to_str().unwrap();
    let scan = |words: &[&str]| {
        let lines: String = words.iter().map(|words| text(words)).collect();
        let trace = case.write("trace.jsonl", lines);
        let trace = trace.to_str().unwrap();
        let ran = run(&[
            "scan",
            trace,
            "--allow-unknown",
            "--rules",
            directory,
            "--format",
            "sarif",
        ]);
        json(&ran.stdout)["runs"][0].clone()
    };
    let rules = |run: &Value| -> Vec<String> {
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap().iter();
        rules
            .map(|rule| rule["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let both = scan(&["first second secret"]);
    let second = scan(&["fine", "second"]);
    let ids = rules(&both);
    assert!(ids[0].contains("a.yaml#"), "{ids:?}");
    assert_eq!(rules(&second), [ids[1].clone()]);
    assert_eq!(ids[2], "CASE-001-01");
    let rule = &both["tool"]["driver"]["rules"][0];
    assert_eq!(rule["properties"]["security-severity"], "9.5");
    assert_eq!(rule["fullDescription"]["text"], "Reads it.");
    // What was found on another line is the same as before; what was found twice is two.
    let print = |run: &Value, at: usize| run["results"][at]["partialFingerprints"].clone();
    assert_eq!(print(&both, 1), print(&second, 0));
    let twice = scan(&["second", "second"]);
    assert_eq!(print(&twice, 0), print(&second, 0));
    assert_ne!(print(&twice, 0), print(&twice, 1));
}

#[test]
fn people_are_pointed_at_what_they_may_have_overlooked() {
    let ran = run(&["scan", "--allow-unknown", "--rules", RULES, TRACE]);
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.stderr.contains("tip: put the traces before --rules"),
        "{}",
        ran.stderr
    );
    let ran = run(&["scan", TRACE]);
    assert!(!ran.stderr.contains("hint:"), "{}", ran.stderr);

    let case = Case::secret();
    let line = text("fine").replace("\"content\"", "\"sender\":1,\"content\"");
    let ran = judge(&case, "scan", line.repeat(2), &[]);
    assert_eq!(ran.code, Some(0));
    let told = "unknown fields were ignored (2)";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let ran = judge(&case, "scan", "noise\n", &[]);
    assert!(
        ran.stdout.contains("not judged: the trace has no messages"),
        "{}",
        ran.stdout
    );
}

#[cfg(target_os = "linux")]
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the system, which is small"
)]
fn what_was_found_before_an_interrupt_is_told() {
    use std::io::Write;
    use std::process::Stdio;
    use std::time::Duration;

    let case = Case::secret();
    let mut child = support::command(&["scan", "-", "--allow-unknown", "--rules", &case.rules])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(text("secret").repeat(100).as_bytes())
        .unwrap();
    stdin.flush().unwrap();
    // Until the signal is caught, it would just end the program.
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let status = fs::read_to_string(&status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & 0b10 != 0
    };
    for _ in 0..1000 {
        if catches() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    signal(child.id(), "-INT");
    std::thread::sleep(Duration::from_millis(500));
    drop(stdin);
    let ran = support::finish(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("1 exploited; 1 trace not read"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("interrupted"), "{}", ran.stderr);
}

#[test]
fn names_of_files_do_not_forge_lines() {
    let case = Case::secret();
    let trace = case.write("a\nproofhouse: all is well.jsonl", "bad\n");
    let trace = trace.to_str().unwrap();
    for command in ["scan", "explain-verdict"] {
        let ran = case.judge(command, std::path::Path::new(trace), &[]);
        assert!(ran.stderr.contains("all is well"), "{}", ran.stderr);
        let forged = |line: &str| line.starts_with("proofhouse: all is well");
        assert!(!ran.stderr.lines().any(forged), "{}", ran.stderr);
    }
    for args in [
        &["scan", TRACE, "--allow-unknown", "--rules", trace][..],
        &[
            "scan",
            "b\nproofhouse: all is well",
            "--allow-unknown",
            "--rules",
            RULES,
        ],
    ] {
        let forged = |line: &str| line.starts_with("proofhouse: all is well");
        let ran = run(args);
        assert!(!ran.stderr.lines().any(forged), "{args:?}: {}", ran.stderr);
    }
}
