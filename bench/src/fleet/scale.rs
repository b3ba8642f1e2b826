//! Runs per minute of four workers with sixteen jobs each, beside one worker with sixteen, against a model that takes half a second.

use std::time::Instant;

use tokio::runtime::Runtime;

use super::Program;
use crate::campaign::{self, AGENT, DOCUMENT, JOBS, LATENCY, median, verdict};
use crate::figure;
use crate::work::told;

/// Workers that are measured beside one.
const WORKERS: u32 = 4;
/// How many times as many runs per minute they are to make.
const ASKED_RATIO: f64 = 3.2;

pub(super) fn run(program: &Program, store: &str, quick: bool) -> Result<(), String> {
    let serving = Runtime::new().map_err(told)?;
    let model = serving.block_on(campaign::serve())?;
    program.write("agent.yaml", AGENT)?;
    program.write("attack.yaml", DOCUMENT)?;
    let (rounds, rows) = if quick { (1, 1) } else { (3, 20) };
    let (mut one, mut four) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for (workers, rates) in [(1, &mut one), (WORKERS, &mut four)] {
            // As many runs for each job, so that starting and ending weigh the same.
            let runs = JOBS * rows * workers;
            let name = format!("scale-{workers}-{round}");
            rates.push(measure(program, (store, &model), &name, workers, runs)?);
        }
    }
    serving.shutdown_background();
    let (peer, ours) = (median(one), median(four));
    figure::print(
        "campaign-scale",
        ours,
        peer,
        ours / peer,
        "runs/min with 4 workers of 16 jobs; the peer is 1 worker",
    );
    figure::say(&format!(
        "campaign-scale: {WORKERS} workers make {:.1} times the runs of one, against a model that takes {} ms; \
         asked is {ASKED_RATIO} times: {}",
        ours / peer,
        LATENCY.as_millis(),
        verdict(ours / peer >= ASKED_RATIO)
    ));
    Ok(())
}

/// How many runs a minute so many workers make.
fn measure(
    program: &Program,
    (store, model): (&str, &str),
    name: &str,
    workers: u32,
    runs: u32,
) -> Result<f64, String> {
    let place = ["--name", name, "--store", store];
    let repeats = runs.to_string();
    let plan = ["run", "attack.yaml", "--subject", "agent.yaml"];
    let model = ["--model", "openai:bench", "--base-url", model];
    let rest = ["--no-probes", "--plan-only", "--repeats", &repeats];
    program.watched(&[&plan[..], &model[..], &rest[..], &place[..]].concat())?;
    let jobs = JOBS.to_string();
    let work = [&["worker", "--jobs", &jobs][..], &place[..]].concat();
    let started = Instant::now();
    let mut working = Vec::new();
    for _ in 0..workers {
        working.push(program.command(&work).spawn().map_err(told)?);
    }
    for worker in &mut working {
        let ended = worker.wait().map_err(told)?;
        if !ended.success() {
            return Err(format!("a worker ended with {:?}", ended.code()));
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let report = ["campaigns", "report", name, "--store", store];
    let out = ["--format", "json", "--out", name];
    program.watched(&[&report[..], &out[..]].concat())?;
    campaign::check(&program.path(name).join("result.json"), runs)?;
    Ok(f64::from(runs) * 60.0 / seconds)
}
