//! Obeying what people want of a task: to decide, to stop, to go on, to end.

use proofhouse_store::Result;

use super::{Next, Owned};
use crate::engine::channels;
use crate::engine::commands::{Control, wanted};

impl Owned<'_> {
    /// Gives the decisions that are there to the questions that are open.
    pub(super) fn decide(&mut self) {
        for review in self.task.reviews() {
            let known = self.decisions.iter().position(|(id, _)| *id == review.id);
            if let Some(at) = known {
                let (_, decision) = self.decisions.remove(at);
                self.task.decide(review.id, decision);
            }
        }
    }

    /// Obeys what people want while the task works.
    pub(super) async fn controls(&mut self) -> Next {
        let Ok(wanted) = wanted(self.inner, &self.id).await else {
            // The heartbeat notices if this lasts.
            return Next::GoOn;
        };
        for (id, control) in wanted {
            match control {
                Control::Decide { review, decision } => {
                    self.decisions.push((review, decision));
                    if self.discard(id, "done: a person decided").await.is_err() {
                        return Next::GoOn;
                    }
                }
                Control::Cancel => {
                    self.task.cancel();
                    // The end of the task settles it.
                    return Next::GoOn;
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
        Next::GoOn
    }

    /// Obeys what people want while the task is idle.
    pub(super) async fn obey(&mut self, id: i64, control: &Control) -> Next {
        let settled = |settled: Result<()>| match settled {
            Ok(()) => Next::GoOn,
            Err(_) => Next::Stop,
        };
        match control {
            Control::Decide { review, decision } => {
                self.decisions.push((*review, *decision));
                settled(self.discard(id, "done: a person decided").await)
            }
            Control::Cancel => {
                self.task.cancel();
                let output = self.task.resume().await;
                // The end is kept before the runner stops; ending it waits for that.
                self.task.end().await;
                drop(output);
                Next::Stop
            }
            Control::Interrupt => {
                let output = self.task.interrupt().await;
                self.interrupted = true;
                match output.lost {
                    Some(_) => Next::Stop,
                    None => settled(self.discard(id, "done: interrupted").await),
                }
            }
            Control::Resume => {
                let done = self.discard(id, "done: resumed").await;
                self.interrupted = false;
                channels::ensure(self.inner, &self.id);
                let task = self.task.clone();
                match done {
                    Ok(()) => self.answered(async move { task.resume().await }).await,
                    Err(_) => Next::Stop,
                }
            }
        }
    }
}
