//! `proofhouse attack`: runs one document against an agent the user attaches.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use proofhouse_detect::REDACTED;
use proofhouse_oatf::{Document, parse_duration};
use proofhouse_range::{Endpoint, RunHandle, RunOptions, RunReport, run};

use crate::endpoints::EndpointOptions;
use crate::exit_code::Exit;
use crate::generation_options::GenerationOptions;
use crate::input::{Input, SizeLimit};
use crate::live::Live;
use crate::output::{CommandError, Data, printable_line, talk};
use crate::report::attack;
use crate::rules::load_or_complain;
use crate::semantic_options::SemanticOptions;

/// The fewest characters of a text that can be kept out of what is written.
const SHORTEST_SECRET: usize = 4;

/// Attack an agent with one threat document
///
/// Servers of the document wait for the agent, clients go to it. Attach the agent by the endpoints
/// below; only agents you own or may test.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse attack attack.yaml --mcp-server 127.0.0.1:8080\n  \
    proofhouse attack attack.yaml --mcp-server stdio --verdict verdict.json\n  \
    proofhouse attack attack.yaml --ag-ui-url http://127.0.0.1:8000/agent --trace trace.jsonl\n  \
    proofhouse attack probe.yaml --mcp-client-command 'python server.py'\n\n\
    Exit codes: 0 resisted, 1 exploited or partial, 2 error verdict, 3 could not run or the agent was\n\
    never reached, 64 usage, 130 interrupted (with a verdict on what was seen).")]
pub(crate) struct Attack {
    /// The threat document, or `-` for stdin
    #[arg(value_name = "DOC")]
    document: PathBuf,

    #[command(flatten)]
    endpoints: EndpointOptions,

    /// How long to go on observing at the end; the document's own `grace_period` wins [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<Duration>,

    /// Silence after which an agent that came to our servers counts as done
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    quiet: Duration,

    /// The longest the run may take
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    max_session: Duration,

    /// Write every message of the run to this file, as a trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write the verdict to this file, as JSON
    #[arg(long, value_name = "FILE")]
    verdict: Option<PathBuf>,

    /// Keep the value of this environment variable out of everything that is written; may be given
    /// again
    #[arg(long = "redact-env", value_name = "NAME")]
    redact: Vec<String>,

    /// Answer requests of any Origin, which lets web pages reach the server
    #[arg(long)]
    any_origin: bool,

    /// How to print the verdict
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    #[command(flatten)]
    size: SizeLimit,

    #[command(flatten)]
    semantic: SemanticOptions,

    #[command(flatten)]
    generation: GenerationOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// For programs
    Json,
}

impl Attack {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let input = if self.document.as_os_str() == "-" {
            Input::Stdin
        } else {
            Input::File(self.document.clone())
        };
        if let Input::File(path) = &input
            && !path.exists()
        {
            let name = path.display();
            return Err(CommandError::usage(format!("{name}: no such file")));
        }
        let name = input.name();
        let document = load_or_complain(&input, self.size).ok_or_else(|| {
            CommandError::cannot_run("the document cannot be used, so nothing was attacked")
        })?;
        let (options, live) = self.options(&document)?;
        let over_stdio = options
            .endpoints
            .values()
            .any(|endpoint| matches!(endpoint, Endpoint::Stdio));
        if over_stdio && matches!(input, Input::Stdin) {
            return Err(CommandError::usage(
                "stdin cannot be both the document and the agent",
            ));
        }
        let report = execute(&document, options, &live)?;
        self.tell(&document, &name, &report, over_stdio)?;
        Ok(attack::exit(&report))
    }

    /// What must not appear in anything that leaves: values of headers, which are credentials more
    /// often than not, and of the variables the user names.
    fn secrets(&self, headers: &[(String, String)]) -> Result<Vec<String>, CommandError> {
        let mut secrets = Vec::new();
        for (name, value) in headers {
            secrets.push(value.clone());
            // `Bearer TOKEN`: the token travels without its scheme, too.
            if name.to_ascii_lowercase().ends_with("authorization")
                && let Some((_, credentials)) = value.split_once(' ')
            {
                secrets.push(credentials.trim().to_owned());
            }
        }
        secrets.retain(|secret| secret.chars().count() >= SHORTEST_SECRET);
        for variable in &self.redact {
            #[expect(clippy::disallowed_methods, reason = "the user names the variable")]
            let value = std::env::var(variable).map_err(|_| {
                CommandError::usage(format!("--redact-env: `{variable}` is not set"))
            })?;
            if value.chars().count() < SHORTEST_SECRET {
                return Err(CommandError::usage(format!(
                    "--redact-env: the value of `{variable}` has fewer than {SHORTEST_SECRET} \
                     characters, which would be found everywhere"
                )));
            }
            if REDACTED.contains(&value) {
                return Err(CommandError::usage(format!(
                    "--redact-env: the value of `{variable}` is a part of `{REDACTED}`, which \
                     stands for what was taken out"
                )));
            }
            secrets.push(value);
        }
        secrets.retain(|secret| !REDACTED.contains(secret.as_str()));
        Ok(secrets)
    }

    fn options(&self, document: &Document) -> Result<(RunOptions, Live), CommandError> {
        let live = Live::new(document);
        let headers = self.endpoints.headers()?;
        let secrets = self.secrets(&headers)?;
        let trace: Option<Box<dyn Write + Send>> = match &self.trace {
            Some(path) => Some(Box::new(LineWriter::new(create(path)?))),
            None => None,
        };
        let usual = RunOptions::default();
        let options = RunOptions {
            endpoints: self.endpoints.of(document)?,
            grace: self.grace.unwrap_or(usual.grace),
            quiet: self.quiet,
            max_session: self.max_session,
            check_origin: !self.any_origin,
            headers,
            trace,
            secrets,
            observer: Some(live.observer()),
            semantic: self.semantic.evaluator()?,
            generation: self.generation.provider()?,
            ..usual
        };
        Ok((options, live))
    }

    fn tell(
        &self,
        document: &Document,
        name: &str,
        report: &RunReport,
        over_stdio: bool,
    ) -> Result<(), CommandError> {
        let json = attack::json(document, name, report);
        if let Some(path) = &self.verdict {
            let mut file = create(path)?;
            writeln!(file, "{json:#}").map_err(|error| cannot_write(path, &error))?;
        }
        // Over stdio, stdout belongs to the protocol.
        let mut data = if over_stdio {
            Data::on_stderr()
        } else {
            Data::new()
        };
        let trace = self
            .trace
            .as_ref()
            .map_or_else(|| "trace".to_owned(), |path| path.display().to_string());
        match self.format {
            Format::Human => attack::human(&mut data, document, &trace, report)?,
            Format::Json => data.json(&json)?,
        }
        data.finish()
    }
}

/// Runs the document, and ends it in good order when the person at the terminal says so.
fn execute(
    document: &Document,
    options: RunOptions,
    live: &Live,
) -> Result<RunReport, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::cannot_run(format!("cannot start: {error}")))?;
    let handle = RunHandle::default();
    let outcome = runtime.block_on(async {
        let running = run(document, options, &handle);
        tokio::pin!(running);
        tokio::select! {
            report = &mut running => return Some(report),
            () = asked_to_stop() => {
                live.finish();
                talk("interrupted: judging what was seen; once more to leave at once");
                handle.interrupt();
            }
        }
        tokio::select! {
            report = running => Some(report),
            () = asked_to_stop() => None,
        }
    });
    live.finish();
    // Reading stdin cannot be cancelled, so the runtime does not wait for it.
    runtime.shutdown_background();
    match outcome {
        Some(report) => {
            report.map_err(|error| CommandError::cannot_run(printable_line(&error.to_string())))
        }
        None => Err(CommandError {
            message: "left at once; nothing was judged".to_owned(),
            exit: Exit::Interrupted,
        }),
    }
}

/// Waits for Ctrl-C or a request to terminate.
async fn asked_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let kind = tokio::signal::unix::SignalKind::terminate();
        if let Ok(mut terminated) = tokio::signal::unix::signal(kind) {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    let _ = interrupted.await;
}

fn create(path: &Path) -> Result<File, CommandError> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::cannot_run(format!("{}: cannot write: {error}", path.display()))
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|_| "write a duration such as 30s, 5m or PT1H".to_owned())
}
