//! Campaigns in a store as commands: planned, joined, read, cancelled; and the kill test of `scripts/campaign-kill`, a short one.

use std::path::Path;
use std::process::{Command, Output};

use proofhouse_test_support::workspace;
use serde_json::Value;

fn proofhouse(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("PROOFHOUSE_STORE")
        .output()
        .unwrap()
}

/// What a command prints, once it has ended with this code.
fn printed(directory: &Path, arguments: &[&str], code: i32) -> String {
    let done = proofhouse(directory, arguments);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{arguments:?}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(directory, arguments, 0)).unwrap()
}

#[test]
fn traces_that_are_lost_are_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("file"), "").unwrap();
    let campaign = ["--name", "n", "--store", "store.db", "--traces", "file"];
    let run = ["run", "--subject", "sim:careful", "--id", "*-001"];
    let done = proofhouse(here, &[&run[..], &["--no-config"], &campaign[..]].concat());
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("some traces could not be written"), "{said}");
    assert!(said.contains("its trace is lost"), "{said}");
}

#[test]
fn a_report_without_a_trace_that_was_kept_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let place = format!("file://{}/kept", here.display());
    let campaign = ["--name", "n", "--store", "store.db", "--traces", &place];
    let run = ["run", "--subject", "sim:careful", "--id", "*-001"];
    printed(
        here,
        &[&run[..], &["--no-config"], &campaign[..]].concat(),
        0,
    );
    let report = ["campaigns", "report", "n", "--store", "store.db", "--out"];
    printed(here, &[&report[..], &["whole"]].concat(), 0);
    let mut traces = std::fs::read_dir(here.join("whole/traces")).unwrap();
    assert!(traces.next().is_some(), "the report has the traces");
    let mut kept = std::fs::read_dir(here.join("kept")).unwrap();
    let folder = kept.next().unwrap().unwrap().path();
    std::fs::remove_dir_all(folder).unwrap();
    let done = proofhouse(here, &[&report[..], &["less"]].concat());
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("it is not there"), "{said}");
}

#[test]
fn a_campaign_is_planned_worked_off_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let store = ["--store", "store.db"];
    let run = [
        "run",
        "--subject",
        "sim:careful",
        "--id",
        "*-001",
        "--no-config",
        "--name",
        "n",
        "--store",
        "store.db",
    ];
    let planned = printed(here, &[&run[..], &["--plan-only"]].concat(), 0);
    assert_eq!(planned, "n@1\n");
    let shown = json(
        here,
        &[&["campaigns", "show", "n", "--format", "json"], &store[..]].concat(),
    );
    assert_eq!(
        (&shown["state"], &shown["runs"]["done"]),
        (&"running".into(), &0.into())
    );
    printed(here, &[&["worker", "--name", "n"], &store[..]].concat(), 0);
    // One that is finished needs nothing more.
    printed(
        here,
        &[&["worker", "--name", "n@1"], &store[..]].concat(),
        0,
    );
    let shown = json(
        here,
        &[&["campaigns", "show", "n", "--format", "json"], &store[..]].concat(),
    );
    assert_eq!(shown["state"], "finished");
    assert_eq!(shown["runs"]["done"], shown["total"]);
    let report = json(
        here,
        &[
            &["campaigns", "report", "n", "--format", "json"],
            &store[..],
        ]
        .concat(),
    );
    assert_eq!(report["complete"], true);
    assert!(!report["runs"].as_array().unwrap().is_empty());
    // The next of the name is planned and worked off by one command, which reports and judges as always.
    printed(here, &run, 0);
    let trend = json(
        here,
        &[&["campaigns", "trend", "n", "--format", "json"], &store[..]].concat(),
    );
    let campaigns: Vec<&str> = trend["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|point| point["category"].is_null())
        .map(|point| point["campaign"].as_str().unwrap())
        .collect();
    assert_eq!(campaigns, ["n@1", "n@2"]);
    printed(
        here,
        &[&["campaigns", "compare", "n@2", "n@1"], &store[..]].concat(),
        0,
    );
    // A cancelled one is no success for who would work on it.
    printed(here, &[&run[..], &["--plan-only"]].concat(), 0);
    printed(
        here,
        &[&["campaigns", "cancel", "n"], &store[..]].concat(),
        0,
    );
    printed(here, &[&["worker", "--name", "n"], &store[..]].concat(), 3);
    let listed = printed(here, &[&["campaigns", "list"], &store[..]].concat(), 0);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    printed(
        here,
        &[&["campaigns", "prune", "--older-than", "0s"], &store[..]].concat(),
        0,
    );
    printed(
        here,
        &[&["campaigns", "show", "n"], &store[..]].concat(),
        64,
    );
}

/// The arguments of a small campaign in a store.
fn small<'a>(subject: &'a str, id: &'a str, name: &'a str) -> Vec<&'a str> {
    let run = ["run", "--no-config", "--subject", subject, "--id", id];
    let place = ["--name", name, "--store", "store.db"];
    [&run[..], &place[..]].concat()
}

#[test]
fn the_directory_for_results_is_made_before_the_campaign() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("file"), "").unwrap();
    let run = small("sim:careful", "*-001", "n");
    for (out, code) in [("file", 64), ("file/inside", 3)] {
        let done = proofhouse(here, &[&run[..], &["--out", out]].concat());
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{said}");
        assert!(said.contains(&format!("--out: {out}")), "{said}");
        assert!(!here.join("store.db").exists(), "nothing was planned");
    }
    printed(here, &[&run[..], &["--out", "new/place"]].concat(), 0);
    assert!(here.join("new/place/result.json").exists());
    assert!(here.join("new/place/report.html").exists());
    // The same command once more takes the same place, as an interrupted one does that goes on.
    printed(here, &[&run[..], &["--out", "new/place"]].concat(), 0);
}

#[test]
fn reports_without_a_directory_go_where_results_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let run = small("sim:careful", "*-001", "n");
    printed(here, &run, 0);
    assert!(!here.join(".proofhouse").exists(), "the store has it all");
    let done = proofhouse(here, &[&run[..], &["--report", "junit"]].concat());
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("Report: "), "{said}");
    let kept = here.join(".proofhouse/results/latest");
    assert!(kept.join("junit.xml").exists() && kept.join("result.json").exists());
}

#[test]
fn a_campaign_in_a_store_is_not_resumed_but_worked_on() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    for place in [&["--name", "n"][..], &["--store", "store.db"]] {
        let resumed = [&["run", "--no-config", "--resume"][..], place].concat();
        let refused = proofhouse(here, &resumed);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(64), "{said}");
        assert!(said.contains("proofhouse worker --store"), "{said}");
    }
    let run = small("sim:careful", "*-001", "n");
    printed(here, &run, 0);
    printed(here, &[&run[..], &["--plan-only"]].concat(), 0);
    let compared = |newer: &str, older: &str| {
        let compare = ["campaigns", "compare", newer, older, "--store", "store.db"];
        let report = printed(here, &[&compare[..], &["--format", "markdown"]].concat(), 2);
        assert!(!report.contains("--resume"), "{report}");
        report
    };
    let worker = "n@2 is running: `proofhouse worker --store … --name n@2` finishes it";
    let said = compared("n@2", "n@1");
    assert!(said.contains("compared: this campaign stopped"), "{said}");
    assert!(said.contains(worker), "{said}");
    let said = compared("n@1", "n@2");
    assert!(said.contains("compared: the baseline stopped"), "{said}");
    assert!(said.contains(worker), "{said}");
    printed(
        here,
        &["campaigns", "cancel", "n@2", "--store", "store.db"],
        0,
    );
    let said = compared("n@1", "n@2");
    assert!(said.contains("n@2 is cancelled: run it again"), "{said}");
}

#[test]
fn campaigns_that_share_nothing_are_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    printed(here, &small("sim:careful", "*-001", "one"), 0);
    printed(here, &small("sim:gullible", "PROOF-001", "other"), 1);
    let store = ["--store", "store.db"];
    let compare = ["campaigns", "compare", "other", "one"];
    let report = printed(here, &[&compare[..], &store[..]].concat(), 2);
    let words: Vec<&str> = report.split_whitespace().collect();
    let said = words.join(" ");
    assert!(said.contains("share no attack and subject"), "{said}");
    let compare = ["campaigns", "compare", "one", "one"];
    let report = printed(here, &[&compare[..], &store[..]].concat(), 0);
    assert!(!report.contains("Nothing is compared"), "{report}");
}

#[test]
fn workers_on_kubernetes_are_told_of_the_models_that_judge_and_write() {
    let directory = tempfile::tempdir().unwrap();
    let given = [
        "--semantic=judge",
        "--semantic-url=http://127.0.0.1:9/v1",
        "--semantic-model=small",
        "--semantic-timeout=7",
        "--generate-url=http://127.0.0.1:9/v1",
        "--generate-model=large",
    ];
    let run = [
        "run",
        "--no-config",
        "--on=kubernetes",
        "--name=n",
        "--image=shop-agent:1",
        "--subject=sim:careful",
        "--dry-run",
        "--format=json",
    ];
    let job = json(directory.path(), &[&run[..], &given[..]].concat());
    let worker = &job["spec"]["template"]["spec"]["containers"][0];
    let command = worker["command"].as_array().unwrap();
    let told = &command[command.len() - given.len()..];
    assert_eq!(told, given);
    // Without them, a worker has no more than its own arguments.
    let job = json(directory.path(), &run);
    let worker = &job["spec"]["template"]["spec"]["containers"][0];
    let own = worker["command"].as_array().unwrap();
    assert_eq!(own.len() + given.len(), command.len());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    for arguments in [
        &["run", "--no-config", "--store", "store.db"][..],
        &["run", "--no-config", "--name", "n@3"],
        &["run", "--no-config", "--name", "../x"],
        &["run", "--no-config", "--plan-only"],
        &[
            "run",
            "--no-config",
            "--plan-only",
            "--name",
            "n",
            "--traces",
            "s3://id:key@bucket",
        ],
        &["run", "--no-config", "--name", "n", "--max-tokens", "0"],
        &["worker", "--name", "n", "--store", "nowhere.db"],
    ] {
        printed(here, arguments, 64);
    }
    let secret = [
        "run",
        "--no-config",
        "--name",
        "n",
        "--store",
        "store.db",
        "--a2a-url",
        "http://127.0.0.1:9/",
        "--header",
        "X-Key: hunter2",
        "--no-preflight",
    ];
    let done = proofhouse(here, &secret);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(64), "{said}");
    assert!(
        said.contains("would be stored") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn a_worker_asks_the_models_of_the_plan_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let campaign = ["--name", "judged", "--store", "store.db"];
    let judge = |model: &'static str| {
        let url = "http://127.0.0.1:9/v1";
        [
            "--semantic",
            "judge",
            "--semantic-url",
            url,
            "--semantic-model",
            model,
        ]
    };
    let plan = ["run", "--no-config", "--plan-only", "--id", "*-001"];
    let plan = [&plan[..], &["--subject", "sim:careful"], &campaign[..]].concat();
    printed(here, &[&plan[..], &judge("first")[..]].concat(), 0);
    let worker = [&["worker"][..], &campaign[..]].concat();
    let other = [&worker[..], &judge("second")[..]].concat();
    let refused = proofhouse(here, &other);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{said}");
    assert!(said.contains("first") && said.contains("second"), "{said}");
    // Without flags it takes those of the plan.
    printed(here, &worker, 0);
    // A name that was mistyped is told with the one that may be meant.
    let missing = ["campaigns", "show", "jugded", "--store", "store.db"];
    let missing = proofhouse(here, &missing);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("did you mean `judged`?"), "{said}");
}

#[test]
fn killed_workers_and_a_restarted_database_change_no_count() {
    let done = Command::new(workspace::root().join("scripts/campaign-kill"))
        .args(["--runs", "120", "--kills", "4", "--restarts", "1"])
        .args(["--lease", "3s", "--filter", "*-00*"])
        .env("PROOFHOUSE_BIN", env!("CARGO_BIN_EXE_proofhouse"))
        .output();
    let done = match done {
        Ok(done) if done.status.code() == Some(3) => {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return workspace::skipped("campaign-kill", &said);
        }
        Ok(done) => done,
        Err(error) => return workspace::skipped("campaign-kill", &error.to_string()),
    };
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("none twice, none missing"));
}
