//! The tests of attacks, over loopback: every mode, with good, bad and official peers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod a2a;
mod a2a_client;
mod a2a_peers;
mod a2a_server;
mod ag_ui_client;
mod ag_ui_peers;
mod binding;
mod client_support;
mod endings;
mod facts;
mod four_actors;
mod hostile_subjects;
mod mcp_client;
mod mcp_client_hostile;
mod mcp_client_peers;
mod mcp_client_stdio;
mod mcp_server_delivery;
mod mcp_server_hostile;
mod mcp_server_legacy;
mod mcp_server_modern;
mod mcp_server_peers;
mod mcp_server_stdio;
mod mcp_support;
mod parallel_calls;
mod puppet_support;
mod scenarios;
mod unread;
mod whole_messages;
