//! `proofhouse attack`: runs one document against an agent the user attaches.

use std::fs::File;
use std::io::{self, LineWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::{Args, ValueEnum};
use proofhouse_campaign::canaries;
use proofhouse_campaign::config::{duration, positive_duration};
use proofhouse_campaign::document::{DocumentError, Script, TwinError};
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_campaign::library;
use proofhouse_campaign::load::with_control;
use proofhouse_campaign::outcome::{
    ControlState, JudgedAttack, RunCondition, RunOutcome, broken_by, control_state,
};
use proofhouse_campaign::planted::Planted;
use proofhouse_detect::{REDACTED, Redactor};
use proofhouse_oatf::Document;
use proofhouse_range::{
    ActorEndpoint, ClientAuthorization, DeliveryModifiers, Ending, RunHandle, RunOptions,
    RunReport, run,
};
use proofhouse_report::attack;
use proofhouse_subjects::client_authorization::client_authorization;
use proofhouse_subjects::headers::{self, SHORTEST_SECRET};
use proofhouse_wire::run_files::{WholeFile, create_trace};
use proofhouse_wire::sync::lock;
use proofhouse_wire::write_files::{WriteError, same_file};

use crate::endpoints::EndpointOptions;
use crate::exit_code::Exit;
use crate::generation_options::GenerationOptions;
use crate::input::{FileInput, SizeLimit, named_files};
use crate::live::Live;
use crate::notices;
use crate::output::{CommandError, StdoutData, printable_line, shown_path, talk};
use crate::rules::load_or_complain;
use crate::runtime::runtime;
use crate::semantic_options::SemanticOptions;
use crate::signals::interruptible;
use crate::tools::options::read_settings;

/// How long leaving at once may take.
const LEAVING: Duration = Duration::from_millis(500);

/// Attack an agent with one threat document
///
/// Runs the attacking side of one document and waits for your agent. Where the document plays a server, point your
/// agent at the address given below; where it plays a client, give the URL or the command of your agent. Attack
/// only agents that you own or have permission to test.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse attack attack.yaml --mcp-server 127.0.0.1:8080\n  \
    proofhouse attack attack.yaml --mcp-server stdio --verdict verdict.json\n  \
    proofhouse attack attack.yaml --ag-ui-url http://127.0.0.1:8000/agent --trace trace.jsonl\n  \
    proofhouse attack probe.yaml --mcp-client-command 'python server.py'\n\n\
    If the document has a control (`x-proofhouse.twin`: the same task without the payload), the control \
    runs first, so the agent has to do its task twice.\n\n\
    `attack` makes no channel probes, so it never says that an agent resisted; `proofhouse run DOC` does.\n\n\
    Exit codes:\n  \
    0   with --no-verdict: the attack reached the agent\n  \
    1   exploited or partially exploited\n  \
    2   inconclusive\n  \
    3   could not run, or a file cannot be written\n  \
    64  invalid arguments\n  \
    130 stopped by Ctrl-C before anything got through")]
pub(crate) struct AttackCommand {
    /// The threat document, or `-` for stdin
    #[arg(value_name = "DOC")]
    document: PathBuf,

    /// A settings file with one entry under `mcp.oauth`, which says how the attack's MCP clients obtain OAuth
    /// tokens
    #[arg(long, value_name = "FILE")]
    oauth: Option<PathBuf>,

    /// How long to keep watching after the last phase; `grace_period` in the document overrides it [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<Duration>,

    /// End the run when the agent has not connected, or has sent nothing, for this long
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "5m")]
    idle_limit: Duration,

    /// The time limit for the whole run
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "30m")]
    max_session: Duration,

    /// Write every message of the run to this trace file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write the verdict to this JSON file
    #[arg(long, value_name = "FILE")]
    verdict: Option<PathBuf>,

    /// Random seed for the canaries (planted secrets) of the document [default: a new seed, which is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Remove the value of this environment variable from all output and files; can be repeated
    #[arg(long = "redact-env", value_name = "NAME")]
    redact: Vec<String>,

    /// Allow a document without indicators; there is no verdict then
    #[arg(long)]
    no_verdict: bool,

    /// Skip the control run
    #[arg(long)]
    no_control: bool,

    /// Also run a document that uses operations, states or targets unknown to its protocol
    #[arg(long)]
    allow_unknown: bool,

    /// Accept requests with any Origin header; web pages can then reach the server
    #[arg(long)]
    any_origin: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t = AttackFormat::Human)]
    format: AttackFormat,

    #[command(flatten)]
    size: SizeLimit,

    #[command(flatten)]
    endpoints: EndpointOptions,

    #[command(flatten)]
    semantic: SemanticOptions,

    #[command(flatten)]
    generation: GenerationOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AttackFormat {
    /// For people
    Human,
    /// For programs
    Json,
}

impl AttackCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let input = FileInput::named(&self.document);
        named_files([self.document.as_path()]).map_err(|missing| {
            let message = library::with_advice(missing.to_string(), Some(&self.document));
            CommandError::usage(printable_line(&message))
        })?;
        WantedFiles::ThreatDocuments.check(std::slice::from_ref(&self.document))?;
        self.check_files(&input)?;
        let name = input.name();
        let document =
            load_or_complain(&input, self.size, self.allow_unknown).ok_or_else(|| {
                CommandError::cannot_run("the document cannot be used; nothing was attacked")
            })?;
        if document.attack.indicators().is_empty() && !self.no_verdict {
            return Err(CommandError::usage(format!(
                "{}: the document has no indicators, so there would be no verdict; --no-verdict \
                 runs it all the same",
                printable_line(&name)
            )));
        }
        let script = self.with_control(&input, &document)?;
        let planted = Planted::new(&document, self.seed).map_err(|error| {
            CommandError::cannot_run(printable_line(&format!("{name}: {error}")))
        })?;
        let document = match &planted {
            Some(planted) => planted.document.clone(),
            None => document,
        };
        let mut options = self.options(&document)?;
        options.twin = script.baseline(planted.as_ref())?;
        let over_stdio = options
            .endpoints
            .values()
            .any(|endpoint| matches!(endpoint, ActorEndpoint::Stdio));
        if over_stdio && matches!(input, FileInput::Stdin) {
            return Err(CommandError::usage(
                "stdin cannot be both the document and the agent",
            ));
        }
        check_delivery(&document)?;
        // Only now: what was there before is not lost to a mistake on the command line.
        let trace = match &self.trace {
            Some(path) => {
                let output = Watched::new(create_trace(path)?);
                let failure = Arc::clone(&output.failure);
                options.trace = Some(Box::new(LineWriter::new(output)));
                Some((path.as_path(), failure))
            }
            None => None,
        };
        let verdict = match &self.verdict {
            Some(path) => Some((path.as_path(), WholeFile::create(path)?)),
            None => None,
        };
        let control = self.control(&script, planted.as_ref(), over_stdio)?;
        let live = Live::new(&document);
        options.observer = Some(live.observer());
        let report = execute(&document, options, &live)?;
        let mut failures = Vec::new();
        let mut cited = None;
        if let Some((path, failure)) = trace {
            match lock(&failure).take() {
                Some(why) => failures.push(format!("{}: cannot write: {why}", shown_path(path))),
                None => cited = Some(path.display().to_string()),
            }
        }
        let judged = JudgedAttack::new(&document, &report, &control);
        let judged = judged.as_ref();
        let json = attack::json(&document, &name, planted.as_ref(), judged, &report);
        if let Some((path, file)) = verdict
            && let Err(error) = file.finish(&format!("{json:#}\n"))
        {
            let path = path.to_owned();
            let error = WriteError { path, error };
            failures.push(printable_line(&error.to_string()));
        }
        // Over stdio, stdout belongs to the protocol.
        let mut data = if over_stdio {
            StdoutData::on_stderr()
        } else {
            StdoutData::new()
        };
        match self.format {
            AttackFormat::Human => {
                let cited = cited.as_deref();
                data.write(&attack::text(&document, &name, cited, judged, &report))?;
                if let Some(planted) = &planted {
                    data.line(&format!(
                        "canaries: use --seed {} to get the same ones again",
                        planted.seed
                    ))?;
                }
            }
            AttackFormat::Json => data.json(&json)?,
        }
        data.finish()?;
        if failures.is_empty() {
            return Ok(exit(judged, &report));
        }
        Err(CommandError::cannot_run(failures.join("; ")))
    }

    /// The document with its control.
    fn with_control(
        &self,
        input: &FileInput,
        document: &Document,
    ) -> Result<ControlledAttack, CommandError> {
        if document.attack.indicators().is_empty() {
            return Ok(ControlledAttack::without("the document has no indicators"));
        }
        let limits = self.size.limits();
        match with_control(input, document.clone(), &limits, &notices::show) {
            Ok(loaded) => Ok(match (loaded.twin, loaded.control_problem) {
                (_, Some(why)) => {
                    ControlledAttack::without(&format!("the control still has the payload: {why}"))
                }
                (Some(control), None) => ControlledAttack {
                    control: Some(control),
                    why_not: String::new(),
                },
                (None, None) => {
                    ControlledAttack::without("the document names no control (`x-proofhouse.twin`)")
                }
            }),
            Err(DocumentError::Twin {
                file,
                error: error @ (TwinError::NoFile | TwinError::FromStdin),
            }) => Ok(ControlledAttack::without(&format!(
                "the control `{file}`: {error}"
            ))),
            Err(error) => Err(CommandError::cannot_run(printable_line(&format!(
                "{}: {error}",
                input.name()
            )))),
        }
    }

    /// Runs the control, and says what came of it.
    fn control(
        &self,
        script: &ControlledAttack,
        planted: Option<&Planted>,
        over_stdio: bool,
    ) -> Result<ControlState, CommandError> {
        let absent = |why: &str| {
            Ok(ControlState::Absent {
                why: why.to_owned(),
            })
        };
        let Some(control) = &script.control else {
            return absent(&script.why_not);
        };
        if self.no_control {
            return absent("--no-control");
        }
        if over_stdio {
            return absent("over stdio there is only one session, which the attack needs");
        }
        let document = replaced(&control.document, planted)?;
        let mut options = self.options(&document)?;
        let live = Live::new(&document);
        options.observer = Some(live.observer());
        talk("Control run (the same task without the attack): let your agent do the task now.");
        let report = execute(&document, options, &live)?;
        if report.ending == Ending::Interrupted {
            return Err(CommandError {
                message: "interrupted before the attack".to_owned(),
                exit: Exit::Interrupted,
            });
        }
        let state = control_state(&document, control.success.as_ref(), &report);
        let RunCondition { held, why, .. } = state.condition();
        let word = if held { "done" } else { "not done" };
        talk(&printable_line(&format!("control: {word}: {why}")));
        talk("Attack: let your agent do the task again now.");
        Ok(state)
    }

    /// Files that are written are not those that are read, nor one another.
    fn check_files(&self, input: &FileInput) -> Result<(), CommandError> {
        let document = match input {
            FileInput::File(path) => Some(path.as_path()),
            FileInput::Stdin => None,
        };
        let files = [
            ("the document", document),
            ("--trace", self.trace.as_deref()),
            ("--verdict", self.verdict.as_deref()),
        ];
        for (index, (flag, path)) in files.iter().enumerate().skip(1) {
            for (other, earlier) in &files[..index] {
                if let (Some(path), Some(earlier)) = (path, earlier)
                    && same_file(path, earlier)
                {
                    return Err(CommandError::usage(format!(
                        "{flag} {}: this file is also {other}",
                        shown_path(path)
                    )));
                }
            }
        }
        Ok(())
    }

    /// What must not appear in anything that leaves: values of headers, which are credentials more
    /// often than not, and of the variables the user names.
    fn secrets(&self, headers: &[(String, String)]) -> Result<Vec<String>, CommandError> {
        let mut secrets = headers::secrets(headers);
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

    fn authorization(&self) -> Result<Option<ClientAuthorization>, CommandError> {
        let Some(path) = &self.oauth else {
            return Ok(None);
        };
        let authorization = client_authorization(read_settings("--oauth", path)?, |url| {
            talk(&format!(
                "open this URL in a browser and give your consent:\n{url}"
            ));
        });
        authorization
            .map(Some)
            .map_err(|error| CommandError::usage(format!("--oauth {}: {error}", shown_path(path))))
    }

    fn options(&self, document: &Document) -> Result<RunOptions, CommandError> {
        let headers = self.endpoints.headers()?;
        let secrets = self.secrets(&headers)?;
        let redactor = Redactor::new(&secrets)
            .map_err(|error| CommandError::cannot_run(format!("secrets: {error}")))?;
        // What is wrong with an endpoint quotes it.
        let endpoints = self.endpoints.of(document).map_err(|error| CommandError {
            message: redactor.redact(&error.message).into_owned(),
            ..error
        })?;
        let usual = RunOptions::patient(self.idle_limit);
        Ok(RunOptions {
            endpoints,
            grace: self.grace.unwrap_or(usual.grace),
            max_session: self.max_session,
            check_origin: !self.any_origin,
            new_threads: true,
            headers,
            authorization: self.authorization()?,
            secrets,
            semantic: self.semantic.evaluator()?,
            generation: self.generation.provider()?,
            ..usual
        })
    }
}

/// The control of a document, or why there is none.
struct ControlledAttack {
    control: Option<Arc<Script>>,
    why_not: String,
}

impl ControlledAttack {
    fn without(why: &str) -> Self {
        Self {
            control: None,
            why_not: why.to_owned(),
        }
    }

    /// The document without the payload, which tells what the payload is.
    fn baseline(&self, planted: Option<&Planted>) -> Result<Option<Arc<Document>>, CommandError> {
        let control = self.control.as_ref();
        control
            .map(|control| replaced(&control.document, planted).map(Arc::new))
            .transpose()
    }
}

/// A document with the canaries of this run.
fn replaced(document: &Document, planted: Option<&Planted>) -> Result<Document, CommandError> {
    match planted {
        None => Ok(document.clone()),
        Some(planted) => canaries::replace(document, &planted.values)
            .map_err(|error| CommandError::cannot_run(printable_line(&error.to_string()))),
    }
}

/// Says what is wrong with an `x-delivery` before anything is written.
fn check_delivery(document: &Document) -> Result<(), CommandError> {
    for actor in document.attack.execution.actors() {
        let phases = actor.phases.iter().map(|phase| &phase.extensions);
        for extensions in phases.chain([&actor.extensions]) {
            if let Some(value) = extensions.get("x-delivery") {
                DeliveryModifiers::from_value(value).map_err(|error| {
                    let error = format!("actor `{}`: {error}", actor.name);
                    CommandError::cannot_run(printable_line(&error))
                })?;
            }
        }
    }
    Ok(())
}

/// A file that remembers why it could not be written.
struct Watched {
    file: File,
    failure: Arc<Mutex<Option<String>>>,
}

impl Watched {
    fn new(file: File) -> Self {
        Self {
            file,
            failure: Arc::default(),
        }
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            let mut failure = lock(&self.failure);
            failure.get_or_insert_with(|| error.to_string());
        }
        result
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.note(result)
    }
}

/// Runs the document, and ends it in good order when the person at the terminal says so.
fn execute(
    document: &Document,
    options: RunOptions,
    live: &Live,
) -> Result<RunReport, CommandError> {
    let runtime = runtime()?;
    let handle = RunHandle::default();
    let outcome = runtime.block_on(interruptible(run(document, options, &handle), || {
        live.finish();
        talk("Interrupted. Scoring what was recorded; press Ctrl-C again to quit.");
        handle.interrupt();
    }));
    live.finish();
    match outcome {
        Some(worked) => {
            // Reading stdin cannot be cancelled, so the runtime does not wait for it.
            runtime.shutdown_background();
            let report = worked.into_inner();
            report.map_err(|error| CommandError::cannot_run(printable_line(&error.to_string())))
        }
        None => {
            // The tasks are dropped, and with them the processes they started.
            runtime.shutdown_timeout(LEAVING);
            Err(CommandError {
                message: "Quit. Nothing was scored.".to_owned(),
                exit: Exit::Interrupted,
            })
        }
    }
}

/// The exit code: that of the outcome, unless the run was cut short before anything got through.
fn exit(judged: Option<&JudgedAttack>, report: &RunReport) -> Exit {
    let outcome = judged.map(|judged| judged.outcome);
    match outcome {
        Some(RunOutcome::Exploited | RunOutcome::Partial) => Exit::Failure,
        _ if report.ending == Ending::Interrupted => Exit::Interrupted,
        Some(RunOutcome::Resisted) => Exit::Success,
        Some(RunOutcome::Inconclusive) => Exit::Inconclusive,
        None if report.exposure.reached && broken_by(report).is_none() => Exit::Success,
        None => Exit::Inconclusive,
    }
}
