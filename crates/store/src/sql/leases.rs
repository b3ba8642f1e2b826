//! Statements about leases. A fence only grows, so an old owner can be told from the new one.

use super::row::{SqlRow, first};
use super::transaction::{SqlValue, Tx, name, params};
use crate::error::{Result, StoreError};
use crate::model::{HeldLease, Lease, LeaseKind, LeaseRenewal, Millis};

/// What acquiring a lease does to a row that is there: nothing while somebody holds it.
macro_rules! take_over {
    () => {
        " ON CONFLICT (kind, name) DO UPDATE SET owner = excluded.owner, until = excluded.until, \
         fence = leases.fence + 1 WHERE leases.until <= {now} RETURNING kind, name, owner, fence, until"
    };
}
pub(super) use take_over;

pub(super) fn read(mut row: SqlRow) -> Result<Lease> {
    Ok(Lease {
        kind: row.word(LeaseKind::from_word)?,
        name: row.text()?,
        owner: row.text()?,
        fence: row.int()?,
        until: row.int()?,
    })
}

fn fenced(held: &HeldLease) -> StoreError {
    StoreError::Fenced(format!("{} `{}`", held.kind, held.name))
}

/// Refuses unless this is the lease on that and nobody else has acquired it since. Nobody can until the transaction
/// ends.
pub(crate) async fn check(tx: Tx<'_>, held: &HeldLease, kind: LeaseKind, on: &str) -> Result<()> {
    if held.kind != kind || held.name != on {
        return Err(StoreError::Invalid(format!(
            "the lease is on {} `{}`, not on {kind} `{on}`",
            held.kind, held.name
        )));
    }
    let rows = tx
        .query(
            "SELECT 1 FROM leases WHERE kind = $1 AND name = $2 AND fence = $3 AND owner IS NOT NULL {lock}",
            &params![kind.as_str(), on, held.fence],
        )
        .await?;
    if rows.is_empty() {
        Err(fenced(held))
    } else {
        Ok(())
    }
}

pub(crate) async fn is_live(tx: Tx<'_>, kind: LeaseKind, on: &str) -> Result<bool> {
    let rows = tx
        .query(
            "SELECT 1 FROM leases WHERE kind = $1 AND name = $2 AND until > {now}",
            &params![kind.as_str(), on],
        )
        .await?;
    Ok(!rows.is_empty())
}

pub(crate) async fn acquire(
    tx: Tx<'_>,
    kind: LeaseKind,
    on: &str,
    owner: &str,
    lease_ms: Millis,
) -> Result<Option<Lease>> {
    let rows = tx
        .query(
            concat!(
                "INSERT INTO leases (kind, name, owner, until, fence) VALUES ($1, $2, $3, {now} + $4, 1)",
                take_over!()
            ),
            &params![kind.as_str(), name("the name of the lease", on)?, name("the owner", owner)?, lease_ms],
        )
        .await?;
    first(rows).map(read).transpose()
}

/// Renews those that somebody works on, and releases those of the owner that nobody has worked on for a while: one that
/// was taken just now may not be known as worked on yet.
pub(crate) async fn renew(
    tx: Tx<'_>,
    owner: &str,
    lease_ms: Millis,
    worked_on: &[HeldLease],
) -> Result<LeaseRenewal> {
    let each: Vec<Vec<SqlValue<'_>>> = worked_on
        .iter()
        .map(|held| {
            vec![
                owner.into(),
                lease_ms.into(),
                held.kind.as_str().into(),
                (&held.name).into(),
                held.fence.into(),
            ]
        })
        .collect();
    let rows = tx
        .query_each(
            "UPDATE leases SET until = {now} + $2 WHERE kind = $3 AND name = $4 AND fence = $5 AND owner = $1 \
             RETURNING kind, name, owner, fence, until",
            &each,
        )
        .await?;
    let kept = rows.into_iter().flatten().map(read);
    let kept = kept.collect::<Result<Vec<_>>>()?;
    let orphans = tx
        .execute(
            "UPDATE leases SET owner = NULL, until = 0 WHERE owner = $1 AND until <= {now} + $2",
            &params![owner, lease_ms / 3 * 2],
        )
        .await?;
    Ok(LeaseRenewal { kept, orphans })
}

/// Ends leases; those that have moved stay as they are.
pub(crate) async fn release_each(tx: Tx<'_>, held: &[HeldLease]) -> Result<()> {
    let each = held.iter().map(|held| {
        let fence = held.fence.into();
        vec![held.kind.as_str().into(), (&held.name).into(), fence]
    });
    let each: Vec<Vec<SqlValue<'_>>> = each.collect();
    tx.query_each(
        "UPDATE leases SET owner = NULL, until = 0 WHERE kind = $1 AND name = $2 AND fence = $3",
        &each,
    )
    .await?;
    Ok(())
}

pub(crate) async fn release(tx: Tx<'_>, held: &HeldLease) -> Result<()> {
    release_each(tx, std::slice::from_ref(held)).await
}

pub(crate) async fn release_all(tx: Tx<'_>, owner: &str) -> Result<u64> {
    let leases = tx
        .execute(
            "UPDATE leases SET owner = NULL, until = 0 WHERE owner = $1",
            &params![owner],
        )
        .await?;
    let claims = tx
        .execute(
            "UPDATE events SET claim_owner = NULL, claim_until = 0, claim_fence = claim_fence + 1 \
             WHERE state = 'received' AND claim_owner = $1",
            &params![owner],
        )
        .await?;
    Ok(leases + claims)
}
