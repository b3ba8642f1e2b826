//! A campaign of 200,000 runs: the memory of who plans it, and the time and memory of its report.

use std::io::BufReader;
use std::sync::Arc;

use proofhouse_store::model::{CampaignFilter, FinishedRun, RunClaim};
use proofhouse_store::{SqliteOptions, Store};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{Program, megabytes};
use crate::campaign::{self, AGENT, DOCUMENT, verdict};
use crate::figure;
use crate::work::told;

/// How much more memory planning twenty times the runs may take: nothing but what differs by chance.
const FLAT: f64 = 1.1;
const REPORT_SECONDS: f64 = 60.0;
const REPORT_MEGABYTES: f64 = 1_000.0;
/// Runs that are written in one transaction.
const BATCH: usize = 1_000;

pub(super) fn run(program: &Program, quick: bool) -> Result<(), String> {
    // A thousand documents, ten subjects and twenty repeats, or as many repeats of less.
    let (documents, subjects, repeats) = if quick { (20, 2, 5) } else { (1_000, 10, 20) };
    let runs = documents * subjects * repeats;
    let serving = Runtime::new().map_err(told)?;
    let model = serving.block_on(campaign::serve())?;
    let folder = program.path("many");
    std::fs::create_dir_all(&folder).map_err(told)?;
    for number in 0..documents {
        let document = DOCUMENT.replace("BENCH-001", &format!("BENCH-{number:04}"));
        program.write(&format!("many/attack-{number:04}.yaml"), &document)?;
    }
    let mut plan = vec!["run".to_owned(), "many".to_owned()];
    for number in 0..subjects {
        let file = format!("clerk-{number}.yaml");
        let name = format!("name: clerk-{number}");
        program.write(&file, &AGENT.replace("name: clerk", &name))?;
        plan.extend(["--subject".to_owned(), file]);
    }
    let rest = [
        "--model",
        "openai:bench",
        "--base-url",
        &model,
        "--no-probes",
    ];
    plan.extend(rest.iter().map(|&word| word.to_owned()));
    let plan: Vec<&str> = plan.iter().map(String::as_str).collect();
    let mut peaks = Vec::new();
    for (name, repeats) in [("once", 1), ("often", repeats)] {
        let store = format!("{name}.db");
        let repeats = repeats.to_string();
        let place = ["--name", name, "--store", &store, "--plan-only"];
        let took = [&plan[..], &place[..], &["--repeats", &repeats]].concat();
        let took = program.watched(&took)?;
        figure::say(&format!(
            "planned {name} in {:.1} s with {:.0} MB",
            took.seconds,
            megabytes(took.peak)
        ));
        peaks.push(megabytes(took.peak));
    }
    let (once, often) = (peaks[0], peaks[1]);
    let unit = format!(
        "MB to plan {runs} runs; the peer is {}",
        documents * subjects
    );
    figure::print("campaign-plan-memory", often, once, once / often, &unit);
    figure::say(&format!(
        "campaign-plan-memory: {:.2} times the memory for {repeats} times the runs; asked is {FLAT}: {}",
        often / once,
        verdict(often <= once * FLAT)
    ));
    let made = ["attack.yaml", "--subject", "agent.yaml", "--format", "json"];
    program.write("agent.yaml", AGENT)?;
    program.write("attack.yaml", DOCUMENT)?;
    let sample = ["--no-probes", "--out", "sample", "--base-url", &model];
    let sample = [
        &["run"][..],
        &made[..],
        &sample,
        &["--model", "openai:bench"],
    ]
    .concat();
    program.watched(&sample)?;
    let record = sample_record(program)?;
    serving.block_on(fill(program, &record, runs))?;
    serving.shutdown_background();
    report(program, runs)
}

/// The record of a real run, which the others are made after.
fn sample_record(program: &Program) -> Result<Value, String> {
    let file = std::fs::File::open(program.path("sample/result.json")).map_err(told)?;
    let mut result: Value = serde_json::from_reader(BufReader::new(file)).map_err(told)?;
    let mut record = result["runs"][0].take();
    if let Some(fields) = record.as_object_mut() {
        fields.remove("trace");
        Ok(record)
    } else {
        Err("the campaign of one run has none".to_owned())
    }
}

/// Finishes every run of the large campaign, as workers would.
async fn fill(program: &Program, record: &Value, runs: usize) -> Result<(), String> {
    let options = SqliteOptions::file(program.path("often.db"));
    let store = Arc::new(Store::open_sqlite(options).await.map_err(told)?);
    let newest = CampaignFilter {
        limit: 1,
        ..CampaignFilter::default()
    };
    let campaigns = store.campaigns(newest).await.map_err(told)?;
    let campaign = campaigns.first().ok_or("the campaign is not there")?.id;
    let mut done = 0;
    loop {
        let claim = RunClaim {
            campaign,
            owner: "bench".to_owned(),
            lease_ms: 600_000,
            limit: BATCH,
            is_idle: true,
            has_lost: false,
        };
        let claimed = store.claim_runs(claim).await.map_err(told)?;
        if claimed.is_empty() {
            break;
        }
        done += claimed.len();
        let finished = claimed.into_iter().map(|run| {
            let (document, subject) = (
                format!("BENCH-{:04}", run.document),
                format!("clerk-{}", run.subject),
            );
            let mut record = record.clone();
            record["id"] = format!("{document}/{subject}/{}", run.repeat).into();
            record["document"] = document.into();
            record["subject"] = subject.into();
            record["repeat"] = run.repeat.into();
            FinishedRun {
                place: run.place,
                fence: run.fence,
                outcome: record["outcome"].as_str().unwrap_or_default().to_owned(),
                reason: String::new(),
                tokens: 110,
                milliseconds: 1_000,
                record: record.to_string(),
                trace: None,
                stops: false,
            }
        });
        let finished = store.finish_runs(campaign, finished.collect()).await;
        finished.map_err(told)?;
    }
    store.settle_campaign(campaign).await.map_err(told)?;
    store.close().await;
    if done == runs {
        Ok(())
    } else {
        Err(format!("{done} of {runs} runs were planned"))
    }
}

fn report(program: &Program, runs: usize) -> Result<(), String> {
    let store = ["campaigns", "report", "often", "--store", "often.db"];
    for (name, format) in [
        ("campaign-report", "human"),
        ("campaign-report-html", "html"),
    ] {
        let took = program.watched(&[&store[..], &["--format", format]].concat())?;
        let unit = format!("s for {runs} runs as {format}; the peer is the limit");
        let ratio = REPORT_SECONDS / took.seconds;
        figure::print(name, took.seconds, REPORT_SECONDS, ratio, &unit);
        let peak = megabytes(took.peak);
        let unit = format!("MB for {runs} runs as {format}; the peer is the limit");
        let ratio = REPORT_MEGABYTES / peak;
        let label = format!("{name}-memory");
        figure::print(&label, peak, REPORT_MEGABYTES, ratio, &unit);
        let held = took.seconds <= REPORT_SECONDS && peak <= REPORT_MEGABYTES;
        figure::say(&format!(
            "{name}: {:.1} s and {peak:.0} MB; asked are {REPORT_SECONDS:.0} s and {REPORT_MEGABYTES:.0} MB: {}",
            took.seconds,
            verdict(held)
        ));
    }
    Ok(())
}
