//! A command as a subject: started for every run, in a directory and a process group of its own, with the
//! addresses of the attack in its environment, its arguments and its MCP configuration.

mod live;
mod ports;
mod process;
pub(crate) mod variables;
mod workplace;

use std::path::{Path, PathBuf};

use proofhouse_oatf::{Mode, Protocol};
use proofhouse_range::BoxFuture;
use proofhouse_wire::{Spawn, kill_marked};

use self::live::LiveCommand;
use self::ports::Port;
use self::process::SubjectProcess;
use self::variables::{CommandVariables, MARK, plant_canaries};
use self::workplace::Watch;
use crate::mcp_config::McpConfig;
use crate::open::{OpenContext, SubjectOpenError};
use crate::prompt_delivery::{PromptDelivery, header_map};
use crate::spec::{CommandSpec, Directory, Ready, Serves, Urls};
use crate::subject::{LiveSubject, Pace, RunContext, Subject, SubjectError, SubjectInfo};
use crate::{Notice, headers};

/// The placeholder of the rewritten MCP configuration.
const MCP_CONFIG: &str = "mcp_config";

/// How names of files end that people give to commands.
pub(crate) const FILE_ENDINGS: [&str; 10] = [
    "py", "js", "mjs", "cjs", "ts", "sh", "json", "toml", "yaml", "yml",
];

/// A command.
pub(crate) struct CommandSubject {
    info: SubjectInfo,
    spec: CommandSpec,
    headers: Vec<(String, String)>,
    mcp_config: Option<McpConfig>,
    pace: Pace,
}

impl CommandSubject {
    /// The command that is described.
    pub(crate) fn new(
        info: SubjectInfo,
        spec: &CommandSpec,
        pace: Pace,
        opening: &OpenContext<'_>,
    ) -> Result<Self, SubjectOpenError> {
        if spec.words.first().is_none_or(String::is_empty) {
            return Err(SubjectOpenError::NoCommand);
        }
        if let Directory::CopyOf(directory) | Directory::Fixed(directory) = &spec.directory
            && !directory.is_dir()
        {
            return Err(SubjectOpenError::NoDirectory(directory.clone()));
        }
        let mcp_config = match &spec.mcp_config {
            Some(config) => Some(McpConfig::new(config, opening.notify)?),
            None => None,
        };
        let subject = Self {
            info,
            headers: headers::resolve(&spec.headers, &opening.environment)?,
            spec: spec.clone(),
            mcp_config,
            pace,
        };
        subject.hint_at_copies(opening.notify);
        Ok(subject)
    }

    /// Who gives a configuration and never says where the copy goes may expect the file itself to change.
    fn hint_at_copies(&self, notify: &dyn Fn(Notice)) {
        let Some(config) = &self.mcp_config else {
            return;
        };
        let placeholder = format!("{{{MCP_CONFIG}}}");
        let mut values = self
            .spec
            .environment
            .iter()
            .map(|(_, value)| value.expose());
        let is_named = self
            .spec
            .words
            .iter()
            .any(|word| word.contains(&placeholder))
            || values.any(|value| value.contains(&placeholder));
        if !config.is_in_place() && !is_named && self.inside_copy().is_none() {
            notify(Notice::CopiedConfig(config.file().to_owned()));
        }
    }

    /// Where the configuration is in a copy of the command's directory.
    fn inside_copy(&self) -> Option<PathBuf> {
        let Directory::CopyOf(directory) = &self.spec.directory else {
            return None;
        };
        let file = self.mcp_config.as_ref()?.file();
        let inside = file.strip_prefix(directory.canonicalize().ok()?).ok()?;
        Some(inside.to_owned())
    }

    async fn start_now(&self, run: &RunContext) -> Result<LiveCommand, SubjectError> {
        if let Directory::CopyOf(directory) = &self.spec.directory {
            let (from, to) = (directory.clone(), run.directory.clone());
            let copied = tokio::task::spawn_blocking(move || workplace::copy(&from, &to)).await;
            let copied = copied.map_err(SubjectError::of)?;
            copied.map_err(SubjectError::of)?;
        }
        plant_canaries(run).map_err(|error| {
            SubjectError::new(format!("cannot write into the run's directory: {error}"))
        })?;
        let mut variables = CommandVariables::of(run);
        let mut placed = None;
        if let Some(config) = &self.mcp_config {
            let inside = self.inside_copy();
            if inside.is_none() && config.is_in_place() {
                placed = config.place(run).map_err(SubjectError::of)?;
                variables.set(MCP_CONFIG, &config.file().display().to_string());
            } else {
                let name = config.file().file_name().map(PathBuf::from);
                let copy = run.directory.join(inside.or(name).unwrap_or_default());
                config.copy_to(&copy, run).map_err(SubjectError::of)?;
                variables.set(MCP_CONFIG, &copy.display().to_string());
            }
        }
        let mark = run.directory.display().to_string();
        let watch = Watch::begin(run.directory.clone(), self.spec.max_disk, {
            let mark = mark.clone();
            move || {
                kill_marked(MARK, &mark);
            }
        });
        let mut live = LiveCommand {
            spec: self.spec.clone(),
            variables,
            mark,
            directory: match &self.spec.directory {
                Directory::Fixed(directory) => directory.clone(),
                Directory::OfRun | Directory::CopyOf(_) => run.directory.clone(),
            },
            urls: Urls::default(),
            user: None,
            port: None,
            process: None,
            placed,
            watch,
            linger: self.pace.quiet,
            left_running: 0,
            is_ended: false,
        };
        if let Some(serves) = self.spec.serves {
            self.serve(serves, run, &mut live).await?;
        }
        Ok(live)
    }

    async fn serve(
        &self,
        serves: Serves,
        run: &RunContext,
        live: &mut LiveCommand,
    ) -> Result<(), SubjectError> {
        let port = Port::take().map_err(|error| {
            SubjectError::new(format!("there is no free port for the command: {error}"))
        })?;
        let number = port.number();
        live.port = Some(port);
        let url = format!("http://127.0.0.1:{number}/");
        match serves {
            Serves::AgUi => live.urls.ag_ui = Some(url.clone()),
            Serves::A2a => live.urls.a2a = Some(url.clone()),
            Serves::Mcp => live.urls.mcp = Some(format!("{url}mcp")),
        }
        live.variables.set("port", &number.to_string());
        if let Some(endpoint) = live.urls.prompted_at() {
            let thread = run.id.replace('/', "-");
            live.user = Some(PromptDelivery::new(
                endpoint,
                &self.headers,
                &thread,
                self.pace.deadline,
            )?);
        }
        let mut process = live.spawn(None)?;
        let ready = async {
            match &self.spec.ready {
                Ready::Line(line) => process.says(line).await?,
                Ready::Port => {
                    process.leave_alone();
                    process.opens(number).await?;
                }
                Ready::Url(path) => {
                    process.leave_alone();
                    let path = live.variables.fill(path);
                    let whole = if path.contains("://") {
                        path
                    } else {
                        format!("{url}{}", path.trim_start_matches('/'))
                    };
                    process.answers(&whole, &header_map(&self.headers)).await?;
                }
            }
            Ok(())
        };
        let full = live.watch.full();
        let ready: Result<(), SubjectError> = tokio::select! {
            ready = ready => ready,
            () = full.cancelled() => Ok(()),
        };
        if let Some(reason) = live.watch.reason() {
            return Err(SubjectError(reason));
        }
        ready?;
        process.leave_alone();
        live.process = Some(process);
        Ok(())
    }
}

impl Subject for CommandSubject {
    fn info(&self) -> SubjectInfo {
        self.info.clone()
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn meets(&self, mode: &Mode) -> bool {
        // Where servers are is told to it.
        if !mode.is_client() {
            return true;
        }
        match mode.protocol() {
            Protocol::AgUi => self.spec.serves == Some(Serves::AgUi),
            Protocol::A2a => self.spec.serves == Some(Serves::A2a),
            Protocol::Mcp => self.spec.serves == Some(Serves::Mcp),
            Protocol::Other(_) => true,
        }
    }

    fn start_hints(&self) -> Vec<String> {
        let words = &self.spec.words;
        let mut hints = Vec::new();
        if self.spec.directory == Directory::OfRun {
            let here = std::env::current_dir().unwrap_or_default();
            // Names of files that are there were made absolute.
            let is_missing = |word: &&String| {
                let path = Path::new(word.as_str());
                let ending = path.extension().and_then(|ending| ending.to_str());
                let is_file = ending.is_some_and(|ending| FILE_ENDINGS.contains(&ending));
                is_file
                    && path.is_relative()
                    && !word.contains(['{', '=', ' '])
                    && !here.join(path).exists()
            };
            if let Some(word) = words.iter().skip(1).find(is_missing) {
                hints.push(format!("There is no {word} in {}.", here.display()));
            }
            hints.push(
                "The command ran in an empty directory. If it needs files of your project, add `--copy .` (in \
                 proofhouse.yaml: `copy_of: .`)."
                    .to_owned(),
            );
        }
        let takes_prompt = words.iter().any(|word| word.contains("{prompt}"));
        if !takes_prompt && self.spec.serves.is_none() {
            hints.push(
                "The command has no {prompt}, so it gets the task only on stdin; is that intended?"
                    .to_owned(),
            );
        }
        hints
    }

    fn at_a_time(&self) -> Option<usize> {
        self.alone_with().map(|_| 1)
    }

    fn alone_with(&self) -> Option<String> {
        let config = self.mcp_config.as_ref()?;
        let is_shared = config.is_in_place() && self.inside_copy().is_none();
        is_shared.then(|| config.file().display().to_string())
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.headers.clone()
    }

    fn secrets(&self) -> Vec<String> {
        let own = self.spec.secrets.iter();
        let own = own.map(|secret| (String::new(), secret.expose().clone()));
        headers::secrets(&own.chain(self.headers.iter().cloned()).collect::<Vec<_>>())
    }

    fn start<'a>(
        &'a self,
        run: &'a RunContext,
    ) -> BoxFuture<'a, Result<Box<dyn LiveSubject>, SubjectError>> {
        Box::pin(async move {
            let live: Box<dyn LiveSubject> = Box::new(self.start_now(run).await?);
            Ok(live)
        })
    }
}

impl LiveCommand {
    fn spawn(&self, prompt: Option<&str>) -> Result<SubjectProcess, SubjectError> {
        let mut variables = self.variables.clone();
        if let Some(prompt) = prompt {
            variables.set("prompt", prompt);
        }
        let mut words = self.spec.words.iter().map(|word| variables.fill(word));
        let program = words.next().unwrap_or_default();
        let own = self.spec.environment.iter();
        let own = own.map(|(name, value)| (name.clone(), variables.fill(value.expose())));
        SubjectProcess::start(&Spawn {
            program,
            arguments: words.collect(),
            // Ours come last: the mark must be there.
            environment: own.chain(variables.environment()).collect(),
            clean_environment: false,
            directory: Some(self.directory.clone()),
        })
    }
}
