//! The pages about tasks: all of them, and one with what there is to do about it, its timeline and its turns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use proofhouse_store::model::{DeliveryRecord, SEARCHED_TASKS, TaskRecord};
use serde::Deserialize;
use serde_json::Value;

use super::filters::{TaskQuery, encoded};
use super::page::{Page, badge, href, json, link, older, table};
use super::progress::ShownProgress;
use super::status::{TaskCondition, waited};
use super::timeline::{self, TimelineSpan, TimelineTotals};
use super::words::{delivery_badge, delivery_name, time, time_text, turn_badge, turn_subject};
use super::{actions, admitted, live, page_of};
use crate::api::{
    Api, Caller, HeldBytes, Path, Query, ReviewAnswerView, TurnPage, answers, store_problem,
};
use crate::engine::ManifestSnapshot;
use crate::keys::{KeyScope, random_text};
use crate::problem::Problem;

/// Rows of a page.
pub(super) const PAGE_ROWS: usize = 50;
/// Turns of a page.
const MAX_TURNS: usize = 500;

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    query: Result<Query<TaskQuery>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::TasksRead) {
        Ok(caller) => page_of(&caller, list_page(&api, &caller, query).await),
        Err(answer) => *answer,
    }
}

/// Tasks that were found, and what they are up to.
pub(super) struct FoundTasks {
    pub tasks: Vec<TaskRecord>,
    waited: HashMap<String, Duration>,
    limit: Duration,
    manifests: Arc<ManifestSnapshot>,
    /// How all work goes on, unless the caller may only see some of it.
    progress: Option<ShownProgress>,
}

impl FoundTasks {
    pub(super) fn status(&self, task: &TaskRecord) -> TaskCondition {
        let is_able = self.manifests.why_stuck(task).is_none();
        TaskCondition::of(
            task,
            self.waited.get(&task.id).copied(),
            self.limit,
            is_able,
        )
    }

    /// Whether some work waits for too long.
    pub(super) fn is_stalled(&self) -> bool {
        let progress = self.progress.as_ref();
        progress.is_some_and(|progress| progress.stalled().is_some())
    }
}

/// Looks for the tasks that a query is about.
pub(super) async fn found(
    api: &Api,
    caller: &Caller,
    query: &TaskQuery,
) -> Result<FoundTasks, Problem> {
    let limit = api.engine().max_lag();
    let (mut filter, text) = query.filter(PAGE_ROWS, limit)?;
    let manifests = api.engine().manifests();
    filter.agents = filter.stuck_ms.map(|_| manifests.able().to_vec());
    let store = api.seen_by(caller);
    let tasks = match text {
        Some(text) => store.search_tasks(filter, &text).await?,
        None => store.tasks(filter).await?,
    };
    let ids = tasks.iter().map(|task| task.id.clone()).collect();
    let waits = api.store.task_waits(ids).await.map_err(store_problem)?;
    let progress = match caller.needs_all_namespaces() {
        Ok(()) => Some(ShownProgress::new(api.engine().progress().await?, limit)),
        Err(_) => None,
    };
    Ok(FoundTasks {
        tasks,
        waited: waited(waits),
        limit,
        manifests,
        progress,
    })
}

async fn list_page(
    api: &Api,
    caller: &Caller,
    query: Result<Query<TaskQuery>, Problem>,
) -> Result<Page, Problem> {
    let Query(query) = query?;
    let found = found(api, caller, &query).await?;
    let last = found.tasks.last();
    let last = last.filter(|_| found.tasks.len() == PAGE_ROWS);
    let next = last.map(|task| query.path("/dashboard", &[("after", &task.id)]));
    let rows: Vec<Vec<Markup>> = found
        .tasks
        .iter()
        .map(|task| row(task, found.status(task)))
        .collect();
    let headings = ["Task", "Agent", "State", "User", "Turns", "Last activity"];
    let body = html! {
        div data-part="progress" { @if let Some(progress) = &found.progress { (progress.shown()) } }
        (query.form())
        @if query.text.as_deref().is_some_and(|text| !text.trim().is_empty()) {
            p { "Text is looked for in the newest " (SEARCHED_TASKS) " tasks that the other fields let through." }
        }
        div data-part="rows" { (table("Tasks, newest first", &headings, &rows)) (older(next)) }
    };
    let mut more = vec![("seen", live::list_mark(&found))];
    more.extend(query.after.clone().map(|after| ("after", after)));
    let more: Vec<(&str, &str)> = more
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let address = query.path("/dashboard/live/tasks", &more);
    let after = query.after.as_deref().map(|after| ("after", after));
    let here = query.path("/dashboard", after.as_slice());
    Ok(Page::new("Tasks", body).live(address, here, query.refresh()))
}

fn row(task: &TaskRecord, status: TaskCondition) -> Vec<Markup> {
    vec![
        link("/dashboard/tasks", &task.id),
        html! { (task.agent_namespace) "/" (task.agent_name) },
        status.badge(),
        html! { (task.user_id) },
        html! { (task.next_seq) },
        time(task.last_activity),
    ]
}

/// Which part of a task is shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ShownTurns {
    /// The first of its turns.
    from: Option<i64>,
    refresh: Option<u32>,
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    task: Result<Path<String>, Problem>,
    query: Result<Query<ShownTurns>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::TasksRead) {
        Ok(caller) => match show_page(&api, &caller, task, query).await {
            Ok((page, held)) => held.until_taken(page_of(&caller, Ok(page))),
            Err(problem) => page_of(&caller, Err(problem)),
        },
        Err(answer) => *answer,
    }
}

async fn show_page(
    api: &Api,
    caller: &Caller,
    task: Result<Path<String>, Problem>,
    query: Result<Query<ShownTurns>, Problem>,
) -> Result<(Page, HeldBytes), Problem> {
    let (Path(id), Query(query)) = (task?, query?);
    let store = api.seen_by(caller);
    let task = store.task(&id).await?;
    let from = match query.from {
        Some(from) => from.max(0),
        None => store.newest_turns(&task, MAX_TURNS).await?,
    };
    let TurnPage { turns, next, held } = store.turns(&id, from, MAX_TURNS).await?;
    let deliveries = store.delivery_list(&id, PAGE_ROWS).await?;
    let waits = api.store.task_waits(vec![id.clone()]).await;
    let waits = waited(waits.map_err(store_problem)?);
    let now = api.store.now().await.map_err(store_problem)?;
    let (waited, limit) = (waits.get(&id).copied(), api.engine().max_lag());
    let stuck = api.engine().manifests().why_stuck(&task);
    let status = TaskCondition::of(&task, waited, limit, stuck.is_none());
    let answered = answers(&deliveries);
    let prices = |model: &str, usage| api.engine().cost(model, usage);
    let spans = timeline::spans(&turns, &answered, &prices, now);
    let once = random_text().map_err(|error| Problem::unavailable(error.to_string()))?;
    let rows: Vec<Vec<Markup>> = deliveries.iter().map(delivery_row).collect();
    let headings = ["Delivery", "Event", "Name", "State", "Why", "Turn"];
    let place = href("/dashboard/tasks", &id);
    let body = html! {
        div data-part="state" {
            p {
                (status.badge()) " " (task.agent_namespace) "/" (task.agent_name) " for " (task.user_id)
                ", since " (time(task.created_at))
            }
            (why(&task, waited, stuck.as_deref()))
        }
        div data-part="question" { (actions::question(caller, &task)) }
        div data-part="actions" { (actions::forms(caller, &task, &once)) }
        div data-part="timeline" {
            (answer_table(&answered))
            h2 { "Timeline" }
            (summary(&spans))
            (timeline::shown(&spans))
        }
        div data-part="turns" {
            h2 { "Turns" }
            @if from > 0 {
                p { a href={ (place) "?from=" (from.saturating_sub(MAX_TURNS as i64).max(0)) } { "Earlier turns" } }
            }
            ol.turns start=(from) {
                @for turn in &turns {
                    li id={ "turn-" (turn.seq) } class={ "turn " (turn.kind) } {
                        p { (turn_badge(&turn.kind)) " " (time(turn.created_at)) }
                        (turn_body(turn.seq, &turn.body))
                    }
                }
            }
            @if let Some(next) = next.filter(|next| *next < task.next_seq) {
                p { a href={ (place) "?from=" (next) } { "Later turns" } }
            }
        }
        div data-part="deliveries" { (table("Deliveries, newest first", &headings, &rows)) }
    };
    let seen = encoded(&[("seen", &live::task_mark(&task, &deliveries))]);
    let address = format!("{}?{seen}", href("/dashboard/live/tasks", &id));
    let refresh = query.refresh.filter(|seconds| (5..=300).contains(seconds));
    let page = Page::new(format!("Task {id}"), body).live(address, place, refresh);
    Ok((page, held))
}

/// Why a task is in its state, as far as that is not seen at once.
fn why(task: &TaskRecord, waited: Option<Duration>, stuck: Option<&str>) -> Markup {
    let detail = |name: &str| task.detail.as_ref().and_then(|detail| detail.get(name));
    let failed = detail("failed").and_then(Value::as_str);
    let end = detail("end").and_then(|end| end["message"].as_str());
    html! {
        @if let Some(stuck) = stuck {
            p role="note" { "It cannot go on: " (stuck) ". Cancel it, or bring the manifest back." }
        } @else if let Some(waited) = waited {
            p { "It has had something to do for "
                (timeline::duration(i64::try_from(waited.as_millis()).unwrap_or(i64::MAX)))
                ", and nobody works on it." }
        }
        @if let Some(failed) = failed { p role="note" { "The model could not be asked: " (failed) } }
        @if let Some(end) = end { p role="note" { "It ended: " (end) } }
    }
}

fn answer_table(answered: &[ReviewAnswerView]) -> Markup {
    let rows: Vec<Vec<Markup>> = answered
        .iter()
        .map(|answer| {
            let said = if answer.approve { "approved" } else { "denied" };
            vec![
                html! { (answer.review) },
                badge(said),
                html! { (answer.person.as_deref().or(answer.by.as_deref()).unwrap_or_default()) },
                html! { (answer.reason.as_deref().unwrap_or_default()) },
                time_text(&answer.at),
            ]
        })
        .collect();
    let headings = ["Question", "Answer", "By", "Why", "When"];
    html! { @if !rows.is_empty() { (table("Answers", &headings, &rows)) } }
}

/// What a task took in all, in words.
fn summary(spans: &[TimelineSpan]) -> Markup {
    let totals = timeline::totals(spans);
    let times = [
        ("Model", totals.model_ms, calls(totals.model_calls)),
        ("Tools", totals.tool_ms, calls(totals.tool_calls)),
        ("Approval", totals.approval_ms, String::new()),
        ("Waiting for input", totals.wait_ms, String::new()),
    ];
    html! {
        dl.totals {
            @for (name, ms, note) in times {
                div { dt { (name) } dd { (timeline::duration(ms)) @if !note.is_empty() { ", " (note) } } }
            }
            div {
                dt { "Tokens" }
                dd {
                    @if totals.prompt + totals.completion == 0 { "not known" }
                    @else { (totals.prompt) " in, " (totals.completion) " out" }
                }
            }
            div { dt { "Cost" } dd { (cost(&totals)) } }
            div { dt { "Problems" } dd { (totals.failures) } }
        }
    }
}

fn calls(count: usize) -> String {
    let word = if count == 1 { "call" } else { "calls" };
    format!("{count} {word}")
}

/// What models cost in all, as far as their prices are known.
fn cost(totals: &TimelineTotals) -> String {
    let sums = totals.cost.iter();
    let sums = sums.map(|(currency, cost)| format!("{cost} {currency}"));
    let mut parts: Vec<String> = sums.collect();
    if totals.has_unknown_cost || parts.is_empty() {
        parts.push("not known".to_owned());
    }
    parts.join(" and ")
}

fn delivery_row(delivery: &DeliveryRecord) -> Vec<Markup> {
    vec![
        html! { (delivery.id) },
        html! { @if let Some(event) = delivery.event { (link("/dashboard/events", &event.to_string())) } },
        html! { (delivery_name(delivery)) },
        delivery_badge(delivery),
        html! { (delivery_reason(delivery)) },
        html! { @if let Some(turn) = delivery.turn_seq { (turn) } },
    ]
}

/// Why a delivery was kept out, or why somebody wanted what it says.
fn delivery_reason(delivery: &DeliveryRecord) -> &str {
    let said = delivery.body["about"]["reason"].as_str();
    said.or(delivery.reason.as_deref()).unwrap_or_default()
}

/// A turn for reading: what was said as text, the rest as JSON.
fn turn_body(seq: i64, body: &Value) -> Markup {
    let text = ["message", "text"]
        .iter()
        .find_map(|key| body.get(key)?.as_str());
    let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
    html! {
        @if let Some(text) = text.or_else(|| turn_subject(body)) { p.said { (text) } }
        details id={ "all-" (seq) } { summary { "Full record" } (json(body)) }
    }
}
