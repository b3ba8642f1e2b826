//! Obeying what people want of a task: to decide, to stop, to go on, to end.

use proofhouse_store::Result;

use super::{Flow, LeasedTask, PendingDecision};
use crate::engine::commands::{Control, pending_controls};

impl LeasedTask<'_> {
    /// Gives the decisions that are there to the questions that are open.
    pub(super) fn decide(&mut self) {
        for review in self.task.reviews() {
            let mut known = self.decisions.iter_mut();
            if let Some(known) = known.find(|one| one.review == review.id && one.given.is_none()) {
                known.given = Some(self.journal.next_seq());
                self.task.decide(review.id, known.decision);
            }
        }
    }

    /// Settles the decisions that a turn was kept after, and those that nobody asks for any more. One that was only given is
    /// still wanted: were the process killed now, the same question would be asked again.
    async fn settle_decisions(&mut self) {
        let open: Vec<u64> = self.task.reviews().iter().map(|one| one.id).collect();
        let (kept, oldest) = (self.journal.next_seq(), open.iter().min().copied());
        let is_over = |one: &PendingDecision| match one.given {
            Some(at) => kept > at && !open.contains(&one.review),
            // Questions are numbered in turn.
            None => oldest.is_some_and(|oldest| one.review < oldest),
        };
        let (over, left) = self.decisions.drain(..).partition(is_over);
        self.decisions = left;
        let over: Vec<PendingDecision> = over;
        for one in over {
            let done = self.discard(one.delivery, "done: a person decided").await;
            if let Err(error) = done {
                // It is looked at again when the task is idle.
                tracing::debug!(%error, task = %self.id, "a decision cannot be settled yet");
            }
        }
    }

    /// Notes what people decided; the questions get it when they are asked.
    pub(super) fn note_decisions(&mut self, wanted: &[(i64, Control)]) {
        for (id, control) in wanted {
            if let Control::Decide { review, decision } = control
                && self.decisions.iter().all(|known| known.delivery != *id)
            {
                self.decisions.push(PendingDecision {
                    delivery: *id,
                    review: *review,
                    decision: *decision,
                    given: None,
                });
            }
        }
    }

    /// Obeys what people want while the task works.
    pub(super) async fn controls(&mut self) -> Flow {
        let Ok(wanted) = pending_controls(self.inner, &self.id).await else {
            // The heartbeat notices if this lasts.
            return Flow::Continue;
        };
        self.note_decisions(&wanted);
        for (id, control) in wanted {
            match control {
                Control::Decide { .. } => {}
                Control::Cancel => {
                    self.task.cancel();
                    // The end of the task settles it.
                    return Flow::Continue;
                }
                Control::Interrupt => {
                    if self.interrupting.is_none() {
                        let task = self.task.clone();
                        let end = tokio::spawn(async move { task.interrupt().await });
                        self.interrupting = Some((id, end));
                    }
                }
                Control::Resume => {
                    let _ = self.discard(id, "the task is working").await;
                }
            }
        }
        self.decide();
        self.settle_decisions().await;
        Flow::Continue
    }

    /// Obeys what people want while the task is idle.
    pub(super) async fn apply_control(&mut self, id: i64, control: &Control) -> Flow {
        let settled = |settled: Result<()>| match settled {
            Ok(()) => Flow::Continue,
            Err(_) => Flow::Stop,
        };
        match control {
            // Whatever it was about is kept by now.
            Control::Decide { .. } => {
                self.decisions.retain(|known| known.delivery != id);
                settled(self.discard(id, "done: a person decided").await)
            }
            Control::Cancel => {
                self.task.cancel();
                let output = self.task.resume().await;
                // The end is kept before the runner stops; ending it waits for that.
                self.task.end().await;
                drop(output);
                Flow::Stop
            }
            Control::Interrupt => {
                let output = self.task.interrupt().await;
                self.interrupted = true;
                match output.lost {
                    Some(_) => Flow::Stop,
                    None => settled(self.discard(id, "done: interrupted").await),
                }
            }
            Control::Resume => {
                let done = self.discard(id, "done: resumed").await;
                self.interrupted = false;
                self.listen();
                let task = self.task.clone();
                match done {
                    Ok(()) => {
                        let scope = self.scope(self.trace);
                        let resumed = async move { task.resume().await };
                        self.await_output(scope, resumed).await
                    }
                    Err(_) => Flow::Stop,
                }
            }
        }
    }
}
