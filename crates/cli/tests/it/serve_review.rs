//! `proofhouse serve` and what an operator looks for in it: who approved what, and what the manifests let in.
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

const OPEN: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: open
description: Anybody can send it events.
events:
  - name: said
    message: "{event.payload.text}"
    receive: {webhook: {filter: "true"}}
"#;

const ASKS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: asks
description: Asks for its events.
events:
  - name: item
    message: "{event.payload.title}"
    receive: {poll: {method: GET, url: "http://127.0.0.1:9/items", interval: 1h, detect: response.items, key: item.id}}
"#;

#[test]
fn who_approved_and_why_is_told_later() {
    let served = Served::start(&[("shop.yaml", &shop("'ann@example.com'"))], "", &[]);
    let ann = [
        "--name",
        "ann",
        "--role",
        "approver",
        "--user",
        "ann@example.com",
    ];
    let second = &served.new_key(&ann);
    for (approve, paid) in [(true, 1), (false, 0)] {
        let task = served.begin("clerk", Some("Refund money, amount: 3"));
        let path = format!("/v1/tasks/{task}");
        until("question", || {
            (served.get(&path)["state"] == "waiting").then_some(())
        });
        assert_eq!(served.get(&path)["answers"], json!([]));
        let answer = json!({"approve": approve, "reason": "because"});
        let reply = served.ask_as(second, "POST", &format!("{path}/reviews/1"), Some(&answer));
        assert_eq!(reply.status, 204, "{reply:?}");
        let shown = until("end", || {
            Some(served.get(&path)).filter(|shown| shown["state"] == "idle")
        });
        let [said] = shown["answers"].as_array().unwrap().as_slice() else {
            panic!("{shown}");
        };
        assert_eq!(
            (&said["review"], &said["approve"]),
            (&json!(1), &json!(approve))
        );
        assert_eq!(said["reason"], "because");
        assert_eq!(said["person"], "ann@example.com");
        let listed = served.keys(&["list"]);
        let id = said["by"].as_str().unwrap();
        let line = listed.lines().find(|line| line.contains(id));
        assert!(
            line.is_some_and(|line| line.contains("ann")),
            "{id}: {listed}"
        );
        let turns = served.get(&format!("{path}/turns")).to_string();
        assert_eq!(turns.matches(r#""paid":3"#).count(), paid, "{turns}");
    }
}

/// The codes and files of all warnings.
fn warnings(served: &Served) -> Vec<(String, String)> {
    let files = served.get("/v1/manifests");
    let files = files["files"].as_array().unwrap().clone();
    let each = files.iter().flat_map(|file| {
        let path = file["path"].as_str().unwrap().to_owned();
        let problems = file["problems"].as_array().unwrap().clone();
        let codes = problems.into_iter();
        codes.map(move |one: Value| (one["code"].as_str().unwrap().to_owned(), path.clone()))
    });
    each.collect()
}

#[test]
fn manifests_that_stand_in_for_others_or_let_anybody_in_are_told_of() {
    let files = [("a.yaml", OPEN), ("asks.yaml", ASKS)];
    let served = Served::start(&files, "", &[]);
    let told = |code: &str, path: &str| (code.to_owned(), path.to_owned());
    assert_eq!(warnings(&served), [told("TM-033", "a.yaml")]);
    assert!(served.log().contains("TM-033"), "{}", served.log());
    std::fs::write(served.path("manifests/b.yaml"), OPEN).unwrap();
    let twice = until("the copy", || {
        Some(warnings(&served)).filter(|told| told.len() == 4)
    });
    for path in ["a.yaml", "b.yaml"] {
        assert!(twice.contains(&told("TM-032", path)), "{twice:?}");
    }
    // One that asks for its events is sent none, and keeps none that strangers send.
    assert_eq!(served.hook("asks", "", b"{}").status, 404);
    assert_eq!(served.hook("open", "", b"{}").status, 202);
    let strict = Served::start(&files, "", &["--strict-webhooks"]);
    assert_eq!(warnings(&strict), []);
    assert_eq!(strict.hook("open", "", b"{}").status, 401);
}
