//! Statements about events: received once, claimed by one process, routed once per attempt.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::row::{SqlRow, first};
use super::transaction::{self, SqlValue, Tx, name, params, short};
use super::{channels, deliveries, page, tasks, triggers};
use crate::error::{Result, StoreError};
use crate::model::limits::{MAX_BATCH, MAX_PAYLOAD_BYTES};
use crate::model::{
    ClaimedEvent, EventClaim, EventDetail, EventFilter, EventKind, EventRecord, EventRouting,
    EventState, EventSummary, Millis, NewEvent, ReceiveOutcome, RepeatRule, ToolRef,
};

macro_rules! columns {
    () => {
        "id, source, tool_namespace, tool, name, kind, dedupe_key, target_task, state, attempt, fate, matched, \
         received_at, routed_at, length(payload)"
    };
}

fn read_summary(row: &mut SqlRow) -> Result<EventSummary> {
    Ok(EventSummary {
        id: row.int()?,
        source: row.text()?,
        tool: ToolRef {
            namespace: row.text()?,
            name: row.text()?,
        },
        name: row.text_or_null()?,
        kind: row.word(EventKind::from_word)?,
        dedupe_key: row.text_or_null()?,
        target_task: row.text_or_null()?,
        state: row.word(EventState::from_word)?,
        attempt: row.int()?,
        outcome: row.json_or_null()?,
        matched: row.int()?,
        received_at: row.int()?,
        routed_at: row.int_or_null()?,
        payload_bytes: row.int()?,
    })
}

fn read(row: &mut SqlRow) -> Result<EventRecord> {
    Ok(EventRecord {
        summary: read_summary(row)?,
        headers: row.json()?,
        payload: row.bytes()?,
    })
}

fn missing(id: i64) -> StoreError {
    StoreError::NotFound(format!("event {id}"))
}

/// Refuses more than one transaction takes.
fn batch(what: &str, size: usize) -> Result<()> {
    if size > MAX_BATCH {
        return Err(StoreError::TooLarge {
            what: what.to_owned(),
            size,
            limit: MAX_BATCH,
        });
    }
    Ok(())
}

const INSERT: &str = "INSERT INTO events (source, tool_namespace, tool, name, kind, dedupe_key, headers, payload, \
     target_task, state, attempt, received_at, claim_until, claim_fence) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'received', 1, {now}, 0, 0) \
     ON CONFLICT (source, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING {inserted id}";

/// How long after one channel the other may tell of the same event.
const OVERLAP_MS: Millis = 30_000;

/// Stores events.
pub(crate) async fn receive(tx: Tx<'_>, events: &[NewEvent]) -> Result<Vec<ReceiveOutcome>> {
    batch("a batch of events", events.len())?;
    let is_pushed = |event: &NewEvent| matches!(event.repeats, RepeatRule::AcrossChannels { .. });
    if !events.iter().any(is_pushed) {
        return insert(tx, events).await;
    }
    let mut received = Vec::with_capacity(events.len());
    for event in events {
        received.push(match &event.repeats {
            RepeatRule::AcrossChannels { channel, digest } => {
                through_channel(tx, event, channel, digest).await?
            }
            RepeatRule::Kept | RepeatRule::Within(_) => insert_one(tx, event).await?,
        });
    }
    Ok(received)
}

/// Stores what came through a channel, unless it is what came through an overlapping one.
async fn through_channel(
    tx: Tx<'_>,
    event: &NewEvent,
    channel: &str,
    digest: &str,
) -> Result<ReceiveOutcome> {
    let others = channels::overlapping(tx, channel, OVERLAP_MS).await?;
    if others.is_empty() {
        return insert_one(tx, event).await;
    }
    for other in others {
        let rows = tx
            .query(
                "UPDATE events SET dedupe_key = NULL WHERE id = (SELECT MIN(id) FROM events WHERE source = $1 \
                 AND dedupe_key IS NOT NULL AND dedupe_key LIKE $2 AND received_at > {now} - $3) RETURNING id",
                &params![
                    &pushed_source(&other),
                    &format!("pair:{digest}:%"),
                    OVERLAP_MS
                ],
            )
            .await?;
        if let Some(mut row) = first(rows) {
            return Ok(ReceiveOutcome::Duplicate(row.int()?));
        }
    }
    // The number makes the key one of its own: the same document may be edited twice.
    let rows = tx
        .query("SELECT COALESCE(MAX(id), 0) FROM events", &[])
        .await?;
    let newest = first(rows).map_or(Ok(0), |mut row| row.int())?;
    let first_copy = NewEvent {
        source: pushed_source(channel),
        dedupe_key: Some(format!("pair:{digest}:{newest}")),
        ..event.clone()
    };
    insert_one(tx, &first_copy).await
}

fn pushed_source(channel: &str) -> String {
    format!("channel:{channel}")
}

async fn insert_one(tx: Tx<'_>, event: &NewEvent) -> Result<ReceiveOutcome> {
    let inserted = insert(tx, std::slice::from_ref(event)).await?;
    let gone = || StoreError::Corrupt("an insertion gave nothing".to_owned());
    inserted.first().copied().ok_or_else(gone)
}

async fn insert(tx: Tx<'_>, events: &[NewEvent]) -> Result<Vec<ReceiveOutcome>> {
    let rows: Vec<_> = events.iter().map(columns_of).collect::<Result<_>>()?;
    let inserted = tx.insert_each(INSERT, &rows).await?;
    let mut received = Vec::with_capacity(events.len());
    for (event, id) in events.iter().zip(inserted) {
        received.push(match id {
            Some(id) => ReceiveOutcome::Stored(id),
            None => repeated(tx, event).await?,
        });
    }
    Ok(received)
}

/// What becomes of an event whose key is there: it is a duplicate, unless the time of the first one is over.
async fn repeated(tx: Tx<'_>, event: &NewEvent) -> Result<ReceiveOutcome> {
    if let RepeatRule::Within(window) = event.repeats {
        let freed = tx
            .execute(
                "UPDATE events SET dedupe_key = NULL WHERE source = $1 AND dedupe_key = $2 \
                 AND received_at <= {now} - $3",
                &params![&event.source, event.dedupe_key.as_deref(), window],
            )
            .await?;
        if freed > 0 {
            let rows = [columns_of(event)?];
            let inserted = tx.insert_each(INSERT, &rows).await?;
            if let Some(Some(id)) = inserted.first() {
                return Ok(ReceiveOutcome::Stored(*id));
            }
        }
    }
    Ok(ReceiveOutcome::Duplicate(known(tx, event).await?))
}

fn columns_of(event: &NewEvent) -> Result<Vec<SqlValue<'_>>> {
    let headers = event.headers.as_str();
    transaction::not_too_long("the headers of the event", headers)?;
    if event.payload.len() > MAX_PAYLOAD_BYTES {
        return Err(StoreError::TooLarge {
            what: "the payload of an event, in bytes,".to_owned(),
            size: event.payload.len(),
            limit: MAX_PAYLOAD_BYTES,
        });
    }
    let key = event
        .dedupe_key
        .as_deref()
        .map(|key| name("the key of the event", key))
        .transpose()?;
    let event_name = event
        .name
        .as_deref()
        .map(|value| name("the name of the event", value))
        .transpose()?;
    Ok(vec![
        name("the source of the event", &event.source)?.into(),
        short("the namespace of the tool", &event.tool.namespace)?.into(),
        name("the name of the tool", &event.tool.name)?.into(),
        event_name.into(),
        event.kind.as_str().into(),
        key.into(),
        headers.into(),
        SqlValue::Bytes(Cow::Borrowed(&event.payload)),
        event.target_task.as_deref().into(),
    ])
}

/// The event that has the key of this one.
async fn known(tx: Tx<'_>, event: &NewEvent) -> Result<i64> {
    let rows = tx
        .query(
            "SELECT id FROM events WHERE source = $1 AND dedupe_key = $2",
            &params![&event.source, event.dedupe_key.as_deref()],
        )
        .await?;
    // A sweep can take the key away between the two statements.
    let gone = || {
        StoreError::Conflict(
            "the first copy of the event was removed just now; try again".to_owned(),
        )
    };
    first(rows).ok_or_else(gone)?.int()
}

pub(crate) async fn claim(
    tx: Tx<'_>,
    owner: &str,
    lease_ms: Millis,
    limit: usize,
) -> Result<Vec<ClaimedEvent>> {
    let rows = tx
        .query(
            concat!(
                "WITH free AS MATERIALIZED (SELECT id FROM events WHERE state = 'received' AND claim_until <= {now} \
                 ORDER BY id LIMIT $3 {skip_locked}) \
                 UPDATE events SET claim_owner = $1, claim_until = {now} + $2, claim_fence = claim_fence + 1 \
                 WHERE id IN (SELECT id FROM free) RETURNING claim_fence, ",
                columns!(),
                ", headers, payload"
            ),
            &params![name("the owner", owner)?, lease_ms, page(limit)],
        )
        .await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for mut row in rows {
        let fence = row.int()?;
        let event = read(&mut row)?;
        let claim = EventClaim {
            event: event.summary.id,
            attempt: event.summary.attempt,
            fence,
        };
        claimed.push(ClaimedEvent { claim, event });
    }
    claimed.sort_by_key(|claimed| claimed.claim.event);
    Ok(claimed)
}

pub(crate) async fn unclaim(tx: Tx<'_>, claim: EventClaim) -> Result<()> {
    tx.execute(
        "UPDATE events SET claim_owner = NULL, claim_until = 0, claim_fence = claim_fence + 1 \
         WHERE id = $1 AND claim_fence = $2 AND state = 'received'",
        &params![claim.event, claim.fence],
    )
    .await?;
    Ok(())
}

pub(crate) async fn route(tx: Tx<'_>, routing: &EventRouting) -> Result<Vec<i64>> {
    still_ours(tx, routing.claim).await?;
    decide(tx, routing).await
}

/// Records many decisions. A claim that is lost is told beside the others, for nothing was written for it; any other
/// error undoes all.
pub(crate) async fn route_all(
    tx: Tx<'_>,
    routings: &[EventRouting],
) -> Result<Vec<Result<Vec<i64>>>> {
    batch("a batch of decisions", routings.len())?;
    // All tasks at once and in order: two processes that route to the same tasks must not wait for each other.
    let deliveries = routings.iter().flat_map(|routing| &routing.deliveries);
    deliveries::lock_tasks(tx, deliveries).await?;
    let mut routed = Vec::with_capacity(routings.len());
    for routing in routings {
        routed.push(match still_ours(tx, routing.claim).await {
            Ok(()) => Ok(decide(tx, routing).await?),
            Err(
                lost @ (StoreError::Fenced(_) | StoreError::Conflict(_) | StoreError::NotFound(_)),
            ) => Err(lost),
            Err(error) => return Err(error),
        });
    }
    Ok(routed)
}

/// Whether a claim still holds, for an event that is still to be routed.
async fn still_ours(tx: Tx<'_>, claim: EventClaim) -> Result<()> {
    let rows = tx
        .query(
            "SELECT state, attempt, claim_fence FROM events WHERE id = $1 {lock}",
            &params![claim.event],
        )
        .await?;
    let mut row = first(rows).ok_or_else(|| missing(claim.event))?;
    let state = row.word(EventState::from_word)?;
    if row.int()? != claim.attempt || row.int()? != claim.fence {
        return Err(StoreError::Fenced(format!("event {}", claim.event)));
    }
    if state != EventState::ReceiveOutcome {
        return Err(StoreError::Conflict(format!(
            "event {} is routed already",
            claim.event
        )));
    }
    Ok(())
}

/// Writes down what was decided about an event.
async fn decide(tx: Tx<'_>, routing: &EventRouting) -> Result<Vec<i64>> {
    let claim = routing.claim;
    for (key, task) in &routing.tasks {
        tasks::create(tx, task).await?;
        triggers::began(tx, key, &task.id).await?;
    }
    let (ids, mut matched) =
        deliveries::add(tx, claim.event, claim.attempt, &routing.deliveries).await?;
    // A task that a trigger began got the event as its first input.
    let firsts = routing
        .tasks
        .iter()
        .filter(|(_, task)| task.first.is_some())
        .count();
    matched += i64::try_from(firsts).unwrap_or(i64::MAX);
    tx.execute(
        "UPDATE events SET state = 'routed', fate = $2, matched = $3, routed_at = {now}, claim_owner = NULL, \
         claim_until = 0, replayed_at = NULL WHERE id = $1",
        &[claim.event.into(), transaction::json("the outcome of the event", &routing.outcome)?, matched.into()],
    )
    .await?;
    Ok(ids)
}

pub(crate) async fn list(tx: Tx<'_>, filter: &EventFilter) -> Result<Vec<EventSummary>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM events e WHERE e.id < $1 AND (CAST($2 AS TEXT) IS NULL OR e.source = $2) \
                 AND (CAST($3 AS TEXT) IS NULL OR e.tool = $3) AND (CAST($4 AS TEXT) IS NULL OR e.kind = $4) \
                 AND (CAST($5 AS TEXT) IS NULL OR e.state = $5) \
                 AND (CAST($6 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id \
                 AND d.task_id = $6)) \
                 AND (CAST($7 AS BIGINT) IS NULL OR (e.state = 'routed' AND (e.matched = 0) = (CAST($7 AS BIGINT) = 1))) \
                 AND (CAST($9 AS TEXT) IS NULL OR {among e.tool_namespace 9} OR EXISTS (SELECT 1 FROM deliveries d \
                 JOIN tasks t ON t.id = d.task_id WHERE d.event_id = e.id AND {among t.agent_namespace 9})) \
                 ORDER BY e.id DESC LIMIT $8"
            ),
            &params![
                filter.before.unwrap_or(i64::MAX),
                filter.source.as_deref(),
                filter.tool.as_deref(),
                filter.kind.map(EventKind::as_str),
                filter.state.map(EventState::as_str),
                filter.task.as_deref(),
                filter.discarded,
                page(filter.limit),
                transaction::list_or_null(filter.namespaces.as_deref()).as_deref(),
            ],
        )
        .await?;
    rows.into_iter()
        .map(|mut row| read_summary(&mut row))
        .collect()
}

/// The event alone.
pub(crate) async fn record(tx: Tx<'_>, id: i64) -> Result<EventRecord> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                ", headers, payload FROM events WHERE id = $1"
            ),
            &params![id],
        )
        .await?;
    read(&mut first(rows).ok_or_else(|| missing(id))?)
}

pub(crate) async fn get(tx: Tx<'_>, id: i64) -> Result<EventDetail> {
    get_among(tx, id, None).await
}

/// The event, with its newest deliveries, as many as a page has: all, or those to tasks of agents in these namespaces.
async fn get_among(tx: Tx<'_>, id: i64, namespaces: Option<&[String]>) -> Result<EventDetail> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                ", headers, payload, earlier FROM events WHERE id = $1"
            ),
            &params![id],
        )
        .await?;
    let mut row = first(rows).ok_or_else(|| missing(id))?;
    Ok(EventDetail {
        event: read(&mut row)?,
        earlier: list_of_json(row.json()?)?,
        deliveries: deliveries::of_event(tx, id, namespaces).await?,
    })
}

/// The event as those see it who may see these namespaces: with deliveries to their tasks only. One that is neither for a tool
/// of theirs nor was given to a task of theirs is not there.
pub(crate) async fn get_for(tx: Tx<'_>, id: i64, namespaces: &[String]) -> Result<EventDetail> {
    let detail = get_among(tx, id, Some(namespaces)).await?;
    let is_theirs = namespaces.contains(&detail.event.summary.tool.namespace);
    if !is_theirs && detail.deliveries.is_empty() {
        return Err(missing(id));
    }
    Ok(detail)
}

fn list_of_json(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(StoreError::Corrupt(
            "the earlier outcomes of an event are no list".to_owned(),
        )),
    }
}

pub(crate) async fn replay(tx: Tx<'_>, id: i64) -> Result<i64> {
    let rows = tx
        .query(
            "SELECT state, attempt, fate, routed_at, earlier FROM events WHERE id = $1 {lock}",
            &params![id],
        )
        .await?;
    let mut row = first(rows).ok_or_else(|| missing(id))?;
    if row.word(EventState::from_word)? != EventState::Routed {
        return Err(StoreError::Conflict(format!(
            "event {id} is still to be routed"
        )));
    }
    let attempt = row.int()?;
    let outcome = row.json_or_null()?;
    let routed_at = row.int_or_null()?;
    let mut earlier = list_of_json(row.json()?)?;
    earlier.push(json!({ "attempt": attempt, "fate": outcome, "routed_at": routed_at }));
    tx.execute(
        "UPDATE events SET state = 'received', attempt = $2, earlier = $3, fate = NULL, matched = 0, routed_at = NULL, \
         replayed_at = {now}, claim_owner = NULL, claim_until = 0, claim_fence = claim_fence + 1 WHERE id = $1",
        &[id.into(), (attempt + 1).into(), transaction::json("the outcomes of the event", &Value::Array(earlier))?],
    )
    .await?;
    Ok(attempt + 1)
}
