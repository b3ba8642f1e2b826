//! A hundred servers, one after the other, leave nothing behind. In a process of its own, because it counts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

use std::time::Duration;

use proofhouse_test_support::alone::is_alone;
use proofhouse_test_support::process::{children, open_files};
use serde_json::json;

use crate::mcp_support::*;

#[test]
fn a_hundred_starts_and_stops_leave_no_process_and_no_open_file() {
    if !is_alone(
        module_path!(),
        "a_hundred_starts_and_stops_leave_no_process_and_no_open_file",
    ) {
        return;
    }
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
        for _ in 0..200 {
            if after.0 <= before.0 && after.1 == before.1 {
                break;
            }
            // The end of a task of the runtime may lag behind.
            tokio::time::sleep(Duration::from_millis(50)).await;
            after = (open_files(), children());
        }
        // What the first left open a moment longer may be closed by now, so fewer is as good.
        assert!(after.0 <= before.0, "{after:?} after {before:?}");
        assert!(after.1.is_empty(), "{after:?}");
    });
}
