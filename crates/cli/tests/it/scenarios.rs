//! The threat library, played for real: the gullible simulation falls for every attack, the careful one for
//! none, and the twins are clean.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

mod subject;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_oatf::{AttackResult, Document, load};
use proofhouse_range::RunReport;
use serde_json::Value;
use subject::play;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Runs at once: enough to hide what each waits for.
const AT_ONCE: usize = 8;

struct Scenario {
    path: PathBuf,
    attack: Document,
    twin: Document,
}

fn library() -> Vec<Scenario> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    #[expect(
        clippy::disallowed_methods,
        reason = "who writes a document plays only that"
    )]
    let only = std::env::var("SCENARIO").unwrap_or_default();
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() {
            files.extend(
                std::fs::read_dir(folder)
                    .unwrap()
                    .map(|it| it.unwrap().path()),
            );
        }
    }
    files.retain(|file| {
        let name = file.to_str().unwrap();
        let is_attack = !name.ends_with(".twin.yaml") && !name.ends_with(".cases.yaml");
        name.ends_with(".yaml") && is_attack && name.contains(&only)
    });
    files.sort();
    let read = |path: &Path| {
        #[expect(clippy::disallowed_methods, reason = "a file of this project")]
        let text = std::fs::read_to_string(path).unwrap();
        load(&text)
            .unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()))
            .document
    };
    files
        .into_iter()
        .map(|path| Scenario {
            attack: read(&path),
            twin: read(&path.with_extension("twin.yaml")),
            path,
        })
        .collect()
}

fn own(document: &Document) -> &Value {
    &document.attack.extensions["x-proofhouse"]
}

fn result(report: &RunReport) -> AttackResult {
    report.verdict.as_ref().unwrap().attack.result
}

/// What the subject did, for whoever has to find out why.
fn told(report: &RunReport) -> String {
    let mut text = String::new();
    // Handshakes and lists are the same everywhere.
    let is_dull = |name: &str| {
        name == "initialize"
            || name.contains("list")
            || name.contains("discover")
            || name.contains("acknowledged")
    };
    for message in report
        .trace
        .iter()
        .filter(|message| !is_dull(&message.operation))
    {
        let _ = writeln!(
            text,
            "  {:?} {} {}",
            message.direction, message.operation, message.content
        );
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    if let Some(verdict) = &report.verdict {
        for indicator in &verdict.indicators {
            let _ = writeln!(
                text,
                "  {}: {:?} {:?}",
                indicator.id, indicator.result, indicator.reason
            );
        }
    }
    text
}

fn did_the_task(success: &Value, played: &subject::Played) -> bool {
    if let Some(words) = success["answer_contains"].as_str() {
        return played.answer.contains(words);
    }
    // A tool of a server, or one of the frontend.
    played.report.trace.iter().any(|message| {
        let name = match message.operation.as_str() {
            "tools/call" => &message.content["name"],
            "tool_call_start" => &message.content["toolCallName"],
            _ => &Value::Null,
        };
        name.is_string() && *name == success["tool"]
    })
}

/// What is wrong with a scenario; nothing, if it is as it should be.
async fn wrong(scenario: &Scenario) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = scenario
        .path
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let prompt = |document: &Document| own(document)["prompt"].as_str().unwrap().to_owned();
    for (model, expected) in [
        ("sim:gullible", AttackResult::Exploited),
        ("sim:careful", AttackResult::NotExploited),
    ] {
        let played = play(&scenario.attack, &prompt(&scenario.attack), model).await;
        let found = result(&played.report);
        let mut complain = |what: &str| {
            wrong.push(format!(
                "{name} {model}: {what}\n{}  answer: {}",
                told(&played.report),
                played.answer
            ));
        };
        if found != expected {
            complain(&format!("{found:?}"));
        }
        let matched = played
            .report
            .verdict
            .as_ref()
            .unwrap()
            .attack
            .evaluation_summary
            .matched;
        if expected == AttackResult::Exploited && matched < 2 {
            complain(&format!("only {matched} indicators"));
        }
        if !played.report.exposure.reached || !played.report.errors.is_empty() {
            complain(&format!(
                "reached: {}, {:?}",
                played.report.exposure.reached, played.report.errors
            ));
        }
        let twin = play(&scenario.twin, &prompt(&scenario.twin), model).await;
        let mut complain = |what: &str| {
            wrong.push(format!(
                "{name} twin {model}: {what}\n{}  answer: {}",
                told(&twin.report),
                twin.answer
            ));
        };
        if twin
            .report
            .verdict
            .as_ref()
            .unwrap()
            .attack
            .evaluation_summary
            .matched
            > 0
        {
            complain("an indicator matched");
        }
        if !did_the_task(&own(&scenario.twin)["success"], &twin) {
            complain("the task was not done");
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gullible_fall_the_careful_stand_and_the_twins_are_clean() {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut runs = JoinSet::new();
    for scenario in library() {
        let places = Arc::clone(&places);
        runs.spawn(async move {
            let _place = places.acquire().await.unwrap();
            wrong(&scenario).await
        });
    }
    assert!(!runs.is_empty());
    let found: Vec<String> = runs.join_all().await.into_iter().flatten().collect();
    assert!(
        found.is_empty(),
        "{} wrong\n{}",
        found.len(),
        found.join("\n")
    );
}
