//! Ports for commands that serve: free now, and not given to two of them.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports that were given out. The system may offer one again before its new owner listens.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// How often the system is asked for another.
const TRIES: usize = 100;

/// A port that is ours to give to a command.
#[derive(Debug)]
pub(crate) struct Port(u16);

impl Port {
    /// Takes a port that is free now. Somebody else may be faster, and then the command says so.
    pub(crate) fn take() -> std::io::Result<Self> {
        for _ in 0..TRIES {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = listener.local_addr()?.port();
            if GIVEN
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(port)
            {
                return Ok(Self(port));
            }
        }
        Err(std::io::Error::other("the system offers no other"))
    }

    pub(crate) fn number(&self) -> u16 {
        self.0
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        GIVEN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.0);
    }
}
