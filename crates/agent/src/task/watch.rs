//! Watching tasks: events wait with those who watch, so that a task that nobody watches keeps none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use proofhouse_wire::sync::lock;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::TaskEvent;

/// Events that wait for one who watches. Beyond it, new ones are missed.
const MAX_WAITING: usize = 4_096;
/// Events that wait before pieces of text are joined: who is that far behind does not see them come one by
/// one anyway, and none must be missed because a model has much to say.
const JOIN_FROM: usize = 64;

/// Those who watch a task. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Watchers {
    inner: Arc<WatchShared>,
}

#[derive(Debug, Default)]
struct WatchShared {
    queues: Mutex<Vec<Weak<Queue>>>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<WatchState>,
    news: Notify,
}

#[derive(Debug, Default)]
struct WatchState {
    waiting: VecDeque<TaskEvent>,
    missed: u64,
    closed: bool,
}

impl Watchers {
    /// Tells everyone, and how many that were.
    pub(super) fn send(&self, event: TaskEvent) -> usize {
        let mut queues = lock(&self.inner.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        let there: Vec<Arc<Queue>> = queues.iter().filter_map(Weak::upgrade).collect();
        drop(queues);
        if let Some((last, others)) = there.split_last() {
            for queue in others {
                queue.push(event.clone());
            }
            last.push(event);
        }
        there.len()
    }

    /// Watches from now on.
    pub(super) fn subscribe(&self) -> TaskEvents {
        let queue = Arc::new(Queue::default());
        lock(&self.inner.queues).push(Arc::downgrade(&queue));
        TaskEvents { queue }
    }
}

impl Drop for WatchShared {
    fn drop(&mut self) {
        let queues = self.queues.get_mut();
        let queues = queues.unwrap_or_else(PoisonError::into_inner);
        for queue in queues.iter().filter_map(Weak::upgrade) {
            lock(&queue.state).closed = true;
            queue.news.notify_one();
        }
    }
}

impl Queue {
    fn push(&self, event: TaskEvent) {
        let mut state = lock(&self.state);
        let waiting = state.waiting.len();
        match (event, state.waiting.back_mut()) {
            (TaskEvent::Text(more), Some(TaskEvent::Text(text))) if waiting >= JOIN_FROM => {
                text.push_str(&more);
            }
            (event, _) if waiting < MAX_WAITING => state.waiting.push_back(event),
            _ => state.missed += 1,
        }
        drop(state);
        self.news.notify_one();
    }
}

/// The events of a task, in order, from when one began to watch. Pieces of text may come joined.
#[derive(Debug)]
pub struct TaskEvents {
    queue: Arc<Queue>,
}

impl TaskEvents {
    /// The next event.
    ///
    /// # Errors
    ///
    /// Says that events were missed, after those that were not, or that nobody holds the task any more.
    pub async fn recv(&mut self) -> Result<TaskEvent, RecvError> {
        loop {
            // One permit is kept for a push between the look and the wait.
            match self.try_recv() {
                Ok(event) => return Ok(event),
                Err(TryRecvError::Lagged(missed)) => return Err(RecvError::Lagged(missed)),
                Err(TryRecvError::Closed) => return Err(RecvError::Closed),
                Err(TryRecvError::Empty) => self.queue.news.notified().await,
            }
        }
    }

    /// The next event, if it is there already.
    ///
    /// # Errors
    ///
    /// Says that there is none, that events were missed, or that nobody holds the task any more.
    pub fn try_recv(&mut self) -> Result<TaskEvent, TryRecvError> {
        let mut state = lock(&self.queue.state);
        match state.waiting.pop_front() {
            Some(event) => Ok(event),
            None if state.missed > 0 => {
                Err(TryRecvError::Lagged(std::mem::take(&mut state.missed)))
            }
            None if state.closed => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TaskEvent {
        TaskEvent::Text(text.to_owned())
    }

    #[tokio::test]
    async fn events_come_in_order_until_nobody_holds_the_task() {
        let watchers = Watchers::default();
        assert_eq!(watchers.send(TaskEvent::Started), 0);
        let mut events = watchers.subscribe();
        let other = watchers.subscribe();
        assert_eq!(watchers.send(text("a")), 2);
        drop(other);
        assert_eq!(watchers.clone().send(text("b")), 1);
        assert_eq!(events.recv().await, Ok(text("a")));
        assert_eq!(events.try_recv(), Ok(text("b")));
        assert_eq!(events.try_recv(), Err(TryRecvError::Empty));
        let waiting = tokio::spawn(async move { (events.recv().await, events.recv().await) });
        tokio::task::yield_now().await;
        watchers.send(TaskEvent::TextEnd);
        drop(watchers);
        let (last, end) = waiting.await.unwrap();
        assert_eq!(
            (last, end),
            (Ok(TaskEvent::TextEnd), Err(RecvError::Closed))
        );
    }

    #[test]
    fn text_is_never_missed_and_nothing_grows_without_end() {
        let watchers = Watchers::default();
        let mut events = watchers.subscribe();
        for _ in 0..100_000 {
            watchers.send(text("x"));
        }
        for _ in 0..2 * MAX_WAITING {
            watchers.send(TaskEvent::TextEnd);
        }
        let (mut said, mut ends, mut missed) = (0, 0, 0);
        loop {
            match events.try_recv() {
                Ok(TaskEvent::Text(text)) => said += text.len(),
                Ok(_) => ends += 1,
                Err(TryRecvError::Lagged(count)) => missed += count,
                Err(_) => break,
            }
        }
        assert_eq!(said, 100_000);
        assert_eq!(ends, MAX_WAITING - JOIN_FROM);
        assert_eq!(ends + usize::try_from(missed).unwrap(), 2 * MAX_WAITING);
    }
}
