//! The server itself over HTTP: whether it lives, whether it can work, and what it counts.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::header;
use proofhouse_store::StoreError;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::scraper::{PATIENCE, Scraper};
use super::{Api, store_problem};
use crate::problem::Problem;

/// How long an answer about readiness holds.
const READY_TIME: Duration = Duration::from_secs(1);

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
    // At once: who sends requests goes elsewhere.
    if api.engine().is_draining() {
        return Err(Problem::unavailable("the server is shutting down"));
    }
    let look = async {
        api.store.health().await.map_err(store_problem)?;
        match api.engine().not_ready().await? {
            None => Ok(()),
            Some(reason) => Err(Problem::unavailable(reason)),
        }
    };
    api.readiness.answer(look).await?;
    Ok(Json(HEALTHY))
}

/// Whether the server can work, looked at once for all who ask within a second: the look writes, and nobody needs a key to
/// ask.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), Problem>)>>);

impl Readiness {
    /// What somebody found just now, or what this look finds. Whoever comes while somebody looks waits for them.
    async fn answer(&self, look: impl Future<Output = Result<(), Problem>>) -> Result<(), Problem> {
        let mut known = self.0.lock().await;
        if let Some((at, found)) = &*known
            && at.elapsed() < READY_TIME
        {
            return found.clone();
        }
        let found = look.await;
        *known = Some((Instant::now(), found.clone()));
        found
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
    let counting = async {
        let stats = api.store.stats().await?;
        let without_agent = api.engine().tasks_without_agent().await?;
        api.metrics.tasks_without_agent.set(without_agent);
        Ok::<_, StoreError>(stats)
    };
    let stats = match tokio::time::timeout(PATIENCE, counting).await {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(start_paused = true)]
    async fn one_look_answers_all_who_ask_within_a_second() {
        let (readiness, looks) = (Readiness::default(), AtomicUsize::new(0));
        let ask = |found: Result<(), Problem>| {
            readiness.answer(async {
                looks.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                found
            })
        };
        let answers = futures_util::future::join_all((0..300).map(|_| ask(Ok(())))).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(looks.load(Ordering::SeqCst), 1);
        tokio::time::advance(READY_TIME).await;
        let wrong = Problem::unavailable("the store cannot be used now");
        assert_eq!(ask(Err(wrong.clone())).await, Err(wrong.clone()));
        assert_eq!(ask(Ok(())).await, Err(wrong), "a problem is kept as long");
        assert_eq!(looks.load(Ordering::SeqCst), 2);
    }
}
