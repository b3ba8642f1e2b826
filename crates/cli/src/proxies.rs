//! The proxies that the environment names, for requests to endpoints that the user names.

use proofhouse_wire::ProxySettings;

/// What the usual variables say, in upper or lower case.
pub(crate) fn from_environment() -> ProxySettings {
    #[expect(
        clippy::disallowed_methods,
        reason = "the binary reads the environment"
    )]
    ProxySettings::from_variables(|name| std::env::var(name).ok())
}
