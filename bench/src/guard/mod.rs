//! What the guard adds to a tool result of 10 KB, over HTTP and stdio, beside a bare proxy that passes everything on and beside
//! no proxy at all; with the stock policy, and with a whole library of documents that watch; and whether its memory
//! stays as it is in a long session.

mod http;
mod session;
mod stdio;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use proofhouse_guard::record::GuardRecorder;
use proofhouse_guard::{OpenedGuard, OpenedPolicy};

use crate::figure;

pub(crate) use stdio::{StdioPart, run_part};

/// The goal for what the guard adds to the median.
const GOAL_P50_MS: f64 = 0.5;
/// The goal for what it adds to the 99th percentile, in times of what a bare proxy adds.
const GOAL_P99: f64 = 2.0;
/// The goal for calls per second, as a share of those without a proxy.
const GOAL_THROUGHPUT: f64 = 0.5;

/// How long a result is.
const RESULT_BYTES: usize = 10 << 10;

/// How the guard is measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct GuardOptions {
    /// Directory of threat documents that watch
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    documents: PathBuf,

    /// Measure this command beside ours over stdio: words before the command of the server, such as 'pipelock mcp proxy --'
    #[arg(long, value_name = "WORDS")]
    peer: Option<String>,

    /// Measure briefly: to see that it works, not for the figures
    #[arg(long)]
    quick: bool,
}

/// What one way to the server took.
struct MeasuredWay {
    name: &'static str,
    p50: Duration,
    p99: Duration,
    per_second: f64,
}

pub(crate) fn run(options: &GuardOptions) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let measured = http::measure(options).await?;
        tell("http", &measured);
        Ok::<_, String>(())
    })?;
    let measured = stdio::measure(options)?;
    tell("stdio", &measured);
    session::measure(options)
}

/// Prints what was measured. The first way is the direct one, the second the bare proxy.
fn tell(transport: &str, ways: &[MeasuredWay]) {
    for way in ways {
        figure::say(&format!(
            "guard {transport}: {}: p50 {:.3} ms, p99 {:.3} ms, {:.0} calls/s",
            way.name,
            milliseconds(way.p50),
            milliseconds(way.p99),
            way.per_second
        ));
    }
    let [direct, bare, guards @ ..] = ways else {
        return;
    };
    let added = |way: &MeasuredWay, of: fn(&MeasuredWay) -> Duration| {
        milliseconds(of(way)) - milliseconds(of(direct))
    };
    for way in guards {
        let name = way.name;
        let (ours, peer) = (added(way, |way| way.p50), added(bare, |way| way.p50));
        let label = format!("guard-latency-{transport}-{name}-p50");
        figure::print(&label, ours, peer, peer / ours, "ms added");
        goal(
            &label,
            ours,
            "ms added",
            ours < GOAL_P50_MS,
            &format!("under {GOAL_P50_MS}"),
        );
        let (ours, peer) = (added(way, |way| way.p99), added(bare, |way| way.p99));
        let label = format!("guard-latency-{transport}-{name}-p99");
        figure::print(&label, ours, peer, peer / ours, "ms added");
        let times = ours / peer;
        let wanted = format!("at most {GOAL_P99} times the bare proxy");
        goal(
            &label,
            times,
            "times the bare proxy",
            times <= GOAL_P99,
            &wanted,
        );
        let (ours, peer) = (way.per_second, direct.per_second);
        let label = format!("guard-throughput-{transport}-{name}");
        figure::print(&label, ours, peer, ours / peer, "calls/s");
        let share = ours / peer;
        let wanted = format!("at least {GOAL_THROUGHPUT} of direct");
        goal(
            &label,
            share,
            "of direct",
            share >= GOAL_THROUGHPUT,
            &wanted,
        );
        let share = bare.per_second / direct.per_second;
        figure::say(&format!("  the bare proxy has {share:.2} of direct"));
    }
}

fn goal(label: &str, value: f64, unit: &str, is_met: bool, wanted: &str) {
    let met = if is_met { "met" } else { "MISSED" };
    figure::say(&format!(
        "  {label}: {value:.3} {unit}; goal: {wanted}: {met}"
    ));
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The result of a call, with the text that every answer must have.
fn answer(id: &str) -> String {
    // No result is like another: what was seen before would not be followed again.
    let words =
        format!("The quick brown fox reads report {id} about the weather in Oslo and Lisbon. ");
    let text = words.repeat(RESULT_BYTES / words.len());
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// A part of every answer.
const EXPECTED: &str = "weather in Oslo";

fn call(number: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"get_report","arguments":{{"city":"Oslo","number":{number}}}}}}}"#
    )
}

/// The id of a request of ours.
fn id_of(request: &str) -> &str {
    let rest = request.split(r#""id":"#).nth(1).unwrap_or("null");
    rest.split([',', '}']).next().unwrap_or("null")
}

/// A guard with the stock policy, and with the documents of a directory where one is given. Like most guards in use, it writes
/// nothing down but findings.
fn opened(library: Option<&Path>) -> Result<Arc<OpenedGuard>, String> {
    let policy = match library {
        None => OpenedPolicy::open(None),
        Some(directory) => {
            let directory = directory
                .canonicalize()
                .map_err(|error| error.to_string())?;
            let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
            let stock = proofhouse_guard::policy::STOCK;
            let documents = serde_json::Value::from(directory.display().to_string());
            write!(file, "{stock}\nindicators:\n  documents: [{documents}]\n")
                .map_err(|error| error.to_string())?;
            OpenedPolicy::open(Some(file.path()))
        }
    };
    let policy = policy.map_err(|error| error.to_string())?;
    let recorder = GuardRecorder::default().shared();
    let (server, origin) = ("bench".to_owned(), "bench".to_owned());
    Ok(Arc::new(OpenedGuard::new(
        policy, server, origin, None, recorder,
    )))
}
