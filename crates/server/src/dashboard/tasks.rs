//! The pages about tasks: all of them, and one with its turns.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use proofhouse_store::model::{DeliveryRecord, TaskFilter, TaskRecord};
use serde::Deserialize;
use serde_json::Value;

use super::page::{Page, badge, json, link, older, table};
use super::{actions, admitted, page_of};
use crate::api::{Api, Caller, Path, Query, answers, moment};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Rows of a page.
const PAGE_ROWS: usize = 50;
/// Turns of a page.
const MAX_TURNS: usize = 500;

#[derive(Debug, Deserialize)]
pub(super) struct TaskQuery {
    after: Option<String>,
}

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

async fn list_page(
    api: &Api,
    caller: &Caller,
    query: Result<Query<TaskQuery>, Problem>,
) -> Result<Page, Problem> {
    let filter = TaskFilter {
        after: query.ok().and_then(|Query(query)| query.after),
        limit: PAGE_ROWS,
        ..TaskFilter::default()
    };
    let tasks = api.seen_by(caller).tasks(filter).await?;
    let last = tasks.last().filter(|_| tasks.len() == PAGE_ROWS);
    let next = last.map(|task| {
        let after: String = url::form_urlencoded::byte_serialize(task.id.as_bytes()).collect();
        format!("/dashboard?after={after}")
    });
    let rows: Vec<Vec<Markup>> = tasks.iter().map(row).collect();
    let headings = ["Task", "Agent", "State", "User", "Turns", "Last activity"];
    let body = html! { (table("Tasks, newest first", &headings, &rows)) (older(next)) };
    Ok(Page::new("Tasks", body))
}

fn row(task: &TaskRecord) -> Vec<Markup> {
    vec![
        link("/dashboard/tasks", &task.id),
        html! { (task.agent_namespace) "/" (task.agent_name) },
        badge(task.state.as_str()),
        html! { (task.user_id) },
        html! { (task.next_seq) },
        html! { (moment(task.last_activity)) },
    ]
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    task: Result<Path<String>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::TasksRead) {
        Ok(caller) => page_of(&caller, show_page(&api, &caller, task).await),
        Err(answer) => *answer,
    }
}

async fn show_page(
    api: &Api,
    caller: &Caller,
    task: Result<Path<String>, Problem>,
) -> Result<Page, Problem> {
    let Path(id) = task?;
    let store = api.seen_by(caller);
    let task = store.task(&id).await?;
    let turns = store.turns(&id, 0, MAX_TURNS).await?;
    let deliveries = store.deliveries(&id, None, PAGE_ROWS).await?;
    let answer_rows: Vec<Vec<Markup>> = answers(&deliveries)
        .iter()
        .map(|answer| {
            let said = if answer.approve { "approved" } else { "denied" };
            vec![
                html! { (answer.review) },
                badge(said),
                html! { (answer.person.as_deref().or(answer.by.as_deref()).unwrap_or_default()) },
                html! { (answer.reason.as_deref().unwrap_or_default()) },
                html! { (answer.at) },
            ]
        })
        .collect();
    let answer_headings = ["Question", "Answer", "By", "Why", "When"];
    let rows: Vec<Vec<Markup>> = deliveries.iter().map(delivery_row).collect();
    let headings = ["Delivery", "Event", "Name", "State", "Why", "Turn"];
    let body = html! {
        p {
            (badge(task.state.as_str())) " " (task.agent_namespace) "/" (task.agent_name) " for " (task.user_id)
            ", since " (moment(task.created_at))
        }
        @if let Some(detail) = &task.detail { (json(detail)) }
        (actions::forms(caller, &task))
        @if !answer_rows.is_empty() { (table("Answers", &answer_headings, &answer_rows)) }
        h2 { "Turns" }
        ol.turns start="0" {
            @for turn in &turns {
                li class={ "turn " (turn.kind) } {
                    p { (badge(&turn.kind)) " " (moment(turn.created_at)) }
                    (turn_body(&turn.body))
                }
            }
        }
        (table("Deliveries, newest first", &headings, &rows))
    };
    Ok(Page::new(format!("Task {id}"), body))
}

fn delivery_row(delivery: &DeliveryRecord) -> Vec<Markup> {
    vec![
        html! { (delivery.id) },
        html! { @if let Some(event) = delivery.event { (link("/dashboard/events", &event.to_string())) } },
        html! { (delivery.name) },
        badge(delivery.state.as_str()),
        html! { (delivery.reason.as_deref().unwrap_or_default()) },
        html! { @if let Some(turn) = delivery.turn_seq { (turn) } },
    ]
}

/// A turn for reading: what was said as text, the rest as JSON.
fn turn_body(body: &Value) -> Markup {
    let text = ["message", "text"]
        .iter()
        .find_map(|key| body.get(key)?.as_str());
    html! {
        @if let Some(text) = text { p.said { (text) } }
        details { summary { "All of it" } (json(body)) }
    }
}
