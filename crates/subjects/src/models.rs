//! Models by their names, with the settings that their providers have in the environment.

use std::path::Path;
use std::sync::Arc;

use proofhouse_agent::model::{self, Model, ModelConfig, ModelOpenError, PROVIDERS};
use proofhouse_manifest::interpolate::Sealed;
use proofhouse_wire::gate::RequestGate;

use crate::EnvironmentLookup;

/// The model where nothing else is said: it needs neither a key nor a network.
pub const DEFAULT_MODEL: &str = "sim:careful";

/// A key for whichever provider has none of its own.
const ANY_KEY: &str = "PROOFHOUSE_MODEL_KEY";

/// Why a model cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SubjectModelError {
    /// Its provider wants a key.
    #[error("{spec} needs a key: set {}", variables.join(" or "))]
    NoKey {
        /// The model.
        spec: String,
        /// The variables that may hold it.
        variables: Vec<&'static str>,
    },
    /// There is no such model, or it cannot be set up.
    #[error(transparent)]
    Open(#[from] ModelOpenError),
}

impl SubjectModelError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoKey { .. }
            | Self::Open(
                ModelOpenError::Unknown { .. }
                | ModelOpenError::Incomplete { .. }
                | ModelOpenError::NeedsBaseUrl { .. },
            ) => true,
            Self::Open(
                ModelOpenError::Config(_)
                | ModelOpenError::Script { .. }
                | ModelOpenError::Record(_),
            ) => false,
        }
    }
}

/// Opens a model with the settings that its provider has in the environment. Files that its name mentions
/// are looked for in the directory.
///
/// # Errors
///
/// Returns an error when there is no such model, or when what it needs is not there.
pub fn open(
    spec: &str,
    base_url: Option<&str>,
    directory: &Path,
    environment: &EnvironmentLookup,
) -> Result<Arc<dyn Model>, SubjectModelError> {
    open_behind(None, spec, base_url, directory, environment)
}

/// The same, with its requests behind a gate.
///
/// # Errors
///
/// Returns an error when there is no such model, or when what it needs is not there.
pub(crate) fn open_behind(
    gate: Option<&Arc<dyn RequestGate>>,
    spec: &str,
    base_url: Option<&str>,
    directory: &Path,
    environment: &EnvironmentLookup,
) -> Result<Arc<dyn Model>, SubjectModelError> {
    let prefix = spec.split(':').next().unwrap_or_default();
    let mut config = ModelConfig {
        directory: directory.to_owned(),
        gate: gate.cloned(),
        ..ModelConfig::default()
    };
    let row = PROVIDERS.iter().find(|row| row.prefix == prefix);
    if let Some(names) = row.and_then(|row| row.variables) {
        // A workflow hands over an empty text for what it does not have.
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        config.base_url = base_url
            .map(str::to_owned)
            .or_else(|| variable(names.base_url));
        let keys = names.keys.iter().chain([&ANY_KEY]);
        let key = keys.clone().find_map(|name| variable(name));
        if key.is_none() && config.base_url.is_none() {
            return Err(SubjectModelError::NoKey {
                spec: spec.to_owned(),
                variables: keys.copied().collect(),
            });
        }
        config.key = key.map(Sealed::new);
        config.api_version = names.api_version.and_then(variable);
    }
    Ok(model::open(spec, &config)?)
}
