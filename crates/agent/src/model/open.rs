//! Names of models: the word before the colon says which row of the table makes the model.

use std::path::Path;
use std::sync::Arc;

use proofhouse_sim::{ScriptError, ScriptedModel, SimulatedModel};
use proofhouse_source::did_you_mean;

use super::providers::PROVIDERS;
use super::{Model, ModelConfig, RecordError, RecordedModel};

/// One kind of model.
pub struct ProviderRow {
    /// The word before the colon.
    pub prefix: &'static str,
    /// What follows the colon.
    pub rest: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Whether it needs an address of its own, because there is no usual one.
    pub needs_base_url: bool,
    /// Where its settings are in the environment, if it has any.
    pub variables: Option<ProviderVariables>,
    pub(super) make: MakeModel,
}

/// Makes a model from what follows the colon.
pub(super) type MakeModel = fn(&str, &ModelConfig) -> Result<Arc<dyn Model>, ModelOpenError>;

/// Where the settings of a provider are in the environment. Whoever opens the model reads them.
#[derive(Debug, Clone, Copy)]
pub struct ProviderVariables {
    /// Those that may hold the key, the first that is set wins.
    pub keys: &'static [&'static str],
    /// The one with the address.
    pub base_url: &'static str,
    /// The one with the version of the provider's interface.
    pub api_version: Option<&'static str>,
}

/// The simulations.
pub(super) const SIMULATION: ProviderRow = ProviderRow {
    prefix: "sim",
    rest: "gullible | careful | scripted:FILE",
    about: "simulations that need no model",
    needs_base_url: false,
    variables: None,
    make: simulation,
};

/// Recordings.
pub(super) const RECORDING: ProviderRow = ProviderRow {
    prefix: "replay",
    rest: "FILE",
    about: "what a recorder wrote down, said again",
    needs_base_url: false,
    variables: None,
    make: |file, config| Ok(Arc::new(RecordedModel::open(&config.directory.join(file))?)),
};

/// The simulations that need no file.
const SIMULATIONS: [&str; 3] = ["gullible", "careful", "scripted"];

/// Why a model cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModelOpenError {
    /// The name has no provider, or one that is not known.
    #[error("`{spec}` names no model{}", hint(.spec, .suggestion.as_deref()))]
    Unknown {
        /// The name.
        spec: String,
        /// What may have been meant.
        suggestion: Option<String>,
    },
    /// The name lacks its second half.
    #[error("`{spec}` is not complete: write {expected}")]
    Incomplete {
        /// The name.
        spec: String,
        /// What it should look like.
        expected: String,
    },
    /// There is no usual address.
    #[error("{prefix} models need a base URL")]
    NeedsBaseUrl {
        /// The provider.
        prefix: &'static str,
    },
    /// The settings make no sense.
    #[error("{0}")]
    Config(String),
    /// The script cannot be read.
    #[error("{file}: {reason}")]
    Script {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: ScriptError,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

fn hint(spec: &str, word: Option<&str>) -> String {
    let near = word.map(|word| format!("; did you mean `{word}`?"));
    let prefixes: Vec<_> = PROVIDERS.iter().map(|row| row.prefix).collect();
    let prefix = spec.split(':').next().unwrap_or_default();
    match near {
        Some(near) if prefixes.contains(&prefix) => near,
        Some(near) => format!("{near} It starts with one of {}", prefixes.join(", ")),
        None => format!("; it starts with one of {}", prefixes.join(", ")),
    }
}

/// Makes the model of a name such as `openai:gpt-5` or `sim:careful`.
///
/// # Errors
///
/// Returns an error when there is no such model, or when its settings or its file are wrong.
pub fn open(spec: &str, config: &ModelConfig) -> Result<Arc<dyn Model>, ModelOpenError> {
    let (prefix, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let Some(row) = PROVIDERS.iter().find(|row| row.prefix == prefix) else {
        let near = did_you_mean(prefix, PROVIDERS.iter().map(|row| row.prefix));
        return Err(ModelOpenError::Unknown {
            spec: spec.chars().take(128).collect(),
            suggestion: near.map(|near| {
                if rest.is_empty() {
                    format!("{near}:…")
                } else {
                    format!("{near}:{rest}")
                }
            }),
        });
    };
    if rest.trim().is_empty() {
        return Err(ModelOpenError::Incomplete {
            spec: spec.to_owned(),
            expected: format!("{prefix}:{}", row.rest),
        });
    }
    if row.needs_base_url && config.base_url.is_none() {
        return Err(ModelOpenError::NeedsBaseUrl { prefix: row.prefix });
    }
    (row.make)(rest, config)
}

fn simulation(name: &str, config: &ModelConfig) -> Result<Arc<dyn Model>, ModelOpenError> {
    match name.split_once(':').unwrap_or((name, "")) {
        ("gullible", "") => Ok(Arc::new(SimulatedModel::GULLIBLE)),
        ("careful", "") => Ok(Arc::new(SimulatedModel::CAREFUL)),
        ("scripted", "") => Err(ModelOpenError::Incomplete {
            spec: format!("sim:{name}"),
            expected: "sim:scripted:FILE".to_owned(),
        }),
        ("scripted", file) => {
            let path = config.directory.join(Path::new(file));
            let script =
                ScriptedModel::open(file, &path).map_err(|reason| ModelOpenError::Script {
                    file: file.to_owned(),
                    reason,
                })?;
            Ok(Arc::new(script))
        }
        (word, _) => Err(ModelOpenError::Unknown {
            spec: format!("sim:{name}").chars().take(128).collect(),
            suggestion: Some(format!(
                "sim:{}",
                did_you_mean(word, SIMULATIONS).unwrap_or("careful")
            )),
        }),
    }
}
