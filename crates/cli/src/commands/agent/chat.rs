//! `proofhouse agent chat`: a conversation with an agent at the terminal, or line by line from a pipe.

use std::io::{self, IsTerminal};

use clap::Args;
use proofhouse_agent::task::{
    Decision, Review, Task, TaskEvent, TaskEvents, TaskInput, TaskOutput,
};
use proofhouse_subjects::agent_setup::PreparedAgent;
use proofhouse_wire::{CancellationToken, PromptLineError, prompt_lines};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc;

use crate::agents::ending;
use crate::agents::options::AgentOptions;
use crate::agents::show::{self, Screen};
use crate::exit_code::Exit;
use crate::output::{CommandError, complain, printable_line, talk, talk_styled};
use crate::runtime::runtime;
use crate::signals::{ShutdownRequest, Signals};

/// Chat with an agent in the terminal
///
/// Each line you type is one message. Answers and tool calls are shown as they happen. If a rule of the agent needs
/// an approval, you are asked for it. Ctrl-C cancels an answer; Ctrl-C at the prompt, a second Ctrl-C or Ctrl-D
/// ends the conversation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse agent chat examples/agents/support.yaml --param customer=c-1\n  \
    proofhouse agent chat agent.yaml tools/ --model anthropic:claude-sonnet-4-5\n  \
    echo 'Add 1 and 2' | proofhouse agent chat --mcp 'proofhouse demo-service --mcp-stdio'\n\n\
    Exit codes:\n  \
    0   the conversation ended\n  \
    1   a rule or a limit of the agent ended the task\n  \
    3   the last message got no answer, or a manifest, the model or a tool cannot be used\n  \
    64  invalid arguments\n  \
    130 stopped by Ctrl-C")]
pub(crate) struct Chat {
    #[command(flatten)]
    options: AgentOptions,
}

/// One conversation.
struct ChatConversation<'a> {
    prepared: &'a PreparedAgent,
    task: Task,
    events: TaskEvents,
    lines: mpsc::Receiver<Result<String, PromptLineError>>,
    signals: Signals,
    screen: Screen,
    /// Whether somebody sits there.
    at_terminal: bool,
}

/// Whether somebody wants to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    No,
    Yes,
}

impl Chat {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        if self.options.read_stdin() {
            return Err(CommandError::usage(
                "stdin cannot be both a file and the conversation",
            ));
        }
        let prepared = self.options.prepare()?;
        prepared.check(Some(""))?;
        let runtime = runtime()?;
        let exit = runtime.block_on(converse(&prepared));
        runtime.shutdown_background();
        let exit = exit?;
        prepared.finish()?;
        Ok(exit)
    }
}

async fn converse(prepared: &PreparedAgent) -> Result<Exit, CommandError> {
    let task = prepared.start(&CancellationToken::new())?;
    let (model, simulation) = task.model();
    talk(&show::model_line(model, simulation));
    let mut conversation = ChatConversation {
        prepared,
        events: task.events(),
        lines: prompt_lines()?,
        signals: Signals::listen(),
        // What rules look at when it is whole is not shown before that.
        screen: Screen::new(prepared.agent.guardrails.after.is_empty()),
        at_terminal: io::stdin().is_terminal(),
        task,
    };
    if conversation.at_terminal {
        let name = printable_line(&prepared.agent.name);
        talk(&format!("chatting with {name}; press Ctrl-D to end"));
    }
    let exit = conversation.go_on().await;
    conversation.leave().await;
    exit
}

impl ChatConversation<'_> {
    /// Takes messages until there are no more.
    async fn go_on(&mut self) -> Result<Exit, CommandError> {
        let mut exit = Exit::Success;
        loop {
            self.prompt("> ");
            let line = tokio::select! {
                line = self.lines.recv() => line,
                _ = self.signals.next_asked() => return Ok(Exit::Interrupted),
            };
            let message = match line {
                None => return Ok(exit),
                Some(Err(error)) => return Err(CommandError::cannot_run(error.to_string())),
                Some(Ok(line)) if line.trim().is_empty() => continue,
                Some(Ok(line)) => line,
            };
            let (output, leave) = self.answer(self.prepared.input(Some(message))).await;
            if leave == Leave::Yes {
                return Ok(Exit::Interrupted);
            }
            exit = ending::exit(&output);
            if let Some(complaint) = ending::complaint(&output) {
                complain(&complaint);
            }
            if output.ended.is_some() {
                return Ok(exit);
            }
        }
    }

    /// Ends the task and what it started. Who asks again does not wait for it.
    async fn leave(&mut self) {
        tokio::select! {
            () = self.task.end() => {}
            _ = self.signals.next_asked() => {}
        }
    }

    fn prompt(&self, text: &str) {
        if self.at_terminal {
            show::prompt(text);
        }
    }

    /// Sends a message and shows what happens until it is answered.
    async fn answer(&mut self, input: TaskInput) -> (TaskOutput, Leave) {
        let cancel = input.cancel.clone();
        let task = self.task.clone();
        let sending = task.send(input);
        tokio::pin!(sending);
        let output = loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(TaskEvent::Review(_)) => {
                        if self.ask_all(&cancel).await == Leave::Yes {
                            self.task.cancel();
                            return (sending.await, Leave::Yes);
                        }
                    }
                    Ok(event) => self.screen.event(&event),
                    Err(RecvError::Lagged(_)) => {
                        self.screen.end_line();
                        talk("(some output was skipped because it came too fast)");
                        if self.ask_all(&cancel).await == Leave::Yes {
                            self.task.cancel();
                            return (sending.await, Leave::Yes);
                        }
                    }
                    Err(RecvError::Closed) => break sending.await,
                },
                asked = self.signals.next_asked() => {
                    self.screen.end_line();
                    if asked == ShutdownRequest::End || cancel.is_cancelled() {
                        self.task.cancel();
                        return (self.last_words(sending).await, Leave::Yes);
                    }
                    talk("cancelling the answer; press Ctrl-C again to leave");
                    cancel.cancel();
                }
                output = &mut sending => break output,
            }
        };
        self.show_rest();
        if !self.screen.streams {
            self.screen.text(&output.message);
        }
        self.screen.end_line();
        (output, Leave::No)
    }

    /// Waits for a task that was cancelled, unless somebody asks once more.
    async fn last_words(&mut self, sending: impl Future<Output = TaskOutput>) -> TaskOutput {
        tokio::select! {
            output = sending => output,
            _ = self.signals.next_asked() => TaskOutput::default(),
        }
    }

    /// Shows what happened before the answer and was not shown yet.
    fn show_rest(&mut self) {
        loop {
            match self.events.try_recv() {
                Ok(event) => self.screen.event(&event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(_) => return,
            }
        }
    }

    /// Asks about everything that waits for a decision.
    async fn ask_all(&mut self, cancel: &CancellationToken) -> Leave {
        for review in self.task.reviews() {
            if self.ask(&review, cancel).await == Leave::Yes {
                return Leave::Yes;
            }
        }
        Leave::No
    }

    async fn ask(&mut self, review: &Review, cancel: &CancellationToken) -> Leave {
        self.screen.end_line();
        talk_styled(&show::question(review));
        self.prompt("approve? [y/N] ");
        let line = tokio::select! {
            line = self.lines.recv() => line,
            asked = self.signals.next_asked() => {
                if asked == ShutdownRequest::End {
                    return Leave::Yes;
                }
                talk("\ncancelling the answer; press Ctrl-C again to leave");
                cancel.cancel();
                return Leave::No;
            }
        };
        let decision = match line {
            Some(Ok(line)) if matches!(line.trim(), "y" | "Y" | "yes") => Decision::Approve,
            _ => Decision::Deny,
        };
        talk(match decision {
            Decision::Approve => "approved",
            Decision::Deny => "denied",
        });
        self.task.decide(review.id, decision);
        Leave::No
    }
}
