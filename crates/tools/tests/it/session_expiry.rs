//! `stateful_session` when sessions expire, against a service that keeps sessions and counts them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use proofhouse_tools::actions::StatefulSession;
use proofhouse_tools::http::HttpClient;
use proofhouse_tools::runtime::{ActionCall, ActionFailure, ActionRuntime};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, json};

use crate::support::*;

/// A service with sessions `s0`, `s1`, …; each has a token of its own.
struct Service {
    server: Server,
    state: Arc<Mutex<Sessions>>,
}

#[derive(Default)]
struct Sessions {
    made: usize,
    live: BTreeSet<usize>,
    /// What the service says to calls in sessions that are not there.
    gone: &'static str,
    /// What it says to every further `create`, if anything.
    create: Option<&'static str>,
    /// The first line of every request.
    log: Vec<String>,
}

impl Service {
    async fn start(gone: &'static str) -> Self {
        let state = Arc::new(Mutex::new(Sessions {
            gone,
            ..Sessions::default()
        }));
        let seen = Arc::clone(&state);
        let server = Server::start(move |_, request| {
            seen.lock().expect("the test is set up").answer(request)
        })
        .await;
        Self { server, state }
    }

    fn execute(&self) -> String {
        let base = format!("http://127.0.0.1:{}", self.server.port);
        format!(
            "stateful_session: {{create: {{method: POST, url: \"{base}/s\"}}, \
             extract: {{id: $.id, token: $.token}}, \
             execute: {{method: POST, url: \"{base}/s/{{session.id}}/run/{{x}}\", \
             headers: {{X-Token: \"{{session.token}}\"}}}}, \
             destroy: {{method: DELETE, url: \"{base}/s/{{session.id}}\"}}}}"
        )
    }

    fn with<T>(&self, look: impl FnOnce(&mut Sessions) -> T) -> T {
        look(&mut self.state.lock().expect("the test is set up"))
    }

    fn log(&self) -> Vec<String> {
        self.with(|sessions| std::mem::take(&mut sessions.log))
    }
}

impl Sessions {
    fn answer(&mut self, request: &str) -> Reply {
        let line = request.lines().next().unwrap_or_default();
        let line = line.trim_end_matches(" HTTP/1.1");
        self.log.push(line.to_owned());
        let number = |text: &str| {
            text.trim_start_matches("/s/s")
                .split('/')
                .next()?
                .parse()
                .ok()
        };
        match line.split_once(' ') {
            Some(("POST", "/s")) => {
                if let Some(status) = self.create {
                    return reply(status, "", "");
                }
                let made = self.made;
                self.made += 1;
                self.live.insert(made);
                let session = json!({"id": format!("s{made}"), "token": format!("tok-en-{made}")});
                json_reply(&session).later(Duration::from_millis(30))
            }
            Some(("DELETE", path)) => match number(path).map(|n: usize| self.live.remove(&n)) {
                Some(true) => reply("204 No Content", "", ""),
                _ => reply("404 Not Found", "", ""),
            },
            Some((_, path)) => match number(path) {
                Some(n) if self.live.contains(&n) => match path.rsplit('/').next() {
                    Some("missing") => {
                        reply("404 Not Found", "", format!("no such file in tok-en-{n}"))
                    }
                    Some("slow") => json_reply(&json!(n)).later(Duration::from_millis(300)),
                    _ => json_reply(&json!(n)),
                },
                // Calls that are made at once have all begun before the first of them is refused.
                _ => reply(self.gone, "", "").later(Duration::from_millis(100)),
            },
            None => Reply::Close,
        }
    }
}

#[tokio::test]
async fn an_expired_session_is_made_again_and_the_call_repeated() {
    for (gone, ended_again) in [
        ("401 Unauthorized", true),
        ("404 Not Found", true),
        ("410 Gone", false),
    ] {
        let service = Service::start(gone).await;
        let task = task(tool(&service.execute()));
        assert_eq!(act(&task, json!({})).await.unwrap().value, json!(0));
        service.with(|sessions| sessions.live.clear());
        assert_eq!(act(&task, json!({})).await.unwrap().value, json!(1));
        assert_eq!(act(&task, json!({})).await.unwrap().value, json!(1));
        assert!(task.teardown().await.is_empty());
        let mut expected = vec![
            "POST /s",
            "POST /s/s0/run/one",
            "POST /s/s0/run/one",
            "POST /s",
            "POST /s/s1/run/one",
            "DELETE /s/s0",
            "POST /s/s1/run/one",
            "DELETE /s/s1",
        ];
        expected.retain(|line| *line != "DELETE /s/s0" || ended_again);
        assert_eq!(service.log(), expected, "{gone}");
        assert!(service.with(|sessions| sessions.live.is_empty()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_see_the_same_session_expire_make_one_new_one() {
    let service = Service::start("404 Not Found").await;
    let task = task(tool(&service.execute()));
    act(&task, json!({})).await.unwrap();
    service.with(|sessions| sessions.live.clear());
    for result in join_all((0..50).map(|_| act(&task, json!({})))).await {
        assert_eq!(result.unwrap().value, json!(1));
    }
    assert!(task.teardown().await.is_empty());
    let (made, live) = service.with(|sessions| (sessions.made, sessions.live.len()));
    assert_eq!((made, live), (2, 0));
}

#[tokio::test]
async fn a_status_about_something_else_costs_no_session() {
    let service = Service::start("410 Gone").await;
    let task = task(tool(&service.execute()));
    for _ in 0..3 {
        let error = act(&task, json!({"x": "missing"})).await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::HttpStatus);
        assert_eq!(error.detail["body"], "no such file in [redacted]");
    }
    // The session that was there first is the one that stays.
    assert_eq!(act(&task, json!({})).await.unwrap().value, json!(0));
    assert_eq!(
        service.log(),
        [
            "POST /s",
            "POST /s/s0/run/missing",
            "POST /s",
            "POST /s/s1/run/missing",
            "DELETE /s/s1",
            "POST /s/s0/run/missing",
            "POST /s/s0/run/missing",
            "POST /s/s0/run/one",
        ]
    );
    // What says nothing about files still says that the session is gone.
    service.with(|sessions| sessions.live.clear());
    assert_eq!(act(&task, json!({})).await.unwrap().value, json!(2));
    assert!(task.teardown().await.is_empty());
    assert!(service.with(|sessions| sessions.live.is_empty()));
}

#[tokio::test]
async fn a_session_that_cannot_be_made_again_is_told_and_ended() {
    let service = Service::start("401 Unauthorized").await;
    let task = task(tool(&service.execute()));
    act(&task, json!({})).await.unwrap();
    service.with(|sessions| {
        sessions.live.clear();
        sessions.create = Some("503 Busy");
    });
    let errors = join_all((0..20).map(|_| act(&task, json!({})))).await;
    let statuses: Vec<u64> = errors
        .into_iter()
        .map(|error| error.unwrap_err().detail["status"].as_u64().unwrap())
        .collect();
    // One tried; the others are told what they were told.
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 19);
    let tried = service
        .log()
        .iter()
        .filter(|line| *line == "POST /s")
        .count();
    assert_eq!(tried, 2);
    service.with(|sessions| sessions.create = None);
    assert_eq!(act(&task, json!({})).await.unwrap().value, json!(1));
    service.with(|sessions| {
        sessions.live.clear();
        sessions.create = Some("503 Busy");
    });
    act(&task, json!({})).await.unwrap_err();
    service.log();
    assert!(task.teardown().await.is_empty());
    assert_eq!(service.log(), ["DELETE /s/s1"]);
}

#[tokio::test]
async fn a_cancelled_renewal_leaves_no_session_behind() {
    let service = Service::start("404 Not Found").await;
    let task = task(tool(&service.execute()));
    act(&task, json!({})).await.unwrap();
    service.with(|sessions| sessions.live.clear());
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.cancel();
    });
    let arguments = Map::from_iter([("x".to_owned(), json!("slow"))]);
    let error = task.invoke("act", arguments, json!({}), cancel).await;
    let error = error.unwrap_err();
    assert_eq!(
        (error.failure, error.outcome_unknown),
        (ActionFailure::Cancelled, true)
    );
    assert!(task.teardown().await.is_empty());
    let (made, live) = service.with(|sessions| (sessions.made, sessions.live.len()));
    assert_eq!((made, live), (2, 0));
}

/// A call that outlives its task sees that the session is gone; it must not make another.
#[tokio::test]
async fn after_the_end_no_session_is_made() {
    let service = Service::start("404 Not Found").await;
    let tool = tool(&service.execute());
    let client = HttpClient::new(&limits(), loopback()).unwrap();
    let (runtime, environment) = (StatefulSession::new(Arc::new(client)), environment());
    let call = ActionCall {
        invocation: "i".to_owned(),
        action: Arc::clone(&tool.actions[0]),
        secrets: environment.secrets(&tool),
        tool,
        parameters: Map::from_iter([("x".to_owned(), json!("one"))]),
        context: json!({}),
        cancel: CancellationToken::new(),
    };
    let session = runtime.initialize(&call, &environment).await.unwrap();
    session.teardown(&environment).await.unwrap();
    let error = session.invoke(&call, &environment).await;
    assert_eq!(error.unwrap_err().detail["status"], 404);
    assert_eq!(
        service.log(),
        ["POST /s", "DELETE /s/s0", "POST /s/s0/run/one"]
    );
}

#[tokio::test]
async fn what_create_made_is_ended_if_it_can_be_named() {
    for (created, path, ended) in [
        (json!({"id": "s0"}), "/{session.id}", Some("DELETE /s/s0")),
        (json!({"token": "tok-en"}), "/{session.id}", None),
        (json!({"token": "tok-en"}), "", Some("DELETE /s")),
        (json!("text"), "", Some("DELETE /s")),
    ] {
        let server = Server::start(move |_, request| match request {
            _ if request.starts_with("POST /s HTTP") => {
                reply("201 Created", "", created.to_string())
            }
            _ => reply("500 Oops", "", "tok-en"),
        })
        .await;
        let base = format!("http://127.0.0.1:{}", server.port);
        let task = task(tool(&format!(
            "stateful_session: {{create: {{method: POST, url: \"{base}/s\"}}, \
             extract: {{id: $.id, token: $.token}}, \
             execute: {{method: GET, url: \"{base}/run\"}}, \
             destroy: {{method: DELETE, url: \"{base}/s{path}\"}}}}"
        )));
        let error = act(&task, json!({})).await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::NoMatch, "{error}");
        assert!(task.teardown().await.is_empty());
        let seen = server.seen();
        let last = seen[1..].first().and_then(|request| request.lines().next());
        let last = last.map(|line| line.trim_end_matches(" HTTP/1.1"));
        assert_eq!(last, ended);
    }
}
