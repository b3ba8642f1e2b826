//! The key `x-proofhouse: {canary: …}` of an indicator: it also matches where a canary is found at its target,
//! in whatever form.

use std::collections::HashMap;

use proofhouse_oatf::{Attack, Document, Indicator, Protocol, Span, resolve_wildcard_path};
use serde_json::Value;

use super::group::RuleId;
use super::{BuildError, Scanner};
use crate::canary::{CanaryError, CanaryHit, CanaryMatcher, check};
use crate::trace::TraceMessage;

/// The field of an attack or an indicator for what the threat format has no place for.
pub const EXTENSION_FIELD: &str = "x-proofhouse";
const CANARY: &str = "canary";
/// What the rule is called that nobody's document has.
pub(super) const BUILT_IN: &str = "canary";

/// What is wrong with the canaries of an indicator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`x-proofhouse.canary` {problem}")]
pub struct CanaryKeyError {
    /// The indicator, by its position in the document.
    pub indicator: usize,
    /// Where the key stands in the text of the document.
    pub span: Option<Span>,
    /// What is wrong.
    pub problem: CanaryKeyProblem,
}

/// Why a value of the key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanaryKeyProblem {
    /// It is of the wrong type.
    #[error("must be a text or a list of texts")]
    NotText,
    /// No matcher can be made of it.
    #[error("cannot be used: {0}")]
    Canary(#[from] CanaryError),
}

/// What is wrong with the canaries of a document's indicators.
///
/// ```
/// let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n  indicators:\n    \
///     - target: a\n      pattern: {contains: x}\n      x-proofhouse: {canary: abc}\n";
/// let document = proofhouse_oatf::load(text).unwrap().document;
/// let errors = proofhouse_detect::check_canaries(&document);
/// assert_eq!(errors[0].span.unwrap().line, 7);
/// assert!(errors[0].to_string().contains("needs at least 8"));
/// ```
#[must_use]
pub fn check_canaries(document: &Document) -> Vec<CanaryKeyError> {
    let indicators = document.attack.indicators().iter().enumerate();
    let checked = indicators.filter_map(|(index, indicator)| {
        let problem = canaries(indicator).err()?;
        Some(key_error(document, index, problem))
    });
    checked.collect()
}

fn key_error(document: &Document, indicator: usize, problem: CanaryKeyProblem) -> CanaryKeyError {
    CanaryKeyError {
        indicator,
        span: document.indicator_field_span(indicator, &[EXTENSION_FIELD, CANARY]),
        problem,
    }
}

/// The canaries an indicator asks for.
fn canaries(indicator: &Indicator) -> Result<Vec<&str>, CanaryKeyProblem> {
    let ours = indicator.extensions.get(EXTENSION_FIELD);
    let Some(value) = ours.and_then(|ours| ours.get(CANARY)) else {
        return Ok(Vec::new());
    };
    let values = match value {
        Value::Array(values) if !values.is_empty() => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let texts = values.iter().map(|value| {
        let text = value.as_str().ok_or(CanaryKeyProblem::NotText)?;
        check(text)?;
        Ok(text)
    });
    texts.collect()
}

/// The document that stands for canaries nobody's document asks for: an indicator for each, which looks at all of every
/// message, whatever protocol it is of.
pub(super) fn built_in(canaries: &[String]) -> Document {
    let indicators = canaries.iter().enumerate().map(|(index, canary)| {
        let mut ours = serde_json::Map::new();
        ours.insert(CANARY.to_owned(), canary.as_str().into());
        let mut indicator = Indicator {
            id: Some(format!("{BUILT_IN}-{}", index + 1)),
            description: Some(format!("The canary {canary} was found.")),
            ..Indicator::default()
        };
        indicator
            .extensions
            .insert(EXTENSION_FIELD.to_owned(), Value::Object(ours));
        indicator
    });
    Document::new(Attack {
        id: Some(BUILT_IN.to_owned()),
        name: Some("Canaries".to_owned()),
        indicators: Some(indicators.collect()),
        ..Attack::default()
    })
}

/// Where an indicator looks.
fn target(indicator: &Indicator) -> &str {
    let pattern = indicator.pattern.as_ref();
    let semantic = indicator.semantic.as_ref();
    let own = pattern.and_then(|pattern| pattern.target.as_deref());
    let own = own.or_else(|| semantic.and_then(|semantic| semantic.target.as_deref()));
    own.unwrap_or(&indicator.target)
}

/// Where indicators look: the protocol, if one, and the target.
type Place = (Option<Protocol>, String);

/// A canary and the rules that ask for it.
type Asked = (String, Vec<RuleId>);

/// The canaries that indicators ask for at the same place, compiled together.
#[derive(Debug)]
pub(super) struct CanaryGroup {
    /// The protocol; any where there is none.
    protocol: Option<Protocol>,
    target: String,
    matcher: CanaryMatcher,
    /// Per canary, the rules that ask for it.
    rules: Vec<Vec<RuleId>>,
}

/// A canary at a target.
pub(super) struct CanaryAt<'m> {
    pub(super) target: &'m str,
    /// The value that the target leads to, and the place below it.
    pub(super) value: &'m Value,
    pub(super) path: String,
    pub(super) text: String,
    /// The form in words.
    pub(super) form: String,
}

impl CanaryGroup {
    /// Whether a rule of the group may look at messages of a protocol.
    pub(super) fn is_of(&self, protocol: &Protocol) -> bool {
        self.protocol.as_ref().is_none_or(|own| own == protocol)
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = RuleId> {
        self.rules.iter().flatten().copied()
    }

    /// Calls `found` for every rule whose canary is in the message; with some more than once.
    pub(super) fn find(
        &self,
        message: &TraceMessage,
        mut found: impl FnMut(RuleId, &CanaryAt<'_>),
    ) {
        let values = resolve_wildcard_path(&self.target, &message.content);
        for hit in self.matcher.find_in_values(&values) {
            let CanaryHit {
                canary,
                form,
                value,
                path,
                text,
            } = hit;
            let at = CanaryAt {
                target: &self.target,
                value: values[value],
                path,
                text,
                form: form.describe(&self.matcher.canaries()[canary]),
            };
            for rule in &self.rules[canary] {
                found(*rule, &at);
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.matcher.memory() + 4 * self.rules().count()
    }
}

impl Scanner {
    /// Compiles the canaries of all indicators.
    pub(super) fn compile_canaries(&mut self) -> Result<(), BuildError> {
        // In the order in which the places are met, so that a scanner is the same every time.
        let mut places: Vec<(Place, Vec<Asked>)> = Vec::new();
        let mut by_place: HashMap<Place, usize> = HashMap::new();
        let mut by_canary: HashMap<(usize, String), usize> = HashMap::new();
        for (rule, place) in (0..).zip(&self.rules) {
            let source = &self.documents[place.document as usize];
            let indicator = self.indicator(rule);
            let wrong = |problem| BuildError::Canary {
                name: source.name.clone(),
                error: Box::new(key_error(
                    &source.document,
                    place.indicator as usize,
                    problem,
                )),
            };
            let canaries = canaries(indicator).map_err(wrong)?;
            if canaries.is_empty() {
                continue;
            }
            let key = (indicator.protocol.clone(), target(indicator).to_owned());
            let at = *by_place.entry(key).or_insert_with_key(|place| {
                places.push((place.clone(), Vec::new()));
                places.len() - 1
            });
            let known = &mut places[at].1;
            for canary in canaries {
                let next = known.len();
                let index = *by_canary.entry((at, canary.to_owned())).or_insert(next);
                if index == next {
                    known.push((canary.to_owned(), Vec::new()));
                }
                known[index].1.push(rule);
            }
        }
        for ((protocol, target), canaries) in places {
            let (texts, rules): (Vec<String>, Vec<Vec<RuleId>>) = canaries.into_iter().unzip();
            let matcher = CanaryMatcher::new(texts).map_err(|error| BuildError::TooLarge {
                reason: error.to_string(),
            })?;
            self.canaries.push(CanaryGroup {
                protocol,
                target,
                matcher,
                rules,
            });
        }
        Ok(())
    }

    /// The form of the canary that an indicator finds in a message; `None` when it asks for none, an inner `None`
    /// when there is none.
    pub(super) fn canary_of(
        &self,
        document: usize,
        indicator: usize,
        message: &TraceMessage,
    ) -> Option<Option<String>> {
        let wanted = (0..).zip(&self.rules).find(|(_, place)| {
            (place.document as usize, place.indicator as usize) == (document, indicator)
        });
        let (wanted, _) = wanted?;
        let mut groups = self.canaries.iter();
        let group = groups.find(|group| group.rules().any(|rule| rule == wanted))?;
        let mut form = None;
        group.find(message, |rule, at| {
            if rule == wanted {
                form.get_or_insert_with(|| at.form.clone());
            }
        });
        Some(form)
    }
}
