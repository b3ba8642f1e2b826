//! The page about manifests: what is loaded, what is wrong with it, what schedules and triggers did.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::html::{Page, badge, escape, link};
use super::{trouble, visitor};
use crate::api::{Api, Caller, ManifestView, TriggerView, store_problem};
use crate::keys::KeyScope;
use crate::problem::Problem;

pub(super) async fn list(State(api): State<Arc<Api>>, caller: Result<Caller, Problem>) -> Response {
    if let Err(elsewhere) = visitor(caller, KeyScope::ManifestsRead) {
        return *elsewhere;
    }
    let starts = match api.store.triggers().await {
        Ok(starts) => starts,
        Err(error) => return trouble(&store_problem(error)),
    };
    let manifests = api.engine().manifests();
    let files: Vec<ManifestView> = manifests.files.iter().map(ManifestView::of).collect();
    let rows: Vec<Vec<String>> = files.iter().map(file_row).collect();
    let heads = ["File", "State", "Holds", "Problems"];
    let page = Page::new("Manifests").table("Files", &heads, &rows);
    let rows: Vec<Vec<String>> = starts
        .into_iter()
        .map(|start| TriggerView::of(start, api.engine()))
        .map(start_row)
        .collect();
    let heads = [
        "Kind",
        "Name",
        "Last",
        "Task",
        "Next",
        "Total",
        "Last error",
    ];
    let page = page.table("Schedules and triggers", &heads, &rows);
    page.finish().into_response()
}

fn file_row(file: &ManifestView) -> Vec<String> {
    let wrong = file
        .problems
        .iter()
        .any(|problem| problem.severity == "error");
    let state = match (file.stale, wrong) {
        (true, _) => "stale",
        (false, true) => "broken",
        (false, false) => "good",
    };
    let holds = file.holds.iter().map(|held| {
        let text = format!("{} {}/{}", held.kind, held.namespace, held.name);
        format!("<li>{}</li>", escape(&text))
    });
    let problems = file.problems.iter().map(|problem| {
        let place = format!("{}:{}:{}", file.path, problem.line, problem.column);
        let text = format!("{place}: {} ({})", problem.message, problem.code);
        format!("<li>{} {}</li>", badge(&problem.severity), escape(&text))
    });
    vec![
        escape(&file.path),
        badge(state),
        list_of(holds),
        list_of(problems),
    ]
}

fn list_of(items: impl Iterator<Item = String>) -> String {
    let items: String = items.collect();
    match items.is_empty() {
        true => items,
        false => format!("<ul>{items}</ul>"),
    }
}

fn start_row(start: TriggerView) -> Vec<String> {
    let text = |text: Option<String>| text.map_or_else(String::new, |text| escape(&text));
    let task = start
        .last_task
        .map(|task| link("/dashboard/tasks", &task, &task));
    vec![
        escape(&start.kind),
        escape(&format!("{}/{}", start.namespace, start.name)),
        text(start.last_at),
        task.unwrap_or_default(),
        match start.removed {
            true => badge("removed"),
            false => text(start.next_at),
        },
        start.total.to_string(),
        text(start.last_error),
    ]
}
