//! Campaigns as clients see them.

use proofhouse_campaign::outcome::InconclusiveReason;
use proofhouse_campaign::statistics::Rate;
use proofhouse_fleet::listing::money;
use proofhouse_fleet::name::shown;
use proofhouse_fleet::trend::{ReasonCount, TrendChange, TrendPoint};
use proofhouse_store::model::{CampaignPulse, CampaignRow, LaneRow, WorkerRow};
use serde::Serialize;
use utoipa::ToSchema;

use super::moment;

/// A campaign.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignView {
    /// What it is called, such as `nightly@3`.
    pub campaign: String,
    /// Its name.
    pub name: String,
    /// Which of those with the name.
    pub number: i64,
    /// The namespace that it belongs to; empty where it belongs to the whole server.
    pub namespace: String,
    /// `planning`, `running`, `finished`, `cancelled`, `stopped` or `capped`.
    pub state: String,
    /// Why it is over, if it is not finished.
    pub remark: Option<String>,
    /// The version of Proofhouse that planned it.
    pub program: String,
    /// The digest of its plan.
    pub plan: String,
    /// How many runs it has, probes included.
    pub total: i64,
    /// When it was planned.
    pub created_at: String,
    /// When it was over.
    pub ended_at: Option<String>,
}

impl From<CampaignRow> for CampaignView {
    fn from(row: CampaignRow) -> Self {
        Self {
            campaign: shown(&row),
            number: row.number,
            state: row.state.as_str().to_owned(),
            remark: row.remark,
            program: row.program,
            plan: format!("sha256:{}", row.plan),
            total: row.total,
            created_at: moment(row.created_at),
            ended_at: row.ended_at.map(moment),
            namespace: row.namespace,
            name: row.name,
        }
    }
}

/// How far a campaign is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignPulseView {
    /// Its state.
    pub state: String,
    /// How many runs it has, probes included.
    pub total: i64,
    /// Those that are done.
    pub done: i64,
    /// Those that somebody works on.
    pub running: i64,
    /// Attacks that got through, and those that prove something.
    pub success: SuccessView,
    /// Attacks that prove nothing.
    pub inconclusive: i64,
}

impl From<CampaignPulse> for CampaignPulseView {
    fn from(pulse: CampaignPulse) -> Self {
        let number = |count: i64| u64::try_from(count).unwrap_or(0);
        let rate = Rate::new(
            number(pulse.gave_way),
            number(pulse.gave_way + pulse.resisted),
        );
        Self {
            state: pulse.state.as_str().to_owned(),
            total: pulse.total,
            done: pulse.done,
            running: pulse.running,
            success: SuccessView::of(&rate),
            inconclusive: pulse.inconclusive,
        }
    }
}

/// How often attacks got through.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SuccessView {
    /// Attacks that got through.
    pub through: u64,
    /// Attacks that prove something.
    pub of: u64,
    /// Their share, from 0 to 1; none where no attack proves anything.
    pub rate: Option<f64>,
    /// The lower end of its interval (95 %).
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl SuccessView {
    fn of(rate: &Rate) -> Self {
        Self {
            through: rate.some,
            of: rate.all,
            rate: rate.value(),
            low: rate.low,
            high: rate.high,
        }
    }
}

/// The attack success of one subject, in one category or in all.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignRateView {
    /// The subject.
    pub subject: String,
    /// The category; none where all are counted together.
    pub category: Option<String>,
    /// How often attacks got through.
    pub success: SuccessView,
    /// Attacks that prove nothing.
    pub inconclusive: u64,
}

impl CampaignRateView {
    pub(crate) fn of(point: &TrendPoint) -> Self {
        Self {
            subject: point.subject.clone(),
            category: point.category.clone(),
            success: SuccessView::of(&point.success),
            inconclusive: point.inconclusive,
        }
    }
}

/// Attacks on one subject that prove nothing for the same reason.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignReasonView {
    /// The subject.
    pub subject: String,
    /// The code of the reason, such as `no_answer`; none where this server does not know it.
    pub reason: Option<&'static str>,
    /// What happened, in one sentence.
    pub what: Option<&'static str>,
    /// What to do about it.
    pub advice: Option<&'static str>,
    /// How many attacks.
    pub runs: u64,
}

impl CampaignReasonView {
    pub(crate) fn of(count: &ReasonCount) -> Self {
        Self {
            subject: count.subject.clone(),
            reason: count.reason.map(InconclusiveReason::code),
            what: count.reason.map(InconclusiveReason::sentence),
            advice: count.reason.map(InconclusiveReason::advice),
            runs: count.runs,
        }
    }
}

/// The attack success of one subject in one campaign, in one category or in all.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TrendPointView {
    /// The campaign, such as `nightly@3`.
    pub campaign: String,
    /// When it was planned.
    pub created_at: String,
    /// Its state.
    pub state: String,
    /// The rate.
    pub rate: CampaignRateView,
    /// `rose` or `fell` where its interval and that of the campaign before do not touch.
    pub changed: Option<&'static str>,
}

impl TrendPointView {
    pub(crate) fn of(point: &TrendPoint) -> Self {
        Self {
            campaign: point.campaign.clone(),
            created_at: moment(point.created_at),
            state: point.state.as_str().to_owned(),
            rate: CampaignRateView::of(point),
            changed: point.changed.map(|changed| match changed {
                TrendChange::Rose => "rose",
                TrendChange::Fell => "fell",
            }),
        }
    }
}

/// What a model was asked, and what all workers together may ask of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignModelView {
    /// The model, or the subject whose model nobody knows.
    pub name: String,
    /// Tokens until now.
    pub tokens: i64,
    /// The most tokens.
    pub max_tokens: Option<i64>,
    /// Requests until now, where they are counted.
    pub requests: i64,
    /// The most requests in a minute.
    pub requests_per_minute: Option<i64>,
    /// The most runs at a time.
    pub max_concurrent: Option<i64>,
    /// What it cost until now, where it is capped.
    pub cost: Option<String>,
    /// The most that it may cost.
    pub max_cost: Option<String>,
    /// The currency of both.
    pub currency: Option<String>,
    /// How often its provider asked for a pause.
    pub slowed: i64,
    /// How long that pause still is, in milliseconds.
    pub pause_ms: i64,
}

impl From<LaneRow> for CampaignModelView {
    fn from(lane: LaneRow) -> Self {
        let is_capped = lane.max_cost.is_some();
        Self {
            name: lane.name,
            tokens: lane.used_tokens,
            max_tokens: lane.max_tokens,
            requests: lane.used_requests,
            requests_per_minute: lane.requests_per_minute,
            max_concurrent: lane.max_concurrent,
            cost: is_capped.then(|| money(lane.used_cost)),
            max_cost: lane.max_cost.map(money),
            currency: lane.price.map(|price| price.currency),
            slowed: lane.slowed,
            pause_ms: lane.slow_ms,
        }
    }
}

/// A worker of a campaign.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignWorkerView {
    /// Its name.
    pub name: String,
    /// Its version of Proofhouse.
    pub program: String,
    /// How many runs it makes at a time.
    pub jobs: i64,
    /// How many runs it has now.
    pub running: i64,
    /// When it was heard of last.
    pub seen_at: String,
    /// When it left.
    pub left_at: Option<String>,
    /// Why it does not work, if it cannot.
    pub remark: Option<String>,
}

impl From<WorkerRow> for CampaignWorkerView {
    fn from(worker: WorkerRow) -> Self {
        Self {
            name: worker.owner,
            program: worker.program,
            jobs: worker.jobs,
            running: worker.running,
            seen_at: moment(worker.seen_at),
            left_at: worker.left_at.map(moment),
            remark: worker.remark,
        }
    }
}

/// Everything about a campaign but its runs.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CampaignDetailView {
    /// The campaign.
    pub campaign: CampaignView,
    /// How far it is.
    pub progress: CampaignPulseView,
    /// The attack success by subject and category.
    pub rates: Vec<CampaignRateView>,
    /// Why attacks are inconclusive, by subject, the most frequent reason first.
    pub reasons: Vec<CampaignReasonView>,
    /// What its models were asked.
    pub models: Vec<CampaignModelView>,
    /// Who works on it.
    pub workers: Vec<CampaignWorkerView>,
}
