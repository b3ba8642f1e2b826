//! The models of an agent that runs by itself: the one that was chosen, those that other manifests name, and recordings
//! of what they say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_agent::SteppedClock;
use proofhouse_agent::model::{
    Model, ModelOptions, RecordError, RecordedModel, Recorder, RedactText,
};
use proofhouse_agent::task::{ModelSource, ModelUnavailable};

use crate::EnvironmentLookup;
use crate::models::{DEFAULT_MODEL, SubjectModelError, open};
use crate::operator::now;

/// Which model an agent has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelChoice {
    /// The model, if not that of the manifest.
    pub model: Option<String>,
    /// Where its provider is, if not at its usual address.
    pub base_url: Option<String>,
    /// How freely it chooses its words.
    pub temperature: Option<f64>,
    /// Makes its choice repeatable.
    pub seed: Option<u64>,
    /// The new file that gets what it is asked and says.
    pub record: Option<PathBuf>,
    /// Such a file, which answers instead of a model.
    pub replay: Option<PathBuf>,
}

/// Why the models of an agent cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// A model cannot be had.
    #[error(transparent)]
    Model(#[from] SubjectModelError),
    /// A recording cannot be read or begun.
    #[error("{flag} {}{error}", path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
    Record {
        /// The flag that named it.
        flag: &'static str,
        /// The file, where the error does not name it.
        path: Option<PathBuf>,
        /// Why.
        error: RecordError,
    },
    /// The recording does not say when it began.
    #[error("--replay: `{0}` is not a time")]
    NoTime(String),
    /// The recording is not whole.
    #[error("--record: cannot write: {0}")]
    NotWritten(String),
}

impl ModelsError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Model(error) => error.is_usage(),
            Self::Record { .. } | Self::NoTime(_) | Self::NotWritten(_) => false,
        }
    }
}

/// A clock for tasks and traces.
pub type TaskClock = Arc<dyn Fn() -> String + Send + Sync>;

/// The models of the tasks of one command.
pub struct Models {
    /// The model that was chosen.
    pub main: Arc<dyn Model>,
    /// For agents whose manifests name others, unless the command line or a recording decides.
    pub others: Option<Arc<ModelSource>>,
    /// How the models are asked.
    pub options: ModelOptions,
    /// What tells the time.
    pub clock: TaskClock,
    /// Whether what happens must have one order.
    pub in_order: bool,
    recorder: Option<Arc<Recorder>>,
}

impl ModelChoice {
    /// Opens the model, for an agent whose manifest names this one. The redactor keeps secrets out of
    /// recordings.
    ///
    /// # Errors
    ///
    /// Returns an error when a model cannot be had, or a recording cannot be read or begun.
    pub fn open(
        &self,
        manifest: Option<&str>,
        redactor: RedactText,
        environment: &EnvironmentLookup,
    ) -> Result<Models, ModelsError> {
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
            let replay =
                RecordedModel::open(path).map_err(|error| of_record("--replay", path, error))?;
            let start = replay.started_at().map_or_else(now, str::to_owned);
            models.clock = stepped(&start)?;
            models.main = Arc::new(replay.with_redactor(redactor));
            return Ok(models);
        }
        let spec = self.model.as_deref().or(manifest).unwrap_or(DEFAULT_MODEL);
        models.main = open(spec, self.base_url.as_deref(), Path::new("."), environment)?;
        if let Some(path) = &self.record {
            let start = now();
            models.clock = stepped(&start)?;
            let recorder = Recorder::create_at(models.main, path, Some(redactor), &start);
            let recorder = Arc::new(recorder.map_err(|error| of_record("--record", path, error))?);
            models.main = Arc::clone(&recorder) as Arc<dyn Model>;
            models.recorder = Some(recorder);
        } else if self.model.is_none() {
            let (base_url, environment) = (self.base_url.clone(), Arc::clone(environment));
            models.others = Some(Arc::new(move |spec: &str| {
                let opened = open(spec, base_url.as_deref(), Path::new("."), &environment);
                opened.map_err(ModelUnavailable::new)
            }));
        }
        Ok(models)
    }
}

impl Models {
    /// Says whether the recording is whole.
    ///
    /// # Errors
    ///
    /// Returns an error when it is not.
    pub fn finish(&self) -> Result<(), ModelsError> {
        match self
            .recorder
            .as_ref()
            .and_then(|recorder| recorder.failure())
        {
            None => Ok(()),
            Some(reason) => Err(ModelsError::NotWritten(reason)),
        }
    }
}

fn stepped(start: &str) -> Result<TaskClock, ModelsError> {
    let clock = SteppedClock::new(start).ok_or_else(|| ModelsError::NoTime(start.to_owned()))?;
    Ok(Arc::new(move || clock.now()))
}

fn of_record(flag: &'static str, path: &Path, error: RecordError) -> ModelsError {
    let is_named = matches!(error, RecordError::File { .. });
    ModelsError::Record {
        flag,
        path: (!is_named).then(|| path.to_owned()),
        error,
    }
}
