//! What a server keeps for how long: flags and the operator's file say it, and the log says what was removed.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;

use proofhouse_test_support::wait::until_true;

use crate::support::served::Served;

const CLERK: &str = r"
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Answers.
prompt: You answer.
";

/// Everything in the store was last active two days ago.
fn age(directory: &Path) {
    let store = rusqlite::Connection::open(directory.join("store.db")).unwrap();
    let sql = "UPDATE tasks SET last_activity = last_activity - 172800000";
    assert_eq!(store.execute(sql, []).unwrap(), 1);
}

/// Serves the same again, with these flags and this operator's file.
fn again(served: Served, operator: &str, more: &[&str]) -> Served {
    let key = served.key.clone();
    served.terminate();
    let (code, directory) = served.ended();
    assert_eq!(code, Some(0));
    std::fs::write(directory.path().join("operator.yaml"), operator).unwrap();
    let more = [&["--log", "info"], more].concat();
    let mut served = Served::start_in(directory, &more);
    served.key = key;
    served
}

#[test]
fn what_is_old_ends_as_the_flags_and_the_file_say() {
    let served = Served::start(&[("clerk.yaml", CLERK)], "", &[]);
    let task = served.begin("clerk", Some("Hello!"));
    let path = format!("/v1/tasks/{task}");
    until_true("task that has answered", || {
        let turns = served.get(&format!("{path}/turns"));
        turns["turns"].as_array().unwrap().len() >= 2 && served.get(&path)["state"] == "idle"
    });
    age(served.directory.path());

    // A flag: the task ends, and stays.
    let flags = ["--end-idle-tasks", "1d", "--keep-tasks", "forever"];
    let served = again(served, "", &flags);
    until_true("task that has ended", || {
        served.get(&path)["state"] == "ended"
    });
    until_true("a line about it", || served.log().contains("finished=1"));

    // The file: what has ended is removed.
    let served = again(served, "retention: {tasks: 1d}\n", &[]);
    until_true("task that is gone", || {
        served.ask("GET", &path, None).status == 404
    });
    until_true("a line about it", || served.log().contains("tasks=1"));
}
