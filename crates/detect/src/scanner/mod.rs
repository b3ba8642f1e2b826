//! The scanner: indicators of any number of documents, compiled together.
//!
//! A message is looked at once, however many indicators there are. Indicators are grouped by
//! protocol and target, so that a path is resolved once per message; within a group, one automaton
//! finds the literals without which an indicator cannot match, and only the indicators whose
//! literal was found are evaluated; those that ask the same are evaluated once. What cannot be narrowed down that way (CEL, comparisons) is
//! evaluated for the messages its filters keep. The results are those of `evaluate_indicator` run
//! one by one, and a property test insists on it. Two extensions go beyond: an indicator with `x-proofhouse.canary`
//! also matches where one of its canaries is found at its target, in whatever form and over several messages, or where no
//! target leads; and one with `x-proofhouse.checksum` only where the checksum of a match holds.
//! A message whose texts are hidden below another layer of its protocol is judged a second time without that layer.

mod aside;
mod canaries;
mod checksum;
mod class;
mod evidence;
mod explain;
mod explanation;
mod group;
mod literals;
mod scan;
mod session;
mod split;

use std::collections::HashMap;
use std::sync::Arc;

use proofhouse_oatf::{
    CelEvaluator, Condition, DefaultCelEvaluator, Document, Indicator, IndicatorMethod,
    MAX_TRAVERSAL_DEPTH, PatternMatch, Protocol, SemanticEvaluator, Span,
};

use canaries::CanaryGroup;
pub use canaries::{CanaryKeyError, CanaryKeyProblem, EXTENSION_FIELD, check_canaries};
use checksum::Checksum;
pub use checksum::{ChecksumKeyError, ChecksumKeyProblem, check_checksums};
use class::ClassCache;
pub use class::{Dropped, UnknownFact, dropped_by, text_is_enough};
pub use evidence::Evidence;
pub use explain::{Judgement, Kept, OperatorCheck, Resolved};
pub use explanation::{DroppedMessages, ExplainedMessage, IndicatorExplanation, MessagePlace};
use group::{ConditionId, PatternGroup, RuleId};
pub use scan::{ScanFinding, ScanOutcome};
pub use session::{DocumentVerdict, IndicatorReport, NotJudged, ScanSession};
pub(crate) use session::{PartialFindings, Worker};

/// Why a scanner could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A document has no indicators, so there is nothing to judge with.
    #[error("document {name} has no indicators")]
    NoIndicators {
        /// The document.
        name: String,
    },
    /// The indicators are too many or too large to compile together.
    #[error("the indicators are too large to compile together: {reason}")]
    TooLarge {
        /// What the compiler said.
        reason: String,
    },
    /// The canaries of an indicator cannot be used.
    #[error("{name}{}: {error}", place(.error.span))]
    Canary {
        /// The document.
        name: String,
        /// What is wrong, and where.
        error: Box<CanaryKeyError>,
    },
    /// The checksum of an indicator cannot be used.
    #[error("{name}{}: {error}", place(.error.span))]
    Checksum {
        /// The document.
        name: String,
        /// What is wrong, and where.
        error: Box<ChecksumKeyError>,
    },
}

/// Where an error stands, as it follows the name of a file.
fn place(span: Option<Span>) -> String {
    span.map_or_else(String::new, |span| {
        format!(":{}:{}", span.line, span.column)
    })
}

/// Indicators of many documents, compiled into one.
///
/// ```
/// use proofhouse_detect::{TraceMessage, Scanner};
/// use proofhouse_oatf::load;
/// use serde_json::json;
///
/// let document = load(r#"
/// oatf: "0.1"
/// attack:
///   execution: {mode: mcp_server, state: {tools: []}}
///   indicators:
///     - surface: tools/call
///       target: arguments
///       pattern: {contains: passwd}
/// "#).unwrap().document;
/// let scanner = Scanner::builder().add("passwd", document).build().unwrap();
///
/// let mut session = scanner.session();
/// session.feed(&TraceMessage::new("mcp", "tools/call", json!({"arguments": {"path": "/etc/passwd"}})));
/// assert_eq!(session.verdicts()[0].attack.result.as_str(), "exploited");
/// ```
pub struct Scanner {
    documents: Vec<ScannerDocument>,
    rules: Vec<IndicatorRef>,
    groups: Vec<PatternGroup>,
    /// The rules that share each condition; all of them look at the same place.
    conditions: Vec<Vec<RuleId>>,
    /// Rules that are CEL expressions, and those that `evaluate_indicator` has an error for.
    expressions: Vec<RuleId>,
    /// Rules that are judged by meaning.
    semantics: Vec<RuleId>,
    canaries: Vec<CanaryGroup>,
    /// What the matches of some rules are checked with.
    checksums: HashMap<RuleId, Checksum>,
    classes: ClassCache,
    cel: Option<Arc<dyn CelEvaluator>>,
    semantic: Option<Arc<dyn SemanticEvaluator>>,
}

/// A document the scanner was built from.
struct ScannerDocument {
    name: String,
    document: Document,
}

/// One indicator.
#[derive(Debug, Clone, Copy)]
struct IndicatorRef {
    document: u32,
    indicator: u32,
}

/// Collects documents for a [`Scanner`].
#[derive(Default)]
pub struct ScannerBuilder {
    documents: Vec<ScannerDocument>,
    cel: Option<Arc<dyn CelEvaluator>>,
    semantic: Option<Arc<dyn SemanticEvaluator>>,
    without_cel: bool,
}

impl ScannerBuilder {
    /// Adds a normalized document, as [`load`](proofhouse_oatf::load) returns it.
    #[must_use]
    pub fn add(mut self, name: impl Into<String>, document: Document) -> Self {
        self.documents.push(ScannerDocument {
            name: name.into(),
            document,
        });
        self
    }

    /// Looks for canaries in all of every message, in whatever form, as a document named `canary` with an indicator for
    /// each would.
    ///
    /// ```
    /// # use proofhouse_detect::{TraceMessage, Scanner};
    /// # use serde_json::json;
    /// let scanner = Scanner::builder().canaries(&["CANARY-93b4aa10".to_owned()]).build().unwrap();
    /// let mut session = scanner.session();
    /// session.feed(&TraceMessage::new("mail", "send", json!({"body": "01aa4b39-YRANAC"})));
    /// let verdict = &session.verdicts()[0];
    /// assert_eq!((verdict.name.as_str(), verdict.attack.result.as_str()), ("canary", "exploited"));
    /// ```
    #[must_use]
    pub fn canaries(self, canaries: &[String]) -> Self {
        if canaries.is_empty() {
            return self;
        }
        self.add(canaries::BUILT_IN, canaries::built_in(canaries))
    }

    /// Uses another CEL evaluator than the default one.
    #[must_use]
    pub fn cel(mut self, evaluator: Arc<dyn CelEvaluator>) -> Self {
        self.cel = Some(evaluator);
        self
    }

    /// Uses no CEL evaluator: expression indicators are skipped.
    #[must_use]
    pub fn without_cel(mut self) -> Self {
        self.without_cel = true;
        self
    }

    /// Uses a semantic evaluator; without one, semantic indicators are skipped.
    #[must_use]
    pub fn semantic(mut self, evaluator: Arc<dyn SemanticEvaluator>) -> Self {
        self.semantic = Some(evaluator);
        self
    }

    /// Compiles the indicators.
    ///
    /// # Errors
    ///
    /// Returns an error when a document has no indicators, when they are too large together, or when a canary of one
    /// cannot be used.
    pub fn build(self) -> Result<Scanner, BuildError> {
        let cel: Option<Arc<dyn CelEvaluator>> = match (self.without_cel, self.cel) {
            (true, _) => None,
            (false, Some(evaluator)) => Some(evaluator),
            (false, None) => Some(Arc::new(DefaultCelEvaluator)),
        };
        let mut scanner = Scanner {
            documents: self.documents,
            rules: Vec::new(),
            groups: Vec::new(),
            conditions: Vec::new(),
            expressions: Vec::new(),
            semantics: Vec::new(),
            canaries: Vec::new(),
            checksums: HashMap::new(),
            classes: ClassCache::default(),
            cel,
            semantic: self.semantic,
        };
        scanner.compile()?;
        scanner.compile_canaries()?;
        scanner.compile_checksums()?;
        Ok(scanner)
    }
}

impl Scanner {
    /// Starts a scanner.
    #[must_use]
    pub fn builder() -> ScannerBuilder {
        ScannerBuilder::default()
    }

    /// The same scanner for documents that are changed a little, such as by other canaries.
    ///
    /// # Errors
    ///
    /// Returns an error when their indicators cannot be compiled together.
    pub fn rebuilt(&self, change: impl Fn(&Document) -> Document) -> Result<Self, BuildError> {
        let documents = self.documents.iter().map(|source| ScannerDocument {
            name: source.name.clone(),
            document: change(&source.document),
        });
        let builder = ScannerBuilder {
            documents: documents.collect(),
            without_cel: self.cel.is_none(),
            cel: self.cel.clone(),
            semantic: self.semantic.clone(),
        };
        builder.build()
    }

    /// How many indicators there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no indicators.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Bytes the compiled indicators hold, besides the documents themselves.
    #[must_use]
    pub fn memory(&self) -> usize {
        let shared = self.conditions.len() * size_of::<Vec<RuleId>>();
        let per_rule = size_of::<IndicatorRef>() + size_of::<RuleId>();
        let canaries = self.canaries.iter().map(CanaryGroup::memory);
        self.groups.iter().map(PatternGroup::memory).sum::<usize>()
            + canaries.sum::<usize>()
            + shared
            + self.rules.len() * per_rule
    }

    /// The documents, in the order they were added.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = (&str, &Document)> {
        self.documents
            .iter()
            .map(|source| (source.name.as_str(), &source.document))
    }

    /// Where an indicator stands in its document's text.
    #[must_use]
    pub fn indicator_span(&self, document: usize, indicator: usize) -> Option<Span> {
        self.documents
            .get(document)?
            .document
            .indicator_span(indicator)
    }

    fn indicator(&self, rule: RuleId) -> &Indicator {
        let IndicatorRef {
            document,
            indicator,
        } = self.rules[rule as usize];
        &self.documents[document as usize]
            .document
            .attack
            .indicators()[indicator as usize]
    }

    fn compile(&mut self) -> Result<(), BuildError> {
        let mut by_place: HashMap<(Option<Protocol>, String), usize> = HashMap::new();
        let mut literals: Vec<HashMap<Vec<u8>, usize>> = Vec::new();
        let mut by_condition: HashMap<(usize, String), usize> = HashMap::new();
        for (document, source) in self.documents.iter().enumerate() {
            let indicators = source.document.attack.indicators();
            if indicators.is_empty() {
                return Err(BuildError::NoIndicators {
                    name: source.name.clone(),
                });
            }
            for (position, indicator) in indicators.iter().enumerate() {
                let too_many = |_| BuildError::TooLarge {
                    reason: "too many indicators".to_owned(),
                };
                let rule = RuleId::try_from(self.rules.len()).map_err(too_many)?;
                self.rules.push(IndicatorRef {
                    document: u32::try_from(document).map_err(too_many)?,
                    indicator: u32::try_from(position).map_err(too_many)?,
                });
                match asked_for(indicator) {
                    Some(IndicatorMethod::Expression) => self.expressions.push(rule),
                    Some(IndicatorMethod::Semantic) => self.semantics.push(rule),
                    // Its canaries are all there is of it.
                    None if indicator.extensions.contains_key(EXTENSION_FIELD) => {}
                    Some(IndicatorMethod::Pattern) | None => {
                        let Some((pattern, target)) = grouped(indicator) else {
                            self.expressions.push(rule);
                            continue;
                        };
                        let protocol = indicator.protocol.clone();
                        let group = *by_place
                            .entry((protocol.clone(), target.clone()))
                            .or_insert_with(|| {
                                self.groups
                                    .push(PatternGroup::new(protocol, target.clone()));
                                literals.push(HashMap::new());
                                self.groups.len() - 1
                            });
                        let Some(condition) = &pattern.condition else {
                            continue;
                        };
                        self.groups[group].rules.push(rule);
                        let next = self.conditions.len();
                        // The form is part of it: a mapping to be equal to may look like operators.
                        let form = std::mem::discriminant(condition);
                        let key = (group, format!("{form:?} {}", condition.to_value()));
                        let id = *by_condition.entry(key).or_insert(next);
                        if id == next {
                            self.conditions.push(Vec::new());
                            let id = ConditionId::try_from(id).map_err(too_many)?;
                            self.groups[group].add(id, condition, &mut literals[group]);
                        }
                        self.conditions[id].push(rule);
                    }
                }
            }
        }
        for group in &mut self.groups {
            group.finish().map_err(|error| BuildError::TooLarge {
                reason: error.to_string(),
            })?;
        }
        Ok(())
    }
}

/// The method that evaluation takes: with several keys, which no valid document has, the first of these.
fn asked_for(indicator: &Indicator) -> Option<IndicatorMethod> {
    if indicator.pattern.is_some() {
        Some(IndicatorMethod::Pattern)
    } else if indicator.expression.is_some() {
        Some(IndicatorMethod::Expression)
    } else {
        let semantic = indicator.semantic.as_ref();
        semantic.map(|_| IndicatorMethod::Semantic)
    }
}

/// The pattern of an indicator and its target, if it can be judged together with others: a document that a program built
/// may have one that can only fail, whatever the message.
fn grouped(indicator: &Indicator) -> Option<(&PatternMatch, &String)> {
    let pattern = indicator.pattern.as_ref()?;
    let target = pattern.target.as_ref().unwrap_or(&indicator.target);
    let can_fail = match pattern.condition.as_ref()? {
        Condition::Equals(_) => false,
        Condition::Operators(operators) => {
            let regex = operators.regex.as_ref();
            operators.is_empty() || regex.is_some_and(|regex| regex.engine_pattern().is_err())
        }
    };
    let is_short = target.split('.').count() <= MAX_TRAVERSAL_DEPTH;
    (is_short && !can_fail).then_some((pattern, target))
}

impl std::fmt::Debug for Scanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scanner")
            .field("documents", &self.documents.len())
            .field("indicators", &self.rules.len())
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}
