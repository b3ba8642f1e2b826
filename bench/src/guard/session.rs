//! What the guard keeps of a long session: its memory after a tenth of the calls and after all of them, with the whole library.

use proofhouse_guard::engine::{AskRoute, MessageFrom, Passage};

use super::{GuardOptions, answer, call, goal, opened};
use crate::{figure, memory};

/// How many calls the session has.
const CALLS: usize = 100_000;

/// How many with `--quick`.
const QUICK_CALLS: usize = 200;

/// The goal for the memory after all calls, in times of that after a tenth of them.
const GOAL_GROWTH: f64 = 1.1;

pub(super) fn measure(options: &GuardOptions) -> Result<(), String> {
    let calls = if options.quick { QUICK_CALLS } else { CALLS };
    let opened = opened(Some(&options.documents))?;
    let session = opened.session(AskRoute::Nobody);
    let mut session = session.map_err(|error| error.to_string())?;
    let mut after_tenth = 0;
    for number in 1..=calls {
        let (asked, answered) = (call(number), answer(&number.to_string()));
        for (from, message) in [
            (MessageFrom::Client, &asked),
            (MessageFrom::Server, &answered),
        ] {
            if session.judge(from, message.as_bytes()) != Passage::Pass {
                return Err(format!("call {number} did not pass"));
            }
        }
        if number == calls / 10 {
            after_tenth = resident()?;
        }
    }
    let (ours, peer) = (resident()? as f64 / 1e6, after_tenth as f64 / 1e6);
    figure::print("guard-memory", ours, peer, peer / ours, "MB");
    let label = format!("guard-memory after {calls} calls");
    let wanted = format!("at most {GOAL_GROWTH}");
    let growth = ours / peer;
    let unit = "times that after a tenth";
    goal(&label, growth, unit, growth <= GOAL_GROWTH, &wanted);
    Ok(())
}

fn resident() -> Result<u64, String> {
    memory::resident().ok_or_else(|| "the system does not tell memory".to_owned())
}
