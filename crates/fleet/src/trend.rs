//! How the attack success rate of a name changes from campaign to campaign, per subject and category, with intervals.

use std::collections::BTreeMap;

use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::statistics::Rate;
use proofhouse_store::Store;
use proofhouse_store::model::{CampaignFilter, CampaignRow, CampaignState, CountRow, PlannedKind};
use serde::Serialize;

use crate::FleetError;
use crate::join::read_plan;
use crate::name::{no_campaign, shown};
use crate::plan::StoredPlan;

/// Campaigns that a trend goes back.
pub const MAX_TREND: usize = 100;

/// The rate of one subject, in one category or in all, in one campaign.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The campaign, such as `nightly@3`.
    pub campaign: String,
    /// When it was planned, in milliseconds since 1970.
    pub created_at: i64,
    /// How far it is.
    pub state: CampaignState,
    /// The subject.
    pub subject: String,
    /// The category; absent where all are counted together.
    pub category: Option<String>,
    /// Attacks that got through, of those that prove something.
    pub success: Rate,
    /// Attacks that prove nothing.
    pub inconclusive: u64,
    /// Whether its interval and that of the campaign before do not touch.
    pub changed: Option<TrendChange>,
}

/// Which way a rate went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrendChange {
    /// More gets through.
    Rose,
    /// Less gets through.
    Fell,
}

/// What attacks of one subject came to: those that got through, those that prove something, and all.
#[derive(Debug, Clone, Copy, Default)]
struct AttackSums {
    gave_way: u64,
    counted: u64,
    all: u64,
}

impl AttackSums {
    fn add(&mut self, row: &CountRow) {
        let runs = u64::try_from(row.runs).unwrap_or(0);
        self.all += runs;
        match row.outcome.as_str() {
            "exploited" | "partial" => {
                self.gave_way += runs;
                self.counted += runs;
            }
            "resisted" => self.counted += runs,
            _ => {}
        }
    }
}

/// The sums of a campaign by subject and category; without a category, all of them.
fn sums(plan: &StoredPlan, counts: &[CountRow]) -> BTreeMap<(usize, Option<String>), AttackSums> {
    let mut sums: BTreeMap<(usize, Option<String>), AttackSums> = BTreeMap::new();
    for row in counts.iter().filter(|row| row.kind == PlannedKind::Attack) {
        let subject = usize::try_from(row.subject).unwrap_or(usize::MAX);
        let document = usize::try_from(row.document).unwrap_or(usize::MAX);
        let document = plan.document_infos.get(document);
        sums.entry((subject, None)).or_default().add(row);
        if let Some(category) = document.and_then(|document| document.category.clone()) {
            sums.entry((subject, Some(category))).or_default().add(row);
        }
    }
    sums
}

/// What the runs of one campaign came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignRates {
    /// The rates, by subject and category.
    pub rates: Vec<TrendPoint>,
    /// Why attacks are inconclusive.
    pub reasons: Vec<ReasonCount>,
}

/// Attacks on one subject that prove nothing for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonCount {
    /// The subject.
    pub subject: String,
    /// The reason; `None` where this program knows none such.
    pub reason: Option<InconclusiveReason>,
    /// How many.
    pub runs: u64,
}

/// What the runs of one campaign came to until now.
///
/// # Errors
///
/// Returns an error when the store cannot be read, or holds what this program cannot.
pub async fn of_campaign(
    store: &Store,
    campaign: &CampaignRow,
    counts: &[CountRow],
    program: &str,
) -> Result<CampaignRates, FleetError> {
    let plan = read_plan(store, campaign, program).await?;
    Ok(CampaignRates {
        rates: points(campaign, &plan, counts, &[]),
        reasons: reasons(&plan, counts),
    })
}

/// Why attacks are inconclusive: subjects in the order of the plan, the most frequent reason of each first.
fn reasons(plan: &StoredPlan, counts: &[CountRow]) -> Vec<ReasonCount> {
    let mut sums: BTreeMap<(usize, Option<InconclusiveReason>), u64> = BTreeMap::new();
    let attacks = counts.iter().filter(|row| row.kind == PlannedKind::Attack);
    for row in attacks.filter(|row| row.outcome == RunOutcome::Inconclusive.word()) {
        let subject = usize::try_from(row.subject).unwrap_or(usize::MAX);
        let reason = InconclusiveReason::of_code(&row.reason);
        *sums.entry((subject, reason)).or_default() += u64::try_from(row.runs).unwrap_or(0);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|((subject, _), runs)| (*subject, std::cmp::Reverse(*runs)));
    let named = sums.into_iter().filter_map(|((subject, reason), runs)| {
        let subject = plan.subject_infos.get(subject)?.name.clone();
        Some(ReasonCount {
            subject,
            reason,
            runs,
        })
    });
    named.collect()
}

/// The rates of the campaigns of a name, oldest first, of these namespaces or of all.
///
/// # Errors
///
/// Returns an error when there is none, or the store cannot be read.
pub async fn read(
    store: &Store,
    name: &str,
    namespaces: Option<Vec<String>>,
    program: &str,
) -> Result<Vec<TrendPoint>, FleetError> {
    let filter = CampaignFilter {
        name: Some(name.to_owned()),
        namespaces,
        before: None,
        limit: MAX_TREND,
    };
    let mut campaigns = store.campaigns(filter).await?;
    if campaigns.is_empty() {
        return Err(no_campaign(name, None));
    }
    campaigns.reverse();
    let mut points: Vec<TrendPoint> = Vec::new();
    for campaign in campaigns {
        // One that another version planned in a form that is not known is left out of the line, not of the list.
        let plan = match read_plan(store, &campaign, program).await {
            Ok(plan) => plan,
            Err(FleetError::Refused { .. }) => continue,
            Err(error) => return Err(error),
        };
        let counts = store.campaign_counts(campaign.id).await?;
        let new = self::points(&campaign, &plan, &counts, &points);
        points.extend(new);
    }
    Ok(points)
}

fn points(
    campaign: &CampaignRow,
    plan: &StoredPlan,
    counts: &[CountRow],
    earlier: &[TrendPoint],
) -> Vec<TrendPoint> {
    let sums = sums(plan, counts).into_iter();
    let points = sums.filter_map(|((subject, category), sum)| {
        let info = plan.subject_infos.get(subject)?;
        Some(point(campaign, &info.name, category, sum, earlier))
    });
    points.collect()
}

fn point(
    campaign: &CampaignRow,
    subject: &str,
    category: Option<String>,
    sum: AttackSums,
    earlier: &[TrendPoint],
) -> TrendPoint {
    let success = Rate::new(sum.gave_way, sum.counted);
    let mut before = earlier.iter().rev();
    let before = before.find(|point| point.subject == subject && point.category == category);
    let changed = before.and_then(|before| {
        if success.low > before.success.high {
            Some(TrendChange::Rose)
        } else if success.high < before.success.low {
            Some(TrendChange::Fell)
        } else {
            None
        }
    });
    TrendPoint {
        campaign: shown(campaign),
        created_at: campaign.created_at,
        state: campaign.state,
        subject: subject.to_owned(),
        category,
        success,
        inconclusive: sum.all - sum.counted,
        changed,
    }
}
