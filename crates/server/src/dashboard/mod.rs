//! The dashboard: pages about tasks, errors, events, manifests and campaigns, for people who may sign in. They need no scripts; with them,
//! what is shown keeps itself up to date.

mod actions;
mod campaigns;
mod errors;
mod events;
mod filters;
mod live;
mod manifests;
mod oidc;
mod page;
mod progress;
mod sign_in;
mod status;
mod tasks;
mod timeline;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{StatusCode, header};
use maud::html;

use crate::api::{Api, Caller};
use crate::keys::KeyScope;
use crate::problem::Problem;
use page::Page;

/// The pages.
pub(crate) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(async || Redirect::to("/dashboard")))
        .route("/dashboard", get(tasks::list))
        .route("/dashboard/tasks/{task}", get(tasks::show))
        .route(
            "/dashboard/tasks/{task}/reviews/{review}",
            post(actions::review),
        )
        .route("/dashboard/tasks/{task}/cancel", post(actions::cancel))
        .route("/dashboard/tasks/{task}/messages", post(actions::message))
        .route(
            "/dashboard/tasks/{task}/interrupt",
            post(actions::interrupt),
        )
        .route("/dashboard/errors", get(errors::list))
        .route("/dashboard/live.js", get(live::script))
        .route("/dashboard/live/tasks", get(live::list))
        .route("/dashboard/live/tasks/{task}", get(live::task))
        .route("/dashboard/events/{event}/replay", post(actions::replay))
        .route("/dashboard/events", get(events::list))
        .route("/dashboard/events/{event}", get(events::show))
        .route("/dashboard/manifests", get(manifests::list))
        .route("/dashboard/campaigns", get(campaigns::list))
        .route("/dashboard/campaigns/{campaign}", get(campaigns::show))
        .route(
            "/dashboard/campaigns/{campaign}/again",
            post(campaigns::again),
        )
        .route(
            "/dashboard/campaigns/{campaign}/cancel",
            post(campaigns::cancel),
        )
        .route(
            "/dashboard/campaigns/{campaign}/report",
            get(campaigns::report),
        )
        .route(
            "/dashboard/campaigns/{campaign}/comparison",
            get(campaigns::comparison),
        )
        .route(
            "/dashboard/campaigns/{campaign}/trend",
            get(campaigns::trend),
        )
        .route("/dashboard/live/campaigns", get(live::campaign_list))
        .route("/dashboard/live/campaigns/{campaign}", get(live::campaign))
        .route(
            "/dashboard/sign-in",
            get(sign_in::form).post(sign_in::sign_in),
        )
        .route("/dashboard/sign-out", post(sign_in::sign_out))
        .route("/dashboard/oidc/begin", get(oidc::begin))
        .route("/dashboard/oidc/callback", get(oidc::callback))
        .route("/dashboard/style.css", get(style))
}

async fn style() -> impl IntoResponse {
    let form = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    (form, include_str!("style.css"))
}

/// Whoever may look at a page; everybody else gets another answer, and the page is not made.
fn admitted(caller: Result<Caller, Problem>, scope: KeyScope) -> Result<Caller, Box<Response>> {
    match caller {
        Ok(caller) if caller.may(scope) => Ok(caller),
        Ok(caller) => {
            let body = html! { p { "Your key lacks the scope " (scope.to_string()) "." } };
            let page = Page::new("Not allowed", body).of(&caller);
            Err(Box::new((StatusCode::FORBIDDEN, page).into_response()))
        }
        Err(problem) if problem.status == 401 => {
            Err(Box::new(Redirect::to("/dashboard/sign-in").into_response()))
        }
        Err(problem) => Err(Box::new(error_page(&problem))),
    }
}

/// A page, or one that says what went wrong.
fn page_of(caller: &Caller, page: Result<Page, Problem>) -> Response {
    match page {
        Ok(page) => page.of(caller).into_response(),
        Err(problem) => error_page(&problem),
    }
}

/// A page that says what went wrong.
pub(super) fn error_page(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let page = Page::new("That did not work", html! { p { (problem.detail) } });
    let mut response = (status, page).into_response();
    if let Some(wait) = problem.retry_after {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, wait.into());
    }
    response
}
