//! Watching tasks: their turns from the store, whoever works on them, and the words of those that work here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_agent::task::TaskEvent;
use proofhouse_store::model::{TaskState, TurnRecord};
use proofhouse_store::{Result, Store};
use proofhouse_wire::sync::lock;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::feed::ChangeFeed;

/// Live events that wait for one who watches; beyond it the oldest are missed, but never a turn.
const WAITING: usize = 1_024;
/// How often the store is asked about a task that another process works on.
const LOOK: Duration = Duration::from_millis(500);
/// Turns that are read at once.
const PAGE: usize = 100;

/// What one who watches a task sees.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskUpdate {
    /// A turn that is kept.
    Turn(TurnRecord),
    /// Something that goes on meanwhile: words of the model, calls, questions. Only for tasks of this process.
    Live(TaskEvent),
    /// The task is over, and every turn was seen.
    Over,
}

#[derive(Debug, Clone)]
enum TaskNews {
    Turn,
    Live(TaskEvent),
}

/// Tells those who watch. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct TaskChanges {
    topics: Arc<Mutex<HashMap<String, broadcast::Sender<TaskNews>>>>,
    texts: Arc<Mutex<HashMap<String, broadcast::Sender<String>>>>,
    feed: ChangeFeed,
}

impl TaskChanges {
    /// Tells those who follow tasks through this feed as well.
    pub(super) fn new(feed: &ChangeFeed) -> Self {
        Self {
            feed: feed.clone(),
            ..Self::default()
        }
    }

    /// A turn of the task was kept.
    pub(super) fn turn(&self, task: &str) {
        self.feed.tell(task);
        self.tell(task, TaskNews::Turn);
    }

    /// Pieces of text that the task's model says from now on.
    pub(super) fn texts(&self, task: &str) -> broadcast::Receiver<String> {
        let mut texts = lock(&self.texts);
        texts.retain(|_, topic| topic.receiver_count() > 0);
        let topic = texts
            .entry(task.to_owned())
            .or_insert_with(|| broadcast::channel(WAITING).0);
        topic.subscribe()
    }

    /// Something happens in the task.
    pub(super) fn live(&self, task: &str, event: TaskEvent) {
        if let TaskEvent::Text(text) = &event {
            let texts = lock(&self.texts);
            if let Some(topic) = texts.get(task) {
                let _ = topic.send(text.clone());
            }
        }
        self.tell(task, TaskNews::Live(event));
    }

    fn tell(&self, task: &str, news: TaskNews) {
        let mut topics = lock(&self.topics);
        let gone = match topics.get(task) {
            Some(topic) => topic.send(news).is_err(),
            None => false,
        };
        if gone {
            topics.remove(task);
        }
    }

    fn subscribe(&self, task: &str) -> broadcast::Receiver<TaskNews> {
        let mut topics = lock(&self.topics);
        topics.retain(|_, topic| topic.receiver_count() > 0);
        let topic = topics
            .entry(task.to_owned())
            .or_insert_with(|| broadcast::channel(WAITING).0);
        topic.subscribe()
    }
}

/// Watches one task, from a turn on.
pub struct TaskWatch {
    store: Arc<Store>,
    task: String,
    next: i64,
    ready: std::collections::VecDeque<TurnRecord>,
    news: broadcast::Receiver<TaskNews>,
    look: bool,
    over: bool,
}

impl TaskWatch {
    pub(super) fn new(store: Arc<Store>, hub: &TaskChanges, task: &str, from: i64) -> Self {
        Self {
            store,
            task: task.to_owned(),
            next: from,
            ready: std::collections::VecDeque::new(),
            news: hub.subscribe(task),
            look: true,
            over: false,
        }
    }

    /// What comes next; [`TaskUpdate::Over`] is the last.
    ///
    /// # Errors
    ///
    /// Returns an error when the store cannot be read, or the task is not there any more.
    pub async fn next(&mut self) -> Result<TaskUpdate> {
        loop {
            if let Some(turn) = self.ready.pop_front() {
                self.next = turn.seq + 1;
                return Ok(TaskUpdate::Turn(turn));
            }
            if self.over {
                return Ok(TaskUpdate::Over);
            }
            if std::mem::take(&mut self.look) {
                let turns = self.store.turns(&self.task, self.next, PAGE).await?;
                self.ready.extend(turns);
                if !self.ready.is_empty() {
                    self.look = true;
                    continue;
                }
                let task = self.store.task(&self.task).await?;
                if task.state == TaskState::Ended {
                    // What was kept between the two looks is read first.
                    let turns = self.store.turns(&self.task, self.next, PAGE).await?;
                    self.over = turns.is_empty();
                    self.ready.extend(turns);
                    self.look = true;
                    continue;
                }
            }
            match tokio::time::timeout(LOOK, self.news.recv()).await {
                Ok(Ok(TaskNews::Live(event))) => return Ok(TaskUpdate::Live(event)),
                Ok(Ok(TaskNews::Turn) | Err(RecvError::Lagged(_))) | Err(_) => self.look = true,
                Ok(Err(RecvError::Closed)) => {
                    // Nobody works on it here; the store says how it goes on.
                    tokio::time::sleep(LOOK).await;
                    self.look = true;
                }
            }
        }
    }
}
