//! Models on the command line: their names, their keys from the environment, recordings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use proofhouse_agent::SteppedClock;
use proofhouse_agent::model::{
    self, Model, ModelConfig, ModelOptions, OpenError, RecordError, Recorder, Redactor, Replay,
};
use proofhouse_agent::task::ModelSource;
use proofhouse_manifest::interpolate::Sealed;

use crate::output::CommandError;
use crate::tools::options::now;

/// The model where nothing else is said: it needs neither a key nor a network.
const DEFAULT_MODEL: &str = "sim:careful";

/// A key for whichever provider has none of its own.
const ANY_KEY: &str = "PROOFHOUSE_MODEL_KEY";

/// Where a provider's settings are in the environment.
struct Variables {
    prefix: &'static str,
    keys: &'static [&'static str],
    base_url: &'static str,
    api_version: Option<&'static str>,
}

const VARIABLES: &[Variables] = &[
    Variables {
        prefix: "openai",
        keys: &["OPENAI_API_KEY"],
        base_url: "OPENAI_BASE_URL",
        api_version: None,
    },
    Variables {
        prefix: "azure",
        keys: &["AZURE_OPENAI_API_KEY"],
        base_url: "AZURE_OPENAI_ENDPOINT",
        api_version: Some("OPENAI_API_VERSION"),
    },
    Variables {
        prefix: "anthropic",
        keys: &["ANTHROPIC_API_KEY"],
        base_url: "ANTHROPIC_BASE_URL",
        api_version: None,
    },
    Variables {
        prefix: "google",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: "GOOGLE_GEMINI_BASE_URL",
        api_version: None,
    },
];

/// Which model an agent has.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model: openai:MODEL, azure:DEPLOYMENT, anthropic:MODEL, google:MODEL, sim:careful, sim:gullible
    /// or sim:scripted:FILE; without it that of the manifest, and else sim:careful, a simulation
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// Where the provider of the model is, if not at its usual address
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// How freely the model chooses its words
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,

    /// Makes the model's choice repeatable, where its provider knows of it
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Write what the model is asked and says to this new file, for --replay
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,

    /// Answer from such a file instead of a model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "base_url"])]
    replay: Option<PathBuf>,
}

/// A clock for tasks and traces.
pub(crate) type Clock = Arc<dyn Fn() -> String + Send + Sync>;

/// The models of the tasks of one command.
pub(crate) struct Models {
    pub(crate) main: Arc<dyn Model>,
    /// For agents whose manifests name others, unless the command line or a recording decides.
    pub(crate) others: Option<Arc<ModelSource>>,
    pub(crate) options: ModelOptions,
    pub(crate) clock: Clock,
    /// Whether what happens must have one order.
    pub(crate) in_order: bool,
    recorder: Option<Arc<Recorder>>,
}

impl ModelArgs {
    /// The files it reads and writes.
    pub(crate) fn files(&self) -> (Option<&Path>, Option<&Path>) {
        (self.replay.as_deref(), self.record.as_deref())
    }

    /// Opens the model, for an agent whose manifest names this one. The redactor keeps secrets out of
    /// recordings.
    pub(crate) fn models(
        &self,
        manifest: Option<&str>,
        redactor: Redactor,
    ) -> Result<Models, CommandError> {
        let options = ModelOptions {
            temperature: self.temperature,
            seed: self.seed,
            ..ModelOptions::default()
        };
        let mut models = Models {
            main: Arc::new(proofhouse_sim::SimulatedModel::CAREFUL),
            others: None,
            options,
            clock: Arc::new(now),
            in_order: self.record.is_some() || self.replay.is_some(),
            recorder: None,
        };
        if let Some(path) = &self.replay {
            let replay = Replay::open(path).map_err(|error| of_record("--replay", path, &error))?;
            let start = replay.started_at().map_or_else(now, str::to_owned);
            models.clock = stepped(&start)?;
            models.main = Arc::new(replay.with_redactor(redactor));
            return Ok(models);
        }
        let spec = self.model.as_deref().or(manifest).unwrap_or(DEFAULT_MODEL);
        models.main = open(spec, self.base_url.as_deref(), Path::new("."))?;
        if let Some(path) = &self.record {
            let start = now();
            models.clock = stepped(&start)?;
            let recorder = Recorder::create_at(models.main, path, Some(redactor), &start);
            let recorder = Arc::new(recorder.map_err(|error| of_record("--record", path, &error))?);
            models.main = Arc::clone(&recorder) as Arc<dyn Model>;
            models.recorder = Some(recorder);
        } else if self.model.is_none() {
            let base_url = self.base_url.clone();
            models.others = Some(Arc::new(move |spec: &str| {
                open(spec, base_url.as_deref(), Path::new(".")).map_err(|error| error.to_string())
            }));
        }
        Ok(models)
    }
}

impl Models {
    /// Says whether the recording is whole.
    pub(crate) fn finish(&self) -> Result<(), CommandError> {
        match self
            .recorder
            .as_ref()
            .and_then(|recorder| recorder.failure())
        {
            None => Ok(()),
            Some(reason) => Err(CommandError::cannot_run(format!(
                "--record: cannot write: {reason}"
            ))),
        }
    }
}

fn stepped(start: &str) -> Result<Clock, CommandError> {
    let clock = SteppedClock::new(start)
        .ok_or_else(|| CommandError::cannot_run(format!("--replay: `{start}` is not a time")))?;
    Ok(Arc::new(move || clock.now()))
}

fn of_record(flag: &str, path: &Path, error: &RecordError) -> CommandError {
    let message = match error {
        RecordError::File { .. } => format!("{flag} {error}"),
        _ => format!("{flag} {}: {error}", path.display()),
    };
    CommandError::cannot_run(message)
}

/// Opens a model with the settings that its provider has in the environment. Files that its name mentions
/// are looked for in the directory.
pub(crate) fn open(
    spec: &str,
    base_url: Option<&str>,
    directory: &Path,
) -> Result<Arc<dyn Model>, CommandError> {
    let prefix = spec.split(':').next().unwrap_or_default();
    let mut config = ModelConfig {
        directory: directory.to_owned(),
        ..ModelConfig::default()
    };
    if let Some(variables) = VARIABLES.iter().find(|row| row.prefix == prefix) {
        config.base_url = base_url
            .map(str::to_owned)
            .or_else(|| variable(variables.base_url));
        let keys = variables.keys.iter().chain([&ANY_KEY]);
        let key = keys.clone().find_map(|name| variable(name));
        if key.is_none() && config.base_url.is_none() {
            let names: Vec<&str> = keys.copied().collect();
            return Err(CommandError::usage(format!(
                "{spec} needs a key: set {}",
                names.join(" or ")
            )));
        }
        config.key = key.map(Sealed::new);
        config.api_version = variables.api_version.and_then(variable);
    }
    model::open(spec, &config).map_err(|error| match error {
        OpenError::Unknown { .. }
        | OpenError::Incomplete { .. }
        | OpenError::NeedsBaseUrl { .. } => CommandError::usage(error.to_string()),
        _ => CommandError::cannot_run(error.to_string()),
    })
}

/// A variable of the environment that is set and not empty.
fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the names are documented")]
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}
