//! The timeline of a task: what the model, tools, people and waiting took, made of the turns of its journal.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};
use proofhouse_agent::model::Usage;
use proofhouse_agent::task::{CallStatus, EndReason, Turn};
use proofhouse_store::model::{Millis, TurnRecord};
use proofhouse_tools::operator::ModelCost;
use serde_json::Value;

use super::page::{IN_PATH, table};
use crate::api::ReviewAnswerView;

/// The longest text of a label.
const MAX_LABEL: usize = 160;

/// What somebody or something spent time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SpanKind {
    Input,
    Model,
    Tool,
    Approval,
    Wait,
    Answer,
    Error,
    Stop,
    End,
}

impl SpanKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Approval => "approval",
            Self::Wait => "wait",
            Self::Answer => "answer",
            Self::Error => "error",
            Self::Stop => "stop",
            Self::End => "end",
        }
    }
}

/// One row of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimelineSpan {
    /// The turn that tells of it.
    pub seq: i64,
    pub kind: SpanKind,
    pub label: String,
    pub from: Millis,
    pub to: Millis,
    /// It goes on.
    pub is_open: bool,
    /// It came to nothing.
    pub is_bad: bool,
    /// Tokens of the question and of the reply.
    pub tokens: Option<(u64, u64)>,
    /// What they cost, and in which currency, if that is known.
    pub cost: Option<(ModelCost, String)>,
}

impl TimelineSpan {
    fn ms(&self) -> Millis {
        (self.to - self.from).max(0)
    }
}

/// What tokens of a model cost, and in which currency, if that is known.
type PriceOf<'a> = dyn Fn(&str, Usage) -> Option<(ModelCost, String)> + 'a;

/// Makes a timeline of turns, oldest first.
pub(super) fn spans(
    turns: &[TurnRecord],
    answers: &[ReviewAnswerView],
    prices: &PriceOf<'_>,
    now: Millis,
) -> Vec<TimelineSpan> {
    let mut made = TimelineMaker {
        answers,
        prices,
        spans: Vec::new(),
        calls: HashMap::new(),
        question: None,
        idle_since: None,
        last: turns.first().map_or(now, |turn| turn.created_at),
    };
    for turn in turns {
        made.turn(turn);
    }
    made.close(now)
}

struct TimelineMaker<'a> {
    answers: &'a [ReviewAnswerView],
    prices: &'a PriceOf<'a>,
    spans: Vec<TimelineSpan>,
    /// When calls began that have no result yet, by the ids that the model gave them.
    calls: HashMap<String, Millis>,
    /// The question that is asked, its turn, and since when.
    question: Option<(u64, i64, Millis)>,
    idle_since: Option<Millis>,
    /// When the turn before was kept.
    last: Millis,
}

impl TimelineMaker<'_> {
    fn push(&mut self, turn: &TurnRecord, kind: SpanKind, label: &str, from: Millis) {
        self.spans.push(TimelineSpan {
            seq: turn.seq,
            kind,
            label: cut(label),
            from,
            to: turn.created_at,
            is_open: false,
            is_bad: kind == SpanKind::Error,
            tokens: None,
            cost: None,
        });
    }

    fn turn(&mut self, turn: &TurnRecord) {
        let at = turn.created_at;
        if let Some((review, seq, since)) = self.question.take() {
            self.answered(review, seq, (since, at));
        }
        let Ok(body) = serde_json::from_value::<Turn>(turn.body.clone()) else {
            self.push(turn, SpanKind::Error, "a turn that cannot be read", at);
            return;
        };
        let last = std::mem::replace(&mut self.last, at);
        match body {
            Turn::Input {
                message,
                source,
                event,
                ..
            } => {
                if let Some(since) = self.idle_since.take() {
                    self.push(turn, SpanKind::Wait, "for the next input", since);
                }
                let label = match (source, event) {
                    (Some(source), Some(event)) => format!("{source}.{event}: {message}"),
                    _ => message,
                };
                self.push(turn, SpanKind::Input, &label, at);
            }
            Turn::Llm {
                model,
                text,
                calls,
                usage,
                ..
            } => {
                let wanted: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
                let label = if wanted.is_empty() {
                    format!("{model}: {text}")
                } else {
                    format!("{model} calls {}", wanted.join(", "))
                };
                self.push(turn, SpanKind::Model, &label, last);
                let has_tokens = usage.prompt + usage.completion > 0;
                let cost = (self.prices)(&model, usage).filter(|_| has_tokens);
                if let Some(span) = self.spans.last_mut() {
                    span.cost = cost;
                    span.tokens = has_tokens.then_some((usage.prompt, usage.completion));
                }
            }
            Turn::Calling { call, step, .. } => {
                if !step {
                    self.calls.insert(call, at);
                }
            }
            Turn::Capability {
                call,
                function,
                status,
                result,
                ..
            } => {
                let from = self.calls.remove(&call).unwrap_or(last);
                let label = match status {
                    CallStatus::Successful => function,
                    CallStatus::Errored => format!("{function} failed: {}", said(&result)),
                    CallStatus::Restricted => format!("{function} was refused: {}", said(&result)),
                };
                self.push(turn, SpanKind::Tool, &label, from);
                if let Some(span) = self.spans.last_mut() {
                    span.is_bad = status != CallStatus::Successful;
                }
            }
            Turn::Invoked {
                function, status, ..
            } => {
                self.push(turn, SpanKind::Tool, &format!("step {function}"), last);
                if let Some(span) = self.spans.last_mut() {
                    span.is_bad = status != CallStatus::Successful;
                }
            }
            Turn::Asked { review, .. } => self.question = Some((review.id, turn.seq, at)),
            Turn::Decided { .. } => {}
            Turn::Failed { message, .. } => {
                self.push(turn, SpanKind::Error, &message, last);
                self.idle_since = Some(at);
            }
            Turn::Discarded {
                source,
                event,
                reason,
                ..
            } => {
                let label = format!("{source}.{event} was kept out: {reason}");
                self.push(turn, SpanKind::Input, &label, at);
                self.idle_since = Some(at);
            }
            Turn::Interrupted { .. } => {
                self.push(turn, SpanKind::Stop, "interrupted", at);
                self.idle_since = Some(at);
            }
            Turn::Output { message, .. } => {
                self.push(turn, SpanKind::Answer, &message, at);
                self.idle_since = Some(at);
            }
            Turn::Ended { end, .. } => {
                self.push(turn, SpanKind::End, &end.message, at);
                let is_wished = matches!(end.reason, EndReason::Closed | EndReason::Cancelled);
                if let Some(span) = self.spans.last_mut() {
                    span.is_bad = !is_wished;
                }
                self.idle_since = None;
            }
        }
    }

    /// A question was answered, at the latest at this time.
    fn answered(&mut self, review: u64, seq: i64, (since, at): (Millis, Millis)) {
        let mut answers = self.answers.iter().filter(|answer| answer.review == review);
        let label = match answers.next_back() {
            None => "a question was answered".to_owned(),
            Some(answer) => {
                let done = if answer.approve { "approved" } else { "denied" };
                let by = answer.person.as_deref().or(answer.by.as_deref());
                let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                let why = answer.reason.as_deref();
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                format!("{done}{by}{why}")
            }
        };
        self.spans.push(TimelineSpan {
            seq,
            kind: SpanKind::Approval,
            label: cut(&label),
            from: since,
            to: at,
            is_open: false,
            is_bad: false,
            tokens: None,
            cost: None,
        });
        self.last = at;
    }

    /// The timeline, with what goes on now.
    fn close(mut self, now: Millis) -> Vec<TimelineSpan> {
        let open = |seq: i64, kind: SpanKind, label: &str, from: Millis| TimelineSpan {
            seq,
            kind,
            label: label.to_owned(),
            from,
            to: now.max(from),
            is_open: true,
            is_bad: false,
            tokens: None,
            cost: None,
        };
        if let Some((_, seq, since)) = self.question {
            let asked = open(seq, SpanKind::Approval, "waits for an answer", since);
            self.spans.push(asked);
        }
        self.spans
    }
}

/// What a result says, in short.
pub(super) fn said(result: &Value) -> String {
    let (code, message) = (result["error"].as_str(), result["message"].as_str());
    match (result.as_str(), code, message) {
        (Some(text), _, _) | (None, Some(text), None) | (None, None, Some(text)) => text.to_owned(),
        (None, Some(code), Some(message)) => format!("{code}: {message}"),
        (None, None, None) => result.to_string(),
    }
}

pub(super) fn cut(text: &str) -> String {
    let mut letters = text.chars();
    let mut cut: String = letters.by_ref().take(MAX_LABEL).collect();
    if letters.next().is_some() {
        cut.push('…');
    }
    cut
}

/// A time for reading.
pub(super) fn duration(ms: Millis) -> String {
    match ms {
        ..1_000 => format!("{} ms", ms.max(0)),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        3_600_000..86_400_000 => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
        _ => format!("{} d {} h", ms / 86_400_000, ms % 86_400_000 / 3_600_000),
    }
}

/// What a task took in all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TimelineTotals {
    pub prompt: u64,
    pub completion: u64,
    /// By currency.
    pub cost: BTreeMap<String, ModelCost>,
    /// Some requests with tokens have no price.
    pub has_unknown_cost: bool,
    pub model_calls: usize,
    pub tool_calls: usize,
    pub failures: usize,
    pub model_ms: Millis,
    pub tool_ms: Millis,
    pub approval_ms: Millis,
    pub wait_ms: Millis,
}

pub(super) fn totals(spans: &[TimelineSpan]) -> TimelineTotals {
    let mut totals = TimelineTotals::default();
    for span in spans {
        let (prompt, completion) = span.tokens.unwrap_or_default();
        totals.prompt = totals.prompt.saturating_add(prompt);
        totals.completion = totals.completion.saturating_add(completion);
        match &span.cost {
            Some((cost, currency)) => {
                let sum = totals.cost.entry(currency.clone()).or_default();
                *sum = sum.plus(*cost);
            }
            None => totals.has_unknown_cost |= span.tokens.is_some(),
        }
        totals.failures += usize::from(span.is_bad);
        match span.kind {
            SpanKind::Model => {
                totals.model_calls += 1;
                totals.model_ms += span.ms();
            }
            SpanKind::Tool => {
                totals.tool_calls += 1;
                totals.tool_ms += span.ms();
            }
            SpanKind::Approval => totals.approval_ms += span.ms(),
            SpanKind::Wait => totals.wait_ms += span.ms(),
            SpanKind::Input
            | SpanKind::Answer
            | SpanKind::Error
            | SpanKind::Stop
            | SpanKind::End => {}
        }
    }
    totals
}

/// Where a time is on the axis: waiting for the next input takes no room.
fn place(spans: &[TimelineSpan], at: Millis) -> Millis {
    let waits = spans.iter().filter(|span| span.kind == SpanKind::Wait);
    let passed: Millis = waits
        .filter(|wait| wait.to <= at)
        .map(TimelineSpan::ms)
        .sum();
    at - passed
}

/// The timeline as a table with bars.
pub(super) fn shown(spans: &[TimelineSpan]) -> Markup {
    let first = spans.iter().map(|span| place(spans, span.from)).min();
    let last = spans.iter().map(|span| place(spans, span.to)).max();
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
    let whole = (last - first).max(1);
    let part = |at: Millis| (place(spans, at) - first).clamp(0, whole) * 1_000 / whole;
    let rows: Vec<Vec<Markup>> = spans
        .iter()
        .map(|span| {
            let (from, to) = (part(span.from), part(span.to));
            let width = (to - from).max(4);
            let word = span.kind.word();
            vec![
                html! { span class={ "kind kind-" (word) } { (word) } },
                html! {
                    a href={ "#turn-" (percent_encoding::utf8_percent_encode(&span.seq.to_string(), IN_PATH)) } {
                        (span.label)
                    }
                    @if span.is_bad { " " span class="badge tone-bad" { "✕ problem" } }
                    @if span.is_open { " " span class="badge tone-ask" { "now" } }
                },
                html! { span.time { (duration(span.ms())) } },
                html! {
                    @if let Some((prompt, completion)) = span.tokens {
                        span.time { (prompt) " in, " (completion) " out" }
                    }
                    @if let Some((cost, currency)) = &span.cost { br; span.time { (cost) " " (currency) } }
                },
                html! {
                    @if span.kind != SpanKind::Wait {
                        svg.bar viewBox="0 0 1004 12" preserveAspectRatio="none" aria-hidden="true" {
                            rect class={ "kind-" (word) } x=(from.min(1_000)) y="0" width=(width) height="12" {}
                        }
                    }
                },
            ]
        })
        .collect();
    let headings = ["Step", "Details", "Duration", "Tokens", "When"];
    table("Duration of each step", &headings, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn turn(seq: i64, at: Millis, body: Value) -> TurnRecord {
        TurnRecord {
            seq,
            kind: body["turn"].as_str().unwrap_or_default().to_owned(),
            body,
            created_at: at,
        }
    }

    fn history() -> Vec<TurnRecord> {
        let time = "2026-01-01T00:00:00Z";
        let call = json!({"id": "c1", "name": "till.refund", "arguments": {"object": {}}});
        vec![
            turn(
                0,
                1_000,
                json!({"turn": "input", "time": time, "message": "refund"}),
            ),
            turn(
                1,
                3_000,
                json!({"turn": "llm", "time": time, "model": "m", "simulation": false, "text": "", "calls": [call],
                    "usage": {"prompt": 10, "completion": 4}}),
            ),
            turn(
                2,
                3_100,
                json!({"turn": "asked", "time": time, "review": {"id": 1, "function": "till.refund", "arguments": {},
                    "reviewer": "ann"}}),
            ),
            turn(
                3,
                9_100,
                json!({"turn": "calling", "time": time, "call": "c1", "function": "till.refund", "arguments": {}}),
            ),
            turn(
                4,
                9_600,
                json!({"turn": "capability", "time": time, "call": "c1", "function": "till.refund", "arguments": {},
                    "result": {"error": "no money"}, "status": "errored"}),
            ),
            turn(
                5,
                9_700,
                json!({"turn": "output", "time": time, "message": "sorry"}),
            ),
            turn(
                6,
                99_700,
                json!({"turn": "input", "time": time, "message": "again"}),
            ),
            turn(
                7,
                99_900,
                json!({"turn": "failed", "time": time, "message": "model gone"}),
            ),
        ]
    }

    /// A unit for each token of a reply, for one model.
    fn priced(model: &str, usage: Usage) -> Option<(ModelCost, String)> {
        let text = "prices: {currency: USD, models: {m: {input: 0, output: 1000000}}}";
        let (config, _) = proofhouse_tools::operator::OperatorConfig::read(text, &|_| None);
        let cost = config.prices.cost(model, usage.prompt, usage.completion)?;
        Some((cost, "USD".to_owned()))
    }

    fn answer() -> ReviewAnswerView {
        ReviewAnswerView {
            review: 1,
            approve: true,
            by: Some("k".to_owned()),
            person: Some("ann".to_owned()),
            reason: Some("fine".to_owned()),
            at: String::new(),
        }
    }

    #[test]
    fn model_tool_approval_and_wait_have_their_times() {
        let made = spans(&history(), &[answer()], &priced, 100_000);
        let seen: Vec<(SpanKind, Millis, bool)> = made
            .iter()
            .map(|span| (span.kind, span.ms(), span.is_bad))
            .collect();
        assert_eq!(
            seen,
            [
                (SpanKind::Input, 0, false),
                (SpanKind::Model, 2_000, false),
                (SpanKind::Approval, 6_000, false),
                (SpanKind::Tool, 500, true),
                (SpanKind::Answer, 0, false),
                (SpanKind::Wait, 90_000, false),
                (SpanKind::Input, 0, false),
                (SpanKind::Error, 200, true),
            ]
        );
        assert_eq!(made[2].label, "approved by ann: fine");
        assert_eq!(made[3].label, "till.refund failed: no money");
        let totals = totals(&made);
        assert_eq!((totals.prompt, totals.completion), (10, 4));
        let cost = totals.cost.get("USD").map(ToString::to_string);
        assert_eq!(cost.as_deref(), Some("4.0000"));
        assert!(!totals.has_unknown_cost);
        assert_eq!(
            (totals.approval_ms, totals.wait_ms, totals.failures),
            (6_000, 90_000, 2)
        );
        // The hour that nobody asked anything takes no room on the axis.
        assert_eq!(place(&made, 99_900) - place(&made, 1_000), 8_900);
    }

    #[test]
    fn a_question_that_is_open_is_shown_as_open() {
        let made = spans(&history()[..3], &[], &priced, 20_100);
        let last = made.last().map(|span| (span.kind, span.is_open, span.ms()));
        assert_eq!(last, Some((SpanKind::Approval, true, 17_000)));
        assert!(spans(&[], &[], &priced, 0).is_empty());
        let odd = [turn(0, 5, json!({"turn": "of another version"}))];
        assert!(spans(&odd, &[], &priced, 9)[0].is_bad);
    }

    #[test]
    fn times_are_short_to_read() {
        for (ms, text) in [
            (-5, "0 ms"),
            (999, "999 ms"),
            (1_250, "1.2 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
