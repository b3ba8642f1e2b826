//! How a simulated process meets the world: its store, its model and its clock go through here, and here it is paused, cut
//! off or killed.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use proofhouse_agent::model::{Model, ModelError, ModelReply, ModelRequest, ModelSink};
use proofhouse_store::{StoreFaults, TransactionFate};
use proofhouse_wire::CancellationToken;
use tokio::time::Instant;

use super::dice::SimDice;
use crate::engine_support::Obedient;

/// When simulations begin, in milliseconds since 1970.
const EPOCH_MS: i64 = 1_790_000_000_000;

/// What all processes share.
#[derive(Debug)]
pub(super) struct SimStage {
    pub(super) dice: SimDice,
    begun: Instant,
    /// How far the clock of the database is ahead, in milliseconds.
    pub(super) database_ahead: AtomicI64,
    /// Whether single transactions fail now and then.
    pub(super) is_flaky: AtomicBool,
    fingerprint: AtomicU64,
    transactions: AtomicU64,
}

impl SimStage {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            dice: SimDice::new(seed),
            begun: Instant::now(),
            database_ahead: AtomicI64::new(0),
            is_flaky: AtomicBool::new(false),
            fingerprint: AtomicU64::new(0xCBF2_9CE4_8422_2325),
            transactions: AtomicU64::new(0),
        })
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn now_ms(&self, ahead: i64) -> i64 {
        EPOCH_MS + i64::try_from(self.elapsed_ms()).unwrap_or(i64::MAX / 2) + ahead
    }

    /// Notes something that happened.
    pub(super) fn note(&self, what: u64) {
        let known = self.fingerprint.load(Ordering::SeqCst);
        let mixed =
            (known ^ what ^ self.elapsed_ms().rotate_left(32)).wrapping_mul(0x100_0000_01B3);
        self.fingerprint
            .store(mixed.rotate_left(7), Ordering::SeqCst);
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint.load(Ordering::SeqCst)
    }

    pub(super) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::SeqCst)
    }
}

/// A process.
#[derive(Debug)]
pub(super) struct SimProcess {
    pub(super) stage: Arc<SimStage>,
    number: u64,
    is_dead: AtomicBool,
    /// It dies after so many more steps, if this is not zero.
    dies_after: AtomicU64,
    paused_until: Mutex<Instant>,
    cut_off_until: Mutex<Instant>,
    /// How far its own clock is ahead, in milliseconds.
    pub(super) ahead: AtomicI64,
    /// Whether it meets faults at all.
    is_mortal: bool,
}

impl SimProcess {
    pub(super) fn new(stage: &Arc<SimStage>, number: u64, is_mortal: bool) -> Arc<Self> {
        Arc::new(Self {
            stage: Arc::clone(stage),
            number,
            is_dead: AtomicBool::new(false),
            dies_after: AtomicU64::new(0),
            paused_until: Mutex::new(Instant::now()),
            cut_off_until: Mutex::new(Instant::now()),
            ahead: AtomicI64::new(0),
            is_mortal,
        })
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Dies at the step of this number from now on.
    pub(super) fn die_after(&self, steps: u64) {
        self.dies_after.store(steps.max(1), Ordering::SeqCst);
    }

    /// Does not die any more, unless it has.
    pub(super) fn be_well(&self) {
        self.dies_after.store(0, Ordering::SeqCst);
    }

    pub(super) fn pause(&self, time: Duration) {
        *self.paused_until.lock().unwrap() = Instant::now() + time;
    }

    pub(super) fn cut_off(&self, time: Duration) {
        *self.cut_off_until.lock().unwrap() = Instant::now() + time;
    }

    pub(super) fn now(&self) -> Timestamp {
        let ms = self.stage.now_ms(self.ahead.load(Ordering::SeqCst));
        Timestamp::from_millisecond(ms).unwrap_or_default()
    }

    /// Takes a step in the world. A process that is paused takes it later, one that is dead never.
    async fn step(&self) {
        if !self.is_mortal {
            return;
        }
        if self.dies_after.load(Ordering::SeqCst) > 0
            && self.dies_after.fetch_sub(1, Ordering::SeqCst) == 1
        {
            self.is_dead.store(true, Ordering::SeqCst);
        }
        loop {
            if self.is_dead() {
                std::future::pending::<()>().await;
            }
            let until = *self.paused_until.lock().unwrap();
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits as long as something takes.
    async fn take(&self, milliseconds: u64) {
        if milliseconds > 0 {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        self.step().await;
    }
}

impl StoreFaults for SimProcess {
    fn now(&self) -> i64 {
        let ahead = self.stage.database_ahead.load(Ordering::SeqCst);
        self.stage.now_ms(ahead)
    }

    fn arrive(&self, writes: bool) -> BoxFuture<'_, TransactionFate> {
        Box::pin(async move {
            if !self.is_mortal {
                return TransactionFate::Done;
            }
            let dice = &self.stage.dice;
            let latency = if dice.per_mille(20) {
                dice.below(200)
            } else {
                dice.below(4)
            };
            self.take(latency).await;
            self.stage.transactions.fetch_add(1, Ordering::SeqCst);
            let cut_off_until = *self.cut_off_until.lock().unwrap();
            let fate = if Instant::now() < cut_off_until {
                // As long as a lock is waited for, or until the store is back.
                let patience = Instant::now() + Duration::from_secs(5);
                tokio::time::sleep_until(patience.min(cut_off_until)).await;
                self.step().await;
                TransactionFate::Refused
            } else if self.stage.is_flaky.load(Ordering::SeqCst) && dice.per_mille(150) {
                if writes && dice.per_mille(500) {
                    TransactionFate::Unknown
                } else {
                    TransactionFate::Refused
                }
            } else {
                TransactionFate::Done
            };
            let fate_number = match fate {
                TransactionFate::Done => 1,
                TransactionFate::Refused => 2,
                TransactionFate::Unknown => 3,
            };
            self.stage
                .note((self.number << 8) | (u64::from(writes) << 4) | fate_number);
            fate
        })
    }

    fn answer(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.step())
    }
}

/// A model that takes its time, as long as its process lives.
pub(super) struct SimModel(pub(super) Arc<SimProcess>);

impl Model for SimModel {
    fn name(&self) -> &str {
        "simulated"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let time = self.0.stage.dice.below(120);
            self.0.take(time).await;
            Obedient.complete(request, events, cancel).await
        })
    }
}
