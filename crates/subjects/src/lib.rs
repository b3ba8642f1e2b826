//! Starts whatever is under test: simulations, agents of manifests, bare models, commands and agents that run already.
//!
//! A [`SubjectSpec`](spec::SubjectSpec) says who a subject is, [`open()`] makes a [`Subject`] of it, and a campaign
//! starts that for every run. This is the one library that knows both sides, the range that attacks and the agent that
//! is attacked; they still meet only over sockets and pipes.

mod agent;
pub mod agent_models;
pub mod agent_setup;
pub mod bundles;
pub mod call_target;
pub mod call_trace;
pub mod client_authorization;
mod command;
mod digest;
pub mod discover;
mod endpoint;
mod guarded;
pub mod headers;
pub mod host;
pub mod login;
mod mcp_config;
pub mod models;
mod notice;
mod open;
pub mod operator;
pub mod placeholders;
mod prompt_delivery;
mod reply_watch;
pub mod spec;
mod subject;
pub mod tool_listing;
pub mod tool_manifests;

use std::sync::Arc;

pub use guarded::{GuardedSubject, STOCK_POLICY, is_guardable};
pub use mcp_config::{InPlaceError, McpConfigError, RewriteError};
pub use notice::Notice;
pub use open::{
    MODEL_PREFIX, OpenContext, SIMULATIONS, SubjectOpenError, open, without_credentials,
};
pub use proofhouse_manifest::interpolate::Sealed;
pub use subject::{
    BenignOffers, GuardCounts, GuardInfo, LEFT_RUNNING, LiveSubject, Pace, RunContext, Shutdown,
    Subject, SubjectAnswer, SubjectError, SubjectInfo,
};

/// Looks up a variable of the environment. Only the binary reads it; it passes this in.
pub type EnvironmentLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
