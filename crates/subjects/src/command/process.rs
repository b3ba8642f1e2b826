//! A command under way: waited for, listened to, and ended with everything it started.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use proofhouse_wire::client::Client;
use proofhouse_wire::{Bytes, Child, HeaderMap, Method, Spawn, WireLimits, WireLine};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::subject::SubjectError;

/// How often readiness is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// What is kept of what a command says.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// Bytes of its error output that an error tells.
const MAX_TOLD: usize = 300;
/// How long a command may take to end after it was asked to, each time.
const EXIT: Duration = Duration::from_secs(2);
/// How long the last words of a command may take after its end. What it left behind may hold its output open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long one question for readiness may take.
const QUESTION: Duration = Duration::from_secs(2);

type ProcessOutput = proofhouse_wire::LineReader<tokio::io::BufReader<tokio::process::ChildStdout>>;

/// What a command said.
#[derive(Debug, Default)]
pub(crate) struct ProcessAnswer {
    pub(crate) text: String,
    /// When the last of it came that is more than blank, whether its line had ended or not.
    pub(crate) at: Option<Instant>,
}

/// A command under way. When it is dropped, its whole group is killed.
pub(crate) struct SubjectProcess {
    child: Child,
    stdin: Option<tokio::process::ChildStdin>,
    lines: Option<ProcessOutput>,
    reading: Option<OutputDrain>,
}

impl SubjectProcess {
    /// Starts it.
    pub(crate) fn start(spawn: &Spawn) -> Result<Self, SubjectError> {
        let limits = WireLimits {
            exit_timeout: EXIT,
            ..WireLimits::default()
        };
        let (child, stdin, lines) = spawn.start(&limits).map_err(SubjectError::of)?;
        Ok(Self {
            child,
            stdin: Some(stdin),
            lines: Some(lines),
            reading: None,
        })
    }

    /// Nothing more will be said to it, and what it says is read away, so that it does not wait for us.
    pub(crate) fn leave_alone(&mut self) {
        self.stdin = None;
        if let Some(mut lines) = self.lines.take() {
            self.reading = Some(OutputDrain(tokio::spawn(async move {
                while let Ok(Some(_)) = lines.next().await {}
            })));
        }
    }

    /// Waits for a line.
    pub(crate) async fn says(&mut self, wanted: &str) -> Result<(), SubjectError> {
        self.stdin = None;
        if let Some(lines) = &mut self.lines {
            let heard = async {
                while let Ok(Some(line)) = lines.next().await {
                    if let WireLine::Whole(line) | WireLine::Cut(line) = line
                        && String::from_utf8_lossy(&line).contains(wanted)
                    {
                        return true;
                    }
                }
                false
            };
            tokio::pin!(heard);
            let is_heard = tokio::select! {
                is_heard = &mut heard => is_heard,
                // It may have said it right before its end, and left another behind that serves.
                _ = self.child.wait() => {
                    tokio::time::timeout(LAST_WORDS, heard).await.unwrap_or(false)
                }
            };
            if is_heard {
                return Ok(());
            }
        }
        Err(self.ended_early().await)
    }

    /// Waits for its port.
    pub(crate) async fn opens(&mut self, port: u16) -> Result<(), SubjectError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        loop {
            tokio::select! {
                _ = self.child.wait() => return Err(self.ended_early().await),
                connected = TcpStream::connect(address) => if connected.is_ok() {
                    return Ok(());
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a URL answers with success.
    pub(crate) async fn answers(
        &mut self,
        url: &str,
        headers: &HeaderMap,
    ) -> Result<(), SubjectError> {
        let limits = WireLimits {
            connect_timeout: QUESTION,
            response_timeout: QUESTION,
            ..WireLimits::default()
        };
        let client = Client::new(limits).map_err(SubjectError::of)?;
        loop {
            let asked = client.send(Method::GET, url, headers.clone(), Bytes::new());
            tokio::select! {
                _ = self.child.wait() => return Err(self.ended_early().await),
                answer = asked => if answer.is_ok_and(|answer| answer.status.is_success()) {
                    return Ok(());
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Says something to it, and returns everything that it says until it ends, and how it ended.
    pub(crate) async fn converse(&mut self, said: &str) -> (ProcessAnswer, Option<ExitStatus>) {
        let mut heard = ProcessAnswer::default();
        let stdin = self.stdin.take();
        let lines = self.lines.take();
        let speaking = async {
            if let Some(mut stdin) = stdin {
                // Who does not read its input may have this from elsewhere.
                let _ = stdin.write_all(said.as_bytes()).await;
                let _ = stdin.write_all(b"\n").await;
            }
        };
        let listening = async {
            let Some(mut lines) = lines else { return };
            while let Ok(Some(line)) = lines.next().await {
                if let WireLine::Whole(line) | WireLine::Cut(line) = line
                    && heard.text.len() + line.len() < MAX_OUTPUT_BYTES
                {
                    heard.text.push_str(&String::from_utf8_lossy(&line));
                    heard.text.push('\n');
                    heard.at = lines.heard_at();
                }
            }
        };
        let both = async {
            tokio::join!(speaking, listening);
        };
        let status = {
            tokio::pin!(both);
            let child = &mut self.child;
            tokio::select! {
                // Its output may be closed long before its end.
                () = &mut both => child.wait().await,
                status = child.wait() => {
                    let _ = tokio::time::timeout(LAST_WORDS, both).await;
                    status
                }
            }
        };
        (heard, status)
    }

    async fn ended_early(&mut self) -> SubjectError {
        let status = self.child.wait().await;
        let words = self.last_words(status).await;
        SubjectError::new(format!("the command exited before it was ready{words}"))
    }

    /// How it ended, and the end of what it complained.
    pub(crate) async fn last_words(&self, status: Option<ExitStatus>) -> String {
        // They may still be on their way.
        tokio::time::sleep(LOOK).await;
        let status = status.map(|status| format!(" ({status})").replace("status: ", "status "));
        let status = status.unwrap_or_default();
        let stderr = self.child.stderr();
        // Programs put the cause last; all of it is told elsewhere.
        let mut lines = stderr.lines().rev();
        let line = lines.find(|line| !line.trim().is_empty());
        // Whole words: half a secret is not recognized as one.
        let mut last = String::new();
        for word in line.unwrap_or_default().split_whitespace().rev() {
            if last.len() + word.len() > MAX_TOLD {
                break;
            }
            last = format!("{word} {last}");
        }
        let last = last.trim_end();
        if last.is_empty() {
            status
        } else {
            format!("{status}: {last}")
        }
    }

    /// How it ended, if it has.
    pub(crate) async fn status(&mut self) -> Option<ExitStatus> {
        let waited = tokio::time::timeout(LOOK, self.child.wait()).await;
        waited.ok().flatten()
    }

    /// Ends it: it is asked, then killed. Gives the end of what it complained.
    pub(crate) async fn end(mut self) -> Option<String> {
        self.leave_alone();
        let Self {
            child,
            reading: _reading,
            ..
        } = self;
        let stderr = child.stderr();
        child.stop_now().await;
        Some(stderr).filter(|text| !text.trim().is_empty())
    }
}

/// Reads output away for as long as it is there.
struct OutputDrain(tokio::task::JoinHandle<()>);

impl Drop for OutputDrain {
    fn drop(&mut self) {
        self.0.abort();
    }
}
