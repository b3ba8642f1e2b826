//! One answer of the agent while it is made: what happens, and then what it came to.

use proofhouse_wire::CancellationToken;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::oneshot;

use crate::task::{Task, TaskEvent, TaskEvents, TaskInput, TaskOutput};

/// An answer that is being made. Dropping it cancels it.
#[derive(Debug)]
pub(super) struct AnswerRun {
    events: TaskEvents,
    output: oneshot::Receiver<TaskOutput>,
    done: Option<TaskOutput>,
    pub(super) cancel: CancellationToken,
}

/// What comes next of an answer.
#[derive(Debug)]
pub(super) enum AnswerStep {
    Event(TaskEvent),
    /// Events came faster than they were taken, and some are lost.
    Missed,
    Done(TaskOutput),
}

impl AnswerRun {
    /// Says something to a task that answers nobody else.
    pub(super) fn start(task: &Task, mut input: TaskInput) -> Self {
        let cancel = CancellationToken::new();
        input.cancel = cancel.clone();
        let events = task.events();
        let (reply, output) = oneshot::channel();
        let task = task.clone();
        // It ends with the answer, which ends with the task at the latest.
        tokio::spawn(async move {
            let _ = reply.send(task.send(input).await);
        });
        Self {
            events,
            output,
            done: None,
            cancel,
        }
    }

    /// What comes next. All events come before the end.
    pub(super) async fn next(&mut self) -> AnswerStep {
        loop {
            if let Some(output) = self.done.take() {
                return match self.events.try_recv() {
                    Ok(event) => {
                        self.done = Some(output);
                        AnswerStep::Event(event)
                    }
                    Err(TryRecvError::Lagged(_)) => {
                        self.done = Some(output);
                        AnswerStep::Missed
                    }
                    Err(TryRecvError::Empty | TryRecvError::Closed) => AnswerStep::Done(output),
                };
            }
            tokio::select! {
                biased;
                output = &mut self.output => {
                    self.done = Some(output.unwrap_or_else(|_| TaskOutput {
                        failed: Some("the answer was lost".to_owned()),
                        ..TaskOutput::default()
                    }));
                }
                event = self.events.recv() => match event {
                    Ok(event) => return AnswerStep::Event(event),
                    Err(RecvError::Lagged(_)) => return AnswerStep::Missed,
                    // Only the answer is missing now.
                    Err(RecvError::Closed) => {
                        let output = (&mut self.output).await;
                        self.done = Some(output.unwrap_or_else(|_| TaskOutput {
                            failed: Some("the answer was lost".to_owned()),
                            ..TaskOutput::default()
                        }));
                    }
                },
            }
        }
    }
}

impl Drop for AnswerRun {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
