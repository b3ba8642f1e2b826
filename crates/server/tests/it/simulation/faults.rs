//! What goes wrong, drawn from the seed: which fault, when, and for whom.

use std::time::Duration;

use super::dice::SimDice;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimFault {
    /// A process dies after so many more steps, between any two of them, and another is started this much later.
    Crash {
        process: usize,
        steps: u64,
        restart: Duration,
    },
    /// A process does nothing for so long; its leases may run out.
    Pause { process: usize, time: Duration },
    /// A process does not reach the store.
    CutOff { process: usize, time: Duration },
    /// Nobody reaches the store.
    StoreGone { time: Duration },
    /// Single transactions fail, or nobody learns that they did not.
    Flaky { time: Duration },
    /// The clock of the database jumps, in milliseconds.
    DatabaseClock { by: i64 },
    /// The clock of a process jumps, in milliseconds.
    ProcessClock { process: usize, by: i64 },
    /// A process is asked to stop, and another is started.
    Shutdown { process: usize },
}

/// The faults of a simulation, each with the pause before it.
pub(super) fn draw(dice: &SimDice, processes: usize) -> Vec<(Duration, SimFault)> {
    let count = dice.between(3, 9);
    (0..count)
        .map(|_| {
            let pause = Duration::from_millis(dice.between(100, 3_500));
            (pause, fault(dice, processes))
        })
        .collect()
}

fn fault(dice: &SimDice, processes: usize) -> SimFault {
    let bound = u64::try_from(processes).unwrap_or(1);
    let process = usize::try_from(dice.below(bound)).unwrap_or(0);
    let time = Duration::from_millis(dice.between(200, 9_000));
    let jump = i64::try_from(dice.below(20_000)).unwrap_or(0) - 10_000;
    match dice.below(10) {
        0..=2 => SimFault::Crash {
            process,
            steps: dice.between(1, 60),
            restart: Duration::from_millis(dice.below(6_000)),
        },
        3 => SimFault::Pause { process, time },
        4 => SimFault::CutOff { process, time },
        5 => SimFault::StoreGone { time },
        6 => SimFault::Flaky { time },
        7 => SimFault::DatabaseClock { by: jump },
        8 => SimFault::ProcessClock { process, by: jump },
        _ => SimFault::Shutdown { process },
    }
}
