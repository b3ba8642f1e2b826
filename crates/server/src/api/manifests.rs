//! Manifests over HTTP: what is loaded, what is wrong with it, and what schedules and triggers did.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Api, Caller, ManifestView, TriggerView, store_problem};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// The files of the directory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ManifestList {
    files: Vec<ManifestView>,
}

/// List the files of manifests with what is wrong with them
#[utoipa::path(
    get, path = "/v1/manifests", tag = "manifests", security(("key" = [])),
    responses(
        (status = 200, body = ManifestList),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    caller: Caller,
) -> Result<Json<ManifestList>, Problem> {
    caller.needs(KeyScope::ManifestsRead)?;
    let manifests = api.engine().manifests();
    let files = manifests.files.iter().map(ManifestView::of).collect();
    Ok(Json(ManifestList { files }))
}

/// What schedules and triggers did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TriggerList {
    starts: Vec<TriggerView>,
}

/// List what schedules and triggers did so far, also those that were removed
#[utoipa::path(
    get, path = "/v1/starts", tag = "manifests", security(("key" = [])),
    responses(
        (status = 200, body = TriggerList),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn starts(
    State(api): State<Arc<Api>>,
    caller: Caller,
) -> Result<Json<TriggerList>, Problem> {
    caller.needs(KeyScope::ManifestsRead)?;
    let starts = api.store.triggers().await.map_err(store_problem)?;
    let engine = api.engine();
    let starts = starts.into_iter().map(|one| TriggerView::of(one, engine));
    let starts = starts.collect();
    Ok(Json(TriggerList { starts }))
}
