//! The HTTP API: tasks, events, manifests, campaigns, health and metrics, described by the OpenAPI text that it serves.

mod audit;
mod audit_note;
mod caller;
mod campaign_reports;
mod campaign_stream;
mod campaign_views;
mod campaigns;
mod description;
mod events;
mod extract;
mod health;
mod idempotency;
mod listening;
mod manifests;
mod middleware;
mod operations;
mod review_answers;
mod scraper;
mod sessions;
mod sign_in_limit;
mod stream;
mod stream_access;
mod stream_budget;
mod tasks;
mod tenant;
mod views;
mod webhooks;

use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use axum::Router;
use proofhouse_store::{Store, StoreError};
use proofhouse_tools::receive::subscription::CALLBACK_PATH;
use proofhouse_wire::TrustedProxies;
use proofhouse_wire::connection_limiter::ConnectionLimits;
use proofhouse_wire::sync::{read, write};
use tokio::sync::Semaphore;

pub(crate) use audit_note::AuditNote;
pub(crate) use caller::{COOKIE, Caller, cookie, recognise, signed_in, take_request};
pub(crate) use campaign_reports::{BaselineQuery, compared, report_page};
pub(crate) use campaign_stream::CAMPAIGN_LOOK;
pub(crate) use campaign_views::{CampaignDetailView, SuccessView, TrendPointView};
pub(crate) use campaigns::{detail as campaign_detail, trend_of};
pub use description::description;
pub(crate) use extract::{JsonBody, Path, Query, whole};
pub(crate) use operations::{
    ReviewAnswer, cancel, cancel_campaign, decide, interrupt, replay, say, start_campaign,
};
pub(crate) use review_answers::{ReviewAnswerView, answers};
pub(crate) use sessions::{
    LIFETIME, SessionOwner, SignedInPerson, begin as begin_session, form_token, is_form_token,
};
pub(crate) use sign_in_limit::{count_failed_sign_in, take_way_to_provider};
pub(crate) use stream::KEEP_ALIVE;
pub(crate) use stream_access::AccessWatch;
pub use stream_budget::StreamLimits;
pub(crate) use stream_budget::{HeldBytes, StreamPermit};
pub(crate) use tenant::TurnPage;
pub(crate) use views::{
    EventDetailView, EventView, ManifestView, TaskView, TriggerView, TurnView, moment,
};

use crate::engine::{Engine, EngineError};
use crate::metrics::Metrics;
use crate::oidc::IdentityProvider;
use crate::problem::Problem;
use crate::rate::{RateLimiter, RateQuota};
use stream_access::StreamAccess;
use stream_budget::StreamBudget;

/// What the API is told when it is built.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// No key is asked for. Only for loopback addresses.
    pub open: bool,
    /// Where the API listens, for checks of where requests come from.
    pub address: SocketAddr,
    /// Whether it is spoken to over TLS; browsers then send the cookie of the dashboard over nothing else.
    pub tls: bool,
    /// How much the holder of a key may ask; whoever has none that is known may try a tenth of it.
    pub rate: RateQuota,
    /// How much one address may send to the webhooks.
    pub webhook_rate: RateQuota,
    /// The most bytes a webhook may have.
    pub max_webhook_bytes: usize,
    /// Names under which the API is reached, such as that of a proxy before it. With none, it depends on the address.
    pub allowed_hosts: Vec<String>,
    /// How many streams there may be.
    pub streams: StreamLimits,
}

impl ApiConfig {
    /// What suits most, at this address.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self {
            open: false,
            address,
            tls: false,
            rate: RateQuota {
                burst: 200,
                per_second: 100.0,
            },
            webhook_rate: RateQuota {
                burst: 10_000,
                per_second: 5_000.0,
            },
            max_webhook_bytes: 1 << 20,
            allowed_hosts: Vec::new(),
            streams: StreamLimits::within(ConnectionLimits::default()),
        }
    }
}

/// What all handlers share.
pub struct Api {
    pub(crate) store: Arc<Store>,
    engine: Arc<Engine>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) config: ApiConfig,
    pub(crate) rate: RateLimiter,
    pub(crate) webhook_rate: RateLimiter,
    pub(crate) sign_in_rate: RateLimiter,
    /// Wrong keys of each address.
    pub(crate) wrong_keys: RateLimiter,
    pub(crate) scrapers: scraper::Scrapers,
    identity: RwLock<Option<Arc<IdentityProvider>>>,
    proxies: RwLock<Arc<TrustedProxies>>,
    /// What streams may take.
    pub(crate) streams: Arc<StreamBudget>,
    /// Who follows them.
    pub(crate) access: StreamAccess,
    readiness: health::Readiness,
    /// The turn to make a report of a campaign.
    pub(crate) reports: Semaphore,
}

/// Attempts to sign in that fail: a person needs few.
const SIGN_IN_RATE: RateQuota = RateQuota {
    burst: 10,
    per_second: 0.5,
};

/// Wrong keys: a tenth of what a right one may ask.
fn wrong_keys(rate: RateQuota) -> RateQuota {
    RateQuota {
        burst: (rate.burst / 10).max(1),
        per_second: rate.per_second / 10.0,
    }
}

/// Paths of the API's address that are answered whatever others hold: those who watch the server and those who sign in get in.
const ESSENTIAL: [&str; 7] = [
    "/v1/health",
    "/v1/ready",
    "/v1/metrics",
    "/dashboard/sign-in",
    "/dashboard/oidc/begin",
    "/dashboard/oidc/callback",
    "/dashboard/style.css",
];

/// Whether a path of the API's address is answered although there is no room for another connection.
#[must_use]
pub fn is_essential(path: &str) -> bool {
    ESSENTIAL.contains(&path)
}

impl Api {
    /// An API over an engine and its store.
    #[must_use]
    pub fn new(engine: Arc<Engine>, metrics: Arc<Metrics>, config: ApiConfig) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(engine.store()),
            streams: StreamBudget::new(config.streams, &metrics),
            engine,
            metrics,
            rate: RateLimiter::new(config.rate),
            wrong_keys: RateLimiter::new(wrong_keys(config.rate)),
            webhook_rate: RateLimiter::new(config.webhook_rate),
            sign_in_rate: RateLimiter::new(SIGN_IN_RATE),
            scrapers: scraper::Scrapers::default(),
            identity: RwLock::default(),
            proxies: RwLock::default(),
            access: StreamAccess::default(),
            readiness: health::Readiness::default(),
            reports: Semaphore::new(1),
            config,
        })
    }

    /// The engine, for what can be done at any time.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for what is not begun any more once it is shutting down.
    pub(crate) fn running_engine(&self) -> Result<&Engine, Problem> {
        if self.engine.is_stopping() {
            return Err(Problem::unavailable("the server is shutting down"));
        }
        Ok(&self.engine)
    }

    /// Whether people can sign in with an identity provider.
    pub(crate) fn has_identity_provider(&self) -> bool {
        read(&self.identity).is_some()
    }

    /// The identity provider that people sign in with.
    pub(crate) fn identity_provider(&self) -> Option<Arc<IdentityProvider>> {
        read(&self.identity).clone()
    }

    /// Has people sign in with this identity provider from now on, or with none.
    pub fn set_identity_provider(&self, provider: Option<IdentityProvider>) {
        *write(&self.identity) = provider.map(Arc::new);
    }

    /// The proxies that are believed about whom they speak for.
    pub(crate) fn trusted_proxies(&self) -> Arc<TrustedProxies> {
        Arc::clone(&read(&self.proxies))
    }

    /// Believes these proxies from now on, and no others.
    pub fn set_trusted_proxies(&self, proxies: TrustedProxies) {
        *write(&self.proxies) = Arc::new(proxies);
    }

    /// Whether browsers reach it over TLS only.
    pub(crate) fn is_reached_over_tls(&self) -> bool {
        let provider = self.identity_provider();
        self.config.tls || provider.is_some_and(|provider| provider.is_secure())
    }

    /// The routes of the API and the dashboard.
    pub fn router(self: &Arc<Self>) -> Router {
        let (router, text) = description::routes();
        let text = Arc::new(text.to_string());
        let router = router
            .route(
                "/v1/openapi.json",
                axum::routing::get(move || openapi(Arc::clone(&text))),
            )
            .merge(crate::dashboard::router());
        middleware::around(router, self, middleware::RouterSide::Api)
    }

    /// The routes of the webhooks, which may have an address of their own.
    pub fn webhook_router(self: &Arc<Self>) -> Router {
        let tools = || axum::routing::post(webhooks::receive).get(webhooks::receive);
        let channels = || axum::routing::post(webhooks::push).get(webhooks::push);
        let router = Router::new()
            .route("/v1/webhooks/events/{tool}", tools())
            .route("/v1/webhooks/events/{namespace}/{tool}", tools())
            .route(&format!("{CALLBACK_PATH}/{{callback}}"), channels())
            .route(
                &format!("{CALLBACK_PATH}/{{callback}}/{{*path}}"),
                channels(),
            );
        middleware::around(router, self, middleware::RouterSide::Webhooks)
    }
}

async fn openapi(text: Arc<String>) -> ([(http::HeaderName, &'static str); 1], String) {
    let form = [(http::header::CONTENT_TYPE, "application/json")];
    (form, text.as_str().to_owned())
}

/// What the store's words mean to a client.
pub(crate) fn store_problem(error: StoreError) -> Problem {
    match error {
        StoreError::NotFound(what) => Problem::not_found(format!("there is no {what}")),
        StoreError::Conflict(why) => Problem::conflict(why),
        StoreError::KeyTaken(_) => Problem::conflict(error.to_string()),
        StoreError::Fenced(_) => Problem::unavailable("another process has taken over; try again"),
        StoreError::Invalid(why) => Problem::unprocessable(why),
        StoreError::TooLarge { limit, .. } => Problem::too_large(limit),
        StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NewerSchema { .. } => {
            // The cause may name files and hosts; it is for the operator.
            tracing::error!(%error, "the store cannot be used");
            Problem::unavailable("the store cannot be used now")
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound(_) => Self::not_found(error.to_string()),
            EngineError::Invalid(why) => Self::unprocessable(why),
            EngineError::Conflict(why) => Self::conflict(why),
            EngineError::Unavailable(why) => store_problem(StoreError::Unavailable(why)),
        }
    }
}
