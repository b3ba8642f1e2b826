//! What was written to a connection, and whether the other side read it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::lock;

/// Messages of one connection whose reading is watched at a time. More are taken for unread: what cannot be watched
/// proves nothing.
const MAX_WATCHED: usize = 1024;

/// What happens when a client never read what was written for it: the write failed, or the client closed its
/// connection before it had taken all bytes. It happens when the hook is dropped, unless something was said of it before.
#[derive(Default)]
pub struct UnreadHook(Option<Box<dyn FnOnce() + Send>>);

impl UnreadHook {
    /// A hook that does this.
    #[must_use]
    pub fn new(then: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(then)))
    }

    /// It was read, as far as anyone can tell.
    pub fn was_read(mut self) {
        self.0 = None;
    }
}

impl Drop for UnreadHook {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then();
        }
    }
}

impl std::fmt::Debug for UnreadHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UnreadHook")
            .field(&self.0.is_some())
            .finish()
    }
}

/// What a connection carried since its client last proved that it reads.
#[derive(Debug, Default)]
pub(super) struct UnreadWatch {
    hooks: Mutex<Vec<UnreadHook>>,
    /// Those of pieces of streams. Whoever has read the piece it wanted may say goodbye at once, and what is written after
    /// that meets a reset: only a reset without a goodbye says that bytes were there which nobody had read.
    pieces: Mutex<Vec<UnreadHook>>,
    /// The other side threw away what was sent, or did not take it in time.
    failed: AtomicBool,
    /// The other side threw away what it had, and said no goodbye before.
    discarded: AtomicBool,
    /// Something is to be written and the other side does not take it.
    blocked: AtomicBool,
}

impl UnreadWatch {
    /// A whole answer is written now.
    pub(super) fn writes(&self, hook: UnreadHook) {
        Self::keep(&self.hooks, hook);
    }

    /// A piece of a stream is written now.
    pub(super) fn writes_piece(&self, hook: UnreadHook) {
        Self::keep(&self.pieces, hook);
    }

    fn keep(hooks: &Mutex<Vec<UnreadHook>>, hook: UnreadHook) {
        let mut hooks = lock(hooks);
        if hooks.len() < MAX_WATCHED {
            hooks.push(hook);
        } else {
            drop(hooks);
            drop(hook);
        }
    }

    /// Whether there is anything that may be unread.
    pub(super) fn has_any(&self) -> bool {
        !lock(&self.hooks).is_empty()
    }

    pub(super) fn set_failed(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// The other side reset the connection without a goodbye: systems do that when a program closes a connection, or ends,
    /// and has not read all that has arrived.
    pub(super) fn set_discarded(&self) {
        self.set_failed();
        self.discarded.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    /// The client asks for more, so it has read what was before.
    pub(super) fn asked_again(&self) {
        for hook in Self::take(&self.hooks)
            .into_iter()
            .chain(Self::take(&self.pieces))
        {
            hook.was_read();
        }
    }

    /// The connection is over.
    pub(super) fn settle(&self) {
        let is_blocked = self.blocked.load(Ordering::Relaxed);
        for (hooks, is_unread) in [
            (Self::take(&self.hooks), is_blocked || self.has_failed()),
            (
                Self::take(&self.pieces),
                is_blocked || self.discarded.load(Ordering::Relaxed),
            ),
        ] {
            for hook in hooks {
                if !is_unread {
                    hook.was_read();
                }
            }
        }
    }

    fn take(hooks: &Mutex<Vec<UnreadHook>>) -> Vec<UnreadHook> {
        std::mem::take(&mut *lock(hooks))
    }
}

impl Drop for UnreadWatch {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn watch(
        count: usize,
        writes: fn(&UnreadWatch, UnreadHook),
    ) -> (UnreadWatch, Arc<AtomicUsize>) {
        let unread = Arc::new(AtomicUsize::new(0));
        let watch = UnreadWatch::default();
        for _ in 0..count {
            let unread = Arc::clone(&unread);
            let hook = UnreadHook::new(move || {
                unread.fetch_add(1, Ordering::Relaxed);
            });
            writes(&watch, hook);
        }
        (watch, unread)
    }

    #[test]
    fn only_what_was_not_taken_is_unread() {
        type Happening = fn(&UnreadWatch);
        // What happens, how many of two answers are unread then, and how many of two pieces of a stream.
        let table: [(Happening, usize, usize); 6] = [
            (|_| {}, 0, 0),
            (UnreadWatch::set_failed, 2, 0),
            (UnreadWatch::set_discarded, 2, 2),
            (|watch| watch.set_blocked(true), 2, 2),
            (
                |watch| {
                    watch.set_blocked(true);
                    watch.set_blocked(false);
                },
                0,
                0,
            ),
            (
                |watch| {
                    watch.asked_again();
                    watch.set_discarded();
                },
                0,
                0,
            ),
        ];
        for (row, (then, answers, pieces)) in table.into_iter().enumerate() {
            for (writes, expected) in [
                (UnreadWatch::writes as fn(&UnreadWatch, UnreadHook), answers),
                (UnreadWatch::writes_piece, pieces),
            ] {
                let (watch, unread) = watch(2, writes);
                then(&watch);
                drop(watch);
                assert_eq!(unread.load(Ordering::Relaxed), expected, "row {row}");
            }
        }
    }

    #[test]
    fn what_is_too_much_to_watch_is_unread() {
        let (watch, unread) = watch(MAX_WATCHED + 3, UnreadWatch::writes);
        assert_eq!(unread.load(Ordering::Relaxed), 3);
        watch.settle();
        assert_eq!(unread.load(Ordering::Relaxed), 3);
    }
}
