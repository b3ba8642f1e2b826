//! `proofhouse serve` shows the campaigns of its store, starts them again from their plans, and workers pick them up.
#![allow(clippy::unwrap_used, reason = "a test may")]

use serde_json::{Value, json};

use crate::support::served::{Reply, Served, cookie_of, form_token};

/// Runs a command on the store of the server.
fn on_store(served: &Served, arguments: &[&str], code: i32) {
    let store = served.path("store.db").display().to_string();
    let done = crate::support::command(arguments)
        .args(["--store", &store])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(code), "{arguments:?}: {done:?}");
}

/// Plans a campaign and works on it, unless it is only to be planned.
fn campaign(served: &Served, name: &str, more: &[&str]) {
    let run = ["run", "--subject", "sim:gullible", "--id", "*-001"];
    let rest = ["--no-config", "--no-preflight", "--name", name];
    // Attacks get through the gullible simulation, which is exit code 1.
    let code = i32::from(!more.contains(&"--plan-only"));
    on_store(served, &[&run[..], &rest[..], more].concat(), code);
}

/// The events of a stream: the name and the data of each.
fn events(reply: &Reply) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    let mut name = String::new();
    for line in reply.text.lines() {
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((name.clone(), serde_json::from_str(data).unwrap()));
        }
    }
    events
}

#[test]
fn campaigns_are_shown_compared_and_started_again() {
    let served = Served::start(&[], "", &[]);
    assert_eq!(served.get("/v1/campaigns")["campaigns"], json!([]));
    campaign(&served, "shop", &[]);
    let shown = served.get("/v1/campaigns/shop");
    assert_eq!(shown["campaign"]["campaign"], "shop@1");
    let progress = &shown["progress"];
    assert_eq!(progress["state"], "finished");
    assert_eq!(progress["done"], progress["total"]);
    let through = progress["success"]["through"].as_u64().unwrap();
    assert!(through > 0, "{shown}");
    let rates = shown["rates"].as_array().unwrap();
    let all = rates.iter().find(|rate| rate["category"].is_null());
    let all = all.unwrap();
    assert_eq!(all["success"]["through"], through);
    assert!(all["success"]["low"].as_f64() < all["success"]["high"].as_f64());
    assert!(rates.len() > 1, "categories are told apart: {rates:?}");
    assert_eq!(shown["models"][0]["name"], "sim:gullible");
    assert_eq!(shown["workers"].as_array().unwrap().len(), 1);
    // A campaign that is over has one event.
    let stream = served.ask("GET", "/v1/campaigns/shop/stream", None);
    let heard = events(&stream);
    assert_eq!(heard.len(), 1, "{stream:?}");
    assert_eq!((heard[0].0.as_str(), &heard[0].1), ("progress", progress));
    // There is nothing before it.
    let before = served.ask("GET", "/v1/campaigns/shop/comparison", None);
    assert_eq!(before.status, 404, "{before:?}");
    // Once more, from the plan: nobody works on it until a worker comes.
    let order = json!({"campaign": "shop@1"});
    let started = served.ask("POST", "/v1/campaigns", Some(&order));
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(started.json()["campaign"], "shop@2");
    assert_eq!(started.json()["plan"], shown["campaign"]["plan"]);
    let twice = served.ask("POST", "/v1/campaigns", Some(&order));
    assert_eq!(twice.status, 409, "{twice:?}");
    assert_eq!(served.get("/v1/campaigns/shop")["progress"]["done"], 0);
    on_store(&served, &["worker", "--name", "shop"], 0);
    let again = served.get("/v1/campaigns/shop");
    assert_eq!(again["campaign"]["number"], 2);
    // The same seed comes to the same.
    assert_eq!(&again["progress"], progress);
    assert_eq!(again["rates"], shown["rates"]);
    let compared = served.get("/v1/campaigns/shop/comparison");
    assert_eq!(compared["baseline"], "shop@1");
    assert_eq!(compared["regressions"], 0);
    let cells = compared["comparison"]["cells"].as_array().unwrap();
    assert!(!cells.is_empty());
    let trend = served.get("/v1/campaigns/shop/trend");
    let points = trend["points"].as_array().unwrap().iter();
    let points = points.filter(|point| point["rate"]["category"].is_null());
    let names: Vec<&str> = points
        .map(|point| point["campaign"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["shop@1", "shop@2"]);
    let result = served.get("/v1/campaigns/shop@1/result");
    assert_eq!(result["complete"], true);
    assert!(!result["runs"].as_array().unwrap().is_empty());
    let report = served.ask("GET", "/v1/campaigns/shop/report?baseline=shop@1", None);
    assert_eq!(report.status, 200);
    assert!(report.header("content-type").starts_with("text/html"));
    let policy = report.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(report.text.contains("shop@1"), "the baseline is named");
    // Lists go on where they ended.
    let first = served.get("/v1/campaigns?limit=1");
    assert_eq!(first["campaigns"][0]["campaign"], "shop@2");
    let rest = format!("/v1/campaigns?limit=1&before={}", first["next"]);
    assert_eq!(served.get(&rest)["campaigns"][0]["campaign"], "shop@1");
    for (path, status) in [
        ("/v1/campaigns/none", 404),
        ("/v1/campaigns/shop@7", 404),
        ("/v1/campaigns/..%2Fx", 404),
        ("/v1/campaigns?limit=0", 400),
        ("/v1/campaigns/shop/report?baseline=none", 404),
    ] {
        assert_eq!(served.ask("GET", path, None).status, status, "{path}");
    }
}

#[test]
fn people_see_start_and_cancel_campaigns_in_the_dashboard() {
    let served = Served::start(&[], "", &[]);
    campaign(&served, "shop", &[]);
    let session = cookie_of(&served.sign_in(&served.key));
    let page = served.look(&session, "/dashboard/campaigns");
    assert_eq!(page.status, 200);
    assert!(page.text.contains("shop@1") && page.text.contains("finished"));
    let page = served.look(&session, "/dashboard/campaigns/shop@1");
    for wanted in ["Attack success", "sim:gullible", "Run it again", "Workers"] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    let token = form_token(&page.text);
    let form = format!("form_token={token}&reason=nightly");
    let done = served.post_form(&session, "/dashboard/campaigns/shop@1/again", &form);
    assert_eq!(
        (done.status, done.header("location")),
        (303, "/dashboard/campaigns/shop%402")
    );
    let page = served.look(&session, "/dashboard/campaigns/shop@2");
    assert!(page.text.contains("Cancel the campaign"), "{}", page.text);
    let done = served.post_form(&session, "/dashboard/campaigns/shop@2/cancel", &form);
    assert_eq!(done.status, 303, "{done:?}");
    let page = served.look(&session, "/dashboard/campaigns/shop@2");
    assert!(
        page.text.contains("cancelled") && page.text.contains("nightly"),
        "{}",
        page.text
    );
    // What nobody works on any more is no success for a worker.
    on_store(&served, &["worker", "--name", "shop"], 3);
    for (path, wanted) in [
        ("shop@1/report", "sim:gullible"),
        ("shop/trend", "sim:gullible"),
        ("shop@2/comparison", "Nothing is compared"),
    ] {
        let page = served.look(&session, &format!("/dashboard/campaigns/{path}"));
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.text.contains(wanted), "{path}: {}", page.text);
    }
    // Without the scope, there is neither a form nor a way round it.
    let reader = served.new_key(&["--role", "reader"]);
    let session = cookie_of(&served.sign_in(&reader));
    let page = served.look(&session, "/dashboard/campaigns/shop@2");
    assert!(!page.text.contains("Run it again"), "{}", page.text);
    let form = format!("form_token={}", form_token(&page.text));
    let refused = served.post_form(&session, "/dashboard/campaigns/shop@1/again", &form);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(
        served.get("/v1/campaigns")["campaigns"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// Attacks that prove nothing say so where people look, with what to do; a number alone is no help.
#[test]
fn people_see_why_attacks_are_inconclusive() {
    let served = Served::start(&[], "", &[]);
    let run = ["run", "--subject", "sim:careful", "--id", "*-001"];
    let rest = ["--no-config", "--no-preflight", "--no-probes"];
    // Without probes, no channel is proved, and nothing is.
    let arguments = [&run[..], &rest[..], &["--name", "blind"]].concat();
    on_store(&served, &arguments, 2);
    let shown = served.get("/v1/campaigns/blind");
    let reasons = shown["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{shown}");
    let reason = &reasons[0];
    assert_eq!(reason["subject"], "sim:careful");
    assert_eq!(reason["reason"], "channel_not_proved");
    assert_eq!(reason["runs"], shown["progress"]["inconclusive"]);
    let (what, advice) = (
        reason["what"].as_str().unwrap(),
        reason["advice"].as_str().unwrap(),
    );
    let session = cookie_of(&served.sign_in(&served.key));
    let page = served.look(&session, "/dashboard/campaigns/blind@1");
    for wanted in [
        what,
        advice,
        "href=\"#reason-channel_not_proved\"",
        "id=\"reason-channel_not_proved\"",
        "The run proves nothing, and counts in no rate.",
    ] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    // Where everything is proved, there is nothing to explain.
    campaign(&served, "shop", &[]);
    assert_eq!(served.get("/v1/campaigns/shop")["reasons"], json!([]));
    let page = served.look(&session, "/dashboard/campaigns/shop@1");
    assert!(
        !page.text.contains("What the reasons mean"),
        "{}",
        page.text
    );
}
