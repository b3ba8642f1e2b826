//! `proofhouse replay`: shows recorded runs and judges them again, without the subject and its model.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use proofhouse_campaign::replay::{
    KeptCampaign, MessageBudget, Replayed, Sources, find, gate, replay,
};
use proofhouse_guard::OpenedPolicy;
use proofhouse_guard::replay::ReplayedTraces;
use proofhouse_report::replay::document as replay_json;
use proofhouse_report::replay_text::{self, ShownMessages};

use crate::exit_code::Exit;
use crate::input::SizeLimit;
use crate::interrupt::Interrupt;
use crate::notices;
use crate::output::{CommandError, StdoutData, printable_line, shown_path, talk};
use crate::report::plural;
use crate::semantic_options::SemanticOptions;
use crate::traces;

/// Problems of one recording that are told one by one.
const TOLD_PROBLEMS: usize = 5;
/// Runs that were never made which are told one by one.
const TOLD_MISSING: usize = 10;

/// Show recorded runs and score them again, without running the agent
///
/// `proofhouse run` records every run. Replay scores a recording with the original document or with a changed one,
/// and shows the recorded verdict next to the new one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse replay results\n  \
    proofhouse replay PROOF-001/sim:gullible/1 --out results\n  \
    proofhouse replay results/PROOF-001 --document changed.yaml\n  \
    proofhouse replay results/traces/PROOF-001_sim_gullible_1-0a1b2c3d.jsonl --messages full\n  \
    proofhouse replay results --document my-attacks/ --fail-on-change --format json\n  \
    proofhouse replay guard.jsonl --policy policy.yaml\n\n\
    Exit codes:\n  \
    0   at least one attack was resisted, and none got through\n  \
    1   an attack got through\n  \
    2   inconclusive: nothing was proved, runs failed, or recordings are incomplete\n  \
    3   a run cannot be scored again\n  \
    64  invalid arguments\n\n\
    With --fail-on-change, the exit code is 0 if every verdict is as recorded, and 1 otherwise.\n    \
    For --policy it is 0 if every call passes, and 1 if one is blocked or asked about.")]
pub(crate) struct ReplayCommand {
    /// The runs to show: the directory of a campaign, the trace file of a run, or the id of a run (with --out, or
    /// after the directory: DIR/ID). The beginning of an id is enough; `*` matches any text
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// The directory of the campaign that the ids belong to. Without RUN, all its runs are shown
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Score the runs of this document with this file instead of the recorded version. Directories are searched for
    /// .yaml and .yml files; can be repeated
    #[arg(long = "document", value_name = "FILE")]
    documents: Vec<PathBuf>,

    /// Fail if, and only if, a verdict differs from the recorded one
    #[arg(long)]
    fail_on_change: bool,

    /// Judge traces of `guard --record` with this policy instead: RUN names traces, and what the guard would have decided about
    /// each call is shown
    #[arg(long, value_name = "FILE", requires = "runs", conflicts_with_all = ["out", "documents", "fail_on_change", "messages"])]
    policy: Option<PathBuf>,

    /// How much of the messages to show [default: short for one run, none for several]
    #[arg(long, value_enum)]
    messages: Option<MessageDetail>,

    /// The output format
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
enum MessageDetail {
    /// Only the verdicts
    None,
    /// One line per message
    Short,
    /// Each message in full
    Full,
}

impl From<MessageDetail> for ShownMessages {
    fn from(detail: MessageDetail) -> Self {
        match detail {
            MessageDetail::None => Self::None,
            MessageDetail::Short => Self::Short,
            MessageDetail::Full => Self::Full,
        }
    }
}

impl ReplayCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        if let Some(policy) = &self.policy {
            return self.with_policy(policy);
        }
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
            ReplayFormat::Human => data.write(&replay_text::text(&all, messages.into()))?,
            ReplayFormat::Json => {
                let with_messages = messages != MessageDetail::None;
                data.json(&replay_json(&all, &found, with_messages))?;
            }
        }
        data.finish()?;
        Ok(gate(&all, &found, self.fail_on_change).into())
    }
}

impl ReplayCommand {
    /// Judges what guards recorded with a policy.
    fn with_policy(&self, policy: &Path) -> Result<Exit, CommandError> {
        let policy = OpenedPolicy::open(Some(policy));
        let policy = policy.map_err(|error| CommandError::of(&error, false))?;
        let mut replayed = ReplayedTraces::default();
        for input in traces::find(&self.runs, false)? {
            let trace = traces::open(&input, &Interrupt::watch()).reader;
            let read = replayed.read(&policy, &input.name(), trace);
            read.map_err(|error| CommandError::of(&error, false))?;
        }
        let mut data = StdoutData::new();
        match self.format {
            ReplayFormat::Human => data.write(&replayed.text())?,
            ReplayFormat::Json => data.json(&replayed.value())?,
        }
        data.finish()?;
        Ok(match replayed.all_pass() {
            Some(true) => Exit::Success,
            Some(false) => Exit::Failure,
            None => Exit::Inconclusive,
        })
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
        "{}: the campaign was interrupted; {} not made: {}{more}. Continue it with `proofhouse run --resume`",
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
        talk(&format!("{name}: there are more problems like these"));
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
