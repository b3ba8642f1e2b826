//! `proofhouse tool call`: carries out one action, or shows what would be sent.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use proofhouse_campaign::config::positive_duration;
use proofhouse_subjects::call_target::CallTarget;
use proofhouse_subjects::call_trace::CallTrace;
use proofhouse_subjects::operator::{Operator, context};
use proofhouse_tools::runtime::{ActionError, ActionFailure, ActionResult, Invocation};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::write_files::same_file;
use serde_json::{Value, json};

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, complain, shown_path, talk};
use crate::tools::arguments::{ArgumentFlags, RawArguments};
use crate::tools::manifests;
use crate::tools::options::OperatorOptions;
use crate::tools::work::{Worked, until_interrupted};

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// Call one action of a tool
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse tool call examples/tools/clock.yaml greet --arg name=Ada\n  \
    proofhouse tool call examples/tools/weather.yaml forecast --json '{\"city\": \"Oslo\"}' --dry-run\n  \
    proofhouse tool call examples/tools/weather.yaml forecast --arg city=Oslo --trace calls.jsonl\n\n\
    Exit codes:\n  \
    0   success\n  \
    1   the call failed with an error that is passed to the model\n  \
    3   the call failed with an error that ends the task, or a manifest cannot be used\n  \
    64  invalid arguments\n  \
    130 stopped by Ctrl-C")]
pub(crate) struct ToolCallCommand {
    /// The file with the tool manifest, which can hold several, or `-` for stdin
    manifest: PathBuf,

    /// The action: its name in the manifest, or the name of its function
    action: String,

    #[command(flatten)]
    arguments: ArgumentFlags,

    #[command(flatten)]
    operator: OperatorOptions,

    /// Print the request with secrets masked instead of sending it. OpenAPI descriptions are still fetched
    #[arg(long)]
    dry_run: bool,

    /// Write the call to this trace file
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    trace: Option<PathBuf>,

    /// The time limit for the call, including its preparation
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    timeout: Option<Duration>,

    /// The output format
    #[arg(long, value_enum, default_value_t = ToolCallFormat::Human)]
    format: ToolCallFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolCallFormat {
    /// Only the result, as JSON; errors go to stderr
    Human,
    /// A JSON object with the result or the error
    Json,
}

/// How the call ended, if it began.
struct CallEnd {
    target: CallTarget,
    result: Result<ActionResult, ActionError>,
    took: Duration,
}

impl ToolCallCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        self.check_files()?;
        let tools = manifests::tools(std::slice::from_ref(&self.manifest))?;
        let operator = self.operator.operator_of_one_call()?;
        let target = CallTarget::find(&tools, &self.action)
            .map_err(|error| CommandError::usage(error.to_string()))?;
        let given = self.arguments.read()?;
        if self.dry_run {
            let cancel = CancellationToken::new();
            let shown =
                until_interrupted(&cancel, self.preview(&operator, target, given, &cancel))?;
            return shown.whole()?;
        }
        let cancel = CancellationToken::new();
        let called = until_interrupted(&cancel, self.call(&operator, target, given, &cancel))?;
        let (called, exit) = match called {
            Worked::Whole(called) => (called?, None),
            Worked::Interrupted(called) => (called?, Some(Exit::Interrupted)),
        };
        let failed = match &called.result {
            Ok(_) => Exit::Success,
            Err(error) if error.is_recoverable() => Exit::Failure,
            Err(_) => Exit::CannotRun,
        };
        self.print(&called)?;
        Ok(exit.unwrap_or(failed))
    }

    /// Stdin is read once, and what is read is not written over.
    fn check_files(&self) -> Result<(), CommandError> {
        let from_stdin = [
            self.manifest == Path::new("-"),
            self.operator.read_stdin(),
            self.arguments.read_stdin(),
        ];
        if from_stdin.into_iter().filter(|reads| *reads).count() > 1 {
            return Err(CommandError::usage("stdin can be read only once"));
        }
        let read = [Some(self.manifest.as_path()), self.operator.file()];
        match &self.trace {
            Some(trace)
                if read
                    .into_iter()
                    .flatten()
                    .any(|path| same_file(path, trace)) =>
            {
                let shown = shown_path(trace);
                Err(CommandError::usage(format!(
                    "--trace {shown}: this file is also an input"
                )))
            }
            _ => Ok(()),
        }
    }

    async fn preview(
        &self,
        operator: &Operator,
        target: CallTarget,
        given: RawArguments<'_>,
        cancel: &CancellationToken,
    ) -> Result<Exit, CommandError> {
        let task = operator.task(&target.from);
        let shown = task.preview_request(Invocation {
            cancel: cancel.clone(),
            arguments: given.for_properties(&target.properties),
            context: context(&target.from.tool),
            action: target.action.clone(),
            ..Invocation::default()
        });
        match shown.await {
            Ok(shown) => {
                let mut data = StdoutData::new();
                data.json(&shown)?;
                data.finish()?;
                Ok(Exit::Success)
            }
            Err(error) => {
                let exit = if error.is_recoverable() {
                    Exit::Failure
                } else {
                    Exit::CannotRun
                };
                self.print(&CallEnd {
                    target,
                    result: Err(error),
                    took: Duration::ZERO,
                })?;
                Ok(exit)
            }
        }
    }

    async fn call(
        &self,
        operator: &Operator,
        mut target: CallTarget,
        given: RawArguments<'_>,
        cancel: &CancellationToken,
    ) -> Result<CallEnd, CommandError> {
        // What the function is called may only be known once a server was asked.
        let named = Arc::new(OnceLock::new());
        let trace = match &self.trace {
            Some(path) => Some(trace_to(path, &named)?),
            None => None,
        };
        let mut task = operator.task(&target.from);
        if let Some(trace) = &trace {
            task = task.with_observer(Arc::new(trace.clone()));
        }
        let started = Instant::now();
        let calling = async {
            target.complete(&task, &self.action, cancel).await?;
            let _ = named.set((target.action.clone(), target.function.clone()));
            let invoked = task.invoke(
                &target.action,
                given.for_properties(&target.properties),
                context(&target.from.tool),
                cancel.clone(),
            );
            invoked.await
        };
        let result = match self.timeout {
            None => calling.await,
            Some(most) => {
                tokio::pin!(calling);
                tokio::select! {
                    result = &mut calling => result,
                    () = tokio::time::sleep(most) => {
                        cancel.cancel();
                        calling.await.map_err(|error| late(error, most))
                    }
                }
            }
        };
        let took = started.elapsed();
        manifests::tear_down(&task).await;
        if let Some(trace) = trace {
            trace.finish()?;
        }
        Ok(CallEnd {
            target,
            result,
            took,
        })
    }

    fn print(&self, called: &CallEnd) -> Result<(), CommandError> {
        let mut data = StdoutData::new();
        match (self.format, &called.result) {
            (ToolCallFormat::Human, Ok(outcome)) => {
                if outcome.truncated {
                    talk("warning: the result was too long and was truncated");
                }
                data.json(&outcome.value)?;
            }
            (ToolCallFormat::Human, Err(error)) => {
                complain(&error.to_string());
                if error.outcome_unknown {
                    talk("the request may have taken effect; it was not repeated");
                }
                if let Some(body) = error.detail.get("body").and_then(Value::as_str) {
                    talk(body);
                }
            }
            (ToolCallFormat::Json, result) => {
                data.json(&envelope(&called.target, result, called.took))?;
            }
        }
        data.finish()
    }
}

/// A trace of one action, under the name that will be set.
fn trace_to(
    path: &Path,
    named: &Arc<OnceLock<(String, String)>>,
) -> Result<CallTrace, CommandError> {
    let named = Arc::clone(named);
    let trace = CallTrace::create(path, move |_, _, called| match named.get() {
        Some((action, function)) if action == called => Some(function.clone()),
        _ => None,
    });
    Ok(trace?)
}

/// The error of a call that was cancelled because its time was up.
fn late(error: ActionError, most: Duration) -> ActionError {
    if error.failure != ActionFailure::Cancelled {
        return error;
    }
    let message = format!("there was no result in {} s", most.as_secs_f32());
    let mut late = ActionError::new(ActionFailure::Timeout, message);
    late.outcome_unknown = error.outcome_unknown;
    late
}

fn envelope(
    target: &CallTarget,
    result: &Result<ActionResult, ActionError>,
    took: Duration,
) -> Value {
    let mut envelope = json!({
        "version": VERSION,
        "tool": {"namespace": target.from.tool.namespace, "name": target.from.tool.name},
        "action": target.action,
        "function": target.function,
        "seconds": took.as_secs_f64(),
    });
    match result {
        Ok(outcome) => {
            envelope["result"] = outcome.value.clone();
            envelope["truncated"] = outcome.truncated.into();
        }
        Err(error) => {
            envelope["error"] = error.to_json();
            envelope["error"]["recoverable"] = error.is_recoverable().into();
        }
    }
    envelope
}
