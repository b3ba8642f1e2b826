//! What a task is up to, in one word that a person can act on: waiting, stuck and done are not the same.

use std::collections::HashMap;
use std::time::Duration;

use maud::{Markup, html};
use proofhouse_store::model::{TaskFilter, TaskRecord, TaskState, TaskWait};

/// What a task is up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskCondition {
    /// Somebody works on it.
    Running,
    /// It has something to do, and its turn will come.
    Queued,
    /// It has had something to do for so long that something is wrong.
    Stuck,
    /// A person has to answer.
    NeedsApproval,
    /// Its model could not be asked the last time.
    Failed,
    /// It waits for the next message or event.
    Idle,
    /// Somebody stopped it.
    Interrupted,
    /// It is over, as somebody wished.
    Ended,
    /// It is over because something went wrong.
    Broken,
}

/// Each with its word, its tone and a sign for those who do not see the tone: one row each.
const WORDS: [(TaskCondition, &str, &str, &str); 9] = [
    (TaskCondition::Running, "running", "busy", "▶"),
    (TaskCondition::Queued, "queued", "busy", "…"),
    (TaskCondition::Stuck, "stuck", "bad", "▲"),
    (TaskCondition::NeedsApproval, "needs approval", "ask", "?"),
    (TaskCondition::Failed, "failed", "bad", "✕"),
    (TaskCondition::Idle, "idle", "calm", "○"),
    (TaskCondition::Interrupted, "interrupted", "ask", "‖"),
    (TaskCondition::Ended, "ended", "calm", "●"),
    (TaskCondition::Broken, "ended by a problem", "bad", "✕"),
];

impl TaskCondition {
    /// What a task is up to that has had something to do for so long while nobody works on it, and whose agent can work or
    /// not.
    pub(super) fn of(
        task: &TaskRecord,
        waited: Option<Duration>,
        limit: Duration,
        is_able: bool,
    ) -> Self {
        let detail = |name: &str| task.detail.as_ref().and_then(|detail| detail.get(name));
        let is_stuck = waited.is_some_and(|waited| waited > limit || !is_able);
        if task.state != TaskState::Ended && is_stuck {
            return Self::Stuck;
        }
        match task.state {
            TaskState::Waiting => Self::NeedsApproval,
            TaskState::Interrupted => Self::Interrupted,
            TaskState::Running | TaskState::Idle if waited.is_some() => Self::Queued,
            TaskState::Running => Self::Running,
            TaskState::Idle if detail("failed").is_some() => Self::Failed,
            TaskState::Idle => Self::Idle,
            TaskState::Ended => {
                let reason = detail("end").and_then(|end| end["reason"].as_str());
                match reason {
                    None | Some("closed" | "cancelled") => Self::Ended,
                    Some(_) => Self::Broken,
                }
            }
        }
    }

    fn row(self) -> (&'static str, &'static str, &'static str) {
        let row = WORDS.iter().find(|(status, ..)| *status == self);
        row.map_or(("", "", ""), |(_, word, tone, sign)| (word, tone, sign))
    }

    /// Its word.
    pub(super) fn word(self) -> &'static str {
        self.row().0
    }

    /// Its word with its tone and sign.
    pub(super) fn badge(self) -> Markup {
        let (word, tone, sign) = self.row();
        html! { span class={ "badge tone-" (tone) } { span aria-hidden="true" { (sign) " " } (word) } }
    }
}

/// What a list can be narrowed down to: one row each.
pub(super) const CHOICES: [(&str, TaskCondition); 7] = [
    ("running", TaskCondition::Running),
    ("needs-approval", TaskCondition::NeedsApproval),
    ("stuck", TaskCondition::Stuck),
    ("failed", TaskCondition::Failed),
    ("idle", TaskCondition::Idle),
    ("interrupted", TaskCondition::Interrupted),
    ("ended", TaskCondition::Ended),
];

/// Narrows a filter down to what a choice says; nothing if there is no such choice.
pub(super) fn narrowed(filter: TaskFilter, choice: &str, limit: Duration) -> Option<TaskFilter> {
    let (_, status) = CHOICES.iter().find(|(word, _)| *word == choice)?;
    let in_state = |state: TaskState| TaskFilter {
        state: Some(state),
        ..filter.clone()
    };
    Some(match status {
        TaskCondition::Running | TaskCondition::Queued => in_state(TaskState::Running),
        TaskCondition::NeedsApproval => in_state(TaskState::Waiting),
        TaskCondition::Idle => in_state(TaskState::Idle),
        TaskCondition::Interrupted => in_state(TaskState::Interrupted),
        TaskCondition::Ended | TaskCondition::Broken => in_state(TaskState::Ended),
        TaskCondition::Failed => TaskFilter {
            failed: true,
            ..filter
        },
        TaskCondition::Stuck => TaskFilter {
            stuck_ms: Some(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)),
            ..filter
        },
    })
}

/// How long tasks have waited, by their ids.
pub(super) fn waited(waits: Vec<TaskWait>) -> HashMap<String, Duration> {
    let waits = waits.into_iter();
    let pairs = waits.map(|wait| {
        let ms = wait.waited_ms.max(0).unsigned_abs();
        (wait.task, Duration::from_millis(ms))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn task(state: TaskState, detail: Value) -> TaskRecord {
        TaskRecord {
            id: "t".to_owned(),
            agent_namespace: String::new(),
            agent_name: "a".to_owned(),
            model: None,
            user_id: "u".to_owned(),
            user_email: None,
            params: json!({}),
            origin: json!({}),
            state,
            detail: Some(detail),
            next_seq: 0,
            created_at: 0,
            last_activity: 0,
        }
    }

    #[test]
    fn waiting_stuck_failed_and_done_are_told_apart() {
        let (limit, short, long) = (
            Duration::from_secs(60),
            Some(Duration::from_secs(1)),
            Some(Duration::from_secs(61)),
        );
        let cases = [
            (TaskState::Idle, json!({}), None, TaskCondition::Idle),
            (TaskState::Idle, json!({}), short, TaskCondition::Queued),
            (TaskState::Idle, json!({}), long, TaskCondition::Stuck),
            (
                TaskState::Idle,
                json!({"failed": "x"}),
                None,
                TaskCondition::Failed,
            ),
            (TaskState::Running, json!({}), None, TaskCondition::Running),
            (TaskState::Running, json!({}), long, TaskCondition::Stuck),
            (
                TaskState::Waiting,
                json!({}),
                None,
                TaskCondition::NeedsApproval,
            ),
            (TaskState::Waiting, json!({}), long, TaskCondition::Stuck),
            (
                TaskState::Ended,
                json!({"end": {"reason": "cancelled"}}),
                long,
                TaskCondition::Ended,
            ),
            (
                TaskState::Ended,
                json!({"end": {"reason": "model_error"}}),
                None,
                TaskCondition::Broken,
            ),
        ];
        for (state, detail, waited, wanted) in cases {
            let seen = TaskCondition::of(&task(state, detail.clone()), waited, limit, true);
            assert_eq!(seen, wanted, "{state} {detail} {waited:?}");
        }
        // Whoever has nobody to do it is stuck at once, if there is something to do.
        let idle = task(TaskState::Idle, json!({}));
        for (waited, wanted) in [(None, TaskCondition::Idle), (short, TaskCondition::Stuck)] {
            assert_eq!(TaskCondition::of(&idle, waited, limit, false), wanted);
        }
        let mut words: Vec<&str> = WORDS.iter().map(|(status, ..)| status.word()).collect();
        words.dedup();
        assert_eq!(words.len(), WORDS.len());
    }

    #[test]
    fn every_choice_narrows_the_list() {
        for (word, _) in CHOICES {
            let all = TaskFilter::default();
            let narrow = narrowed(all.clone(), word, Duration::from_secs(1));
            assert!(narrow.is_some_and(|narrow| narrow != all), "{word}");
        }
        assert_eq!(
            narrowed(TaskFilter::default(), "nonsense", Duration::ZERO),
            None
        );
    }
}
