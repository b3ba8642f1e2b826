//! What people do in the dashboard: approve, deny, say something, interrupt, cancel and replay, by forms that carry the token of their
//! session.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use maud::{Markup, html};
use proofhouse_store::model::{TaskRecord, TaskState};

use super::error_page;
use super::page::{FORM_FIELD, form_field, href, json};
use crate::api::{
    self, Api, AuditNote, COOKIE, Caller, Path, ReviewAnswer, cookie, is_form_token, signed_in,
    take_request, whole,
};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// The most bytes of a form: a message, with three for each of its letters that are not plain.
const MAX_FORM: usize = 1 << 20;
/// The name of the field by which a form that is sent twice is known.
const ONCE_FIELD: &str = "once";

/// The longest reason.
const MAX_REASON: usize = 1_000;

/// Where a task is shown.
fn task_path(task: &str) -> String {
    href("/dashboard/tasks", task)
}

/// Where a campaign is shown.
pub(super) fn campaign_path(campaign: &str) -> String {
    href("/dashboard/campaigns", campaign)
}

/// The field for a reason.
pub(super) fn reason_field(id: &str) -> Markup {
    html! {
        label for=(id) { "Reason" }
        input id=(id) name="reason" maxlength=(MAX_REASON);
    }
}

/// The question of a task, and the form that answers it, for those who may.
pub(super) fn question(caller: &Caller, task: &TaskRecord) -> Markup {
    let review = task.detail.as_ref().map(|detail| &detail["review"]);
    let review = review.filter(|_| task.state == TaskState::Waiting);
    let number = review.and_then(|review| review["id"].as_u64());
    let (Some(review), Some(number)) = (review, number) else {
        return html! {};
    };
    let asked = review["reviewer"].as_str().unwrap_or_default();
    let token = caller.form_token();
    let token = token.filter(|_| caller.may(KeyScope::TasksApprove));
    html! {
        section.review aria-labelledby="question" {
            h2 #question { "Question " (number) }
            p {
                "May " strong { (review["function"].as_str().unwrap_or("a call")) } " be called with this?"
                @if !asked.is_empty() { " For " (asked) "." }
            }
            (json(&review["arguments"]))
            @if let Some(token) = &token {
                form.act method="post" action={ (task_path(&task.id)) "/reviews/" (number) } {
                    (form_field(token))
                    (reason_field("reason"))
                    div.buttons {
                        button name="answer" value="approve" { "Approve" }
                        button.danger name="answer" value="deny" { "Deny" }
                    }
                }
            }
        }
    }
}

/// What the caller can do to a task besides. `once` tells a form that is sent twice from one that is filled in twice.
pub(super) fn forms(caller: &Caller, task: &TaskRecord, once: &str) -> Markup {
    let Some(token) = caller.form_token() else {
        return html! {};
    };
    let path = task_path(&task.id);
    let is_over = task.state == TaskState::Ended;
    html! {
        @if !is_over && caller.may(KeyScope::TasksBegin) {
            form.act method="post" action={ (path) "/messages" } {
                (form_field(&token))
                input type="hidden" name=(ONCE_FIELD) value=(once);
                label for="message" { "Message" }
                textarea #message name="message" rows="3" required {}
                div.buttons { button { "Send" } }
            }
        }
        @if !is_over && caller.may(KeyScope::TasksOperate) {
            details #operate {
                summary { "Interrupt or cancel" }
                form.act method="post" action={ (path) "/cancel" } {
                    (form_field(&token))
                    (reason_field("cancel-reason"))
                    div.buttons {
                        button formaction={ (path) "/interrupt" } { "Interrupt" }
                        button.danger { "Cancel the task" }
                    }
                }
            }
        }
    }
}

/// The form that routes an event again.
pub(super) fn replay_form(caller: &Caller, event: i64) -> Markup {
    let token = caller.form_token();
    let token = token.filter(|_| caller.may(KeyScope::EventsWrite));
    html! {
        @if let Some(token) = token {
            form.act method="post" action={ "/dashboard/events/" (event) "/replay" } {
                (form_field(&token))
                (reason_field("reason"))
                div.buttons { button { "Replay the event" } }
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
    take_request(api, &caller)?;
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
        let reason = reason(&form)?;
        let answer = ReviewAnswer {
            approve,
            reason,
            user: None,
        };
        api::decide(&api, &caller, (&task, review), answer).await
    };
    done(outcome.await, &task_path(&task))
}

/// Why somebody does something, if they say.
pub(super) fn reason(form: &FormFields) -> Result<Option<String>, Problem> {
    let reason = form.get("reason").map(str::trim).unwrap_or_default();
    if reason.chars().count() > MAX_REASON {
        let why = format!("a reason has at most {MAX_REASON} characters");
        return Err(Problem::bad_request(why));
    }
    Ok((!reason.is_empty()).then(|| reason.to_owned()))
}

/// Does something to a task for whoever sent a form and has the scope.
async fn act<F>(
    api: &Api,
    path: Result<Path<String>, Problem>,
    request: Request,
    (scope, what): (KeyScope, F),
) -> Response
where
    F: AsyncFnOnce(&Caller, &str, &FormFields) -> Result<(), Problem>,
{
    let Path(task) = match path {
        Ok(path) => path,
        Err(problem) => return error_page(&problem),
    };
    let outcome = async {
        let (caller, form) = filled_in(api, request).await?;
        caller.needs(scope)?;
        what(&caller, &task, &form).await
    };
    done(outcome.await, &task_path(&task))
}

/// Does something to a campaign for whoever sent a form and has the scope. It says which campaign is shown then.
pub(super) async fn act_on_campaign<F>(
    api: &Api,
    path: Result<Path<String>, Problem>,
    request: Request,
    what: F,
) -> Response
where
    F: AsyncFnOnce(&Caller, &str, &FormFields) -> Result<String, Problem>,
{
    let Path(campaign) = match path {
        Ok(path) => path,
        Err(problem) => return error_page(&problem),
    };
    let outcome = async {
        let (caller, form) = filled_in(api, request).await?;
        caller.needs(KeyScope::CampaignsWrite)?;
        what(&caller, &campaign, &form).await
    };
    match outcome.await {
        Ok(shown) => done(Ok(()), &campaign_path(&shown)),
        Err(problem) => done(Err(problem), ""),
    }
}

pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    path: Result<Path<String>, Problem>,
    request: Request,
) -> Response {
    let cancel = async |caller: &Caller, task: &str, form: &FormFields| {
        api::cancel(&api, caller, task, reason(form)?).await
    };
    act(&api, path, request, (KeyScope::TasksOperate, cancel)).await
}

pub(super) async fn interrupt(
    State(api): State<Arc<Api>>,
    path: Result<Path<String>, Problem>,
    request: Request,
) -> Response {
    let interrupt = async |caller: &Caller, task: &str, form: &FormFields| {
        api::interrupt(&api, caller, task, reason(form)?).await
    };
    act(&api, path, request, (KeyScope::TasksOperate, interrupt)).await
}

pub(super) async fn message(
    State(api): State<Arc<Api>>,
    path: Result<Path<String>, Problem>,
    request: Request,
) -> Response {
    let say = async |caller: &Caller, task: &str, form: &FormFields| {
        let message = form.get("message").unwrap_or_default().trim();
        // Browsers end lines as forms of old did.
        let said = (message.replace("\r\n", "\n"), serde_json::Map::new());
        let once = form.get(ONCE_FIELD).filter(|once| is_once(once));
        let once = once.map(|once| format!("form:{once}"));
        api::say(&api, caller, task, once, said).await.map(drop)
    };
    act(&api, path, request, (KeyScope::TasksBegin, say)).await
}

fn is_once(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) async fn replay(
    State(api): State<Arc<Api>>,
    path: Result<Path<i64>, Problem>,
    request: Request,
) -> Response {
    let Path(event) = match path {
        Ok(path) => path,
        Err(problem) => return error_page(&problem),
    };
    let outcome = async {
        let (caller, form) = filled_in(&api, request).await?;
        caller.needs(KeyScope::EventsWrite)?;
        let reason = reason(&form)?;
        api::replay(&api, &caller, event, reason).await.map(drop)
    };
    done(
        outcome.await,
        &href("/dashboard/events", &event.to_string()),
    )
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
