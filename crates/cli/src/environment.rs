//! The environment, for libraries that look variables up and must not read it themselves.

use std::sync::Arc;

use proofhouse_subjects::EnvironmentLookup;

/// Looks up the variables of this process.
pub(crate) fn environment() -> EnvironmentLookup {
    Arc::new(|name| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the names are documented, or the user gives them"
        )]
        std::env::var(name).ok()
    })
}
