//! A session: messages go in one by one, verdicts come out at any time.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use proofhouse_oatf::{
    AttackResult, AttackVerdict, Indicator, IndicatorMethod, IndicatorResult, IndicatorVerdict,
    Protocol, compute_verdict,
};
use serde::{Deserialize, Serialize};

use super::Scanner;
use super::class::UnknownFact;
use super::evidence::Evidence;
use super::group::RuleId;
use super::scan::{RuleResult, ScanBuffers, ScanFinding, ScanOutcome};
use super::split::{CanaryTrails, SplitPieces};
use crate::trace::whole::JudgedAs;
use crate::trace::{LineError, LineErrorKind, MessageAssembler, TraceMessage, WholeMessage};

/// How many pieces of evidence are kept for one indicator; matches beyond are only counted.
const MAX_EVIDENCE: usize = 5;

/// Protocols that are told apart; traces have one or two.
const MAX_PROTOCOLS: usize = 16;

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
    /// Canaries that were begun.
    trails: CanaryTrails,
    protocols: SeenProtocols,
}

/// The protocols of the messages so far.
#[derive(Debug, Clone, Default)]
struct SeenProtocols(Vec<Protocol>);

impl SeenProtocols {
    fn see(&mut self, protocol: &Protocol) {
        if self.0.len() < MAX_PROTOCOLS && !self.0.contains(protocol) {
            self.0.push(protocol.clone());
        }
    }

    /// Whether there was a message of it; of too many protocols, nobody knows.
    fn have(&self, protocol: &Protocol) -> bool {
        self.0.len() >= MAX_PROTOCOLS || self.0.contains(protocol)
    }
}

/// Why an indicator that did not match has not looked at all that it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotJudged {
    /// There were no messages.
    Empty,
    /// No message was of its protocol.
    OtherProtocol(Protocol),
    /// Messages that it would look at do not say something that it asks for.
    Unknown {
        /// What they do not say.
        fact: UnknownFact,
        /// How many there are.
        messages: u64,
    },
}

impl fmt::Display for NotJudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the trace has no messages"),
            Self::OtherProtocol(protocol) => write!(f, "the trace has no {protocol} messages"),
            Self::Unknown { fact, messages } => {
                let (plural, verb) = if *messages == 1 {
                    ("", "does")
                } else {
                    ("s", "do")
                };
                let fact = fact.as_str();
                write!(
                    f,
                    "{messages} message{plural} that it asks about {verb} not say the {fact}"
                )
            }
        }
    }
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
    /// Messages that did not say what it asks for.
    unknown: u64,
    unknown_fact: Option<UnknownFact>,
}

/// The verdict on one document, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentVerdict {
    /// The name the document was added with.
    pub name: String,
    /// The verdict of the specification.
    pub attack: AttackVerdict,
    /// Per indicator, in document order.
    pub indicators: Vec<IndicatorReport>,
}

/// What one indicator found in a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Why it has not looked at all that it should, where it did not match. It is not written.
    #[serde(skip)]
    pub not_judged: Option<NotJudged>,
}

impl DocumentVerdict {
    /// Why nobody knows whether the document would have found something: an indicator that did not match could not tell
    /// what it looks at, or none had anything to look at.
    #[must_use]
    pub fn not_judged(&self) -> Option<&NotJudged> {
        if self.attack.result != AttackResult::NotExploited {
            return None;
        }
        let reasons = || {
            self.indicators
                .iter()
                .map(|report| report.not_judged.as_ref())
        };
        let unknown = |reason: &&NotJudged| matches!(reason, NotJudged::Unknown { .. });
        if let Some(unknown) = reasons().flatten().find(unknown) {
            return Some(unknown);
        }
        let all = reasons().all(|reason| reason.is_some());
        reasons().flatten().next().filter(|_| all)
    }
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
            trails: CanaryTrails::default(),
            protocols: SeenProtocols::default(),
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
        self.protocols.see(&whole.message.protocol);
        for (rule, fact) in &scanner
            .class_of(whole.message, self.scratch.classes())
            .unknown
        {
            rules[*rule as usize].note_unknown(*fact);
        }
        let pieces = scanner.split_pieces(whole.message, &mut self.scratch);
        for mut split in pieces {
            split.stand_in(&whole);
            self.complete(at, &split, told.as_deref_mut());
        }
    }

    /// Takes a piece of a canary, and notes what is complete with it.
    fn complete(
        &mut self,
        at: JudgedAt,
        split: &SplitPieces,
        mut told: Option<&mut Vec<ScanFinding>>,
    ) {
        for (rule, evidence) in self.trails.follow(&self.scanner, split) {
            self.rules[rule as usize].note_match(at, || evidence.clone());
            if let Some(told) = told.as_deref_mut() {
                let outcome = ScanOutcome::Matched(evidence);
                told.push(self.scanner.found(rule, outcome));
            }
        }
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
        for protocol in &other.protocols.0 {
            self.protocols.see(protocol);
        }
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
            ours.unknown += theirs.unknown;
            ours.unknown_fact = ours.unknown_fact.or(theirs.unknown_fact);
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
        let mut trails = self.trails.clone();
        let at = JudgedAt::end_before(self.messages);
        self.assembler.unfinished(&mut |whole| {
            let note = &mut |rule: RuleId, judged: RuleResult<'_>| {
                rules[rule as usize].note(at, &whole, judged);
            };
            self.scanner.scan_into(whole.message, &mut scratch, note);
            for mut split in self.scanner.split_pieces(whole.message, &mut scratch) {
                split.stand_in(&whole);
                for (rule, evidence) in trails.follow(&self.scanner, &split) {
                    rules[rule as usize].note_match(at, || evidence);
                }
            }
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
                    let (result, reason) = self.result(super::asked_for(indicator), state);
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
                        not_judged: self
                            .not_judged(indicator, state)
                            .filter(|_| result == IndicatorResult::NotMatched),
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

    /// What an indicator did not look at.
    fn not_judged(&self, indicator: &Indicator, state: &RuleState) -> Option<NotJudged> {
        if self.messages == 0 {
            return Some(NotJudged::Empty);
        }
        if let Some(fact) = state.unknown_fact {
            let messages = state.unknown;
            return Some(NotJudged::Unknown { fact, messages });
        }
        let protocol = indicator.protocol.as_ref();
        let protocol = protocol.filter(|protocol| !self.protocols.have(protocol));
        protocol.map(|protocol| NotJudged::OtherProtocol(protocol.clone()))
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
            Some(
                IndicatorMethod::Pattern | IndicatorMethod::Expression | IndicatorMethod::Semantic,
            )
            | None => return (IndicatorResult::NotMatched, None),
        };
        (IndicatorResult::Skipped, Some(missing.to_owned()))
    }
}

impl RuleState {
    fn note(&mut self, at: JudgedAt, whole: &WholeMessage<'_>, judged: RuleResult<'_>) {
        match judged {
            RuleResult::Matched(evidence) => self.note_match(at, || {
                let mut evidence = evidence();
                evidence.stands_in(whole);
                evidence
            }),
            RuleResult::Error(error) => {
                self.errors += 1;
                self.error
                    .get_or_insert((at, whole.message.sequence, error));
            }
        }
    }

    fn note_unknown(&mut self, fact: UnknownFact) {
        self.unknown += 1;
        self.unknown_fact.get_or_insert(fact);
    }

    fn note_match(&mut self, at: JudgedAt, evidence: impl FnOnce() -> Evidence) {
        self.matches += 1;
        if self.evidence.len() < MAX_EVIDENCE {
            self.evidence.push((at, evidence()));
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
        self.unknown += other.unknown;
        self.unknown_fact = self.unknown_fact.or(other.unknown_fact);
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
    /// Pieces of canaries, with the numbers of their messages, for the same reason.
    split: Vec<(u64, SplitPieces)>,
    protocols: SeenProtocols,
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
        let number = self.part.messages;
        let at = JudgedAt::message(number);
        self.part.messages += 1;
        let whole = WholeMessage::alone(Some(line), message);
        let rules = &mut self.part.rules;
        self.scanner
            .scan_into(message, &mut self.scratch, &mut |rule, judged| {
                rules.entry(rule).or_default().note(at, &whole, judged);
            });
        self.part.protocols.see(&message.protocol);
        for (rule, fact) in &self
            .scanner
            .class_of(message, self.scratch.classes())
            .unknown
        {
            rules.entry(*rule).or_default().note_unknown(*fact);
        }
        for mut split in self.scanner.split_pieces(message, &mut self.scratch) {
            split.stand_in(&whole);
            self.part.split.push((number, split));
        }
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
        for protocol in &part.protocols.0 {
            self.protocols.see(protocol);
        }
        let mut split = part.split.into_iter().peekable();
        for streamed in part.streamed {
            while let Some((number, piece)) = split.next_if(|(number, _)| *number < streamed.number)
            {
                self.complete(JudgedAt::message(before + number), &piece, None);
            }
            let number = before + streamed.number;
            self.follow(number, Some(streamed.line), &streamed.message, None);
        }
        for (number, piece) in split {
            self.complete(JudgedAt::message(before + number), &piece, None);
        }
        for (rule, found) in part.rules {
            self.rules[rule as usize].add(found.after(before));
        }
    }
}
