//! OpenAPI descriptions as functions: what the operations of an API take, and the requests that carry them out. Sends
//! nothing; a runtime of `tools` does.

#[cfg(test)]
mod arbitrary;
mod body;
mod bundle;
mod description;
mod error;
mod input;
mod keywords;
mod names;
mod read;
mod reply;
mod request;
mod schema;
pub mod search;
mod security;
mod server;
mod style;
mod tree;

pub use bundle::{DocumentBundle, MAX_DOCUMENTS, refers_out};
pub use description::{OpenApiDescription, Operation};
pub use error::{CallError, DescriptionError, OperationError, PathError, ReferenceError};
pub use input::{OperationInput, about};
pub use read::{MAX_BYTES, read};
pub use reply::Replies;
pub use request::{OperationRequest, Surroundings, request};
pub use security::{CredentialLocation, Offered, OperationCredential, credentials};
pub use server::{SettingLookup, base};
pub use tree::{TooManyValues, Tree};
