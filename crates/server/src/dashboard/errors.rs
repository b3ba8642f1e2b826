//! The page about what went wrong: failures of tasks grouped by their cause, and of schedules and triggers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use proofhouse_store::model::{FailureRecord, Millis};
use serde_json::Value;

use super::filters::ErrorQuery;
use super::page::{Page, href, table};
use super::timeline::{cut, said};
use super::words::time;
use super::{admitted, page_of};
use crate::api::{Api, Caller, Query};
use crate::keys::KeyScope;
use crate::problem::Problem;

/// Failures that are grouped.
const MAX_FAILURES: usize = 1_000;
/// Groups that are shown.
const MAX_GROUPS: usize = 100;
/// Letters of a word with digits from which on it names one thing among many.
const ID_LETTERS: usize = 8;

/// Failures that have the same cause.
#[derive(Debug)]
struct CauseGroup<'a> {
    latest: &'a FailureRecord,
    /// How the latest says it.
    example: String,
    count: usize,
    tasks: BTreeSet<&'a str>,
    agents: BTreeSet<String>,
    first: Millis,
}

/// Where a failure comes from, and what it says.
fn cause(failure: &FailureRecord) -> (String, String) {
    let body = &failure.turn.body;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match failure.turn.kind.as_str() {
        "capability" => {
            let word = if body["status"] == "restricted" {
                "refused"
            } else {
                "tool"
            };
            (
                format!("{word} {}", text(&body["function"])),
                said(&body["result"]),
            )
        }
        "ended" => {
            let reason = text(&body["end"]["reason"]);
            (format!("end {reason}"), text(&body["end"]["message"]))
        }
        _ => ("model".to_owned(), text(&body["message"])),
    }
}

/// A message without what differs from one time to the next: numbers, ids, addresses.
fn without_details(message: &str) -> String {
    let mut words = Vec::new();
    for word in cut(message).split_whitespace() {
        let is_id = word.len() >= ID_LETTERS && word.chars().any(|letter| letter.is_ascii_digit());
        if is_id {
            words.push("…".to_owned());
            continue;
        }
        let mut plain = String::new();
        for letter in word.chars() {
            if !letter.is_ascii_digit() {
                plain.push(letter);
            } else if !plain.ends_with('#') {
                plain.push('#');
            }
        }
        words.push(plain);
    }
    words.join(" ")
}

/// Groups failures, newest first, by their causes; the most frequent cause comes first.
fn grouped(failures: &[FailureRecord]) -> Vec<(String, CauseGroup<'_>)> {
    let mut groups: BTreeMap<(String, String), CauseGroup<'_>> = BTreeMap::new();
    for failure in failures {
        let (origin, message) = cause(failure);
        let at = failure.turn.created_at;
        let key = (origin, without_details(&message));
        let group = groups.entry(key).or_insert_with(|| CauseGroup {
            latest: failure,
            example: cut(&message),
            count: 0,
            tasks: BTreeSet::new(),
            agents: BTreeSet::new(),
            first: at,
        });
        group.count += 1;
        group.first = group.first.min(at);
        group.tasks.insert(&failure.task);
        let agent = format!("{}/{}", failure.agent_namespace, failure.agent_name);
        group.agents.insert(agent);
    }
    let groups = groups.into_iter();
    let mut groups: Vec<_> = groups.map(|((origin, _), group)| (origin, group)).collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse((group.count, group.latest.turn.created_at)));
    groups
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    caller: Result<Caller, Problem>,
    query: Result<Query<ErrorQuery>, Problem>,
) -> Response {
    match admitted(caller, KeyScope::TasksRead) {
        Ok(caller) => page_of(&caller, list_page(&api, &caller, query).await),
        Err(answer) => *answer,
    }
}

async fn list_page(
    api: &Api,
    caller: &Caller,
    query: Result<Query<ErrorQuery>, Problem>,
) -> Result<Page, Problem> {
    let Query(query) = query?;
    let store = api.seen_by(caller);
    let failures = store.failures(query.filter(MAX_FAILURES)?).await?;
    let triggers = if caller.may(KeyScope::ManifestsRead) {
        store.triggers().await?
    } else {
        Vec::new()
    };
    let groups = grouped(&failures);
    let rows: Vec<Vec<Markup>> = groups.iter().take(MAX_GROUPS).map(row).collect();
    let headings = ["Cause", "Times", "Tasks", "Agents", "First", "Last"];
    let trigger_rows: Vec<Vec<Markup>> = triggers
        .iter()
        .filter_map(|trigger| {
            let error = trigger.last_error.as_deref()?;
            Some(vec![
                html! { (trigger.key.kind.as_str()) " " (trigger.key.namespace) "/" (trigger.key.name) },
                html! { (cut(error)) },
                html! { (trigger.failures) },
            ])
        })
        .collect();
    let body = html! {
        (query.form())
        @if failures.len() == MAX_FAILURES { p { "The newest " (MAX_FAILURES) " failures." } }
        @if groups.len() > MAX_GROUPS { p { "The " (MAX_GROUPS) " most frequent causes of " (groups.len()) "." } }
        (table("What went wrong, by cause", &headings, &rows))
        @if !trigger_rows.is_empty() {
            (table("Schedules and triggers that failed last time", &["Name", "Error", "Failures in a row"], &trigger_rows))
        }
    };
    Ok(Page::new("Errors", body))
}

fn row((origin, group): &(String, CauseGroup<'_>)) -> Vec<Markup> {
    let place = format!(
        "{}#turn-{}",
        href("/dashboard/tasks", &group.latest.task),
        group.latest.turn.seq
    );
    vec![
        html! { span class="kind" { (origin) } " " a href=(place) { (group.example) } },
        html! { (group.count) },
        html! { (group.tasks.len()) },
        html! { @for (at, agent) in group.agents.iter().take(5).enumerate() { @if at > 0 { ", " } (agent) } },
        time(group.first),
        time(group.latest.turn.created_at),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_store::model::TurnRecord;
    use serde_json::json;

    fn failure(task: &str, at: Millis, kind: &str, body: Value) -> FailureRecord {
        FailureRecord {
            task: task.to_owned(),
            agent_namespace: "shop".to_owned(),
            agent_name: "clerk".to_owned(),
            turn: TurnRecord {
                seq: 3,
                kind: kind.to_owned(),
                body,
                created_at: at,
            },
        }
    }

    #[test]
    fn the_same_cause_is_one_group_whatever_its_numbers() {
        let gone = |number: u32| json!({"message": format!("timeout after {number} s for req-{number}abcdef")});
        let tool = |error: &str| json!({"function": "till.pay", "status": "errored", "result": {"error": error}});
        let failures = [
            failure("t3", 30, "failed", gone(31)),
            failure("t2", 20, "failed", gone(7)),
            failure("t2", 15, "capability", tool("no money")),
            failure("t1", 10, "failed", gone(1)),
            failure("t1", 5, "capability", tool("closed")),
        ];
        let groups = grouped(&failures);
        let seen: Vec<(&str, usize, usize)> = groups
            .iter()
            .map(|(origin, group)| (origin.as_str(), group.count, group.tasks.len()))
            .collect();
        assert_eq!(
            seen,
            [
                ("model", 3, 3),
                ("tool till.pay", 1, 1),
                ("tool till.pay", 1, 1)
            ]
        );
        let (_, first) = &groups[0];
        assert_eq!((first.first, first.latest.turn.created_at), (10, 30));
        assert!(first.example.contains("31 s"), "{}", first.example);
    }
}
