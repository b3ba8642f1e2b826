//! Runs a guard until its client leaves: over stdio, or as a reverse proxy over HTTP.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_wire::client::{Client, ClientError, Roots};
use proofhouse_wire::server::BoundServer;
use proofhouse_wire::{CancellationToken, ProxySettings, WireLimits};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::engine::AskRoute;
use crate::open::OpenedGuard;
use crate::pins::LockFileError;
use crate::proxy::{
    GuardedCommand, HttpGuard, HttpGuardError, PersonAsker, ProxyError, ProxyLimits, run_stdio,
};

/// A stream over HTTP may be silent for as long.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Who is asked where a rule says `ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardAsks {
    /// The user of the client.
    Client,
    /// The person at the terminal.
    Terminal,
    /// Nobody.
    Nobody,
}

/// A word that names nobody who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write client, terminal or nobody")]
pub struct UnknownAsks;

impl FromStr for GuardAsks {
    type Err = UnknownAsks;

    fn from_str(word: &str) -> Result<Self, UnknownAsks> {
        match word {
            "client" => Ok(Self::Client),
            "terminal" => Ok(Self::Terminal),
            "nobody" => Ok(Self::Nobody),
            _ => Err(UnknownAsks),
        }
    }
}

impl GuardAsks {
    /// How they are reached.
    fn reach(self) -> Result<(AskRoute, Option<Arc<PersonAsker>>), GuardRunError> {
        match self {
            Self::Client => Ok((AskRoute::Client, None)),
            Self::Nobody => Ok((AskRoute::Nobody, None)),
            Self::Terminal => {
                let asker = PersonAsker::terminal().map_err(GuardRunError::NoTerminal)?;
                Ok((AskRoute::Person, Some(Arc::new(asker))))
            }
        }
    }
}

/// Why a guard cannot run, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum GuardRunError {
    /// There is no terminal.
    #[error("there is no terminal to ask at: {0}")]
    NoTerminal(std::io::Error),
    /// Over HTTP the client's user cannot be asked.
    #[error("over HTTP, ask at the terminal or nobody")]
    NoClient,
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// The server cannot be started.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The server ended while its client was there.
    #[error("the server ended before its client{0}")]
    ServerLeft(String),
    /// Nothing can be sent.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The address of the server cannot be used.
    #[error(transparent)]
    Http(#[from] HttpGuardError),
    /// The address to listen at cannot be used.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
}

/// Guards the server that a command starts, for a client that writes and reads these.
///
/// # Errors
///
/// Returns an error when it cannot be started or ends before its client.
pub async fn guard_stdio<I, O>(
    opened: &OpenedGuard,
    command: Vec<String>,
    ends: (I, O),
    asks: Option<GuardAsks>,
    cancel: &CancellationToken,
) -> Result<(), GuardRunError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let (route, asker) = asks.unwrap_or(GuardAsks::Client).reach()?;
    let session = opened.session(route)?;
    let mut words = command.into_iter();
    let command = GuardedCommand {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
    };
    let ended = run_stdio(
        &command,
        session,
        ends,
        asker,
        ProxyLimits::default(),
        cancel,
    )
    .await?;
    if ended.server_left {
        let how = ended.status.map(|status| format!(" ({status})"));
        return Err(GuardRunError::ServerLeft(how.unwrap_or_default()));
    }
    Ok(())
}

/// Guards the server at an address, until it is cancelled. `listening` hears where clients reach it.
///
/// # Errors
///
/// Returns an error when an address cannot be used.
pub async fn guard_http(
    opened: &Arc<OpenedGuard>,
    url: &str,
    listen: SocketAddr,
    asks: Option<GuardAsks>,
    proxies: ProxySettings,
    cancel: &CancellationToken,
    listening: impl FnOnce(&str),
) -> Result<(), GuardRunError> {
    let (route, asker) = match asks {
        Some(GuardAsks::Client) => return Err(GuardRunError::NoClient),
        Some(asks) => asks.reach()?,
        // Without a terminal there is nobody.
        None => GuardAsks::Terminal
            .reach()
            .unwrap_or((AskRoute::Nobody, None)),
    };
    let limits = WireLimits {
        max_message_bytes: ProxyLimits::default().max_message_bytes,
        response_timeout: SILENCE,
        idle_timeout: SILENCE,
        ..WireLimits::default()
    };
    let client = Client::proxied(limits.clone(), proxies, Roots::System)?;
    let bound = BoundServer::new(listen).await;
    let bound = bound.map_err(|error| GuardRunError::Listen {
        address: listen,
        error,
    })?;
    let sessions = Arc::clone(opened);
    let make = Box::new(move || sessions.session(route));
    let guard = HttpGuard::new(url, bound.address(), client, asker, make)?;
    listening(&guard.url());
    bound.serve(Arc::new(guard), limits, cancel.clone()).await;
    Ok(())
}
