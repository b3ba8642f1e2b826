//! The secrets of a task with a server: those of the settings, and the tokens that were used so far.

use std::sync::{Arc, Mutex, PoisonError};

use crate::runtime::Environment;
use proofhouse_manifest::Tool;
use proofhouse_manifest::interpolate::Secrets;

/// What must not be shown of what a server says. Cheap to clone; all clones know the same.
#[derive(Debug, Clone)]
pub(super) struct KnownSecrets {
    environment: Environment,
    tool: Arc<Tool>,
    tokens: Arc<Mutex<Secrets>>,
}

impl KnownSecrets {
    pub(super) fn new(environment: Environment, tool: Arc<Tool>) -> Self {
        Self {
            environment,
            tool,
            tokens: Arc::default(),
        }
    }

    /// Learns those that were used to fill in a request.
    pub(super) fn learn(&self, more: &Secrets) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.extend(more);
    }

    /// All that are known by now.
    pub(super) fn all(&self) -> Secrets {
        let mut secrets = self.environment.secrets(&self.tool);
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.extend(&tokens);
        secrets
    }
}
