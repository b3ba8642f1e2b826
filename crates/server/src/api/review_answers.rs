//! What people answered to the questions of a task: who, when and why, for whoever looks into it later.

use proofhouse_store::model::DeliveryRecord;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::tenant::TenantStore;
use super::{TaskView, moment};
use crate::problem::Problem;

/// Deliveries that are looked through for answers, newest first.
const LOOKED_THROUGH: usize = 500;

/// What a person answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ReviewAnswerView {
    /// The number of the question.
    pub review: u64,
    /// Whether the call may go ahead.
    pub approve: bool,
    /// The id of the key that it was answered with.
    pub by: Option<String>,
    /// The person, or the key with its successors.
    pub person: Option<String>,
    /// Why, as they said.
    pub reason: Option<String>,
    /// When it was kept.
    pub at: String,
}

impl ReviewAnswerView {
    fn of(delivery: &DeliveryRecord) -> Option<Self> {
        let approve = match delivery.name.as_str() {
            "control.approve" => true,
            "control.deny" => false,
            _ => return None,
        };
        let about = &delivery.body["about"];
        let text = |name: &str| about[name].as_str().map(str::to_owned);
        Some(Self {
            review: delivery.body.get("review").and_then(Value::as_u64)?,
            approve,
            by: text("by"),
            person: text("person"),
            reason: text("reason"),
            at: moment(delivery.created_at),
        })
    }
}

/// A task, with what people answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct TaskDetailView {
    #[serde(flatten)]
    task: TaskView,
    /// What people answered to its questions, oldest first.
    answers: Vec<ReviewAnswerView>,
}

/// Reads a task with its answers.
pub(super) async fn detail(store: &TenantStore<'_>, id: &str) -> Result<TaskDetailView, Problem> {
    let task = store.task(id).await?;
    let deliveries = store.delivery_list(id, LOOKED_THROUGH).await?;
    let answers = answers(&deliveries);
    Ok(TaskDetailView {
        task: task.into(),
        answers,
    })
}

/// What people answered, oldest first, among deliveries that are newest first.
pub(crate) fn answers(deliveries: &[DeliveryRecord]) -> Vec<ReviewAnswerView> {
    let answers = deliveries.iter().rev();
    answers.filter_map(ReviewAnswerView::of).collect()
}
