//! The dashboard: pages without scripts about tasks, events and manifests, for people with a key.

mod events;
mod html;
mod manifests;
mod sign_in;
mod tasks;

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{StatusCode, header};

use crate::api::{Api, Caller};
use crate::keys::KeyScope;
use crate::problem::Problem;
use html::Page;

/// The pages.
pub(crate) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(async || Redirect::to("/dashboard")))
        .route("/dashboard", get(tasks::list))
        .route("/dashboard/tasks/{task}", get(tasks::show))
        .route("/dashboard/events", get(events::list))
        .route("/dashboard/events/{event}", get(events::show))
        .route("/dashboard/manifests", get(manifests::list))
        .route("/dashboard/sign-in", get(sign_in::ask).post(sign_in::begin))
        .route("/dashboard/sign-out", post(sign_in::end))
        .route("/dashboard/style.css", get(style))
}

async fn style() -> impl IntoResponse {
    let form = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    (form, include_str!("style.css"))
}

/// A visitor who may look, or where they are sent instead.
pub(super) fn visitor(
    caller: Result<Caller, Problem>,
    scope: KeyScope,
) -> Result<Caller, Box<Response>> {
    match caller {
        Ok(caller) if caller.may(scope) => Ok(caller),
        Ok(_) => {
            let page = Page::new("Not allowed");
            let said = page.note(&format!("Your key lacks the scope {scope}."));
            Err(Box::new(
                (StatusCode::FORBIDDEN, said.finish()).into_response(),
            ))
        }
        Err(problem) if problem.status == 401 => {
            Err(Box::new(Redirect::to("/dashboard/sign-in").into_response()))
        }
        Err(problem) => Err(Box::new(trouble(&problem))),
    }
}

/// A page that says what went wrong.
pub(super) fn trouble(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let page = Page::new("That did not work").note(&problem.detail);
    (status, page.finish()).into_response()
}
