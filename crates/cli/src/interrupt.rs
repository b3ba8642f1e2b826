//! Ctrl-C while traces are read: the reading ends, and what was found so far is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit_code::Exit;
use crate::signals::Signals;

/// Whether somebody pressed Ctrl-C.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches from now on. The second time ends the program at once, because the first may have to
    /// wait for an input that never comes. Where nothing can be watched, Ctrl-C ends it as usual.
    pub(crate) fn watch() -> Self {
        let interrupt = Self::default();
        let noticed = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        if let Ok(runtime) = runtime {
            // Without a thread it is not watched, which is no reason to fail.
            let _ = std::thread::Builder::new().spawn(move || {
                runtime.block_on(async {
                    let mut signals = Signals::listen_to_ctrl_c();
                    signals.next().await;
                    noticed.0.store(true, Ordering::Relaxed);
                    signals.next().await;
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "whoever asks twice wants no more of it"
                    )]
                    std::process::exit(Exit::Interrupted.code().into());
                });
            });
        }
        interrupt
    }

    pub(crate) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
