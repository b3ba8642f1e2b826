//! Campaigns that are interrupted at random moments and gone on with: in the end they are the same as one that
//! was not, and nothing is left behind.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::campaigns::{Campaigns, PROMPT, code, stderr};

/// The variable with a seed, to see again what a seed has shown.
const SEED: &str = "PROOFHOUSE_TEST_SEED";
/// A child that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(300);
/// How often one campaign is interrupted at most, before it is let alone.
const MAX_INTERRUPTIONS: usize = 3;

const RUN: [&str; 8] = [
    "run",
    "documents",
    "--prompt",
    PROMPT,
    "--repeats",
    "12",
    "--jobs",
    "2",
];
/// The runs of that: two documents with both simulations, twelve times, and the twin with both.
const RUNS: usize = 2 * 2 * 12 + 2;

/// Chance that can be had again.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "whoever runs the test sets it")]
        let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = given.unwrap_or_else(|| u64::from(now.unwrap().subsec_nanos()));
        println!("{SEED}={seed}");
        Self(seed)
    }

    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let limit = u64::try_from(limit).unwrap().max(1);
        usize::try_from((mixed ^ (mixed >> 31)) % limit).unwrap()
    }
}

/// What every run came to, in the order of their ids, with everything that is counted.
pub(crate) fn counted(result: &Value) -> Vec<Value> {
    let runs = result["runs"].as_array().unwrap().iter();
    let mut counted: Vec<Value> = runs
        .map(|run| {
            let indicators = run["indicators"].as_array().unwrap().iter();
            let indicators: Vec<_> = indicators
                .map(|found| (found["id"].clone(), found["result"].clone()))
                .collect();
            json!([
                run["id"],
                run["outcome"],
                run["tier"],
                run["reached"],
                run["carriers"],
                run["task_done"],
                indicators
            ])
        })
        .collect();
    counted.sort_by_key(|run| run[0].as_str().unwrap().to_owned());
    counted
}

/// The counts of the summary, without what depends on the clock.
fn summary(stdout: &[u8]) -> Value {
    let mut report: Value = serde_json::from_slice(stdout).unwrap();
    let mut summary = report["summary"].take();
    forget_time(&mut summary);
    summary
}

fn forget_time(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.contains("milliseconds"));
            fields.values_mut().for_each(forget_time);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_time),
        _ => {}
    }
}

fn wait(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > DEADLINE {
            let _ = child.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a campaign has written the traces of so many runs, or has ended.
fn wait_for_runs(child: &mut Child, out: &Path, runs: usize) {
    let begun = Instant::now();
    let written = || std::fs::read_dir(out.join("traces")).map_or(0, Iterator::count);
    while written() < runs && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < DEADLINE, "it does not get on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn interrupt_and_resume(times: usize) {
    let campaigns = Campaigns::new();
    let whole = [&RUN[..], &["--out", "whole", "--format", "json"]].concat();
    let output = campaigns.proofhouse(&whole);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let expected = counted(&campaigns.result("whole"));
    assert_eq!(expected.len(), RUNS, "attacks and twins");
    let expected_summary = summary(&output.stdout);
    assert!(expected_summary["cells"].is_array());
    let mut chance = Chance::new();
    let mut stopped = 0;
    for time in 0..times {
        let out = format!("out{time}");
        let arguments = [&RUN[..], &["--format", "json", "--out", &out, "--resume"]].concat();
        let interruptions = 1 + chance.below(MAX_INTERRUPTIONS);
        for interruption in 0..interruptions {
            let mut child = campaigns
                .command(&arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // Counted in runs and not in time, which says nothing on a machine that does other things too; the
            // first is early enough to find most of the work undone.
            let moment = chance.below(if interruption == 0 { RUNS / 4 } else { RUNS });
            wait_for_runs(&mut child, &campaigns.path(&out), moment);
            let killed = time % 2 == 1;
            if killed {
                child.kill().unwrap();
            } else {
                let mut asking = Command::new("kill");
                asking.args(["-INT", &child.id().to_string()]);
                // It may be gone already.
                asking.stderr(Stdio::null()).status().unwrap();
            }
            let ended = wait(&mut child);
            println!(
                "{out}: {} after {moment} runs: {ended:?}",
                if killed { "killed" } else { "interrupted" }
            );
            // It may have been done already, or not yet have heard of signals; what got through until then is told.
            assert!(matches!(ended, None | Some(0 | 1 | 130)), "{ended:?}");
            stopped += usize::from(ended != Some(0));
        }
        let output = campaigns.proofhouse(&arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let result = campaigns.result(&out);
        assert_eq!(result["complete"], true);
        assert_eq!(counted(&result), expected, "{out}");
        assert_eq!(summary(&output.stdout), expected_summary, "{out}");
        let replayed = campaigns.proofhouse(&["replay", &out, "--fail-on-change"]);
        assert_eq!(code(&replayed), 0, "{}", stderr(&replayed));
        assert!(campaigns.left().is_empty(), "{out}: {:?}", campaigns.left());
        let hidden = std::fs::read_dir(campaigns.path(&out)).unwrap();
        let hidden = hidden.map(|entry| entry.unwrap().file_name());
        let hidden: Vec<_> = hidden
            .filter(|name| name.as_encoded_bytes().starts_with(b"."))
            .collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }
    assert!(stopped > 0, "not one of them was interrupted");
}

#[test]
fn an_interrupted_campaign_comes_to_the_same() {
    interrupt_and_resume(3);
}

#[test]
#[ignore = "takes minutes: cargo test -p proofhouse --test it resume:: -- --ignored --nocapture"]
fn twenty_interrupted_campaigns_come_to_the_same() {
    interrupt_and_resume(20);
}

#[test]
fn what_a_killed_campaign_left_is_gone_with_the_next() {
    let campaigns = Campaigns::new();
    // It ends by itself when nobody is left to end it.
    std::fs::write(
        campaigns.path("agent.sh"),
        "while kill -0 $PPID 2>/dev/null; do sleep 0.1; done",
    )
    .unwrap();
    let arguments = ["run", "documents", "--command", "sh agent.sh"];
    let mut child = campaigns
        .command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while campaigns.left().is_empty() && begun.elapsed() < DEADLINE {
        std::thread::sleep(Duration::from_millis(10));
    }
    // While it lives, nobody else takes its directory away.
    let meanwhile = campaigns.run(&["--subject", "sim:careful"]);
    assert_eq!(code(&meanwhile), 0, "{}", stderr(&meanwhile));
    assert_eq!(campaigns.left().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(campaigns.left().len(), 1, "it could not clean up");
    let next = campaigns.run(&["--subject", "sim:careful"]);
    assert_eq!(code(&next), 0, "{}", stderr(&next));
    assert_eq!(campaigns.left().len(), 0);
}
