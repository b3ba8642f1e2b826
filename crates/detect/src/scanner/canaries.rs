//! The key `x-proofhouse: {canary: …}` of an indicator: it also matches where a canary is found at its target,
//! in whatever form.

use std::collections::HashMap;

use proofhouse_oatf::{
    Attack, Document, Indicator, Protocol, Span, resolve_wildcard_path, to_value,
};
use serde_json::Value;

use super::aside::{self, Aside};
use super::evidence::locate;
use super::group::RuleId;
use super::{BuildError, Scanner};
use crate::canary::{CanaryError, CanaryHit, CanaryMatcher, CanaryPiece, check};
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

/// Where indicators look: the protocol, if one, and what of a message.
type Place = (Option<Protocol>, CanaryPlace);

/// What of a message is looked through.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CanaryPlace {
    Target(String),
    /// What no target leads to, and where nobody has a reason to put a secret.
    Aside,
}

/// A rule that asks for a canary, and the keys under which its document itself has the canary.
#[derive(Debug)]
struct AskingRule {
    rule: RuleId,
    planted_under: Vec<String>,
}

/// A canary and the rules that ask for it.
type Asked = (String, Vec<AskingRule>);

/// The canaries that indicators ask for at the same place, compiled together.
#[derive(Debug)]
pub(super) struct CanaryGroup {
    /// The protocol; any where there is none.
    protocol: Option<Protocol>,
    place: CanaryPlace,
    matcher: CanaryMatcher,
    /// Per canary, the rules that ask for it.
    rules: Vec<Vec<AskingRule>>,
}

/// A canary in a message.
pub(super) struct CanaryAt {
    /// The place that leads to the value, and the place below it.
    pub(super) root: String,
    pub(super) path: String,
    pub(super) text: String,
    /// The form in words.
    pub(super) form: String,
}

/// A part of a canary, perhaps, in a message.
pub(super) struct PieceAt {
    pub(super) piece: CanaryPiece,
    pub(super) root: String,
    pub(super) path: String,
    pub(super) text: String,
}

impl CanaryGroup {
    /// Whether a rule of the group may look at messages of a protocol.
    pub(super) fn is_of(&self, protocol: &Protocol) -> bool {
        self.protocol.as_ref().is_none_or(|own| own == protocol)
    }

    /// Whether it looks where no target leads.
    pub(super) fn is_aside(&self) -> bool {
        self.place == CanaryPlace::Aside
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = RuleId> {
        self.rules.iter().flatten().map(|asking| asking.rule)
    }

    /// Whether a rule asks for a canary, by its number.
    pub(super) fn asks(&self, canary: usize, rule: RuleId) -> bool {
        self.rules[canary].iter().any(|asking| asking.rule == rule)
    }

    pub(super) fn matcher(&self) -> &CanaryMatcher {
        &self.matcher
    }

    /// Calls `found` for every rule whose canary is in the message; with some more than once.
    pub(super) fn find(&self, message: &TraceMessage, mut found: impl FnMut(RuleId, &CanaryAt)) {
        match &self.place {
            CanaryPlace::Target(target) => {
                let values = resolve_wildcard_path(target, &message.content);
                for hit in self.matcher.find_in_values(&values) {
                    let root = locate(target, &message.content, values[hit.value]);
                    let (canary, at) = self.found_at(hit, root);
                    for asking in &self.rules[canary] {
                        found(asking.rule, &at);
                    }
                }
            }
            CanaryPlace::Aside => {
                for Aside { path, value } in aside::values(message) {
                    for hit in self.matcher.find(&value) {
                        let (canary, at) = self.found_at(hit, path.to_owned());
                        let asking = self.rules[canary].iter();
                        let is_odd = |asking: &&AskingRule| {
                            !asking.planted_under.iter().any(|key| key == path)
                        };
                        for asking in asking.filter(is_odd) {
                            found(asking.rule, &at);
                        }
                    }
                }
            }
        }
    }

    fn found_at(&self, hit: CanaryHit, root: String) -> (usize, CanaryAt) {
        let at = CanaryAt {
            root,
            path: hit.path,
            text: hit.text,
            form: hit.form.describe(&self.matcher.canaries()[hit.canary]),
        };
        (hit.canary, at)
    }

    /// What a message has of canaries that may be in pieces.
    pub(super) fn pieces(&self, message: &TraceMessage) -> Vec<PieceAt> {
        let CanaryPlace::Target(target) = &self.place else {
            return Vec::new();
        };
        let values = resolve_wildcard_path(target, &message.content);
        let pieces = self.matcher.pieces(&values).into_iter();
        let placed = pieces.map(|placed| PieceAt {
            root: locate(target, &message.content, values[placed.value]),
            piece: placed.piece,
            path: placed.path,
            text: placed.text.to_owned(),
        });
        placed.collect()
    }

    pub(super) fn memory(&self) -> usize {
        self.matcher.memory() + size_of::<AskingRule>() * self.rules().count()
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
            let protocol = indicator.protocol.clone();
            let own = CanaryPlace::Target(target(indicator).to_owned());
            let mut looks = vec![((protocol.clone(), own), false)];
            if aside::is_looked_at(&source.document, indicator) {
                looks.push(((protocol, CanaryPlace::Aside), true));
            }
            for (place, is_aside) in looks {
                let at = *by_place.entry(place).or_insert_with_key(|place| {
                    places.push((place.clone(), Vec::new()));
                    places.len() - 1
                });
                let known = &mut places[at].1;
                for canary in &canaries {
                    let next = known.len();
                    let index = *by_canary.entry((at, (*canary).to_owned())).or_insert(next);
                    if index == next {
                        known.push(((*canary).to_owned(), Vec::new()));
                    }
                    let planted_under = if is_aside {
                        aside::planted_under(&to_value(&source.document), canary)
                    } else {
                        Vec::new()
                    };
                    known[index].1.push(AskingRule {
                        rule,
                        planted_under,
                    });
                }
            }
        }
        for ((protocol, place), canaries) in places {
            let (texts, rules): (Vec<String>, Vec<Vec<AskingRule>>) = canaries.into_iter().unzip();
            let matcher = CanaryMatcher::new(texts).map_err(|error| BuildError::TooLarge {
                reason: error.to_string(),
            })?;
            self.canaries.push(CanaryGroup {
                protocol,
                place,
                matcher,
                rules,
            });
        }
        Ok(())
    }

    /// The rule of an indicator.
    pub(super) fn rule_of(&self, document: usize, indicator: usize) -> Option<RuleId> {
        let mut rules = (0..).zip(&self.rules);
        let found = rules.find(|(_, place)| {
            (place.document as usize, place.indicator as usize) == (document, indicator)
        });
        found.map(|(rule, _)| rule)
    }

    /// The form of the canary that a rule finds in a message; `None` when it asks for none, an inner `None`
    /// when there is none. With `aside_only`, what its target leads to is not looked at.
    pub(super) fn canary_of(
        &self,
        wanted: RuleId,
        message: &TraceMessage,
        aside_only: bool,
    ) -> Option<Option<String>> {
        let asks = |group: &&CanaryGroup| {
            group.rules().any(|rule| rule == wanted) && (group.is_aside() || !aside_only)
        };
        let groups: Vec<&CanaryGroup> = self.canaries.iter().filter(asks).collect();
        if groups.is_empty() {
            return None;
        }
        let mut form = None;
        for group in groups {
            group.find(message, |rule, at| {
                if rule == wanted {
                    form.get_or_insert_with(|| at.form.clone());
                }
            });
        }
        Some(form)
    }
}
