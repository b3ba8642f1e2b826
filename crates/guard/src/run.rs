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
use crate::open::{OpenedGuard, command_name, url_name};
use crate::pins::LockFileError;
use crate::proxy::{
    GuardedCommand, HttpGuard, HttpGuardError, PersonAsker, ProxyError, ProxyLimits, StdioSetup,
    run_stdio,
};
use crate::record::{MetricsError, show_metrics};
use crate::share::{SessionGroup, SessionShare, ShareSetup, SharedBy};

/// A stream over HTTP may be silent for as long.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// What is guarded.
#[derive(Debug, Clone)]
pub enum GuardTarget {
    /// The server that a command starts.
    Command(Vec<String>),
    /// The server at an address, for clients of another one.
    Url {
        /// The server's address.
        url: String,
        /// Where clients reach it.
        listen: SocketAddr,
    },
}

impl GuardTarget {
    /// The server at an address if there is one, or else that of a command; nothing where neither is named.
    #[must_use]
    pub fn of(
        url: Option<String>,
        listen: Option<SocketAddr>,
        command: Vec<String>,
    ) -> Option<Self> {
        match (url, listen) {
            (Some(url), Some(listen)) => Some(Self::Url { url, listen }),
            _ if command.is_empty() => None,
            _ => Some(Self::Command(command)),
        }
    }

    /// What the lock calls it where nobody says otherwise.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Command(words) => command_name(words),
            Self::Url { url, .. } => url_name(url),
        }
    }
}

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
    /// Something is not in the trace or among the findings.
    #[error("what was seen could not be written: {0}")]
    Unwritten(std::io::Error),
    /// Metrics cannot be shown.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
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

/// Whom a guard reaches besides its client and its server.
#[derive(Debug, Clone, Default)]
pub struct GuardReach {
    /// Who is asked.
    pub asks: Option<GuardAsks>,
    /// The guards that share the session; over HTTP, those of a name alone.
    pub shared: Option<ShareSetup>,
    /// Where metrics are shown.
    pub metrics: Option<SocketAddr>,
    /// What stands between the guard and a server over HTTP.
    pub proxies: ProxySettings,
}

impl GuardReach {
    /// Guards a server until its client leaves, or it is cancelled. `ends` are those of a client over stdio; `listening` hears where
    /// clients reach a server over HTTP, and `told` what is said to people.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be guarded, ends before its client, or something could not be written.
    pub async fn guard<I, O>(
        self,
        opened: &Arc<OpenedGuard>,
        target: GuardTarget,
        ends: (I, O),
        cancel: &CancellationToken,
        (listening, told): (impl FnOnce(&str), impl FnOnce(&str)),
    ) -> Result<(), GuardRunError>
    where
        I: AsyncRead + Unpin,
        O: AsyncWrite + Unpin + Send + 'static,
    {
        if let (Some(at), Some(metrics)) = (self.metrics, opened.metrics()) {
            let shown = show_metrics(Arc::clone(metrics), at, cancel.clone()).await?;
            told(&format!("guard: metrics at {shown}"));
        }
        match target {
            GuardTarget::Url { url, listen } => {
                // Only a name says which guards over HTTP belong together.
                let is_named = |setup: &ShareSetup| matches!(setup.by, SharedBy::Name(_));
                let shared = self.shared.filter(is_named);
                let (asks, proxies) = (self.asks, self.proxies);
                let reach = (asks, shared, proxies);
                guard_http(opened, &url, listen, reach, cancel, listening).await?;
            }
            GuardTarget::Command(words) => {
                guard_stdio(opened, words, ends, self.asks, self.shared, cancel).await?;
            }
        }
        opened
            .write_failure()
            .map_or(Ok(()), |error| Err(GuardRunError::Unwritten(error)))
    }
}

/// Guards the server that a command starts, for a client that writes and reads these; together with the guards of other
/// servers that share the session.
///
/// # Errors
///
/// Returns an error when it cannot be started or ends before its client.
pub async fn guard_stdio<I, O>(
    opened: &OpenedGuard,
    command: Vec<String>,
    ends: (I, O),
    asks: Option<GuardAsks>,
    shared: Option<ShareSetup>,
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
    let setup = StdioSetup {
        asker,
        shared,
        limits: ProxyLimits::default(),
    };
    let ended = run_stdio(&command, session, ends, setup, cancel).await?;
    if ended.server_left {
        let how = ended.status.map(|status| format!(" ({status})"));
        return Err(GuardRunError::ServerLeft(how.unwrap_or_default()));
    }
    Ok(())
}

/// Guards the server at an address, until it is cancelled; together with the guards of other servers that share the session.
/// `listening` hears where clients reach it.
///
/// # Errors
///
/// Returns an error when an address cannot be used.
pub async fn guard_http(
    opened: &Arc<OpenedGuard>,
    url: &str,
    listen: SocketAddr,
    (asks, shared, proxies): (Option<GuardAsks>, Option<ShareSetup>, ProxySettings),
    cancel: &CancellationToken,
    listening: impl FnOnce(&str),
) -> Result<(), GuardRunError> {
    let (share, group) = match shared {
        Some(setup) => {
            let hub = opened.hub()?;
            let server = hub.server().to_owned();
            let joined = SessionShare::join_as_group(&setup, &server, hub).await;
            let (share, group) = joined.map_err(ProxyError::from)?;
            (Some(share), Some(group))
        }
        None => (None, None),
    };
    let guard = ListeningGuard::new(opened, url, listen, asks, proxies, group).await?;
    let guard = guard.with_partners(share);
    listening(guard.url());
    guard.serve(cancel.clone()).await;
    Ok(())
}

/// A guard over HTTP that listens, and answers once it is served.
pub struct ListeningGuard {
    bound: BoundServer,
    guard: HttpGuard,
    limits: WireLimits,
    url: String,
}

impl ListeningGuard {
    /// Listens for clients of the server at an address. What a session of a `group` learns, all of them know.
    ///
    /// # Errors
    ///
    /// Returns an error when an address cannot be used.
    pub async fn new(
        opened: &Arc<OpenedGuard>,
        url: &str,
        listen: SocketAddr,
        asks: Option<GuardAsks>,
        proxies: ProxySettings,
        group: Option<SessionGroup>,
    ) -> Result<Self, GuardRunError> {
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
        let guard = HttpGuard::new(url, bound.address(), client, asker, make, group)?;
        Ok(Self {
            url: guard.url(),
            bound,
            guard,
            limits,
        })
    }

    /// The same together with the guards of other servers.
    fn with_partners(self, share: Option<SessionShare>) -> Self {
        Self {
            guard: self.guard.with_partners(share),
            ..self
        }
    }

    /// Where clients reach the server through the guard.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers, until it is cancelled.
    pub async fn serve(self, cancel: CancellationToken) {
        let guard = Arc::new(self.guard);
        self.bound.serve(guard, self.limits, cancel).await;
    }
}
