//! The page about manifests: what is loaded, what is wrong with it, what schedules and triggers did.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::page::{Page, badge, link, table};
use super::words::time_text;
use super::{admitted, page_of};
use crate::api::{Api, Caller, ManifestView, TriggerView};
use crate::keys::KeyScope;
use crate::problem::Problem;

pub(super) async fn list(State(api): State<Arc<Api>>, caller: Result<Caller, Problem>) -> Response {
    match admitted(caller, KeyScope::ManifestsRead) {
        Ok(caller) => page_of(&caller, list_page(&api, &caller).await),
        Err(answer) => *answer,
    }
}

async fn list_page(api: &Api, caller: &Caller) -> Result<Page, Problem> {
    let store = api.seen_by(caller);
    let starts = store.triggers().await?;
    let manifests = api.engine().manifests();
    let files = manifests.files.iter().filter_map(|file| store.file(file));
    let files: Vec<ManifestView> = files.map(|file| ManifestView::of(&file)).collect();
    let file_rows: Vec<Vec<Markup>> = files.iter().map(file_row).collect();
    let start_rows: Vec<Vec<Markup>> = starts
        .into_iter()
        .map(|start| start_row(&TriggerView::of(start, api.engine())))
        .collect();
    let start_headings = [
        "Kind",
        "Name",
        "Last run",
        "Last task",
        "Next run",
        "Runs",
        "Last error",
    ];
    let body = html! {
        (table("Files", &["File", "State", "Holds", "Problems"], &file_rows))
        (table("Schedules and triggers", &start_headings, &start_rows))
    };
    Ok(Page::new("Manifests", body))
}

fn file_row(file: &ManifestView) -> Vec<Markup> {
    let is_broken = file
        .problems
        .iter()
        .any(|problem| problem.severity == "error");
    let state = if file.stale {
        "stale"
    } else if is_broken {
        "broken"
    } else {
        "good"
    };
    vec![
        html! { (file.path) },
        badge(state),
        html! {
            @if !file.holds.is_empty() {
                ul {
                    @for held in &file.holds { li { (held.kind) " " (held.namespace) "/" (held.name) } }
                }
            }
        },
        html! {
            @if !file.problems.is_empty() {
                ul {
                    @for problem in &file.problems {
                        li {
                            (badge(&problem.severity)) " "
                            (file.path) ":" (problem.line) ":" (problem.column) ": "
                            (problem.message) " (" (problem.code) ")"
                        }
                    }
                }
            }
        },
    ]
}

fn start_row(start: &TriggerView) -> Vec<Markup> {
    let optional = |text: &Option<String>| html! { @if let Some(text) = text { (text) } };
    let moment = |at: &Option<String>| html! { @if let Some(at) = at { (time_text(at)) } };
    vec![
        html! { (start.kind) },
        html! { (start.namespace) "/" (start.name) },
        moment(&start.last_at),
        html! { @if let Some(task) = &start.last_task { (link("/dashboard/tasks", task)) } },
        if start.removed {
            badge("removed")
        } else {
            moment(&start.next_at)
        },
        html! { (start.total) },
        optional(&start.last_error),
    ]
}
