//! The connection to one other guard: what is told goes out in order, and is heard when it is acknowledged.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{mpsc, watch};

use super::fact::SharedFact;
use crate::proxy::{GuardLine, GuardLines};

/// The version of what guards say to each other.
pub(super) const SHARE_VERSION: u32 = 1;

/// The longest message: a portion of facts, with every letter escaped.
const MAX_MESSAGE: usize = 12 << 20;

/// How many messages may wait to be written.
const MAX_WAITING: usize = 256;

/// How long a partner may take to say that it heard.
pub(super) const HEARD_TIME: Duration = Duration::from_secs(2);

/// What guards say to each other, one line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum ShareMessage {
    /// Who speaks.
    Hello { version: u32, server: String },
    /// What it learned; answered by `heard` with the same number.
    Facts { number: u64, facts: Vec<SharedFact> },
    /// Everything up to this number was taken in.
    Heard { number: u64 },
    /// Everything was told that was known before.
    Ready,
}

/// A partner, from the side of those who tell it something.
#[derive(Debug)]
pub(super) struct SharePartner {
    pub(super) id: u64,
    pub(super) server: String,
    outgoing: Mutex<PartnerOutgoing>,
    heard: watch::Receiver<u64>,
    pub(super) cancel: CancellationToken,
}

#[derive(Debug)]
struct PartnerOutgoing {
    lines: mpsc::Sender<Vec<u8>>,
    told: u64,
}

/// Why a partner did not hear something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unheard {
    /// It is gone.
    Gone,
    /// It does not answer.
    Silent,
}

impl SharePartner {
    /// Tells a partner something; it was heard when this number was.
    pub(super) fn tell(&self, facts: &[SharedFact]) -> Result<u64, Unheard> {
        let mut outgoing = self.lock();
        let number = outgoing.told + 1;
        let message = ShareMessage::Facts {
            number,
            facts: facts.to_vec(),
        };
        outgoing.send(&message)?;
        outgoing.told = number;
        Ok(number)
    }

    pub(super) fn say(&self, message: &ShareMessage) -> Result<(), Unheard> {
        self.lock().send(message)
    }

    /// Waits until it heard.
    pub(super) async fn heard(&self, number: u64) -> Result<(), Unheard> {
        let mut heard = self.heard.clone();
        let waiting = heard.wait_for(|heard| *heard >= number);
        match tokio::time::timeout(HEARD_TIME, waiting).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(Unheard::Gone),
            Err(_) => Err(Unheard::Silent),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PartnerOutgoing> {
        lock(&self.outgoing)
    }
}

impl PartnerOutgoing {
    fn send(&self, message: &ShareMessage) -> Result<(), Unheard> {
        let sent = self.lines.try_send(line(message));
        sent.map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unheard::Silent,
            mpsc::error::TrySendError::Closed(_) => Unheard::Gone,
        })
    }
}

fn line(message: &ShareMessage) -> Vec<u8> {
    // Texts and numbers always become JSON.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The other side of a connection: what the partner says.
pub(super) struct PartnerIncoming {
    lines: GuardLines<OwnedReadHalf>,
    pub(super) heard: watch::Sender<u64>,
}

impl PartnerIncoming {
    /// The next message; nothing at the end, and nothing where what comes is no message.
    pub(super) async fn next(&mut self) -> Option<ShareMessage> {
        match self.lines.next().await {
            Ok(Some(GuardLine::Whole(line))) => serde_json::from_slice(&line).ok(),
            Ok(Some(GuardLine::Cut(_) | GuardLine::TooLong { .. }) | None) | Err(_) => None,
        }
    }
}

/// Greets whoever is at the other end, which must be a process of our own user.
pub(super) async fn greet(
    id: u64,
    stream: UnixStream,
    own: &str,
    cancel: CancellationToken,
) -> io::Result<(SharePartner, PartnerIncoming)> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        let problem = "a process of somebody else";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    let (read, mut write) = stream.into_split();
    let (lines, mut waiting) = mpsc::channel::<Vec<u8>>(MAX_WAITING);
    let ends = cancel.clone();
    tokio::spawn(async move {
        loop {
            let line = tokio::select! {
                line = waiting.recv() => line,
                () = ends.cancelled() => None,
            };
            let Some(line) = line else { return };
            let written = tokio::select! {
                written = write.write_all(&line) => written,
                () = ends.cancelled() => return,
            };
            if written.is_err() {
                ends.cancel();
                return;
            }
        }
    });
    let outgoing = PartnerOutgoing { lines, told: 0 };
    let hello = ShareMessage::Hello {
        version: SHARE_VERSION,
        server: own.to_owned(),
    };
    let gone = || io::Error::from(io::ErrorKind::ConnectionReset);
    outgoing.send(&hello).map_err(|_| gone())?;
    let (heard_sender, heard) = watch::channel(0);
    let mut incoming = PartnerIncoming {
        lines: GuardLines::new(read, MAX_MESSAGE),
        heard: heard_sender,
    };
    let said = tokio::time::timeout(HEARD_TIME, incoming.next()).await;
    let server = match said {
        Ok(Some(ShareMessage::Hello { version, server })) if version == SHARE_VERSION => server,
        Ok(_) => {
            cancel.cancel();
            return Err(gone());
        }
        Err(_) => {
            cancel.cancel();
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
    };
    let partner = SharePartner {
        id,
        server: proofhouse_source::printable_line(&server)
            .chars()
            .take(200)
            .collect(),
        outgoing: Mutex::new(outgoing),
        heard,
        cancel,
    };
    Ok((partner, incoming))
}
