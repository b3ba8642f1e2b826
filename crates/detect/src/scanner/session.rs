//! A session: messages go in one by one, verdicts come out at any time.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use proofhouse_oatf::{
    AttackVerdict, IndicatorMethod, IndicatorResult, IndicatorVerdict, compute_verdict,
};
use serde::Serialize;

use super::Scanner;
use super::evidence::Evidence;
use super::group::RuleId;
use super::scan::{RuleResult, ScanBuffers, ScanFinding, ScanOutcome};
use crate::trace::TraceMessage;

/// How many pieces of evidence are kept for one indicator; matches beyond are only counted.
const MAX_EVIDENCE: usize = 5;

/// What has been found in a trace so far.
pub struct ScanSession<'s> {
    scanner: ScannerRef<'s>,
    scratch: ScanBuffers,
    rules: Vec<RuleState>,
    messages: u64,
}

/// A scanner that is borrowed, or shared with whoever else holds it.
enum ScannerRef<'s> {
    Borrowed(&'s Scanner),
    Shared(Arc<Scanner>),
}

impl Deref for ScannerRef<'_> {
    type Target = Scanner;

    fn deref(&self) -> &Scanner {
        match self {
            Self::Borrowed(scanner) => scanner,
            Self::Shared(scanner) => scanner,
        }
    }
}

#[derive(Debug, Clone, Default)]
struct RuleState {
    matches: u64,
    errors: u64,
    evidence: Vec<Evidence>,
    /// The earliest error and its message.
    error: Option<(u64, String)>,
}

/// The verdict on one document, with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct DocumentVerdict {
    /// The name the document was added with.
    pub name: String,
    /// The verdict of the specification.
    pub attack: AttackVerdict,
    /// Per indicator, in document order.
    pub indicators: Vec<IndicatorReport>,
}

/// What one indicator found in a trace.
#[derive(Debug, Clone, Serialize)]
pub struct IndicatorReport {
    /// The indicator.
    pub id: String,
    /// The outcome over the whole trace.
    pub result: IndicatorResult,
    /// How many messages matched.
    pub matches: u64,
    /// How many messages could not be evaluated.
    pub errors: u64,
    /// The first matches.
    pub evidence: Vec<Evidence>,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The line of the indicator in its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl Scanner {
    /// Starts judging a trace.
    #[must_use]
    pub fn session(&self) -> ScanSession<'_> {
        ScanSession::new(ScannerRef::Borrowed(self))
    }

    /// Starts judging a trace that outlives whoever started it, such as live traffic.
    ///
    /// ```
    /// # use proofhouse_detect::{TraceMessage, Scanner};
    /// # use serde_json::json;
    /// # use std::sync::Arc;
    /// # let document = proofhouse_oatf::load(r#"
    /// # oatf: "0.1"
    /// # attack:
    /// #   execution: {mode: mcp_server, state: {tools: []}}
    /// #   indicators: [{target: arguments, pattern: {contains: passwd}}]
    /// # "#).unwrap().document;
    /// let scanner = Arc::new(Scanner::builder().add("passwd", document).build().unwrap());
    /// let mut session = scanner.shared_session();
    /// std::thread::spawn(move || {
    ///     session.feed(&TraceMessage::new("mcp", "tools/call", json!({"arguments": "/etc/passwd"})));
    /// });
    /// ```
    #[must_use]
    pub fn shared_session(self: &Arc<Self>) -> ScanSession<'static> {
        ScanSession::new(ScannerRef::Shared(Arc::clone(self)))
    }
}

impl<'s> ScanSession<'s> {
    fn new(scanner: ScannerRef<'s>) -> Self {
        Self {
            rules: vec![RuleState::default(); scanner.rules.len()],
            scanner,
            scratch: ScanBuffers::default(),
            messages: 0,
        }
    }
}

impl ScanSession<'_> {
    /// Takes the next message.
    pub fn feed(&mut self, message: &TraceMessage) {
        self.take(None, message);
    }

    /// Takes the next message and the line it came from, so that evidence can point there.
    ///
    /// ```
    /// # use proofhouse_detect::{TraceMessage, Scanner};
    /// # use serde_json::json;
    /// # let document = proofhouse_oatf::load(r#"
    /// # oatf: "0.1"
    /// # attack:
    /// #   execution: {mode: mcp_server, state: {tools: []}}
    /// #   indicators: [{target: arguments, pattern: {contains: passwd}}]
    /// # "#).unwrap().document;
    /// # let scanner = Scanner::builder().add("passwd", document).build().unwrap();
    /// let mut session = scanner.session();
    /// session.feed_line(7, &TraceMessage::new("mcp", "tools/call", json!({"arguments": "/etc/passwd"})));
    /// assert_eq!(session.verdicts()[0].indicators[0].evidence[0].line, Some(7));
    /// ```
    pub fn feed_line(&mut self, line: u64, message: &TraceMessage) {
        self.take(Some(line), message);
    }

    fn take(&mut self, line: Option<u64>, message: &TraceMessage) {
        self.messages += 1;
        let rules = &mut self.rules;
        self.scanner
            .scan_into(message, &mut self.scratch, &mut |rule, judged| {
                rules[rule as usize].note(message.sequence, line, judged);
            });
    }

    /// Takes the next message and tells what was found in it.
    pub fn feed_and_tell(&mut self, message: &TraceMessage) -> Vec<ScanFinding> {
        self.messages += 1;
        let mut found = Vec::new();
        let (scanner, rules) = (&*self.scanner, &mut self.rules);
        scanner.scan_into(message, &mut self.scratch, &mut |rule, judged| {
            let outcome = judged.into_outcome();
            let again = match &outcome {
                ScanOutcome::Matched(evidence) => RuleResult::Matched(&|| evidence.clone()),
                ScanOutcome::Error(error) => RuleResult::Error(error.clone()),
            };
            rules[rule as usize].note(message.sequence, None, again);
            found.push(scanner.found(rule, outcome));
        });
        found
    }

    /// The scanner it judges with.
    #[must_use]
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// How many messages were taken.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Adds what another session over the same scanner found, as if its messages had been taken
    /// here: evidence stays ordered by message number.
    pub fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        for (ours, theirs) in self.rules.iter_mut().zip(other.rules) {
            ours.matches += theirs.matches;
            ours.errors += theirs.errors;
            ours.evidence.extend(theirs.evidence);
            ours.evidence.sort_by_key(|evidence| evidence.sequence);
            ours.evidence.truncate(MAX_EVIDENCE);
            let earliest = [ours.error.take(), theirs.error].into_iter().flatten();
            ours.error = earliest.min_by_key(|(sequence, _)| *sequence);
        }
    }

    /// The verdicts on what was taken so far, one per document.
    #[must_use]
    pub fn verdicts(&self) -> Vec<DocumentVerdict> {
        let mut rules = self.rules.iter();
        self.scanner
            .documents
            .iter()
            .enumerate()
            .map(|(position, source)| {
                let attack = &source.document.attack;
                let mut verdicts = HashMap::new();
                let mut indicators = Vec::new();
                for (index, indicator) in attack.indicators().iter().enumerate() {
                    let Some(state) = rules.next() else { break };
                    let (result, reason) = self.result(indicator.detection(), state);
                    let id = indicator.id.clone().unwrap_or_default();
                    let words = state.evidence.first().map(|evidence| evidence.text.clone());
                    verdicts.insert(
                        id.clone(),
                        IndicatorVerdict {
                            indicator_id: id.clone(),
                            result,
                            timestamp: None,
                            evidence: words.or_else(|| reason.clone()),
                            source: Some("proofhouse".to_owned()),
                        },
                    );
                    let span = self.scanner.indicator_span(position, index);
                    indicators.push(IndicatorReport {
                        id,
                        result,
                        matches: state.matches,
                        errors: state.errors,
                        evidence: state.evidence.clone(),
                        reason,
                        line: span.map(|span| span.line),
                    });
                }
                let mut verdict = compute_verdict(attack, &verdicts);
                verdict.source = Some("proofhouse".to_owned());
                DocumentVerdict {
                    name: source.name.clone(),
                    attack: verdict,
                    indicators,
                }
            })
            .collect()
    }

    /// Matched before error before skipped before not matched.
    fn result(
        &self,
        method: Option<IndicatorMethod>,
        state: &RuleState,
    ) -> (IndicatorResult, Option<String>) {
        if state.matches > 0 {
            return (IndicatorResult::Matched, None);
        }
        if let Some((sequence, error)) = &state.error {
            return (
                IndicatorResult::Error,
                Some(format!("message {sequence}: {error}")),
            );
        }
        let missing = match method {
            Some(IndicatorMethod::Expression) if self.scanner.cel.is_none() => {
                "CEL evaluation is not available"
            }
            Some(IndicatorMethod::Semantic) if self.scanner.semantic.is_none() => {
                "no semantic evaluator is configured"
            }
            _ => return (IndicatorResult::NotMatched, None),
        };
        (IndicatorResult::Skipped, Some(missing.to_owned()))
    }
}

impl RuleState {
    fn note(&mut self, sequence: u64, line: Option<u64>, judged: RuleResult<'_>) {
        match judged {
            RuleResult::Matched(evidence) => {
                self.matches += 1;
                if self.evidence.len() < MAX_EVIDENCE {
                    let evidence = evidence();
                    self.evidence.push(Evidence { line, ..evidence });
                }
            }
            RuleResult::Error(error) => {
                self.errors += 1;
                self.error.get_or_insert((sequence, error));
            }
        }
    }

    /// Adds what was found in later messages.
    fn append(&mut self, later: Self) {
        self.matches += later.matches;
        self.errors += later.errors;
        self.evidence.extend(later.evidence);
        self.evidence.truncate(MAX_EVIDENCE);
        self.error = self.error.take().or(later.error);
    }
}

/// Judges messages for a session that lives elsewhere, and holds only what it found.
pub(crate) struct Worker<'s> {
    scanner: &'s Scanner,
    scratch: ScanBuffers,
    part: PartialFindings,
}

/// What was found in messages that follow each other. It is as large as what was found, not as
/// the scanner.
#[derive(Debug, Default)]
pub(crate) struct PartialFindings {
    messages: u64,
    rules: HashMap<RuleId, RuleState>,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(scanner: &'s Scanner) -> Self {
        Self {
            scanner,
            scratch: ScanBuffers::default(),
            part: PartialFindings::default(),
        }
    }

    pub(crate) fn feed_line(&mut self, line: u64, message: &TraceMessage) {
        self.part.messages += 1;
        let rules = &mut self.part.rules;
        self.scanner
            .scan_into(message, &mut self.scratch, &mut |rule, judged| {
                rules
                    .entry(rule)
                    .or_default()
                    .note(message.sequence, Some(line), judged);
            });
    }

    /// What was found since this was last asked.
    pub(crate) fn take(&mut self) -> PartialFindings {
        std::mem::take(&mut self.part)
    }
}

impl ScanSession<'_> {
    /// Adds a part that follows what was taken so far.
    pub(crate) fn append(&mut self, part: PartialFindings) {
        self.messages += part.messages;
        for (rule, later) in part.rules {
            self.rules[rule as usize].append(later);
        }
    }
}
