//! The gate before the requests to one model: all workers of a campaign go through it, by way of the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_store::model::{LanePrice, LaneRow, Millis, RequestPermit};
use proofhouse_store::{Store, StoreError};
use proofhouse_wire::gate::{GateFuture, RequestGate};
use proofhouse_wire::retry::chance;
use tokio::runtime::Handle;

/// The longest pause that a provider may have for all workers.
const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);
/// The longest wait until the store is asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The wait before a store that is away is asked again.
const AWAY: Duration = Duration::from_secs(1);
/// How often a store that is away is told what a reply cost.
const ATTEMPTS: u32 = 60;

/// The gate of one lane of a campaign.
#[derive(Clone)]
pub struct LaneGate {
    store: Arc<Store>,
    campaign: i64,
    lane: i64,
    counts_requests: bool,
    price: Option<LanePrice>,
}

impl fmt::Debug for LaneGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = (self.campaign, self.lane);
        f.debug_tuple("LaneGate").field(&of).finish()
    }
}

impl LaneGate {
    /// The gate of the lane of this name, if the campaign has one: its caps and those of its provider hold.
    #[must_use]
    pub fn of(store: &Arc<Store>, campaign: i64, lanes: &[LaneRow], name: &str) -> Option<Self> {
        let lane = lanes.iter().find(|lane| lane.name == name)?;
        let provider = lanes.iter().find(|of| Some(of.lane) == lane.provider);
        let has = |cap: fn(&LaneRow) -> bool| cap(lane) || provider.is_some_and(cap);
        Some(Self {
            store: Arc::clone(store),
            campaign,
            lane: lane.lane,
            counts_requests: has(|lane| lane.requests_per_minute.is_some()),
            // What nobody capped is not worth a transaction for each reply.
            price: lane
                .price
                .clone()
                .filter(|_| has(|lane| lane.max_cost.is_some())),
        })
    }

    /// How long to wait before a request may be sent; nothing if it may be sent now.
    async fn wait(&self) -> Result<Option<Duration>, StoreError> {
        let wait = if self.counts_requests {
            match self.store.permit_request(self.campaign, self.lane).await? {
                RequestPermit::Granted => 0,
                RequestPermit::Wait(wait) => wait.max(1),
            }
        } else {
            self.store.lane_pause(self.campaign, self.lane).await?
        };
        let wait = u64::try_from(wait).ok().filter(|wait| *wait > 0);
        Ok(wait.map(Duration::from_millis))
    }

    async fn enter_now(&self) {
        loop {
            let wait = match self.wait().await {
                Ok(None) => return,
                // Not all at the same moment, and never before it.
                Ok(Some(wait)) => wait.min(LONGEST_WAIT).mul_f64(1.0 + 0.1 * chance()),
                // What nobody permits is not sent.
                Err(_) => AWAY,
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Tells the store until it answers, for a while.
    async fn tell<F>(&self, tell: impl Fn() -> F)
    where
        F: Future<Output = Result<(), StoreError>>,
    {
        for _ in 0..ATTEMPTS {
            match tell().await {
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(AWAY).await,
                _ => return,
            }
        }
    }
}

impl RequestGate for LaneGate {
    fn enter(&self) -> GateFuture<'_> {
        Box::pin(self.enter_now())
    }

    fn pause(&self, wait: Duration) -> GateFuture<'_> {
        let pause = wait.min(LONGEST_PAUSE).as_millis();
        let pause = Millis::try_from(pause).unwrap_or(Millis::MAX);
        let (campaign, lane) = (self.campaign, self.lane);
        Box::pin(self.tell(move || self.store.slow_down(campaign, lane, pause)))
    }

    fn used(&self, input: u64, output: u64) -> GateFuture<'_> {
        let (campaign, lane) = (self.campaign, self.lane);
        Box::pin(async move {
            if let Some(price) = &self.price {
                let cost = price.cost(input, output);
                self.tell(|| self.store.spend(campaign, lane, cost)).await;
            }
        })
    }
}

/// The same gate for those who wait on another runtime: the connections of the store belong to this one.
#[derive(Debug)]
pub(crate) struct RemoteGate {
    pub(crate) gate: LaneGate,
    pub(crate) runtime: Handle,
}

impl RemoteGate {
    fn there(&self, work: impl Future<Output = ()> + Send + 'static) -> GateFuture<'_> {
        let done = self.runtime.spawn(work);
        Box::pin(async {
            // A runtime that ends waits for nobody.
            let _ = done.await;
        })
    }
}

impl RequestGate for RemoteGate {
    fn enter(&self) -> GateFuture<'_> {
        let gate = self.gate.clone();
        self.there(async move { gate.enter().await })
    }

    fn pause(&self, wait: Duration) -> GateFuture<'_> {
        let gate = self.gate.clone();
        self.there(async move { gate.pause(wait).await })
    }

    fn used(&self, input: u64, output: u64) -> GateFuture<'_> {
        let gate = self.gate.clone();
        self.there(async move { gate.used(input, output).await })
    }
}
