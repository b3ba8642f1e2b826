//! Campaigns of a store, for people and for programs.

use jiff::Timestamp;
use proofhouse_campaign::statistics::Rate;
use proofhouse_source::printable_line;
use proofhouse_store::Store;
use proofhouse_store::model::{
    CampaignRow, CountRow, LaneRow, Millis, PlannedKind, RunsByState, WorkerRow,
};
use serde_json::{Value, json};

use crate::FleetError;
use crate::name::shown;
use crate::trend::{TrendChange, TrendPoint};

/// Everything about one campaign but its results.
#[derive(Debug)]
pub struct CampaignOverview {
    /// The campaign.
    pub campaign: CampaignRow,
    /// Where its runs are.
    pub runs: RunsByState,
    /// What they came to.
    pub counts: Vec<CountRow>,
    /// What its models were asked.
    pub lanes: Vec<LaneRow>,
    /// Who works on it.
    pub workers: Vec<WorkerRow>,
}

impl CampaignOverview {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// Returns an error when the store says no.
    pub async fn read(store: &Store, campaign: CampaignRow) -> Result<Self, FleetError> {
        let id = campaign.id;
        Ok(Self {
            campaign,
            runs: store.campaign_progress(id).await?,
            counts: store.campaign_counts(id).await?,
            lanes: store.campaign_lanes(id).await?,
            workers: store.campaign_workers(id).await?,
        })
    }

    fn attacks(&self, outcomes: &[&str]) -> u64 {
        let counts = self.counts.iter();
        let counts = counts.filter(|row| row.kind == PlannedKind::Attack);
        let wanted = counts.filter(|row| outcomes.contains(&row.outcome.as_str()));
        wanted.map(|row| u64::try_from(row.runs).unwrap_or(0)).sum()
    }

    /// Attacks that got through, of those that prove something.
    #[must_use]
    pub fn success(&self) -> Rate {
        let through = self.attacks(&["exploited", "partial"]);
        Rate::new(through, through + self.attacks(&["resisted"]))
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut value = campaign_json(&self.campaign);
        if let Value::Object(fields) = &mut value {
            fields.insert("runs".to_owned(), json!(self.runs));
            fields.insert("success".to_owned(), json!(self.success()));
            let inconclusive = self.attacks(&["inconclusive"]);
            fields.insert("inconclusive".to_owned(), json!(inconclusive));
            fields.insert("counts".to_owned(), json!(self.counts));
            fields.insert("models".to_owned(), json!(self.lanes));
            fields.insert("workers".to_owned(), json!(self.workers));
        }
        value
    }

    /// For people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let campaign = &self.campaign;
        let mut lines = vec![
            format!("campaign   {}", shown(campaign)),
            format!(
                "state      {}{}",
                campaign.state,
                campaign
                    .remark
                    .as_deref()
                    .map(|remark| format!(": {}", printable_line(remark)))
                    .unwrap_or_default()
            ),
            format!("planned    {}", time(campaign.created_at)),
            format!(
                "runs       {} of {} done, {} running, {} waiting",
                self.runs.done, campaign.total, self.runs.running, self.runs.waiting
            ),
            format!(
                "attacks    {} got through, {} resisted, {} inconclusive; success rate {}",
                self.attacks(&["exploited", "partial"]),
                self.attacks(&["resisted"]),
                self.attacks(&["inconclusive"]),
                rate(&self.success())
            ),
            format!("plan       sha256:{}", campaign.plan),
        ];
        if let Some(traces) = &campaign.traces {
            lines.push(format!("traces     {}", printable_line(traces)));
        }
        for lane in &self.lanes {
            let is_provider = self.lanes.iter().any(|of| of.provider == Some(lane.lane));
            let what = if is_provider { "provider" } else { "model" };
            lines.push(format!("{what:<11}{}", lane_line(lane)));
        }
        for worker in &self.workers {
            lines.push(format!("worker     {}", worker_line(worker)));
        }
        lines
    }
}

fn lane_line(lane: &LaneRow) -> String {
    let most = |most: Option<i64>, what: &str| {
        most.map(|most| format!(", at most {most} {what}"))
            .unwrap_or_default()
    };
    let mut line = format!(
        "{}: {} tokens",
        printable_line(&lane.name),
        lane.used_tokens
    );
    line.push_str(&most(lane.max_tokens, "tokens"));
    line.push_str(&most(lane.max_concurrent, "runs at a time"));
    line.push_str(&most(lane.requests_per_minute, "requests per minute"));
    if let Some(price) = lane.price.as_ref().filter(|_| lane.max_cost.is_some()) {
        let most = lane.max_cost.unwrap_or(0);
        let (used, most) = (money(lane.used_cost), money(most));
        line.push_str(&format!(", cost {used} of {most} {}", price.currency));
    }
    if lane.is_spent() {
        line.push_str("; the cap is reached");
    }
    if lane.slowed > 0 {
        line.push_str(&format!(
            "; slowed down {} times by its provider",
            lane.slowed
        ));
    }
    line
}

/// An amount in billionths, for people.
#[must_use]
pub fn money(billionths: i64) -> String {
    let (whole, rest) = (billionths / 1_000_000_000, billionths % 1_000_000_000);
    // Four digits, rounded up, so that something spent is not nothing.
    let rest = (rest + 99_999) / 100_000;
    if rest == 10_000 {
        format!("{}.0000", whole + 1)
    } else {
        format!("{whole}.{rest:04}")
    }
}

fn worker_line(worker: &WorkerRow) -> String {
    let owner = printable_line(&worker.owner);
    let state = match (&worker.remark, worker.left_at) {
        (Some(remark), _) => printable_line(remark),
        (None, Some(_)) => "left".to_owned(),
        (None, None) => format!("{} of {} jobs busy", worker.running, worker.jobs),
    };
    format!(
        "{owner} (Proofhouse {}): {state}",
        printable_line(&worker.program)
    )
}

/// A time for people.
fn time(at: Millis) -> String {
    let time = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A rate for people, with its interval.
#[must_use]
pub fn rate(rate: &Rate) -> String {
    match rate.value() {
        Some(value) => format!(
            "{:.1} % ({:.1} to {:.1} %, {} of {})",
            value * 100.0,
            rate.low * 100.0,
            rate.high * 100.0,
            rate.some,
            rate.all
        ),
        None => "unknown (no attack proves anything yet)".to_owned(),
    }
}

/// A campaign for programs.
#[must_use]
pub fn campaign_json(campaign: &CampaignRow) -> Value {
    json!({
        "campaign": shown(campaign),
        "name": campaign.name,
        "number": campaign.number,
        "state": campaign.state,
        "program": campaign.program,
        "plan": format!("sha256:{}", campaign.plan),
        "namespace": campaign.namespace,
        "traces": campaign.traces,
        "total": campaign.total,
        "created_at": time(campaign.created_at),
        "ended_at": campaign.ended_at.map(time),
        "remark": campaign.remark,
    })
}

/// A list of campaigns for people: a line for each.
#[must_use]
pub fn campaign_lines(campaigns: &[CampaignRow]) -> Vec<String> {
    let widest = campaigns.iter().map(|one| shown(one).len()).max();
    let width = widest.unwrap_or(0);
    let line = |campaign: &CampaignRow| {
        let name = shown(campaign);
        let (state, total) = (campaign.state, campaign.total);
        let planned = time(campaign.created_at);
        format!(
            "{name:width$}  {:9}  {total:>8} runs  {planned}",
            state.as_str()
        )
    };
    campaigns.iter().map(line).collect()
}

/// A trend for people: a line for each campaign, below a line for each subject and category.
#[must_use]
pub fn trend_lines(points: &[TrendPoint]) -> Vec<String> {
    let mut groups: Vec<(&str, Option<&str>)> = Vec::new();
    for point in points {
        let group = (point.subject.as_str(), point.category.as_deref());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups.sort_unstable();
    let mut lines = Vec::new();
    for (subject, category) in groups {
        let category = category.unwrap_or("all categories");
        lines.push(printable_line(&format!("{subject}, {category}")));
        let of_group = points.iter().filter(|point| {
            let own = point.category.as_deref().unwrap_or("all categories");
            point.subject == subject && own == category
        });
        for point in of_group {
            let changed = match point.changed {
                Some(TrendChange::Rose) => "  rose",
                Some(TrendChange::Fell) => "  fell",
                None => "",
            };
            lines.push(format!(
                "  {}  {}  {}, {} inconclusive{changed}",
                point.campaign,
                time(point.created_at),
                rate(&point.success),
                point.inconclusive
            ));
        }
    }
    lines
}
