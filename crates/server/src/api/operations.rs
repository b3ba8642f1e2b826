//! What a caller does to tasks and events, by the API or by a form of the dashboard: in their namespaces, and as far as reviews
//! are meant for them.

use proofhouse_agent::task::Decision;
use proofhouse_fleet::name::shown;
use proofhouse_store::model::{CampaignRow, TaskRecord, TaskState};
use serde_json::{Map, Value, json};

use super::{Api, Caller, idempotency, store_problem};
use crate::engine::TaskRequest;
use crate::problem::Problem;

/// The longest message.
const MAX_MESSAGE: usize = 256 << 10;
/// The longest name of a person.
const MAX_USER: usize = 200;
/// The most characters of a reason in the audit log.
const MAX_NOTED_REASON: usize = 1_000;
/// Deliveries that are looked through for what a caller said to a task.
const MAX_LOOKED_THROUGH: usize = 20_000;
/// Deliveries of a page.
const PAGE: usize = 1_000;

/// A message that is not too long.
pub(super) fn checked_message(message: Option<String>) -> Result<Option<String>, Problem> {
    match message {
        Some(text) if text.len() > MAX_MESSAGE => Err(Problem::too_large_because(format!(
            "a message has at most {MAX_MESSAGE} bytes"
        ))),
        message => Ok(message),
    }
}

/// Begins a task, and returns its id.
pub(super) async fn begin(
    api: &Api,
    caller: &Caller,
    key: Option<&str>,
    mut request: TaskRequest,
) -> Result<String, Problem> {
    request.namespace = namespace(api, caller, &request)?;
    caller.note().namespace(&request.namespace);
    caller.note().detail("agent", request.agent.clone().into());
    let engine = api.running_engine()?;
    let note = caller.note();
    match key.map(|key| idempotency::task(caller, key, &request)) {
        Some(once) => {
            note.object("task", &once.task);
            let started = note.done_by(engine.start_task_once(request, &once));
            Ok(started.await?)
        }
        None => {
            let id = engine.new_task_id()?;
            note.object("task", &id);
            let started = note.done_by(engine.start_task_as(id, request));
            Ok(started.await?.id)
        }
    }
}

/// The namespace of the agent that a request is about. The name of the agent says enough where one namespace of the caller's has
/// it; what others have makes no difference.
fn namespace(api: &Api, caller: &Caller, request: &TaskRequest) -> Result<String, Problem> {
    let own = caller.namespaces();
    if own.list().is_none() {
        return Ok(request.namespace.clone());
    }
    if !request.namespace.is_empty() {
        if own.has(&request.namespace) {
            return Ok(request.namespace.clone());
        }
        let agent = format!("{}/{}", request.namespace, request.agent);
        return Err(Problem::not_found(format!("there is no agent `{agent}`")));
    }
    let manifests = api.engine().manifests();
    let agents = manifests.catalog().agents();
    let mut named = agents.filter(|agent| agent.name == request.agent && own.has(&agent.namespace));
    match (named.next(), named.next()) {
        (Some(agent), None) => Ok(agent.namespace.clone()),
        (Some(_), Some(_)) => Err(Problem::unprocessable(format!(
            "several namespaces have an agent `{}`: say which",
            request.agent
        ))),
        (None, _) => Err(Problem::not_found(format!(
            "there is no agent `{}`",
            request.agent
        ))),
    }
}

/// Insists that a task can go on with the manifests as they are: what nobody will ever do is not acknowledged.
fn can_go_on(api: &Api, task: &TaskRecord) -> Result<(), Problem> {
    match api.engine().manifests().why_stuck(task) {
        None => Ok(()),
        Some(why) => Err(Problem::conflict(format!(
            "{why}: cancel the task, or bring the manifest back"
        ))),
    }
}

/// Says something to a task, and returns the number of the delivery.
pub(crate) async fn say(
    api: &Api,
    caller: &Caller,
    task: &str,
    key: Option<String>,
    (message, parameters): (String, Map<String, Value>),
) -> Result<i64, Problem> {
    let row = api.seen_by(caller).task(task).await?;
    if message.is_empty() {
        return Err(Problem::bad_request("`message` is empty"));
    }
    let message = checked_message(Some(message))?;
    can_go_on(api, &row)?;
    // Another key of the API may use the same word for something else, also one of the same person.
    let key = key.map(|key| format!("{}:{key}", caller.principal()));
    let engine = api.running_engine()?;
    let by = Some(caller.person());
    let said = engine.message_by(task, message, parameters, key, by);
    let received = caller.note().done_by(said).await?;
    Ok(received.id())
}

/// An answer to a question of a task.
#[derive(Debug, Default)]
pub(crate) struct ReviewAnswer {
    /// Whether it may be done.
    pub approve: bool,
    /// Why, or why not.
    pub reason: Option<String>,
    /// On whose behalf, if not the caller's own.
    pub user: Option<String>,
}

/// Answers a question of a task.
pub(crate) async fn decide(
    api: &Api,
    caller: &Caller,
    (task, review): (&str, u64),
    answer: ReviewAnswer,
) -> Result<(), Problem> {
    let note = caller.note();
    note.detail("review", review.into());
    note.detail("approve", answer.approve.into());
    let reason = checked_message(answer.reason)?;
    note_reason(caller, reason.as_deref());
    if answer
        .user
        .as_ref()
        .is_some_and(|user| user.chars().count() > MAX_USER)
    {
        return Err(Problem::bad_request(format!(
            "`user` has at most {MAX_USER} characters"
        )));
    }
    let row = api.seen_by(caller).task(task).await?;
    let asked = row.detail.as_ref().map(|detail| &detail["review"]["id"]);
    if row.state != TaskState::Waiting || asked.and_then(Value::as_u64) != Some(review) {
        // The engine says the same; who may answer is only known of the question that is asked now.
        let why = format!("task `{task}` asks no question {review}");
        return Err(Problem::conflict(why));
    }
    may_answer(api, caller, &row, answer.user.as_deref()).await?;
    can_go_on(api, &row)?;
    let person = answer.user.as_deref().unwrap_or(caller.person());
    note.detail("person", person.into());
    let about = json!({"by": caller.key, "person": person, "reason": reason});
    let decision = if answer.approve {
        Decision::Approve
    } else {
        Decision::Deny
    };
    let engine = api.running_engine()?;
    let decided = engine.decide(task, review, decision, about);
    Ok(note.done_by(decided).await?)
}

/// Insists that the question of a task is meant for the caller. `review(who)` names a person, a key (`key:ID`), a group
/// (`group:NAME`), or nobody: then it is for anyone who may approve. Whoever began the task, or spoke to it, answers only if
/// the manifest names them as a person: `review(context.user.id)`.
async fn may_answer(
    api: &Api,
    caller: &Caller,
    task: &TaskRecord,
    behalf: Option<&str>,
) -> Result<(), Problem> {
    if caller.is_anyone() {
        return Ok(());
    }
    let asked = task
        .detail
        .as_ref()
        .map(|detail| &detail["review"]["reviewer"]);
    let asked = asked.and_then(Value::as_str).unwrap_or_default().trim();
    let not_asked = || {
        Problem::forbidden("the question is for somebody else: the manifest names who answers it")
    };
    if let Some(behalf) = behalf {
        caller.needs(crate::keys::KeyScope::UsersAct)?;
        let name = asked.strip_prefix("user:").unwrap_or(asked);
        let is_asked = name.is_empty() || name == behalf;
        let began = task.user_id == behalf || task.origin["caller"] == behalf;
        if !is_asked {
            return Err(not_asked());
        }
        if began && name.is_empty() {
            return Err(own_task());
        }
        return Ok(());
    }
    if !asked.is_empty() && caller.is_called(asked) {
        return Ok(());
    }
    let is_meant = match asked.strip_prefix("group:") {
        Some(group) => caller.is_in_group(group),
        None => asked.is_empty(),
    };
    if !is_meant {
        return Err(not_asked());
    }
    let began = task.origin["caller"] == caller.person() || caller.is_called(&task.user_id);
    if began || has_spoken(api, caller, &task.id).await? {
        return Err(own_task());
    }
    Ok(())
}

fn own_task() -> Problem {
    Problem::forbidden(
        "whoever began a task or spoke to it does not approve what it does, unless the manifest names them",
    )
}

/// Whether the caller said something to a task.
async fn has_spoken(api: &Api, caller: &Caller, task: &str) -> Result<bool, Problem> {
    let (mut before, mut seen) = (None, 0);
    loop {
        let page = api.seen_by(caller).deliveries(task, before, PAGE).await?;
        let own = |body: &Value| body["by"] == caller.person();
        if page
            .iter()
            .any(|delivery| delivery.event.is_none() && own(&delivery.body))
        {
            return Ok(true);
        }
        seen += page.len();
        before = page.last().map(|delivery| delivery.id);
        if page.len() < PAGE {
            return Ok(false);
        }
        if seen >= MAX_LOOKED_THROUGH {
            return Err(Problem::conflict(
                "the task had too many inputs to tell who spoke to it; name a person in `review(…)`",
            ));
        }
    }
}

/// Notes in the audit log why somebody does something.
fn note_reason(caller: &Caller, reason: Option<&str>) {
    if let Some(reason) = reason {
        let reason: String = reason.chars().take(MAX_NOTED_REASON).collect();
        caller.note().detail("reason", reason.into());
    }
}

/// Who wants something of a task, and why; it is kept with the command and noted in the audit log.
fn about(caller: &Caller, reason: Option<&str>) -> Value {
    note_reason(caller, reason);
    json!({"by": caller.key, "person": caller.person(), "reason": reason})
}

/// Stops what a task is doing.
pub(crate) async fn interrupt(
    api: &Api,
    caller: &Caller,
    task: &str,
    reason: Option<String>,
) -> Result<(), Problem> {
    let row = api.seen_by(caller).task(task).await?;
    let about = about(caller, reason.as_deref());
    can_go_on(api, &row)?;
    let interrupted = api.running_engine()?.interrupt_by(task, about);
    Ok(caller.note().done_by(interrupted).await?)
}

/// Ends a task.
pub(crate) async fn cancel(
    api: &Api,
    caller: &Caller,
    task: &str,
    reason: Option<String>,
) -> Result<(), Problem> {
    api.seen_by(caller).task(task).await?;
    let about = about(caller, reason.as_deref());
    let cancelled = api.running_engine()?.cancel_by(task, about);
    Ok(caller.note().done_by(cancelled).await?)
}

/// Routes an event again, and returns the number of the attempt.
pub(crate) async fn replay(
    api: &Api,
    caller: &Caller,
    event: i64,
    reason: Option<String>,
) -> Result<i64, Problem> {
    note_reason(caller, reason.as_deref());
    api.seen_by(caller).replayable(event).await?;
    let replayed = api.running_engine()?.replay(event);
    Ok(caller.note().done_by(replayed).await?)
}

/// Starts a campaign from the plan of an earlier one. Workers pick it up.
pub(crate) async fn start_campaign(
    api: &Api,
    caller: &Caller,
    campaign: &str,
    reason: Option<String>,
) -> Result<CampaignRow, Problem> {
    note_reason(caller, reason.as_deref());
    caller.note().object("campaign", campaign);
    let source = api.seen_by(caller).campaign(campaign).await?;
    let started = api.store.repeat_campaign(source.id);
    caller.note().done_by(started).await.map_err(store_problem)
}

/// Ends a campaign.
pub(crate) async fn cancel_campaign(
    api: &Api,
    caller: &Caller,
    campaign: &str,
    reason: Option<String>,
) -> Result<(), Problem> {
    note_reason(caller, reason.as_deref());
    let found = api.seen_by(caller).campaign(campaign).await?;
    if found.state.is_over() {
        let name = shown(&found);
        let state = found.state;
        return Err(Problem::conflict(format!(
            "campaign {name} is already {state}"
        )));
    }
    let why = match reason {
        Some(reason) => format!("cancelled by {}: {reason}", caller.person()),
        None => format!("cancelled by {}", caller.person()),
    };
    let cancelled = api.store.cancel_campaign(found.id, &why);
    // Whether it was over a moment before makes no difference any more.
    caller
        .note()
        .done_by(cancelled)
        .await
        .map_err(store_problem)?;
    Ok(())
}
