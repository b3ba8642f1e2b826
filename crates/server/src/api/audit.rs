//! The audit log over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use proofhouse_store::model::{AuditFilter, AuditRecord};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::caller::{May, ReadAudit};
use super::tasks::page;
use super::{Api, Query, moment};
use crate::problem::Problem;

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListAudit {
    /// Those before this one: the number of the last one seen.
    #[param(minimum = 1)]
    before: Option<i64>,
    /// How many, 50 unless said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditEntryView {
    /// Its number, from 1, without gaps.
    seq: i64,
    /// When it was kept.
    at: String,
    /// The namespace it concerns, if it concerns one.
    namespace: Option<String>,
    /// Who did what to which object, from where, and what came of it.
    #[schema(value_type = Object)]
    entry: Value,
    /// The hash over it and the entry before it.
    hash: String,
}

impl From<AuditRecord> for AuditEntryView {
    fn from(record: AuditRecord) -> Self {
        Self {
            seq: record.seq,
            at: moment(record.at),
            namespace: record.namespace,
            entry: serde_json::from_str(&record.entry).unwrap_or_default(),
            hash: record.hash,
        }
    }
}

/// Entries, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditList {
    entries: Vec<AuditEntryView>,
    /// What `before` is for the next page; none at the end.
    next: Option<i64>,
}

/// List the audit log, newest first
///
/// Who did what to which object, from where. A key that is bound to namespaces sees what concerns them. `proofhouse audit
/// verify` checks the chain of hashes.
#[utoipa::path(
    get, path = "/v1/audit", tag = "server", security(("key" = [])), params(ListAudit),
    responses(
        (status = 200, body = AuditList),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadAudit>,
    Query(query): Query<ListAudit>,
) -> Result<Json<AuditList>, Problem> {
    let limit = page(query.limit)?;
    if query.before.is_some_and(|before| before < 1) {
        return Err(Problem::bad_request("`before` is at least 1"));
    }
    // Reading it is worth an entry, too.
    caller.note().is_due();
    let filter = AuditFilter {
        before: Some(query.before.unwrap_or(i64::MAX)),
        limit,
        ..AuditFilter::default()
    };
    let entries = api.seen_by(&caller).audit(filter).await?;
    let full = entries.len() == limit;
    let next = entries.last().filter(|_| full).map(|entry| entry.seq);
    let entries = entries.into_iter().map(Into::into).collect();
    Ok(Json(AuditList { entries, next }))
}
