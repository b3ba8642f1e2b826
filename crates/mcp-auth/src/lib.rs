//! Authorization of MCP clients (OAuth 2.1): finds the authorization server of an MCP server, registers, asks for
//! consent, and gets, renews and keeps tokens. Every request goes through the client that the caller gives, and so
//! under the caller's egress policy.
//!
//! An [`Authorizer`] is for one MCP server. Before a request it is asked for the token to send; a response of 401 or 403
//! is shown to it, and it says whether the request is worth sending again.

mod authorizer;
mod challenge;
mod client;
mod consent;
mod discovery;
mod error;
mod metadata;
mod pkce;
mod scopes;
mod secret;
mod signing_key;
mod token;
mod vault;

pub use authorizer::{Authorizer, UnixSeconds};
pub use challenge::BearerChallenge;
pub use client::{AuthorizationConfig, AuthorizationGrant, CrossAppAccess};
pub use consent::{AutomaticConsent, Consent, LoopbackConsent, NoConsent};
pub use error::{AuthorizationError, EndpointReached};
pub use secret::SecretText;
pub use signing_key::{KeyError, SigningKey};
pub use token::{NotSeconds, basic_credentials, expires_at, is_token};
pub use vault::{TokenVault, VaultError};
