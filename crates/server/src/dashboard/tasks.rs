//! The pages about tasks: all of them, and one with its turns.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use proofhouse_store::model::TaskFilter;
use serde::Deserialize;
use serde_json::Value;

use super::html::{Page, badge, escape, json, link};
use super::{trouble, visitor};
use crate::api::{Api, Caller, Path, Query, moment, store_problem};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Rows of a page.
const PAGE: usize = 50;
/// Turns of a page.
const MAX_TURNS: usize = 500;

#[derive(Debug, Deserialize)]
pub(super) struct After {
    after: Option<String>,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    query: Result<Query<After>, Problem>,
) -> Response {
    if let Err(elsewhere) = visitor(caller, KeyScope::TasksRead) {
        return *elsewhere;
    }
    let filter = TaskFilter {
        after: query.ok().and_then(|Query(query)| query.after),
        limit: PAGE,
        ..TaskFilter::default()
    };
    let tasks = match api.store.tasks(filter).await {
        Ok(tasks) => tasks,
        Err(error) => return trouble(&store_problem(error)),
    };
    let older = tasks.last().filter(|_| tasks.len() == PAGE);
    let older = older.map(|task| {
        let after: String = url::form_urlencoded::byte_serialize(task.id.as_bytes()).collect();
        format!("/dashboard?after={after}")
    });
    let row = |task: &proofhouse_store::model::TaskRecord| {
        vec![
            link("/dashboard/tasks", &task.id, &task.id),
            escape(&format!("{}/{}", task.agent_namespace, task.agent_name)),
            badge(task.state.as_str()),
            escape(&task.user_id),
            task.next_seq.to_string(),
            moment(task.last_activity),
        ]
    };
    let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
    let heads = ["Task", "Agent", "State", "User", "Turns", "Last activity"];
    let page = Page::new("Tasks").table("Tasks, newest first", &heads, &rows);
    page.older(older).finish().into_response()
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    task: Result<Path<String>, Problem>,
) -> Response {
    if let Err(elsewhere) = visitor(caller, KeyScope::TasksRead) {
        return *elsewhere;
    }
    match page(&api, task).await {
        Ok(page) => page.finish().into_response(),
        Err(problem) => trouble(&problem),
    }
}

async fn page(api: &Api, task: Result<Path<String>, Problem>) -> Result<Page, Problem> {
    let Path(id) = task?;
    let task = api.store.task(&id).await.map_err(store_problem)?;
    let turns = api
        .store
        .turns(&id, 0, MAX_TURNS)
        .await
        .map_err(store_problem)?;
    let deliveries = api
        .store
        .deliveries(&id, None, PAGE)
        .await
        .map_err(store_problem)?;
    let agent = format!("{}/{}", task.agent_namespace, task.agent_name);
    let mut page = Page::new(&format!("Task {id}")).markup(&format!(
        "<p>{} {} for {}, since {}</p>",
        badge(task.state.as_str()),
        escape(&agent),
        escape(&task.user_id),
        moment(task.created_at)
    ));
    if let Some(detail) = &task.detail {
        page = page.markup(&json(detail));
    }
    page = page.markup("<h2>Turns</h2><ol class=\"turns\" start=\"0\">");
    for turn in &turns {
        page = page.markup(&format!(
            "<li class=\"turn {kind}\"><p>{badge} {time}</p>{body}</li>",
            kind = escape(&turn.kind),
            badge = badge(&turn.kind),
            time = moment(turn.created_at),
            body = said(&turn.body),
        ));
    }
    page = page.markup("</ol>");
    let rows: Vec<Vec<String>> = deliveries
        .iter()
        .map(|delivery| {
            let event = delivery.event.map_or_else(String::new, |event| {
                link("/dashboard/events", &event.to_string(), &event.to_string())
            });
            vec![
                delivery.id.to_string(),
                event,
                escape(&delivery.name),
                badge(delivery.state.as_str()),
                escape(delivery.reason.as_deref().unwrap_or_default()),
                delivery
                    .turn_seq
                    .map_or_else(String::new, |turn| turn.to_string()),
            ]
        })
        .collect();
    let heads = ["Delivery", "Event", "Name", "State", "Why", "Turn"];
    Ok(page.table("Deliveries, newest first", &heads, &rows))
}

/// A turn for reading: what was said as text, the rest as JSON.
fn said(body: &Value) -> String {
    let text = ["message", "text"]
        .iter()
        .find_map(|key| body.get(key)?.as_str());
    let text = text.map(|text| format!("<p class=\"said\">{}</p>", escape(text)));
    let rest = format!(
        "<details><summary>All of it</summary>{}</details>",
        json(body)
    );
    format!("{}{rest}", text.unwrap_or_default())
}
