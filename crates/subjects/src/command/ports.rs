//! Ports for commands that serve: free now, not given to two of them, and not what the system gives to others.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;

use proofhouse_wire::sync::lock;

/// Ports that were given out. The system may offer one again before its new owner listens.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Below what systems give to connections and to listeners without a port of their own. One of those could be given
/// away while the command starts, even to the connection that asks whether it listens.
const RANGE: Range<u16> = 20_000..32_000;

/// How often another is tried.
const TRIES: usize = 100;

/// A port that is ours to give to a command.
#[derive(Debug)]
pub(crate) struct Port(u16);

impl Port {
    /// Takes a port that is free now. Somebody else may be faster, and then the command says so.
    pub(crate) fn take() -> std::io::Result<Self> {
        let mut failed = None;
        for _ in 0..TRIES {
            let port = any_port();
            if !lock(&GIVEN).insert(port) {
                continue;
            }
            let taken = Self(port);
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(_) => return Ok(taken),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| std::io::Error::other("all ports are given out")))
    }

    pub(crate) fn number(&self) -> u16 {
        self.0
    }
}

/// A port of the range by chance: others of us choose at the same time.
fn any_port() -> u16 {
    let chance = RandomState::new().build_hasher().finish() % u64::from(RANGE.end - RANGE.start);
    RANGE.start + u16::try_from(chance).unwrap_or_default()
}

impl Drop for Port {
    fn drop(&mut self) {
        lock(&GIVEN).remove(&self.0);
    }
}
