//! Patience with a store that is away for a while: what is asked of it is asked again until it answers, or until whoever asks is to
//! leave.

use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use proofhouse_store::StoreError;
use proofhouse_wire::CancellationToken;

use crate::FleetError;

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// How long a worker that begins or ends waits for its store.
const PATIENCE: Duration = Duration::from_secs(120);

/// When a worker leaves that was asked to: a while later, which its runs have to end.
pub(crate) struct Departure {
    drain: CancellationToken,
    patience: Duration,
    at: OnceLock<Instant>,
}

impl Departure {
    /// Leaves this long after `drain` was cancelled.
    pub(crate) fn new(drain: &CancellationToken, patience: Duration) -> Self {
        Self {
            drain: drain.clone(),
            patience,
            at: OnceLock::new(),
        }
    }

    /// Ends when it is asked to leave.
    pub(crate) async fn asked(&self) {
        self.drain.cancelled().await;
        self.at.get_or_init(|| Instant::now() + self.patience);
    }

    /// Ends when it leaves, whatever is not done by then.
    pub(crate) async fn due(&self) {
        self.asked().await;
        if let Some(at) = self.at.get() {
            tokio::time::sleep_until((*at).into()).await;
        }
    }
}

/// What somebody is told who is to leave while the store is away.
pub(crate) fn left() -> FleetError {
    StoreError::Unavailable("asked to leave while the store is away".to_owned()).into()
}

/// Whether an error says that the store is away.
pub(crate) fn is_away(error: &FleetError) -> bool {
    matches!(error, FleetError::Store(StoreError::Unavailable(_)))
}

/// Asks again until the store answers, for a while; not for longer than until `stop` ends.
pub(crate) async fn patiently<T, F>(
    stop: impl Future<Output = ()>,
    mut ask: impl FnMut() -> F,
) -> Result<T, FleetError>
where
    F: Future<Output = Result<T, FleetError>>,
{
    let (begun, mut pause) = (Instant::now(), FIRST);
    let mut stop = std::pin::pin!(stop);
    loop {
        match ask().await {
            Err(error) if is_away(&error) && begun.elapsed() < PATIENCE => {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = &mut stop => return Err(left()),
                }
                pause = (pause * 2).min(LONGEST);
            }
            answer => return answer,
        }
    }
}

/// Asks again until the store answers; `None` when `stop` ends before. `told` hears of the first failure.
pub(crate) async fn until_answered<T, F>(
    stop: impl Future<Output = ()> + Send,
    told: &(dyn Fn(&StoreError) + Send + Sync),
    mut ask: impl FnMut() -> F + Send,
) -> Option<Result<T, StoreError>>
where
    F: Future<Output = Result<T, StoreError>> + Send,
{
    let mut pause = FIRST;
    let mut stop = std::pin::pin!(stop);
    loop {
        match ask().await {
            Err(error @ StoreError::Unavailable(_)) => {
                if pause == FIRST {
                    told(&error);
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = &mut stop => return None,
                }
                pause = (pause * 2).min(LONGEST);
            }
            answer => return Some(answer),
        }
    }
}
