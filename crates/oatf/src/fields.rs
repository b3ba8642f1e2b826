//! The fields of every type, in the order of the specification: one table that the decoder, the
//! canonical writer's tests, the JSON Schema and the reference all read.

use proofhouse_source::format::{Durations, FieldKind as Kind, FieldSpec, TypeSpec};

use crate::model::{
    Category, CorrelationLogic, Direction, ExtractorSource, ExtractorType, Impact, IndicatorMethod,
    LogLevel, Relationship, SemanticIntentClass, SeverityLevel, Status, Tier,
};

pub(crate) const IDENTIFIER: &str = "^[a-z][a-z0-9_]*$";
pub(crate) const MODE: &str = "^[a-z][a-z0-9_]*_(server|client)$";
pub(crate) const ATTACK_ID: &str = "^[A-Z][A-Z0-9-]*-[0-9]{3,}$";
pub(crate) const WILDCARD_PATH: &str = r"^([a-zA-Z0-9_-]+(\[\*\])?(\.[a-zA-Z0-9_-]+(\[\*\])?)*)?$";
pub(crate) const SIMPLE_PATH: &str = r"^([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?$";

const MISSING: &str = "PH-011";
const TEXTS: Kind = Kind::list(&Kind::Text);
const DURATION: Kind = Kind::Duration(Durations::WHOLE_SECONDS);
/// Names bound to simple dot-paths.
const VARIABLES: Kind = Kind::Map {
    names: Some("^[_a-zA-Z][_a-zA-Z0-9]*$"),
    values: &Kind::Matching(SIMPLE_PATH),
};

const fn field(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::optional(key, kind, doc)
}

const fn required(
    key: &'static str,
    kind: Kind,
    code: &'static str,
    doc: &'static str,
) -> FieldSpec {
    FieldSpec::required(key, kind, code, doc)
}

pub(crate) static DOCUMENT: TypeSpec = TypeSpec {
    name: "Document",
    doc: "A threat document: what an attacker does to an AI agent, and how compliance shows.",
    fields: &[
        required(
            "oatf",
            Kind::Choice(&["0.1"]),
            "V-001",
            "Version of the specification.",
        ),
        field(
            "$schema",
            Kind::Text,
            "Address of a JSON Schema, for editors; ignored otherwise.",
        ),
        required(
            "attack",
            Kind::Type(&ATTACK),
            "V-003",
            "The attack; exactly one.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static ATTACK: TypeSpec = TypeSpec {
    name: "Attack",
    doc: "One attack: what it is, what the attacking side does, and how compliance is recognised.",
    fields: &[
        field(
            "id",
            Kind::Matching(ATTACK_ID),
            "Stable identifier, for example ACME-001.",
        ),
        field("name", Kind::Text, "Name for people; Untitled when absent."),
        field(
            "version",
            Kind::Integer { min: 1, max: None },
            "Version of this document, from 1.",
        ),
        field(
            "status",
            Kind::Choice(Status::NAMES),
            "Life of the document; draft when absent.",
        ),
        field(
            "created",
            Kind::Date,
            "Date, or date-time with time zone, of first publication.",
        ),
        field(
            "modified",
            Kind::Date,
            "Date, or date-time with time zone, of the last change.",
        ),
        field("author", Kind::Text, "Author or organisation."),
        field(
            "description",
            Kind::Text,
            "What the attack does, why it matters, what enables it.",
        ),
        field(
            "grace_period",
            DURATION,
            "How long to observe after the last terminal phase.",
        ),
        field(
            "severity",
            Kind::Shape("Severity"),
            "How bad it is: a level, or level and confidence.",
        ),
        field(
            "impact",
            Kind::List {
                of: &Kind::Choice(Impact::NAMES),
                min: 1,
                unique: true,
            },
            "Categories of harm.",
        ),
        field(
            "classification",
            Kind::Type(&CLASSIFICATION),
            "Taxonomy and framework mappings.",
        ),
        field(
            "references",
            Kind::List {
                of: &Kind::Type(&REFERENCE),
                min: 0,
                unique: false,
            },
            "Where to read more.",
        ),
        required(
            "execution",
            Kind::Type(&EXECUTION),
            "V-004",
            "What the attacking side does.",
        ),
        field(
            "indicators",
            Kind::List {
                of: &Kind::Type(&INDICATOR),
                min: 1,
                unique: false,
            },
            "How compliance is recognised; without them the document only simulates.",
        ),
        field(
            "correlation",
            Kind::Type(&CORRELATION),
            "How indicator verdicts combine.",
        ),
    ],
    extensions: true,
    exactly_one: None,
};

pub(crate) static CORRELATION: TypeSpec = TypeSpec {
    name: "Correlation",
    doc: "How indicator verdicts combine.",
    fields: &[field(
        "logic",
        Kind::Choice(CorrelationLogic::NAMES),
        "any: one match is enough (default); all: every indicator must match.",
    )],
    extensions: false,
    exactly_one: None,
};

pub(crate) static SEVERITY: TypeSpec = TypeSpec {
    name: "SeverityObject",
    doc: "A severity level with the author's confidence in it.",
    fields: &[
        required(
            "level",
            Kind::Choice(SeverityLevel::NAMES),
            MISSING,
            "The level.",
        ),
        field(
            "confidence",
            Kind::Integer {
                min: 0,
                max: Some(100),
            },
            "Confidence in the level, 0 to 100; 50 when absent.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static CLASSIFICATION: TypeSpec = TypeSpec {
    name: "Classification",
    doc: "Taxonomy and framework mappings.",
    fields: &[
        field(
            "category",
            Kind::Choice(Category::NAMES),
            "Type of attack, whatever the protocol.",
        ),
        field(
            "mappings",
            Kind::List {
                of: &Kind::Type(&MAPPING),
                min: 0,
                unique: false,
            },
            "Entries of external frameworks.",
        ),
        field("tags", TEXTS, "Free tags, lower case and hyphenated."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static MAPPING: TypeSpec = TypeSpec {
    name: "FrameworkMapping",
    doc: "An entry of an external framework.",
    fields: &[
        required(
            "framework",
            Kind::Matching("."),
            MISSING,
            "Framework: atlas, mitre_attack, owasp_llm, owasp_mcp, owasp_agentic, cwe or any other.",
        ),
        required(
            "id",
            Kind::Text,
            MISSING,
            "Entry, for example AML.T0051 or LLM01.",
        ),
        field("name", Kind::Text, "Name of the entry."),
        field("url", Kind::Text, "Permanent link to the entry."),
        field(
            "relationship",
            Kind::Choice(Relationship::NAMES),
            "primary (default) or related.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static REFERENCE: TypeSpec = TypeSpec {
    name: "Reference",
    doc: "Where to read more.",
    fields: &[
        required("url", Kind::Text, MISSING, "Address."),
        field("title", Kind::Text, "Title."),
        field("description", Kind::Text, "What is to be found there."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static EXECUTION: TypeSpec = TypeSpec {
    name: "Execution",
    doc: "What the attacking side does, as one state, a sequence of phases, or several actors.",
    fields: &[
        field(
            "mode",
            Kind::Matching(MODE),
            "Posture, for example mcp_server or ag_ui_client.",
        ),
        field(
            "state",
            Kind::Object,
            "Protocol state of a single-phase attack.",
        ),
        field(
            "phases",
            Kind::List {
                of: &Kind::Type(&PHASE),
                min: 1,
                unique: false,
            },
            "Stages of a multi-phase attack, in order.",
        ),
        field(
            "actors",
            Kind::List {
                of: &Kind::Type(&ACTOR),
                min: 1,
                unique: false,
            },
            "Concurrent endpoints of a multi-actor attack.",
        ),
    ],
    extensions: true,
    exactly_one: None,
};

pub(crate) static ACTOR: TypeSpec = TypeSpec {
    name: "Actor",
    doc: "One concurrent endpoint of the attacking side.",
    fields: &[
        required("name", Kind::Matching(IDENTIFIER), "V-031", "Unique name."),
        required(
            "mode",
            Kind::Matching(MODE),
            "V-031",
            "Posture of this actor.",
        ),
        required(
            "phases",
            Kind::List {
                of: &Kind::Type(&PHASE),
                min: 1,
                unique: false,
            },
            "V-031",
            "Stages, in order.",
        ),
    ],
    extensions: true,
    exactly_one: None,
};

pub(crate) static PHASE: TypeSpec = TypeSpec {
    name: "Phase",
    doc: "A stage of the attack.",
    fields: &[
        field(
            "name",
            Kind::Text,
            "Label, unique within the actor; phase-N when absent.",
        ),
        field("description", Kind::Text, "What the phase is for."),
        field(
            "mode",
            Kind::Matching(MODE),
            "Posture, when it is not inherited.",
        ),
        field(
            "state",
            Kind::Object,
            "Protocol state; inherited whole when absent.",
        ),
        field(
            "extractors",
            Kind::List {
                of: &Kind::Type(&EXTRACTOR),
                min: 1,
                unique: false,
            },
            "Values to capture for templates.",
        ),
        field(
            "on_enter",
            Kind::List {
                of: &Kind::Shape("Action"),
                min: 1,
                unique: false,
            },
            "Actions when the phase begins.",
        ),
        field(
            "trigger",
            Kind::Type(&TRIGGER),
            "When to go on; absent on the terminal phase.",
        ),
    ],
    extensions: true,
    exactly_one: None,
};

pub(crate) static SEND: TypeSpec = TypeSpec {
    name: "Send",
    doc: "Sends a protocol message.",
    fields: &[
        required("method", Kind::Text, MISSING, "Protocol method."),
        field("params", Kind::Any, "Parameters, passed through."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static LOG: TypeSpec = TypeSpec {
    name: "Log",
    doc: "Writes a line for the operator.",
    fields: &[
        required("message", Kind::Text, MISSING, "Text; may hold templates."),
        field("level", Kind::Choice(LogLevel::NAMES), "Level."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static EXTRACTOR: TypeSpec = TypeSpec {
    name: "Extractor",
    doc: "Captures a value from traffic for use in templates.",
    fields: &[
        required(
            "name",
            Kind::Matching(IDENTIFIER),
            MISSING,
            "Variable, used as {{name}}.",
        ),
        required(
            "source",
            Kind::Choice(ExtractorSource::NAMES),
            MISSING,
            "Side to read.",
        ),
        required(
            "type",
            Kind::Choice(ExtractorType::NAMES),
            MISSING,
            "How to read it.",
        ),
        required(
            "selector",
            Kind::Text,
            MISSING,
            "JSONPath, or regex with a capture group.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static TRIGGER: TypeSpec = TypeSpec {
    name: "Trigger",
    doc: "When a phase ends: after events, after a time, or whichever comes first.",
    fields: &[
        field(
            "event",
            Kind::Text,
            "Protocol event to wait for, for example tools/call.",
        ),
        field(
            "count",
            Kind::Integer { min: 1, max: None },
            "How many; 1 when absent.",
        ),
        field(
            "match",
            Kind::Shape("MatchPredicate"),
            "What the event must hold.",
        ),
        field("after", DURATION, "When to go on regardless."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static INDICATOR: TypeSpec = TypeSpec {
    name: "Indicator",
    doc: "A pattern of traffic that shows that the agent complied. Exactly one of pattern, expression and semantic.",
    fields: &[
        field(
            "id",
            Kind::Text,
            "Unique identifier; generated when absent.",
        ),
        field(
            "protocol",
            Kind::Matching(IDENTIFIER),
            "Protocol; from execution.mode when absent.",
        ),
        field(
            "surface",
            Kind::Text,
            "Protocol operation, for example tools/call.",
        ),
        required(
            "target",
            Kind::Matching(WILDCARD_PATH),
            MISSING,
            "Wildcard dot-path into the message; empty for the whole.",
        ),
        field(
            "actor",
            Kind::Matching(IDENTIFIER),
            "Only this actor's traffic.",
        ),
        field(
            "direction",
            Kind::Choice(Direction::NAMES),
            "Only this side.",
        ),
        field(
            "method",
            Kind::Choice(IndicatorMethod::NAMES),
            "Method, when written out.",
        ),
        field(
            "description",
            Kind::Text,
            "What is detected and why it matters.",
        ),
        field(
            "pattern",
            Kind::Shape("PatternMatch"),
            "Detection by condition.",
        ),
        field(
            "expression",
            Kind::Type(&EXPRESSION),
            "Detection by CEL expression.",
        ),
        field("semantic", Kind::Type(&SEMANTIC), "Detection by meaning."),
        field(
            "confidence",
            Kind::Integer {
                min: 0,
                max: Some(100),
            },
            "Confidence of this indicator, 0 to 100.",
        ),
        field(
            "tier",
            Kind::Choice(Tier::NAMES),
            "How far the attack got when this matches.",
        ),
        field(
            "severity",
            Kind::Choice(SeverityLevel::NAMES),
            "Severity of this indicator.",
        ),
        field("false_positives", TEXTS, "Known innocent matches."),
    ],
    extensions: true,
    exactly_one: None,
};

pub(crate) static EXPRESSION: TypeSpec = TypeSpec {
    name: "ExpressionMatch",
    doc: "Detection by a CEL expression; the message is bound to `message`.",
    fields: &[
        required("cel", Kind::Text, MISSING, "Boolean CEL expression."),
        field(
            "variables",
            VARIABLES,
            "Names bound to simple dot-paths into the message.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static SEMANTIC: TypeSpec = TypeSpec {
    name: "SemanticMatch",
    doc: "Detection by meaning; needs an evaluator.",
    fields: &[
        field(
            "target",
            Kind::Matching(WILDCARD_PATH),
            "Overrides the indicator's target.",
        ),
        required("intent", Kind::Text, MISSING, "What the text must mean."),
        field(
            "intent_class",
            Kind::Choice(SemanticIntentClass::NAMES),
            "Hint for classifiers.",
        ),
        field(
            "threshold",
            Kind::Number { min: 0.0, max: 1.0 },
            "Least score that matches; 0.7 when absent.",
        ),
        field(
            "examples",
            Kind::Type(&EXAMPLES),
            "Texts to calibrate with.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(crate) static EXAMPLES: TypeSpec = TypeSpec {
    name: "SemanticExamples",
    doc: "Texts that should and should not match; at least one of the two lists.",
    fields: &[
        field("positive", TEXTS, "Should match."),
        field("negative", TEXTS, "Should not match."),
    ],
    extensions: false,
    exactly_one: None,
};

/// Every type below the document, in the order of the schema and the reference.
pub(crate) static ALL: [&TypeSpec; 17] = [
    &ATTACK,
    &CORRELATION,
    &SEVERITY,
    &CLASSIFICATION,
    &MAPPING,
    &REFERENCE,
    &EXECUTION,
    &ACTOR,
    &PHASE,
    &SEND,
    &LOG,
    &EXTRACTOR,
    &TRIGGER,
    &INDICATOR,
    &EXPRESSION,
    &SEMANTIC,
    &EXAMPLES,
];
