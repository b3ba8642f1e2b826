//! The server itself over HTTP: whether it lives, whether it can work, and what it counts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::header;
use serde::Serialize;
use utoipa::ToSchema;

use super::scraper::{PATIENCE, Scraper};
use super::{Api, store_problem};
use crate::problem::Problem;

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// The version of the program.
    version: &'static str,
}

const HEALTHY: Health = Health {
    status: "ok",
    version: env!("CARGO_PKG_VERSION"),
};

/// Whether the process lives
#[utoipa::path(get, path = "/v1/health", tag = "server", responses((status = 200, body = Health)))]
pub(super) async fn health() -> Json<Health> {
    Json(HEALTHY)
}

/// Whether it can work: the store can be written, and acknowledged work goes on
#[utoipa::path(
    get, path = "/v1/ready", tag = "server",
    responses((status = 200, body = Health), (status = 503, body = Problem))
)]
pub(super) async fn ready(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    api.store.health().await.map_err(store_problem)?;
    match api.engine().not_ready().await? {
        None => Ok(Json(HEALTHY)),
        Some(reason) => Err(Problem::unavailable(reason)),
    }
}

/// What is counted, for Prometheus
#[utoipa::path(
    get, path = "/v1/metrics", tag = "server", security(("key" = [])),
    responses(
        (status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn metrics(
    State(api): State<Arc<Api>>,
    _: Scraper,
) -> ([(header::HeaderName, &'static str); 1], String) {
    let stats = match tokio::time::timeout(PATIENCE, api.store.stats()).await {
        Ok(Ok(stats)) => Some(stats),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store cannot be counted");
            None
        }
        Err(_) => {
            tracing::warn!("the store does not answer when it is to be counted");
            None
        }
    };
    api.metrics.observe(stats.as_ref());
    // A store that does not answer is told by `store_up`.
    let _ = tokio::time::timeout(PATIENCE, api.engine().progress()).await;
    let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, form)], api.metrics.text())
}
