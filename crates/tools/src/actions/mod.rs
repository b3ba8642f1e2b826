//! The action runtimes: one file or directory each, and one row each in the table below.

mod cel;
pub(crate) mod exchange;
mod kubernetes_job;
mod mcp;
mod openapi;
mod response;
mod session;
mod stateful_session;
mod stateless_http;

use std::sync::Arc;

use proofhouse_manifest::BackendKind;

use crate::runtime::{ActionError, ActionRuntime, Setup};

pub use cel::CelRuntime;
pub use kubernetes_job::{
    Cluster, ClusterApi, ClusterError, KubernetesJobs, MANAGED_BY, OWNER, is_dns_label, plain_label,
};
pub use mcp::{McpAuthorization, McpRuntime};
pub use stateful_session::StatefulSession;

/// The runtime of a kind of backend. What an operator configures comes later, with
/// [`Runtimes::with`](crate::runtime::Runtimes::with).
pub(crate) fn runtime(
    kind: BackendKind,
    setup: &Setup<'_>,
) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    match kind {
        BackendKind::Cel => cel::runtime(setup),
        BackendKind::StatelessHttp => stateless_http::runtime(setup),
        BackendKind::StatefulSession => stateful_session::runtime(setup),
        BackendKind::OpenApi => openapi::runtime(setup),
        BackendKind::Mcp => mcp::runtime(setup),
        BackendKind::KubernetesJob => kubernetes_job::runtime(setup),
    }
}
