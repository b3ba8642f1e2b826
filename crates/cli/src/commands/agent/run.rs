//! `proofhouse agent run`: one message to an agent, and all that came of it.

use clap::{Args, ValueEnum};
use proofhouse_agent::task::{Decision, Task, TaskEvent, TaskInput, TaskOutput, Turn};
use proofhouse_subjects::agent_setup::PreparedAgent;
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::agents::ending;
use crate::agents::options::AgentOptions;
use crate::agents::show::{self, Screen};
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, complain, printable, talk, talk_styled};
use crate::tools::work::{Worked, until_interrupted};

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// Send an agent one message and print its answer
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse agent run examples/agents/support.yaml --message 'Read ticket 7' --param customer=c-1\n  \
    proofhouse agent run agent.yaml tools/ --message 'Hello' --model openai:gpt-5 --format json\n  \
    proofhouse agent run --mcp 'proofhouse demo-service --mcp-stdio' --message 'Add 1 and 2'\n\n\
    Exit codes:\n  \
    0   the agent answered\n  \
    1   a rule or a limit of the agent ended the task\n  \
    3   no answer, or a manifest, the model or a tool cannot be used\n  \
    64  invalid arguments\n  \
    130 stopped by Ctrl-C")]
pub(crate) struct AgentRun {
    #[command(flatten)]
    options: AgentOptions,

    /// The message [default: the default message of the manifest]
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,

    /// Approve every action that a rule holds for approval
    #[arg(long, conflicts_with = "deny")]
    approve: bool,

    /// Deny every action that a rule holds for approval; this is the default
    #[arg(long)]
    deny: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t = AgentRunFormat::Human)]
    format: AgentRunFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AgentRunFormat {
    /// The answer on stdout; tool calls on stderr as they happen
    Human,
    /// A JSON object with the answer and all turns
    Json,
}

/// What came of the message.
struct RunReply {
    task: Task,
    output: TaskOutput,
    turns: Vec<Turn>,
    context: Value,
    /// What was asked and how it was decided.
    reviews: Vec<Value>,
}

impl AgentRun {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let prepared = self.options.prepare()?;
        prepared.check(self.message.as_deref())?;
        let cancel = CancellationToken::new();
        let worked = until_interrupted(&cancel, self.answer(&prepared, &cancel))?;
        let interrupted = matches!(worked, Worked::Interrupted(_));
        let answered = worked.into_inner()?;
        self.print(&prepared, &answered)?;
        prepared.finish()?;
        Ok(if interrupted {
            Exit::Interrupted
        } else {
            ending::exit(&answered.output)
        })
    }

    async fn answer(
        &self,
        prepared: &PreparedAgent,
        cancel: &CancellationToken,
    ) -> Result<RunReply, CommandError> {
        let task = prepared.start(cancel)?;
        if self.format == AgentRunFormat::Human {
            let (model, simulation) = task.model();
            talk(&show::model_line(model, simulation));
        }
        let (output, reviews) = self
            .watch(&task, prepared.input(self.message.clone()))
            .await;
        let (turns, context) = (task.history(), task.context());
        task.end().await;
        Ok(RunReply {
            task,
            output,
            turns,
            context,
            reviews,
        })
    }

    /// Sends the input, and shows and decides what comes up until there is an answer.
    async fn watch(&self, task: &Task, input: TaskInput) -> (TaskOutput, Vec<Value>) {
        let mut events = task.events();
        // The answer is printed whole, and by itself.
        let mut screen = Screen::new(false);
        let mut reviews = Vec::new();
        let sending = task.send(input);
        tokio::pin!(sending);
        let output = loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(TaskEvent::Review(_)) | Err(RecvError::Lagged(_)) => {
                        self.decide(task, &mut reviews);
                    }
                    Ok(event) => self.show(&mut screen, &event),
                    Err(RecvError::Closed) => break sending.await,
                },
                output = &mut sending => break output,
            }
        };
        loop {
            match events.try_recv() {
                Ok(event) => self.show(&mut screen, &event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(_) => return (output, reviews),
            }
        }
    }

    fn show(&self, screen: &mut Screen, event: &TaskEvent) {
        if self.format == AgentRunFormat::Human {
            screen.event(event);
        }
    }

    /// Answers all open questions as the command line says.
    fn decide(&self, task: &Task, reviews: &mut Vec<Value>) {
        let (decision, word) = if self.approve {
            (Decision::Approve, "approved")
        } else {
            (Decision::Deny, "denied")
        };
        for review in task.reviews() {
            if !task.decide(review.id, decision) {
                continue;
            }
            if self.format == AgentRunFormat::Human {
                talk_styled(&show::question(&review));
                let hint = if self.approve || self.deny {
                    ""
                } else {
                    "; add --approve to approve it"
                };
                talk(&format!("{word}{hint}"));
            }
            let mut review = json!(review);
            review["decision"] = word.into();
            reviews.push(review);
        }
    }

    fn print(&self, prepared: &PreparedAgent, answered: &RunReply) -> Result<(), CommandError> {
        let mut data = StdoutData::new();
        let output = &answered.output;
        match self.format {
            AgentRunFormat::Human => {
                match ending::complaint(output) {
                    Some(complaint) => complain(&complaint),
                    None => data.line(&printable(&output.message))?,
                }
                if !output.exposes.is_empty() {
                    data.json(&Value::Object(output.exposes.clone()))?;
                }
            }
            AgentRunFormat::Json => data.json(&envelope(prepared, answered))?,
        }
        data.finish()
    }
}

fn envelope(prepared: &PreparedAgent, answered: &RunReply) -> Value {
    let (model, simulation) = answered.task.model();
    let output = &answered.output;
    let agent = &prepared.agent;
    json!({
        "version": VERSION,
        "task": answered.task.id(),
        "agent": {"namespace": agent.namespace, "name": agent.name},
        "model": {"name": model, "simulation": simulation},
        "message": output.message,
        "exposes": output.exposes,
        "failed": output.failed,
        "ended": output.ended,
        "tokens": answered.context["llm"]["tokens"],
        "reviews": answered.reviews,
        "turns": answered.turns,
    })
}
