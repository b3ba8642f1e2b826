//! `serialize`: the canonical YAML of a document.

use proofhouse_source::to_yaml;
use serde_json::{Map, Value};

use crate::model::{
    Action, ActionKind, Actor, Attack, Classification, Correlation, Document, Execution,
    ExpressionMatch, Extensions, Extractor, FrameworkMapping, Indicator, Mode, PatternMatch, Phase,
    Protocol, Reference, ResponseEntry, SemanticExamples, SemanticMatch, Severity, Surface,
    SynthesizeBlock, Trigger, predicate_value,
};
use crate::normalize;
use crate::primitives::{MAX_VALUE_DEPTH, nests_deeper, shallow_copy};

/// Writes the canonical YAML of a document: normalized, `oatf` first, fields in the order of the
/// specification, block style, `x-` fields kept.
///
/// ```
/// let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {tools: []}}\n";
/// let document = proofhouse_oatf::parse(text).unwrap();
/// let canonical = proofhouse_oatf::serialize(&document);
/// assert!(canonical.starts_with("oatf: \"0.1\"\nattack:\n  name: Untitled\n"));
/// let again = proofhouse_oatf::parse(&canonical).unwrap();
/// assert_eq!(proofhouse_oatf::serialize(&again), canonical);
/// ```
///
/// A document that holds a value nested deeper than 512 levels, which [`validate`](crate::validate) refuses (PH-006), is
/// written as it stands, and as [`to_value`] gives it.
#[must_use]
pub fn serialize(document: &Document) -> String {
    let is_deep = |(_, value): (_, &Value)| nests_deeper(value, MAX_VALUE_DEPTH);
    if document.values().into_iter().any(is_deep) {
        return to_yaml(&document_value(document));
    }
    to_yaml(&document_value(&normalize(document.clone())))
}

/// The document as a value, as it stands: not normalized, short forms kept. What is nested deeper than 512 levels in a
/// value of it is null.
///
/// ```
/// let text = "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    state: {}\n";
/// let document = proofhouse_oatf::parse(text).unwrap();
/// assert_eq!(proofhouse_oatf::to_value(&document)["attack"]["execution"]["mode"], "mcp_server");
/// ```
#[must_use]
pub fn to_value(document: &Document) -> Value {
    document_value(document)
}

/// Collects the fields that are present, in the order they are added.
#[derive(Default)]
struct FieldWriter(Map<String, Value>);

impl FieldWriter {
    fn put(mut self, key: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(key.to_owned(), value.into());
        }
        self
    }

    fn put_list<T>(self, key: &str, list: Option<&Vec<T>>, write: impl Fn(&T) -> Value) -> Self {
        self.put(
            key,
            list.map(|list| list.iter().map(write).collect::<Vec<Value>>()),
        )
    }

    fn extend(mut self, extensions: &Extensions) -> Self {
        for (key, value) in extensions {
            self.0.insert(key.clone(), shallow_copy(value));
        }
        self
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

fn text<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

pub(crate) fn document_value(document: &Document) -> Value {
    FieldWriter::default()
        .put("oatf", Some(document.oatf.as_str()))
        .put("$schema", document.schema.as_deref())
        .put("attack", Some(attack_value(&document.attack)))
        .done()
}

pub(crate) fn attack_value(attack: &Attack) -> Value {
    FieldWriter::default()
        .put("id", attack.id.as_deref())
        .put("name", attack.name.as_deref())
        .put("version", attack.version)
        .put("status", text(attack.status))
        .put("created", attack.created.as_ref().map(|date| date.as_str()))
        .put(
            "modified",
            attack.modified.as_ref().map(|date| date.as_str()),
        )
        .put("author", attack.author.as_deref())
        .put("description", attack.description.as_deref())
        .put(
            "grace_period",
            attack.grace_period.as_ref().map(|grace| grace.as_str()),
        )
        .put("severity", attack.severity.as_ref().map(severity_value))
        .put_list("impact", attack.impact.as_ref(), |impact| {
            impact.as_str().into()
        })
        .put(
            "classification",
            attack.classification.as_ref().map(classification_value),
        )
        .put_list("references", attack.references.as_ref(), reference_value)
        .put("execution", Some(execution_value(&attack.execution)))
        .put_list("indicators", attack.indicators.as_ref(), indicator_value)
        .put(
            "correlation",
            attack.correlation.as_ref().map(correlation_value),
        )
        .extend(&attack.extensions)
        .done()
}

pub(crate) fn correlation_value(correlation: &Correlation) -> Value {
    FieldWriter::default()
        .put("logic", text(correlation.logic))
        .done()
}

pub(crate) fn severity_value(severity: &Severity) -> Value {
    FieldWriter::default()
        .put("level", Some(severity.level.as_str()))
        .put("confidence", severity.confidence)
        .done()
}

pub(crate) fn classification_value(classification: &Classification) -> Value {
    FieldWriter::default()
        .put("category", text(classification.category))
        .put_list("mappings", classification.mappings.as_ref(), mapping_value)
        .put("tags", classification.tags.clone())
        .done()
}

pub(crate) fn mapping_value(mapping: &FrameworkMapping) -> Value {
    FieldWriter::default()
        .put("framework", Some(mapping.framework.as_str()))
        .put("id", Some(mapping.id.as_str()))
        .put("name", mapping.name.as_deref())
        .put("url", mapping.url.as_deref())
        .put("relationship", text(mapping.relationship))
        .done()
}

pub(crate) fn reference_value(reference: &Reference) -> Value {
    FieldWriter::default()
        .put("url", Some(reference.url.as_str()))
        .put("title", reference.title.as_deref())
        .put("description", reference.description.as_deref())
        .done()
}

pub(crate) fn execution_value(execution: &Execution) -> Value {
    FieldWriter::default()
        .put("mode", execution.mode.as_ref().map(Mode::as_str))
        .put("state", execution.state.as_ref().map(shallow_copy))
        .put_list("phases", execution.phases.as_ref(), phase_value)
        .put_list("actors", execution.actors.as_ref(), actor_value)
        .extend(&execution.extensions)
        .done()
}

pub(crate) fn actor_value(actor: &Actor) -> Value {
    FieldWriter::default()
        .put("name", Some(actor.name.as_str()))
        .put("mode", Some(actor.mode.as_str()))
        .put_list("phases", Some(&actor.phases), phase_value)
        .extend(&actor.extensions)
        .done()
}

pub(crate) fn phase_value(phase: &Phase) -> Value {
    FieldWriter::default()
        .put("name", phase.name.as_deref())
        .put("description", phase.description.as_deref())
        .put("mode", phase.mode.as_ref().map(Mode::as_str))
        .put("state", phase.state.as_ref().map(shallow_copy))
        .put_list("extractors", phase.extractors.as_ref(), extractor_value)
        .put_list("on_enter", phase.on_enter.as_ref(), action_value)
        .put("trigger", phase.trigger.as_ref().map(trigger_value))
        .extend(&phase.extensions)
        .done()
}

pub(crate) fn extractor_value(extractor: &Extractor) -> Value {
    FieldWriter::default()
        .put("name", Some(extractor.name.as_str()))
        .put("source", Some(extractor.source.as_str()))
        .put("type", Some(extractor.r#type.as_str()))
        .put("selector", Some(extractor.selector.as_str()))
        .done()
}

pub(crate) fn action_value(action: &Action) -> Value {
    let mut fields = FieldWriter::default();
    for kind in &action.kinds {
        let value = match kind {
            ActionKind::Send { method, params } => FieldWriter::default()
                .put("method", Some(method.as_str()))
                .put("params", params.as_ref().map(shallow_copy))
                .done(),
            ActionKind::Log { message, level } => FieldWriter::default()
                .put("message", Some(message.as_str()))
                .put("level", text(*level))
                .done(),
            ActionKind::Binding { value, .. } => shallow_copy(value),
        };
        fields = fields.put(kind.key(), Some(value));
    }
    fields.extend(&action.extensions).done()
}

pub(crate) fn trigger_value(trigger: &Trigger) -> Value {
    FieldWriter::default()
        .put("event", trigger.event.as_deref())
        .put("count", trigger.count)
        .put("match", trigger.r#match.as_ref().map(predicate_value))
        .put("after", trigger.after.as_ref().map(|after| after.as_str()))
        .done()
}

pub(crate) fn response_entry_value(entry: &ResponseEntry) -> Value {
    FieldWriter::default()
        .put("when", entry.when.as_ref().map(predicate_value))
        .put("content", entry.content.as_ref().map(shallow_copy))
        .put(
            "synthesize",
            entry.synthesize.as_ref().map(synthesize_value),
        )
        .extend(&entry.fields)
        .done()
}

pub(crate) fn synthesize_value(block: &SynthesizeBlock) -> Value {
    FieldWriter::default()
        .put("prompt", block.prompt.as_deref())
        .done()
}

pub(crate) fn indicator_value(indicator: &Indicator) -> Value {
    FieldWriter::default()
        .put("id", indicator.id.as_deref())
        .put(
            "protocol",
            indicator.protocol.as_ref().map(Protocol::as_str),
        )
        .put("surface", indicator.surface.as_ref().map(Surface::as_str))
        .put("target", Some(indicator.target.as_str()))
        .put("actor", indicator.actor.as_deref())
        .put("direction", text(indicator.direction))
        .put("method", text(indicator.method))
        .put("description", indicator.description.as_deref())
        .put("pattern", indicator.pattern.as_ref().map(pattern_value))
        .put(
            "expression",
            indicator.expression.as_ref().map(expression_value),
        )
        .put("semantic", indicator.semantic.as_ref().map(semantic_value))
        .put("confidence", indicator.confidence)
        .put("tier", text(indicator.tier))
        .put("severity", text(indicator.severity))
        .put("false_positives", indicator.false_positives.clone())
        .extend(&indicator.extensions)
        .done()
}

pub(crate) fn pattern_value(pattern: &PatternMatch) -> Value {
    let fields = FieldWriter::default().put("target", pattern.target.as_deref());
    let condition = pattern
        .condition
        .as_ref()
        .map(|condition| condition.to_value());
    match condition {
        Some(Value::Object(operators)) if pattern.shorthand => fields.extend(&operators).done(),
        condition => fields.put("condition", condition).done(),
    }
}

pub(crate) fn expression_value(expression: &ExpressionMatch) -> Value {
    let variables = expression.variables.as_ref().map(|variables| {
        variables
            .iter()
            .map(|(name, path)| (name.clone(), Value::from(path.as_str())))
            .collect::<Map<_, _>>()
    });
    FieldWriter::default()
        .put("cel", Some(expression.cel.as_str()))
        .put("variables", variables)
        .done()
}

pub(crate) fn semantic_value(semantic: &SemanticMatch) -> Value {
    FieldWriter::default()
        .put("target", semantic.target.as_deref())
        .put("intent", Some(semantic.intent.as_str()))
        .put("intent_class", text(semantic.intent_class))
        .put("threshold", semantic.threshold)
        .put("examples", semantic.examples.as_ref().map(examples_value))
        .done()
}

pub(crate) fn examples_value(examples: &SemanticExamples) -> Value {
    FieldWriter::default()
        .put("positive", examples.positive.clone())
        .put("negative", examples.negative.clone())
        .done()
}
