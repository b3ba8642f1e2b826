//! Manifests in the commands: checked in every format, explained, and listed as functions.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::fs;

use crate::support::{json, run, run_with_input};

const BROKEN: &str = "\
# yaml-language-server: $schema=./tool.schema.json
kind: commonagents.info/v1beta2/tool
namespace: demo
name: broken
description: Has a mistake of each kind.
settings: {properties: {api_key: {format: password}}}
actions:
  - name: fetch
    description: Fetches.
    execute:
      stateless_http:
        method: get
        url: 'https://api.example.com/{parameters.citty}'
        headers: {Authorization: 'Bearer {settings.api_kee}'}
---
kind: commonagents.info/v1beta2/bundledescription
name: kept-for-later
---
kind: commonagents.info/v1beta2/tol
name: misspelled
";

#[test]
fn manifests_are_checked_in_every_format() {
    for format in ["human", "json", "github", "sarif"] {
        let ran = run_with_input(&["validate", "-", "--format", format], BROKEN.as_bytes());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
        let shown = ran.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(format!("validate-tool-{format}"), shown);
    }
}

#[test]
fn directories_may_hold_both_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("attack.yaml", &run(&["new"]).stdout);
    write("tool.yaml", BROKEN);
    write(
        "attack-that-speaks-of-kinds.yaml",
        "oatf: '0.1'\nattack:\n  kind: commonagents.info/v1/tool\n",
    );
    write(
        "flow.yaml",
        "{\"kind\": \"commonagents.info/v1/bundledescription\", \"name\": \"a\"}",
    );
    write(
        "unfinished.yaml",
        "kind: commonagents.info/v1/tool\nname: [\n",
    );
    let path = directory.path().to_str().unwrap();
    let report = json(&run(&["validate", path, "--format", "json"]).stdout);
    let codes: Vec<(String, Vec<&str>)> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let name = file["path"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned();
            let findings = file["diagnostics"].as_array().unwrap().iter();
            (
                name,
                findings
                    .map(|finding| finding["code"].as_str().unwrap())
                    .collect(),
            )
        })
        .collect();
    let of = |name: &str| &codes.iter().find(|(known, _)| known == name).unwrap().1;
    assert!(of("attack-that-speaks-of-kinds.yaml").contains(&"PH-009"));
    assert_eq!(of("attack.yaml").len(), 0);
    assert_eq!(of("flow.yaml").len(), 0);
    assert_eq!(*of("tool.yaml"), ["TM-008", "TM-012", "TM-017", "TM-002"]);
    assert!(of("unfinished.yaml").contains(&"TM-001"));
}

#[test]
fn the_guide_shows_the_real_output() {
    let page = include_str!("../../../../docs/reference/tools.md");
    let console = page.split("```console\n").nth(1).unwrap();
    let console = console.split("```").next().unwrap();
    for shown in console.split("$ proofhouse ").skip(1) {
        let (line, output) = shown.split_once('\n').unwrap();
        let args: Vec<&str> = line.split(' ').collect();
        assert_eq!(run(&args).stdout, output, "{line}");
    }
}

#[test]
fn fmt_leaves_manifests_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tool.yaml");
    fs::write(&path, BROKEN).unwrap();
    let path = path.to_str().unwrap();
    for args in [&["fmt", path][..], &["fmt", "--check", path]] {
        let ran = run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.stderr.contains("left alone"), "{}", ran.stderr);
    }
    let after = fs::metadata(path).unwrap().len();
    assert_eq!(after, u64::try_from(BROKEN.len()).unwrap());
    let ran = run_with_input(&["fmt", "-"], BROKEN.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), BROKEN));
}

#[test]
fn examples_are_valid() {
    let ran = run(&["validate", "examples/tools", "--deny-warnings"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

#[test]
fn every_code_is_explained() {
    let all = run(&["explain"]).stdout;
    let manifests = proofhouse_manifest::CODES.iter();
    for (code, text) in manifests.chain(proofhouse_tools::operator::CODES) {
        assert!(all.lines().any(|line| line.starts_with(code)), "{code}");
        let one = run(&["explain", &code.to_lowercase()]);
        assert!(
            one.stdout.starts_with(code) && one.stdout.contains(text),
            "{}",
            one.stdout
        );
    }
    let warning = json(&run(&["explain", "TM-002", "--format", "json"]).stdout);
    assert_eq!(warning["kind"], "warning");
    assert!(
        run(&["explain", "TM-0007"])
            .stderr
            .contains("did you mean TM-007?")
    );
}

#[test]
fn functions_are_listed_in_every_format() {
    let manifests = ["examples/tools/clock.yaml", "examples/tools/sums.yaml"];
    for format in ["human", "json", "openai", "mcp"] {
        let args = [&["tool", "list"][..], &manifests, &["--format", format]].concat();
        let ran = run(&args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{format}");
        insta::assert_snapshot!(format!("tool-list-{format}"), ran.stdout);
    }
}

#[test]
fn names_are_unique_across_manifests() {
    let directory = tempfile::tempdir().unwrap();
    let clock = include_str!("../../../../examples/tools/clock.yaml");
    for name in ["a.yaml", "b.yaml"] {
        fs::write(directory.path().join(name), clock).unwrap();
    }
    let path = directory.path().to_str().unwrap();
    let listed = json(&run(&["tool", "list", path, "--format", "mcp"]).stdout);
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["clock_greet", "clock_now", "clock_greet_2", "clock_now_2"]
    );
}

#[test]
fn a_backend_that_cannot_be_asked_costs_its_own_functions_only() {
    let ran = run(&[
        "tool",
        "list",
        "examples/tools/clock.yaml",
        "examples/tools/notes.yaml",
    ]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stdout.contains("clock_greet"), "{}", ran.stdout);
    assert!(ran.stderr.contains("notes: "), "{}", ran.stderr);
}

#[test]
fn a_file_without_tools_lists_nothing() {
    let ran = run_with_input(
        &["tool", "list", "-"],
        b"kind: commonagents.info/v1/bundledescription\nname: a\n",
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("no tool manifest"), "{}", ran.stderr);
    let ran = run(&["tool", "list", "examples/documents/poisoned-tool.yaml"]);
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.stderr.contains("is a threat document"),
        "{}",
        ran.stderr
    );
}
