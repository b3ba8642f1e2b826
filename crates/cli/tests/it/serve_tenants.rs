//! `proofhouse serve` and who sees what: every route of the API, as its description lists them, tried with the key of another
//! tenant, without the scope, and for its entry in the audit log. A route that is new is tried without a word here.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use proofhouse_test_support::wait::until;
use serde_json::{Value, json};

use crate::support::served::{PATIENCE, Served};

/// A tenant: a tool that takes webhooks, an agent with a question, a schedule.
const TENANT: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: NAMESPACE
name: NAMESPACE-till
description: The till.
actions:
  - name: refund
    description: Refund money.
    parameters: {properties: {amount: {type: number, description: how much}}}
    execute: {cel: {expression: "{'paid': input.amount}"}}
events:
  - name: said
    message: "{event.payload.text}"
    receive: {webhook: {filter: "true"}}
---
kind: commonagents.info/v1beta2/agent
namespace: NAMESPACE
name: clerk
description: Refunds.
prompt: You refund.
capabilities:
  NAMESPACE-till:
    before:
      - {match: refund, assert: "review('')", error_message: no.}
---
kind: commonagents.info/v1/schedule
namespace: NAMESPACE
name: NAMESPACE-daily
agent: clerk
cron: "0 9 * * *"
owner: user:alice@example.com
inputs: {message: "Good morning."}
enabled: true
"#;

/// Paths that need no key.
const PUBLIC: [&str; 2] = ["/v1/health", "/v1/ready"];
/// Paths that belong to the whole server, so that a tenant is refused.
const WHOLE: [&str; 1] = ["/v1/metrics"];

/// Every operation of the API: the method and the path.
fn operations(served: &Served) -> Vec<(String, String)> {
    let description = served.ask_as("", "GET", "/v1/openapi.json", None).json();
    let paths = description["paths"].as_object().unwrap().clone();
    let operations = paths.into_iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().clone();
        methods
            .into_iter()
            .map(move |(method, _)| (method.to_uppercase(), path.clone()))
    });
    let operations: Vec<_> = operations.collect();
    assert!(operations.len() >= 27, "{operations:?}");
    operations
}

/// The routes of the dashboard that name something, with what is the first tenant's: pages, or forms that do something. They
/// are read from the router itself, so that a new one is tried without a word here.
fn dashboard_routes(forms: bool, tenants: &Tenants) -> Vec<String> {
    let router = include_str!("../../../server/src/dashboard/mod.rs");
    let routes = router.split(".route(").skip(1);
    let routes = routes.filter_map(|route| {
        let (_, rest) = route.split_once('"')?;
        let (path, handlers) = rest.split_once('"')?;
        let is_wanted = handlers.contains(if forms { "post(" } else { "get(" });
        (path.contains('{') && is_wanted).then(|| tenants.path(path, 0))
    });
    routes.collect()
}

/// What a stream says up to its first event.
fn first_event(served: &Served, cookie: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(served.api).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET {path}?seen=nothing HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n",
        served.api
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = Vec::new();
    let mut piece = [0; 4096];
    // An event ends with an empty line, behind the one that ends the head.
    while String::from_utf8_lossy(&told).matches("\n\n").count() == 0 {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{path} ends: {}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&told).into_owned()
}

/// Two tenants, each with a task that waits for an answer and an event.
struct Tenants {
    served: Served,
    /// The key, the task and the event of each.
    own: Vec<(String, String, i64)>,
}

/// Words that are in no other.
const NAMES: [&str; 2] = ["mango", "papaya"];

fn tenants() -> Tenants {
    let [mango, papaya] = NAMES.map(|name| TENANT.replace("NAMESPACE", name));
    let served = Served::start(&[("mango.yaml", &mango), ("papaya.yaml", &papaya)], "", &[]);
    let own = NAMES.map(|name| {
        let key = served.new_key(&["--role", "admin", "--namespace", name, "--name", name]);
        let order = json!({"agent": "clerk", "message": "Refund money, amount: 3"});
        let begun = served.ask_as(&key, "POST", "/v1/tasks", Some(&order));
        // Both have a `clerk`; each means its own.
        assert_eq!(begun.status, 201, "{begun:?}");
        let task = begun.json()["id"].as_str().unwrap().to_owned();
        let posted = served.hook(
            &format!("{name}-till"),
            "",
            json!({"text": name}).to_string().as_bytes(),
        );
        assert_eq!(posted.status, 202, "{posted:?}");
        let event = posted.json()["event"].as_i64().unwrap();
        until("question and event", || {
            let shown = served.ask_as(&key, "GET", &format!("/v1/tasks/{task}"), None);
            let routed = served
                .ask("GET", &format!("/v1/events/{event}"), None)
                .json();
            (shown.json()["state"] == "waiting" && routed["state"] == "routed").then_some(())
        });
        // A campaign of its own that nobody works on.
        let store = served.path("store.db").display().to_string();
        let campaign = format!("{name}-nightly");
        let planned =
            crate::support::command(&["run", "--subject", "sim:careful", "--id", "*-001"])
                .args(["--no-config", "--plan-only", "--store", &store])
                .args(["--name", &campaign, "--tenant", name])
                .output()
                .unwrap();
        assert!(planned.status.success(), "{planned:?}");
        (key, task, event)
    });
    Tenants {
        served,
        own: own.into(),
    }
}

impl Tenants {
    /// A path with what belongs to one of the tenants in it.
    fn path(&self, path: &str, tenant: usize) -> String {
        let (_, task, event) = &self.own[tenant];
        let path = path.replace("{task}", task);
        let path = path.replace("{event}", &event.to_string());
        let path = path.replace("{campaign}", &format!("{}-nightly", NAMES[tenant]));
        path.replace("{review}", "1")
    }

    /// A body that an operation takes.
    fn body(&self, method: &str, path: &str) -> Option<Value> {
        match (method, path) {
            ("POST", "/v1/tasks") => Some(json!({"agent": "clerk", "namespace": "mango"})),
            ("POST", "/v1/campaigns") => Some(json!({"campaign": "mango-nightly@1"})),
            ("POST", path) if path.ends_with("/messages") => Some(json!({"message": "hello"})),
            ("POST", path) if path.contains("/reviews/") => Some(json!({"approve": true})),
            _ => None,
        }
    }
}

#[test]
fn no_route_shows_or_changes_what_another_tenant_has() {
    let tenants = tenants();
    let served = &tenants.served;
    let (papaya, _, _) = &tenants.own[1];
    let (mango, their_task, their_event) = &tenants.own[0];
    let before = served.get(&format!("/v1/tasks/{their_task}"));
    let mut tried = 0;
    for (method, path) in operations(served) {
        let body = tenants.body(&method, &path);
        let reply = served.ask_as(papaya, &method, &tenants.path(&path, 0), body.as_ref());
        let place = format!("{method} {path}: {reply:?}");
        if PUBLIC.contains(&path.as_str()) {
            assert_eq!(reply.status, 200, "{place}");
            continue;
        }
        tried += 1;
        if WHOLE.contains(&path.as_str()) {
            assert_eq!(reply.status, 403, "{place}");
        } else if path.contains('{') || method == "POST" {
            // What is somebody else's is answered like what is not there.
            assert_eq!(reply.status, 404, "{place}");
        } else {
            // A list shows nothing of it.
            assert_eq!(reply.status, 200, "{place}");
            for own in ["mango", their_task] {
                assert!(!reply.text.contains(own), "{own}: {place}");
            }
        }
    }
    assert!(tried >= 25, "{tried}");
    // Filters do not widen what is seen.
    for path in [
        "/v1/tasks?namespace=mango".to_owned(),
        format!("/v1/tasks?after={their_task}"),
        format!("/v1/events?task={their_task}"),
        "/v1/events?tool=mango-till".to_owned(),
        "/v1/campaigns?name=mango-nightly".to_owned(),
    ] {
        let reply = served.ask_as(papaya, "GET", &path, None);
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.text.contains("mango"), "{path}: {reply:?}");
    }
    let comparison = "/v1/campaigns/papaya-nightly/comparison?baseline=mango-nightly";
    assert_eq!(
        served.ask_as(papaya, "GET", comparison, None).status,
        404,
        "a baseline is no way round"
    );
    for path in ["", "/events", "/manifests", "/campaigns"] {
        let session = crate::support::served::cookie_of(&served.sign_in(papaya));
        let page = served.look(&session, &format!("/dashboard{path}"));
        assert_eq!(page.status, 200, "{path}");
        assert!(
            page.text.contains("papaya") && !page.text.contains("mango"),
            "{path}: {page:?}"
        );
    }
    // Searching finds nothing of theirs, and forms do nothing to it.
    let session = crate::support::served::cookie_of(&served.sign_in(papaya));
    for path in [
        format!("/dashboard?text={their_task}"),
        "/dashboard?namespace=mango".to_owned(),
        "/dashboard?state=needs-approval&agent=mango".to_owned(),
        "/dashboard/errors".to_owned(),
    ] {
        let page = served.look(&session, &path);
        assert_eq!(page.status, 200, "{path}");
        let link = format!("/dashboard/tasks/{their_task}");
        assert!(!page.text.contains(&link), "{path}: {page:?}");
    }
    let home = served.look(&session, "/dashboard");
    let form = format!(
        "message=hello&answer=approve&form_token={}",
        crate::support::served::form_token(&home.text)
    );
    let (pages, forms) = (
        dashboard_routes(false, &tenants),
        dashboard_routes(true, &tenants),
    );
    assert!(pages.len() >= 7 && forms.len() >= 7, "{pages:?} {forms:?}");
    for path in pages {
        let page = served.look(&session, &path);
        assert_eq!(page.status, 404, "{path}: {page:?}");
    }
    for path in forms {
        let reply = served.post_form(&session, &path, &form);
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
    }
    // A stream of a list tells of its own tenant only: what it has not seen is a mark, and no word of anybody's.
    for path in ["/dashboard/live/tasks", "/dashboard/live/campaigns"] {
        let told = first_event(served, &session, path);
        assert!(told.starts_with("HTTP/1.1 200"), "{path}: {told}");
        for other in ["mango", their_task] {
            assert!(!told.contains(other), "{path}: {told}");
        }
    }
    // Nothing happened to it, and its own tenant sees it.
    let after = served.ask_as(mango, "GET", &format!("/v1/tasks/{their_task}"), None);
    assert_eq!(after.json(), before);
    let event = served.ask_as(mango, "GET", &format!("/v1/events/{their_event}"), None);
    assert_eq!(event.status, 200, "{event:?}");
    assert_eq!(event.json()["attempt"], 1);
}

#[test]
fn every_route_asks_for_its_scope_before_it_reads_the_request() {
    let tenants = tenants();
    let served = &tenants.served;
    // A key that may do nothing of this.
    let key = served.new_key(&["--scope", "users:act"]);
    for (method, path) in operations(served) {
        if PUBLIC.contains(&path.as_str()) {
            continue;
        }
        let path = tenants.path(&path, 0);
        for body in ["", "{", "[1]", r#"{"nonsense": true}"#] {
            let head = format!(
                "{method} {path}?limit=nonsense HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
                 content-type: application/json\r\nlast-event-id: x\r\nidempotency-key: a b",
                served.api
            );
            let reply = Served::send(served.api, &head, body.as_bytes());
            assert_eq!(reply.status, 403, "{method} {path} {body}: {reply:?}");
            assert!(reply.text.contains("scope"), "{reply:?}");
        }
        let reply = served.ask_as("", &method, &path, None);
        assert_eq!(reply.status, 401, "{method} {path}");
    }
}

#[test]
fn every_request_that_changes_something_is_in_the_audit_log() {
    let tenants = tenants();
    let served = &tenants.served;
    let (mango, task, _) = &tenants.own[0];
    let newest = || {
        let head = served.get("/v1/audit?limit=1");
        head["entries"][0]["seq"].as_i64().unwrap_or(0)
    };
    for (method, path) in operations(served) {
        if method == "GET" {
            continue;
        }
        let before = newest();
        let body = tenants.body(&method, &path);
        let reply = served.ask_as(mango, &method, &tenants.path(&path, 0), body.as_ref());
        let entries = served.get("/v1/audit?limit=20");
        let entries = entries["entries"].as_array().unwrap();
        let found = entries.iter().find(|entry| {
            entry["seq"].as_i64() > Some(before) && entry["entry"]["actor"]["name"] == "mango"
        });
        let found = found.unwrap_or_else(|| panic!("{method} {path}: {entries:?}"));
        let entry = &found["entry"];
        assert_eq!(entry["status"], reply.status, "{method} {path}: {found}");
        assert_eq!(entry["from"], "127.0.0.1");
        let is_named = entry["action"].as_str().unwrap().contains('.');
        assert!(is_named, "give {method} {path} a name in `audit_note.rs`");
        if path.contains("{task}") {
            assert_eq!(entry["object"], json!({"kind": "task", "id": task}));
            assert_eq!(found["namespace"], "mango", "{method} {path}");
        }
    }
}

/// What a store holds that requests change.
fn kept(served: &Served) -> Vec<String> {
    let store = rusqlite::Connection::open(served.path("store.db")).unwrap();
    let row = |sql: &str| {
        let mut statement = store.prepare(sql).unwrap();
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join(",")
    };
    vec![
        row("SELECT id || state FROM tasks ORDER BY id"),
        row("SELECT id || name FROM deliveries ORDER BY id"),
        row("SELECT id || '/' || attempt FROM events ORDER BY id"),
        row("SELECT name || '@' || number || state FROM campaigns ORDER BY id"),
        row("SELECT hash FROM sessions WHERE kind = 'dashboard' ORDER BY hash"),
    ]
}

/// Every route that changes something, while the audit log takes no entries: nothing is done. Then again, and it is.
#[test]
fn nothing_is_done_that_the_audit_log_does_not_hold() {
    let tenants = tenants();
    let served = &tenants.served;
    let (mango, task, event) = &tenants.own[0];
    let ended = served.begin_as(mango, "clerk", None);
    let cancelled = served.ask_as(mango, "POST", &format!("/v1/tasks/{ended}/cancel"), None);
    assert_eq!(cancelled.status, 204);
    until("the end", || {
        let shown = served.ask_as(mango, "GET", &format!("/v1/tasks/{ended}"), None);
        (shown.json()["state"] == "ended").then_some(())
    });
    let session = crate::support::served::cookie_of(&served.sign_in(mango));
    let page = served.look(&session, &format!("/dashboard/tasks/{task}"));
    let token = crate::support::served::form_token(&page.text);
    let changing: Vec<(String, String)> = operations(served)
        .into_iter()
        .filter(|(method, _)| method != "GET")
        .collect();
    assert!(changing.len() >= 9, "{changing:?}");
    let forms = [
        (
            format!("/dashboard/tasks/{task}/messages"),
            "message=Hello&once=o1",
        ),
        (format!("/dashboard/tasks/{task}/reviews/1"), "answer=deny"),
        (format!("/dashboard/tasks/{task}/interrupt"), ""),
        (format!("/dashboard/tasks/{task}/cancel"), ""),
        (format!("/dashboard/events/{event}/replay"), ""),
        ("/dashboard/campaigns/mango-nightly/again".to_owned(), ""),
        ("/dashboard/campaigns/mango-nightly/cancel".to_owned(), ""),
        ("/dashboard/sign-out".to_owned(), ""),
    ];
    let all = || {
        let mut replies = Vec::new();
        for (method, path) in &changing {
            let body = tenants.body(method, path);
            let path = match method.as_str() {
                "DELETE" => path.replace("{task}", &ended),
                _ => tenants.path(path, 0),
            };
            let reply = served.ask_as(mango, method, &path, body.as_ref());
            replies.push((format!("{method} {path}"), reply));
        }
        for (path, form) in &forms {
            let form = format!("form_token={token}&{form}");
            replies.push((path.clone(), served.post_form(&session, path, &form)));
        }
        replies.push(("signing in".to_owned(), served.sign_in(mango)));
        replies
    };
    let store = rusqlite::Connection::open(served.path("store.db")).unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END";
    store.execute_batch(full).unwrap();
    let before = kept(served);
    for (what, reply) in all() {
        assert!(reply.status >= 400, "{what}: {reply:?}");
    }
    assert_eq!(kept(served), before);
    store.execute_batch("DROP TRIGGER full").unwrap();
    let count = || {
        let sql = "SELECT COUNT(*) FROM audit WHERE entry LIKE '%\"outcome\":\"done\"%'";
        store
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let (was, mut done) = (count(), 0);
    for (_, reply) in all() {
        done += i64::from(reply.status < 400);
    }
    assert!(done >= 5, "{done}");
    assert_eq!(count(), was + done, "each deed has one entry");
}

/// Two tenants whose tools have the same name.
#[test]
fn a_webhook_is_heard_where_its_address_says() {
    let tenant = |name: &str, secret: &str| {
        let tool = TENANT
            .replace("NAMESPACE-till", "till")
            .replace("NAMESPACE", name)
            .replace(
                "The till.\n",
                "The till.\nsettings: {properties: {secret: {format: password}}}\n",
            );
        tool.replace("{webhook: {filter: \"true\"}}", secret)
    };
    let plain = "{webhook: {filter: \"true\"}}";
    let signed = "{webhook: {filter: \"true\", secret: \"{settings.secret}\"}}";
    let (mango, papaya) = (tenant("mango", plain), tenant("papaya", signed));
    let files = [
        ("mango.yaml", mango.as_str()),
        ("papaya.yaml", papaya.as_str()),
    ];
    let served = Served::start(&files, "settings: {papaya/till: {secret: s3}}\n", &[]);
    let keys = NAMES.map(|name| {
        let key = served.new_key(&["--role", "admin", "--namespace", name]);
        let task = served.begin_as(&key, "clerk", None);
        (key, task)
    });
    // How many inputs each has got.
    let heard = |wanted: [usize; 2]| {
        until("inputs", || {
            let counts = keys.clone().map(|(key, task)| {
                let path = format!("/v1/tasks/{task}/turns?limit=100");
                let turns = served.ask_as(&key, "GET", &path, None).json();
                let turns = turns["turns"].as_array().unwrap().clone();
                turns.iter().filter(|turn| turn["kind"] == "input").count()
            });
            (counts == wanted).then_some(())
        });
    };
    let body = json!({"text": "hello"});
    let bytes = body.to_string();
    let vague = served.hook("till", "", bytes.as_bytes());
    assert_eq!(vague.status, 409, "{vague:?}");
    assert!(vague.text.contains("NAMESPACE/TOOL"), "{vague:?}");
    assert_eq!(served.hook("mango/till", "", bytes.as_bytes()).status, 202);
    heard([1, 0]);
    assert_eq!(served.hook("papaya/till", "", bytes.as_bytes()).status, 401);
    assert_eq!(served.hook("guava/till", "", bytes.as_bytes()).status, 404);
    // The secret of one says who is meant, also at the address that does not.
    assert_eq!(served.github("till", "s3", "d1", &body).status, 202);
    heard([1, 1]);
    // The same again is known at both addresses; something else is not.
    assert_eq!(served.github("papaya/till", "s3", "d1", &body).status, 200);
    let other = json!({"text": "once more"});
    assert_eq!(served.github("papaya/till", "s3", "d2", &other).status, 202);
    heard([1, 2]);
    assert_eq!(
        served.github("papaya/till", "wrong", "d3", &body).status,
        401
    );
    assert_eq!(served.github("till", "wrong", "d3", &body).status, 409);
}
