//! What narrows a list of the dashboard down: fields of a form that the address of the page repeats.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use proofhouse_store::model::{FailureFilter, Millis, TaskFilter};
use serde::Deserialize;

use super::status::{CHOICES, narrowed};
use crate::problem::Problem;

/// The longest value of a field.
const MAX_VALUE: usize = 200;
/// How often a page without scripts may load itself again, in seconds.
const REFRESH: std::ops::RangeInclusive<u32> = 5..=300;

/// What the form for tasks says.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct TaskQuery {
    /// Text in the task.
    pub text: Option<String>,
    /// One of the choices of [`CHOICES`].
    pub state: Option<String>,
    agent: Option<String>,
    namespace: Option<String>,
    since: Option<String>,
    until: Option<String>,
    pub after: Option<String>,
    refresh: Option<u32>,
    /// What whoever follows the list has seen last.
    pub seen: Option<String>,
}

/// A value that says something.
fn given(value: &Option<String>) -> Option<&str> {
    let value = value.as_deref().map(str::trim);
    value.filter(|value| !value.is_empty())
}

/// A moment as forms write it; it is in UTC.
fn moment(name: &str, value: &Option<String>) -> Result<Option<Millis>, Problem> {
    let Some(text) = given(value) else {
        return Ok(None);
    };
    let time: Option<DateTime> = text.trim_end_matches('Z').parse().ok();
    let time = time.and_then(|time| time.to_zoned(TimeZone::UTC).ok());
    let time = time.map(|time| time.timestamp().as_millisecond());
    let wrong = || Problem::bad_request(format!("`{name}` is a time such as 2026-11-18T09:30"));
    time.map(Some).ok_or_else(wrong)
}

/// Text in an address.
pub(super) fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        text.append_pair(name, value);
    }
    text.finish()
}

impl TaskQuery {
    /// The filter, and the text that is searched for.
    pub(super) fn filter(
        &self,
        rows: usize,
        limit: Duration,
    ) -> Result<(TaskFilter, Option<String>), Problem> {
        let fields = self.fields();
        if fields.iter().any(|(_, value)| value.len() > MAX_VALUE) {
            let why = format!("a field has at most {MAX_VALUE} bytes");
            return Err(Problem::bad_request(why));
        }
        let owned = |value: &Option<String>| given(value).map(str::to_owned);
        let filter = TaskFilter {
            agent_name: owned(&self.agent),
            agent_namespace: owned(&self.namespace),
            active_since: moment("since", &self.since)?,
            active_before: moment("until", &self.until)?,
            after: owned(&self.after),
            limit: rows,
            ..TaskFilter::default()
        };
        let filter = match given(&self.state) {
            None => filter,
            Some(word) => narrowed(filter, word, limit)
                .ok_or_else(|| Problem::bad_request("`state` has no such value"))?,
        };
        Ok((filter, owned(&self.text)))
    }

    /// The fields that say something.
    fn fields(&self) -> Vec<(&'static str, &str)> {
        let fields = [
            ("text", &self.text),
            ("state", &self.state),
            ("agent", &self.agent),
            ("namespace", &self.namespace),
            ("since", &self.since),
            ("until", &self.until),
        ];
        let said = fields.into_iter();
        said.filter_map(|(name, value)| Some((name, given(value)?)))
            .collect()
    }

    /// The address of a list with the same fields.
    pub(super) fn path(&self, base: &str, more: &[(&str, &str)]) -> String {
        let mut fields: Vec<(&str, &str)> = self.fields();
        fields.extend(more);
        if fields.is_empty() {
            return base.to_owned();
        }
        format!("{base}?{}", encoded(&fields))
    }

    /// Whether it narrows anything down.
    pub(super) fn narrows(&self) -> bool {
        !self.fields().is_empty()
    }

    /// How often the page loads itself again, if that is wanted.
    pub(super) fn refresh(&self) -> Option<u32> {
        self.refresh.filter(|seconds| REFRESH.contains(seconds))
    }

    /// The form.
    pub(super) fn form(&self) -> Markup {
        html! {
            form.filters method="get" action="/dashboard" role="search" aria-label="Tasks" {
                (text_field("text", "Text", &self.text))
                div {
                    label for="state" { "State" }
                    select #state name="state" {
                        option value="" { "any" }
                        @for (word, status) in CHOICES {
                            option value=(word) selected[given(&self.state) == Some(word)] { (status.word()) }
                        }
                    }
                }
                (text_field("agent", "Agent", &self.agent))
                (text_field("namespace", "Namespace", &self.namespace))
                (time_field("since", "Active since (UTC)", &self.since))
                (time_field("until", "Active before (UTC)", &self.until))
                div.submit {
                    button { "Search" }
                    @if self.narrows() { a href="/dashboard" { "Show all" } }
                }
            }
        }
    }
}

/// What the form for errors says.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ErrorQuery {
    agent: Option<String>,
    namespace: Option<String>,
    since: Option<String>,
}

impl ErrorQuery {
    pub(super) fn filter(&self, limit: usize) -> Result<FailureFilter, Problem> {
        Ok(FailureFilter {
            namespaces: None,
            agent_namespace: given(&self.namespace).map(str::to_owned),
            agent_name: given(&self.agent).map(str::to_owned),
            since: moment("since", &self.since)?,
            limit,
        })
    }

    pub(super) fn form(&self) -> Markup {
        html! {
            form.filters method="get" action="/dashboard/errors" role="search" aria-label="Errors" {
                (text_field("agent", "Agent", &self.agent))
                (text_field("namespace", "Namespace", &self.namespace))
                (time_field("since", "Since (UTC)", &self.since))
                div.submit { button { "Search" } }
            }
        }
    }
}

/// A field for text, with what it says.
pub(super) fn text_field(name: &str, label: &str, value: &Option<String>) -> Markup {
    html! {
        div {
            label for=(name) { (label) }
            input id=(name) name=(name) maxlength=(MAX_VALUE) value=(given(value).unwrap_or_default());
        }
    }
}

fn time_field(name: &str, label: &str, value: &Option<String>) -> Markup {
    html! {
        div {
            label for=(name) { (label) }
            input id=(name) name=(name) type="datetime-local" value=(given(value).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> TaskQuery {
        serde_json::from_value(pairs.iter().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn empty_fields_say_nothing_and_wrong_ones_are_told() {
        let limit = Duration::from_secs(1);
        let empty = query(&[("text", " "), ("state", ""), ("since", "")]);
        let (filter, text) = empty.filter(5, limit).unwrap();
        assert_eq!(
            (filter.active_since, text, empty.narrows()),
            (None, None, false)
        );
        let said = query(&[("since", "1970-01-01T00:01"), ("agent", "a b")]);
        let (filter, _) = said.filter(5, limit).unwrap();
        assert_eq!(filter.active_since, Some(60_000));
        assert_eq!(
            said.path("/dashboard", &[("after", "t&1")]),
            "/dashboard?agent=a+b&since=1970-01-01T00%3A01&after=t%261"
        );
        for wrong in [
            ("since", "yesterday"),
            ("state", "well"),
            ("text", &"x".repeat(201)),
        ] {
            assert!(query(&[wrong]).filter(5, limit).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_page_does_not_load_itself_all_the_time() {
        let every = |seconds: u32| TaskQuery {
            refresh: Some(seconds),
            ..TaskQuery::default()
        };
        assert_eq!(every(15).refresh(), Some(15));
        assert_eq!((every(0).refresh(), every(301).refresh()), (None, None));
    }
}
