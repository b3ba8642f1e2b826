//! Reviews: questions to a person that a rule asks before something is done.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proofhouse_wire::sync::lock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// Names the question in its task.
    pub id: u64,
    /// Who is asked.
    pub reviewer: String,
    /// The function that waits.
    pub function: String,
    /// What it would be called with.
    pub arguments: Map<String, Value>,
    /// What it gave, where the question comes afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may be done.
    Approve,
    /// It may not.
    Deny,
}

/// The questions of a task that are open.
#[derive(Debug, Clone, Default)]
pub(super) struct Reviews {
    open: Arc<Mutex<PendingReview>>,
}

#[derive(Debug, Default)]
struct PendingReview {
    last: u64,
    waiting: BTreeMap<u64, (Review, oneshot::Sender<Decision>)>,
}

impl Reviews {
    /// Questions of a task that has asked this many.
    pub(super) fn after(asked: u64) -> Self {
        let reviews = Self::default();
        let mut open = lock(&reviews.open);
        open.last = asked;
        drop(open);
        reviews
    }

    /// Opens a question; the answer comes through the receiver.
    pub(super) fn ask(
        &self,
        reviewer: String,
        function: &str,
        arguments: &Map<String, Value>,
        result: Option<&Value>,
    ) -> (Review, oneshot::Receiver<Decision>) {
        let mut open = lock(&self.open);
        open.last += 1;
        let review = Review {
            id: open.last,
            reviewer,
            function: function.to_owned(),
            arguments: arguments.clone(),
            result: result.cloned(),
        };
        let (sender, receiver) = oneshot::channel();
        open.waiting.insert(review.id, (review.clone(), sender));
        (review, receiver)
    }

    /// Answers a question; `false` if there is none of the number.
    pub(super) fn decide(&self, id: u64, decision: Decision) -> bool {
        let mut open = lock(&self.open);
        match open.waiting.remove(&id) {
            Some((_, sender)) => sender.send(decision).is_ok(),
            None => false,
        }
    }

    /// Takes a question back.
    pub(super) fn forget(&self, id: u64) {
        let mut open = lock(&self.open);
        open.waiting.remove(&id);
    }

    /// The questions that wait.
    pub(super) fn waiting(&self) -> Vec<Review> {
        let open = lock(&self.open);
        open.waiting
            .values()
            .map(|(review, _)| review.clone())
            .collect()
    }
}
