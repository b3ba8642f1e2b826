//! `proofhouse serve` and who may do what: roles, reviews, keys that follow each other, names of the server, the first key,
//! forms, and settings that are read again.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::os::unix::fs::PermissionsExt as _;

use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support;
use crate::support::served::{Reply, Served, cookie_of, form_head, form_token};
use crate::support::shop as manifests;

/// A shop that asks this reviewer.
fn shop(reviewer: &str) -> Served {
    Served::start(&[("shop.yaml", &manifests::shop(reviewer))], "", &[])
}

/// Begins a refund with a key, and waits for its question.
fn asks(served: &Served, key: &str, more: &Value) -> String {
    let mut order = json!({"agent": "clerk", "message": "Refund money, amount: 3"});
    for (name, value) in more.as_object().unwrap() {
        order[name] = value.clone();
    }
    let begun = served.ask_as(key, "POST", "/v1/tasks", Some(&order));
    assert_eq!(begun.status, 201, "{begun:?}");
    let task = begun.json()["id"].as_str().unwrap().to_owned();
    until("question", || {
        let shown = served.get(&format!("/v1/tasks/{task}"));
        (shown["state"] == "waiting").then_some(())
    });
    task
}

fn answer(served: &Served, key: &str, task: &str, more: &Value) -> Reply {
    let mut body = json!({"approve": true});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let path = format!("/v1/tasks/{task}/reviews/1");
    served.ask_as(key, "POST", &path, Some(&body))
}

#[test]
fn roles_are_told_apart() {
    let served = shop("''");
    let key = |role: &str| served.new_key(&["--role", role, "--name", role]);
    let (reader, starter, approver) = (key("reader"), key("starter"), key("approver"));
    let (operator, auditor) = (key("operator"), key("auditor"));
    let task = asks(&served, &starter, &json!({}));
    let path = |rest: &str| format!("/v1/tasks/{task}{rest}");
    let order = json!({"agent": "clerk"});
    for (key, method, path, body, status) in [
        (&reader, "GET", path(""), None, 200),
        (&reader, "POST", "/v1/tasks".to_owned(), Some(&order), 403),
        (&reader, "GET", "/v1/audit".to_owned(), None, 403),
        (&starter, "POST", path("/cancel"), None, 403),
        (&approver, "POST", "/v1/tasks".to_owned(), Some(&order), 403),
        (&approver, "POST", path("/interrupt"), None, 403),
        (&operator, "GET", "/v1/audit".to_owned(), None, 403),
        (&auditor, "GET", "/v1/audit".to_owned(), None, 200),
        (&auditor, "POST", path("/cancel"), None, 403),
    ] {
        let reply = served.ask_as(key, method, &path, body);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    }
    for key in [&reader, &starter, &operator, &auditor] {
        assert_eq!(answer(&served, key, &task, &json!({})).status, 403);
    }
    assert_eq!(answer(&served, &approver, &task, &json!({})).status, 204);
}

#[test]
fn nobody_approves_what_they_began_or_asked_for() {
    let served = shop("''");
    let first = served.new_key(&["--scope", "tasks:write", "--name", "first"]);
    let second = served.new_key(&["--scope", "tasks:write", "--name", "second"]);
    let task = asks(&served, &first, &json!({}));
    let refused = answer(&served, &first, &task, &json!({}));
    assert_eq!(refused.status, 403, "{refused:?}");
    // Whoever takes the name of another is still the one who began it, and so is the successor of the key.
    let listed = support::json(&served.keys(&["list", "--format", "json"]));
    let keys = listed["keys"].as_array().unwrap();
    let id = keys.iter().find(|key| key["name"] == "first").unwrap();
    let successor = served.keys(&["rotate", id["id"].as_str().unwrap()]);
    assert_eq!(
        answer(&served, successor.trim(), &task, &json!({})).status,
        403
    );
    let renamed = asks(&served, &first, &json!({"user": "somebody else"}));
    assert_eq!(answer(&served, &first, &renamed, &json!({})).status, 403);
    // Speaking to the task of another is asking for what it does.
    let path = format!("/v1/tasks/{renamed}/messages");
    let said = json!({"message": "And more."});
    let reply = served.ask_as(&second, "POST", &path, Some(&said));
    assert_eq!(reply.status, 202, "{reply:?}");
    assert_eq!(answer(&served, &second, &renamed, &json!({})).status, 403);
    assert_eq!(answer(&served, &second, &task, &json!({})).status, 204);
    let shown = served.get(&format!("/v1/tasks/{task}"));
    assert_eq!(shown["answers"].as_array().unwrap().len(), 1);
}

#[test]
fn a_review_is_answered_by_whom_the_manifest_names() {
    let served = shop("context.user.id");
    let ann = served.new_key(&["--role", "approver", "--user", "ann@example.com"]);
    let bob = served.new_key(&["--scope", "tasks:write", "--user", "bob@example.com"]);
    let gateway = served.new_key(&["--scope", "tasks:write", "--scope", "users:act"]);
    let task = asks(&served, &gateway, &json!({"user": "ann@example.com"}));
    assert_eq!(answer(&served, &bob, &task, &json!({})).status, 403);
    assert_eq!(answer(&served, &gateway, &task, &json!({})).status, 403);
    // Only a key that may act for its users says who answers.
    let as_ann = json!({"user": "ann@example.com"});
    assert_eq!(answer(&served, &bob, &task, &as_ann).status, 403);
    assert_eq!(answer(&served, &ann, &task, &json!({})).status, 204);
    // The manifest asks the user of the task, who is the one that began it.
    let own = asks(&served, &bob, &json!({}));
    assert_eq!(answer(&served, &ann, &own, &json!({})).status, 403);
    assert_eq!(answer(&served, &bob, &own, &json!({})).status, 204);
    let theirs = asks(&served, &gateway, &json!({"user": "ann@example.com"}));
    let as_bob = json!({"user": "bob@example.com"});
    assert_eq!(answer(&served, &gateway, &theirs, &as_bob).status, 403);
    assert_eq!(answer(&served, &gateway, &theirs, &as_ann).status, 204);
    let shown = served.get(&format!("/v1/tasks/{theirs}"));
    assert_eq!(shown["answers"][0]["person"], "ann@example.com");
}

#[test]
fn a_key_is_replaced_without_a_gap() {
    let served = shop("''");
    let old = served.new_key(&["--role", "starter", "--namespace", "shop", "--name", "ci"]);
    let listed = support::json(&served.keys(&["list", "--format", "json"]));
    let keys = listed["keys"].as_array().unwrap();
    let id = keys.iter().find(|key| key["name"] == "ci").unwrap()["id"].clone();
    let id = id.as_str().unwrap();
    let begin = |key: &str, name: &str| {
        let body = json!({"agent": "clerk", "message": name}).to_string();
        let head = format!(
            "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\nidempotency-key: same",
            served.api
        );
        Served::send(served.api, &head, body.as_bytes())
    };
    let first = begin(&old, "hello");
    assert_eq!(first.status, 201, "{first:?}");
    let rotated = served.keys(&["rotate", id, "--overlap", "1h", "--format", "json"]);
    let rotated = support::json(&rotated);
    assert_eq!(rotated["namespaces"], json!(["shop"]));
    let new = rotated["key"].as_str().unwrap();
    // Both work, and a request that is repeated with the new one is the same request.
    assert_eq!(served.ask_as(&old, "GET", "/v1/tasks", None).status, 200);
    assert_eq!(begin(new, "hello").json()["id"], first.json()["id"]);
    let ran = served.keys(&[
        "rotate",
        rotated["id"].as_str().unwrap(),
        "--overlap",
        "1ms",
    ]);
    until("the end of the old key", || {
        (served.ask_as(new, "GET", "/v1/tasks", None).status == 401).then_some(())
    });
    assert_eq!(begin(ran.trim(), "hello").json()["id"], first.json()["id"]);
    assert_eq!(served.ask_as(&old, "GET", "/v1/tasks", None).status, 200);
}

#[test]
fn an_idempotency_key_belongs_to_a_key_of_the_api() {
    let served = shop("''");
    let keys = ["one", "two"].map(|name| served.new_key(&["--role", "starter", "--name", name]));
    let task = served.begin("clerk", None);
    let say = |key: &str, text: &str| {
        let body = json!({"message": text}).to_string();
        let head = format!(
            "POST /v1/tasks/{task}/messages HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\nidempotency-key: same",
            served.api
        );
        Served::send(served.api, &head, body.as_bytes())
    };
    let first = say(&keys[0], "hello");
    assert_eq!(first.status, 202, "{first:?}");
    // What another says with the same word is something else, and no mistake.
    let second = say(&keys[1], "good evening");
    assert_eq!(second.status, 202, "{second:?}");
    assert_ne!(first.json()["delivery"], second.json()["delivery"]);
    assert_eq!(say(&keys[0], "hello").json(), first.json());
    assert_eq!(say(&keys[0], "other words").status, 422);
}

#[test]
fn a_proxy_on_the_same_machine_reaches_it_under_its_name() {
    let served = Served::start(
        &[("shop.yaml", &manifests::shop("''"))],
        "",
        &["--allowed-host", "Agents.example.com"],
    );
    let ask = |headers: &str| {
        let head = format!(
            "GET /v1/tasks HTTP/1.1\r\nauthorization: Bearer {}\r\n{headers}",
            served.key
        );
        Served::send(served.api, &head, b"").status
    };
    assert_eq!(ask("host: agents.example.com"), 200);
    assert_eq!(ask("host: agents.example.com:443"), 200);
    let page = "host: agents.example.com\r\norigin: https://agents.example.com";
    assert_eq!(ask(page), 200);
    assert_eq!(ask("host: evil.example"), 403);
    let evil = "host: agents.example.com\r\norigin: https://evil.example";
    assert_eq!(ask(evil), 403);
    // Probes ask by address.
    let probe = Served::send(served.api, "GET /v1/ready HTTP/1.1\r\nhost: 10.0.0.7", b"");
    assert_eq!(probe.status, 200);
    let path = served.path("manifests").display().to_string();
    for wrong in ["https://agents.example.com", "agents.example.com:443", ""] {
        let ran = support::run(&["serve", &path, "--allowed-host", wrong]);
        assert_eq!(ran.code, Some(64), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn the_first_key_goes_to_a_file_that_only_its_owner_reads() {
    let served = shop("''");
    let file = served.path("first-key");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let key = std::fs::read_to_string(&file).unwrap();
    assert!(key.starts_with("phk_"), "{key}");
    assert!(!served.log().contains("phk_"), "{}", served.log());
    // A file that cannot be written is told, and there is no key that nobody has.
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::create_dir(directory.path().join("manifests")).unwrap();
    let (manifests, store, file) = (path("manifests"), path("store.db"), path("no/such/place"));
    let mut args = vec!["serve", &manifests, "--store", &store];
    args.extend(["--listen", "127.0.0.1:0", "--webhook-listen", "127.0.0.1:0"]);
    args.extend(["--model", "sim:careful", "--first-key-file", &file]);
    let ran = support::run(&args);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let listed = support::run(&["keys", "list", "--store", &store]);
    assert!(
        listed.stderr.contains("there are no keys"),
        "{}",
        listed.stderr
    );
}

#[test]
fn forms_of_other_pages_do_nothing() {
    let served = shop("''");
    let task = served.begin("clerk", Some("Refund money, amount: 3"));
    until("question", || {
        (served.get(&format!("/v1/tasks/{task}"))["state"] == "waiting").then_some(())
    });
    // Not even to sign somebody in: they would work in an account of somebody else's.
    let form = format!("key={}", served.key);
    let reply = served.post_form("", "/dashboard/sign-in", &form);
    assert_eq!(reply.status, 403, "{reply:?}");
    let ann = served.new_key(&["--role", "admin", "--user", "ann@example.com"]);
    let session = cookie_of(&served.sign_in(&ann));
    let other = cookie_of(&served.sign_in(&served.key));
    let token_of = |session: &str| form_token(&served.look(session, "/dashboard").text);
    let review = format!("/dashboard/tasks/{task}/reviews/1");
    let cancel = format!("/dashboard/tasks/{task}/cancel");
    let (say, interrupt) = (
        format!("/dashboard/tasks/{task}/messages"),
        format!("/dashboard/tasks/{task}/interrupt"),
    );
    for path in [
        review.as_str(),
        &cancel,
        &say,
        &interrupt,
        "/dashboard/events/1/replay",
        "/dashboard/sign-out",
    ] {
        for form in [
            "answer=approve".to_owned(),
            "answer=approve&form_token=".to_owned(),
            format!("answer=approve&form_token={}", "0".repeat(64)),
            format!("answer=approve&form_token={}", token_of(&other)),
        ] {
            let reply = served.post_form(&session, path, &form);
            assert_eq!(reply.status, 403, "{path} {form}: {reply:?}");
        }
    }
    let shown = served.get(&format!("/v1/tasks/{task}"));
    assert_eq!(shown["state"], "waiting");
    assert_eq!(served.look(&session, "/dashboard").status, 200);
    // The page has a form that works, and shows who answered.
    let page = served.look(&session, &format!("/dashboard/tasks/{task}"));
    assert!(page.text.contains("Approve"), "{page:?}");
    let form = format!(
        "answer=approve&reason=fine&form_token={}",
        form_token(&page.text)
    );
    let reply = served.post_form(&session, &review, &form);
    assert_eq!(reply.status, 303, "{reply:?}");
    let shown = until("end", || {
        Some(served.get(&format!("/v1/tasks/{task}"))).filter(|shown| shown["state"] == "idle")
    });
    assert_eq!(shown["answers"][0]["person"], "ann@example.com");
    assert_eq!(shown["answers"][0]["reason"], "fine");
    let page = served.look(&session, &format!("/dashboard/tasks/{task}"));
    assert!(page.text.contains("ann@example.com"), "{page:?}");
}

#[test]
fn sessions_outlive_a_restart_and_attempts_are_limited() {
    let served = shop("''");
    let key = served.key.clone();
    let session = cookie_of(&served.sign_in(&key));
    served.terminate();
    let (code, directory) = served.ended();
    assert_eq!(code, Some(0));
    // Another process on the same store knows who signed in, and only hashes of what browsers hold are in it.
    let (_, value) = session.split_once('=').unwrap();
    let stored = std::fs::read(directory.path().join("store.db")).unwrap();
    let needle = value.as_bytes();
    assert!(!stored.windows(needle.len()).any(|found| found == needle));
    let served = Served::start_in(directory, &[]);
    assert_eq!(served.look(&session, "/dashboard").status, 200);
    let page = served.look("", "/dashboard/sign-in");
    let form = format!("form_token={}&key=phk_wrong", form_token(&page.text));
    let mut last = 0;
    for _ in 0..30 {
        last = served
            .post_form(&cookie_of(&page), "/dashboard/sign-in", &form)
            .status;
        if last == 429 {
            break;
        }
        assert_eq!(last, 401);
    }
    assert_eq!(last, 429);
}

const HOOKED: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: hub
description: A platform.
events:
  - name: said
    message: "{event.payload.text}"
    receive: {webhook: {filter: "true"}}
"#;

#[test]
fn settings_are_read_again_at_sighup() {
    let settings =
        |secret: &str| format!("webhooks: {{hub: {{scheme: github, secret: '{secret}'}}}}\n");
    let served = Served::start(&[("hub.yaml", HOOKED)], &settings("first"), &[]);
    let post = |secret: &str, id: &str| {
        let body = json!({"text": id});
        served.github("hub", secret, id, &body).status
    };
    assert_eq!(post("first", "1"), 202);
    assert_eq!(post("second", "2"), 401);
    // What cannot be used changes nothing.
    std::fs::write(served.path("operator.yaml"), "webhoks: {}\negress: 7\n").unwrap();
    served.signal("-HUP");
    until("a word about the settings", || {
        served
            .log()
            .contains("the old settings stay in use")
            .then_some(())
    });
    assert_eq!(post("first", "3"), 202);
    let unsigned = format!("{}retention: {{audit: 400d}}\n", settings("second"));
    std::fs::write(served.path("operator.yaml"), unsigned).unwrap();
    served.signal("-HUP");
    until("a word about the audit key", || {
        served.log().contains("add --audit-key").then_some(())
    });
    assert_eq!(post("first", "3b"), 202);
    std::fs::write(served.path("operator.yaml"), settings("second")).unwrap();
    served.signal("-HUP");
    until("the new secret", || {
        (post("second", "4") == 202).then_some(())
    });
    assert_eq!(post("first", "5"), 401);
    let entries = served.get("/v1/audit")["entries"].clone();
    let reloads = entries.as_array().unwrap().iter();
    let reloads: Vec<&Value> = reloads
        .filter(|entry| entry["entry"]["action"] == "settings.reload")
        .map(|entry| &entry["entry"]["outcome"])
        .collect();
    assert_eq!(
        reloads,
        [&json!("done"), &json!("failed"), &json!("failed")]
    );
}

/// Asks to cancel a task that is not there, with these headers; returns where the audit log says that came from.
fn noted_from(served: &Served, task: &str, headers: &str) -> Value {
    let head = format!(
        "POST /v1/tasks/{task}/cancel HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}{headers}",
        served.api, served.key
    );
    assert_eq!(Served::send(served.api, &head, b"").status, 404);
    let entries = served.get("/v1/audit")["entries"].clone();
    let mut entries = entries.as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["entry"]["object"]["id"] == task);
    entry.unwrap()["entry"].clone()
}

#[test]
fn a_trusted_proxy_says_where_requests_come_from() {
    let said = "\r\nx-forwarded-for: 198.51.100.7, 203.0.113.9";
    let alone = shop("''");
    let entry = noted_from(&alone, "a", said);
    assert_eq!(entry["from"], "127.0.0.1", "nobody is trusted: {entry}");
    assert_eq!(entry["forwarded_for"], "198.51.100.7, 203.0.113.9");
    assert!(entry["proxy"].is_null());
    let manifest = manifests::shop("''");
    let served = Served::start(
        &[("shop.yaml", &manifest)],
        "retention: {events: 30d}\n",
        &["--trusted-proxy", "127.0.0.0/8"],
    );
    let entry = noted_from(&served, "a", said);
    assert_eq!(entry["from"], "203.0.113.9", "{entry}");
    assert_eq!(entry["proxy"], "127.0.0.1");
    let entry = noted_from(&served, "b", "\r\nforwarded: for=203.0.113.8");
    assert_eq!(entry["from"], "203.0.113.8", "{entry}");
    let entry = noted_from(&served, "c", "");
    assert_eq!(entry["from"], "127.0.0.1");
    // The operator's file names another one, which is believed after the file was read again.
    let file = "trusted_proxies: [203.0.113.0/24]\n";
    std::fs::write(served.path("operator.yaml"), file).unwrap();
    served.signal("-HUP");
    until("the new settings", || {
        served.log().contains("settings reloaded").then_some(())
    });
    assert_eq!(noted_from(&served, "d", said)["from"], "198.51.100.7");
    // One client that guesses keys holds up no other.
    let page = served.look("", "/dashboard/sign-in");
    let form = format!("form_token={}&key=phk_wrong", form_token(&page.text));
    let attempt = |client: &str| {
        let head = format!(
            "{}\r\nx-forwarded-for: {client}",
            form_head(
                &served.api.to_string(),
                "http",
                &cookie_of(&page),
                "/dashboard/sign-in"
            )
        );
        Served::send(served.api, &head, form.as_bytes()).status
    };
    let guesses: Vec<u16> = (0..20).map(|_| attempt("192.0.2.1")).collect();
    assert!(guesses.contains(&429), "{guesses:?}");
    assert_eq!(attempt("192.0.2.2"), 401);
}

#[test]
fn everybody_is_no_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    for wrong in ["0.0.0.0/0", "::/0", "proxy.example.com"] {
        let ran = support::run(&["serve", &path, "--trusted-proxy", wrong]);
        assert_eq!(ran.code, Some(64), "{wrong}: {}", ran.stderr);
    }
}

/// Attempts that failed are in the store: another process, here the next one, knows them, and forgets them when their time is
/// over. Whoever has a right key is let in all the same.
#[test]
fn attempts_to_sign_in_are_counted_for_all_processes() {
    let served = Served::start(&[], "", &[]);
    assert_eq!(served.sign_in("phk_wrong").status, 401);
    let key = served.key.clone();
    served.terminate();
    let (_, directory) = served.ended();
    let change = |sql: &str| {
        let store = rusqlite::Connection::open(directory.path().join("store.db")).unwrap();
        let changed = store.execute(sql, []).unwrap();
        assert_eq!(changed, 1, "one peer has tried");
    };
    // As if it had tried often: an hour of attempts.
    change("UPDATE attempts SET free_at = free_at + 3600000");
    let served = Served::start_in(directory, &[]);
    assert_eq!(served.sign_in(&key).status, 303);
    let refused = served.sign_in("phk_wrong");
    assert_eq!(refused.status, 429, "{refused:?}");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((3_000..=3_600).contains(&wait), "{wait}");
    let store = rusqlite::Connection::open(served.path("store.db")).unwrap();
    store
        .execute("UPDATE attempts SET free_at = 1", [])
        .unwrap();
    assert_eq!(served.sign_in("phk_wrong").status, 401);
}

/// However often people sign in behind one proxy, it is no attempt that failed.
#[test]
fn signing_in_is_not_limited() {
    let served = Served::start(&[], "", &[]);
    let key = served.key.clone();
    for number in 0..25 {
        assert_eq!(served.sign_in(&key).status, 303, "{number}");
    }
}

/// Whoever collects the log can read every line of it.
#[test]
fn a_structured_log_has_nothing_else_in_it() {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("audit.key").display().to_string();
    let log = ["--log", "info", "--log-json", "--audit-key", &key];
    let served = Served::start(
        &[("hub.yaml", HOOKED), ("wrong.yaml", "kind: nonsense\n")],
        "webhooks: {}\n",
        &log,
    );
    served.signal("-HUP");
    until("a word about the settings", || {
        served.log().contains("settings reloaded").then_some(())
    });
    served.terminate();
    let (code, directory) = served.ended();
    assert_eq!(code, Some(0));
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    for line in log.lines() {
        let read: Result<Value, _> = serde_json::from_str(line);
        assert!(read.is_ok_and(|line| line["level"].is_string()), "{line}");
    }
    for word in ["wrong.yaml", "stopping", "created a signing key"] {
        assert!(log.contains(word), "{word}: {log}");
    }
}
