//! Waits for what must happen, however loaded the machine is.

use std::time::{Duration, Instant};

/// Longer than anything takes that happens at all.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The pause before something is looked at again.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until something is there.
///
/// # Panics
///
/// If it does not come.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Waits until something is true.
///
/// # Panics
///
/// If it never is.
pub fn until_true(what: &str, mut is_true: impl FnMut() -> bool) {
    until(what, || is_true().then_some(()));
}

/// Waits until something is there, beside other tasks.
///
/// # Panics
///
/// If it does not come.
#[cfg(feature = "wire")]
pub async fn eventually<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until something is true, beside other tasks.
///
/// # Panics
///
/// If it never is.
#[cfg(feature = "wire")]
pub async fn soon(what: &str, is_true: impl Fn() -> bool) {
    eventually(what, || std::future::ready(is_true().then_some(()))).await;
}
