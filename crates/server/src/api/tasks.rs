//! Tasks over HTTP: create, list, show, talk, approve, interrupt, cancel.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use proofhouse_agent::task::User;
use proofhouse_store::model::{TaskFilter, TaskState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::caller::{ApproveTasks, BeginTasks, May, OperateTasks, ReadTasks};
use super::operations::{self, ReviewAnswer, checked_message};
use super::review_answers::{self, TaskDetailView};
use super::{Api, JsonBody, Path, Query, TaskView, TurnView, idempotency};
use crate::engine::TaskRequest;
use crate::problem::Problem;

/// Rows of a page when the request does not say.
const PAGE: usize = 50;
/// The most rows of a page.
const MAX_PAGE: usize = 200;

pub(super) fn page(limit: Option<u32>) -> Result<usize, Problem> {
    let limit = limit.map_or(PAGE, |limit| limit as usize);
    if (1..=MAX_PAGE).contains(&limit) {
        Ok(limit)
    } else {
        Err(Problem::bad_request(format!(
            "`limit` is from 1 to {MAX_PAGE}"
        )))
    }
}

/// A task to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTask {
    /// The agent.
    #[schema(min_length = 1, max_length = 200)]
    agent: String,
    /// Its namespace, where the name alone does not say enough.
    #[serde(default)]
    namespace: Option<String>,
    /// What is said to it first.
    #[serde(default)]
    message: Option<String>,
    /// The agent's parameters.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
    /// Who talks to the agent.
    #[serde(default)]
    user: Option<String>,
    /// The user's address.
    #[serde(default)]
    email: Option<String>,
}

/// What a request made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskCreated {
    /// Names the task.
    id: String,
}

/// Begin a task
///
/// A request with the same `Idempotency-Key`, of the same key of the API, begins one task, as long as that task is kept.
/// With another body it is refused.
#[utoipa::path(
    post, path = "/v1/tasks", tag = "tasks", security(("key" = [])),
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Whoever repeats the request repeats this",
            pattern = "^[!-~]{1,200}$")
    ),
    request_body = CreateTask,
    responses(
        (status = 201, body = TaskCreated),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    May(caller, _): May<BeginTasks>,
    headers: HeaderMap,
    JsonBody(task): JsonBody<CreateTask>,
) -> Result<(StatusCode, Json<TaskCreated>), Problem> {
    let key = idempotency::key(&headers)?;
    let user = task.user.unwrap_or_else(|| caller.person().to_owned());
    let request = TaskRequest {
        namespace: task.namespace.unwrap_or_default(),
        agent: task.agent,
        message: checked_message(task.message)?,
        parameters: task.parameters,
        origin: json!({"by": "api", "user": user, "caller": caller.person()}),
        user: User {
            id: user,
            email: task.email,
        },
        trace: None,
        unasked: false,
    };
    let id = operations::begin(&api, &caller, key.as_deref(), request).await?;
    Ok((StatusCode::CREATED, Json(TaskCreated { id })))
}

/// Which tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListTasks {
    /// Only those that are `idle`, `running`, `waiting`, `interrupted` or `ended`.
    #[param(pattern = "^(idle|running|waiting|interrupted|ended)$")]
    state: Option<String>,
    /// Only those of this agent.
    agent: Option<String>,
    /// Only those of agents in this namespace.
    namespace: Option<String>,
    /// Those after this one in the list: the id of the last one seen.
    after: Option<String>,
    /// How many, 50 unless said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Tasks, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskList {
    tasks: Vec<TaskView>,
    /// What `after` is for the next page; none at the end.
    next: Option<String>,
}

/// List tasks, newest first
#[utoipa::path(
    get, path = "/v1/tasks", tag = "tasks", security(("key" = [])), params(ListTasks),
    responses(
        (status = 200, body = TaskList),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadTasks>,
    Query(query): Query<ListTasks>,
) -> Result<Json<TaskList>, Problem> {
    let limit = page(query.limit)?;
    let state = query.state.map(|word| {
        TaskState::from_word(&word).ok_or_else(|| {
            let words: Vec<&str> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
            Problem::bad_request(format!("`state` is one of: {}", words.join(", ")))
        })
    });
    let filter = TaskFilter {
        state: state.transpose()?,
        agent_namespace: query.namespace,
        agent_name: query.agent,
        after: query.after,
        limit,
        ..TaskFilter::default()
    };
    let tasks = api.seen_by(&caller).tasks(filter).await?;
    let full = tasks.len() == limit;
    let next = tasks.last().filter(|_| full).map(|task| task.id.clone());
    let tasks = tasks.into_iter().map(Into::into).collect();
    Ok(Json(TaskList { tasks, next }))
}

/// Show a task
#[utoipa::path(
    get, path = "/v1/tasks/{task}", tag = "tasks", security(("key" = [])),
    params(("task" = String, Path, description = "The id of the task")),
    responses(
        (status = 200, body = TaskDetailView),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadTasks>,
    Path(task): Path<String>,
) -> Result<Json<TaskDetailView>, Problem> {
    let detail = review_answers::detail(&api.seen_by(&caller), &task).await?;
    Ok(Json(detail))
}

/// Remove a task that has ended, with everything about it
#[utoipa::path(
    delete, path = "/v1/tasks/{task}", tag = "tasks", security(("key" = [])),
    params(("task" = String, Path, description = "The id of the task")),
    responses(
        (status = 204),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    May(caller, _): May<OperateTasks>,
    Path(task): Path<String>,
) -> Result<StatusCode, Problem> {
    let store = api.seen_by(&caller);
    let found = store.task(&task).await?;
    if found.state != TaskState::Ended {
        return Err(Problem::conflict("the task has not ended; cancel it first"));
    }
    caller.note().done_by(store.delete_task(&task)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which turns.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListTurns {
    /// The number of the first.
    #[param(minimum = 0)]
    from: Option<i64>,
    /// How many, 50 unless said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Turns of a task, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TurnList {
    /// Fewer than asked for where they are large.
    turns: Vec<TurnView>,
    /// What `from` is for the next page; none at the end.
    next: Option<i64>,
}

/// List the turns of a task, oldest first
#[utoipa::path(
    get, path = "/v1/tasks/{task}/turns", tag = "tasks", security(("key" = [])),
    params(("task" = String, Path, description = "The id of the task"), ListTurns),
    responses(
        (status = 200, body = TurnList),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn turns(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadTasks>,
    Path(task): Path<String>,
    Query(query): Query<ListTurns>,
) -> Result<Response, Problem> {
    let limit = page(query.limit)?;
    let from = query.from.unwrap_or(0);
    if from < 0 {
        return Err(Problem::bad_request("`from` is not negative"));
    }
    let page = api.seen_by(&caller).turns(&task, from, limit).await?;
    let list = TurnList {
        turns: page.turns.into_iter().map(Into::into).collect(),
        next: page.next,
    };
    Ok(page.held.until_taken(Json(list).into_response()))
}

/// Something to say.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    /// What.
    #[schema(min_length = 1)]
    message: String,
    /// The agent's parameters.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: Map<String, Value>,
}

/// What was said is kept and will be answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessageAccepted {
    /// Names the delivery.
    delivery: i64,
}

/// Say something to a task
///
/// The answer is among the task's turns. A request with the same `Idempotency-Key` says it once; with another body it is
/// refused.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/messages", tag = "tasks", security(("key" = [])),
    params(
        ("task" = String, Path, description = "The id of the task"),
        ("Idempotency-Key" = Option<String>, Header, description = "Whoever repeats the request repeats this",
            pattern = "^[!-~]{1,200}$")
    ),
    request_body = NewMessage,
    responses(
        (status = 202, body = MessageAccepted),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn say(
    State(api): State<Arc<Api>>,
    May(caller, _): May<BeginTasks>,
    Path(task): Path<String>,
    headers: HeaderMap,
    JsonBody(say): JsonBody<NewMessage>,
) -> Result<(StatusCode, Json<MessageAccepted>), Problem> {
    let key = idempotency::key(&headers)?;
    let said = (say.message, say.parameters);
    let delivery = operations::say(&api, &caller, &task, key, said).await?;
    Ok((StatusCode::ACCEPTED, Json(MessageAccepted { delivery })))
}

/// An answer to a question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewDecision {
    /// Whether it may be done.
    approve: bool,
    /// Why, or why not.
    #[serde(default)]
    reason: Option<String>,
    /// Who answers, where the key may act for its users (`users:act`).
    #[serde(default)]
    #[schema(max_length = 200)]
    user: Option<String>,
}

/// Approve or deny what a task asks about
///
/// `review(who)` in the manifest says who may: a person, `key:ID`, `group:NAME`, or anyone with the scope where it is empty.
/// Whoever began the task or spoke to it may not, unless the manifest names them.
#[utoipa::path(
    post, path = "/v1/tasks/{task}/reviews/{review}", tag = "tasks", security(("key" = [])),
    params(
        ("task" = String, Path, description = "The id of the task"),
        ("review" = u64, Path, description = "The number of the question, from the task's detail")
    ),
    request_body = ReviewDecision,
    responses(
        (status = 204),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn decide(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ApproveTasks>,
    Path((task, review)): Path<(String, u64)>,
    JsonBody(decision): JsonBody<ReviewDecision>,
) -> Result<StatusCode, Problem> {
    let answer = ReviewAnswer {
        approve: decision.approve,
        reason: decision.reason,
        user: decision.user,
    };
    operations::decide(&api, &caller, (&task, review), answer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stop what a task is doing; it goes on with its next input
#[utoipa::path(
    post, path = "/v1/tasks/{task}/interrupt", tag = "tasks", security(("key" = [])),
    params(("task" = String, Path, description = "The id of the task")),
    responses(
        (status = 204),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn interrupt(
    State(api): State<Arc<Api>>,
    May(caller, _): May<OperateTasks>,
    Path(task): Path<String>,
) -> Result<StatusCode, Problem> {
    operations::interrupt(&api, &caller, &task, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a task for good
#[utoipa::path(
    post, path = "/v1/tasks/{task}/cancel", tag = "tasks", security(("key" = [])),
    params(("task" = String, Path, description = "The id of the task")),
    responses(
        (status = 204),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem),
        (status = 503, body = Problem)
    )
)]
pub(super) async fn cancel(
    State(api): State<Arc<Api>>,
    May(caller, _): May<OperateTasks>,
    Path(task): Path<String>,
) -> Result<StatusCode, Problem> {
    operations::cancel(&api, &caller, &task, None).await?;
    Ok(StatusCode::NO_CONTENT)
}
