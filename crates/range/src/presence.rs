//! Whether the subject is there: the sessions it began and has not ended.

use tokio::sync::watch;

/// What is known of the subject's sessions, over all actors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Presence {
    /// Whether there ever was one.
    began: bool,
    /// How many are open.
    open: usize,
    /// Whether somebody spoke without a session, so that its end cannot be told.
    sessionless: bool,
}

impl Presence {
    /// Whether every session was ended, and only sessions were used.
    pub(crate) fn is_over(&self) -> bool {
        self.began && self.open == 0 && !self.sessionless
    }
}

/// A session of the subject; it ends when this is dropped.
#[derive(Debug)]
pub struct OpenPresence(watch::Sender<Presence>);

impl OpenPresence {
    pub(crate) fn begin(presence: &watch::Sender<Presence>) -> Self {
        presence.send_modify(|presence| {
            presence.began = true;
            presence.open += 1;
        });
        Self(presence.clone())
    }
}

impl Drop for OpenPresence {
    fn drop(&mut self) {
        self.0.send_modify(|presence| presence.open -= 1);
    }
}

/// Somebody speaks without a session.
pub(crate) fn without_session(presence: &watch::Sender<Presence>) {
    presence.send_if_modified(|presence| !std::mem::replace(&mut presence.sessionless, true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_the_last_session_ends() {
        let presence = watch::Sender::new(Presence::default());
        assert!(!presence.borrow().is_over(), "nobody was there");
        let (first, second) = (
            OpenPresence::begin(&presence),
            OpenPresence::begin(&presence),
        );
        drop(first);
        assert!(!presence.borrow().is_over());
        drop(second);
        assert!(presence.borrow().is_over());
        without_session(&presence);
        assert!(
            !presence.borrow().is_over(),
            "who has no session cannot end it"
        );
    }
}
