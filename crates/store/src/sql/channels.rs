//! Statements about channels.

use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, json_or_null, name, params, short, truncated};
use super::{leases, page};
use crate::error::{Result, StoreError};
use crate::model::{
    ChannelFilter, ChannelRecord, ChannelState, ChannelToClose, ChannelUpdate, ClaimedChannel,
    CloseReason, LeaseKind, Millis, NewChannel, ToolRef,
};

macro_rules! columns {
    () => {
        "c.id, c.callback, c.task_id, c.tool_namespace, c.tool, c.event, c.state, c.expires_at, c.renew_at, c.response, c.replaces, \
         c.failures, c.last_error, c.created_at, c.updated_at"
    };
}

fn read(row: &mut SqlRow) -> Result<ChannelRecord> {
    Ok(ChannelRecord {
        id: row.text()?,
        callback: row.text_or_null()?,
        task: row.text()?,
        tool: ToolRef {
            namespace: row.text()?,
            name: row.text()?,
        },
        event: row.text()?,
        state: row.word(ChannelState::from_word)?,
        expires_at: row.int_or_null()?,
        renew_at: row.int_or_null()?,
        response: row.json_or_null()?,
        replaces: row.text_or_null()?,
        failures: row.int()?,
        last_error: row.text_or_null()?,
        created_at: row.int()?,
        updated_at: row.int()?,
    })
}

pub(crate) async fn open(
    tx: Tx<'_>,
    new: &NewChannel,
    owner: &str,
    lease_ms: Millis,
) -> Result<ClaimedChannel> {
    let inserted = tx
        .query(
            "INSERT INTO channels (id, callback, task_id, tool_namespace, tool, event, state, expires_at, replaces, \
             failures, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, 'subscribing', $7, $8, 0, {now}, {now}) \
             ON CONFLICT (id) DO NOTHING RETURNING id",
            &params![
                name("the id of the channel", &new.id)?,
                name("the callback of the channel", &new.callback)?,
                name("the id of the task", &new.task)?,
                short("the namespace of the tool", &new.tool.namespace)?,
                name("the name of the tool", &new.tool.name)?,
                name("the name of the event", &new.event)?,
                new.expires_at,
                new.replaces.as_deref(),
            ],
        )
        .await?;
    if inserted.is_empty() {
        return Err(StoreError::Conflict(format!(
            "there is a channel `{}`",
            new.id
        )));
    }
    let lease = leases::acquire(tx, LeaseKind::Channel, &new.id, owner, lease_ms)
        .await?
        .ok_or_else(|| StoreError::Conflict(format!("somebody holds channel `{}`", new.id)))?;
    let channel = get(tx, &new.id).await?;
    Ok(ClaimedChannel { channel, lease })
}

pub(crate) async fn get(tx: Tx<'_>, id: &str) -> Result<ChannelRecord> {
    let rows = tx
        .query(
            concat!("SELECT ", columns!(), " FROM channels c WHERE c.id = $1"),
            &params![id],
        )
        .await?;
    let mut row = first(rows).ok_or_else(|| StoreError::NotFound(format!("channel `{id}`")))?;
    read(&mut row)
}

/// The channel of a callback address.
pub(crate) async fn at(tx: Tx<'_>, callback: &str) -> Result<ChannelRecord> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM channels c WHERE c.callback = $1"
            ),
            &params![callback],
        )
        .await?;
    // The callback is a secret, so an error does not repeat it.
    let mut row = first(rows).ok_or_else(|| StoreError::NotFound("such a channel".to_owned()))?;
    read(&mut row)
}

/// The channels that are told of the same things as this one: the one it replaces and those that replace it, unless they
/// have been closed for so long. They are locked, so that of two copies of an event one is the first.
pub(crate) async fn overlapping(
    tx: Tx<'_>,
    channel: &str,
    closed_ms: Millis,
) -> Result<Vec<String>> {
    let rows = tx
        .query(
            "SELECT c.id FROM channels c WHERE c.id = $1 OR ((c.replaces = $1 OR c.id = (SELECT o.replaces \
             FROM channels o WHERE o.id = $1)) AND (c.state NOT IN ('closed', 'lost') OR c.updated_at > {now} - $2)) \
             ORDER BY c.number {lock}",
            &params![channel, closed_ms],
        )
        .await?;
    let ids = rows.into_iter().map(|mut row| row.text());
    let ids = ids.collect::<Result<Vec<_>>>()?;
    Ok(ids.into_iter().filter(|id| id != channel).collect())
}

pub(crate) async fn list(tx: Tx<'_>, filter: &ChannelFilter) -> Result<Vec<ChannelRecord>> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM channels c WHERE (CAST($1 AS TEXT) IS NULL OR c.task_id = $1) \
                 AND (CAST($2 AS TEXT) IS NULL OR c.state = $2) ORDER BY c.number LIMIT $3"
            ),
            &params![
                filter.task.as_deref(),
                filter.state.map(ChannelState::as_str),
                page(filter.limit)
            ],
        )
        .await?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

pub(crate) async fn update(tx: Tx<'_>, update: &ChannelUpdate) -> Result<ChannelRecord> {
    let rows = tx
        .query(
            concat!(
                "SELECT ",
                columns!(),
                " FROM channels c WHERE c.id = $1 {lock}"
            ),
            &params![&update.id],
        )
        .await?;
    let mut row =
        first(rows).ok_or_else(|| StoreError::NotFound(format!("channel `{}`", update.id)))?;
    let channel = read(&mut row)?;
    if let Some(held) = &update.held {
        leases::check(tx, held, LeaseKind::Channel, &update.id).await?;
    }
    if !update.from.is_empty() && !update.from.contains(&channel.state) {
        return Err(StoreError::Conflict(format!(
            "channel `{}` is {}",
            channel.id, channel.state
        )));
    }
    tx.execute(
        "UPDATE channels SET state = COALESCE($2, state), expires_at = COALESCE($3, expires_at), \
         renew_at = COALESCE($4, renew_at), response = COALESCE($5, response), failures = COALESCE($6, failures), \
         last_error = $7, updated_at = {now} WHERE id = $1",
        &[
            (&update.id).into(),
            update.to.map(ChannelState::as_str).into(),
            update.expires_at.into(),
            update.renew_at.into(),
            json_or_null("the response of the platform", update.response.as_ref())?,
            update.failures.into(),
            update.last_error.as_deref().map_or(SqlValue::Null, truncated),
        ],
    )
    .await?;
    if let (Some(ChannelState::Active), Some(replaced)) = (update.to, &channel.replaces) {
        // It is closed by the sweep at once, not at the time it would have been renewed.
        tx.execute(
            "UPDATE channels SET state = 'replaced', renew_at = NULL, failures = 0, updated_at = {now} \
             WHERE id = $1 AND state = 'active'",
            &params![replaced],
        )
        .await?;
    }
    if let (true, Some(held)) = (update.release, &update.held) {
        leases::release(tx, held).await?;
    }
    get(tx, &update.id).await
}

pub(crate) async fn claim_renewals(
    tx: Tx<'_>,
    owner: &str,
    lease_ms: Millis,
    limit: usize,
) -> Result<Vec<ClaimedChannel>> {
    let rows = tx
        .query(
            concat!(
                "WITH due AS MATERIALIZED (SELECT c.id FROM channels c JOIN tasks t ON t.id = c.task_id \
                 WHERE c.state = 'active' AND c.renew_at <= {now} AND t.state <> 'interrupted' AND t.state <> 'ended' \
                 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'channel' AND l.name = c.id AND l.until > {now}) \
                 ORDER BY c.renew_at, c.number LIMIT $3 {skip_locked c}) \
                 INSERT INTO leases (kind, name, owner, until, fence) \
                 SELECT 'channel', id, CAST($1 AS TEXT), {now} + $2, 1 FROM due WHERE 1 = 1",
                leases::take_over!()
            ),
            &params![name("the owner", owner)?, lease_ms, page(limit)],
        )
        .await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        let lease = leases::read(row)?;
        let channel = get(tx, &lease.name).await?;
        // Another process may have renewed it between the look and the lease.
        if channel.state != ChannelState::Active {
            leases::release(tx, &lease.held()).await?;
            continue;
        }
        claimed.push(ClaimedChannel { channel, lease });
    }
    claimed.sort_by(|one, other| {
        (one.channel.renew_at, &one.channel.id).cmp(&(other.channel.renew_at, &other.channel.id))
    });
    Ok(claimed)
}

pub(crate) async fn claim_sweeps(
    tx: Tx<'_>,
    owner: &str,
    lease_ms: Millis,
    limit: usize,
) -> Result<Vec<ChannelToClose>> {
    let rows = tx
        .query(
            concat!(
                "WITH stray AS MATERIALIZED (SELECT c.id FROM channels c WHERE c.state NOT IN ('closed', 'lost') \
                 AND (c.state <> 'active' OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = c.task_id \
                 AND t.state <> 'interrupted' AND t.state <> 'ended')) \
                 AND (c.failures = 0 OR c.renew_at IS NULL OR c.renew_at <= {now}) \
                 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.kind = 'channel' AND l.name = c.id AND l.until > {now}) \
                 ORDER BY c.number LIMIT $3 {skip_locked c}) \
                 INSERT INTO leases (kind, name, owner, until, fence) \
                 SELECT 'channel', id, CAST($1 AS TEXT), {now} + $2, 1 FROM stray WHERE 1 = 1",
                leases::take_over!()
            ),
            &params![name("the owner", owner)?, lease_ms, page(limit)],
        )
        .await?;
    let mut swept = Vec::with_capacity(rows.len());
    for row in rows {
        let lease = leases::read(row)?;
        let channel = get(tx, &lease.name).await?;
        match reason(tx, &channel).await? {
            Some(reason) => swept.push(ChannelToClose {
                channel,
                lease,
                reason,
            }),
            None => leases::release(tx, &lease.held()).await?,
        }
    }
    swept.sort_by(|one, other| {
        (one.channel.created_at, &one.channel.id)
            .cmp(&(other.channel.created_at, &other.channel.id))
    });
    Ok(swept)
}

async fn reason(tx: Tx<'_>, channel: &ChannelRecord) -> Result<Option<CloseReason>> {
    match channel.state {
        ChannelState::Closed | ChannelState::Lost => return Ok(None),
        ChannelState::Replaced => return Ok(Some(CloseReason::Replaced)),
        ChannelState::Closing => return Ok(Some(CloseReason::Closing)),
        ChannelState::Subscribing => return Ok(Some(CloseReason::Abandoned)),
        ChannelState::Active => {}
    }
    let rows = tx
        .query(
            "SELECT state FROM tasks WHERE id = $1",
            &params![&channel.task],
        )
        .await?;
    let state = first(rows).map(|mut row| row.text()).transpose()?;
    Ok(match state.as_deref() {
        None | Some("ended") => Some(CloseReason::TaskEnded),
        Some("interrupted") => Some(CloseReason::TaskInterrupted),
        Some(_) => None,
    })
}
