//! What campaigns found, over HTTP: the report as a page, the result for programs, and what changed since another campaign.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use proofhouse_campaign::baseline::DEFAULT_THRESHOLD;
use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_campaign::result::CampaignResult;
use proofhouse_fleet::name::shown;
use proofhouse_fleet::report;
use proofhouse_report::ReportInput;
use proofhouse_store::model::CampaignRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::caller::{May, ReadCampaigns};
use super::campaigns::{PROGRAM, fleet_problem};
use super::{Api, Caller, Path, Query};
use crate::problem::Problem;

/// The most runs of a campaign that the server reports; it has other things to do.
const MAX_REPORTED: i64 = 20_000;

/// What a report may do: have its own style, and nothing else.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// What to compare with.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BaselineQuery {
    /// Another campaign: NAME for the newest of that name, or NAME@NUMBER.
    pub baseline: Option<String>,
}

/// Show the report of a campaign, also of one that is not finished, as a page
///
/// With `baseline`, it says what changed since that campaign. Traces are not shown; `proofhouse campaigns report --out DIR` has
/// them. 409 if the campaign has more than 20,000 runs.
#[utoipa::path(
    get, path = "/v1/campaigns/{campaign}/report", tag = "campaigns", security(("key" = [])),
    params(
        ("campaign" = String, Path, description = "NAME for the newest of that name, or NAME@NUMBER"),
        BaselineQuery
    ),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn report(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Path(campaign): Path<String>,
    Query(query): Query<BaselineQuery>,
) -> Result<Response, Problem> {
    report_page(&api, &caller, &campaign, query.baseline.as_deref()).await
}

/// The report as a page.
pub(crate) async fn report_page(
    api: &Api,
    caller: &Caller,
    campaign: &str,
    baseline: Option<&str>,
) -> Result<Response, Problem> {
    let text = rendered(api, caller, (campaign, baseline), ReportFormat::Html).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, REPORT_POLICY),
    ];
    Ok((headers, text).into_response())
}

/// The beginning of a result; `proofhouse schema result` has the rest.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes what the library writes")]
struct CampaignResultText {
    /// The version of the format.
    version: u32,
    /// Whether every run was made.
    complete: bool,
    /// The runs.
    #[schema(value_type = Vec<Object>)]
    runs: Vec<Value>,
}

/// Read the result of a campaign, as `result.json` has it
#[utoipa::path(
    get, path = "/v1/campaigns/{campaign}/result", tag = "campaigns", security(("key" = [])),
    params(("campaign" = String, Path, description = "NAME for the newest of that name, or NAME@NUMBER")),
    responses(
        (status = 200, body = CampaignResultText),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn result(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Path(campaign): Path<String>,
) -> Result<Response, Problem> {
    let text = rendered(&api, &caller, (&campaign, None), ReportFormat::Json).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// What changed between two campaigns.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CampaignComparison {
    /// The newer campaign.
    campaign: String,
    /// The one that it is compared with.
    baseline: String,
    /// Whether something is clearly worse.
    regressions: u64,
    /// What changed, as `comparison` in `result.json` has it.
    #[schema(value_type = Object)]
    comparison: Value,
}

/// Compare a campaign with an earlier one
///
/// Without `baseline`, with the one before it of the same name.
#[utoipa::path(
    get, path = "/v1/campaigns/{campaign}/comparison", tag = "campaigns", security(("key" = [])),
    params(
        ("campaign" = String, Path, description = "NAME for the newest of that name, or NAME@NUMBER"),
        BaselineQuery
    ),
    responses(
        (status = 200, body = CampaignComparison),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn comparison(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Path(campaign): Path<String>,
    Query(query): Query<BaselineQuery>,
) -> Result<Json<CampaignComparison>, Problem> {
    let compared = compared(&api, &caller, &campaign, query.baseline.as_deref()).await?;
    Ok(Json(CampaignComparison {
        campaign: compared.campaign,
        regressions: compared.comparison.regressions() as u64,
        baseline: compared.comparison.baseline.clone(),
        comparison: serde_json::to_value(&compared.comparison).unwrap_or_default(),
    }))
}

/// Two campaigns side by side.
pub(crate) struct ComparedCampaigns {
    /// The newer one.
    pub campaign: String,
    /// What changed.
    pub comparison: Comparison,
}

/// Compares a campaign with another, or with the one before it.
pub(crate) async fn compared(
    api: &Api,
    caller: &Caller,
    campaign: &str,
    baseline: Option<&str>,
) -> Result<ComparedCampaigns, Problem> {
    let now = reportable(api, caller, campaign).await?;
    let before = match baseline.filter(|name| !name.is_empty()) {
        Some(baseline) => reportable(api, caller, baseline).await?,
        None => {
            let earlier = format!("{}@{}", now.name, now.number - 1);
            reportable(api, caller, &earlier).await?
        }
    };
    let _turn = turn(api).await?;
    let (now_found, before_found) = (found(api, &now).await?, found(api, &before).await?);
    let comparison = report::compare(
        (&now, &now_found),
        (&before, &before_found),
        DEFAULT_THRESHOLD,
    );
    Ok(ComparedCampaigns {
        campaign: shown(&now),
        comparison,
    })
}

/// The campaign, if it is small enough.
async fn reportable(api: &Api, caller: &Caller, name: &str) -> Result<CampaignRow, Problem> {
    let campaign = api.seen_by(caller).campaign(name).await?;
    if campaign.total > MAX_REPORTED {
        return Err(Problem::conflict(format!(
            "campaign {} has {} runs, more than the {MAX_REPORTED} that the server reports; use `proofhouse campaigns report`",
            shown(&campaign),
            campaign.total
        )));
    }
    Ok(campaign)
}

/// Waits until nobody else has a report made: one at a time is enough memory.
async fn turn(api: &Api) -> Result<tokio::sync::SemaphorePermit<'_>, Problem> {
    let turn = api.reports.acquire().await;
    turn.map_err(|_| Problem::unavailable("the server is shutting down"))
}

async fn found(api: &Api, campaign: &CampaignRow) -> Result<CampaignResult, Problem> {
    let read = report::read(api.store.as_ref(), campaign, PROGRAM).await;
    Ok(read.map_err(fleet_problem)?.result)
}

async fn rendered(
    api: &Api,
    caller: &Caller,
    (campaign, baseline): (&str, Option<&str>),
    format: ReportFormat,
) -> Result<String, Problem> {
    let now = reportable(api, caller, campaign).await?;
    let before = match baseline.filter(|name| !name.is_empty()) {
        Some(baseline) => Some(reportable(api, caller, baseline).await?),
        None => None,
    };
    let _turn = turn(api).await?;
    let result = found(api, &now).await?;
    let comparison = match before {
        Some(before) => {
            let earlier = found(api, &before).await?;
            Some(report::compare(
                (&now, &result),
                (&before, &earlier),
                DEFAULT_THRESHOLD,
            ))
        }
        None => None,
    };
    // Large ones take a while, which the others on this thread should not wait for.
    let rendering = tokio::task::spawn_blocking(move || {
        let input = ReportInput {
            result: &result,
            traces: &Default::default(),
            comparison: comparison.as_ref(),
            config: None,
            directory: None,
            colour: false,
            width: 100,
        };
        proofhouse_report::render(format, &input)
    });
    let failed = |_| Problem::unavailable("the report cannot be made");
    rendering.await.map_err(failed)
}
