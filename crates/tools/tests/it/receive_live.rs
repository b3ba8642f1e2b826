//! Subscriptions and polls against a server on the loopback address: what it may answer, and what is kept.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use proofhouse_manifest::interpolate::Root;
use proofhouse_manifest::{Bundle, Poll, Receive, Subscription, Tool};
use proofhouse_tools::http::HttpClient;
use proofhouse_tools::receive::EventListener;
use proofhouse_tools::receive::poll::{MAX_ITEMS, PollProblem, PollState, PollStep, step};
use proofhouse_tools::receive::subscription::{
    Active, CALLBACK_PATH, ChannelRequest, Subscribed, Unsubscribed, subscribe, unsubscribe,
};
use proofhouse_tools::runtime::{ActionFailure, ToolLimits};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::retry::RetryPolicy;
use serde_json::{Value, json};

use crate::support::{Reply, Server, environment, json_reply, limits, loopback, reply};

fn at(text: &str) -> Timestamp {
    text.parse().expect("the test is set up")
}

fn now() -> Timestamp {
    at("2026-01-01T12:00:00Z")
}

fn tool(receive: &str) -> Tool {
    let text = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: docs\ndescription: d\n\
         settings: {{properties: {{api_key: {{}}, region: {{}}}}}}\n\
         parameters: {{properties: {{document_id: {{type: string}}}}}}\n\
         events:\n  - name: edit\n    message: m\n    receive:\n{receive}"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}");
    bundle.tools().next().expect("the test is set up").clone()
}

fn listener(tool: Tool) -> EventListener {
    let environment = environment().with(
        Root::Runtime,
        json!({"api_root": "https://agents.example.com"}),
    );
    EventListener {
        tool: Arc::new(tool),
        parameters: json!({"document_id": "doc 1"})
            .as_object()
            .expect("the test is set up")
            .clone(),
        context: Value::Null,
        environment,
        cancel: CancellationToken::new(),
    }
}

fn client() -> HttpClient {
    // The caller of a poll comes back anyway, so nothing is repeated within a step.
    let limits = ToolLimits {
        retry: RetryPolicy {
            attempts: 1,
            ..limits().retry
        },
        max_response_bytes: 2 << 20,
        ..limits()
    };
    HttpClient::new(&limits, loopback()).expect("the test is set up")
}

fn subscription(port: u16) -> (EventListener, Subscription) {
    let listener = listener(tool(&format!(
        r#"      subscription:
        subscribe:
          method: POST
          url: "http://127.0.0.1:{port}/watch/{{parameters.document_id}}"
          headers: {{Authorization: "Bearer {{settings.api_key}}"}}
          json:
            id: "{{subscription.id}}"
            address: "{{runtime.api_root}}/v1/webhooks/events/docs"
            expiration: "{{subscription.expires_at_ms}}"
        unsubscribe:
          method: POST
          url: "http://127.0.0.1:{port}/stop"
          json: {{id: "{{subscription.id}}", resourceId: "{{subscribe.resource_id}}"}}
"#
    )));
    let Receive::Subscription(subscription) = &listener.tool.events[0].receive else {
        unreachable!("the test is set up");
    };
    let subscription = subscription.clone();
    (listener, subscription)
}

async fn open(server: &Server) -> (Subscribed, ChannelRequest) {
    let (listener, subscription) = subscription(server.port);
    let opening =
        ChannelRequest::new(now(), Duration::from_secs(3600)).expect("the test is set up");
    let opened = subscribe(&client(), &subscription, &listener, &opening, now()).await;
    (opened, opening)
}

#[tokio::test]
async fn a_channel_is_opened_and_closed_with_what_each_knows() {
    let server = Server::start(|_, request| {
        if request.starts_with("POST /watch") {
            json_reply(&json!({
                "resourceId": "r-1", "expiration": "1767276000000", "echo": "sk-secret/1",
            }))
        } else {
            reply("204 No Content", "", "")
        }
    })
    .await;
    let (opened, opening) = open(&server).await;
    let Subscribed::Active(Active {
        response,
        expires_at,
        renew_at,
    }) = opened
    else {
        unreachable!("{opened:?}");
    };
    // Two hours were granted; renewal is at 80 % of them.
    assert_eq!(expires_at, at("2026-01-01T14:00:00Z"));
    assert_eq!(renew_at, at("2026-01-01T13:36:00Z"));
    assert_eq!(
        response,
        json!({"resourceId": "r-1", "expiration": "1767276000000", "echo": "[redacted]"})
    );
    let asked = &server.seen()[0];
    assert!(asked.starts_with("POST /watch/doc%201 "), "{asked}");
    // The base of the address carries what tells this channel from others, and the path is the manifest's.
    let address = format!(
        "https://agents.example.com{CALLBACK_PATH}/{}/v1/webhooks/events/docs",
        opening.callback
    );
    assert!(asked.contains(&address), "{asked}");
    assert_eq!(opening.callback.len(), 64);
    assert!(
        asked.contains(&format!("\"id\":\"{}\"", opening.id)),
        "{asked}"
    );
    assert!(asked.contains("\"expiration\":1767272400000"), "{asked}");

    let (listener, subscription) = subscription(server.port);
    let closed = unsubscribe(&client(), &subscription, &listener, &opening, &response).await;
    assert_eq!(closed, Unsubscribed::Gone);
    let stopped = &server.seen()[1];
    assert!(stopped.contains("\"resourceId\":\"r-1\""), "{stopped}");
    assert!(stopped.contains(&opening.id), "{stopped}");
    // Without the answer, nobody can name the channel.
    let closed = unsubscribe(&client(), &subscription, &listener, &opening, &Value::Null).await;
    assert!(
        matches!(closed, Unsubscribed::Impossible { .. }),
        "{closed:?}"
    );
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn every_channel_has_an_id_of_its_own() {
    let ids: BTreeSet<String> = (0..100)
        .map(|_| {
            ChannelRequest::new(now(), Duration::from_secs(60))
                .expect("the test is set up")
                .id
        })
        .collect();
    assert_eq!(ids.len(), 100);
    assert!(
        ids.iter()
            .all(|id| id.len() == 36 && id.as_bytes()[14] == b'4')
    );
}

#[tokio::test]
async fn what_is_not_granted_is_what_was_asked_for() {
    for body in ["", "ok", "{\"expiration\": \"never\"}", "[]"] {
        let server =
            Server::start(move |_, _| reply("200 OK", "content-type: application/json\r\n", body))
                .await;
        let (opened, opening) = open(&server).await;
        let Subscribed::Active(active) = opened else {
            unreachable!("{opened:?}");
        };
        assert_eq!(active.expires_at, opening.expires_at, "{body}");
        assert_eq!(active.renew_at, at("2026-01-01T12:48:00Z"));
    }
    // A platform that grants an instant is not asked without end.
    let server = Server::start(|_, _| json_reply(&json!({"expires_in": 1}))).await;
    let (opened, _) = open(&server).await;
    assert!(
        matches!(opened, Subscribed::Active(active) if active.renew_at == at("2026-01-01T12:00:10Z"))
    );
}

#[tokio::test]
async fn what_may_have_been_opened_is_told_from_what_was_not() {
    for (status, expected) in [
        ("400 Bad Request", "failed"),
        ("403 Forbidden", "failed"),
        ("429 Too Many Requests", "failed"),
        ("503 Service Unavailable", "failed"),
        ("500 Internal Server Error", "unknown"),
        ("504 Gateway Timeout", "unknown"),
    ] {
        let server = Server::start(move |_, _| reply(status, "", "sk-secret/1")).await;
        let (opened, _) = open(&server).await;
        let (found, error) = match opened {
            Subscribed::Failed { error } => ("failed", error),
            Subscribed::Unknown { error } => ("unknown", error),
            Subscribed::Active(active) => unreachable!("{active:?}"),
        };
        assert_eq!(found, expected, "{status}");
        assert!(!format!("{error:?}").contains("sk-secret"), "{error:?}");
    }
    let broken = Server::start(|_, _| Reply::Close).await;
    let silent = Server::start(|_, _| Reply::Silence).await;
    let endless = Server::start(|_, _| Reply::Endless(&[b'x'; 65_536], Duration::ZERO)).await;
    for server in [broken, silent, endless] {
        let (opened, _) = open(&server).await;
        assert!(matches!(opened, Subscribed::Unknown { .. }), "{opened:?}");
        assert_eq!(server.seen().len(), 1);
    }
    // Nobody is there, so nothing was opened.
    let (listener, subscription) = subscription(1);
    let opening = ChannelRequest::new(now(), Duration::from_secs(60)).expect("the test is set up");
    let opened = subscribe(&client(), &subscription, &listener, &opening, now()).await;
    assert!(
        matches!(&opened, Subscribed::Failed { error } if error.failure == ActionFailure::Unreachable)
    );
}

#[tokio::test]
async fn closing_is_repeated_until_the_channel_is_gone() {
    for (status, expected) in [
        ("200 OK", "gone"),
        ("404 Not Found", "gone"),
        ("410 Gone", "gone"),
        ("500 Internal Server Error", "failed"),
        ("401 Unauthorized", "failed"),
    ] {
        let server = Server::start(move |_, _| reply(status, "", "")).await;
        let (listener, subscription) = subscription(server.port);
        let opening =
            ChannelRequest::new(now(), Duration::from_secs(60)).expect("the test is set up");
        let response = json!({"resourceId": "r"});
        let found =
            match unsubscribe(&client(), &subscription, &listener, &opening, &response).await {
                Unsubscribed::Gone => "gone",
                Unsubscribed::Failed { .. } => "failed",
                Unsubscribed::Impossible { .. } => "impossible",
            };
        assert_eq!(found, expected, "{status}");
    }
}

fn poll(port: u16, detect: &str) -> (EventListener, Poll) {
    let listener = listener(tool(&format!(
        r#"      poll:
        method: GET
        url: "http://127.0.0.1:{port}/feed/{{parameters.document_id}}"
        headers: {{Authorization: "Bearer {{settings.api_key}}"}}
        interval: 60s
        key: item.id
        detect: "{detect}"
"#
    )));
    let Receive::Poll(poll) = &listener.tool.events[0].receive else {
        unreachable!("the test is set up");
    };
    let poll = poll.clone();
    (listener, poll)
}

async fn ask(server: &Server, detect: &str, state: &PollState, now: Timestamp) -> PollStep {
    let (listener, poll) = poll(server.port, detect);
    step(&client(), &poll, &listener, state, now, 0.5).await
}

fn ids(step: &PollStep) -> Vec<i64> {
    let ids = step
        .items
        .iter()
        .map(|item| item.item["id"].as_i64().expect("the test is set up"));
    ids.collect()
}

/// A feed that has one more item each time it is asked.
fn feed(number: usize) -> Value {
    let item = |id: usize| json!({"id": id, "at": format!("2026-01-01T12:{id:02}:30.000Z")});
    json!({"items": (0..=number).map(item).collect::<Vec<_>>()})
}

#[tokio::test]
async fn the_first_poll_is_the_baseline_and_each_item_fires_once() {
    let server = Server::start(|number, _| json_reply(&feed(number + 2))).await;
    let detect = "response.items.filter(i, i.at > poll.last_fetched_at)";
    let first = ask(&server, detect, &PollState::default(), now()).await;
    assert!(first.items.is_empty() && first.problem.is_none());
    assert_eq!(first.state.seen.len(), 3);
    assert_eq!(first.wait, Duration::from_secs(60));
    let second = ask(&server, detect, &first.state, at("2026-01-01T12:03:40Z")).await;
    assert_eq!(ids(&second), [3]);
    // The state is what counts: from the same one, the same step has the same result.
    let again = ask(&server, detect, &first.state, at("2026-01-01T12:04:40Z")).await;
    assert_eq!(ids(&again), [3, 4]);
    let third = ask(&server, detect, &second.state, at("2026-01-01T12:05:40Z")).await;
    assert_eq!(ids(&third), [4, 5]);
    assert!(server.seen()[0].starts_with("GET /feed/doc%201 "));
    let stored = serde_json::to_string(&third.state).expect("the test is set up");
    assert_eq!(
        serde_json::from_str::<PollState>(&stored).expect("the test is set up"),
        third.state
    );
    assert_eq!(
        serde_json::from_str::<PollState>("{}").expect("the test is set up"),
        PollState::default()
    );
}

/// The expression of the specification, with times as feeds have them.
#[tokio::test]
async fn times_are_compared_however_they_are_written() {
    for (old, new) in [
        (json!("2026-01-01T11:00:00Z"), json!("2026-01-01T12:30:00Z")),
        // As texts, these two would be the other way round.
        (
            json!("2026-01-01T13:00:00+02:00"),
            json!("2026-01-01T08:30:00-04:00"),
        ),
        (json!(1_767_265_200), json!(1_767_270_600)),
        (json!(1_767_265_200_000_i64), json!(1_767_270_600_000.5)),
    ] {
        let items = json!({"items": [{"id": 1, "at": old}, {"id": 2, "at": new}]});
        let server = Server::start(move |_, _| json_reply(&items)).await;
        let state = PollState {
            last_fetched_at: Some(now()),
            ..PollState::default()
        };
        for detect in [
            "i.at > poll.last_fetched_at",
            "poll.last_fetched_at <= i.at",
        ] {
            let detect = format!("response.items.filter(i, {detect})");
            let found = ask(&server, &detect, &state, at("2026-01-01T13:00:00Z")).await;
            assert_eq!(ids(&found), [2], "{detect} {old} {:?}", found.problem);
            let item = &found.items[0].item;
            assert_eq!(item["at"], new, "what fires is as it came");
        }
    }
}

#[tokio::test]
async fn an_item_that_turns_up_late_is_still_found() {
    let server = Server::start(|number, _| {
        let mut items = vec![json!({"id": 1, "at": "2026-01-01T11:00:00.000Z"})];
        if number > 0 {
            // It bears a time from before the first poll, which did not show it yet.
            items.push(json!({"id": 2, "at": "2026-01-01T11:59:50.000Z"}));
        }
        json_reply(&json!({"items": items}))
    })
    .await;
    let detect = "response.items.filter(i, i.at > poll.last_fetched_at)";
    let first = ask(&server, detect, &PollState::default(), now()).await;
    let second = ask(&server, detect, &first.state, at("2026-01-01T12:01:00Z")).await;
    assert_eq!(ids(&second), [2]);
    let third = ask(&server, detect, &second.state, at("2026-01-01T12:01:30Z")).await;
    assert!(third.items.is_empty());
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again() {
    let server = Server::start(|number, request| {
        let known = request.to_ascii_lowercase().contains("if-none-match: \"v1\"")
            && request.to_ascii_lowercase().contains("if-modified-since: thu, 01 jan 2026 10:00:00 gmt");
        match (known, number) {
            (true, _) => reply("304 Not Modified", "", ""),
            (false, _) => reply(
                "200 OK",
                "content-type: application/json\r\netag: \"v1\"\r\nlast-modified: Thu, 01 Jan 2026 10:00:00 GMT\r\n",
                feed(0).to_string(),
            ),
        }
    })
    .await;
    let first = ask(&server, "response.items", &PollState::default(), now()).await;
    assert_eq!(first.state.etag.as_deref(), Some("\"v1\""));
    let later = at("2026-01-01T12:01:00Z");
    let second = ask(&server, "response.items", &first.state, later).await;
    assert!(
        second.items.is_empty() && second.problem.is_none(),
        "{second:?}"
    );
    assert_eq!(second.state.last_fetched_at, Some(later));
    assert_eq!(second.state.seen, first.state.seen);
    // A tag that reads like a reference is not filled in.
    let odd = PollState {
        etag: Some("\"{settings.api_key}\"".to_owned()),
        ..first.state.clone()
    };
    ask(&server, "response.items", &odd, later).await;
    let last = server
        .seen()
        .pop()
        .expect("the test is set up")
        .to_ascii_lowercase();
    assert!(!last.contains("if-none-match"), "{last}");
    // Without a baseline there is nothing that could be unchanged.
    let server = Server::start(|_, _| reply("304 Not Modified", "", "")).await;
    let found = ask(&server, "response.items", &PollState::default(), now()).await;
    assert!(found.problem.is_some() && !found.state.has_baseline());
}

#[tokio::test]
async fn failures_back_off_and_change_nothing_else() {
    let state = PollState {
        last_fetched_at: Some(now()),
        etag: Some("\"v1\"".to_owned()),
        seen: ["a".to_owned()].into(),
        ..PollState::default()
    };
    let server = Server::start(|_, _| reply("500 Internal Server Error", "", "sk-secret/1")).await;
    let (mut failing, mut waits) = (state.clone(), Vec::new());
    for _ in 0..8 {
        let found = ask(&server, "response.items", &failing, now()).await;
        assert!(found.items.is_empty());
        assert!(!format!("{:?}", found.problem).contains("sk-secret"));
        waits.push(found.wait.as_secs());
        failing = found.state;
    }
    assert_eq!(waits, [120, 240, 480, 960, 1920, 3600, 3600, 3600]);
    assert_eq!(
        PollState {
            failures: 0,
            ..failing.clone()
        },
        state
    );
    let server = Server::start(|_, _| json_reply(&json!({"items": []}))).await;
    let found = ask(&server, "response.items", &failing, now()).await;
    assert_eq!(
        (found.state.failures, found.wait),
        (0, Duration::from_secs(60))
    );

    for (header, expected) in [
        ("600", 600),
        ("Thu, 01 Jan 2026 12:20:00 GMT", 1_200),
        ("99999999999", 86_400),
        ("1", 120),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 120),
        ("soon", 120),
    ] {
        let headers = format!("retry-after: {header}\r\n");
        let server = Server::start(move |_, _| reply("429 Too Many Requests", &headers, "")).await;
        let found = ask(&server, "response.items", &state, now()).await;
        assert_eq!(found.wait, Duration::from_secs(expected), "{header}");
    }
}

#[tokio::test]
async fn garbage_is_a_problem_and_loses_nothing() {
    let state = PollState {
        last_fetched_at: Some(now()),
        ..PollState::default()
    };
    let check = async |body: String, detect: &str| {
        let server =
            Server::start(move |_, _| reply("200 OK", "content-type: application/json\r\n", &body))
                .await;
        let found = ask(&server, detect, &state, now()).await;
        assert!(found.items.is_empty());
        assert_eq!(
            PollState {
                failures: 0,
                ..found.state
            },
            state
        );
        found.problem.expect("the test is set up")
    };
    for (body, detect) in [("<html>", "response.items"), ("{", "response.items")] {
        let problem = check(body.to_owned(), detect).await;
        assert!(matches!(problem, PollProblem::Request(_)), "{problem:?}");
    }
    for (body, detect) in [
        ("{}", "response.items"),
        ("[]", "response[0]"),
        ("{}", "1 / 0"),
    ] {
        let problem = check(body.to_owned(), detect).await;
        assert!(matches!(problem, PollProblem::Detect(_)), "{problem:?}");
    }
    for (detect, kind) in [
        ("'x'", "a text"),
        ("{'a': 1}", "an object"),
        ("null", "null"),
        ("7", "a number"),
    ] {
        assert_eq!(
            check("{}".to_owned(), detect).await,
            PollProblem::NotAList(kind)
        );
    }
    let many = format!("[{}0]", "0,".repeat(6_000));
    assert_eq!(check(many, "response").await, PollProblem::TooMany(6_001));
    let huge = format!("[{}0]", "0,".repeat(1_500_000));
    assert!(matches!(
        check(huge, "response").await,
        PollProblem::Request(_)
    ));
}

#[tokio::test]
async fn a_first_answer_that_is_too_long_is_remembered_as_far_as_it_is_new() {
    let server = Server::start(|number, _| {
        let old = (0..6_000).map(|id| json!({"id": id, "at": "2025-01-01T00:00:00.000Z"}));
        let new = json!({"id": 9_999, "at": "2026-01-01T12:00:30.000Z"});
        let items: Vec<Value> = old.chain((number > 0).then_some(new)).collect();
        json_reply(&json!({"items": items}))
    })
    .await;
    let detect = "response.items.filter(i, i.at > poll.last_fetched_at)";
    let first = ask(&server, detect, &PollState::default(), now()).await;
    assert_eq!(first.problem, None);
    assert!(first.state.has_baseline());
    let second = ask(&server, detect, &first.state, at("2026-01-01T12:01:00Z")).await;
    assert_eq!(ids(&second), [9_999]);
}

#[tokio::test]
async fn more_than_one_step_may_hold_comes_in_the_next_ones() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = Server::start(move |_, request| {
        count.fetch_add(1, Ordering::SeqCst);
        assert!(!request.to_ascii_lowercase().contains("if-none-match"));
        let items: Vec<Value> = (0..2_500).map(|id| json!({"id": id})).collect();
        reply(
            "200 OK",
            "content-type: application/json\r\netag: \"v1\"\r\n",
            json!({"items": items}).to_string(),
        )
    })
    .await;
    let mut state = PollState {
        last_fetched_at: Some(now()),
        ..PollState::default()
    };
    let mut fired = Vec::new();
    for round in 0..3 {
        let found = ask(
            &server,
            "response.items",
            &state,
            at("2026-01-01T13:00:00Z"),
        )
        .await;
        assert_eq!(found.more, round < 2);
        assert!(found.items.len() <= MAX_ITEMS);
        if found.more {
            assert_eq!(found.state.last_fetched_at, Some(now()));
            assert_eq!(found.wait, Duration::from_secs(1));
        }
        fired.extend(ids(&found));
        state = found.state;
    }
    assert_eq!(fired, (0..2_500).collect::<Vec<_>>());
    assert_eq!(state.etag.as_deref(), Some("\"v1\""));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_step_can_be_cancelled() {
    let server = Server::start(|_, _| Reply::Held).await;
    let (mut listener, poll) = poll(server.port, "response.items");
    let cancel = CancellationToken::new();
    listener.cancel = cancel.clone();
    let (client, state) = (client(), PollState::default());
    let asking = step(&client, &poll, &listener, &state, now(), 0.5);
    let ending = async {
        while server.held.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (found, ()) = tokio::join!(asking, ending);
    assert!(
        matches!(found.problem, Some(PollProblem::Request(error)) if error.failure == ActionFailure::Cancelled)
    );
}
