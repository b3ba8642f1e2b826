//! What a driver is: it speaks one mode's protocol for one actor.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

use proofhouse_oatf::Mode;
use proofhouse_wire::Spawn;

use crate::actor::ActorContext;

/// A future that drivers return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where an actor meets the subject.
#[derive(Debug, Clone)]
pub enum ActorEndpoint {
    /// Listen here; port 0 takes a free one.
    Listen(SocketAddr),
    /// Speak over our own standard input and output.
    Stdio,
    /// Start this and speak over its standard input and output.
    Command(Spawn),
    /// Connect to this URL.
    Url(String),
}

impl std::fmt::Display for ActorEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(address) => write!(f, "{address}"),
            Self::Stdio => f.write_str("stdio"),
            Self::Command(spawn) => write!(f, "`{}`", spawn.program),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// A flag of a command line that says where an actor of one mode meets the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointFlag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// What is written behind it.
    pub form: EndpointForm,
    /// What it does, in one line of help.
    pub help: &'static str,
}

/// What is written where an endpoint is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointForm {
    /// An address to listen on.
    Address,
    /// A command to start.
    Command,
    /// A URL to connect to.
    Url,
}

/// Speaks the protocol of one mode.
///
/// Adding one takes a file, a line in the table of [`BuiltInMode`](crate::BuiltInMode) or in
/// [`RunOptions::drivers`](crate::RunOptions::drivers), and nothing else.
pub trait Driver: Send + Sync {
    /// The mode, such as [`Mode::McpServer`].
    fn mode(&self) -> Mode;

    /// Where the actor meets the subject when nobody says; `None` when someone must.
    fn default_endpoint(&self) -> Option<ActorEndpoint>;

    /// The flags with which people say where the actor meets the subject.
    fn endpoint_flags(&self) -> &'static [EndpointFlag] {
        &[]
    }

    /// Whether the actor waits for the subject to come, so that it must be ready first.
    fn is_server(&self) -> bool {
        self.mode().is_server()
    }

    /// What the driver calls an operation that documents may know by another name.
    fn operation<'n>(&self, name: &'n str) -> &'n str {
        name
    }

    /// Gets ready: a server listens when this returns.
    fn prepare(
        &self,
        context: ActorContext,
        endpoint: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>>;
}

/// An actor that is ready.
pub struct PreparedActor {
    /// Where the subject finds it, for people and for the subject: a URL or an address.
    pub address: Option<String>,
    /// Plays the actor until it has nothing left to do, its peer is gone for good, or the run is
    /// [over](ActorContext::over). Servers usually play until the run is over.
    pub play: BoxFuture<'static, Result<(), ActorError>>,
}

/// Why an actor could not play its part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("actor `{actor}`: {message}")]
pub struct ActorError {
    /// The actor.
    pub actor: String,
    /// The class.
    pub kind: ActorErrorKind,
    /// What happened, and what to do about it.
    pub message: String,
}

/// The classes of [`ActorError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorErrorKind {
    /// The endpoint does not suit the mode, or none was given.
    Endpoint,
    /// The address cannot be listened on.
    Bind,
    /// Nobody answers at the endpoint.
    Unreachable,
    /// The command cannot be started.
    Command,
    /// The peer broke the protocol so that the actor cannot go on.
    Protocol,
}
