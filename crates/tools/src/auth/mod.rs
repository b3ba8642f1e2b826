//! Auth providers: where the tokens of `{auth.name()}` come from.
//!
//! A provider is configured by the operator ([`crate::operator`]) and kept in [`Providers`], which fetches
//! tokens when they are first needed, keeps them until shortly before they expire, and fetches a new one
//! when a server refused the last. However many calls ask at once, one request is made.
//!
//! ```
//! use proofhouse_tools::auth::{AuthConfig, ProviderBinding, ProviderConfig, Providers};
//! use proofhouse_tools::http::EgressPolicy;
//! use proofhouse_manifest::interpolate::Sealed;
//! use proofhouse_tools::runtime::{ToolLimits, TokenSource};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = AuthConfig::default();
//! let token = ProviderConfig::Fixed(Sealed::new("t-123".to_owned()));
//! config.insert("ci", token, ProviderBinding::everywhere());
//! let providers = Providers::new(&config, &ToolLimits::default(), EgressPolicy::default(), || 0)?;
//! assert_eq!(providers.token("ci", false).await?, "t-123");
//! # Ok(())
//! # }
//! ```

mod answer;
mod cache;
mod config;
mod error;
mod github;
mod oauth;
mod providers;

pub use config::{
    AuthConfig, ClientAuthentication, ClientCredentials, GithubApp, OauthClient, ProviderBinding,
    ProviderConfig, RefreshToken,
};
pub use error::AuthError;
pub use proofhouse_mcp_auth::{KeyError, SigningKey};
pub use providers::Providers;
