//! Which indicators look at which messages: worked out once per kind of message.

use std::sync::{Arc, RwLock};

use proofhouse_oatf::{Condition, Direction, Indicator, Protocol};

use super::Scanner;
use super::group::{ConditionId, RuleId};
use crate::trace::{TraceMessage, UNPARSED};

/// How many kinds of messages are remembered; a hostile trace may hold a new one in every line.
const MAX_CLASSES: usize = 4096;

/// What the filters of an indicator look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ClassKey {
    protocol: Protocol,
    operation: String,
    actor: Option<String>,
    direction: Option<Direction>,
}

/// The same of a message, borrowed, so that looking it up copies nothing.
#[derive(PartialEq, Eq, Hash)]
struct ClassOf<'a> {
    protocol: &'a Protocol,
    operation: &'a str,
    actor: Option<&'a str>,
    direction: Option<Direction>,
}

impl hashbrown::Equivalent<ClassKey> for ClassOf<'_> {
    fn equivalent(&self, key: &ClassKey) -> bool {
        self.operation == key.operation
            && *self.protocol == key.protocol
            && self.actor == key.actor.as_deref()
            && self.direction == key.direction
    }
}

impl ClassOf<'_> {
    fn to_key(&self) -> ClassKey {
        ClassKey {
            protocol: self.protocol.clone(),
            operation: self.operation.to_owned(),
            actor: self.actor.map(str::to_owned),
            direction: self.direction,
        }
    }
}

/// Classes by the kind of message.
type Classes = hashbrown::HashMap<ClassKey, Arc<MessageClass>>;

/// The classes that one session has met.
#[derive(Debug, Default)]
pub(super) struct KnownClasses(Classes);

/// The indicators that look at one kind of message.
#[derive(Debug, Default)]
pub(super) struct MessageClass {
    /// One bit per rule.
    applies: Vec<u64>,
    /// Groups with at least one such rule, and their conditions that look at every value.
    pub(super) groups: Vec<GroupClass>,
    pub(super) expressions: Vec<RuleId>,
    pub(super) semantics: Vec<RuleId>,
    /// Groups of canaries that such a rule asks for.
    pub(super) canaries: Vec<u32>,
    /// Rules that ask for something which a message of this kind does not say.
    pub(super) unknown: Vec<(RuleId, UnknownFact)>,
    /// Groups of canaries that are looked for where no target leads, with the rules that ask: whatever their surface.
    pub(super) asides: Vec<(u32, Vec<RuleId>)>,
}

#[derive(Debug)]
pub(super) struct GroupClass {
    pub(super) group: u32,
    pub(super) always: Vec<ConditionId>,
    pub(super) existence: Vec<(ConditionId, bool)>,
}

impl MessageClass {
    pub(super) fn applies(&self, rule: RuleId) -> bool {
        self.applies[rule as usize / 64] & (1 << (rule % 64)) != 0
    }
}

/// The kinds of messages seen so far.
#[derive(Debug, Default)]
pub(super) struct ClassCache {
    classes: RwLock<Classes>,
}

/// Why an indicator does not look at a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The message is of another protocol.
    Protocol,
    /// The message is of another operation.
    Surface,
    /// The message is another actor's.
    Actor,
    /// The message is of the other side.
    Direction,
}

impl Dropped {
    /// Every filter, in the order they are asked.
    pub const ALL: &'static [Self] = &[Self::Protocol, Self::Surface, Self::Actor, Self::Direction];

    /// The filter as it is written in a document.
    #[must_use]
    pub fn filter(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Surface => "surface",
            Self::Actor => "actor",
            Self::Direction => "direction",
        }
    }
}

/// What a message does not say though an indicator asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownFact {
    /// Who sent it.
    Direction,
    /// Whose traffic it is.
    Actor,
}

impl UnknownFact {
    /// The fact as it is written in a document.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direction => "direction",
            Self::Actor => "actor",
        }
    }
}

/// What a message does not say, if an indicator drops it for that alone.
fn unknown_to(indicator: &Indicator, message: &TraceMessage) -> Option<UnknownFact> {
    let mut known = message.clone_place();
    let mut unknown = None;
    if message.actor.is_none() && indicator.actor.is_some() {
        known.actor.clone_from(&indicator.actor);
        unknown = Some(UnknownFact::Actor);
    }
    if message.direction.is_none() && indicator.direction.is_some() {
        known.direction = indicator.direction;
        unknown = Some(UnknownFact::Direction);
    }
    unknown.filter(|_| dropped_by(indicator, &known).is_none())
}

/// The first filter of `indicator` that drops `message`, if one does.
///
/// A message whose actor or direction is not known is not dropped for it by documents that do not
/// ask; by those that do, it is.
#[must_use]
pub fn dropped_by(indicator: &Indicator, message: &TraceMessage) -> Option<Dropped> {
    let protocol = indicator.protocol.as_ref();
    if protocol.is_some_and(|protocol| *protocol != message.protocol) {
        return Some(Dropped::Protocol);
    }
    let surface = indicator.surface.as_ref();
    let is_other = if message.operation == UNPARSED {
        // It may have been a message of any surface.
        !judges_text(indicator)
    } else {
        surface.is_some_and(|surface| surface.as_str() != message.operation)
    };
    if is_other {
        return Some(Dropped::Surface);
    }
    if indicator.actor.is_some() && indicator.actor != message.actor {
        return Some(Dropped::Actor);
    }
    if indicator.direction.is_some() && indicator.direction != message.direction {
        return Some(Dropped::Direction);
    }
    None
}

/// Whether an indicator is about other traffic than a message is of, whatever its surface.
pub(super) fn is_of_others(indicator: &Indicator, message: &TraceMessage) -> bool {
    let protocol = indicator.protocol.as_ref();
    protocol.is_some_and(|protocol| *protocol != message.protocol)
        || (indicator.actor.is_some() && indicator.actor != message.actor)
        || (indicator.direction.is_some() && indicator.direction != message.direction)
}

/// Whether an indicator can be judged on a text that is no message: it looks at the whole, and at what stands in it.
fn judges_text(indicator: &Indicator) -> bool {
    let is_whole =
        |target: &Option<String>| target.as_ref().unwrap_or(&indicator.target).is_empty();
    let pattern = indicator.pattern.as_ref().is_some_and(|pattern| {
        let asks_existence = match &pattern.condition {
            Some(Condition::Operators(operators)) => operators.exists.is_some(),
            Some(Condition::Equals(_)) | None => false,
        };
        is_whole(&pattern.target) && !asks_existence
    });
    let semantic = indicator.semantic.as_ref();
    pattern || semantic.is_some_and(|semantic| is_whole(&semantic.target))
}

/// Whether every indicator that could match `message` had it been parsed can be judged on its text, so that nothing is
/// lost.
///
/// ```
/// use proofhouse_detect::{TraceMessage, UNPARSED, text_is_enough};
/// use serde_json::json;
///
/// let enough = |target: &str| {
///     let text = format!(r#"{{"oatf": "0.1", "attack": {{"execution": {{"mode": "mcp_server", "state": {{"tools": []}}}},
///         "indicators": [{{"surface": "tools/call", "target": "{target}", "pattern": {{"contains": "x"}}}}]}}}}"#);
///     let document = proofhouse_oatf::load(&text).unwrap().document;
///     text_is_enough(document.attack.indicators(), &TraceMessage::new("mcp", UNPARSED, json!("<html>")))
/// };
/// assert!(enough("") && !enough("arguments"));
/// ```
#[must_use]
pub fn text_is_enough(indicators: &[Indicator], message: &TraceMessage) -> bool {
    indicators.iter().all(|indicator| {
        judges_text(indicator)
            || matches!(
                dropped_by(indicator, message),
                Some(Dropped::Protocol | Dropped::Actor | Dropped::Direction)
            )
            || indicator.actor.is_some() && indicator.actor != message.actor
            || indicator.direction.is_some() && indicator.direction != message.direction
    })
}

impl Scanner {
    /// The class of a message, from memory where it was seen before.
    pub(super) fn class_of(
        &self,
        message: &TraceMessage,
        known: &mut KnownClasses,
    ) -> Arc<MessageClass> {
        let kind = ClassOf {
            protocol: &message.protocol,
            operation: &message.operation,
            actor: message.actor.as_deref(),
            direction: message.direction,
        };
        if let Some(class) = known.0.get(&kind) {
            return Arc::clone(class);
        }
        let class = self.shared_class_of(message, &kind);
        if known.0.len() < MAX_CLASSES {
            known.0.insert(kind.to_key(), Arc::clone(&class));
        }
        class
    }

    /// The same, from what all sessions share.
    fn shared_class_of(&self, message: &TraceMessage, kind: &ClassOf<'_>) -> Arc<MessageClass> {
        if let Ok(classes) = self.classes.classes.read()
            && let Some(class) = classes.get(kind)
        {
            return Arc::clone(class);
        }
        let class = Arc::new(self.make_class(message));
        if let Ok(mut classes) = self.classes.classes.write()
            && classes.len() < MAX_CLASSES
        {
            classes.insert(kind.to_key(), Arc::clone(&class));
        }
        class
    }

    /// Whether any rule with this condition looks at messages of the class.
    fn is_asked(&self, condition: ConditionId, class: &MessageClass) -> bool {
        let rules = &self.conditions[condition as usize];
        rules.iter().any(|rule| class.applies(*rule))
    }

    fn make_class(&self, message: &TraceMessage) -> MessageClass {
        let mut class = MessageClass {
            applies: vec![0; self.rules.len().div_ceil(64)],
            ..MessageClass::default()
        };
        let applies = |rule: RuleId| dropped_by(self.indicator(rule), message).is_none();
        for (index, group) in self.groups.iter().enumerate() {
            let protocol = group.protocol.as_ref();
            if protocol.is_some_and(|protocol| *protocol != message.protocol) {
                continue;
            }
            let mut any = false;
            for rule in group.rules.iter().copied().filter(|rule| applies(*rule)) {
                class.applies[rule as usize / 64] |= 1 << (rule % 64);
                any = true;
            }
            if any {
                let always = group
                    .always
                    .iter()
                    .copied()
                    .filter(|id| self.is_asked(*id, &class));
                let existence = group
                    .existence
                    .iter()
                    .copied()
                    .filter(|(id, _)| self.is_asked(*id, &class));
                class.groups.push(GroupClass {
                    group: u32::try_from(index).unwrap_or(u32::MAX),
                    always: always.collect(),
                    existence: existence.collect(),
                });
            }
        }
        for (index, group) in self.canaries.iter().enumerate() {
            if !group.is_of(&message.protocol) {
                continue;
            }
            if group.is_aside() {
                let ours = |rule: &RuleId| !is_of_others(self.indicator(*rule), message);
                let rules: Vec<RuleId> = group.rules().filter(ours).collect();
                if !rules.is_empty() {
                    let index = u32::try_from(index).unwrap_or(u32::MAX);
                    class.asides.push((index, rules));
                }
                continue;
            }
            let mut any = false;
            for rule in group.rules().filter(|rule| applies(*rule)) {
                class.applies[rule as usize / 64] |= 1 << (rule % 64);
                any = true;
            }
            if any {
                class
                    .canaries
                    .push(u32::try_from(index).unwrap_or(u32::MAX));
            }
        }
        if message.actor.is_none() || message.direction.is_none() {
            let rules = (0..).take(self.rules.len());
            let unknown =
                rules.filter_map(|rule| Some((rule, unknown_to(self.indicator(rule), message)?)));
            class.unknown = unknown.collect();
        }
        class.expressions = self
            .expressions
            .iter()
            .copied()
            .filter(|r| applies(*r))
            .collect();
        class.semantics = self
            .semantics
            .iter()
            .copied()
            .filter(|r| applies(*r))
            .collect();
        class
    }
}
