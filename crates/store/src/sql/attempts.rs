//! Statements about attempts: so many at once, and then one each time a period is over, counted for all processes together.

use super::row::first;
use super::transaction::{Tx, name, params};
use crate::error::Result;
use crate::model::{AttemptQuota, Millis};

/// Takes one attempt; how long to wait if none is left.
pub(crate) async fn take(
    tx: Tx<'_>,
    kind: &str,
    who: &str,
    quota: AttemptQuota,
) -> Result<Option<Millis>> {
    tx.execute("DELETE FROM attempts WHERE free_at <= {now}", &[])
        .await?;
    // Each attempt moves the time from which on all is forgotten by a period; it may be so many periods ahead.
    let ahead = quota.period_ms.saturating_mul(quota.burst.max(1) - 1);
    let taken = tx
        .query(
            "INSERT INTO attempts (kind, who, free_at) VALUES ($1, $2, {now} + $3) ON CONFLICT (kind, who) DO UPDATE \
             SET free_at = CASE WHEN attempts.free_at > {now} THEN attempts.free_at ELSE {now} END + $3 \
             WHERE attempts.free_at <= {now} + $4 RETURNING free_at",
            &params![name("the kind", kind)?, name("who tries", who)?, quota.period_ms, ahead],
        )
        .await?;
    if !taken.is_empty() {
        return Ok(None);
    }
    let rows = tx
        .query(
            "SELECT free_at - {now} - $3 FROM attempts WHERE kind = $1 AND who = $2",
            &params![kind, who, ahead],
        )
        .await?;
    let wait = first(rows).map(|mut row| row.int()).transpose()?;
    Ok(Some(wait.unwrap_or(0).max(1)))
}
