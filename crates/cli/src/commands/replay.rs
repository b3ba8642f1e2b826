//! `proofhouse replay`: shows recorded runs and judges them again, without the subject and its model.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proofhouse_campaign::replay::{
    KeptCampaign, MessageBudget, Replayed, Sources, find, gate, replay,
};
use proofhouse_report::replay::document as replay_json;

use crate::exit_code::Exit;
use crate::input::SizeLimit;
use crate::notices;
use crate::output::{CommandError, StdoutData, printable_line, shown_path, talk};
use crate::report::{self, plural};
use crate::semantic_options::SemanticOptions;

/// Problems of one recording that are told one by one.
const TOLD_PROBLEMS: usize = 5;
/// Runs that were never made which are told one by one.
const TOLD_MISSING: usize = 10;

/// Show recorded runs of a campaign and judge them again, without a model
///
/// Every run that `proofhouse run --out DIR` made has a recording. It is judged by the document as it was run,
/// or by a changed one, and both verdicts are told.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse replay results\n  \
    proofhouse replay PROOF-001/sim:gullible/1 --out results\n  \
    proofhouse replay results/PROOF-001 --document changed.yaml\n  \
    proofhouse replay results/traces/PROOF-001_sim_gullible_1-0a1b2c3d.jsonl --messages full\n  \
    proofhouse replay results --document my-attacks/ --fail-on-change --format json\n\n\
    Exit codes: 0 something was proved and nothing got through, 1 something did, 2 inconclusive: nothing was\n\
    proved, runs failed, recordings have gaps, or the campaign broke off, 3 a run cannot be judged again, 64 usage.\n\
    With --fail-on-change: 0 when every verdict is as recorded, 1 when one is not.")]
pub(crate) struct ReplayCommand {
    /// Runs: a directory of `run --out`, the recording of a run, or the id of one (with --out, or after the
    /// directory), of which the beginning is enough and `*` stands for anything
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// The directory of the campaign whose ids are meant; all its runs without any RUN
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Judge the runs of this document by this file instead of the document as it was run; directories are
    /// searched for .yaml and .yml; may be given again
    #[arg(long = "document", value_name = "FILE")]
    documents: Vec<PathBuf>,

    /// Fail when a verdict is not the recorded one, and only then
    #[arg(long)]
    fail_on_change: bool,

    /// How much of the conversations is shown [default: short for one run, none for several]
    #[arg(long, value_enum)]
    messages: Option<MessageDetail>,

    /// How to print the runs
    #[arg(long, value_enum, default_value_t = ReplayFormat::Human)]
    format: ReplayFormat,

    #[command(flatten)]
    size: SizeLimit,

    #[command(flatten)]
    semantic: SemanticOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReplayFormat {
    /// For people
    Human,
    /// For programs
    Json,
}

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageDetail {
    /// Only the verdicts
    None,
    /// A line of each message
    Short,
    /// Each message in full
    Full,
}

impl ReplayCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let found = find(&self.runs, self.out.as_deref())
            .map_err(|error| CommandError::of(&error, error.is_usage()))?;
        let semantic = self.semantic.evaluator()?;
        let sources = Sources::new(
            &self.documents,
            self.size.limits(),
            semantic,
            &found,
            &notices::show,
        );
        let mut sources = sources.map_err(|error| CommandError::of(&error, error.is_usage()))?;
        let messages =
            self.messages
                .unwrap_or_else(|| match found.iter().map(|kept| kept.runs.len()).sum() {
                    1_usize => MessageDetail::Short,
                    _ => MessageDetail::None,
                });
        let mut room = MessageBudget::new(messages != MessageDetail::None);
        let mut all = Vec::new();
        for kept in &found {
            for place in &kept.runs {
                let one = replay(kept, *place, &mut sources, &mut room);
                tell(&one);
                all.push(one);
            }
        }
        for kept in &found {
            tell_missing(kept);
        }
        let mut data = StdoutData::new();
        match self.format {
            ReplayFormat::Human => report::replay::write(&mut data, &all, messages)?,
            ReplayFormat::Json => {
                let with_messages = messages != MessageDetail::None;
                data.json(&replay_json(&all, &found, with_messages))?;
            }
        }
        data.finish()?;
        Ok(gate(&all, &found, self.fail_on_change).into())
    }
}

/// Says which runs of a campaign that broke off were never made.
fn tell_missing(kept: &KeptCampaign) {
    if kept.result.complete || !kept.is_whole {
        return;
    }
    let missing = kept.missing();
    let named: Vec<&str> = missing
        .iter()
        .take(TOLD_MISSING)
        .map(String::as_str)
        .collect();
    let more = if missing.len() > named.len() {
        ", …"
    } else {
        ""
    };
    talk(&printable_line(&format!(
        "{}: the campaign broke off; {} not made: {}{more}; go on with `proofhouse run --resume`",
        shown_path(&kept.directory),
        plural(missing.len(), "run"),
        named.join(", ")
    )));
}

/// Says what is wrong with a recording, with its places, and why a run cannot be judged again.
fn tell(one: &Replayed<'_>) {
    let again = match &one.again {
        Ok(again) => again,
        Err(error) => {
            let line = format!("proofhouse: {}: {error}", one.record.id);
            return talk(&printable_line(&line));
        }
    };
    let recording = &again.recording;
    let name = shown_path(&recording.path);
    for problem in recording.problems.iter().take(TOLD_PROBLEMS) {
        let then = if problem.kind.is_warning() {
            "kept"
        } else {
            "skipped"
        };
        let line = format!("{name}:{}: {} ({then})", problem.line, problem.message);
        talk(&printable_line(&line));
    }
    if recording.problems.len() > TOLD_PROBLEMS {
        talk(&format!("{name}: there is more like this"));
    }
    if let Some(error) = &recording.broke_off {
        talk(&printable_line(&format!("{name}: {error}")));
    }
    if recording.messages < one.record.messages {
        talk(&format!(
            "{name}: {} of the run's {} messages are in it",
            recording.messages, one.record.messages
        ));
    }
}
