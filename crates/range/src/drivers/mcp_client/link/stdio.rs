//! A server as a process of ours: a message a line.

use std::time::Duration;

use proofhouse_detect::read_lenient;
use proofhouse_wire::{Child, LineReader, ProcessError, Spawn, WireLimits, WireLine};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::drivers::client::post::pieces;
use crate::facts::UnseenKind;

use super::{
    Arrival, Garbage, Inbound, LinkEnd, MessageOrigin, OutgoingMessage, SendError, Sender, flood,
    messages,
};

/// Messages that wait for a server that does not read.
const WRITE_QUEUE: usize = 64;

/// A process that is spoken to.
pub(in super::super) struct StdioLink {
    child: Child,
    writer: Option<mpsc::Sender<WriteJob>>,
    tasks: JoinSet<()>,
    patience: Duration,
}

/// Bytes to write.
struct WriteJob {
    pieces: Vec<Vec<u8>>,
    pause: Duration,
    /// Nothing is written after this.
    last: bool,
}

impl StdioLink {
    pub(in super::super) fn start(
        spawn: &Spawn,
        limits: &WireLimits,
        inbound: Sender,
    ) -> Result<Self, ProcessError> {
        let (child, stdin, lines) = spawn.start(limits)?;
        let (writer, jobs) = mpsc::channel(WRITE_QUEUE);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(stdin, jobs));
        tasks.spawn(read(lines, inbound, limits.max_batch));
        Ok(Self {
            child,
            writer: Some(writer),
            tasks,
            patience: limits.response_timeout,
        })
    }

    /// The end of what the process wrote to its error output.
    pub(in super::super) fn stderr(&self) -> String {
        self.child.stderr()
    }

    pub(super) async fn send(&mut self, outgoing: OutgoingMessage<'_>) -> Result<(), SendError> {
        let delivery = outgoing.delivery;
        if let Some(delay) = delivery.delay {
            tokio::time::sleep(delay).await;
        }
        let mut before = String::new();
        for notification in flood(delivery) {
            before.push_str(&notification);
            before.push('\n');
        }
        let mut line = delivery.shape(outgoing.message.to_string());
        line.push('\n');
        if delivery.duplicate_ids {
            line = line.repeat(2);
        }
        let job = WriteJob {
            pieces: std::iter::once(before.into_bytes())
                .filter(|before| !before.is_empty())
                .chain(pieces(line.into_bytes(), delivery))
                .collect(),
            pause: delivery.slow_stream.unwrap_or_default(),
            last: delivery.abrupt_close,
        };
        let Some(writer) = &self.writer else {
            return Err(SendError::Closed);
        };
        match tokio::time::timeout(self.patience, writer.send(job)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SendError::ReadsNoMore),
            Err(_) => Err(SendError::DoesNotRead),
        }
    }

    /// Closes its input, waits, asks, kills.
    pub(super) async fn close(mut self) {
        self.writer = None;
        self.tasks.shutdown().await;
        self.child.stop().await;
    }
}

async fn write(mut stdin: ChildStdin, mut jobs: mpsc::Receiver<WriteJob>) {
    while let Some(job) = jobs.recv().await {
        for (position, piece) in job.pieces.iter().enumerate() {
            if position > 0 && !job.pause.is_zero() {
                tokio::time::sleep(job.pause).await;
            }
            if stdin.write_all(piece).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
        if job.last {
            return;
        }
    }
}

async fn read(mut lines: LineReader<BufReader<ChildStdout>>, inbound: Sender, max_batch: usize) {
    loop {
        let mut end = LinkEnd::default();
        let all = match lines.next().await {
            Ok(Some(WireLine::Whole(line))) => messages(&line, max_batch),
            // The last line may lack its end; it is a message if it can be read as one.
            Ok(Some(WireLine::Cut(line))) if read_lenient(&line).is_ok() => {
                messages(&line, max_batch)
            }
            Ok(Some(WireLine::Cut(line))) => {
                let told = format!("a line without an end, of {} bytes", line.len());
                let garbage = Garbage::whole(UnseenKind::CutOff, told, &line);
                vec![Arrival::Garbage(garbage)]
            }
            Ok(Some(WireLine::TooLong { bytes })) => {
                let told = format!("a line of {bytes} bytes, which is too long");
                let garbage = Garbage::lost(UnseenKind::TooLong, told, bytes);
                vec![Arrival::Garbage(garbage)]
            }
            Ok(None) => vec![],
            Err(error) => {
                end.problem = Some(error.to_string());
                vec![]
            }
        };
        let is_end = all.is_empty();
        let mut all = all;
        if is_end {
            all.push(Arrival::Ended(end));
        }
        for what in all {
            let source = MessageOrigin::Process;
            if inbound.send(Inbound { source, what }).await.is_err() {
                return;
            }
        }
        if is_end {
            return;
        }
    }
}
