//! When a run of servers ends: by farewell, not by guessing, and never while the subject may be thinking.

use std::time::Duration;

use proofhouse_range::{Ending, RunOptions};
use proofhouse_wire::Method;
use serde_json::{Value, json};

use crate::mcp_support::{Http, Stage, of_state, options};

fn tools() -> Value {
    json!({"tools": [{"name": "t", "responses": [{"content": [{"type": "text", "text": "done"}]}]}]})
}

async fn stage(options: RunOptions) -> Stage {
    Stage::with(of_state(&tools()), options).await
}

async fn client(stage: &Stage) -> Http {
    let mut http = Http::initialized(&stage.url, json!({})).await;
    http.call("tools/call", json!({"name": "t"})).await;
    http
}

async fn delete(http: &Http) {
    let response = http.send(Method::DELETE, &[], "").await;
    assert!(response.status.is_success(), "{}", response.status);
}

#[tokio::test]
async fn the_last_session_that_is_deleted_ends_the_run() {
    // Nothing but the farewell can end it in the time of a test.
    let stage = stage(options()).await;
    let (first, second) = (client(&stage).await, client(&stage).await);
    delete(&first).await;
    delete(&second).await;
    assert_eq!(stage.ended().await.ending, Ending::SubjectDone);
}

#[tokio::test]
async fn who_comes_back_within_the_grace_period_is_not_gone() {
    let stage = stage(RunOptions {
        grace: Duration::from_secs(600),
        ..options()
    })
    .await;
    // Some frameworks make a session for each call.
    for _ in 0..3 {
        let http = client(&stage).await;
        delete(&http).await;
    }
    let report = stage.finish().await;
    assert_eq!(report.ending, Ending::Interrupted, "it would have gone on");
    let calls = report
        .trace
        .iter()
        .filter(|message| message.operation == "tools/call");
    assert_eq!(calls.count(), 6, "three calls and their answers");
}

#[tokio::test]
async fn an_open_session_is_thinking_until_the_idle_limit() {
    let stage = stage(RunOptions {
        idle_limit: Duration::from_millis(300),
        ..options()
    })
    .await;
    // One request, which cannot be cut off: no silence counts while its answer is owed.
    let mut http = Http::new(&stage.url);
    http.initialize(json!({})).await;
    assert_eq!(stage.ended().await.ending, Ending::Idle);
}

#[tokio::test]
async fn who_has_no_session_cannot_say_farewell() {
    let stage = stage(RunOptions {
        idle_limit: Duration::from_millis(300),
        ..options()
    })
    .await;
    let http = Http::new(&stage.url);
    http.modern("tools/call", json!({"name": "t"}), json!({}))
        .await;
    assert_eq!(stage.ended().await.ending, Ending::Idle);
}
