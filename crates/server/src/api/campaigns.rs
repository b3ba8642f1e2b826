//! Campaigns over HTTP: which there are, how far they are and what they came to, started again from their plans, and cancelled.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use proofhouse_fleet::{FleetError, trend};
use proofhouse_store::model::CampaignFilter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::caller::{May, OperateCampaigns, ReadCampaigns};
use super::campaign_views::{
    CampaignDetailView, CampaignModelView, CampaignPulseView, CampaignRateView, CampaignReasonView,
    CampaignView, CampaignWorkerView, TrendPointView,
};
use super::tasks::page;
use super::{Api, Caller, JsonBody, Path, Query, operations, store_problem};
use crate::problem::Problem;

/// The version that reads plans.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// What the words of the library mean to a client.
pub(crate) fn fleet_problem(error: FleetError) -> Problem {
    match error {
        FleetError::Store(error) => store_problem(error),
        FleetError::NoCampaign { .. } | FleetError::Name(_) => {
            Problem::not_found(error.to_string())
        }
        FleetError::Plan(_)
        | FleetError::Subject { .. }
        | FleetError::Caps(_)
        | FleetError::StillPlanned(_)
        | FleetError::OtherModel { .. }
        | FleetError::NoKey { .. }
        | FleetError::Refused { .. } => Problem::conflict(error.to_string()),
        FleetError::OpenSubject { .. }
        | FleetError::Document(_)
        | FleetError::Damaged { .. }
        | FleetError::Traces(_)
        | FleetError::Directory(_) => {
            // The cause may name files and hosts; it is for the operator.
            tracing::error!(%error, "a campaign cannot be read");
            Problem::unavailable("the campaign cannot be read; the log of the server says why")
        }
    }
}

/// Which campaigns.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListCampaigns {
    /// Only those of this name.
    name: Option<String>,
    /// Those before this one: what `next` was.
    before: Option<i64>,
    /// How many, 50 unless said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Campaigns, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CampaignList {
    campaigns: Vec<CampaignView>,
    /// What `before` is for the next page; none at the end.
    next: Option<i64>,
}

/// List campaigns, newest first
#[utoipa::path(
    get, path = "/v1/campaigns", tag = "campaigns", security(("key" = [])), params(ListCampaigns),
    responses(
        (status = 200, body = CampaignList),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Query(query): Query<ListCampaigns>,
) -> Result<Json<CampaignList>, Problem> {
    let limit = page(query.limit)?;
    let filter = CampaignFilter {
        name: query.name,
        before: query.before,
        limit,
        ..CampaignFilter::default()
    };
    let campaigns = api.seen_by(&caller).campaigns(filter).await?;
    let full = campaigns.len() == limit;
    let next = campaigns.last().filter(|_| full).map(|last| last.id);
    let campaigns = campaigns.into_iter().map(Into::into).collect();
    Ok(Json(CampaignList { campaigns, next }))
}

/// Show how far a campaign is, what it came to, and who works on it
#[utoipa::path(
    get, path = "/v1/campaigns/{campaign}", tag = "campaigns", security(("key" = [])),
    params(("campaign" = String, Path, description = "NAME for the newest of that name, or NAME@NUMBER")),
    responses(
        (status = 200, body = CampaignDetailView),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Path(campaign): Path<String>,
) -> Result<Json<CampaignDetailView>, Problem> {
    detail(&api, &caller, &campaign).await.map(Json)
}

/// Everything about a campaign but its runs.
pub(crate) async fn detail(
    api: &Api,
    caller: &Caller,
    name: &str,
) -> Result<CampaignDetailView, Problem> {
    let campaign = api.seen_by(caller).campaign(name).await?;
    let (store, id) = (api.store.as_ref(), campaign.id);
    let pulse = store.campaign_pulse(id).await.map_err(store_problem)?;
    let counts = store.campaign_counts(id).await.map_err(store_problem)?;
    let lanes = store.campaign_lanes(id).await.map_err(store_problem)?;
    let workers = store.campaign_workers(id).await.map_err(store_problem)?;
    let came_to = trend::of_campaign(store, &campaign, &counts, PROGRAM).await;
    let came_to = came_to.map_err(fleet_problem)?;
    let (rates, reasons) = (came_to.rates.iter(), came_to.reasons.iter());
    Ok(CampaignDetailView {
        campaign: campaign.into(),
        progress: CampaignPulseView::from(pulse),
        rates: rates.map(CampaignRateView::of).collect(),
        reasons: reasons.map(CampaignReasonView::of).collect(),
        models: lanes.into_iter().map(CampaignModelView::from).collect(),
        workers: workers.into_iter().map(CampaignWorkerView::from).collect(),
    })
}

/// How the attack success of a name changes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CampaignTrend {
    /// The name.
    name: String,
    /// The rates of its campaigns by subject and category, oldest campaign first.
    points: Vec<TrendPointView>,
}

/// Show the attack success of all campaigns of a name over time, per subject and category, with intervals
#[utoipa::path(
    get, path = "/v1/campaigns/{campaign}/trend", tag = "campaigns", security(("key" = [])),
    params(("campaign" = String, Path, description = "The name, or one of its campaigns")),
    responses(
        (status = 200, body = CampaignTrend),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn trend(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Path(campaign): Path<String>,
) -> Result<Json<CampaignTrend>, Problem> {
    let (name, points) = trend_of(&api, &caller, &campaign).await?;
    Ok(Json(CampaignTrend { name, points }))
}

/// The rates of the campaigns that have the name of this one.
pub(crate) async fn trend_of(
    api: &Api,
    caller: &Caller,
    name: &str,
) -> Result<(String, Vec<TrendPointView>), Problem> {
    let campaign = api.seen_by(caller).campaign(name).await?;
    let namespaces = caller.namespaces().list().map(<[String]>::to_vec);
    let points = trend::read(api.store.as_ref(), &campaign.name, namespaces, PROGRAM).await;
    let points = points.map_err(fleet_problem)?;
    let points = points.iter().map(TrendPointView::of).collect();
    Ok((campaign.name, points))
}

/// A campaign to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartCampaign {
    /// The campaign whose plan is used: NAME for the newest of that name, or NAME@NUMBER.
    #[schema(min_length = 1)]
    campaign: String,
}

/// Start a campaign from the plan of an earlier one
///
/// It gets the same name and the next number, the same documents, subjects, seed and caps. Nothing is run here: workers
/// (`proofhouse worker --name NAME`) pick it up. 409 while another campaign of the name is not over.
#[utoipa::path(
    post, path = "/v1/campaigns", tag = "campaigns", security(("key" = [])), request_body = StartCampaign,
    responses(
        (status = 201, body = CampaignView),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn start(
    State(api): State<Arc<Api>>,
    May(caller, _): May<OperateCampaigns>,
    JsonBody(start): JsonBody<StartCampaign>,
) -> Result<(StatusCode, Json<CampaignView>), Problem> {
    let started = operations::start_campaign(&api, &caller, &start.campaign, None).await?;
    Ok((StatusCode::CREATED, Json(started.into())))
}

/// Hand out no further runs of a campaign, and end those under way
#[utoipa::path(
    post, path = "/v1/campaigns/{campaign}/cancel", tag = "campaigns", security(("key" = [])),
    params(("campaign" = String, Path, description = "NAME for the newest of that name, or NAME@NUMBER")),
    responses(
        (status = 204),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    May(caller, _): May<OperateCampaigns>,
    Path(campaign): Path<String>,
) -> Result<StatusCode, Problem> {
    operations::cancel_campaign(&api, &caller, &campaign, None).await?;
    Ok(StatusCode::NO_CONTENT)
}
