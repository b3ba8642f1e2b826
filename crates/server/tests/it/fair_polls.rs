//! Polls beside slow ones: nobody starves.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::engine_http::wait;
use crate::engine_support::{PATIENCE, World, begin};

/// How often each endpoint was asked.
#[derive(Default)]
struct Asked {
    slow: AtomicUsize,
    /// How many slow ones wait at this moment, and the most there were.
    waiting: AtomicUsize,
    most: AtomicUsize,
    quick: AtomicUsize,
}

async fn slow(State(asked): State<Arc<Asked>>) -> Json<Value> {
    struct Leaving(Arc<Asked>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
    asked.slow.fetch_add(1, Ordering::SeqCst);
    let waiting = asked.waiting.fetch_add(1, Ordering::SeqCst) + 1;
    asked.most.fetch_max(waiting, Ordering::SeqCst);
    let _leaving = Leaving(Arc::clone(&asked));
    std::future::pending::<()>().await;
    Json(json!([]))
}

async fn quick(State(asked): State<Arc<Asked>>) -> Json<Value> {
    asked.quick.fetch_add(1, Ordering::SeqCst);
    Json(json!([]))
}

async fn serve(asked: &Arc<Asked>) -> String {
    let router = Router::new()
        .route("/slow", get(slow))
        .route("/quick", get(quick))
        .with_state(Arc::clone(asked));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// A tool for each of these paths, and an agent that has them all.
fn manifests(tools: &[(String, String)]) -> String {
    let mut text = String::new();
    let mut capabilities = String::new();
    for (name, url) in tools {
        let _ = write!(
            text,
            r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: {name}
description: News.
actions:
  - {{name: nothing, description: Does nothing., execute: {{cel: {{expression: "1"}}}}}}
events:
  - name: item
    message: new
    receive: {{poll: {{method: GET, url: "{url}", interval: 1s, detect: response}}}}
---"#
        );
        let _ = write!(capabilities, "\n  {name}: '*'");
    }
    format!(
        "{text}\nkind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\ndescription: Helps.\n\
         prompt: You help.\ncapabilities:{capabilities}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_endpoints_keep_no_poll_from_others() {
    let asked = Arc::new(Asked::default());
    // Two hosts, so that one of them is not slow.
    let (root, other) = (serve(&asked).await, serve(&asked).await);
    let slow = (0..40).map(|n| (format!("slow{n}"), format!("{root}/slow")));
    let mut tools: Vec<_> = slow.collect();
    tools.push(("quick".to_owned(), format!("{other}/quick")));
    let world = World::new(&manifests(&tools));
    let engine = world.engine().await;
    begin(&engine, Some("hello")).await;
    wait("slow polls", || asked.slow.load(Ordering::SeqCst) >= 4).await;
    let before = asked.quick.load(Ordering::SeqCst);
    wait("polls", || asked.quick.load(Ordering::SeqCst) >= before + 5).await;
    let most = asked.most.load(Ordering::SeqCst);
    assert!(most <= 8, "one host has {most} polls at once");
    engine.shutdown(PATIENCE).await;
}
