//! Statements about campaigns: their plans, their states, what is counted, and what is too old.

use std::collections::BTreeSet;

use super::page;
use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, list_or_null, name, params, short, truncated};
use crate::error::{Result, StoreError};
use crate::model::{
    CampaignBlob, CampaignFilter, CampaignPulse, CampaignRow, CampaignState, CountRow, Millis,
    NewCampaign, NewRun, PlannedKind, PrunedCampaigns, ResultRow, RunsByState, WorkerRow,
};

macro_rules! columns {
    () => {
        "id, name, number, state, format, program, plan, traces, total, created_at, ended_at, remark, namespace"
    };
}

fn read(mut row: SqlRow) -> Result<CampaignRow> {
    Ok(CampaignRow {
        id: row.int()?,
        name: row.text()?,
        number: row.int()?,
        state: row.word(CampaignState::from_word)?,
        format: row.int()?,
        program: row.text()?,
        plan: row.text()?,
        traces: row.text_or_null()?,
        total: row.int()?,
        created_at: row.int()?,
        ended_at: row.int_or_null()?,
        remark: row.text_or_null()?,
        namespace: row.text()?,
    })
}

/// What a campaign that is not over has otherwise than one that is to be planned.
async fn difference(
    tx: Tx<'_>,
    newest: &CampaignRow,
    new: &NewCampaign,
) -> Result<Option<&'static str>> {
    if newest.plan != new.plan {
        return Ok(Some("another plan"));
    }
    if newest.traces != new.traces {
        return Ok(Some("another place for its traces"));
    }
    let lanes = super::campaign_work::lanes(tx, newest.id).await?;
    let is_same = lanes.len() == new.lanes.len()
        && lanes.iter().zip(&new.lanes).all(|(lane, new)| {
            lane.name == new.name
                && lane.max_tokens == new.max_tokens
                && lane.max_concurrent == new.max_concurrent
                && lane.requests_per_minute == new.requests_per_minute
                && lane.max_cost == new.max_cost
                && lane.provider == new.provider
        });
    Ok((!is_same).then_some("other caps"))
}

/// Writes down a campaign without its runs. The newest of its name goes on if it is not over and has the same plan, caps and place
/// for traces.
pub(crate) async fn plan(tx: Tx<'_>, new: &NewCampaign) -> Result<CampaignRow> {
    let name = name("the name of the campaign", &new.name)?;
    short("the namespace", &new.namespace)?;
    if let Some(newest) = newest(tx, name).await? {
        if newest.namespace != new.namespace {
            return Err(StoreError::Conflict(format!(
                "the name {name} belongs to another namespace"
            )));
        }
        if !newest.state.is_over() {
            let Some(differs) = difference(tx, &newest, new).await? else {
                return Ok(newest);
            };
            return Err(StoreError::Conflict(format!(
                "campaign {name}@{} is not over, and has {differs}; let it end, or end it with `proofhouse campaigns cancel {name}`",
                newest.number
            )));
        }
    }
    let inserted = tx
        .query(
            concat!(
                "INSERT INTO campaigns (name, number, state, format, program, plan, traces, total, created_at, namespace) \
                 SELECT CAST($1 AS TEXT), COALESCE(MAX(number), 0) + 1, 'planning', CAST($2 AS BIGINT), \
                 CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), 0, {now}, CAST($6 AS TEXT) \
                 FROM campaigns WHERE name = $1 RETURNING ",
                columns!()
            ),
            &params![
                name,
                new.format,
                &new.program,
                &new.plan,
                new.traces.as_deref(),
                &new.namespace
            ],
        )
        .await?;
    let campaign = first(inserted)
        .map(read)
        .transpose()?
        .ok_or_else(|| StoreError::Corrupt("a campaign was not inserted".to_owned()))?;
    let lanes: Vec<Vec<SqlValue<'_>>> = new
        .lanes
        .iter()
        .enumerate()
        .map(|(number, lane)| {
            vec![
                campaign.id.into(),
                number.into(),
                (&lane.name).into(),
                lane.max_tokens.into(),
                lane.max_concurrent.into(),
                lane.requests_per_minute.into(),
                lane.max_cost.into(),
                lane.price.as_ref().map(|price| price.input).into(),
                lane.price.as_ref().map(|price| price.output).into(),
                lane.price
                    .as_ref()
                    .map(|price| price.currency.as_str())
                    .into(),
                lane.provider.into(),
            ]
        })
        .collect();
    tx.query_each(
        "INSERT INTO campaign_lanes (campaign_id, lane, name, max_tokens, max_concurrent, requests_per_minute, max_cost, \
         input_price, output_price, currency, provider, used_tokens, used_requests, next_request_at, slow_until, slowed) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0, 0, 0, 0)",
        &lanes,
    )
    .await?;
    let mut blobs: Vec<&CampaignBlob> = new.blobs.iter().collect();
    // Two that plan at the same time write them in the same order.
    blobs.sort_by(|one, other| one.digest.cmp(&other.digest));
    blobs.dedup_by(|one, other| one.digest == other.digest);
    let rows: Vec<Vec<SqlValue<'_>>> = blobs
        .iter()
        .map(|blob| vec![(&blob.digest).into(), SqlValue::Bytes((&blob.body).into())])
        .collect();
    tx.query_each(
        "INSERT INTO campaign_blobs (digest, body, created_at) VALUES ($1, $2, {now}) ON CONFLICT (digest) DO NOTHING",
        &rows,
    )
    .await?;
    let uses: Vec<Vec<SqlValue<'_>>> = blobs
        .iter()
        .map(|blob| vec![campaign.id.into(), (&blob.digest).into()])
        .collect();
    tx.query_each(
        "INSERT INTO campaign_blob_uses (campaign_id, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        &uses,
    )
    .await?;
    Ok(campaign)
}

/// Writes down a campaign with the plan of an earlier one, under its name, and hands out its runs at once.
pub(crate) async fn repeat(tx: Tx<'_>, source: i64) -> Result<CampaignRow> {
    let before = get(tx, source).await?;
    let newest = newest(tx, &before.name).await?;
    if let Some(open) = newest.filter(|newest| !newest.state.is_over()) {
        return Err(StoreError::Conflict(format!(
            "campaign {}@{} is not over",
            open.name, open.number
        )));
    }
    // One that was cancelled while it was planned has fewer runs than its plan.
    if before.total == 0 {
        return Err(StoreError::Conflict(format!(
            "campaign {}@{} was never planned to the end",
            before.name, before.number
        )));
    }
    let inserted = tx
        .query(
            concat!(
                "INSERT INTO campaigns (name, number, state, format, program, plan, traces, total, created_at, namespace) \
                 SELECT b.name, (SELECT MAX(n.number) + 1 FROM campaigns n WHERE n.name = b.name), 'running', b.format, \
                 b.program, b.plan, b.traces, b.total, {now}, b.namespace FROM campaigns b WHERE b.id = $1 RETURNING ",
                columns!()
            ),
            &params![source],
        )
        .await?;
    let campaign = first(inserted)
        .map(read)
        .transpose()?
        .ok_or_else(|| StoreError::Corrupt("a campaign was not inserted".to_owned()))?;
    for statement in [
        "INSERT INTO campaign_lanes (campaign_id, lane, name, max_tokens, max_concurrent, requests_per_minute, max_cost, \
         input_price, output_price, currency, provider, used_tokens, used_requests, next_request_at, slow_until, slowed) \
         SELECT CAST($1 AS BIGINT), lane, name, max_tokens, max_concurrent, requests_per_minute, max_cost, input_price, \
         output_price, currency, provider, 0, 0, 0, 0, 0 FROM campaign_lanes WHERE campaign_id = $2",
        "INSERT INTO campaign_blob_uses (campaign_id, digest) SELECT CAST($1 AS BIGINT), digest FROM campaign_blob_uses \
         WHERE campaign_id = $2",
        // Gates are closed again as the plan had them.
        "INSERT INTO campaign_runs (campaign_id, place, kind, document, subject, repeat, lane, gate, state, due_at, \
         until, started_at, fence, second_fence, losses, retries) \
         SELECT CAST($1 AS BIGINT), r.place, r.kind, r.document, r.subject, r.repeat, r.lane, CASE \
         WHEN r.kind = 'probe' THEN 'open' \
         WHEN r.kind = 'attack' AND EXISTS (SELECT 1 FROM campaign_runs c WHERE c.campaign_id = r.campaign_id \
         AND c.kind <> 'attack' AND c.kind = 'control' AND c.subject = r.subject AND c.document = r.document) THEN 'control' \
         WHEN EXISTS (SELECT 1 FROM campaign_runs p WHERE p.campaign_id = r.campaign_id AND p.kind <> 'attack' \
         AND p.kind = 'probe' AND p.subject = r.subject) THEN 'probes' ELSE 'open' END, \
         'waiting', 0, 0, 0, 0, 0, 0, 0 FROM campaign_runs r WHERE r.campaign_id = $2",
    ] {
        tx.execute(statement, &params![campaign.id, source]).await?;
    }
    Ok(campaign)
}

/// Writes down runs. Those that are there stay as they are.
pub(crate) async fn add_runs(tx: Tx<'_>, campaign: i64, runs: &[NewRun]) -> Result<()> {
    let rows: Vec<Vec<SqlValue<'_>>> = runs
        .iter()
        .map(|run| {
            vec![
                campaign.into(),
                run.place.into(),
                run.kind.as_str().into(),
                run.document.into(),
                run.subject.into(),
                run.repeat.into(),
                run.lane.into(),
                run.gate.as_str().into(),
            ]
        })
        .collect();
    tx.query_each(
        "INSERT INTO campaign_runs (campaign_id, place, kind, document, subject, repeat, lane, gate, state, due_at, \
         until, started_at, fence, second_fence, losses, retries) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', 0, 0, 0, 0, 0, 0, 0) ON CONFLICT (campaign_id, place) DO NOTHING",
        &rows,
    )
    .await?;
    Ok(())
}

/// Hands out the runs from now on.
pub(crate) async fn begin(tx: Tx<'_>, campaign: i64, total: i64) -> Result<()> {
    tx.execute(
        "UPDATE campaigns SET state = 'running', total = $2 WHERE id = $1 AND state = 'planning'",
        &params![campaign, total],
    )
    .await?;
    Ok(())
}

pub(crate) async fn newest(tx: Tx<'_>, name: &str) -> Result<Option<CampaignRow>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM campaigns WHERE name = $1 ORDER BY number DESC LIMIT 1"
            ),
            &params![name],
        )
        .await?;
    first(rows).map(read).transpose()
}

pub(crate) async fn by_number(tx: Tx<'_>, name: &str, number: i64) -> Result<Option<CampaignRow>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM campaigns WHERE name = $1 AND number = $2"
            ),
            &params![name, number],
        )
        .await?;
    first(rows).map(read).transpose()
}

pub(crate) async fn get(tx: Tx<'_>, id: i64) -> Result<CampaignRow> {
    let rows = tx
        .query(
            concat!("SELECT ", columns!(), " FROM campaigns WHERE id = $1"),
            &params![id],
        )
        .await?;
    first(rows).map_or_else(|| Err(StoreError::NotFound(format!("campaign {id}"))), read)
}

/// Campaigns, newest first.
pub(crate) async fn list(tx: Tx<'_>, filter: &CampaignFilter) -> Result<Vec<CampaignRow>> {
    let namespaces = filter.namespaces.as_ref();
    let namespaces = namespaces.map(|list| serde_json::json!(list).to_string());
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM campaigns WHERE (CAST($1 AS TEXT) IS NULL OR name = $1) \
                 AND (CAST($2 AS BIGINT) IS NULL OR id < $2) \
                 AND (CAST($3 AS TEXT) IS NULL OR {among namespace 3}) ORDER BY id DESC LIMIT $4"
            ),
            &params![
                filter.name.as_deref(),
                filter.before,
                namespaces.as_deref(),
                page(filter.limit)
            ],
        )
        .await?;
    rows.into_iter().map(read).collect()
}

/// How far a campaign is, without looking at the runs that wait.
pub(crate) async fn pulse(tx: Tx<'_>, campaign: i64) -> Result<CampaignPulse> {
    let rows = tx
        .query(
            "SELECT c.state, c.total, (SELECT COUNT(*) FROM campaign_runs r WHERE r.campaign_id = c.id \
             AND r.state = 'running') FROM campaigns c WHERE c.id = $1",
            &params![campaign],
        )
        .await?;
    let Some(mut row) = first(rows) else {
        return Err(StoreError::NotFound(format!("campaign {campaign}")));
    };
    let mut pulse = CampaignPulse {
        state: row.word(CampaignState::from_word)?,
        total: row.int()?,
        done: 0,
        running: row.int()?,
        gave_way: 0,
        resisted: 0,
        inconclusive: 0,
    };
    let sums = tx
        .query(
            "SELECT kind, outcome, CAST(SUM(runs) AS BIGINT) FROM campaign_counts WHERE campaign_id = $1 \
             GROUP BY kind, outcome",
            &params![campaign],
        )
        .await?;
    for mut row in sums {
        let kind = row.word(PlannedKind::from_word)?;
        let (outcome, runs) = (row.text()?, row.int()?);
        pulse.done += runs;
        if kind == PlannedKind::Attack {
            match outcome.as_str() {
                "exploited" | "partial" => pulse.gave_way += runs,
                "resisted" => pulse.resisted += runs,
                _ => pulse.inconclusive += runs,
            }
        }
    }
    Ok(pulse)
}

/// Ends a campaign. `false` when it was over already.
pub(crate) async fn end(
    tx: Tx<'_>,
    campaign: i64,
    state: CampaignState,
    remark: Option<&str>,
) -> Result<bool> {
    let changed = tx
        .execute(
            "UPDATE campaigns SET state = $2, remark = $3, ended_at = {now} \
             WHERE id = $1 AND state IN ('planning', 'running')",
            &[
                campaign.into(),
                state.as_str().into(),
                remark.map_or(SqlValue::Null, truncated),
            ],
        )
        .await?;
    Ok(changed > 0)
}

pub(crate) async fn blob(tx: Tx<'_>, digest: &str) -> Result<Vec<u8>> {
    let rows = tx
        .query(
            "SELECT body FROM campaign_blobs WHERE digest = $1",
            &params![digest],
        )
        .await?;
    match first(rows) {
        Some(mut row) => row.bytes(),
        None => Err(StoreError::NotFound(format!("text {digest}"))),
    }
}

/// Those of these texts that are there.
pub(crate) async fn blobs(tx: Tx<'_>, digests: &[String]) -> Result<Vec<CampaignBlob>> {
    let list = list_or_null(Some(digests));
    let rows = tx
        .query(
            "SELECT digest, body FROM campaign_blobs WHERE {among digest 1}",
            &params![list.as_deref()],
        )
        .await?;
    let read = |mut row: SqlRow| {
        Ok(CampaignBlob {
            digest: row.text()?,
            body: row.bytes()?,
        })
    };
    rows.into_iter().map(read).collect()
}

pub(crate) async fn by_state(tx: Tx<'_>, campaign: i64) -> Result<RunsByState> {
    let rows = tx
        .query(
            "SELECT state, COUNT(*) FROM campaign_runs WHERE campaign_id = $1 GROUP BY state",
            &params![campaign],
        )
        .await?;
    let mut counted = RunsByState::default();
    for mut row in rows {
        let (state, count) = (row.text()?, row.int()?);
        match state.as_str() {
            "waiting" => counted.waiting = count,
            "running" => counted.running = count,
            "done" => counted.done = count,
            _ => return Err(StoreError::Corrupt(format!("unknown word `{state}`"))),
        }
    }
    let due = tx
        .query(
            "SELECT MIN(due_at) - {now} FROM campaign_runs WHERE campaign_id = $1 AND state = 'waiting' \
             AND gate = 'open' AND due_at > {now}",
            &params![campaign],
        )
        .await?;
    counted.due_in_ms = first(due)
        .map(|mut row| row.int_or_null())
        .transpose()?
        .flatten();
    Ok(counted)
}

pub(crate) async fn counts(tx: Tx<'_>, campaign: i64) -> Result<Vec<CountRow>> {
    let rows = tx
        .query(
            "SELECT subject, document, kind, outcome, reason, runs, tokens, milliseconds FROM campaign_counts \
             WHERE campaign_id = $1 ORDER BY subject, document, kind, outcome, reason",
            &params![campaign],
        )
        .await?;
    let read = |mut row: SqlRow| {
        Ok(CountRow {
            subject: row.int()?,
            document: row.int()?,
            kind: row.word(PlannedKind::from_word)?,
            outcome: row.text()?,
            reason: row.text()?,
            runs: row.int()?,
            tokens: row.int()?,
            milliseconds: row.int()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Results in the order of their places, from the one after this on.
pub(crate) async fn results(
    tx: Tx<'_>,
    campaign: i64,
    after: i64,
    limit: usize,
) -> Result<Vec<ResultRow>> {
    let rows = tx
        .query(
            "SELECT s.place, r.kind, s.record, s.trace FROM campaign_results s \
             JOIN campaign_runs r ON r.campaign_id = s.campaign_id AND r.place = s.place \
             WHERE s.campaign_id = $1 AND s.place > $2 ORDER BY s.place LIMIT $3",
            &params![campaign, after, page(limit)],
        )
        .await?;
    rows.into_iter().map(result).collect()
}

pub(super) fn result(mut row: SqlRow) -> Result<ResultRow> {
    Ok(ResultRow {
        place: row.int()?,
        kind: row.word(PlannedKind::from_word)?,
        record: row.text()?,
        trace: row.text_or_null()?,
    })
}

/// The results of the probes, or of the control of a document and a subject.
pub(crate) async fn before(
    tx: Tx<'_>,
    campaign: i64,
    pair: Option<(i64, i64)>,
) -> Result<Vec<ResultRow>> {
    let (kind, document, subject) = match pair {
        Some((document, subject)) => (PlannedKind::Control, Some(document), Some(subject)),
        None => (PlannedKind::Probe, None, None),
    };
    let rows = tx
        .query(
            "SELECT s.place, r.kind, s.record, s.trace FROM campaign_runs r \
             JOIN campaign_results s ON s.campaign_id = r.campaign_id AND s.place = r.place \
             WHERE r.campaign_id = $1 AND r.kind <> 'attack' AND r.kind = $2 \
             AND (CAST($3 AS BIGINT) IS NULL OR r.document = $3) \
             AND (CAST($4 AS BIGINT) IS NULL OR r.subject = $4) ORDER BY s.place",
            &params![campaign, kind.as_str(), document, subject],
        )
        .await?;
    rows.into_iter().map(result).collect()
}

/// Notes that a worker is there, or why it does not work.
pub(crate) async fn note_worker(tx: Tx<'_>, campaign: i64, worker: &WorkerRow) -> Result<()> {
    tx.execute(
        "INSERT INTO campaign_workers (campaign_id, owner, program, jobs, joined_at, seen_at, left_at, remark) \
         VALUES ($1, $2, $3, $4, {now}, {now}, CASE WHEN CAST($5 AS BIGINT) = 1 THEN {now} END, $6) \
         ON CONFLICT (campaign_id, owner) DO UPDATE SET seen_at = excluded.seen_at, left_at = excluded.left_at, \
         remark = excluded.remark",
        &[
            campaign.into(),
            name("the worker", &worker.owner)?.into(),
            (&worker.program).into(),
            worker.jobs.into(),
            worker.left_at.is_some().into(),
            worker.remark.as_deref().map_or(SqlValue::Null, truncated),
        ],
    )
    .await?;
    Ok(())
}

pub(crate) async fn workers(tx: Tx<'_>, campaign: i64) -> Result<Vec<WorkerRow>> {
    let rows = tx
        .query(
            "SELECT w.owner, w.program, w.jobs, w.seen_at, w.left_at, w.remark, (SELECT COUNT(*) FROM campaign_runs r \
             WHERE r.campaign_id = w.campaign_id AND r.state = 'running' AND r.owner = w.owner) \
             FROM campaign_workers w WHERE w.campaign_id = $1 ORDER BY w.joined_at, w.owner LIMIT 1000",
            &params![campaign],
        )
        .await?;
    let read = |mut row: SqlRow| {
        Ok(WorkerRow {
            owner: row.text()?,
            program: row.text()?,
            jobs: row.int()?,
            seen_at: row.int()?,
            left_at: row.int_or_null()?,
            remark: row.text_or_null()?,
            running: row.int()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// What is shown of a campaign whose rows are being removed.
const REMOVING: &str = "it is being removed: it is older than campaigns are kept";

/// Removes a part of the oldest campaign that was over before this time: as many results or runs as this, and itself when nothing of
/// it is left. However many runs it had, nobody waits long for the locks.
pub(crate) async fn prune(tx: Tx<'_>, older_ms: Millis, limit: usize) -> Result<PrunedCampaigns> {
    let older = older_ms.max(0);
    let mut pruned = PrunedCampaigns::default();
    let rows = tx
        .query(
            "SELECT id, traces FROM campaigns WHERE ended_at <= {now} - $1 ORDER BY id LIMIT 1 {skip_locked}",
            &params![older],
        )
        .await?;
    let Some(mut row) = first(rows) else {
        pruned.blobs = prune_blobs(tx, older).await?;
        return Ok(pruned);
    };
    let (id, place) = (row.int()?, row.text_or_null()?);
    let limit = page(limit);
    let removed = tx
        .query(
            "DELETE FROM campaign_results WHERE campaign_id = $1 AND place {in_list}SELECT place FROM campaign_results \
             WHERE campaign_id = $1 ORDER BY place LIMIT $2{list_end} RETURNING trace",
            &params![id, limit],
        )
        .await?;
    pruned.is_more = true;
    if !removed.is_empty() {
        pruned.results = removed.len() as u64;
        if let Some(place) = place {
            let mut traces = BTreeSet::new();
            for mut row in removed {
                traces.extend(row.text_or_null()?);
            }
            pruned.traces = unnamed(tx, traces.into_iter().map(|one| (place.clone(), one))).await?;
        }
        tx.execute(
            "UPDATE campaigns SET remark = $2 WHERE id = $1 AND (remark IS NULL OR remark <> $2)",
            &params![id, REMOVING],
        )
        .await?;
        return Ok(pruned);
    }
    let runs = tx
        .execute(
            "DELETE FROM campaign_runs WHERE campaign_id = $1 AND place {in_list}SELECT place FROM campaign_runs \
             WHERE campaign_id = $1 ORDER BY place LIMIT $2{list_end}",
            &params![id, limit],
        )
        .await?;
    if runs > 0 {
        return Ok(pruned);
    }
    for statement in [
        "DELETE FROM campaign_counts WHERE campaign_id = $1",
        "DELETE FROM campaign_lanes WHERE campaign_id = $1",
        "DELETE FROM campaign_workers WHERE campaign_id = $1",
        "DELETE FROM campaign_blob_uses WHERE campaign_id = $1",
    ] {
        tx.execute(statement, &params![id]).await?;
    }
    let names = tx
        .query(
            "DELETE FROM campaigns WHERE id = $1 RETURNING name, number",
            &params![id],
        )
        .await?;
    for mut row in names {
        let name = row.text()?;
        pruned.campaigns.push((name, row.int()?));
    }
    Ok(pruned)
}

/// Removes texts that no campaign names any more.
async fn prune_blobs(tx: Tx<'_>, older: Millis) -> Result<u64> {
    tx.execute(
        "DELETE FROM campaign_blobs WHERE created_at <= {now} - $1 AND NOT EXISTS (SELECT 1 \
         FROM campaign_blob_uses u WHERE u.digest = campaign_blobs.digest)",
        &params![older],
    )
    .await
}

/// Those of these traces, each with the place where it is, that no result names.
async fn unnamed(
    tx: Tx<'_>,
    traces: impl Iterator<Item = (String, String)>,
) -> Result<Vec<(String, String)>> {
    let traces: Vec<(String, String)> = traces.collect();
    let rows: Vec<Vec<SqlValue<'_>>> = traces
        .iter()
        .map(|(place, trace)| vec![trace.into(), place.into()])
        .collect();
    let named = tx
        .query_each(
            "SELECT 1 FROM campaign_results o JOIN campaigns c ON c.id = o.campaign_id \
             WHERE o.trace = $1 AND c.traces = $2 LIMIT 1",
            &rows,
        )
        .await?;
    drop(rows);
    let lone = traces.into_iter().zip(named);
    let lone = lone.filter(|(_, named)| named.is_empty());
    Ok(lone.map(|(trace, _)| trace).collect())
}

/// Forgets the traces of campaigns that were over before this time, and gives those that nobody else has.
pub(crate) async fn prune_traces(
    tx: Tx<'_>,
    older_ms: Millis,
    limit: usize,
) -> Result<(u64, Vec<(String, String)>)> {
    let rows = tx
        .query(
            "SELECT s.campaign_id, s.place, c.traces, s.trace FROM campaign_results s \
             JOIN campaigns c ON c.id = s.campaign_id \
             WHERE c.ended_at <= {now} - $1 AND c.traces IS NOT NULL AND s.trace IS NOT NULL LIMIT $2",
            &params![older_ms.max(0), page(limit)],
        )
        .await?;
    let (mut each, mut traces) = (Vec::with_capacity(rows.len()), BTreeSet::new());
    for mut row in rows {
        each.push(params![row.int()?, row.int()?].to_vec());
        let at = row.text()?;
        traces.insert((at, row.text()?));
    }
    tx.query_each(
        "UPDATE campaign_results SET trace = NULL WHERE campaign_id = $1 AND place = $2",
        &each,
    )
    .await?;
    let lone = unnamed(tx, traces.into_iter()).await?;
    Ok((each.len() as u64, lone))
}
