//! Requests to end a command that is under way, and the one loop that heeds them.

use std::future::Future;

/// Requests to read the configuration again: SIGHUP, which ends other commands.
pub(crate) struct ReloadRequests {
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

impl ReloadRequests {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        Self {
            #[cfg(unix)]
            hangup: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    /// Waits for the next one; for ever where there are none.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(hangup) = &mut self.hangup
            && hangup.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Requests to end: Ctrl-C, SIGTERM, and a terminal that goes away. None is missed between two waits.
pub(crate) struct Signals {
    #[cfg(unix)]
    asked: Vec<(ShutdownRequest, tokio::signal::unix::Signal)>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShutdownRequest {
    /// Somebody pressed Ctrl-C.
    Interrupt,
    /// The command shall end.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no such signals"))]
    End,
}

/// Has a limit on the size of files (`ulimit -f`) act like a full disk, which a server survives. Without this the system
/// ends the process: whoever listens to a signal is not ended by it, from then on.
pub(crate) fn survive_file_limits() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        let _ = signal(kind);
    }
}

/// How work ended that could be interrupted.
pub(crate) enum Worked<T> {
    /// By itself.
    Whole(T),
    /// After somebody asked for an end; this is what it came to.
    Interrupted(T),
}

impl<T> Worked<T> {
    /// What it came to, however it ended.
    pub(crate) fn into_inner(self) -> T {
        match self {
            Self::Whole(result) | Self::Interrupted(result) => result,
        }
    }
}

/// Does work that can be interrupted. The first request to end calls `interrupt`, and the work is waited for, so that
/// it can end what it started. The second leaves it alone, and there is no result.
pub(crate) async fn interruptible<T>(
    work: impl Future<Output = T>,
    interrupt: impl FnOnce(),
) -> Option<Worked<T>> {
    interruptible_by(Signals::listen(), work, interrupt).await
}

/// The same with these requests.
pub(crate) async fn interruptible_by<T>(
    mut signals: Signals,
    work: impl Future<Output = T>,
    interrupt: impl FnOnce(),
) -> Option<Worked<T>> {
    tokio::pin!(work);
    tokio::select! {
        result = &mut work => return Some(Worked::Whole(result)),
        () = signals.next() => interrupt(),
    }
    tokio::select! {
        result = work => Some(Worked::Interrupted(result)),
        () = signals.next() => None,
    }
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> Self {
        use tokio::signal::unix::SignalKind;
        Self::to(&[
            (ShutdownRequest::Interrupt, SignalKind::interrupt()),
            (ShutdownRequest::End, SignalKind::terminate()),
            (ShutdownRequest::End, SignalKind::hangup()),
        ])
    }

    /// The same for a server that reads its configuration again at SIGHUP. At a terminal that signal still means the end: the
    /// terminal is gone.
    #[cfg(unix)]
    pub(crate) fn listen_as_server() -> Self {
        use std::io::IsTerminal as _;
        use tokio::signal::unix::SignalKind;
        if std::io::stderr().is_terminal() {
            return Self::listen();
        }
        Self::to(&[
            (ShutdownRequest::Interrupt, SignalKind::interrupt()),
            (ShutdownRequest::End, SignalKind::terminate()),
        ])
    }

    /// Ctrl-C alone: the others end the program as usual.
    #[cfg(unix)]
    pub(crate) fn listen_to_ctrl_c() -> Self {
        Self::to(&[(
            ShutdownRequest::Interrupt,
            tokio::signal::unix::SignalKind::interrupt(),
        )])
    }

    #[cfg(unix)]
    fn to(kinds: &[(ShutdownRequest, tokio::signal::unix::SignalKind)]) -> Self {
        use tokio::signal::unix::signal;
        Self {
            asked: kinds
                .iter()
                .copied()
                .filter_map(|(asked, kind)| Some((asked, signal(kind).ok()?)))
                .collect(),
        }
    }

    /// Waits for the next request, whichever it is.
    pub(crate) async fn next(&mut self) {
        self.next_asked().await;
    }

    /// Waits for the next request.
    #[cfg(unix)]
    pub(crate) async fn next_asked(&mut self) -> ShutdownRequest {
        std::future::poll_fn(|context| {
            let mut ready = self.asked.iter_mut().filter_map(|(asked, signal)| {
                signal.poll_recv(context).is_ready().then_some(*asked)
            });
            match ready.next() {
                Some(asked) => std::task::Poll::Ready(asked),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    pub(crate) fn listen_as_server() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    pub(crate) fn listen_to_ctrl_c() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    pub(crate) async fn next_asked(&mut self) -> ShutdownRequest {
        let _ = tokio::signal::ctrl_c().await;
        ShutdownRequest::Interrupt
    }
}
