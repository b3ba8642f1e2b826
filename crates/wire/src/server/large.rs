//! Requests with large bodies are answered on threads of their own, few at a time, so that parsing them holds up nobody else.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::Notify;

use super::fair_gate::{FairGate, RequestLane};

/// Tells that a future wants to be polled again.
#[derive(Debug, Default)]
struct PollSignal(Notify);

impl Wake for PollSignal {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Runs a future, polling it only where it may take long: on a thread for blocking work, and when it is its turn. While
/// it waits for something it takes up no turn. `None` when it panicked.
pub(super) async fn run<F>(
    gate: &Arc<FairGate>,
    lane: &RequestLane,
    work: u64,
    future: F,
) -> Option<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let mut future = Box::pin(future);
    let signal = Arc::new(PollSignal::default());
    // All that is expensive is done when it is polled first.
    let mut work = work;
    loop {
        let permit = gate.enter(lane, 1, work).await;
        work = 0;
        let waker = Waker::from(Arc::clone(&signal));
        let polling = tokio::task::spawn_blocking(move || {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            drop(permit);
            (future, polled)
        });
        future = match polling.await {
            Ok((_, Poll::Ready(output))) => return Some(output),
            Ok((future, Poll::Pending)) => future,
            Err(_) => return None,
        };
        signal.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_future_that_waits_takes_up_no_turn() {
        let gate = FairGate::new(1);
        let lane = RequestLane::new("a");
        let (send, receive) = tokio::sync::oneshot::channel();
        let waiting = run(&gate, &lane, 1, async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            receive.await
        });
        let other = async {
            let other = run(&gate, &lane, 1, async { 7 }).await;
            send.send(other).ok();
        };
        let (waited, ()) = tokio::join!(waiting, other);
        assert_eq!(waited, Some(Ok(Some(7))));
        assert_eq!(gate.used().0, 0);
    }

    #[tokio::test]
    async fn a_panic_is_told() {
        let (gate, lane) = (FairGate::new(1), RequestLane::new("a"));
        let panicking = async { panic!("while it is polled") };
        let polled: Option<()> = run(&gate, &lane, 1, panicking).await;
        assert_eq!((polled, gate.used().0), (None, 0));
    }
}
