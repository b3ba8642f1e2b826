//! Patience with a store that is away for a while: what is asked of it is asked again until it answers.

use std::future::Future;
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

/// Asks again until the store answers, for a while.
pub(crate) async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, FleetError>
where
    F: Future<Output = Result<T, FleetError>>,
{
    let (begun, mut pause) = (Instant::now(), FIRST);
    loop {
        match ask().await {
            Err(FleetError::Store(StoreError::Unavailable(_))) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST);
            }
            answer => return answer,
        }
    }
}

/// Asks again until the store answers; `None` when `stop` is cancelled before. `told` hears of the first failure.
pub(crate) async fn until_answered<T, F>(
    stop: &CancellationToken,
    told: &(dyn Fn(&StoreError) + Send + Sync),
    mut ask: impl FnMut() -> F + Send,
) -> Option<Result<T, StoreError>>
where
    F: Future<Output = Result<T, StoreError>> + Send,
{
    let mut pause = FIRST;
    loop {
        match ask().await {
            Err(error @ StoreError::Unavailable(_)) => {
                if pause == FIRST {
                    told(&error);
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stop.cancelled() => return None,
                }
                pause = (pause * 2).min(LONGEST);
            }
            answer => return Some(answer),
        }
    }
}
