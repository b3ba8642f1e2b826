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
use crate::trace::whole::JudgedAs;
use crate::trace::{LineError, LineErrorKind, MessageAssembler, TraceMessage, WholeMessage};

/// How many pieces of evidence are kept for one indicator; matches beyond are only counted.
const MAX_EVIDENCE: usize = 5;

/// How many messages that were judged in parts are remembered for those who ask; more than one piece of an input has.
const MAX_IN_PARTS: usize = 10_000;

/// What has been found in a trace so far.
pub struct ScanSession<'s> {
    scanner: ScannerRef<'s>,
    scratch: ScanBuffers,
    rules: Vec<RuleState>,
    messages: u64,
    assembler: MessageAssembler,
    in_parts: Vec<LineError>,
}

/// When something was judged: by the number of the message that was taken then. What ended with that message comes
/// before the message itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct JudgedAt(u64);

impl JudgedAt {
    fn end_before(message: u64) -> Self {
        Self(2 * message)
    }

    fn message(message: u64) -> Self {
        Self(2 * message + 1)
    }

    /// The same, when so many messages came before.
    fn after(self, messages: u64) -> Self {
        Self(self.0 + 2 * messages)
    }
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
    evidence: Vec<(JudgedAt, Evidence)>,
    /// The earliest error, the number of its message, and what it says.
    error: Option<(JudgedAt, u64, String)>,
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
            assembler: MessageAssembler::default(),
            in_parts: Vec::new(),
        }
    }
}

impl ScanSession<'_> {
    /// Takes the next message. A piece of a longer one is judged when that ends, as a part of it.
    pub fn feed(&mut self, message: &TraceMessage) {
        self.take(None, message, None);
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
        self.take(Some(line), message, None);
    }

    /// Takes another reading of the message that follows: it is judged by itself, and is never a piece of a longer one.
    pub fn feed_reading(&mut self, line: u64, message: &TraceMessage) {
        let at = JudgedAt::message(self.messages);
        self.messages += 1;
        let whole = WholeMessage::alone(Some(line), message);
        self.judge(at, whole, None);
    }

    /// Takes the next message and tells what was found in it, and in messages that ended with it.
    pub fn feed_and_tell(&mut self, message: &TraceMessage) -> Vec<ScanFinding> {
        let mut found = Vec::new();
        self.take(None, message, Some(&mut found));
        found
    }

    /// Nothing more comes: judges what was cut off in the middle, and tells what was found in it. Verdicts have it
    /// without being asked.
    pub fn finish(&mut self) -> Vec<ScanFinding> {
        let at = JudgedAt::end_before(self.messages);
        let mut found = Vec::new();
        let mut assembler = std::mem::take(&mut self.assembler);
        assembler.finish(&mut |whole| self.judge(at, whole, Some(&mut found)));
        found
    }

    /// Messages that came in pieces and were judged in parts because they are longer than what is held; those
    /// that were not told yet.
    pub fn take_in_parts(&mut self) -> Vec<LineError> {
        std::mem::take(&mut self.in_parts)
    }

    fn take(
        &mut self,
        line: Option<u64>,
        message: &TraceMessage,
        mut told: Option<&mut Vec<ScanFinding>>,
    ) {
        let number = self.messages;
        self.messages += 1;
        let at = JudgedAt::message(number);
        match JudgedAs::of(message) {
            JudgedAs::Itself => self.judge(at, WholeMessage::alone(line, message), told),
            JudgedAs::Other(other) => self.judge(at, WholeMessage::alone(line, &other), told),
            JudgedAs::Piece => self.follow(number, line, message, told),
            JudgedAs::ItselfAndMark => {
                self.follow(number, line, message, told.as_deref_mut());
                self.judge(at, WholeMessage::alone(line, message), told);
            }
        }
    }

    /// Takes a piece, or what ends others, and judges what ends with it.
    fn follow(
        &mut self,
        number: u64,
        line: Option<u64>,
        message: &TraceMessage,
        mut told: Option<&mut Vec<ScanFinding>>,
    ) {
        let at = JudgedAt::end_before(number);
        let mut assembler = std::mem::take(&mut self.assembler);
        assembler.follow(line, message, &mut |whole| {
            self.judge(at, whole, told.as_deref_mut());
        });
        self.assembler = assembler;
    }

    fn judge(
        &mut self,
        at: JudgedAt,
        whole: WholeMessage<'_>,
        mut told: Option<&mut Vec<ScanFinding>>,
    ) {
        if whole.is_part && self.in_parts.len() < MAX_IN_PARTS {
            self.in_parts.push(in_parts(&whole));
        }
        let (scanner, rules) = (&*self.scanner, &mut self.rules);
        scanner.scan_into(whole.message, &mut self.scratch, &mut |rule, judged| {
            let state = &mut rules[rule as usize];
            let Some(told) = told.as_deref_mut() else {
                state.note(at, &whole, judged);
                return;
            };
            let mut outcome = judged.into_outcome();
            if let ScanOutcome::Matched(evidence) = &mut outcome {
                evidence.stands_in(&whole);
            }
            let again = match &outcome {
                ScanOutcome::Matched(evidence) => RuleResult::Matched(&|| evidence.clone()),
                ScanOutcome::Error(error) => RuleResult::Error(error.clone()),
            };
            state.note(at, &whole, again);
            told.push(scanner.found(rule, outcome));
        });
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
    pub fn merge(&mut self, mut other: Self) {
        other.finish();
        let before = self.messages;
        self.messages += other.messages;
        self.in_parts.append(&mut other.in_parts);
        self.in_parts.truncate(MAX_IN_PARTS);
        for (ours, theirs) in self.rules.iter_mut().zip(other.rules) {
            ours.matches += theirs.matches;
            ours.errors += theirs.errors;
            let evidence = theirs.evidence.into_iter();
            let later = evidence.map(|(at, evidence)| (at.after(before), evidence));
            ours.evidence.extend(later);
            ours.evidence.sort_by_key(|(_, evidence)| evidence.sequence);
            ours.evidence.truncate(MAX_EVIDENCE);
            let error = theirs
                .error
                .map(|(at, n, error)| (at.after(before), n, error));
            let earliest = [ours.error.take(), error].into_iter().flatten();
            ours.error = earliest.min_by_key(|(_, sequence, _)| *sequence);
        }
    }

    /// The verdicts on what was taken so far, one per document. A message that has not ended is judged as it stands.
    #[must_use]
    pub fn verdicts(&self) -> Vec<DocumentVerdict> {
        if self.assembler.is_finished() {
            return self.verdicts_by(&self.rules);
        }
        let mut rules = self.rules.clone();
        let mut scratch = ScanBuffers::default();
        let at = JudgedAt::end_before(self.messages);
        self.assembler.unfinished(&mut |whole| {
            let note = &mut |rule: RuleId, judged: RuleResult<'_>| {
                rules[rule as usize].note(at, &whole, judged);
            };
            self.scanner.scan_into(whole.message, &mut scratch, note);
        });
        self.verdicts_by(&rules)
    }

    fn verdicts_by(&self, rules: &[RuleState]) -> Vec<DocumentVerdict> {
        let mut rules = rules.iter();
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
                    let evidence = state.evidence.iter().map(|(_, evidence)| evidence);
                    let words = evidence
                        .clone()
                        .next()
                        .map(|evidence| evidence.text.clone());
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
                        evidence: evidence.cloned().collect(),
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
        if let Some((_, sequence, error)) = &state.error {
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
    fn note(&mut self, at: JudgedAt, whole: &WholeMessage<'_>, judged: RuleResult<'_>) {
        match judged {
            RuleResult::Matched(evidence) => {
                self.matches += 1;
                if self.evidence.len() < MAX_EVIDENCE {
                    let mut evidence = evidence();
                    evidence.stands_in(whole);
                    self.evidence.push((at, evidence));
                }
            }
            RuleResult::Error(error) => {
                self.errors += 1;
                self.error
                    .get_or_insert((at, whole.message.sequence, error));
            }
        }
    }

    /// Adds what was found elsewhere; what was judged first counts.
    fn add(&mut self, other: Self) {
        self.matches += other.matches;
        self.errors += other.errors;
        self.evidence.extend(other.evidence);
        self.evidence.sort_by_key(|(at, _)| *at);
        self.evidence.truncate(MAX_EVIDENCE);
        let errors = [self.error.take(), other.error].into_iter().flatten();
        self.error = errors.min_by_key(|(at, ..)| *at);
    }

    /// The same, when so many messages came before.
    fn after(mut self, messages: u64) -> Self {
        for (at, _) in &mut self.evidence {
            *at = at.after(messages);
        }
        if let Some((at, ..)) = &mut self.error {
            *at = at.after(messages);
        }
        self
    }
}

/// Says that a message was judged in parts.
fn in_parts(whole: &WholeMessage<'_>) -> LineError {
    let last = whole.pieces.and_then(|pieces| pieces.last_line);
    let first = whole.message.sequence;
    let last_piece = whole.pieces.map_or(first, |pieces| pieces.last_sequence);
    LineError {
        line: last.or(whole.line).unwrap_or_default(),
        kind: LineErrorKind::InParts,
        message: format!(
            "messages {first} to {last_piece} are pieces of more than is held; they were judged in parts"
        ),
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
    /// Pieces of longer messages, and what ends them: only the session has seen what came before.
    streamed: Vec<StreamedMessage>,
}

/// A message that has to do with others, its line, and its number among those of its part.
#[derive(Debug)]
struct StreamedMessage {
    number: u64,
    line: u64,
    message: TraceMessage,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(scanner: &'s Scanner) -> Self {
        Self {
            scanner,
            scratch: ScanBuffers::default(),
            part: PartialFindings::default(),
        }
    }

    pub(crate) fn feed_line(&mut self, line: u64, message: TraceMessage) {
        let number = self.part.messages;
        let (is_alone, is_streamed) = match JudgedAs::of(&message) {
            JudgedAs::Itself => (true, false),
            JudgedAs::Other(other) => {
                self.judge(line, &other);
                return;
            }
            JudgedAs::Piece => (false, true),
            JudgedAs::ItselfAndMark => (true, true),
        };
        if is_alone {
            self.judge(line, &message);
        } else {
            self.part.messages += 1;
        }
        if is_streamed {
            self.part.streamed.push(StreamedMessage {
                number,
                line,
                message,
            });
        }
    }

    /// Judges a message by itself.
    pub(crate) fn judge(&mut self, line: u64, message: &TraceMessage) {
        let at = JudgedAt::message(self.part.messages);
        self.part.messages += 1;
        let whole = WholeMessage::alone(Some(line), message);
        let rules = &mut self.part.rules;
        self.scanner
            .scan_into(message, &mut self.scratch, &mut |rule, judged| {
                rules.entry(rule).or_default().note(at, &whole, judged);
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
        let before = self.messages;
        self.messages += part.messages;
        for streamed in part.streamed {
            let number = before + streamed.number;
            self.follow(number, Some(streamed.line), &streamed.message, None);
        }
        for (rule, found) in part.rules {
            self.rules[rule as usize].add(found.after(before));
        }
    }
}
