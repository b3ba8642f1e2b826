//! MCP over stdio: the guard is the server for the client, and the client for the server.
//!
//! Each direction has one pump, so order is kept. Nothing is held back but a call that waits for a person. A side that
//! does not read stops its own direction only.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;

use super::asker::PersonAsker;
use super::frames::{GuardLine, GuardLines};
use super::process::GuardedCommand;
use crate::engine::{GuardAction, GuardSession, MessageFrom, Passage};
use crate::finding::{FindingCode, GuardDecision};
use crate::share::{SessionShare, ShareError, ShareSetup, SharedBy};

/// How large messages may be, and how long ends may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// The longest message that is judged; a longer one does not pass.
    pub max_message_bytes: usize,
    /// How long a server may take to end at each step: after its input is closed, after it was asked, after it was
    /// killed.
    pub exit_timeout: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            max_message_bytes: 32 << 20,
            exit_timeout: Duration::from_secs(2),
        }
    }
}

/// Whom a guard over stdio reaches besides its client and its server.
#[derive(Clone, Default)]
pub struct StdioSetup {
    /// The person who answers [`GuardAction::Question`].
    pub asker: Option<Arc<PersonAsker>>,
    /// The guards that share the session. Those with its name must be reachable; where they are found by their
    /// parent and cannot be reached, a finding says so.
    pub shared: Option<ShareSetup>,
    /// Bounds.
    pub limits: ProxyLimits,
}

/// Why nothing could be guarded.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server could not be started.
    #[error("cannot start `{program}`: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: std::io::Error,
    },
    /// The session cannot be shared.
    #[error("the session cannot be shared: {0}")]
    Share(#[from] ShareError),
}

/// How a session over stdio ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdioEnd {
    /// Whether the server ended while the client was still there.
    pub server_left: bool,
    /// How the server ended, where that could be told.
    pub status: Option<ExitStatus>,
}

/// What both pumps share.
struct SharedSession<O> {
    session: Arc<Mutex<GuardSession>>,
    share: Option<SessionShare>,
    client: AsyncMutex<O>,
    /// The person who is asked, and how long.
    asker: Option<Arc<PersonAsker>>,
    ask_timeout: Duration,
}

/// What waits for people, beside a pump: it ends with the pump.
type PendingAsks = JoinSet<Option<(u64, bool)>>;

impl<O: AsyncWrite + Unpin + Send + 'static> SharedSession<O> {
    /// Waits for the people who are asked, without holding anything else back.
    fn wait_for_people(self: &Arc<Self>, actions: &[GuardAction], waiting: &mut PendingAsks) {
        for action in actions {
            match action {
                GuardAction::Await(ask) => {
                    let (shared, ask) = (Arc::clone(self), *ask);
                    waiting.spawn(async move {
                        tokio::time::sleep(shared.ask_timeout).await;
                        for action in shared.with(|session| session.expire(ask)) {
                            if let GuardAction::ToClient(text) = action {
                                let _ = shared.tell_client(text.as_bytes(), false).await;
                            }
                        }
                        None
                    });
                }
                GuardAction::Question { number, text } => {
                    let (asker, number, text) = (self.asker.clone(), *number, text.clone());
                    let timeout = self.ask_timeout;
                    waiting.spawn(async move {
                        let allowed = match asker {
                            Some(asker) => asker.ask(&text, timeout).await,
                            None => Some(false),
                        };
                        allowed.map(|allowed| (number, allowed))
                    });
                }
                GuardAction::ToServer(_) | GuardAction::ToClient(_) => {}
            }
        }
    }
}

impl<O: AsyncWrite + Unpin> SharedSession<O> {
    fn with<T>(&self, work: impl FnOnce(&mut GuardSession) -> T) -> T {
        work(&mut lock(&self.session))
    }

    /// Partners know what was learned before anybody here acts on it.
    async fn tell_partners(&self) {
        if let Some(share) = &self.share {
            share.tell().await;
        }
    }

    async fn tell_client(&self, bytes: &[u8], has_end: bool) -> std::io::Result<()> {
        let mut client = self.client.lock().await;
        client.write_all(bytes).await?;
        if !has_end {
            client.write_all(b"\n").await?;
        }
        client.flush().await
    }
}

/// Carries messages between a client (what it writes, and where it reads) and the server that is started, until one of
/// them ends.
///
/// # Errors
///
/// Returns an error when the server cannot be started, or the session must be shared and cannot be.
pub async fn run_stdio<I, O>(
    command: &GuardedCommand,
    session: GuardSession,
    (input, output): (I, O),
    StdioSetup {
        asker,
        shared,
        limits,
    }: StdioSetup,
    cancel: &CancellationToken,
) -> Result<StdioEnd, ProxyError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let timeout = session.ask_timeout();
    let server_name = session.server().to_owned();
    let session = Arc::new(Mutex::new(session));
    let share = match shared {
        Some(setup) => joined(&setup, &server_name, &session).await?,
        None => None,
    };
    let started = command.start();
    let (mut server, server_in, server_out) = started.map_err(|error| ProxyError::Start {
        program: command.program.clone(),
        error,
    })?;
    let shared = Arc::new(SharedSession {
        session,
        share,
        client: AsyncMutex::new(output),
        asker,
        ask_timeout: timeout,
    });
    let from_client = pump_client(
        GuardLines::new(input, limits.max_message_bytes),
        server_in,
        Arc::clone(&shared),
        limits.exit_timeout,
    );
    let from_server = pump_server(
        GuardLines::new(server_out, limits.max_message_bytes),
        Arc::clone(&shared),
    );
    tokio::pin!(from_server);
    let server_left = {
        tokio::pin!(from_client);
        tokio::select! {
            () = &mut from_server => true,
            end = &mut from_client => end == ClientPumpEnd::ServerDeaf,
            () = cancel.cancelled() => false,
        }
        // The client's pump ends here, and with it the input of the server.
    };
    let status = if server_left {
        let status = server.end(limits.exit_timeout).await;
        let why = match status {
            Some(status) => format!("the server ended ({status})"),
            None => "the server ended".to_owned(),
        };
        let actions = shared.with(|session| session.server_ended(&why));
        // A client that does not read must not keep us.
        let telling = tell_all(actions, &shared);
        let _ = tokio::time::timeout(limits.exit_timeout, telling).await;
        status
    } else {
        // What the server still says reaches the client, as long as it takes the server to end.
        let mut ending = Box::pin(server.end(limits.exit_timeout));
        let ended = tokio::select! {
            status = &mut ending => Some(status),
            () = &mut from_server => None,
        };
        match ended {
            Some(status) => {
                let _ = tokio::time::timeout(limits.exit_timeout, from_server).await;
                status
            }
            None => ending.await,
        }
    };
    shared.with(GuardSession::flush);
    Ok(StdioEnd {
        server_left,
        status,
    })
}

/// Joins the guards of a session.
async fn joined(
    setup: &ShareSetup,
    server: &str,
    session: &Arc<Mutex<GuardSession>>,
) -> Result<Option<SessionShare>, ShareError> {
    let joined = SessionShare::join(setup, server, Arc::clone(session)).await;
    match (joined, &setup.by) {
        (Ok(share), _) => Ok(Some(share)),
        (Err(error), SharedBy::Name(_)) => Err(error),
        (Err(error), SharedBy::Parent) => {
            let message = format!("guards of other servers cannot be reached: {error}");
            let mut session = lock(session);
            session.note(FindingCode::SessionAlone, GuardDecision::Log, &message);
            Ok(None)
        }
    }
}

/// Why nothing more is carried from the client to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientPumpEnd {
    /// The client is gone.
    ClientLeft,
    /// The server takes nothing more.
    ServerDeaf,
}

/// Carries what the client says, until it ends or the server takes no more.
async fn pump_client<I, W, O>(
    mut lines: GuardLines<I>,
    mut server: W,
    shared: Arc<SharedSession<O>>,
    exit_timeout: Duration,
) -> ClientPumpEnd
where
    I: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let mut waiting = PendingAsks::new();
    loop {
        let line = tokio::select! {
            line = lines.next() => match line {
                Ok(Some(line)) => Some(line),
                Ok(None) | Err(_) => return ClientPumpEnd::ClientLeft,
            },
            Some(done) = waiting.join_next() => {
                let Ok(Some((number, allowed))) = done else {
                    continue;
                };
                let actions = shared.with(|session| session.answer(number, allowed));
                shared.tell_partners().await;
                let carried = carry(actions, &mut server, &shared);
                if let Some(end) = unless_left(carried, &mut lines, exit_timeout).await {
                    return end;
                }
                None
            }
        };
        let Some(line) = line else {
            continue;
        };
        let judged = judged(&shared, MessageFrom::Client, &line);
        shared.tell_partners().await;
        let actions = match judged {
            Judged::Pass(bytes) => {
                let sent = send(&mut server, bytes);
                match unless_left(sent, &mut lines, exit_timeout).await {
                    Some(end) => return end,
                    None => continue,
                }
            }
            Judged::Instead(actions) => actions,
        };
        shared.wait_for_people(&actions, &mut waiting);
        let carried = carry(actions, &mut server, &shared);
        if let Some(end) = unless_left(carried, &mut lines, exit_timeout).await {
            return end;
        }
    }
}

/// Waits for something to be sent. A client that leaves meanwhile is heard of, and a server that takes nothing then keeps nobody.
async fn unless_left<R: AsyncRead + Unpin>(
    sending: impl Future<Output = Result<(), ClientPumpEnd>>,
    lines: &mut GuardLines<R>,
    exit_timeout: Duration,
) -> Option<ClientPumpEnd> {
    tokio::pin!(sending);
    let sent = tokio::select! {
        biased;
        sent = &mut sending => sent,
        () = lines.ended() => tokio::time::timeout(exit_timeout, sending)
            .await
            .unwrap_or(Err(ClientPumpEnd::ClientLeft)),
    };
    let end = sent.err()?;
    if end == ClientPumpEnd::ServerDeaf {
        // One that ended is heard of by its own pump, which knows more.
        let _ = tokio::time::timeout(exit_timeout, lines.ended()).await;
    }
    Some(end)
}

async fn send<W: AsyncWrite + Unpin>(server: &mut W, bytes: &[u8]) -> Result<(), ClientPumpEnd> {
    let sending = async {
        server.write_all(bytes).await?;
        server.flush().await
    };
    let sent: std::io::Result<()> = sending.await;
    sent.map_err(|_| ClientPumpEnd::ServerDeaf)
}

/// Sends what is to be sent.
async fn carry<W: AsyncWrite + Unpin, O: AsyncWrite + Unpin>(
    actions: Vec<GuardAction>,
    server: &mut W,
    shared: &SharedSession<O>,
) -> Result<(), ClientPumpEnd> {
    for action in actions {
        match action {
            GuardAction::ToServer(mut text) => {
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                send(server, text.as_bytes()).await?;
            }
            GuardAction::ToClient(text) => {
                let told = shared.tell_client(text.as_bytes(), false).await;
                told.map_err(|_| ClientPumpEnd::ClientLeft)?;
            }
            GuardAction::Await(_) | GuardAction::Question { .. } => {}
        }
    }
    Ok(())
}

/// Carries what the server says, until it ends or the client takes no more.
async fn pump_server<R, O>(mut lines: GuardLines<R>, shared: Arc<SharedSession<O>>)
where
    R: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let mut waiting = PendingAsks::new();
    loop {
        let line = tokio::select! {
            line = lines.next() => match line {
                Ok(Some(line)) => line,
                Ok(None) | Err(_) => return,
            },
            Some(done) = waiting.join_next() => {
                if let Ok(Some((number, allowed))) = done {
                    let actions = shared.with(|session| session.answer(number, allowed));
                    shared.tell_partners().await;
                    if tell_all(actions, &shared).await.is_err() {
                        return;
                    }
                }
                continue;
            }
        };
        let judged = judged(&shared, MessageFrom::Server, &line);
        shared.tell_partners().await;
        let told = match judged {
            Judged::Pass(bytes) => shared.tell_client(bytes, true).await,
            Judged::Instead(actions) => {
                shared.wait_for_people(&actions, &mut waiting);
                tell_all(actions, &shared).await
            }
        };
        if told.is_err() {
            return;
        }
    }
}

/// Tells the client what is for it.
async fn tell_all<O: AsyncWrite + Unpin>(
    actions: Vec<GuardAction>,
    shared: &SharedSession<O>,
) -> std::io::Result<()> {
    for action in actions {
        if let GuardAction::ToClient(text) = action {
            shared.tell_client(text.as_bytes(), false).await?;
        }
    }
    Ok(())
}

/// A line that was judged.
enum Judged<'l> {
    /// It passes as it is.
    Pass(&'l [u8]),
    Instead(Vec<GuardAction>),
}

fn judged<'l, O: AsyncWrite + Unpin>(
    shared: &SharedSession<O>,
    from: MessageFrom,
    line: &'l GuardLine,
) -> Judged<'l> {
    let bytes = match line {
        GuardLine::Whole(bytes) | GuardLine::Cut(bytes) => bytes,
        GuardLine::TooLong { bytes, id } => {
            return Judged::Instead(
                shared.with(|session| session.too_long(from, *bytes, id.as_ref())),
            );
        }
    };
    // A blank line says nothing.
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Judged::Pass(bytes);
    }
    // Some readers take a carriage return for the end of a line, and what follows for another message.
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if memchr::memchr(b'\r', text).is_some() {
        return Judged::Instead(shared.with(|session| session.not_one_line(from, bytes)));
    }
    match shared.with(|session| session.judge(from, bytes)) {
        Passage::Pass => Judged::Pass(bytes),
        Passage::Instead(actions) => Judged::Instead(actions),
    }
}
