//! Timers: the time limit of an exchange, kept for the next one.
//!
//! A timer that is set anew usually has to wake the thread that waits for the next event, so that it
//! waits for the timer too. One that is still set and only moved further away does not. On a fast
//! network that wake-up is a noticeable part of a call.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::sync::lock;

/// How many timers are kept. More exchanges than this at a time are busy enough to set their own.
const MAX_KEPT: usize = 64;

/// Timers that no exchange uses at the moment.
#[derive(Default)]
pub(crate) struct Timers {
    kept: Mutex<Vec<Timer>>,
}

/// A timer belongs to its runtime. It holds on to it, so that no other can have the same id.
struct Timer {
    runtime: Id,
    sleep: Pin<Box<Sleep>>,
}

impl Timers {
    /// What the work comes to, or nothing if it takes longer than `time`.
    pub(crate) async fn within<W: Future>(&self, time: Duration, work: W) -> Option<W::Output> {
        // A time without end needs no timer.
        let Some(deadline) = Instant::now().checked_add(time) else {
            return Some(work.await);
        };
        let mut work = pin!(work);
        let mut timer = None;
        let result = poll_fn(|context| {
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(Some(result));
            }
            let timer = timer.get_or_insert_with(|| self.take(deadline));
            timer.poll(context).map(|()| None)
        })
        .await;
        // Work that is dropped before its end drops its timer too: its runtime may be gone by then.
        if let Some(timer) = timer {
            self.keep(timer);
        }
        result
    }

    /// A timer of this runtime that was kept, or a new one.
    fn take(&self, deadline: Instant) -> Timer {
        let runtime = Handle::current().id();
        let kept = {
            let mut kept = lock(&self.kept);
            let own = kept.iter().rposition(|timer| timer.runtime == runtime);
            own.map(|position| kept.swap_remove(position))
        };
        match kept {
            Some(mut timer) => {
                timer.sleep.as_mut().reset(deadline);
                timer
            }
            None => Timer {
                runtime,
                sleep: Box::pin(sleep_until(deadline)),
            },
        }
    }

    fn keep(&self, mut timer: Timer) {
        // So that it holds on to no task that has ended, and wakes none that goes on.
        let _ = timer.poll(&mut Context::from_waker(Waker::noop()));
        let mut kept = lock(&self.kept);
        if kept.len() >= MAX_KEPT {
            // Those of other runtimes may never be taken again.
            kept.retain(|other| other.runtime == timer.runtime);
        }
        if kept.len() < MAX_KEPT {
            kept.push(timer);
        }
    }
}

impl Timer {
    /// Also tells the time to a task whose work leaves it no turn.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        pin!(tokio::task::unconstrained(self.sleep.as_mut())).poll(context)
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    impl Timers {
        fn count(&self) -> usize {
            self.kept.lock().unwrap().len()
        }
    }

    async fn a_little() -> u8 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        7
    }

    #[tokio::test]
    async fn work_ends_in_time_or_not_at_all() {
        let timers = Timers::default();
        for _ in 0..3 {
            assert_eq!(timers.within(LONG, a_little()).await, Some(7));
            // The same timer, for a shorter time than before.
            assert_eq!(timers.within(SHORT, pending::<u8>()).await, None);
            assert_eq!(timers.count(), 1);
        }
        assert_eq!(timers.within(Duration::MAX, a_little()).await, Some(7));
        assert_eq!(timers.within(Duration::ZERO, async { 1 }).await, Some(1));
        assert_eq!(timers.within(Duration::ZERO, pending::<u8>()).await, None);
    }

    #[tokio::test]
    async fn work_that_never_rests_is_ended_too() {
        let timers = Timers::default();
        let busy = async {
            loop {
                tokio::task::consume_budget().await;
            }
        };
        assert_eq!(timers.within(SHORT, busy).await, None::<()>);
    }

    #[tokio::test]
    async fn only_so_many_are_kept_and_none_of_work_that_was_dropped() {
        let timers = Timers::default();
        let many = (0..MAX_KEPT + 10).map(|_| timers.within(LONG, a_little()));
        futures_util::future::join_all(many).await;
        assert_eq!(timers.count(), MAX_KEPT);
        let before = timers.count();
        let dropped = timers.within(LONG, pending::<u8>());
        assert!(tokio::time::timeout(SHORT, dropped).await.is_err());
        assert_eq!(timers.count(), before - 1);
    }

    #[test]
    fn timers_of_a_runtime_that_is_gone_are_left_alone() {
        let timers = Timers::default();
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().build().unwrap()
        };
        for _ in 0..3 {
            let result = runtime().block_on(timers.within(LONG, a_little()));
            assert_eq!(result, Some(7));
        }
        // What is left over when a runtime ends is dropped without it.
        let runtime = runtime();
        let mut left = Box::pin(timers.within(LONG, pending::<u8>()));
        runtime.block_on(async {
            assert!(tokio::time::timeout(SHORT, &mut left).await.is_err());
        });
        drop(runtime);
        drop(left);
        assert_eq!(timers.count(), 3);
    }
}
