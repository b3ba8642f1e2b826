//! Waiting for what a task answers, while people may want something of it and its lease may be lost.

use std::time::Duration;

use proofhouse_agent::task::{HeldTools, TaskOutput};
use proofhouse_wire::trace::TraceScope;

use super::{Flow, LeasedTask};

impl LeasedTask<'_> {
    /// Whether a task that has waited for a person so long is put away. What its tools have open stays for longer.
    fn may_be_parked(&self, waited: Duration) -> bool {
        let options = &self.inner.options;
        match self.task.held_tools() {
            HeldTools::Nothing => waited >= options.park,
            HeldTools::Evictable => waited >= options.park.max(options.idle_tools),
            HeldTools::Kept => false,
        }
    }

    /// Waits for an answer, and meanwhile obeys what people want of the task.
    pub(super) async fn await_output(
        &mut self,
        scope: TraceScope,
        answer: impl Future<Output = TaskOutput> + Send + 'static,
    ) -> Flow {
        let mut events = self.task.events();
        let (hub, id) = (self.inner.hub.clone(), self.id.clone());
        let forward = async move {
            loop {
                use tokio::sync::broadcast::error::RecvError;
                match events.recv().await {
                    Ok(event) => hub.live(&id, event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        tokio::pin!(forward);
        let mut answer = tokio::spawn(scope.run(answer));
        let mut waiting_since: Option<tokio::time::Instant> = None;
        let output = loop {
            self.decide();
            let waits = !self.task.reviews().is_empty();
            match (waits, waiting_since) {
                (true, None) => {
                    waiting_since = Some(tokio::time::Instant::now());
                    // Who waits for a person does not keep others from working.
                    self.slot = None;
                }
                (false, _) => waiting_since = None,
                _ => {}
            }
            // Another agent whose question it is could not be put away with the task.
            let parked = !self.task.is_delegating()
                && waiting_since.is_some_and(|since| self.may_be_parked(since.elapsed()));
            if parked || self.signal.let_go.is_cancelled() || self.inner.out_of_time() {
                // Handed over: the next owner goes on from what is kept.
                self.journal.close();
                self.task.cancel();
                let _ = answer.await;
                return Flow::Stop;
            }
            tokio::select! {
                biased;
                output = &mut answer => break output,
                () = self.signal.let_go.cancelled() => continue,
                () = self.inner.deadline.cancelled() => continue,
                () = &mut forward => {}
                () = self.signal.news.notified() => {}
                () = tokio::time::sleep(self.inner.options.look) => {}
            }
            if self.controls().await == Flow::Stop {
                let _ = answer.await;
                return Flow::Stop;
            }
        };
        let Ok(output) = output else {
            return Flow::Stop;
        };
        self.interrupted = output.interrupted;
        if let Some((id, end)) = self.interrupting.take() {
            // The answer may have come first; the task is interrupted all the same.
            self.interrupted |= end.await.is_ok_and(|output| output.lost.is_none());
            let _ = self.discard(id, "done: interrupted").await;
        }
        match (&output.lost, &output.ended) {
            (Some(lost), _) => {
                tracing::info!(task = %self.id, %lost, "a task is let go of");
                Flow::Stop
            }
            (None, Some(_)) => Flow::Stop,
            (None, None) => Flow::Continue,
        }
    }
}
