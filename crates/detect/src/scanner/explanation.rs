//! Why an indicator judged a whole trace as it did: what was dropped, what was kept, what decided.

use proofhouse_oatf::{Direction, IndicatorResult, Protocol};
use serde::Serialize;

use super::Scanner;
use super::class::Dropped;
use super::explain::{Judgement, Kept};
use super::group::RuleId;
use super::scan::ScanBuffers;
use super::split::CanaryTrails;
use crate::trace::TraceMessage;

/// Follows one indicator through a trace. However long the trace is, it holds a few cases of each
/// kind and counts the rest.
///
/// ```
/// # use proofhouse_detect::{IndicatorExplanation, TraceMessage, Scanner};
/// # use serde_json::json;
/// # let document = proofhouse_oatf::load(r#"
/// # oatf: "0.1"
/// # attack:
/// #   execution: {mode: mcp_server, state: {tools: []}}
/// #   indicators: [{surface: tools/call, target: arguments, pattern: {contains: passwd}}]
/// # "#).unwrap().document;
/// # let scanner = Scanner::builder().add("passwd", document).build().unwrap();
/// let mut explanation = IndicatorExplanation::new(&scanner, 0, 0, 5).unwrap();
/// explanation.feed_line(1, &TraceMessage::new("mcp", "tools/list", json!({})));
/// explanation.feed_line(2, &TraceMessage::new("mcp", "tools/call", json!({"arguments": "/etc/passwd"})));
/// assert_eq!(explanation.dropped()[0].filter.filter(), "surface");
/// assert_eq!(explanation.reason(), "1 of 1 kept message matched");
/// ```
pub struct IndicatorExplanation<'s> {
    scanner: &'s Scanner,
    document: usize,
    indicator: usize,
    limit: usize,
    messages: u64,
    dropped: Vec<DroppedMessages>,
    matched: Cases,
    not_matched: Cases,
    failed: Cases,
    skipped: Cases,
    /// Kept messages in which the path led nowhere.
    without_value: u64,
    rule: RuleId,
    scratch: ScanBuffers,
    /// Canaries that were begun.
    trails: CanaryTrails,
}

/// The messages one filter dropped.
#[derive(Debug, Clone)]
pub struct DroppedMessages {
    /// The filter.
    pub filter: Dropped,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<MessagePlace>,
}

/// A message, by where it stands and what the filters see of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessagePlace {
    /// The line of the trace.
    pub line: u64,
    /// The number of the message.
    pub sequence: u64,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its operation.
    pub operation: String,
    /// Its actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Its direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
}

/// One message that was kept, and why it was judged as it was.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedMessage {
    /// The message.
    #[serde(flatten)]
    pub place: MessagePlace,
    /// How it was evaluated.
    #[serde(flatten)]
    pub kept: Kept,
}

/// Cases of one kind: the first few, and how many there are.
#[derive(Debug, Default)]
struct Cases {
    count: u64,
    first: Vec<ExplainedMessage>,
}

impl<'s> IndicatorExplanation<'s> {
    /// Follows an indicator, and keeps `limit` messages of each kind; `None` when there is no such
    /// indicator.
    #[must_use]
    pub fn new(
        scanner: &'s Scanner,
        document: usize,
        indicator: usize,
        limit: usize,
    ) -> Option<Self> {
        let (_, found) = scanner.documents().nth(document)?;
        found.attack.indicators().get(indicator)?;
        Some(Self {
            scanner,
            document,
            indicator,
            limit,
            messages: 0,
            dropped: Vec::new(),
            matched: Cases::default(),
            not_matched: Cases::default(),
            failed: Cases::default(),
            skipped: Cases::default(),
            without_value: 0,
            rule: scanner.rule_of(document, indicator)?,
            scratch: ScanBuffers::default(),
            trails: CanaryTrails::default(),
        })
    }

    /// Takes the next message as it is judged, and the line it came from: what came in pieces is put together by a
    /// [`MessageAssembler`](crate::MessageAssembler) before.
    pub fn feed_line(&mut self, line: u64, message: &TraceMessage) {
        self.messages += 1;
        let document = &self.scanner.documents[self.document].document;
        let indicator = &document.attack.indicators()[self.indicator];
        let mut kept = match self.scanner.judgement(self.rule, indicator, message) {
            Judgement::Kept(kept) => kept,
            Judgement::Dropped(filter) => {
                self.drop_message(filter, line, message);
                return;
            }
        };
        // What is complete with this message was begun by another.
        for split in self.scanner.split_pieces(message, &mut self.scratch) {
            let matched = self.trails.follow(self.scanner, &split).into_iter();
            let mut matched = matched.filter(|(rule, _)| *rule == self.rule);
            if let Some((_, evidence)) = matched.next()
                && kept.result != IndicatorResult::Matched
            {
                kept.found(&evidence.reason.unwrap_or_default());
            }
        }
        let cases = match kept.result {
            IndicatorResult::Matched => &mut self.matched,
            IndicatorResult::NotMatched => &mut self.not_matched,
            IndicatorResult::Error => &mut self.failed,
            IndicatorResult::Skipped => &mut self.skipped,
        };
        cases.count += 1;
        // An expression looks where it likes; the target only describes it.
        if kept.reached == 0 && indicator.expression.is_none() {
            self.without_value += 1;
        }
        if cases.first.len() < self.limit {
            let place = MessagePlace::new(line, message);
            cases.first.push(ExplainedMessage { place, kept });
        }
    }

    fn drop_message(&mut self, filter: Dropped, line: u64, message: &TraceMessage) {
        let position = self.dropped.iter().position(|seen| seen.filter == filter);
        let position = position.unwrap_or_else(|| {
            self.dropped.push(DroppedMessages {
                filter,
                count: 0,
                first: Vec::new(),
            });
            // In the order the filters are asked.
            let rank = |filter| Dropped::ALL.iter().position(|known| *known == filter);
            self.dropped.sort_by_key(|seen| rank(seen.filter));
            let found = self.dropped.iter().position(|seen| seen.filter == filter);
            found.unwrap_or_default()
        });
        let seen = &mut self.dropped[position];
        seen.count += 1;
        if seen.first.len() < self.limit {
            seen.first.push(MessagePlace::new(line, message));
        }
    }

    /// The document, by its position in the scanner.
    #[must_use]
    pub fn document(&self) -> usize {
        self.document
    }

    /// The indicator, by its position in the document.
    #[must_use]
    pub fn indicator(&self) -> usize {
        self.indicator
    }

    /// How many messages were taken.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// How many of them were kept.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.messages - self.dropped.iter().map(|seen| seen.count).sum::<u64>()
    }

    /// What the filters dropped, filter by filter.
    #[must_use]
    pub fn dropped(&self) -> &[DroppedMessages] {
        &self.dropped
    }

    /// How many kept messages had a result.
    #[must_use]
    pub fn count(&self, result: IndicatorResult) -> u64 {
        self.cases(result).count
    }

    /// The first kept messages with a result.
    #[must_use]
    pub fn first(&self, result: IndicatorResult) -> &[ExplainedMessage] {
        &self.cases(result).first
    }

    fn cases(&self, result: IndicatorResult) -> &Cases {
        match result {
            IndicatorResult::Matched => &self.matched,
            IndicatorResult::NotMatched => &self.not_matched,
            IndicatorResult::Error => &self.failed,
            IndicatorResult::Skipped => &self.skipped,
        }
    }

    /// Kept messages in which the path led to no value.
    #[must_use]
    pub fn without_value(&self) -> u64 {
        self.without_value
    }

    /// The reason for the result over the whole trace, in one sentence.
    #[must_use]
    pub fn reason(&self) -> String {
        let kept = self.kept();
        let of_kept = format!("of {kept} kept message{}", if kept == 1 { "" } else { "s" });
        let because = |cases: &Cases| {
            let first = cases.first.first();
            first.and_then(|case| case.kept.reason.clone())
        };
        if self.messages == 0 {
            return "the trace has no messages".to_owned();
        }
        if kept == 0 {
            return "no message was kept: the filters dropped all of them".to_owned();
        }
        if self.matched.count > 0 {
            return format!("{} {of_kept} matched", self.matched.count);
        }
        if self.failed.count > 0 {
            let because = because(&self.failed).map(|why| format!(": {why}"));
            return format!(
                "none matched, and {} {of_kept} could not be evaluated{}",
                self.failed.count,
                because.unwrap_or_default()
            );
        }
        if self.skipped.count > 0 {
            return because(&self.skipped).unwrap_or_else(|| "not evaluated".to_owned());
        }
        match self.without_value {
            0 => format!("0 {of_kept} matched"),
            without if without == kept => {
                format!("0 {of_kept} matched: the path led to no value in any of them")
            }
            without => format!("0 {of_kept} matched; in {without} the path led to no value"),
        }
    }
}

impl MessagePlace {
    fn new(line: u64, message: &TraceMessage) -> Self {
        Self {
            line,
            sequence: message.sequence,
            protocol: message.protocol.clone(),
            operation: message.operation.clone(),
            actor: message.actor.clone(),
            direction: message.direction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scanner() -> Scanner {
        let text = r#"{"oatf": "0.1", "attack": {"execution": {"mode": "mcp_server", "state": {}},
            "indicators": [
              {"surface": "tools/call", "direction": "request", "target": "a", "pattern": {"contains": "x"}},
              {"target": "a", "semantic": {"intent": "harm"}},
              {"target": "a", "expression": {"cel": "message.a > 1"}}]}}"#;
        let document = proofhouse_oatf::load(text).unwrap().document;
        Scanner::builder().add("d", document).build().unwrap()
    }

    fn followed(indicator: usize, contents: &[serde_json::Value]) -> String {
        let scanner = scanner();
        let mut explanation = IndicatorExplanation::new(&scanner, 0, indicator, 2).unwrap();
        for (line, content) in contents.iter().enumerate() {
            let mut message = TraceMessage::new("mcp", "tools/call", content.clone());
            message.direction = Some(Direction::Request);
            explanation.feed_line(line as u64 + 1, &message);
        }
        explanation.reason()
    }

    #[test]
    fn reasons() {
        for (indicator, contents, expected) in [
            (0, vec![], "the trace has no messages"),
            (
                0,
                vec![json!({"a": "x"}), json!({})],
                "1 of 2 kept messages matched",
            ),
            (0, vec![json!({"a": "y"})], "0 of 1 kept message matched"),
            (
                0,
                vec![json!({"a": "y"}), json!({})],
                "0 of 2 kept messages matched; in 1 the path led to no value",
            ),
            (
                0,
                vec![json!({})],
                "0 of 1 kept message matched: the path led to no value in any of them",
            ),
            (
                1,
                vec![json!({"a": "y"})],
                "semantic evaluation is not available",
            ),
        ] {
            assert_eq!(followed(indicator, &contents), expected);
        }
        let failed = followed(2, &[json!({"a": "text"}), json!({"a": 1})]);
        assert!(
            failed.starts_with("none matched, and 1 of 2 kept messages could not be evaluated: "),
            "{failed}"
        );
    }

    #[test]
    fn only_the_first_are_kept_and_all_are_counted() {
        let scanner = scanner();
        let mut explanation = IndicatorExplanation::new(&scanner, 0, 0, 2).unwrap();
        for line in 1..=10 {
            let mut message = TraceMessage::new("mcp", "tools/call", json!({"a": line}));
            explanation.feed_line(line, &message);
            message.protocol = Protocol::A2a;
            explanation.feed_line(line, &message);
            message.protocol = Protocol::Mcp;
            message.direction = Some(Direction::Request);
            explanation.feed_line(line, &message);
        }
        let dropped: Vec<_> = explanation
            .dropped()
            .iter()
            .map(|seen| (seen.filter.filter(), seen.count, seen.first.len()))
            .collect();
        assert_eq!(dropped, [("protocol", 10, 2), ("direction", 10, 2)]);
        assert_eq!((explanation.messages(), explanation.kept()), (30, 10));
        assert_eq!(explanation.count(IndicatorResult::NotMatched), 10);
        assert_eq!(explanation.first(IndicatorResult::NotMatched).len(), 2);
        assert!(IndicatorExplanation::new(&scanner, 0, 9, 2).is_none());
        assert!(IndicatorExplanation::new(&scanner, 9, 0, 2).is_none());
    }
}
