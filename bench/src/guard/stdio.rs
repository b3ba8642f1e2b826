//! Over stdio: a bare server directly, through a process that only copies, and through the guard. Each is this program again.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use clap::Subcommand;
use proofhouse_guard::{GuardAsks, guard_stdio};
use proofhouse_wire::CancellationToken;

use super::{EXPECTED, GuardOptions, MeasuredWay, answer, call, id_of, opened};

/// Processes that are measured.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum StdioPart {
    /// Answers every line
    Server,
    /// Copies between its client and a server
    Bare,
    /// Guards a server
    Guard {
        /// Documents that watch
        library: Option<PathBuf>,
    },
}

pub(super) fn measure(options: &GuardOptions) -> Result<Vec<MeasuredWay>, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let this = this.display().to_string();
    let part = |words: &[&str]| {
        let own = [this.as_str(), "guard-part"];
        own.iter()
            .chain(words)
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let library = options.documents.display().to_string();
    let mut ways = vec![
        ("direct", part(&["server"])),
        ("bare", part(&["bare"])),
        ("stock", part(&["guard"])),
        ("library", part(&["guard", &library])),
    ];
    if let Some(peer) = &options.peer {
        let words = peer.split_whitespace().map(str::to_owned);
        ways.push(("peer", words.chain(part(&["server"])).collect()));
    }
    let count = if options.quick { 50 } else { 5_000 };
    let mut rounds: Vec<Vec<MeasuredWay>> = ways.iter().map(|_| Vec::new()).collect();
    for _ in 0..if options.quick { 1 } else { 5 } {
        for ((name, command), results) in ways.iter().zip(&mut rounds) {
            let mut line = StdioLine::start(command)?;
            line.measure(count / 10)?;
            let (p50, p99, _) = line.measure(count)?;
            let per_second = line.burst(count)?;
            results.push(MeasuredWay {
                name,
                p50,
                p99,
                per_second,
            });
        }
    }
    let medians = rounds.into_iter().map(|mut loads| {
        let middle = loads.len() / 2;
        loads.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        let per_second = loads[middle].per_second;
        loads.sort_by_key(|load| load.p99);
        let p99 = loads[middle].p99;
        loads.sort_by_key(|load| load.p50);
        MeasuredWay {
            name: loads[middle].name,
            p50: loads[middle].p50,
            p99,
            per_second,
        }
    });
    Ok(medians.collect())
}

/// A client of a process.
struct StdioLine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: usize,
}

impl StdioLine {
    fn start(command: &[String]) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or("no pipes")?;
        Ok(Self {
            child,
            input,
            output: BufReader::with_capacity(64 << 10, output),
            next: 1,
        })
    }

    fn send(&mut self) -> Result<(), String> {
        let line = format!("{}\n", call(self.next));
        self.next += 1;
        let written = self.input.write_all(line.as_bytes());
        written.map_err(|error| error.to_string())
    }

    fn receive(&mut self) -> Result<(), String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|error| error.to_string())?;
        if line.contains(EXPECTED) {
            Ok(())
        } else {
            Err(format!("an unexpected answer: {line:?}"))
        }
    }

    /// One call after the other: the median, the 99th percentile, calls per second.
    fn measure(
        &mut self,
        count: usize,
    ) -> Result<(std::time::Duration, std::time::Duration, f64), String> {
        let mut times = Vec::with_capacity(count);
        let begun = Instant::now();
        for _ in 0..count.max(1) {
            let sent = Instant::now();
            self.send()?;
            self.receive()?;
            times.push(sent.elapsed());
        }
        let per_second = times.len() as f64 / begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Ok((at(0.5), at(0.99), per_second))
    }

    /// Several calls under way at any time: calls per second.
    fn burst(&mut self, count: usize) -> Result<f64, String> {
        const WINDOW: usize = 16;
        let begun = Instant::now();
        for _ in 0..WINDOW.min(count) {
            self.send()?;
        }
        for done in 0..count {
            self.receive()?;
            if done + WINDOW < count {
                self.send()?;
            }
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }
}

impl Drop for StdioLine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is one of the processes.
pub(crate) fn run_part(part: &StdioPart) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let server = [
        this.display().to_string(),
        "guard-part".to_owned(),
        "server".to_owned(),
    ];
    match part {
        StdioPart::Server => {
            let mut output = std::io::stdout().lock();
            for line in std::io::stdin().lock().lines() {
                let line = line.map_err(|error| error.to_string())?;
                let answer = format!("{}\n", answer(id_of(&line)));
                let written = output.write_all(answer.as_bytes());
                written
                    .and_then(|()| output.flush())
                    .map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        StdioPart::Bare => runtime()?.block_on(copy(&server)),
        StdioPart::Guard { library } => {
            let opened = opened(library.as_deref())?;
            runtime()?.block_on(async {
                let ends = (tokio::io::stdin(), tokio::io::stdout());
                let asks = Some(GuardAsks::Nobody);
                let cancel = CancellationToken::new();
                let guarding = guard_stdio(&opened, server.to_vec(), ends, asks, None, &cancel);
                guarding.await.map_err(|error| error.to_string())
            })
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.enable_all().build();
    built.map_err(|error| error.to_string())
}

/// Copies both ways, with the runtime that the guard has.
async fn copy(command: &[String]) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (mut to_server, mut from_server) = pipes.ok_or("no pipes")?;
    let (mut input, mut output) = (tokio::io::stdin(), tokio::io::stdout());
    let there = tokio::io::copy(&mut input, &mut to_server);
    let back = tokio::io::copy(&mut from_server, &mut output);
    tokio::select! {
        done = there => done.map(|_| ()),
        done = back => done.map(|_| ()),
    }
    .map_err(|error| error.to_string())
}
