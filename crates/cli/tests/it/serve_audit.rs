//! `proofhouse audit`: the log of a server holds, shows what was changed, is exported, and is shortened without losing that.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::shop::shop;
use crate::support::{self, Ran};

const CLERK: &str = r#"
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Keeps watch.
prompt: You keep watch.
"#;

/// The directory of a server that was used and has ended.
fn used() -> tempfile::TempDir {
    let served = Served::start(&[("clerk.yaml", CLERK)], "", &[]);
    for _ in 0..3 {
        let task = served.begin("clerk", None);
        let path = format!("/v1/tasks/{task}/cancel");
        assert_eq!(served.ask("POST", &path, None).status, 204);
    }
    assert_eq!(served.sign_in("phk_wrong").status, 401);
    assert_eq!(served.sign_in(&served.key).status, 303);
    served.terminate();
    served.ended().1
}

fn audit(directory: &tempfile::TempDir, args: &[&str]) -> Ran {
    let store = directory.path().join("store.db").display().to_string();
    support::run(&[&["audit"], args, &["--store", &store]].concat())
}

fn sql(directory: &tempfile::TempDir, statement: &str) {
    let connection = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[test]
fn what_was_done_is_in_the_log_and_every_change_of_it_shows() {
    let directory = used();
    let exported = audit(&directory, &["export"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let lines: Vec<Value> = exported.stdout.lines().map(support::json).collect();
    let actions: Vec<&str> = lines
        .iter()
        .map(|line| line["entry"]["action"].as_str().unwrap())
        .collect();
    let begun = actions.iter().filter(|action| **action == "task.begin");
    assert_eq!(begun.count(), 3, "{actions:?}");
    assert_eq!(actions[0], "key.create");
    let sign_ins = lines
        .iter()
        .filter(|line| line["entry"]["action"] == "session.begin");
    let outcomes: Vec<&Value> = sign_ins.map(|line| &line["entry"]["outcome"]).collect();
    assert_eq!(outcomes, [&json!("refused"), &json!("done")]);
    assert!(!exported.stdout.contains("phk_"), "{}", exported.stdout);
    let holds = audit(&directory, &["verify", "--format", "json"]);
    assert_eq!(holds.code, Some(0), "{}", holds.stderr);
    let report = support::json(&holds.stdout);
    assert_eq!(report["report"]["entries"], lines.len());
    // As whoever has the export could check it: with nothing but the lines.
    for line in &lines {
        assert_eq!(
            serde_json::from_str::<Value>(line["text"].as_str().unwrap()).unwrap(),
            line["entry"]
        );
    }
    for (change, undo, fault) in [
        (
            "UPDATE audit SET entry = replace(entry, 'task.begin', 'task.other') WHERE seq = 2",
            "UPDATE audit SET entry = replace(entry, 'task.other', 'task.begin') WHERE seq = 2",
            "entry 2 was changed",
        ),
        (
            "UPDATE audit SET at = at + 1 WHERE seq = 4",
            "UPDATE audit SET at = at - 1 WHERE seq = 4",
            "entry 4 was changed",
        ),
        (
            "UPDATE audit SET namespace = coalesce(namespace, '') || 'x' WHERE seq = 2",
            "UPDATE audit SET namespace = substr(namespace, 1, length(namespace) - 1) WHERE seq = 2",
            "entry 2 was changed",
        ),
        (
            "UPDATE audit SET seq = 999 WHERE seq = 3",
            "UPDATE audit SET seq = 3 WHERE seq = 999",
            "entry 3 is missing",
        ),
        (
            "UPDATE audit_head SET seq = seq + 1",
            "UPDATE audit_head SET seq = seq - 1",
            "the log ends with entry",
        ),
    ] {
        sql(&directory, change);
        let found = audit(&directory, &["verify"]);
        assert_eq!(found.code, Some(1), "{change}: {}", found.stderr);
        assert!(found.stderr.contains(fault), "{change}: {}", found.stderr);
        sql(&directory, undo);
        assert_eq!(audit(&directory, &["verify"]).code, Some(0), "{undo}");
    }
}

#[test]
fn a_log_that_was_cut_or_rewritten_does_not_match_a_checkpoint_kept_elsewhere() {
    let directory = used();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (key, kept) = (path("audit.key"), path("checkpoint.json"));
    let made = audit(&directory, &["checkpoint", "--key", &key]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    std::fs::write(&kept, &made.stdout).unwrap();
    let public = support::json(&made.stdout)["statement"]
        .as_str()
        .unwrap()
        .to_owned();
    let public = support::json(&public)["key"].as_str().unwrap().to_owned();
    let verify = ["verify", "--checkpoint", &kept, "--trusted-key", &public];
    assert_eq!(audit(&directory, &verify).code, Some(0));
    // Whoever removes the end, with the head, leaves a chain that holds in itself.
    sql(
        &directory,
        "DELETE FROM audit WHERE seq > 3; \
         UPDATE audit_head SET seq = 3, hash = (SELECT hash FROM audit WHERE seq = 3)",
    );
    assert_eq!(audit(&directory, &["verify"]).code, Some(0));
    let cut = audit(&directory, &verify);
    assert_eq!(cut.code, Some(1), "{}", cut.stderr);
    let other = [
        "verify",
        "--checkpoint",
        &kept,
        "--trusted-key",
        "ed25519:00",
    ];
    let other = audit(&directory, &other);
    assert_eq!(other.code, Some(1), "{}", other.stderr);
    assert!(other.stderr.contains("another key"), "{}", other.stderr);
}

#[test]
fn old_entries_make_way_for_a_signed_checkpoint() {
    let directory = used();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let key = path("audit.key");
    let before = audit(&directory, &["export"]).stdout.lines().count();
    let none = audit(&directory, &["prune", "--older-than", "1h", "--key", &key]);
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    assert!(none.stderr.contains("removed 0"), "{}", none.stderr);
    let all = audit(&directory, &["prune", "--older-than", "1ms", "--key", &key]);
    assert!(
        all.stderr.contains(&format!("removed {before}")),
        "{}",
        all.stderr
    );
    // What is left is what says so.
    let left = audit(&directory, &["export"]).stdout;
    assert_eq!(left.lines().count(), 1, "{left}");
    assert_eq!(support::json(&left)["entry"]["action"], "audit.prune");
    let holds = audit(&directory, &["verify", "--format", "json"]);
    assert_eq!(holds.code, Some(0), "{}", holds.stderr);
    assert_eq!(
        support::json(&holds.stdout)["report"]["checkpoint"][0],
        before
    );
    // A checkpoint that somebody else puts in its place does not count.
    sql(
        &directory,
        "UPDATE audit_checkpoints SET statement = replace(statement, '\"at\":', '\"at\":1')",
    );
    let forged = audit(&directory, &["verify"]);
    assert_eq!(forged.code, Some(1), "{}", forged.stderr);
    assert!(forged.stderr.contains("signature"), "{}", forged.stderr);
}

#[test]
fn entries_are_exported_as_ocsf() {
    let directory = used();
    let exported = audit(&directory, &["export", "--format", "ocsf"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let events: Vec<Value> = exported.stdout.lines().map(support::json).collect();
    let of = |class: i64| {
        events
            .iter()
            .filter(move |event| event["class_uid"] == class)
    };
    assert_eq!(of(3002).count(), 2);
    assert_eq!(of(6003).count(), events.len() - 2);
    for event in &events {
        for needed in [
            "activity_id",
            "category_uid",
            "class_uid",
            "type_uid",
            "time",
            "severity_id",
            "metadata",
            "actor",
            "api",
            "src_endpoint",
            "status_id",
        ] {
            assert!(!event[needed].is_null(), "{needed}: {event}");
        }
    }
}

/// A copy of the database that is made while a task is under way is whole: its log holds, and a server on it goes on.
#[test]
fn a_backup_of_a_server_at_work_goes_on() {
    let manifests = shop("''");
    let served = Served::start(&[("shop.yaml", &manifests)], "", &[]);
    let approver = served.new_key(&["--role", "approver"]);
    let task = served.begin("clerk", Some("Refund money, amount: 3"));
    let shown = format!("/v1/tasks/{task}");
    until("the question", || {
        (served.get(&shown)["state"] == "waiting").then_some(())
    });
    let restored = tempfile::tempdir().unwrap();
    let copy = restored.path().join("store.db");
    let database = rusqlite::Connection::open(served.path("store.db")).unwrap();
    database
        .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    drop(database);
    let key = served.key.clone();
    // What comes later is lost with the machine.
    served.begin("clerk", None);
    served.signal("-KILL");
    served.ended();
    let holds = audit(&restored, &["verify"]);
    assert_eq!(holds.code, Some(0), "{}", holds.stderr);
    std::fs::create_dir(restored.path().join("manifests")).unwrap();
    std::fs::write(restored.path().join("manifests/shop.yaml"), &manifests).unwrap();
    let mut served = Served::start_in(restored, &["--lease", "1s"]);
    served.key = key;
    let path = format!("{shown}/reviews/1");
    let answer = json!({"approve": true});
    let reply = served.ask_as(&approver, "POST", &path, Some(&answer));
    assert_eq!(reply.status, 204, "{reply:?}");
    until("the refund", || {
        let turns = served.get(&format!("{shown}/turns")).to_string();
        turns.contains(r#""paid":3"#).then_some(())
    });
    served.terminate();
    let (_, restored) = served.ended();
    let holds = audit(&restored, &["verify"]);
    assert_eq!(holds.code, Some(0), "{}", holds.stderr);
}
