//! Requests to end a command that is under way.

/// Requests to end: Ctrl-C, SIGTERM, and a terminal that goes away. None is missed between two waits.
pub(crate) struct Signals {
    #[cfg(unix)]
    asked: Vec<tokio::signal::unix::Signal>,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        Self {
            asked: kinds
                .into_iter()
                .filter_map(|kind| signal(kind).ok())
                .collect(),
        }
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        std::future::poll_fn(|context| {
            if self
                .asked
                .iter_mut()
                .any(|signal| signal.poll_recv(context).is_ready())
            {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
