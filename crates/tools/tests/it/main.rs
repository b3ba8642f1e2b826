//! The tests of tools: manifests, runtimes, events, tokens, and serving them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod agent_manifest;
mod auth;
mod auth_github;
mod contract;
mod contract_support;
mod error_table;
mod kubernetes_cluster;
mod kubernetes_job;
mod kubernetes_job_hostile;
mod kubernetes_real_cluster;
mod kubernetes_support;
mod lifecycle;
mod manifest;
mod mcp_cycles;
mod mcp_http;
mod mcp_peers;
mod mcp_stdio;
mod mcp_support;
mod mcp_tasks;
mod openapi;
mod openapi_peers;
mod operator;
mod outages;
mod preview;
mod public_examples;
mod receive_events;
mod receive_live;
mod receive_webhook;
mod seed_examples;
mod serve_hostile;
mod serve_legacy;
mod serve_manifest;
mod serve_modern;
mod serve_stdio;
mod serve_support;
mod session_expiry;
mod spans;
mod stateful_session;
mod stateless_http;
mod support;
mod webhook_signers;
