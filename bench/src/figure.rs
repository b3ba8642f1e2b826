//! Measuring two things side by side, and printing what a script can read.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program's output"
)]

use std::time::{Duration, Instant};

/// Two measurements of the same work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) ours: Duration,
    pub(crate) peer: Duration,
}

/// Runs both in turn, round by round, and takes the median of each, so that what disturbs the
/// machine disturbs both.
pub(crate) fn side_by_side(quick: bool, mut ours: impl FnMut(), mut peer: impl FnMut()) -> Pair {
    let rounds = if quick { 1 } else { 9 };
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    // One round to warm up caches and lazily compiled parts.
    ours();
    peer();
    for _ in 0..rounds {
        our_times.push(time(&mut ours));
        peer_times.push(time(&mut peer));
    }
    Pair {
        ours: median(our_times),
        peer: median(peer_times),
    }
}

fn time(work: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints a figure. `ratio` says how many times better ours is.
pub(crate) fn print(name: &str, ours: f64, peer: f64, ratio: f64, unit: &str) {
    println!("FIGURE {name} ours={ours:.3} peer={peer:.3} ratio={ratio:.2} unit={unit}");
}

/// Prints a line for people.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Says what went wrong.
pub(crate) fn complain(message: &str) {
    eprintln!("proofhouse-bench: {message}");
}
