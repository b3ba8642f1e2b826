//! The pages about campaigns: all of them, one with its progress, its rates and who works on it, what changed since another, and how
//! the attack success of a name changes over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use maud::{Markup, html};
use proofhouse_campaign::comparison::Change;
use proofhouse_campaign::outcome::RunOutcome;
use proofhouse_fleet::name::shown;
use proofhouse_store::model::{CampaignFilter, CampaignPulse, CampaignRow, CampaignState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::actions::{act_on_campaign, campaign_path, reason, reason_field};
use super::page::{Page, badge, form_field, href, link, older, table};
use super::words::{time, time_text};
use super::{admitted, error_page, live, page_of};
use crate::api::{
    self, Api, BaselineQuery, Caller, CampaignDetailView, Path, Query, SuccessView, TrendPointView,
    campaign_detail, store_problem,
};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Rows of a page.
const PAGE_ROWS: usize = 50;

/// Which campaigns are listed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CampaignQuery {
    before: Option<i64>,
    refresh: Option<u32>,
    /// What whoever follows the list has seen last.
    pub(super) seen: Option<String>,
}

/// A campaign of a list, and how far it is if it is not over.
pub(super) struct ListedCampaign {
    row: CampaignRow,
    pulse: Option<CampaignPulse>,
}

/// Looks for the campaigns of a page.
pub(super) async fn found(
    api: &Api,
    caller: &Caller,
    query: &CampaignQuery,
) -> Result<Vec<ListedCampaign>, Problem> {
    let filter = CampaignFilter {
        before: query.before,
        limit: PAGE_ROWS,
        ..CampaignFilter::default()
    };
    let mut listed = Vec::new();
    for row in api.seen_by(caller).campaigns(filter).await? {
        let pulse = if row.state.is_over() {
            None
        } else {
            let pulse = api.store.campaign_pulse(row.id).await;
            Some(pulse.map_err(store_problem)?)
        };
        listed.push(ListedCampaign { row, pulse });
    }
    Ok(listed)
}

/// What stands for the rows of a list.
pub(super) fn list_mark(listed: &[ListedCampaign]) -> Value {
    let rows = listed.iter();
    let rows = rows.map(|one| json!([one.row.id, one.row.state, one.pulse]));
    rows.collect()
}

/// What stands for the page of a campaign.
pub(super) fn campaign_mark(detail: &CampaignDetailView) -> Value {
    let workers = detail.workers.iter();
    let workers = workers.map(|one| json!([one.name, one.running, one.left_at, one.remark]));
    let models = detail.models.iter();
    let models = models.map(|one| json!([one.name, one.requests, one.slowed, one.cost]));
    json!([
        detail.progress,
        workers.collect::<Value>(),
        models.collect::<Value>()
    ])
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    query: Result<Query<CampaignQuery>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::CampaignsRead) {
        Ok(caller) => page_of(&caller, list_page(&api, &caller, query).await),
        Err(answer) => *answer,
    }
}

async fn list_page(
    api: &Api,
    caller: &Caller,
    query: Result<Query<CampaignQuery>, Problem>,
) -> Result<Page, Problem> {
    let Query(query) = query?;
    let listed = found(api, caller, &query).await?;
    let last = listed.last().filter(|_| listed.len() == PAGE_ROWS);
    let next = last.map(|last| format!("/dashboard/campaigns?before={}", last.row.id));
    let rows: Vec<Vec<Markup>> = listed.iter().map(list_row).collect();
    let headings = ["Campaign", "State", "Runs", "Planned", "Ended", "Trend"];
    let body = html! {
        div data-part="rows" { (table("Campaigns, newest first", &headings, &rows)) (older(next)) }
        @if listed.is_empty() {
            p { "Plan one with " code { "proofhouse run --store … --name NAME" } "." }
        }
    };
    let before = query.before.map(|before| format!("before={before}"));
    let before = before.unwrap_or_default();
    let seen = live::mark_of(&list_mark(&listed));
    let address = format!("/dashboard/live/campaigns?seen={seen}&{before}");
    let here = format!("/dashboard/campaigns?{before}");
    let refresh = query.refresh.map(|seconds| seconds.clamp(5, 3_600));
    Ok(Page::new("Campaigns", body).live(address, here, refresh))
}

fn list_row(one: &ListedCampaign) -> Vec<Markup> {
    let name = shown(&one.row);
    let trend = format!("{}/trend", campaign_path(&one.row.name));
    vec![
        link("/dashboard/campaigns", &name),
        state(one.row.state),
        html! {
            @match &one.pulse {
                Some(pulse) => { (pulse.done) " of " (pulse.total) }
                None => { (one.row.total) }
            }
        },
        time(one.row.created_at),
        html! { @if let Some(ended) = one.row.ended_at { (time(ended)) } },
        html! { a href=(trend) { "Show trend" } },
    ]
}

/// The state of a campaign, with a tone and a sign for those who do not see the tone.
fn state(state: CampaignState) -> Markup {
    let (tone, sign) = match state {
        CampaignState::Planning => ("busy", "…"),
        CampaignState::Running => ("busy", "▶"),
        CampaignState::Finished => ("calm", "●"),
        CampaignState::Cancelled => ("ask", "‖"),
        CampaignState::Stopped | CampaignState::Capped => ("bad", "▲"),
    };
    html! { span class={ "badge tone-" (tone) } { span aria-hidden="true" { (sign) " " } (state) } }
}

fn state_word(word: &str) -> Markup {
    match CampaignState::from_word(word) {
        Some(known) => state(known),
        None => badge(word),
    }
}

/// How the page of a campaign is shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ShownCampaign {
    refresh: Option<u32>,
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    campaign: Result<Path<String>, Problem>,
    query: Result<Query<ShownCampaign>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::CampaignsRead) {
        Ok(caller) => page_of(&caller, show_page(&api, &caller, campaign, query).await),
        Err(answer) => *answer,
    }
}

async fn show_page(
    api: &Api,
    caller: &Caller,
    campaign: Result<Path<String>, Problem>,
    query: Result<Query<ShownCampaign>, Problem>,
) -> Result<Page, Problem> {
    let (Path(wanted), Query(query)) = (campaign?, query?);
    let detail = campaign_detail(api, caller, &wanted).await?;
    let campaign = &detail.campaign;
    let path = campaign_path(&campaign.campaign);
    let body = html! {
        div data-part="state" { (progress(&detail)) }
        p {
            a href={ (path) "/report" } { "Report" } " · "
            @if campaign.number > 1 { a href={ (path) "/comparison" } { "What changed" } " · " }
            a href={ (campaign_path(&campaign.name)) "/trend" } { "Trend" }
        }
        div data-part="rates" { (rates(&detail)) }
        div data-part="reasons" { (reasons(&detail)) }
        div data-part="models" { (models(&detail)) }
        div data-part="workers" { (workers(&detail)) }
        div data-part="forms" { (forms(caller, &detail)) }
        h2 { "Plan" }
        p {
            "Planned by Proofhouse " (campaign.program) ", digest " code { (campaign.plan) } ". To work on it: "
            code { "proofhouse worker --store … --name " (campaign.campaign) }
        }
    };
    let seen = live::mark_of(&campaign_mark(&detail));
    let live = href("/dashboard/live/campaigns", &campaign.campaign);
    let refresh = query.refresh.map(|seconds| seconds.clamp(5, 3_600));
    let page = Page::new(format!("Campaign {}", campaign.campaign), body);
    Ok(page.live(format!("{live}?seen={seen}"), path, refresh))
}

fn progress(detail: &CampaignDetailView) -> Markup {
    let (campaign, progress) = (&detail.campaign, &detail.progress);
    html! {
        p {
            (state_word(&progress.state))
            @if let Some(remark) = &campaign.remark { " " (remark) }
        }
        dl.totals {
            div { dt { "Runs" } dd { (progress.done) " of " (progress.total) } }
            div { dt { "Running" } dd { (progress.running) } }
            div { dt { "Attack success" } dd { (share(&progress.success)) } }
            div {
                dt { "Inconclusive" }
                dd {
                    (progress.inconclusive)
                    @if !detail.reasons.is_empty() { " (" a href="#reasons" { "why" } ")" }
                }
            }
            div { dt { "Planned" } dd { (time_text(&campaign.created_at)) } }
            @if let Some(ended) = &campaign.ended_at { div { dt { "Ended" } dd { (time_text(ended)) } } }
            @if !campaign.namespace.is_empty() { div { dt { "Namespace" } dd { (campaign.namespace) } } }
        }
        (bar(0.0, part(progress.done, progress.total), None))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar is not exact")]
fn part(some: i64, all: i64) -> f64 {
    if all > 0 {
        some as f64 / all as f64
    } else {
        0.0
    }
}

/// A share with its interval, in words.
fn share(success: &SuccessView) -> Markup {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    html! {
        @match success.rate {
            Some(rate) => {
                (percent(rate)) " % (" (percent(success.low)) " to " (percent(success.high)) " %, "
                (success.through) " of " (success.of) ")"
            }
            None => { "unknown" }
        }
    }
}

/// A bar from one share to another, with a mark at a third.
fn bar(from: f64, to: f64, at: Option<f64>) -> Markup {
    let place = |share: f64| format!("{:.1}", share.clamp(0.0, 1.0) * 100.0);
    let width = (to - from).max(0.004);
    html! {
        svg.bar viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
            rect."kind-model" x=(place(from)) y="0" width=(place(width)) height="4" {}
            @if let Some(at) = at {
                rect."kind-end" x=(place(at - 0.004)) y="0" width="0.8" height="4" {}
            }
        }
    }
}

/// A share with its interval, in words and as a bar.
fn interval(success: &SuccessView) -> Markup {
    html! {
        (share(success))
        @if success.rate.is_some() { (bar(success.low, success.high, success.rate)) }
    }
}

fn category(category: Option<&String>) -> Markup {
    html! { (category.map_or("all categories", String::as_str)) }
}

fn rates(detail: &CampaignDetailView) -> Markup {
    let rows: Vec<Vec<Markup>> = detail
        .rates
        .iter()
        .map(|rate| {
            vec![
                html! { (rate.subject) },
                category(rate.category.as_ref()),
                interval(&rate.success),
                html! { (rate.inconclusive) },
            ]
        })
        .collect();
    let headings = ["Subject", "Category", "Attack success", "Inconclusive"];
    table("Attack success, with 95 % intervals", &headings, &rows)
}

/// Why attacks prove nothing, what to do about it, and what the words mean.
fn reasons(detail: &CampaignDetailView) -> Markup {
    // Each is explained once, whichever subjects have it.
    let mut meant = BTreeMap::new();
    let mut rows: Vec<Vec<Markup>> = Vec::new();
    for one in &detail.reasons {
        meant.extend(one.reason.zip(one.what));
        rows.push(vec![
            html! { (one.subject) },
            html! {
                @if let Some(code) = one.reason { a href={ "#reason-" (code) } { (code) } }
                @else { "unknown to this server" }
            },
            html! { (one.runs) },
            html! { (one.advice.unwrap_or_default()) },
        ]);
    }
    let headings = ["Subject", "Reason", "Attacks", "What to do"];
    html! {
        @if !rows.is_empty() {
            (table("Inconclusive attacks, by reason", &headings, &rows))
            section #reasons {
                h2 { "What the reasons mean" }
                p { (RunOutcome::Inconclusive.meaning()) }
                dl {
                    @for (code, what) in meant { dt id={ "reason-" (code) } { (code) } dd { (what) } }
                }
            }
        }
    }
}

fn models(detail: &CampaignDetailView) -> Markup {
    let most = |most: Option<i64>| html! { @if let Some(most) = most { " of " (most) } };
    let rows: Vec<Vec<Markup>> = detail
        .models
        .iter()
        .map(|model| {
            vec![
                html! { (model.name) },
                html! { (model.tokens) (most(model.max_tokens)) },
                html! {
                    (model.requests)
                    @if let Some(most) = model.requests_per_minute { ", at most " (most) " per minute" }
                },
                html! { @if let Some(most) = model.max_concurrent { "at most " (most) } },
                html! {
                    @if let (Some(cost), Some(most)) = (&model.cost, &model.max_cost) {
                        (cost) " of " (most) " " (model.currency.as_deref().unwrap_or_default())
                    }
                },
                html! {
                    (model.slowed)
                    @if model.pause_ms > 0 { ", waiting for " (model.pause_ms / 1_000 + 1) " s" }
                },
            ]
        })
        .collect();
    let headings = [
        "Model",
        "Tokens",
        "Requests",
        "Runs at a time",
        "Cost",
        "Pauses",
    ];
    table("Models", &headings, &rows)
}

fn workers(detail: &CampaignDetailView) -> Markup {
    let rows: Vec<Vec<Markup>> = detail
        .workers
        .iter()
        .map(|worker| {
            vec![
                html! { (worker.name) },
                html! { (worker.program) },
                html! { (worker.running) " of " (worker.jobs) },
                time_text(&worker.seen_at),
                html! {
                    @match (&worker.remark, &worker.left_at) {
                        (Some(remark), _) => { (remark) }
                        (None, Some(_)) => { "left" }
                        (None, None) => { "working" }
                    }
                },
            ]
        })
        .collect();
    let headings = ["Worker", "Version", "Runs", "Last seen", "Status"];
    table("Workers", &headings, &rows)
}

/// What the caller can do to a campaign.
fn forms(caller: &Caller, detail: &CampaignDetailView) -> Markup {
    let token = caller.form_token();
    let token = token.filter(|_| caller.may(KeyScope::CampaignsWrite));
    let Some(token) = token else {
        return html! {};
    };
    let path = campaign_path(&detail.campaign.campaign);
    let state = CampaignState::from_word(&detail.progress.state);
    let is_over = state.is_some_and(CampaignState::is_over);
    let (verb, what) = if is_over {
        ("again", "Run it again")
    } else {
        ("cancel", "Cancel the campaign")
    };
    html! {
        form.act method="post" action={ (path) "/" (verb) } {
            (form_field(&token))
            (reason_field("reason"))
            div.buttons {
                @if is_over { button { (what) } } @else { button.danger { (what) } }
            }
        }
    }
}

pub(super) async fn again(
    State(api): State<Arc<Api>>,
    path: Result<Path<String>, Problem>,
    request: Request,
) -> Response {
    act_on_campaign(&api, path, request, async |caller, campaign, form| {
        let started = api::start_campaign(&api, caller, campaign, reason(form)?).await?;
        Ok(shown(&started))
    })
    .await
}

pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    path: Result<Path<String>, Problem>,
    request: Request,
) -> Response {
    act_on_campaign(&api, path, request, async |caller, campaign, form| {
        api::cancel_campaign(&api, caller, campaign, reason(form)?).await?;
        Ok(campaign.to_owned())
    })
    .await
}

pub(super) async fn report(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    campaign: Result<Path<String>, Problem>,
    query: Result<Query<BaselineQuery>, Problem>,
) -> Response {
    let caller = match admitted(caller, KeyScope::CampaignsRead) {
        Ok(caller) => caller,
        Err(answer) => return *answer,
    };
    let page = async {
        let (Path(campaign), Query(query)) = (campaign?, query?);
        api::report_page(&api, &caller, &campaign, query.baseline.as_deref()).await
    };
    page.await.unwrap_or_else(|problem| error_page(&problem))
}

pub(super) async fn comparison(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    campaign: Result<Path<String>, Problem>,
    query: Result<Query<BaselineQuery>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::CampaignsRead) {
        Ok(caller) => page_of(
            &caller,
            comparison_page(&api, &caller, campaign, query).await,
        ),
        Err(answer) => *answer,
    }
}

async fn comparison_page(
    api: &Api,
    caller: &Caller,
    campaign: Result<Path<String>, Problem>,
    query: Result<Query<BaselineQuery>, Problem>,
) -> Result<Page, Problem> {
    let (Path(wanted), Query(query)) = (campaign?, query?);
    let found = api::compared(api, caller, &wanted, query.baseline.as_deref()).await?;
    let (campaign, comparison) = (&found.campaign, &found.comparison);
    let rate = |rate: Option<&proofhouse_campaign::statistics::Rate>| {
        html! { @if let Some(rate) = rate { (proofhouse_fleet::listing::rate(rate)) } }
    };
    let subjects: Vec<Vec<Markup>> = comparison
        .subjects
        .iter()
        .map(|one| {
            vec![
                html! { (one.subject) },
                change(one.change),
                rate(Some(&one.before)),
                rate(Some(&one.now)),
            ]
        })
        .collect();
    let is_told = |change: Change| !matches!(change, Change::Unchanged | Change::Unknown);
    let cells: Vec<Vec<Markup>> = comparison
        .cells
        .iter()
        .filter(|cell| is_told(cell.change))
        .map(|cell| {
            vec![
                html! { (cell.document) },
                html! { (cell.subject) },
                change(cell.change),
                rate(cell.before.as_ref()),
                rate(cell.now.as_ref()),
            ]
        })
        .collect();
    let path = campaign_path(campaign);
    let body = html! {
        form.act method="get" action={ (path) "/comparison" } {
            label for="baseline" { "Compared with" }
            input #baseline name="baseline" value=(comparison.baseline);
            div.buttons { button { "Compare" } }
        }
        @if let Some(reason) = comparison.obstacle() { p { "Nothing is compared: " (reason) } }
        (table("Subjects", &["Subject", "Change", "Before", "Now"], &subjects))
        (table("Attacks that changed", &["Attack", "Subject", "Change", "Before", "Now"], &cells))
        p {
            a href={ (path) "/report?baseline=" (comparison.baseline) } { "The whole report with what changed" } " · "
            (link("/dashboard/campaigns", campaign))
        }
    };
    Ok(Page::new(
        format!("Campaign {campaign}: what changed"),
        body,
    ))
}

fn change(change: Change) -> Markup {
    let tone = match change {
        Change::New | Change::Worse => "bad",
        Change::Better | Change::Fixed => "calm",
        Change::Unchanged | Change::Unknown => "ask",
    };
    html! { span class={ "badge tone-" (tone) } { (change.word()) } }
}

pub(super) async fn trend(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    campaign: Result<Path<String>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::CampaignsRead) {
        Ok(caller) => page_of(&caller, trend_page(&api, &caller, campaign).await),
        Err(answer) => *answer,
    }
}

async fn trend_page(
    api: &Api,
    caller: &Caller,
    campaign: Result<Path<String>, Problem>,
) -> Result<Page, Problem> {
    let Path(wanted) = campaign?;
    let (name, points) = api::trend_of(api, caller, &wanted).await?;
    let mut groups: Vec<(&String, Option<&String>)> = Vec::new();
    for point in &points {
        let group = (&point.rate.subject, point.rate.category.as_ref());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups.sort_unstable();
    let headings = [
        "Campaign",
        "Planned",
        "Attack success",
        "Inconclusive",
        "Change",
    ];
    let body = html! {
        p { "The bars are 95 % intervals, from none of the attacks to all of them." }
        @for (subject, of) in &groups {
            @let caption = format!("{subject}, {}", of.map_or("all categories", |of| of));
            @let of_group = points.iter().filter(|point| {
                &point.rate.subject == *subject && point.rate.category.as_ref() == *of
            });
            @let rows: Vec<Vec<Markup>> = of_group.map(trend_row).collect();
            (table(&caption, &headings, &rows))
        }
    };
    Ok(Page::new(format!("Campaign {name}: trend"), body))
}

fn trend_row(point: &TrendPointView) -> Vec<Markup> {
    vec![
        html! { (link("/dashboard/campaigns", &point.campaign)) " " (state_word(&point.state)) },
        time_text(&point.created_at),
        interval(&point.rate.success),
        html! { (point.rate.inconclusive) },
        html! {
            @match point.changed {
                Some("rose") => { span.badge."tone-bad" { "▲ rose" } }
                Some(word) => { span.badge."tone-calm" { "▼ " (word) } }
                None => {}
            }
        },
    ]
}
