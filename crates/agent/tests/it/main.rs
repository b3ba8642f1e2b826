//! The tests of running agents: models, tasks, and the protocols they are served by.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod bindings;
mod listing;
mod mock_llm;
mod model_server;
mod players;
mod providers;
mod record;
mod remote;
mod searched_api;
mod serve_a2a;
mod serve_ag_ui;
mod serve_mcp;
mod serve_peers;
mod served;
mod simulations;
mod support;
mod task;
mod task_delegated;
mod task_journal;
mod tasks;
mod vectors;
