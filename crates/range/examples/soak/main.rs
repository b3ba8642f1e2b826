//! A soak: hostile clients against a server of MCP and one of A2A, `soak [SECONDS [ATTACK]]`.
//!
//! The server is a process of its own. While it is attacked in every way at once, its memory must
//! not grow beyond a bound, a good client must be answered, nothing may panic, and every cap must be
//! met at least once. The last line tells the figures; a failure is an exit code.

mod caps;
mod good;
mod raw;
mod rough;
mod server;
mod sly;
mod speech;
mod streams;
mod tally;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use good::Good;
use tally::{CAPS, Tally};

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// What the server may have more when everybody is gone than in the warm-up, in KiB: what the allocator does not give
/// back. What it has while messages are on their way is bounded by [`MAX_RESIDENT`].
const MAX_GROWTH: u64 = 96 << 10;
/// What it may have at all, in KiB.
const MAX_RESIDENT: u64 = 512 << 10;
/// Files that it may have open when everybody is gone.
const MAX_FILES: usize = 40;

/// Nobody waits longer for the server to have closed everything, or to end.
const WINDING_DOWN: Duration = Duration::from_secs(30);

/// Something hostile, to be done again and again.
struct Attack {
    name: &'static str,
    /// The cap that it meets when it is done alone, however slow the machine is.
    cap: Option<&'static str>,
    run: for<'a> fn(&'a Targets) -> BoxFuture<'a, ()>,
}

/// An async function as an [`Attack`].
#[macro_export]
macro_rules! attack {
    ($name:ident) => {
        attack!($name => None)
    };
    ($name:ident, $cap:literal) => {
        attack!($name => Some($cap))
    };
    ($name:ident => $cap:expr) => {
        $crate::Attack {
            name: stringify!($name),
            cap: $cap,
            run: |targets| Box::pin($name(targets)),
        }
    };
}

/// Where the servers are, and what all attackers share.
struct Targets {
    mcp: SocketAddr,
    a2a: SocketAddr,
    /// The server's process.
    id: u32,
    /// The files that it has open when there is nobody.
    files: usize,
    tally: Arc<Tally>,
    /// Held by who takes most connections there are, so that two do not keep everybody out.
    crowd: Mutex<()>,
}

impl Targets {
    /// How many connections the server has, all its addresses together.
    fn connections(&self) -> Option<usize> {
        open_files(self.id).ok()?.checked_sub(self.files)
    }

    /// Waits until the server has closed all connections; `None` when it did not.
    async fn rest(&self) -> Option<()> {
        let patience = Instant::now() + WINDING_DOWN;
        while self.connections()? > 0 {
            if Instant::now() > patience {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let only = std::env::args().nth(2);
    let outcome = match argument.as_deref() {
        Some("serve") => server::serve().await,
        Some(seconds) => match seconds.parse() {
            Ok(seconds) => soak(seconds, only.as_deref()).await,
            Err(_) => Err("usage: soak [SECONDS [ATTACK]]".into()),
        },
        None => soak(600, None).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            #[expect(clippy::print_stderr, reason = "a program that people run")]
            {
                eprintln!("soak: {problem}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn soak(seconds: u64, only: Option<&str>) -> Result<(), Problem> {
    let tally = Arc::new(Tally::default());
    let (mut child, mut lines, mut targets) = start(&tally).await?;
    let id = targets.id;
    let mut good = Good::default();
    good.use_both(&targets).await?;

    let wanted = |attack: &&'static Attack| only.is_none_or(|only| only == attack.name);
    let filling = || {
        [rough::FILLING, sly::FILLING, streams::FILLING]
            .into_iter()
            .flatten()
            .filter(wanted)
    };
    let storming = || {
        [rough::ATTACKS, sly::ATTACKS, streams::ATTACKS]
            .into_iter()
            .flatten()
            .filter(wanted)
    };
    for attack in filling() {
        (attack.run)(&targets).await;
    }
    good.use_both(&targets).await?;

    let end = Instant::now() + Duration::from_secs(seconds);
    // Until then everything else that is bounded fills up.
    let warm = Instant::now() + Duration::from_secs((seconds / 3).min(60));
    let shared = Arc::new(targets);
    // Threads of their own, so that the good client waits for the server only.
    let hostile = Runtime::new()?;
    let mut attackers = JoinSet::new();
    for attack in storming() {
        let (run, targets) = (attack.run, Arc::clone(&shared));
        let again = async move {
            loop {
                run(&targets).await;
            }
        };
        attackers.spawn_on(again, hostile.handle());
    }
    let mut problems = Vec::new();
    let (mut before, mut peak) = (None, 0);
    while Instant::now() < end {
        let tick = Instant::now() + Duration::from_secs(1);
        if let Err(problem) = good.use_both(&shared).await {
            problems.push(problem);
            if problems.len() > 5 {
                break;
            }
        }
        let now = resident(id)?;
        peak = peak.max(now);
        if Instant::now() > warm && before.is_none() {
            before = Some(peak);
        }
        tokio::time::sleep_until(tick.into()).await;
    }
    attackers.shutdown().await;
    hostile.shutdown_background();
    targets = Arc::into_inner(shared).ok_or("an attacker is still there")?;

    let _ = targets.rest().await;
    let alone = caps::meet_missing(&targets, filling().chain(storming())).await;
    if only.is_none() {
        caps::provoke_warnings(&targets).await;
    }
    // Everything of the attackers must be gone in a moment.
    let _ = targets.rest().await;
    let files = open_files(id)?;
    if let Err(problem) = good.use_both(&targets).await {
        problems.push(format!("afterwards: {problem}"));
    }
    let after = resident(id)?;
    problems.extend(end_server(&mut child, &mut lines, &tally).await?);

    let before = before.unwrap_or(after);
    let required = match only {
        None => CAPS.to_vec(),
        Some(_) => filling()
            .chain(storming())
            .filter_map(|attack| attack.cap)
            .collect(),
    };
    let missing = required.into_iter().filter(|cap| !tally.has_met(cap));
    let growth = after.saturating_sub(before);
    problems.extend(missing.map(|cap| format!("the cap `{cap}` was never met")));
    problems.extend(
        tally
            .panics()
            .into_iter()
            .map(|line| format!("the server wrote: {line}")),
    );
    if growth > MAX_GROWTH {
        problems.push(format!("memory grew by {growth} KiB since the warm-up"));
    }
    if peak > MAX_RESIDENT {
        problems.push(format!("the server had {peak} KiB"));
    }
    if files > MAX_FILES {
        problems.push(format!("{files} files are still open"));
    }
    tell(
        &problems,
        &format!(
            "SOAK seconds={seconds} requests={} resident_before={before} resident_peak={peak} resident_after={after} \
         unit=KiB files={files} answered={} slowest={}ms late={} alone={alone} caps={}",
            tally.requests(),
            good.answered,
            good.slowest.as_millis(),
            good.late,
            tally.caps(),
        ),
    );
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("{count} problems").into()),
    }
}

#[expect(clippy::print_stdout, reason = "a program that people run")]
fn tell(problems: &[String], figures: &str) {
    for problem in problems {
        let start: String = problem.chars().take(500).collect();
        println!("PROBLEM {start}");
    }
    println!("{figures}");
}

/// Starts the server and finds out where it listens.
async fn start(
    tally: &Arc<Tally>,
) -> Result<(Child, Lines<BufReader<ChildStdout>>, Targets), Problem> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stderr = child.stderr.take().ok_or("no pipe")?;
    let listening = Arc::clone(tally);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            listening.heard(&line);
        }
    });
    let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
    let mut addresses = HashMap::new();
    while addresses.len() < 2 {
        let line = lines.next_line().await?.ok_or("the server ended at once")?;
        let (actor, url) = line.split_once(" http://").ok_or("no address")?;
        let address: SocketAddr = url.split('/').next().unwrap_or(url).parse()?;
        addresses.insert(actor.to_owned(), address);
    }
    let address = |actor: &str| addresses.get(actor).copied().ok_or("an actor is missing");
    let id = child.id().ok_or("the server ended at once")?;
    let targets = Targets {
        id,
        files: open_files(id)?,
        mcp: address("mcp")?,
        a2a: address("a2a")?,
        tally: Arc::clone(tally),
        crowd: Mutex::default(),
    };
    Ok((child, lines, targets))
}

/// Asks the server to end, and reads from its last line whether what it kept was bounded.
async fn end_server(
    child: &mut Child,
    lines: &mut Lines<BufReader<ChildStdout>>,
    tally: &Tally,
) -> Result<Vec<String>, Problem> {
    let mut problems = Vec::new();
    drop(child.stdin.take());
    let ended = tokio::time::timeout(WINDING_DOWN, child.wait()).await;
    match ended {
        Ok(status) if status.as_ref().is_ok_and(std::process::ExitStatus::success) => {}
        Ok(status) => problems.push(format!("the server ended with {status:?}")),
        Err(_) => problems.push("the server did not end".to_owned()),
    }
    let line = lines.next_line().await?.unwrap_or_default();
    let number = |key: &str| -> usize {
        let words = line
            .split(' ')
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        words.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let trace = server::trace_limits();
    let (messages, kept) = (number("messages"), number("kept"));
    if kept > trace.max_messages {
        problems.push(format!("{kept} messages were kept"));
    } else if kept > 0 && messages > kept {
        tally.met("kept_messages");
    }
    // The last one tells how many more there were.
    match number("warnings") {
        count if count == trace.max_warnings + 1 => tally.met("kept_warnings"),
        count if count > trace.max_warnings => problems.push(format!("{count} warnings were kept")),
        _ => {}
    }
    Ok(problems)
}

/// How many files a process has open; connections are files.
fn open_files(id: u32) -> Result<usize, Problem> {
    Ok(std::fs::read_dir(format!("/proc/{id}/fd"))?.count())
}

/// The resident memory of a process, in KiB.
#[expect(clippy::disallowed_methods, reason = "a file of the system, of a page")]
fn resident(id: u32) -> Result<u64, Problem> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}
