//! A hundred servers, one after the other, leave nothing behind. Alone in its program, because it counts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

#[path = "mcp_support/mod.rs"]
mod mcp_support;

use std::time::Duration;

use mcp_support::*;
use serde_json::json;

/// Not a test of its own: the program starts itself again, and this is the server.
#[test]
fn act_as_a_server() {
    #[expect(clippy::disallowed_methods, reason = "the role of this process")]
    if let Ok(role) = std::env::var(ROLE) {
        server::serve(&role);
    }
}

#[test]
fn a_hundred_starts_and_stops_leave_no_process_and_no_open_file() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cycle = |number: usize| async move {
            let role = ["plain", "modern"][number % 2];
            let task = task(acting(role, ""));
            let text = number.to_string();
            let said = value(&task, "echo", json!({"text": text})).await;
            assert_eq!(said, text);
            // Every tenth leaves something behind that is not its own.
            if number.is_multiple_of(10) {
                value(&task, "fork", json!({})).await;
            }
            end(task).await;
        };
        // The first opens what the process keeps, such as the pipe of its signals.
        cycle(1).await;
        let before = (open_files(), children());
        for number in 0..100 {
            cycle(number).await;
        }
        let mut after = (open_files(), children());
        for _ in 0..50 {
            if after == before {
                break;
            }
            // The end of a task of the runtime may lag behind.
            tokio::time::sleep(Duration::from_millis(50)).await;
            after = (open_files(), children());
        }
        assert_eq!(after, before);
        assert!(after.1.is_empty(), "{after:?}");
    });
}
