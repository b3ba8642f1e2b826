//! Manifests over HTTP: what is loaded, what is wrong with it, and what schedules and triggers did.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{May, ReadManifests};
use super::{Api, ManifestView, TriggerView};
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
    May(caller, _): May<ReadManifests>,
) -> Result<Json<ManifestList>, Problem> {
    let manifests = api.engine().manifests();
    let store = api.seen_by(&caller);
    let files = manifests.files.iter().filter_map(|file| store.file(file));
    let files = files.map(|file| ManifestView::of(&file)).collect();
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
    May(caller, _): May<ReadManifests>,
) -> Result<Json<TriggerList>, Problem> {
    let starts = api.seen_by(&caller).triggers().await?;
    let engine = api.engine();
    let starts = starts.into_iter().map(|one| TriggerView::of(one, engine));
    let starts = starts.collect();
    Ok(Json(TriggerList { starts }))
}
