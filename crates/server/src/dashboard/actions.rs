//! What people do in the dashboard: approve, deny and cancel, by forms that carry the token of their session.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proofhouse_store::model::{TaskRecord, TaskState};

use super::error_page;
use super::page::{FORM_FIELD, form_field, json};
use crate::api::{
    self, Api, AuditNote, COOKIE, Caller, Path, ReviewAnswer, cookie, is_form_token, signed_in,
    whole,
};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// The most bytes of a form.
const MAX_FORM: usize = 64 << 10;

/// Where a task is shown.
fn task_path(task: &str) -> String {
    let id = utf8_percent_encode(task, NON_ALPHANUMERIC);
    format!("/dashboard/tasks/{id}")
}

/// What the caller can do to a task.
pub(super) fn forms(caller: &Caller, task: &TaskRecord) -> Markup {
    let Some(token) = caller.form_token() else {
        return html! {};
    };
    let path = task_path(&task.id);
    let review = task.detail.as_ref().map(|detail| &detail["review"]);
    let review = review.filter(|_| task.state == TaskState::Waiting);
    let number = review.and_then(|review| review["id"].as_u64());
    let asked = review.and_then(|review| review["reviewer"].as_str());
    html! {
        @if let (Some(number), true) = (number, caller.may(KeyScope::TasksApprove)) {
            section.review aria-labelledby="question" {
                h2 #question { "Question " (number) }
                @if let Some(asked) = asked.filter(|asked| !asked.is_empty()) { p { "For " (asked) } }
                @if let Some(review) = review { (json(&review["arguments"])) }
                form method="post" action={ (path) "/reviews/" (number) } {
                    (form_field(&token))
                    label for="reason" { "Reason" }
                    input #reason name="reason" maxlength="1000";
                    button name="answer" value="approve" { "Approve" }
                    button name="answer" value="deny" { "Deny" }
                }
            }
        }
        @if task.state != TaskState::Ended && caller.may(KeyScope::TasksOperate) {
            form method="post" action={ (path) "/cancel" } {
                (form_field(&token))
                button { "Cancel the task" }
            }
        }
    }
}

/// The fields of a form that a page of ours made for whoever sent it, and who that is.
pub(super) async fn filled_in(
    api: &Api,
    request: Request,
) -> Result<(Caller, FormFields), Problem> {
    let (parts, body) = request.into_parts();
    let held = cookie(&parts, COOKIE).ok_or_else(|| Problem::unauthorized("sign in first"))?;
    let form = FormFields::of(whole(&parts.headers, body, MAX_FORM).await?.as_ref());
    if !is_form_token(held, form.get(FORM_FIELD).unwrap_or_default()) {
        return Err(Problem::forbidden(
            "the form does not come from a page of this server, or is too old; load the page again",
        ));
    }
    let caller = signed_in(api, held).await?;
    Ok((caller.noted(note(&parts)), form))
}

fn note(parts: &Parts) -> AuditNote {
    let note = parts.extensions.get::<AuditNote>();
    note.cloned().unwrap_or_default()
}

/// The fields of a form.
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    pub(super) fn of(body: &[u8]) -> Self {
        let pairs = url::form_urlencoded::parse(body);
        Self(pairs.into_owned().take(32).collect())
    }

    pub(super) fn get(&self, wanted: &str) -> Option<&str> {
        let pair = self.0.iter().find(|(name, _)| name == wanted);
        pair.map(|(_, value)| value.as_str())
    }
}

/// A page again after something was done, or one that says why it was not.
fn done(outcome: Result<(), Problem>, path: &str) -> Response {
    match outcome {
        Ok(()) => Redirect::to(path).into_response(),
        Err(problem) if problem.status == 401 => Redirect::to("/dashboard/sign-in").into_response(),
        Err(problem) => error_page(&problem),
    }
}

pub(super) async fn review(
    State(api): State<Arc<Api>>,
    path: Result<Path<(String, u64)>, Problem>,
    request: Request,
) -> Response {
    let Path((task, review)) = match path {
        Ok(path) => path,
        Err(problem) => return error_page(&problem),
    };
    let outcome = async {
        let (caller, form) = filled_in(&api, request).await?;
        caller.needs(KeyScope::TasksApprove)?;
        let approve = match form.get("answer") {
            Some("approve") => true,
            Some("deny") => false,
            _ => return Err(Problem::bad_request("the form says no answer")),
        };
        let reason = form.get("reason").map(str::trim);
        let reason = reason.filter(|reason| !reason.is_empty());
        let answer = ReviewAnswer {
            approve,
            reason: reason.map(str::to_owned),
            user: None,
        };
        api::decide(&api, &caller, (&task, review), answer).await
    };
    done(outcome.await, &task_path(&task))
}

pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    path: Result<Path<String>, Problem>,
    request: Request,
) -> Response {
    let Path(task) = match path {
        Ok(path) => path,
        Err(problem) => return error_page(&problem),
    };
    let outcome = async {
        let (caller, _) = filled_in(&api, request).await?;
        caller.needs(KeyScope::TasksOperate)?;
        api::cancel(&api, &caller, &task).await
    };
    done(outcome.await, &task_path(&task))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_by_name_and_capped() {
        let many = (0..100).map(|number| format!("f{number}={number}"));
        let body: Vec<String> = many.collect();
        let form = FormFields::of(body.join("&").as_bytes());
        assert_eq!(form.get("f1"), Some("1"));
        assert_eq!(form.get("f99"), None);
    }
}
