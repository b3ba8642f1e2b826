//! `proofhouse scan` from outside: what it finds, what it says of bad input, and how it exits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, helpers included")]

use std::fs;
use std::io::Write;
use std::path::Path;

use proofhouse_test_support::workspace::vectors;
use serde_json::{Value, json};

use crate::support::{self, Case, Ran, json, run, run_with_input};

const TRACE: &str = "examples/traces/poisoned-tool.jsonl";
const RULES: &str = "examples/documents/poisoned-tool.yaml";

fn scan(case: &Case, trace: &Path, more: &[&str]) -> Ran {
    case.judge("scan", trace, more)
}

/// Scans for programs, with one worker and with four, which has to be the same.
fn report_of(case: &Case, trace: &Path, more: &[&str]) -> (Value, Ran) {
    let one = scan(
        case,
        trace,
        &[&["--format", "json", "--jobs", "1"], more].concat(),
    );
    let four = scan(
        case,
        trace,
        &[&["--format", "json", "--jobs", "4"], more].concat(),
    );
    assert_eq!(one.stdout, four.stdout);
    assert_eq!((one.code, &one.stderr), (four.code, &four.stderr));
    (json(&one.stdout), one)
}

fn entry(sequence: u64, text: &str) -> String {
    let entry =
        json!({"seq": sequence, "protocol": "mcp", "operation": "x", "content": {"text": text}});
    format!("{entry}\n")
}

/// The lines of the evidence for the first indicator.
fn lines(report: &Value) -> Vec<u64> {
    let evidence = &report["traces"][0]["documents"][0]["indicators"][0]["evidence"];
    let evidence = evidence.as_array().unwrap().iter();
    evidence
        .map(|found| found["line"].as_u64().unwrap())
        .collect()
}

#[test]
fn people_see_the_evidence_and_its_places() {
    let ran = run(&["scan", TRACE, "--allow-unknown", "--rules", RULES]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!("scan-human", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80));
    let documented = include_str!("../../../../docs/reference/traces.md");
    let (_, shown) = documented
        .split_once("$ proofhouse scan examples/traces/poisoned-tool.jsonl --rules examples/documents/poisoned-tool.yaml\n")
        .unwrap();
    assert_eq!(shown.split("```").next().unwrap(), ran.stdout);
}

#[test]
fn programs_see_everything() {
    let ran = run(&[
        "scan",
        TRACE,
        "--allow-unknown",
        "--rules",
        RULES,
        "--format",
        "json",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!("scan-json", ran.stdout);
}

#[test]
fn code_scanning_sees_the_line_of_the_trace_and_that_of_the_document() {
    let ran = run(&[
        "scan",
        TRACE,
        "--allow-unknown",
        "--rules",
        RULES,
        "--format",
        "sarif",
    ]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!(
        "scan-sarif",
        ran.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION")
    );
    check_sarif(&json(&ran.stdout));
}

/// What SARIF 2.1.0 asks for, as far as this output uses it.
fn check_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: std::collections::BTreeSet<_> = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), rules.len(), "ids of rules are unique");
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(result["message"]["text"].is_string());
        for place in [&result["locations"][0], &result["relatedLocations"][0]] {
            let place = &place["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.contains([' ', '<', '\\']), "{uri}");
            assert!(place["region"]["startLine"].as_u64().unwrap() > 0);
        }
    }
    for note in run["invocations"][0]["toolExecutionNotifications"]
        .as_array()
        .into_iter()
        .flatten()
    {
        assert!(note["message"]["text"].is_string() && note["descriptor"]["id"].is_string());
    }
}

#[test]
fn sarif_tells_what_could_not_be_read_and_keeps_rules_apart() {
    let case = Case::secret();
    let document = |id: &str| {
        json!({"oatf": "0.1", "attack": {"name": id,
        "execution": {"mode": "mcp_server", "state": {}},
        "indicators": [
            {"target": "text", "pattern": {"contains": "secret"}},
            {"target": "text", "expression": {"cel": "message.text > 1"}},
        ]}})
        .to_string()
    };
    case.write("a.yaml", document("a"));
    case.write("b.yaml", document("b"));
    let trace = case.write(
        "t.jsonl",
        format!("bad\n{}{}", entry(2, "secret"), entry(1, "secret")),
    );
    let rules = case.directory.path().to_str().unwrap();
    let ran = run(&[
        "scan",
        trace.to_str().unwrap(),
        "--allow-unknown",
        "--rules",
        rules,
        "--format",
        "sarif",
    ]);
    let log = json(&ran.stdout);
    check_sarif(&log);
    assert_eq!(
        log["runs"][0]["tool"]["driver"]["rules"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let notes = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        .as_array()
        .unwrap();
    let kinds: Vec<_> = notes
        .iter()
        .map(|note| note["descriptor"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["not_json", "out_of_order", "inconclusive", "inconclusive"]
    );
    assert_eq!(
        log["runs"][0]["invocations"][0]["executionSuccessful"],
        true
    );
}

#[test]
fn exit_codes_tell_the_verdict() {
    let quiet = json!([{"target": "text", "pattern": {"contains": "nothing"}}]);
    let failing = json!([{"target": "text", "expression": {"cel": "message.text > 1"}}]);
    let semantic = json!([{"target": "text", "semantic": {"intent": "harm"}}]);
    let matching = json!([{"target": "text", "pattern": {"contains": "secret"}}]);
    for (indicators, code, words) in [
        (quiet, 0, "1 not exploited"),
        (matching, 1, "1 exploited"),
        (failing, 2, "1 error"),
        (
            semantic,
            2,
            "1 indicator skipped: no semantic evaluator is configured",
        ),
    ] {
        let case = Case::new(&indicators);
        let trace = case.write("t.jsonl", entry(1, "a secret"));
        let ran = scan(&case, &trace, &[]);
        assert_eq!(ran.code, Some(code), "{indicators}: {}", ran.stdout);
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
    }
}

/// An indicator that asks for everything that a message can say of itself.
fn asking() -> Case {
    Case::new(
        &json!([{"protocol": "mcp", "surface": "tools/call", "direction": "request", "target": "arguments",
        "pattern": {"contains": "secret"}}]),
    )
}

#[test]
fn what_was_not_looked_at_is_not_clean() {
    let case = asking();
    let call = |protocol: &str, direction: Option<&str>| {
        let mut entry = json!({"seq": 1, "protocol": protocol, "operation": "tools/call",
            "content": {"name": "x", "arguments": {"text": "nothing"}}});
        if let Some(direction) = direction {
            entry["direction"] = direction.into();
        }
        format!("{entry}\n")
    };
    for (line, code, words) in [
        (call("mcp", Some("request")), 0, "1 not exploited"),
        (call("mcp", Some("response")), 0, "1 not exploited"),
        (
            call("mcp", None),
            2,
            "1 document not judged: 1 message that it asks about does not say the direction",
        ),
        (
            call("a2a", Some("request")),
            2,
            "1 document not judged: the trace has no mcp messages",
        ),
        (
            String::new(),
            2,
            "1 document not judged: the trace has no messages",
        ),
    ] {
        let trace = case.write("t.jsonl", line.clone());
        let ran = scan(&case, &trace, &[]);
        assert_eq!(ran.code, Some(code), "{line}: {}", ran.stdout);
        assert!(ran.stdout.contains(words), "{line}: {}", ran.stdout);
        let (report, _) = report_of(&case, &trace, &[]);
        let document = &report["traces"][0]["documents"][0];
        assert_eq!(document["not_judged"].is_null(), code == 0, "{document}");
        assert_eq!(document["result"], "not_exploited", "as the format has it");
    }
}

#[test]
fn spans_without_arguments_are_not_clean() {
    let case = asking();
    let mut spans = spans(&["send"]);
    let trace = case.write("spans.json", spans.to_string());
    assert_eq!(scan(&case, &trace, &[]).code, Some(0));
    let attributes = &mut spans["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"];
    attributes[2]["value"]["stringValue"] = "{\"text\": \"sec...".into();
    for _ in 0..2 {
        let trace = case.write("spans.json", spans.to_string());
        let ran = scan(&case, &trace, &[]);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        let told = "1 call without readable arguments, which were not judged";
        assert!(ran.stdout.contains(told), "{}", ran.stdout);
        // The same without them.
        let span = &mut spans["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        span["attributes"].as_array_mut().unwrap().truncate(2);
    }
}

#[test]
fn the_canaries_of_the_run_count() {
    let literal = "CANARY-KEY-93b4aa10";
    let case = Case::new(
        &json!([{"protocol": "mcp", "surface": "tools/call", "target": "arguments", "pattern": {"contains": literal}}]),
    );
    let call = json!({"seq": 1, "protocol": "mcp", "operation": "tools/call", "direction": "request",
        "content": {"name": "x", "arguments": {"text": "CANARY-KEY-0badcafe"}}});
    let header = json!({"proofhouse_trace": 1, "canaries": {literal: "CANARY-KEY-0badcafe"}});
    let trace = case.write("t.jsonl", format!("{call}\n"));
    assert_eq!(scan(&case, &trace, &[]).code, Some(0));
    let trace = case.write("t.jsonl", format!("{header}\n{call}\n"));
    assert_eq!(scan(&case, &trace, &[]).code, Some(1));
}

#[test]
fn a_partial_attack_is_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("r.yaml");
    fs::write(
        &rules,
        json!({"oatf": "0.1", "attack": {
        "execution": {"mode": "mcp_server", "state": {}},
        "correlation": {"logic": "all"},
        "indicators": [
            {"target": "text", "pattern": {"contains": "secret"}},
            {"target": "text", "pattern": {"contains": "nothing"}},
        ]}})
        .to_string(),
    )
    .unwrap();
    let ran = run_with_input(
        &[
            "scan",
            "-",
            "--allow-unknown",
            "--rules",
            rules.to_str().unwrap(),
        ],
        entry(1, "secret").as_bytes(),
    );
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout
            .starts_with("<stdin> (trace, 1 message)\n\npartial Untitled\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn bad_lines_are_told_and_never_cost_a_neighbour() {
    let case = Case::secret();
    let long = entry(9, &"x".repeat(5000));
    for (bad, kind, words) in [
        (&b"not json\n"[..], "not_json", "not JSON"),
        (b"\xff\xfe\n", "not_utf8", "not UTF-8"),
        (b"{\"seq\": 2}\n", "not_a_message", "`protocol` is missing"),
        (long.as_bytes(), "too_long", "more than the limit"),
    ] {
        let input = [
            entry(1, "secret").as_bytes(),
            bad,
            entry(3, "secret").as_bytes(),
        ]
        .concat();
        let trace = case.write("t.jsonl", input);
        let (report, ran) = report_of(&case, &trace, &["--max-line", "1K"]);
        assert_eq!(ran.code, Some(1), "{kind}");
        assert_eq!(lines(&report), [1, 3], "{kind}");
        assert_eq!(report["traces"][0]["read"]["problems"], json!({kind: 1}));
        assert_eq!(report["traces"][0]["problems"][0]["line"], 2);
        assert!(
            ran.stderr.contains(words) && ran.stderr.contains(":2: "),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("(skipped)"));
    }
}

#[test]
fn the_last_line_may_be_cut_off() {
    let case = Case::secret();
    let input = entry(1, "secret") + &entry(2, "secret");
    let trace = case.write("t.jsonl", &input[..input.len() - 10]);
    let (report, ran) = report_of(&case, &trace, &[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(lines(&report), [1]);
    assert_eq!(
        report["traces"][0]["read"]["problems"],
        json!({"truncated": 1})
    );
}

#[test]
fn numbers_out_of_order_are_a_warning() {
    let case = Case::secret();
    let trace = case.write("t.jsonl", entry(5, "secret") + &entry(3, "secret"));
    let (report, ran) = report_of(&case, &trace, &[]);
    assert_eq!(lines(&report), [1, 2]);
    assert!(
        ran.stderr
            .contains(":2: sequence number 3 comes after 5 (kept)"),
        "{}",
        ran.stderr
    );
}

/// What `attack --trace` writes, as far as the numbers go.
fn recording(numbers: std::ops::RangeInclusive<u64>) -> String {
    let header = "{\"proofhouse_trace\":1,\"tool\":\"test\"}\n".to_owned();
    header
        + &numbers
            .map(|number| entry(number, "calm"))
            .collect::<String>()
}

#[test]
fn two_recordings_in_one_file_are_never_clean() {
    let case = Case::secret();
    let one = case.write("one.jsonl", recording(1..=3));
    assert_eq!(scan(&case, &one, &[]).code, Some(0));
    let two = case.write("two.jsonl", recording(1..=3) + &recording(1..=2));
    let (report, ran) = report_of(&case, &two, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(":5: another recording begins here"),
        "{}",
        ran.stderr
    );
    let problems = &report["traces"][0]["read"]["problems"];
    assert_eq!(*problems, json!({"joined": 1}));
    assert_eq!(scan(&case, &two, &["--allow-skipped"]).code, Some(0));
}

#[test]
fn a_line_that_is_missing_in_the_middle_is_noticed() {
    let case = Case::secret();
    let whole = recording(1..=5);
    // Every line but the header and the last: what is cut at the end is not in the file.
    for gone in 1..5 {
        let kept = whole.lines().enumerate().filter(|(line, _)| *line != gone);
        let text: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        let trace = case.write("t.jsonl", text);
        let (report, ran) = report_of(&case, &trace, &[]);
        assert_eq!(ran.code, Some(2), "{gone}: {}", ran.stderr);
        assert!(ran.stderr.contains("1 missing"), "{gone}: {}", ran.stderr);
        let problems = &report["traces"][0]["read"]["problems"];
        assert_eq!(*problems, json!({"gap": 1}));
    }
}

#[test]
fn an_empty_trace_is_no_finding_and_no_silence() {
    let case = Case::secret();
    let trace = case.write("t.jsonl", "");
    let ran = scan(&case, &trace, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("no messages"), "{}", ran.stderr);
    assert_eq!(scan(&case, &trace, &["--allow-skipped"]).code, Some(0));
}

/// Spans as an exporter writes them, on one line and over many.
fn spans(tools: &[&str]) -> Value {
    let spans: Vec<Value> = tools
        .iter()
        .map(|tool| {
            json!({"name": format!("execute_tool {tool}"), "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": tool}},
                {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": "{}"}},
            ]})
        })
        .collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

#[test]
fn a_cut_otlp_file_is_never_clean_wherever_it_is_cut() {
    let case = Case::secret();
    let value = spans(&["weather", "search"]);
    for whole in [
        value.to_string(),
        serde_json::to_string_pretty(&value).unwrap(),
    ] {
        let trace = case.write("whole.json", &whole);
        assert_eq!(scan(&case, &trace, &["--from", "otlp"]).code, Some(0));
        // Each place would take long; these fall on every kind of token.
        for cut in (1..whole.len()).step_by(23).chain([whole.len() - 1]) {
            let trace = case.write("cut.json", &whole[..cut]);
            let ran = scan(&case, &trace, &["--from", "otlp"]);
            assert!(
                matches!(ran.code, Some(2 | 3)),
                "{:?} after {cut} bytes: {}",
                ran.code,
                ran.stderr
            );
            assert!(!ran.stderr.is_empty(), "{cut}");
        }
    }
}

#[test]
fn joined_recordings_of_which_one_is_cut_are_not_clean() {
    let case = Case::secret();
    let header = json!({"proofhouse_trace": 1, "tool": "proofhouse"});
    let call = |seq: u64| {
        json!({"seq": seq, "protocol": "mcp", "operation": "tools/call", "direction": "request",
            "content": {"name": "weather", "arguments": {}}})
    };
    let one = format!("{header}\n{}\n{}\n", call(1), call(2));
    // The first of them was cut off in the middle of a line, and the second follows at once.
    let cut = &one[..one.len() - 20];
    let joined = case.write("joined.jsonl", format!("{cut}{one}"));
    let ran = scan(&case, &joined, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("skipped"), "{}", ran.stderr);
}

#[test]
fn a_log_whose_beginning_is_missing_is_not_clean() {
    let case = Case::secret();
    let answer = json!({"jsonrpc": "2.0", "id": 4, "result": {"content": []}});
    let trace = case.write("tail.jsonl", format!("{answer}\n"));
    let ran = scan(&case, &trace, &["--from", "json-rpc"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let allowed = scan(&case, &trace, &["--from", "json-rpc", "--allow-skipped"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
}

#[test]
fn a_file_that_is_no_trace_is_not_passed_off_as_a_clean_one() {
    let case = Case::secret();
    let trace = case.write("t.txt", "dear diary\nnothing happened\n");
    let (report, ran) = report_of(&case, &trace, &[]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("no line could be read"),
        "{}",
        ran.stderr
    );
    assert_eq!(report["traces"][0]["complete"], false);
}

#[test]
fn a_damaged_archive_is_judged_as_far_as_it_goes() {
    let case = Case::secret();
    // Numbers keep it from being compressed to nothing.
    let input: String = (1..2000_u64)
        .map(|n| {
            entry(
                n,
                &format!("secret {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            )
        })
        .collect();
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(input.as_bytes()).unwrap();
    let zipped = zip.finish().unwrap();
    let whole = case.write("whole.jsonl.gz", &zipped);
    let (report, ran) = report_of(&case, &whole, &[]);
    assert_eq!(
        (ran.code, &report["summary"]["messages"]),
        (Some(1), &json!(1999))
    );

    let cut = case.write("cut.jsonl.gz", &zipped[..zipped.len() / 2]);
    let (report, ran) = report_of(&case, &cut, &[]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("cannot decompress"), "{}", ran.stderr);
    assert_eq!(report["traces"][0]["complete"], false);
    assert_eq!(report["summary"]["exploited"], 1);
    assert!(report["summary"]["messages"].as_u64().unwrap() > 100);
    let shown = scan(&case, &cut, &[]).stdout;
    assert!(
        shown.contains("not read to its end: cannot decompress"),
        "{shown}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_read_does_not_keep_the_rest_from_being_judged() {
    let case = Case::secret();
    let trace = case.write("t.jsonl", entry(1, "secret"));
    let ran = run(&[
        "scan",
        "/proc/self/mem",
        trace.to_str().unwrap(),
        "--allow-unknown",
        "--rules",
        &case.rules,
    ]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("/proc/self/mem: cannot read"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.contains(
            "2 traces, 1 message, 1 document with 1 indicator: 1 exploited, 1 not judged"
        ),
        "{}",
        ran.stdout
    );
}

#[test]
fn several_traces_are_several_runs() {
    let case = Case::secret();
    case.write("b.jsonl", entry(1, "secret"));
    case.write("a.jsonl", entry(1, "harmless"));
    case.write(
        "c.log",
        r#"{"jsonrpc":"2.0","method":"x/y","params":{"text":"secret"}}"#,
    );
    case.write("ignored.txt", entry(1, "secret"));
    let directory = case.directory.path().to_str().unwrap();
    let ran = run(&["scan", directory, "--allow-unknown", "--rules", &case.rules]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    insta::assert_snapshot!("scan-several", ran.stdout.replace(directory, "DIR"));
}

#[test]
fn all_lists_quiet_documents_too() {
    let case = Case::secret();
    let trace = case.write("t.jsonl", entry(1, "harmless"));
    let short = scan(&case, &trace, &[]).stdout;
    assert!(
        short.contains("1 document found nothing; --all lists it") && !short.contains("CASE-001"),
        "{short}"
    );
    let long = scan(&case, &trace, &["--all"]).stdout;
    assert!(
        long.contains("not_exploited  CASE-001") && long.contains("CASE-001-01"),
        "{long}"
    );
}

#[test]
fn other_formats_are_told_by_content_or_by_name() {
    let case = Case::secret();
    let log = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"text":"secret"}}"#;
    let trace = case.write("t.log", log);
    let (report, _) = report_of(&case, &trace, &[]);
    assert_eq!(report["traces"][0]["format"], "json-rpc");
    assert_eq!(lines(&report), [1]);
    // Under another name nothing of it can be read, and that is said.
    let ran = scan(&case, &trace, &["--from", "trace"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);

    let case = Case::new(
        &json!([{"target": "text", "actor": "default", "pattern": {"contains": "secret"}}]),
    );
    let trace = case.write("t.log", log);
    // Who sent it, and for which protocol, must be known: what cannot be judged is not clean.
    assert_eq!(scan(&case, &trace, &[]).code, Some(2));
    assert_eq!(scan(&case, &trace, &["--actor", "default"]).code, Some(1));
    assert_eq!(
        scan(&case, &trace, &["--actor", "default", "--protocol", "a2a"]).code,
        Some(2)
    );
}

#[test]
fn documents_that_cannot_be_used_are_shown_and_nothing_is_scanned() {
    let ran = run(&[
        "scan",
        TRACE,
        "--allow-unknown",
        "--rules",
        "examples/documents",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    for words in [
        "error[V-013]",
        "broken.yaml:21:32",
        "1 of 2 documents cannot be used",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("warning["), "{}", ran.stderr);

    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("simulates.yaml");
    fs::write(
        &rules,
        "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {tools: []}}\n",
    )
    .unwrap();
    let ran = run(&[
        "scan",
        TRACE,
        "--allow-unknown",
        "--rules",
        rules.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr
            .contains("simulates.yaml: the document has no indicators"),
        "{}",
        ran.stderr
    );
    let ran = run(&[
        "scan",
        TRACE,
        "--allow-unknown",
        "--rules",
        RULES,
        "--max-size",
        "10",
    ]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.stderr.contains("larger than 10 bytes"),
        "{}",
        ran.stderr
    );
}

#[test]
fn usage() {
    for args in [
        &["scan"][..],
        &["scan", TRACE],
        &["scan", "--allow-unknown", "--rules", RULES],
        &["scan", "no/such/trace", "--allow-unknown", "--rules", RULES],
        &["scan", TRACE, "--allow-unknown", "--rules", "no/such/rules"],
        &[
            "scan",
            "docs",
            "--allow-unknown",
            "--rules",
            RULES,
            "--jobs",
            "0",
        ],
        &[
            "scan",
            TRACE,
            "--allow-unknown",
            "--rules",
            RULES,
            "--from",
            "pcap",
        ],
        &[
            "scan",
            TRACE,
            "--allow-unknown",
            "--rules",
            RULES,
            "--format",
            "xml",
        ],
        &["scan", "-", "--allow-unknown", "--rules", "-"],
        &[
            "scan",
            "crates/cli/src",
            "--allow-unknown",
            "--rules",
            RULES,
        ],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(64), "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn traces_cannot_drive_the_terminal() {
    let case = Case::new(&json!([
        {"target": "text", "pattern": {"contains": "secret"}},
        {"target": "text", "pattern": {"regex": "(?s)secret.*"}},
        {"target": "text", "expression": {"cel": "message.text > 1"}},
    ]));
    let nasty = "secret\u{1b}[2J\u{7}\u{9b}31m\r\n\u{202e}gnirts\u{2028}";
    let trace = case.write(
        "\u{1b}[31m\u{202e}t.jsonl",
        entry(1, nasty) + "\u{1b}]0;x\u{7}\n",
    );
    let name = trace.to_str().unwrap();
    for command in ["scan", "explain-verdict"] {
        let ran = case.judge(command, std::path::Path::new(name), &[]);
        for text in [&ran.stdout, &ran.stderr] {
            let bad = ['\u{1b}', '\u{7}', '\u{9b}', '\r', '\u{202e}', '\u{2028}'];
            assert!(!text.contains(bad), "{command}: {text:?}");
        }
        assert!(ran.stdout.contains("secret\\u{1b}[2J"), "{}", ran.stdout);
    }
    // Programs get what was there, escaped as JSON has it.
    let (report, _) = report_of(&case, &trace, &[]);
    let texts =
        report["traces"][0]["documents"][0]["indicators"][1]["evidence"][0]["text"].as_str();
    assert!(texts.unwrap().contains("secret"));
}

#[test]
fn colour_is_for_terminals_only() {
    let mut forced = support::command(&["scan", TRACE, "--allow-unknown", "--rules", RULES]);
    forced.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    let styled = support::finish(forced.output().unwrap()).stdout;
    assert!(styled.contains("\u{1b}["));
    let mut refused = support::command(&["scan", TRACE, "--allow-unknown", "--rules", RULES]);
    refused.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE");
    assert!(
        !support::finish(refused.output().unwrap())
            .stdout
            .contains('\u{1b}')
    );
}

#[test]
fn a_flood_of_bad_lines_is_cut_short_and_counted() {
    let case = Case::secret();
    let trace = case.write("t.jsonl", "x\n".repeat(5000) + &entry(1, "secret"));
    let (report, ran) = report_of(&case, &trace, &[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(report["traces"][0]["read"]["skipped"], 5000);
    assert_eq!(
        report["traces"][0]["problems"].as_array().unwrap().len(),
        100
    );
    assert_eq!(lines(&report), [5001]);
    assert!(
        ran.stderr.contains("4990 more like these"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.lines().count() < 15);
}

#[test]
fn the_public_scenarios_can_be_scanned_with() {
    let Some(scenarios) = vectors("the_public_scenarios_can_be_scanned_with", "oatf-scenarios")
    else {
        return;
    };
    let ran = run(&[
        "scan",
        TRACE,
        "--allow-unknown",
        "--rules",
        scenarios.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("40 documents with 118 indicators"),
        "{}",
        ran.stdout
    );
}
