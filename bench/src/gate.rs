//! The gate on regressions in simulated campaigns: how often it fails a subject that did not change, and how often it finds
//! one that did.
//!
//! Some campaigns have runs that prove nothing, and not always the same share of them.
//!
//! Its peer is the rule that it replaced: each document by itself, and of too few runs what was seen counts.

use std::thread;

use proofhouse_campaign::baseline::{ComparedRuns, DEFAULT_THRESHOLD, judge};
use proofhouse_campaign::statistics::{ComparisonDesign, CountPair, fisher};

use crate::{Options, figure};

/// Documents of a campaign.
const DOCUMENTS: usize = 59;
/// Attack success rates of a subject that does not change.
const RATES: [f64; 4] = [0.02, 0.05, 0.3, 0.5];
/// Repeats of both campaigns.
const REPEATS: [u64; 4] = [1, 3, 5, 10];
/// Pairs of campaigns for each rate and number of repeats.
const PAIRS: usize = 1_000;
/// Shares of the runs that do not get through and prove nothing, now and before.
const UNPROVED: [(f64, f64); 4] = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.3)];
/// The most false alarms, as a share of pairs.
const MOST_ALARMS: f64 = 0.06;
/// The true change whose power is told.
const RISE: (f64, f64) = (0.05, 0.3);

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let pairs = if options.quick { 40 } else { PAIRS };
    let worst = false_alarms(pairs);
    let (ours, peer) = power(pairs);
    figure::print(
        "gate-false-alarms",
        worst.gate * 100.0,
        worst.peer * 100.0,
        worst.peer / worst.gate.max(0.001),
        "%",
    );
    figure::print(
        "gate-power",
        ours * 100.0,
        peer * 100.0,
        ours / peer.max(0.001),
        "%",
    );
    // So few pairs show that it works, and nothing else.
    if !options.quick && worst.gate > MOST_ALARMS {
        return Err(format!(
            "the gate raises {:.1}% false alarms, and {:.0}% is the most",
            worst.gate * 100.0,
            MOST_ALARMS * 100.0
        ));
    }
    Ok(())
}

/// How often something is called a regression, as a share of pairs.
#[derive(Debug, Clone, Copy, Default)]
struct AlarmShares {
    gate: f64,
    /// For a document.
    documents: f64,
    /// For all documents together.
    together: f64,
    peer: f64,
}

/// The table of false alarms; the worst of them.
fn false_alarms(pairs: usize) -> AlarmShares {
    figure::say(&format!(
        "gate: false alarms in {pairs} pairs of campaigns of {DOCUMENTS} documents, the same subject twice"
    ));
    figure::say("  inconclusive  rate  repeats    gate  documents  together  one by one");
    let mut worst = AlarmShares::default();
    for unproved in UNPROVED {
        for rate in RATES {
            for repeats in REPEATS {
                let shares = simulate(pairs, repeats, unproved, |_| (rate, rate));
                figure::say(&format!(
                    "  {:>3.0} % / {:>2.0} %  {rate:<4}  {repeats:>7}  {:>5.1}%  {:>8.1}%  {:>7.1}%  {:>9.1}%",
                    unproved.0 * 100.0,
                    unproved.1 * 100.0,
                    shares.gate * 100.0,
                    shares.documents * 100.0,
                    shares.together * 100.0,
                    shares.peer * 100.0
                ));
                worst.gate = worst.gate.max(shares.gate);
                worst.peer = worst.peer.max(shares.peer);
            }
        }
    }
    worst
}

/// The table of power; that of the gate with ten repeats, when a tenth of the documents changes, and what one test per
/// document, divided by their number, would have.
fn power(pairs: usize) -> (f64, f64) {
    let (from, to) = RISE;
    figure::say(&format!(
        "gate: found of true rises from {from} to {to}, by how many documents rise; predicted for all"
    ));
    figure::say("  repeats     one   tenth     all  predicted");
    let mut told = (0.0, 0.0);
    for repeats in REPEATS {
        let found = [1, DOCUMENTS / 10, DOCUMENTS].map(|risen| {
            simulate(pairs, repeats, UNPROVED[0], |place| {
                (if place < risen { to } else { from }, from)
            })
        });
        let design = ComparisonDesign {
            documents: DOCUMENTS as u64,
            now: repeats,
            before: repeats,
            level: DEFAULT_THRESHOLD / 2.0,
        };
        let [one, tenth, all] = found.map(|shares| shares.gate * 100.0);
        figure::say(&format!(
            "  {repeats:>7}  {one:>5.1}%  {tenth:>5.1}%  {all:>5.1}%  {:>8.1}%",
            design.power(from, to) * 100.0
        ));
        if repeats == 10 {
            let alone = ComparisonDesign {
                documents: 1,
                level: DEFAULT_THRESHOLD / DOCUMENTS as f64,
                ..design
            };
            let missed = (1.0 - alone.power(from, to)).powi(DOCUMENTS as i32 / 10);
            told = (found[1].gate, 1.0 - missed);
        }
    }
    told
}

/// Compares campaigns in which each document, by its place, has a rate now and one before. Of the runs that do not get through,
/// these shares prove nothing.
fn simulate(
    pairs: usize,
    repeats: u64,
    unproved: (f64, f64),
    rates: impl Fn(usize) -> (f64, f64) + Sync,
) -> AlarmShares {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let count = |first: usize| {
        let mut alarms = [0_usize; 4];
        for number in (first..pairs).step_by(threads) {
            let mut chance = Chance(number as u64 ^ (repeats << 32));
            let counts: Vec<ComparedRuns> = (0..DOCUMENTS)
                .map(|place| {
                    let (now, before) = rates(place);
                    let mut draw = |rate, share| {
                        let through = chance.hits(repeats, rate);
                        let unproved = chance.hits(repeats - through, share);
                        ((through, repeats - unproved), unproved)
                    };
                    let (now, inconclusive_now) = draw(now, unproved.0);
                    let (before, inconclusive_before) = draw(before, unproved.1);
                    ComparedRuns {
                        proved: CountPair::new(now, before),
                        inconclusive_now,
                        inconclusive_before,
                    }
                })
                .collect();
            let judged = judge(&counts, DEFAULT_THRESHOLD);
            let mut documents = judged.documents.iter();
            let found = [
                judged.has_regressed(),
                documents.any(|one| one.change.is_regression()),
                judged.together.is_regression(),
                counts.iter().any(|one| one_by_one(one.proved)),
            ];
            for (alarms, found) in alarms.iter_mut().zip(found) {
                *alarms += usize::from(found);
            }
        }
        alarms
    };
    let count = &count;
    let alarms = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || count(first)))
            .collect();
        let mut sum = [0_usize; 4];
        for worker in workers {
            let alarms = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (sum, alarms) in sum.iter_mut().zip(alarms) {
                *sum += alarms;
            }
        }
        sum
    });
    let [gate, documents, together, peer] = alarms.map(|alarms| alarms as f64 / pairs as f64);
    AlarmShares {
        gate,
        documents,
        together,
        peer,
    }
}

/// The rule of earlier versions: whether a document by itself counts as a regression.
fn one_by_one(pair: CountPair) -> bool {
    let (now, before) = (pair.now, pair.before);
    let is_clear = fisher(now, before) <= DEFAULT_THRESHOLD;
    let too_few = fisher((now.1, now.1), (0, before.1)) > DEFAULT_THRESHOLD;
    let more = now.0 * before.1 > before.0 * now.1;
    more && (is_clear || (too_few && before.0 == 0))
}

/// Numbers that look like chance and are the same every time (SplitMix64).
struct Chance(u64);

impl Chance {
    fn hits(&mut self, runs: u64, rate: f64) -> u64 {
        (0..runs).map(|_| u64::from(self.unit() < rate)).sum()
    }

    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
