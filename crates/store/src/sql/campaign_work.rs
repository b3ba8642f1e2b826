//! Statements that hand out the runs of campaigns and count what comes of them, each once.

use std::collections::{BTreeMap, BTreeSet};

use super::page;
use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, name, not_too_long, params, short};
use crate::error::{Result, StoreError};
use crate::model::limits::MAX_BATCH;
use crate::model::{
    CampaignState, ClaimedRun, FinishedRun, LanePrice, LaneRow, Millis, PlannedKind, RequestPermit,
    RunClaim, RunCounted,
};

/// What a run is that was handed out.
macro_rules! claimed_columns {
    () => {
        "place, kind, document, subject, repeat, fence, losses, retries"
    };
}

/// What handing out a run does to it. The list of places is made before, so that the plan of the statement does not depend on how
/// many there may be.
macro_rules! hand_out {
    () => {
        " UPDATE campaign_runs SET state = 'running', owner = $2, until = (SELECT now FROM clock) + $3, \
         started_at = (SELECT now FROM clock), fence = fence + second_fence + 1, second_owner = NULL, second_fence = 0 \
         WHERE campaign_id = $1 AND place {in_list}SELECT place FROM next{list_end} RETURNING "
    };
}

fn claimed(mut row: SqlRow) -> Result<ClaimedRun> {
    Ok(ClaimedRun {
        place: row.int()?,
        kind: row.word(PlannedKind::from_word)?,
        document: row.int()?,
        subject: row.int()?,
        repeat: row.int()?,
        fence: row.int()?,
        losses: row.int()?,
        retries: row.int()?,
    })
}

/// Those of the runs that wait which a worker is handed now: `of` says of which models, `losses` how many workers were lost with them.
macro_rules! waiting {
    ($of:expr, $losses:literal, $order:literal, $limit:literal) => {
        concat!(
            "SELECT r.place FROM campaign_runs r WHERE r.campaign_id = $1 AND r.state = 'waiting' AND r.gate = 'open' \
             AND r.due_at <= (SELECT now FROM clock) AND ",
            $losses,
            $of,
            " ORDER BY ",
            $order,
            " LIMIT ",
            $limit,
            " {skip_locked r}"
        )
    };
}

/// Runs in the order of the plan, and among them at most one that a worker was lost with, if $4 is 1.
macro_rules! next_in_order {
    ($models:expr, $of:expr, $limit:literal) => {
        concat!(
            $models,
            "lost AS MATERIALIZED (",
            waiting!(
                $of,
                "r.losses > 0 AND r.losses = 1 AND $4 = 1",
                "r.place",
                "1"
            ),
            "), fresh AS MATERIALIZED (",
            waiting!($of, "r.losses = 0", "r.place", $limit),
            "), next AS MATERIALIZED (SELECT place FROM (SELECT place FROM lost UNION ALL SELECT place FROM fresh) u \
             ORDER BY place LIMIT ",
            $limit,
            ")",
            hand_out!(),
            claimed_columns!()
        )
    };
}

/// One run that several workers were lost with, those first that took the fewest with them.
macro_rules! next_alone {
    ($models:expr, $of:expr) => {
        concat!(
            $models,
            "next AS MATERIALIZED (",
            waiting!(
                $of,
                "r.losses > 0 AND r.losses > $4",
                "r.losses, r.place",
                "1"
            ),
            ")",
            hand_out!(),
            claimed_columns!()
        )
    };
}

/// What a hand-out begins with: the time, which is asked for once and not for each row.
macro_rules! clock {
    () => {
        "WITH clock AS MATERIALIZED (SELECT {now} AS now), "
    };
}

/// The models whose caps need no counting, which may be asked now, and which runs wait for.
macro_rules! askable {
    () => {
        concat!(
            clock!(),
            "askable AS MATERIALIZED (SELECT l.lane FROM campaign_lanes l WHERE l.campaign_id = $1 \
             AND EXISTS (SELECT 1 FROM campaigns c WHERE c.id = $1 AND c.state = 'running') \
             AND l.max_concurrent IS NULL AND l.slow_until <= (SELECT now FROM clock) \
             AND (l.max_tokens IS NULL OR l.used_tokens < l.max_tokens) \
             AND (l.max_cost IS NULL OR l.used_cost < l.max_cost) \
             AND NOT EXISTS (SELECT 1 FROM campaign_lanes p WHERE p.campaign_id = $1 AND p.lane = l.provider \
             AND (p.max_concurrent IS NOT NULL OR p.used_tokens >= p.max_tokens OR p.used_cost >= p.max_cost)) \
             AND (SELECT w.place FROM campaign_runs w WHERE w.campaign_id = $1 AND w.lane = l.lane \
             AND w.state = 'waiting' AND w.gate = 'open' ORDER BY w.place LIMIT 1) IS NOT NULL), "
        )
    };
}

/// Of those models. Nothing is looked through where there is none.
macro_rules! of_askable {
    () => {
        " AND EXISTS (SELECT 1 FROM askable) AND r.lane {in_list}SELECT lane FROM askable{list_end}"
    };
}

/// Of one model.
macro_rules! of_lane {
    () => {
        " AND r.lane = $5"
    };
}

/// Statements for so many runs at most. Each number stands in a statement of its own: databases plan statements once only when they
/// know how many rows they end with.
macro_rules! in_steps {
    ($models:expr, $of:expr) => {
        [
            (64, next_in_order!($models, $of, "64")),
            (16, next_in_order!($models, $of, "16")),
            (4, next_in_order!($models, $of, "4")),
            (1, next_in_order!($models, $of, "1")),
        ]
    };
}

const UNCOUNTED: [(usize, &str); 4] = in_steps!(askable!(), of_askable!());
const OF_LANE: [(usize, &str); 4] = in_steps!(clock!(), of_lane!());

/// The largest step that fits.
fn step(steps: &[(usize, &'static str); 4], limit: usize) -> Option<(usize, &'static str)> {
    steps.iter().find(|(most, _)| *most <= limit).copied()
}

/// How many workers may be lost with a run that is handed out beside others.
const LOSSES_IN_ORDER: i64 = 1;

/// Hands out the next runs of models whose caps need no counting, in the order of the plan. One statement, which is a transaction by
/// itself: each further one is a way to the database and back. Says whether there may be more.
pub(crate) async fn claim_uncounted(
    tx: Tx<'_>,
    claim: &RunClaim,
) -> Result<(Vec<ClaimedRun>, bool)> {
    let owner = name("the worker", &claim.owner)?;
    let Some((most, statement)) = step(&UNCOUNTED, page(claim.limit)) else {
        return Ok((Vec::new(), false));
    };
    let values = params![claim.campaign, owner, claim.lease_ms, !claim.has_lost];
    let rows = tx.query(statement, &values).await?;
    let handed = rows.into_iter().map(claimed).collect::<Result<Vec<_>>>()?;
    let is_full = handed.len() == most;
    Ok((handed, is_full))
}

/// Hands out runs as far as their models may be asked, in the order of the plan. Nothing once the campaign is over. Of those that a
/// worker was lost with, a worker has one at a time, and one that more were lost with is handed out alone, to a worker that has
/// nothing else: if it is what ends workers, few other runs end with it.
pub(crate) async fn claim_counted(tx: Tx<'_>, claim: &RunClaim) -> Result<Vec<ClaimedRun>> {
    let owner = name("the worker", &claim.owner)?;
    let (limit, mut has_lost) = (page(claim.limit), claim.has_lost);
    let mut handed: Vec<ClaimedRun> = Vec::new();
    for lane in counted_lanes(tx, claim.campaign).await? {
        let mut free = lane.free(tx, claim.campaign).await?;
        let lane = lane.lane;
        loop {
            let left = limit.saturating_sub(handed.len()).min(free);
            let Some((most, statement)) = step(&OF_LANE, left) else {
                break;
            };
            let values = params![claim.campaign, owner, claim.lease_ms, !has_lost, lane];
            let rows = tx.query(statement, &values).await?;
            let count = rows.len();
            for row in rows {
                handed.push(claimed(row)?);
            }
            has_lost |= handed.iter().any(|run| run.losses > 0);
            free = free.saturating_sub(count);
            if count < most {
                break;
            }
        }
    }
    if handed.is_empty() && claim.is_idle {
        let alone = next_alone!(askable!(), of_askable!());
        let values = params![claim.campaign, owner, claim.lease_ms, LOSSES_IN_ORDER];
        let rows = tx.query(alone, &values).await?;
        handed = rows.into_iter().map(claimed).collect::<Result<_>>()?;
        for lane in counted_lanes(tx, claim.campaign).await? {
            if !handed.is_empty() {
                break;
            }
            if lane.free(tx, claim.campaign).await? == 0 {
                continue;
            }
            let lane = lane.lane;
            let alone = next_alone!(clock!(), of_lane!());
            let values = params![claim.campaign, owner, claim.lease_ms, LOSSES_IN_ORDER, lane];
            let rows = tx.query(alone, &values).await?;
            handed = rows.into_iter().map(claimed).collect::<Result<_>>()?;
        }
    }
    Ok(handed)
}

/// A model that only so many runs may ask at a time, or whose provider has such a cap.
struct CountedLane {
    lane: i64,
    most: Option<i64>,
    /// The lane of its provider and the cap of that.
    provider: Option<(i64, i64)>,
}

impl CountedLane {
    /// How many more runs may ask it.
    async fn free(&self, tx: Tx<'_>, campaign: i64) -> Result<usize> {
        let mut free = usize::MAX;
        if let Some(most) = self.most {
            let busy = "SELECT COUNT(*) + SUM(CASE WHEN second_owner IS NOT NULL THEN 1 ELSE 0 END) FROM campaign_runs \
                 WHERE campaign_id = $1 AND state = 'running' AND lane = $2";
            free = free_of(tx, busy, (campaign, self.lane, most)).await?;
        }
        if let Some((provider, most)) = self.provider {
            let busy = "SELECT COUNT(*) + SUM(CASE WHEN second_owner IS NOT NULL THEN 1 ELSE 0 END) FROM campaign_runs \
                 WHERE campaign_id = $1 AND state = 'running' \
                 AND lane IN (SELECT lane FROM campaign_lanes WHERE campaign_id = $1 AND provider = $2)";
            free = free.min(free_of(tx, busy, (campaign, provider, most)).await?);
        }
        Ok(free)
    }
}

/// What is left of a cap, of which the statement tells how much is used. A run that is made a second time counts twice.
async fn free_of(
    tx: Tx<'_>,
    busy: &'static str,
    (campaign, lane, most): (i64, i64, i64),
) -> Result<usize> {
    let busy = tx.query(busy, &params![campaign, lane]).await?;
    let busy = first(busy).map(|mut row| row.int_or_null()).transpose()?;
    let free = most.saturating_sub(busy.flatten().unwrap_or(0));
    Ok(usize::try_from(free).unwrap_or(0))
}

/// The models that only so many runs may ask at a time, and may ask now, in their order. Who asks for them waits for the others who
/// do: caps that are counted are looked at by one at a time.
async fn counted_lanes(tx: Tx<'_>, campaign: i64) -> Result<Vec<CountedLane>> {
    let rows = tx
        .query(
            "SELECT l.lane, l.max_concurrent, l.provider, CASE WHEN l.slow_until <= {now} \
             AND (l.max_tokens IS NULL OR l.used_tokens < l.max_tokens) \
             AND (l.max_cost IS NULL OR l.used_cost < l.max_cost) THEN 1 ELSE 0 END \
             FROM campaign_lanes l WHERE l.campaign_id = $1 \
             AND EXISTS (SELECT 1 FROM campaigns c WHERE c.id = $1 AND c.state = 'running') \
             AND (l.max_concurrent IS NOT NULL OR l.provider IS NOT NULL OR l.lane IN (SELECT m.provider \
             FROM campaign_lanes m WHERE m.campaign_id = $1 AND m.provider IS NOT NULL)) ORDER BY l.lane {lock}",
            &params![campaign],
        )
        .await?;
    let mut read = Vec::with_capacity(rows.len());
    for mut row in rows {
        let (lane, most) = (row.int()?, row.int_or_null()?);
        read.push((lane, most, row.int_or_null()?, row.int()? == 1));
    }
    let is_provider = |lane: i64| read.iter().any(|(_, _, of, _)| *of == Some(lane));
    let mut counted = Vec::new();
    for &(lane, most, of, is_open) in &read {
        let of = of.and_then(|of| read.iter().find(|(lane, ..)| *lane == of));
        let provider = of.and_then(|(lane, most, ..)| Some((*lane, (*most)?)));
        let is_open = is_open && of.is_none_or(|(_, _, _, is_open)| *is_open);
        if is_open && !is_provider(lane) && (most.is_some() || provider.is_some()) {
            counted.push(CountedLane {
                lane,
                most,
                provider,
            });
        }
    }
    Ok(counted)
}

/// Selects the run that somebody has had for the longest, of those that this says.
macro_rules! slowest {
    ($lanes:literal) => {
        concat!(
            "WITH next AS MATERIALIZED (SELECT r.place FROM campaign_runs r JOIN campaigns c ON c.id = r.campaign_id \
             WHERE r.campaign_id = $1 AND c.state = 'running' AND r.state = 'running' AND r.owner <> $2 \
             AND r.second_owner IS NULL AND r.until > {now} AND r.started_at <= {now} - $3 AND r.losses <= $4 AND ",
            $lanes,
            " ORDER BY r.started_at, r.place LIMIT 1 {skip_locked r}) \
             UPDATE campaign_runs SET second_owner = $2, second_fence = second_fence + 1 \
             WHERE campaign_id = $1 AND place IN (SELECT place FROM next) RETURNING \
             place, kind, document, subject, repeat, fence + second_fence, losses, retries"
        )
    };
}

/// Hands out a run a second time that somebody has had for this long, when nothing else is left. The first of the two who is done
/// counts. For runs that workers were lost with, the same holds as when they are handed out.
pub(crate) async fn steal(
    tx: Tx<'_>,
    claim: &RunClaim,
    slower_than_ms: Millis,
) -> Result<Option<ClaimedRun>> {
    let owner = name("the worker", &claim.owner)?;
    let slower = slower_than_ms.max(0);
    let losses = match (claim.is_idle, claim.has_lost) {
        (true, _) => i64::MAX,
        (false, false) => LOSSES_IN_ORDER,
        (false, true) => 0,
    };
    let rows = tx
        .query(
            slowest!(
                "NOT EXISTS (SELECT 1 FROM campaign_lanes m JOIN campaign_lanes l ON l.campaign_id = m.campaign_id \
                 AND (l.lane = m.lane OR l.lane = m.provider) WHERE m.campaign_id = r.campaign_id AND m.lane = r.lane \
                 AND (l.max_concurrent IS NOT NULL OR l.slow_until > {now} OR l.used_tokens >= l.max_tokens OR l.used_cost >= l.max_cost))"
            ),
            &params![claim.campaign, owner, slower, losses],
        )
        .await?;
    if let Some(row) = first(rows) {
        return claimed(row).map(Some);
    }
    for lane in counted_lanes(tx, claim.campaign).await? {
        if lane.free(tx, claim.campaign).await? == 0 {
            continue;
        }
        let lane = lane.lane;
        let rows = tx
            .query(
                slowest!("r.lane = $5"),
                &params![claim.campaign, owner, slower, losses, lane],
            )
            .await?;
        if let Some(row) = first(rows) {
            return claimed(row).map(Some);
        }
    }
    Ok(None)
}

/// Says that a worker is still there. Gives the runs that are still its own.
pub(crate) async fn renew(
    tx: Tx<'_>,
    campaign: i64,
    owner: &str,
    lease_ms: Millis,
) -> Result<Vec<(i64, i64)>> {
    let rows = tx
        .query(
            "UPDATE campaign_runs SET until = {now} + $3 WHERE campaign_id = $1 AND state = 'running' AND owner = $2 \
             RETURNING place, fence",
            &params![campaign, owner, lease_ms],
        )
        .await?;
    tx.execute(
        "UPDATE campaign_workers SET seen_at = {now} WHERE campaign_id = $1 AND owner = $2",
        &params![campaign, owner],
    )
    .await?;
    let second = tx
        .query(
            "SELECT place, fence + second_fence FROM campaign_runs WHERE campaign_id = $1 AND state = 'running' \
             AND second_owner = $2",
            &params![campaign, owner],
        )
        .await?;
    let read = |mut row: SqlRow| Ok((row.int()?, row.int()?));
    rows.into_iter().chain(second).map(read).collect()
}

/// Takes runs back from workers that were silent for too long. Returns how many are waiting again.
pub(crate) async fn take_back(tx: Tx<'_>, campaign: i64, lease_ms: Millis) -> Result<u64> {
    // Whoever has it a second time becomes the first.
    tx.execute(
        "WITH lost AS MATERIALIZED (SELECT r.place FROM campaign_runs r WHERE r.campaign_id = $1 \
         AND r.state = 'running' AND r.until <= {now} AND r.second_owner IS NOT NULL LIMIT 1000 {skip_locked r}) \
         UPDATE campaign_runs SET owner = second_owner, until = {now} + $2, losses = losses + 1, \
         fence = fence + second_fence, second_owner = NULL, second_fence = 0 \
         WHERE campaign_id = $1 AND place IN (SELECT place FROM lost)",
        &params![campaign, lease_ms],
    )
    .await?;
    tx.execute(
        "WITH lost AS MATERIALIZED (SELECT r.place FROM campaign_runs r WHERE r.campaign_id = $1 \
         AND r.state = 'running' AND r.until <= {now} AND r.second_owner IS NULL LIMIT 1000 {skip_locked r}) \
         UPDATE campaign_runs SET state = 'waiting', owner = NULL, losses = losses + 1 \
         WHERE campaign_id = $1 AND place IN (SELECT place FROM lost)",
        &params![campaign],
    )
    .await
}

/// Puts back what a worker has not done, when it leaves.
pub(crate) async fn release(tx: Tx<'_>, campaign: i64, owner: &str) -> Result<u64> {
    // The first copy goes on: its fence stays, and a later second copy has a higher one.
    tx.execute(
        "UPDATE campaign_runs SET second_owner = NULL \
         WHERE campaign_id = $1 AND state = 'running' AND second_owner = $2",
        &params![campaign, owner],
    )
    .await?;
    // Whoever has it a second time becomes the first.
    tx.execute(
        "UPDATE campaign_runs SET owner = second_owner, fence = fence + second_fence, second_owner = NULL, \
         second_fence = 0 WHERE campaign_id = $1 AND state = 'running' AND owner = $2 AND second_owner IS NOT NULL",
        &params![campaign, owner],
    )
    .await?;
    tx.execute(
        "UPDATE campaign_runs SET state = 'waiting', owner = NULL \
         WHERE campaign_id = $1 AND state = 'running' AND owner = $2",
        &params![campaign, owner],
    )
    .await
}

/// Puts back some of the runs that a worker has, by their places and fences. It counts as no loss.
pub(crate) async fn give_back(
    tx: Tx<'_>,
    campaign: i64,
    owner: &str,
    runs: &[(i64, i64)],
) -> Result<()> {
    let mut runs = runs.to_vec();
    // Everybody locks in the same order.
    runs.sort_unstable();
    let rows: Vec<Vec<SqlValue<'_>>> = runs
        .iter()
        .map(|(place, fence)| params![campaign, owner, *place, *fence].to_vec())
        .collect();
    for statement in [
        "UPDATE campaign_runs SET second_owner = NULL WHERE campaign_id = $1 AND place = $3 AND state = 'running' \
         AND second_owner = $2 AND fence + second_fence = $4",
        "UPDATE campaign_runs SET owner = second_owner, fence = fence + second_fence, second_owner = NULL, \
         second_fence = 0 WHERE campaign_id = $1 AND place = $3 AND state = 'running' AND owner = $2 AND fence = $4 \
         AND second_owner IS NOT NULL",
        "UPDATE campaign_runs SET state = 'waiting', owner = NULL WHERE campaign_id = $1 AND place = $3 \
         AND state = 'running' AND owner = $2 AND fence = $4",
    ] {
        tx.query_each(statement, &rows).await?;
    }
    Ok(())
}

/// Puts a run back that came to nothing, to be made again after a while, and counts its tokens. `false` when it is somebody else's by
/// now.
pub(crate) async fn put_back(
    tx: Tx<'_>,
    campaign: i64,
    (place, fence): (i64, i64),
    due_in_ms: Millis,
    tokens: i64,
) -> Result<bool> {
    let changed = tx
        .execute(
            "UPDATE campaign_runs SET state = 'waiting', owner = NULL, retries = retries + 1, due_at = {now} + $4, \
             second_owner = NULL \
             WHERE campaign_id = $1 AND place = $2 AND state = 'running' AND fence = $3",
            &params![campaign, place, fence, due_in_ms.max(0)],
        )
        .await?;
    let is_back = changed > 0;
    // The same message again finds the fence as it was, and is not counted twice.
    let lane = tx
        .query(
            "SELECT lane FROM campaign_runs WHERE campaign_id = $1 AND place = $2 \
             AND ($4 = 1 OR state <> 'waiting' OR fence > $3)",
            &params![campaign, place, fence, is_back],
        )
        .await?;
    if let Some(mut row) = first(lane) {
        spend_tokens(tx, campaign, &BTreeMap::from([(row.int()?, tokens)])).await?;
    }
    Ok(is_back)
}

/// Adds the tokens that runs have used to those of their models.
async fn spend_tokens(tx: Tx<'_>, campaign: i64, used: &BTreeMap<i64, i64>) -> Result<()> {
    let rows: Vec<Vec<SqlValue<'_>>> = used
        .iter()
        .filter(|(_, tokens)| **tokens > 0)
        .map(|(lane, tokens)| vec![campaign.into(), (*lane).into(), (*tokens).into()])
        .collect();
    const ADD: &str = "UPDATE campaign_lanes SET used_tokens = used_tokens + $3 WHERE campaign_id = $1 AND lane = $2 \
         RETURNING provider";
    let updated = tx.query_each(ADD, &rows).await?;
    // Providers come after all models, so everybody locks in the same order.
    let mut of_providers: BTreeMap<i64, i64> = BTreeMap::new();
    let spent = used.values().filter(|tokens| **tokens > 0);
    for (rows, tokens) in updated.into_iter().zip(spent) {
        if let Some(provider) = first(rows).map(|mut row| row.int_or_null()).transpose()? {
            let Some(provider) = provider else { continue };
            let sum = of_providers.entry(provider).or_default();
            *sum = sum.saturating_add(*tokens);
        }
    }
    let rows: Vec<Vec<SqlValue<'_>>> = of_providers
        .into_iter()
        .map(|(lane, tokens)| vec![campaign.into(), lane.into(), tokens.into()])
        .collect();
    tx.query_each(ADD, &rows).await?;
    Ok(())
}

/// What a run that was just finished was for, and which lane it counts against.
struct SettledRun {
    kind: PlannedKind,
    document: i64,
    subject: i64,
    lane: i64,
}

/// Counts what came of runs, each once: the results, the counts, the tokens and what is opened by them are one transaction.
pub(crate) async fn finish(
    tx: Tx<'_>,
    campaign: i64,
    finished: &[FinishedRun],
) -> Result<Vec<RunCounted>> {
    if finished.len() > MAX_BATCH {
        return Err(StoreError::TooLarge {
            what: "a batch of finished runs".to_owned(),
            size: finished.len(),
            limit: MAX_BATCH,
        });
    }
    let mut order: Vec<usize> = (0..finished.len()).collect();
    // Everybody locks in the same order.
    order.sort_by_key(|index| finished[*index].place);
    let mut each = Vec::with_capacity(finished.len());
    for index in &order {
        let run = &finished[*index];
        not_too_long("the record of a run", &run.record)?;
        short("the outcome", &run.outcome)?;
        short("the reason", &run.reason)?;
        each.push(params![campaign, run.place, run.fence].to_vec());
    }
    let settled = tx
        .query_each(
            "UPDATE campaign_runs SET state = 'done', owner = NULL, second_owner = NULL \
             WHERE campaign_id = $1 AND place = $2 AND state = 'running' \
             AND ($3 = fence OR (second_owner IS NOT NULL AND $3 = fence + second_fence)) \
             RETURNING kind, document, subject, lane",
            &each,
        )
        .await?;
    let mut counted = vec![RunCounted::Fenced; finished.len()];
    let mut done: Vec<(usize, SettledRun)> = Vec::new();
    for (index, rows) in order.iter().zip(settled) {
        if let Some(mut row) = first(rows) {
            counted[*index] = RunCounted::Now;
            let settled = SettledRun {
                kind: row.word(PlannedKind::from_word)?,
                document: row.int()?,
                subject: row.int()?,
                lane: row.int()?,
            };
            done.push((*index, settled));
        } else {
            let run = &finished[*index];
            let there = tx
                .query(
                    "SELECT 1 FROM campaign_results WHERE campaign_id = $1 AND place = $2 AND fence = $3",
                    &params![campaign, run.place, run.fence],
                )
                .await?;
            if !there.is_empty() {
                counted[*index] = RunCounted::Before;
            }
        }
    }
    let fenced = fenced_tokens(tx, campaign, finished, &counted).await?;
    write_results(tx, campaign, finished, &done).await?;
    open_gates(tx, campaign, &done).await?;
    count(tx, campaign, finished, &done, fenced).await?;
    if done.iter().any(|(index, _)| finished[*index].stops) {
        super::campaigns::end(
            tx,
            campaign,
            CampaignState::Stopped,
            Some("an attack got through, and the campaign was to stop then"),
        )
        .await?;
    }
    Ok(counted)
}

/// What runs have used that do not count, by their models. A message that was counted before is said again, so nothing of it is
/// added again.
async fn fenced_tokens(
    tx: Tx<'_>,
    campaign: i64,
    finished: &[FinishedRun],
    counted: &[RunCounted],
) -> Result<BTreeMap<i64, i64>> {
    let mut used: BTreeMap<i64, i64> = BTreeMap::new();
    if counted.contains(&RunCounted::Before) {
        return Ok(used);
    }
    for (run, _) in finished
        .iter()
        .zip(counted)
        .filter(|(run, counted)| **counted == RunCounted::Fenced && run.tokens > 0)
    {
        let lane = tx
            .query(
                "SELECT lane FROM campaign_runs WHERE campaign_id = $1 AND place = $2",
                &params![campaign, run.place],
            )
            .await?;
        if let Some(mut row) = first(lane) {
            let used = used.entry(row.int()?).or_default();
            *used = used.saturating_add(run.tokens);
        }
    }
    Ok(used)
}

async fn write_results(
    tx: Tx<'_>,
    campaign: i64,
    finished: &[FinishedRun],
    done: &[(usize, SettledRun)],
) -> Result<()> {
    let rows: Vec<Vec<SqlValue<'_>>> = done
        .iter()
        .map(|(index, _)| {
            let run = &finished[*index];
            vec![
                campaign.into(),
                run.place.into(),
                run.fence.into(),
                (&run.record).into(),
                run.trace.as_ref().into(),
            ]
        })
        .collect();
    // A second result of a run would break the key: then nothing of this is written.
    tx.query_each(
        "INSERT INTO campaign_results (campaign_id, place, fence, record, trace, finished_at) \
         VALUES ($1, $2, $3, $4, $5, {now})",
        &rows,
    )
    .await?;
    Ok(())
}

/// Hands out what waited for these runs.
async fn open_gates(tx: Tx<'_>, campaign: i64, done: &[(usize, SettledRun)]) -> Result<()> {
    let mut probed = BTreeSet::new();
    for (_, run) in done {
        match run.kind {
            PlannedKind::Attack => {}
            PlannedKind::Probe => {
                probed.insert(run.subject);
            }
            PlannedKind::Control => {
                tx.execute(
                    "UPDATE campaign_runs SET gate = 'open' WHERE campaign_id = $1 AND subject = $2 AND document = $3 \
                     AND gate <> 'open' AND gate = 'control'",
                    &params![campaign, run.subject, run.document],
                )
                .await?;
            }
        }
    }
    if probed.is_empty() {
        return Ok(());
    }
    // Of two who finish the last two probes, the second sees both.
    tx.query(
        "SELECT id FROM campaigns WHERE id = $1 {lock}",
        &params![campaign],
    )
    .await?;
    for subject in probed {
        let left = tx
            .query(
                "SELECT 1 FROM campaign_runs WHERE campaign_id = $1 AND subject = $2 AND kind <> 'attack' \
                 AND kind = 'probe' AND state <> 'done' LIMIT 1",
                &params![campaign, subject],
            )
            .await?;
        if left.is_empty() {
            tx.execute(
                "UPDATE campaign_runs SET gate = 'open' WHERE campaign_id = $1 AND subject = $2 AND gate <> 'open' \
                 AND gate = 'probes'",
                &params![campaign, subject],
            )
            .await?;
        }
    }
    Ok(())
}

async fn count(
    tx: Tx<'_>,
    campaign: i64,
    finished: &[FinishedRun],
    done: &[(usize, SettledRun)],
    mut used: BTreeMap<i64, i64>,
) -> Result<()> {
    type Key<'a> = (i64, i64, &'static str, &'a str, &'a str);
    let mut sums: BTreeMap<Key<'_>, (i64, i64, i64)> = BTreeMap::new();
    for (index, settled) in done {
        let run = &finished[*index];
        let key = (
            settled.subject,
            settled.document,
            settled.kind.as_str(),
            run.outcome.as_str(),
            run.reason.as_str(),
        );
        let sum = sums.entry(key).or_default();
        sum.0 += 1;
        sum.1 = sum.1.saturating_add(run.tokens.max(0));
        sum.2 = sum.2.saturating_add(run.milliseconds.max(0));
        let used = used.entry(settled.lane).or_default();
        *used = used.saturating_add(run.tokens.max(0));
    }
    let rows: Vec<Vec<SqlValue<'_>>> = sums
        .iter()
        .map(
            |((subject, document, kind, outcome, reason), (runs, tokens, milliseconds))| {
                vec![
                    campaign.into(),
                    (*subject).into(),
                    (*document).into(),
                    (*kind).into(),
                    (*outcome).into(),
                    (*reason).into(),
                    (*runs).into(),
                    (*tokens).into(),
                    (*milliseconds).into(),
                ]
            },
        )
        .collect();
    tx.query_each(
        "INSERT INTO campaign_counts (campaign_id, subject, document, kind, outcome, reason, runs, tokens, milliseconds) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (campaign_id, subject, document, kind, outcome, reason) DO UPDATE SET \
         runs = campaign_counts.runs + excluded.runs, tokens = campaign_counts.tokens + excluded.tokens, \
         milliseconds = campaign_counts.milliseconds + excluded.milliseconds",
        &rows,
    )
    .await?;
    // Last, because everybody writes these.
    spend_tokens(tx, campaign, &used).await
}

/// Ends a campaign of which nothing is left to do. Gives the state that it has then.
pub(crate) async fn settle(tx: Tx<'_>, campaign: i64) -> Result<CampaignState> {
    let rows = tx
        .query(
            "SELECT state FROM campaigns WHERE id = $1 {lock}",
            &params![campaign],
        )
        .await?;
    let Some(mut row) = first(rows) else {
        return Err(StoreError::NotFound(format!("campaign {campaign}")));
    };
    let state = row.word(CampaignState::from_word)?;
    if state != CampaignState::Running {
        return Ok(state);
    }
    let open = tx
        .query(
            "SELECT 1 FROM campaign_runs r WHERE r.campaign_id = $1 AND (r.state = 'running' OR (r.state = 'waiting' \
             AND NOT EXISTS (SELECT 1 FROM campaign_lanes m JOIN campaign_lanes l ON l.campaign_id = m.campaign_id \
             AND (l.lane = m.lane OR l.lane = m.provider) WHERE m.campaign_id = r.campaign_id AND m.lane = r.lane \
             AND (l.used_tokens >= l.max_tokens OR l.used_cost >= l.max_cost)))) LIMIT 1",
            &params![campaign],
        )
        .await?;
    if !open.is_empty() {
        return Ok(state);
    }
    let left = tx
        .query(
            "SELECT COUNT(*) FROM campaign_runs WHERE campaign_id = $1 AND state = 'waiting'",
            &params![campaign],
        )
        .await?;
    let left = first(left)
        .map(|mut row| row.int())
        .transpose()?
        .unwrap_or(0);
    let (state, remark) = if left == 0 {
        (CampaignState::Finished, None)
    } else {
        let remark = format!("a cap on tokens or cost is reached; {left} runs were not made");
        (CampaignState::Capped, Some(remark))
    };
    super::campaigns::end(tx, campaign, state, remark.as_deref()).await?;
    Ok(state)
}

pub(crate) async fn lanes(tx: Tx<'_>, campaign: i64) -> Result<Vec<LaneRow>> {
    let rows = tx
        .query(
            "SELECT lane, name, max_tokens, max_concurrent, requests_per_minute, max_cost, input_price, output_price, currency, \
             provider, used_tokens, used_cost, used_requests, slowed, CASE WHEN slow_until > {now} THEN slow_until - {now} ELSE 0 END \
             FROM campaign_lanes WHERE campaign_id = $1 ORDER BY lane",
            &params![campaign],
        )
        .await?;
    let read = |mut row: SqlRow| {
        Ok(LaneRow {
            lane: row.int()?,
            name: row.text()?,
            max_tokens: row.int_or_null()?,
            max_concurrent: row.int_or_null()?,
            requests_per_minute: row.int_or_null()?,
            max_cost: row.int_or_null()?,
            price: match (row.int_or_null()?, row.int_or_null()?, row.text_or_null()?) {
                (Some(input), Some(output), Some(currency)) => Some(LanePrice {
                    input,
                    output,
                    currency,
                }),
                _ => None,
            },
            provider: row.int_or_null()?,
            used_tokens: row.int()?,
            used_cost: row.int()?,
            used_requests: row.int()?,
            slowed: row.int()?,
            slow_ms: row.int()?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Asks whether a model, and with it its provider, may be asked once more in this minute. Requests are spread evenly, a second's worth at
/// a time.
pub(crate) async fn permit(tx: Tx<'_>, campaign: i64, lane: i64) -> Result<RequestPermit> {
    let rows = tx
        .query(
            "SELECT lane, requests_per_minute, next_request_at, slow_until, {now} FROM campaign_lanes \
             WHERE campaign_id = $1 AND (lane = $2 OR lane = (SELECT provider FROM campaign_lanes \
             WHERE campaign_id = $1 AND lane = $2)) ORDER BY lane {lock}",
            &params![campaign, lane],
        )
        .await?;
    let (mut longest, mut granted) = (0, Vec::with_capacity(rows.len()));
    for mut row in rows {
        let (lane, per_minute) = (row.int()?, row.int_or_null()?);
        let (next, slow_until, now) = (row.int()?, row.int()?, row.int()?);
        match next_request(per_minute, next, slow_until, now) {
            Ok(at) => granted.push(params![campaign, lane, at].to_vec()),
            Err(wait) => longest = longest.max(wait),
        }
    }
    if longest > 0 {
        return Ok(RequestPermit::Wait(longest));
    }
    tx.query_each(
        "UPDATE campaign_lanes SET next_request_at = $3, used_requests = used_requests + 1 \
         WHERE campaign_id = $1 AND lane = $2",
        &granted,
    )
    .await?;
    Ok(RequestPermit::Granted)
}

/// From when on the request after this one may be sent, in thousandths of a millisecond, so that thousands of requests in a minute
/// are told apart; or how long this one has to wait.
fn next_request(
    per_minute: Option<i64>,
    next: i64,
    slow_until: Millis,
    now: Millis,
) -> Result<i64, Millis> {
    if slow_until > now {
        return Err(slow_until - now);
    }
    let Some(per_minute) = per_minute.filter(|most| *most > 0) else {
        return Ok(next);
    };
    let micros = now.saturating_mul(1000);
    let interval = (60_000_000 / per_minute).max(1);
    let early = 1_000_000.max(interval);
    let at = next.max(micros - early);
    if at > micros {
        return Err((at - micros) / 1000 + 1);
    }
    Ok(at + interval)
}

/// How long everybody waits with a model, because its provider asked for it.
pub(crate) async fn lane_pause(tx: Tx<'_>, campaign: i64, lane: i64) -> Result<Millis> {
    let rows = tx
        .query(
            "SELECT slow_until - {now} FROM campaign_lanes WHERE campaign_id = $1 AND lane = $2 AND slow_until > {now}",
            &params![campaign, lane],
        )
        .await?;
    let pause = first(rows).map(|mut row| row.int()).transpose()?;
    Ok(pause.unwrap_or(0).max(0))
}

/// Counts what a reply of a model cost, for it and for its provider.
pub(crate) async fn spend(tx: Tx<'_>, campaign: i64, lane: i64, cost: i64) -> Result<()> {
    let mut next = Some(lane);
    // The row of a provider has no provider itself.
    for _ in 0..2 {
        let Some(lane) = next else { break };
        let rows = tx
            .query(
                "UPDATE campaign_lanes SET used_cost = used_cost + $3 WHERE campaign_id = $1 AND lane = $2 RETURNING provider",
                &params![campaign, lane, cost.max(0)],
            )
            .await?;
        next = first(rows)
            .map(|mut row| row.int_or_null())
            .transpose()?
            .flatten();
    }
    Ok(())
}

/// Has everybody wait with a model for as long as its provider asks.
pub(crate) async fn slow_down(
    tx: Tx<'_>,
    campaign: i64,
    lane: i64,
    pause_ms: Millis,
) -> Result<()> {
    tx.execute(
        "UPDATE campaign_lanes SET slowed = slowed + 1, slow_until = CASE WHEN slow_until > {now} + $3 \
         THEN slow_until ELSE {now} + $3 END WHERE campaign_id = $1 AND lane = $2",
        &params![campaign, lane, pause_ms.max(0)],
    )
    .await?;
    Ok(())
}
