//! Campaigns: what was planned, the runs that workers are handed, what came of them, and what all workers may spend.

use serde::{Deserialize, Serialize};

use super::Millis;

text_enum! {
    /// How far a campaign is.
    CampaignState {
        /// Its runs are being written down. Nobody works on it yet.
        Planning = "planning",
        /// Its runs are handed out.
        Running = "running",
        /// Every run is done.
        Finished = "finished",
        /// Somebody ended it.
        Cancelled = "cancelled",
        /// An attack got through, and it was to end then.
        Stopped = "stopped",
        /// What is left may not be run: a cap is reached.
        Capped = "capped",
    }
}

impl CampaignState {
    /// Whether nobody works on it any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Planning | Self::Running => false,
            Self::Finished | Self::Cancelled | Self::Stopped | Self::Capped => true,
        }
    }
}

text_enum! {
    /// What a run of a campaign is for.
    PlannedKind {
        /// Asks whether a subject reads a channel.
        Probe = "probe",
        /// The task of a document without its payload.
        Control = "control",
        /// The attack.
        Attack = "attack",
    }
}

text_enum! {
    /// What has to be done before a run can be handed out.
    RunGate {
        /// Nothing.
        Open = "open",
        /// The probes of its subject.
        Probes = "probes",
        /// The control of its document and subject.
        Control = "control",
    }
}

/// A campaign as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignRow {
    /// Its number in the store.
    pub id: i64,
    /// Its name, which several have that are made again and again.
    pub name: String,
    /// Which of those with its name, from 1.
    pub number: i64,
    /// How far it is.
    pub state: CampaignState,
    /// The version of the form in which its plan is kept.
    pub format: i64,
    /// The version of the program that planned it.
    pub program: String,
    /// The digest of its plan, which is a blob.
    pub plan: String,
    /// Where its traces go, if they are kept.
    pub traces: Option<String>,
    /// How many runs it has, probes included.
    pub total: i64,
    /// When it was planned.
    pub created_at: Millis,
    /// When it was over.
    pub ended_at: Option<Millis>,
    /// Why it is over, if it is not finished.
    pub remark: Option<String>,
    /// The namespace that it belongs to; empty where it belongs to the whole server.
    pub namespace: String,
}

/// A campaign that is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCampaign {
    /// Its name.
    pub name: String,
    /// The version of the form in which its plan is kept.
    pub format: i64,
    /// The version of the program.
    pub program: String,
    /// The digest of its plan.
    pub plan: String,
    /// Where its traces go.
    pub traces: Option<String>,
    /// The namespace that it belongs to; empty where it belongs to the whole server.
    pub namespace: String,
    /// What each model may be asked.
    pub lanes: Vec<NewLane>,
    /// Texts that its plan names, by their digests. Those that are there are not written again.
    pub blobs: Vec<CampaignBlob>,
}

/// A text that is named by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignBlob {
    /// Its digest.
    pub digest: String,
    /// The text.
    pub body: Vec<u8>,
}

/// A run that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRun {
    /// Its place in the plan, from 0. Runs are handed out in this order.
    pub place: i64,
    /// What it is for.
    pub kind: PlannedKind,
    /// Which of the documents; of a probe, which of the channels.
    pub document: i64,
    /// Which of the subjects.
    pub subject: i64,
    /// Which of the repeats, from 1.
    pub repeat: i64,
    /// Which of the lanes it counts against.
    pub lane: i64,
    /// What has to be done before.
    pub gate: RunGate,
}

/// What one model may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewLane {
    /// What the model is called.
    pub name: String,
    /// Tokens in all.
    pub max_tokens: Option<i64>,
    /// Runs at a time, of all workers.
    pub max_concurrent: Option<i64>,
    /// Requests in a minute, of all workers.
    pub requests_per_minute: Option<i64>,
    /// What it may cost in all, in billionths of the currency.
    pub max_cost: Option<i64>,
    /// What its tokens cost, if that is known.
    pub price: Option<LanePrice>,
    /// Which of the lanes is that of its provider, if that has caps of its own. It comes after those of the models.
    pub provider: Option<i64>,
}

/// What the tokens of a model cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanePrice {
    /// What a token of a question costs, in millionths of millionths of the currency.
    pub input: i64,
    /// What a token of a reply costs, the same way.
    pub output: i64,
    /// The currency.
    pub currency: String,
}

impl LanePrice {
    /// What so many tokens cost, in billionths of the currency. What is left over counts as one more.
    #[must_use]
    pub fn cost(&self, input: u64, output: u64) -> i64 {
        let part = |tokens: u64, price: i64| {
            u128::from(tokens).saturating_mul(u128::from(price.max(0).unsigned_abs()))
        };
        let all = part(input, self.input).saturating_add(part(output, self.output));
        i64::try_from(all.div_ceil(1_000)).unwrap_or(i64::MAX)
    }
}

/// How much a model was asked, and whether it may be asked now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRow {
    /// Its number in the campaign.
    pub lane: i64,
    /// What the model is called.
    pub name: String,
    /// Tokens in all.
    pub max_tokens: Option<i64>,
    /// Runs at a time, of all workers.
    pub max_concurrent: Option<i64>,
    /// Requests in a minute, of all workers.
    pub requests_per_minute: Option<i64>,
    /// What it may cost in all, in billionths of the currency.
    pub max_cost: Option<i64>,
    /// What its tokens cost, if that is known.
    pub price: Option<LanePrice>,
    /// The number of the lane of its provider, whose caps hold as well.
    pub provider: Option<i64>,
    /// Tokens until now.
    pub used_tokens: i64,
    /// What it cost until now, where that is counted, in billionths of the currency.
    pub used_cost: i64,
    /// Requests until now, where they are counted.
    pub used_requests: i64,
    /// How often its provider asked for a pause.
    pub slowed: i64,
    /// How long that pause still is.
    pub slow_ms: Millis,
}

impl LaneRow {
    /// Whether its tokens or its money are spent.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.max_tokens.is_some_and(|most| self.used_tokens >= most)
            || self.max_cost.is_some_and(|most| self.used_cost >= most)
    }
}

/// A run that a worker was handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedRun {
    /// Its place in the plan.
    pub place: i64,
    /// What it is for.
    pub kind: PlannedKind,
    /// Which of the documents; of a probe, which of the channels.
    pub document: i64,
    /// Which of the subjects.
    pub subject: i64,
    /// Which of the repeats, from 1.
    pub repeat: i64,
    /// Proves that this worker was handed it, and is needed to finish it.
    pub fence: i64,
    /// How many workers were lost that had it.
    pub losses: i64,
    /// How often it came to nothing and was put back.
    pub retries: i64,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRun {
    /// Its place.
    pub place: i64,
    /// The fence with which it was handed out.
    pub fence: i64,
    /// How it is counted.
    pub outcome: String,
    /// Why it proves nothing, or empty.
    pub reason: String,
    /// What the subject's model used.
    pub tokens: i64,
    /// How long it took.
    pub milliseconds: i64,
    /// The whole record, as JSON.
    pub record: String,
    /// The digest of its trace.
    pub trace: Option<String>,
    /// Whether the campaign ends with it.
    pub stops: bool,
}

/// What became of a finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCounted {
    /// It counts.
    Now,
    /// It counted already: this is the same message again.
    Before,
    /// Somebody else was handed it since, so it does not count.
    Fenced,
}

/// A result as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// The place of the run.
    pub place: i64,
    /// What it was for.
    pub kind: PlannedKind,
    /// The whole record, as JSON.
    pub record: String,
    /// The digest of its trace.
    pub trace: Option<String>,
}

/// How many runs came to the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountRow {
    /// Which of the subjects.
    pub subject: i64,
    /// Which of the documents; of probes, which of the channels.
    pub document: i64,
    /// What they were for.
    pub kind: PlannedKind,
    /// What they came to.
    pub outcome: String,
    /// Why they prove nothing, or empty.
    pub reason: String,
    /// How many.
    pub runs: i64,
    /// What the models used.
    pub tokens: i64,
    /// How long they took together.
    pub milliseconds: i64,
}

/// A worker of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Its name.
    pub owner: String,
    /// The version of its program.
    pub program: String,
    /// How many runs it makes at a time.
    pub jobs: i64,
    /// When it was heard of last.
    pub seen_at: Millis,
    /// When it left.
    pub left_at: Option<Millis>,
    /// Why it does not work, if it cannot.
    pub remark: Option<String>,
    /// How many runs it has now.
    pub running: i64,
}

/// How many runs of a campaign are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsByState {
    /// Those that nobody was handed.
    pub waiting: i64,
    /// Those that somebody works on.
    pub running: i64,
    /// Those that are done.
    pub done: i64,
    /// When the next one that was put back may be handed out, in milliseconds from now.
    pub due_in_ms: Option<Millis>,
}

/// How far a campaign is, in a few numbers that are quick to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignPulse {
    /// How far it is.
    pub state: CampaignState,
    /// How many runs it has, probes included.
    pub total: i64,
    /// Those that are done.
    pub done: i64,
    /// Those that somebody works on.
    pub running: i64,
    /// Attacks that got through, in part at least.
    pub gave_way: i64,
    /// Attacks that were resisted.
    pub resisted: i64,
    /// Attacks that prove nothing.
    pub inconclusive: i64,
}

/// Which campaigns to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CampaignFilter {
    /// Only those of this name.
    pub name: Option<String>,
    /// Only those of these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Only those with a smaller number in the store.
    pub before: Option<i64>,
    /// How many at most.
    pub limit: usize,
}

/// Who asks for runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunClaim {
    /// The campaign.
    pub campaign: i64,
    /// The worker.
    pub owner: String,
    /// How long it may be silent.
    pub lease_ms: Millis,
    /// How many runs it takes at most.
    pub limit: usize,
    /// Whether it has no runs under way. Only then, and only when there is nothing else, is it handed a run that several workers were
    /// lost with, and that run alone: one that ends its worker takes no others with it.
    pub is_idle: bool,
    /// Whether it has a run under way that a worker was lost with. It is handed no second one.
    pub has_lost: bool,
}

/// Whether a model may be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPermit {
    /// It may.
    Granted,
    /// Ask again after so many milliseconds.
    Wait(Millis),
}

/// What was removed in one step, because it is too old to be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedCampaigns {
    /// Campaigns of which nothing is left, by name and number.
    pub campaigns: Vec<(String, i64)>,
    /// How many results were removed.
    pub results: u64,
    /// How many blobs nobody needed any more.
    pub blobs: u64,
    /// Traces that no campaign names any more, with the place where each is.
    pub traces: Vec<(String, String)>,
    /// Whether there may be more to remove.
    pub is_more: bool,
}
