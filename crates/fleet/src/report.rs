//! The result of a campaign in a store, as reports read it.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use proofhouse_campaign::baseline;
use proofhouse_campaign::comparison::{Comparison, Incomparable};
use proofhouse_campaign::probes::ProbeRecord;
use proofhouse_campaign::result::{CampaignResult, RunRecord, VERSION};
use proofhouse_store::Store;
use proofhouse_store::model::{CampaignRow, CampaignState, Millis, PlannedKind};

use crate::FleetError;
use crate::join::read_plan;
use crate::name::shown;
use crate::traces::TraceStore;

/// Rows that are read at once.
const PAGE: usize = 1_000;

/// Runs of a document and a subject that keep what they said and matched where there are too many to keep it of all.
const DETAILED: u32 = 3;

/// Runs of a campaign of which everything is read.
const ALL_DETAILED: i64 = 20_000;

/// Traces that are fetched for a report.
pub const MAX_TRACES: usize = 500;

/// The result of a campaign, and the traces of its runs by their ids.
#[derive(Debug)]
pub struct StoredResult {
    /// The result.
    pub result: CampaignResult,
    /// The digests of traces, by the id of the run.
    pub traces: HashMap<String, String>,
}

/// A time in a result.
fn shown_time(at: Millis) -> String {
    let time = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_string()
}

/// Reads what a campaign has found until now. Of large campaigns, only some runs of each document and subject keep what was said
/// and matched in them; every run is there and is counted.
///
/// # Errors
///
/// Returns an error when the store holds what cannot be read.
pub async fn read(
    store: &Store,
    campaign: &CampaignRow,
    program: &str,
) -> Result<StoredResult, FleetError> {
    let plan = read_plan(store, campaign, program).await?;
    let mut result = CampaignResult {
        version: VERSION,
        proofhouse: campaign.program.clone(),
        started_at: shown_time(campaign.created_at),
        finished_at: campaign.ended_at.map(shown_time),
        complete: campaign.state == CampaignState::Finished,
        repeats: plan.repeats,
        seed: plan.seed,
        subjects: plan.subject_infos,
        documents: plan.document_infos,
        probes: Vec::new(),
        runs: Vec::new(),
        spared: 0,
        accepted: plan.accepted,
    };
    let mut traces = HashMap::new();
    let mut detailed: HashMap<(String, String, bool), u32> = HashMap::new();
    let is_large = campaign.total > ALL_DETAILED;
    let mut after = -1;
    loop {
        let rows = store.campaign_results(campaign.id, after, PAGE).await?;
        let is_last = rows.len() < PAGE;
        for row in rows {
            after = row.place;
            let damaged = |error: serde_json::Error| FleetError::Damaged {
                what: format!("the record of run {}", row.place),
                reason: error.to_string(),
            };
            match row.kind {
                PlannedKind::Probe => {
                    let record: ProbeRecord = serde_json::from_str(&row.record).map_err(damaged)?;
                    result.probes.push(record);
                }
                PlannedKind::Control | PlannedKind::Attack => {
                    let mut record: RunRecord =
                        serde_json::from_str(&row.record).map_err(damaged)?;
                    if is_large {
                        let gave_way = record.outcome.gave_way();
                        let key = (record.document.clone(), record.subject.clone(), gave_way);
                        let known = detailed.entry(key).or_default();
                        *known += 1;
                        if *known > DETAILED {
                            forget_details(&mut record);
                        }
                    }
                    if let Some(digest) = row.trace {
                        traces.insert(record.id.clone(), digest);
                    }
                    result.runs.push(record);
                }
            }
        }
        if is_last {
            break;
        }
    }
    result.runs.shrink_to_fit();
    Ok(StoredResult { result, traces })
}

/// Compares what two campaigns have found, and says how one that is not finished can be.
#[must_use]
pub fn compare(
    (campaign, now): (&CampaignRow, &CampaignResult),
    (earlier, before): (&CampaignRow, &CampaignResult),
    threshold: f64,
) -> Comparison {
    let mut comparison = baseline::compare(now, before, &shown(earlier), threshold);
    let unfinished = match comparison.incomparable {
        Some(Incomparable::BaselineStopped) => Some(earlier),
        Some(Incomparable::CampaignStopped) => Some(campaign),
        Some(Incomparable::NothingShared) | None => None,
    };
    comparison.advice = unfinished.map(how_to_finish);
    comparison
}

/// What to do about a campaign that has not made all its runs.
fn how_to_finish(campaign: &CampaignRow) -> String {
    let (name, state) = (shown(campaign), campaign.state);
    let what = match state {
        CampaignState::Planning | CampaignState::Running => {
            return format!(
                "{name} is {state}: `proofhouse worker --store … --name {name}` finishes it"
            );
        }
        CampaignState::Finished | CampaignState::Cancelled => "run it again",
        CampaignState::Stopped => "run it again without --fail-fast",
        CampaignState::Capped => "run it again with higher caps",
    };
    format!("{name} is {state}: {what}")
}

/// Takes out what is not counted.
fn forget_details(record: &mut RunRecord) {
    record.answer = None;
    record.warnings = Vec::new();
    record.stderr = None;
    record.canaries.clear();
    for indicator in &mut record.indicators {
        indicator.evidence = Vec::new();
    }
    record
        .indicators
        .retain(|indicator| indicator.result != "not_matched");
    record.indicators.shrink_to_fit();
    for (_, condition) in record.conditions.each_mut() {
        condition.why = String::new();
    }
}

impl StoredResult {
    /// Fetches traces into a directory, those of attacks that got through first, and has the records name them. Returns those that could
    /// not be read.
    ///
    /// # Errors
    ///
    /// Returns an error when the directory cannot be written.
    pub async fn fetch_traces(
        &mut self,
        from: &TraceStore,
        directory: &Path,
    ) -> Result<Vec<String>, FleetError> {
        let folder = directory.join("traces");
        std::fs::create_dir_all(&folder).map_err(FleetError::Directory)?;
        let mut order: Vec<usize> = (0..self.result.runs.len()).collect();
        order.sort_by_key(|index| {
            let run = &self.result.runs[*index];
            (run.twin, !run.outcome.gave_way())
        });
        let mut lost = Vec::new();
        let mut left = MAX_TRACES;
        for index in order {
            let run = &mut self.result.runs[index];
            let Some(digest) = self.traces.get(&run.id) else {
                continue;
            };
            if left == 0 {
                break;
            }
            left -= 1;
            match from.get(digest).await {
                Ok(text) => {
                    let file = format!("traces/{digest}.jsonl");
                    std::fs::write(directory.join(&file), text).map_err(FleetError::Directory)?;
                    run.trace = Some(file);
                }
                Err(error) => {
                    run.trace_lost = Some(error.to_string());
                    lost.push(error.to_string());
                }
            }
        }
        Ok(lost)
    }
}
