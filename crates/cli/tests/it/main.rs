//! The tests of the binary: its commands as processes, and the repository it lies in.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod agent;
mod architecture;
mod attack;
mod book;
mod campaign_real_cluster;
mod campaigns;
mod canaries;
mod chart_real_cluster;
mod commands;
mod config;
mod dashboard;
mod demo_service;
mod deploy;
mod documentation;
mod drive;
mod durations;
mod earned;
mod explain_verdict;
mod exposure;
mod fleet;
mod front_door;
mod guard;
mod guard_http;
mod guard_session;
mod hostile_subjects;
mod init;
mod kill;
mod lsp;
mod messages;
mod model_serve;
mod outcomes;
mod packaging;
mod probes;
mod public_documents;
mod real_agents;
mod recipes;
mod replay;
mod resume;
mod run;
mod run_guard;
mod scan;
mod scenario_cases;
mod scenario_documents;
mod scenarios;
mod serve;
mod serve_access;
mod serve_audit;
mod serve_campaigns;
mod serve_edge;
mod serve_full_disk;
mod serve_metrics;
mod serve_oidc;
mod serve_retention;
mod serve_review;
mod serve_tenants;
mod serve_traces;
mod serve_upgrade;
mod serve_webhooks;
mod sources;
mod subjects;
mod subjects_support;
mod support;
mod tool;
mod tool_login;
mod tool_manifests;
mod tool_operator;
mod tool_serve;
mod tool_serve_peers;
mod trust;
mod unearned;
mod wrong_greens;
