//! The keys of a policy: one table that the reader, the JSON Schema and the reference share.

use proofhouse_source::format::schema::SchemaMaker;
use proofhouse_source::format::{
    Durations, FieldKind as Kind, FieldSpec, SchemaStyle, TypeSpec, reference as page,
};
use serde_json::{Value, json};

use super::{FIRST_USE, LABELS, ON_CHANGE, ON_ERROR, RULE_DECISIONS, RULE_SCOPES};

const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::required(key, kind, "GP-004", doc)
}

pub(super) static POLICY: TypeSpec = TypeSpec {
    name: "Policy",
    doc: "What the guard allows between an agent and its servers.",
    fields: &[
        needed("policy", Kind::Exactly(1), "The version of the format."),
        FieldSpec::optional("name", Kind::SomeText, "The name of the policy."),
        FieldSpec::optional(
            "pins",
            Kind::Type(&PINS),
            "What happens when definitions change.",
        ),
        FieldSpec::optional(
            "tools",
            Kind::list(&Kind::Type(&TOOL)),
            "Labels for tools: what they return and do. The first entry that matches a tool applies.",
        ),
        FieldSpec::optional("taint", Kind::Type(&TAINT), "How values are tracked."),
        FieldSpec::optional(
            "rules",
            Kind::list(&Kind::Type(&RULE)),
            "Rules, in order. The first match decides; `log` records a finding and continues.",
        ),
        FieldSpec::optional("asks", Kind::Type(&ASKS), "How people are asked."),
        FieldSpec::optional(
            "indicators",
            Kind::Type(&INDICATORS),
            "Threat documents that watch the session.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static PINS: TypeSpec = TypeSpec {
    name: "PinPolicy",
    doc: "What happens when a server's definitions are new, differ from the lock, or look suspicious.",
    fields: &[
        FieldSpec::optional(
            "first_use",
            Kind::Choice(FIRST_USE),
            "Definitions of a server that the lock does not have: `record` writes them into the lock, `block` withholds them until `proofhouse guard approve`. Default: record.",
        ),
        FieldSpec::optional(
            "on_change",
            Kind::Choice(ON_CHANGE),
            "Definitions that differ from the lock: `block` withholds them, `ask` asks a person and withholds them without a yes, `log` lets them pass. Default: block.",
        ),
        FieldSpec::optional(
            "on_hidden",
            Kind::Choice(ON_CHANGE),
            "Definitions with invisible or bidirectional characters, names with control characters or with white space at their ends, or names listed twice. Default: block.",
        ),
        FieldSpec::optional(
            "on_lookalike",
            Kind::Choice(ON_CHANGE),
            "Names that look like others, or mix scripts. Default: block.",
        ),
        FieldSpec::optional(
            "on_shadow",
            Kind::Choice(ON_CHANGE),
            "Names that another server in the lock has, too. Default: log.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static TOOL: TypeSpec = TypeSpec {
    name: "ToolLabel",
    doc: "Labels for some tools: what they return and do.",
    fields: &[
        needed(
            "tool",
            Kind::OneOrMore(&Kind::SomeText),
            "Tool names; `*` matches any text.",
        ),
        FieldSpec::optional(
            "server",
            Kind::SomeText,
            "The server's name; `*` matches any text. Default: every server.",
        ),
        FieldSpec::optional(
            "returns",
            Kind::Choice(LABELS),
            "What its results are: `untrusted` (others can write into them), `secret`, or `trusted`. Without it, results are not tracked.",
        ),
        FieldSpec::optional(
            "free_text",
            Kind::list(&Kind::SomeText),
            "The fields of its structured results (JSON) that others write freely, such as `body`; `*` matches any text. `returns` then applies for these fields and for every value that reads like text; other values, such as ids and senders, are trusted as a whole. `[]`: only values that read like text. Default: every field.",
        ),
        FieldSpec::optional(
            "effects",
            Kind::list(&Kind::SomeText),
            "Effects of a call, in your own words, such as `send`, `pay` or `delete`. A tool with an effect is a sink.",
        ),
        FieldSpec::optional(
            "decides",
            Kind::list(&Kind::SomeText),
            "The arguments that decide where an effect goes or what it is, such as `to` or `amount`; `*` matches any text. Default: all arguments.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static TAINT: TypeSpec = TypeSpec {
    name: "TaintPolicy",
    doc: "How values are tracked through a session.",
    fields: &[
        FieldSpec::optional(
            "budget",
            Kind::Integer {
                min: 1024,
                max: Some(64 << 20),
            },
            "Bytes of results that are remembered for each of untrusted, secret and trusted; the oldest go first. Default: 1048576.",
        ),
        FieldSpec::optional(
            "min_value",
            Kind::Integer {
                min: 2,
                max: Some(256),
            },
            "How long an argument must be, in characters, to count as a value of a result as a whole. Default: 4.",
        ),
        FieldSpec::optional(
            "min_part",
            Kind::Integer {
                min: 8,
                max: Some(1024),
            },
            "How many letters and digits of an argument must stand together in a result to count as a part of it. Default: 16.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static RULE: TypeSpec = TypeSpec {
    name: "PolicyRule",
    doc: "A rule about calls or results.",
    fields: &[
        needed(
            "id",
            Kind::Matching("^[A-Za-z0-9][A-Za-z0-9._-]*$"),
            "The rule's name in findings.",
        ),
        FieldSpec::optional(
            "on",
            Kind::Choice(RULE_SCOPES),
            "Whether the rule checks calls to the server or results from it. Default: call.",
        ),
        FieldSpec::optional(
            "when",
            Kind::SomeText,
            "A CEL expression over `call`, `taint`, `history` and `allow_list`, and `result` for results. Without it, the rule matches whenever `pattern` does.",
        ),
        FieldSpec::optional(
            "pattern",
            Kind::SomeText,
            "A regular expression (RE2) that a text of the call's arguments or of the result must match.",
        ),
        needed(
            "decision",
            Kind::Choice(RULE_DECISIONS),
            "What happens when it matches.",
        ),
        FieldSpec::optional(
            "message",
            Kind::SomeText,
            "The message to the model when the call is blocked. Default: a sentence that names the rule.",
        ),
        needed(
            "on_error",
            Kind::Choice(ON_ERROR),
            "What happens when the rule cannot be evaluated: `block` fails closed, `allow` fails open and tries the next rule.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static ASKS: TypeSpec = TypeSpec {
    name: "AskPolicy",
    doc: "How people are asked, about calls and about definitions. Without an answer in time, it is denied.",
    fields: &[FieldSpec::optional(
        "timeout",
        Kind::Duration(Durations::POSITIVE),
        "How long to wait for an answer. Default: 2m.",
    )],
    extensions: false,
    exactly_one: None,
};

pub(super) static INDICATORS: TypeSpec = TypeSpec {
    name: "IndicatorPolicy",
    doc: "Threat documents that watch the session. They observe unless an entry of `enforce` says otherwise.",
    fields: &[
        FieldSpec::optional(
            "pack",
            Kind::Flag,
            "Whether the guard's own documents watch, too. Default: true.",
        ),
        FieldSpec::optional(
            "documents",
            Kind::list(&Kind::SomeText),
            "Files, or directories searched for .yaml and .yml, from where the policy is.",
        ),
        FieldSpec::optional(
            "enforce",
            Kind::list(&Kind::Type(&ENFORCE)),
            "Indicators that may block.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static ENFORCE: TypeSpec = TypeSpec {
    name: "EnforcedIndicator",
    doc: "An indicator that may block. It must be of tier `local_action` or `boundary_breach`, look at requests, and be silent on a control.",
    fields: &[
        needed("indicator", Kind::SomeText, "The indicator's id."),
        FieldSpec::optional(
            "document",
            Kind::SomeText,
            "The document's file name, where several have an indicator of this id.",
        ),
        needed(
            "control",
            Kind::SomeText,
            "A trace of the same task without the attack, from where the policy is. The indicator must look at its messages and match none.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

static PARTS: [&TypeSpec; 7] = [&PINS, &TOOL, &TAINT, &RULE, &ASKS, &INDICATORS, &ENFORCE];

/// The JSON Schema (2020-12). It says what a schema can say; the reader says the rest.
#[must_use]
pub fn json_schema() -> Value {
    let maker = SchemaMaker::new(SchemaStyle {
        required_first: false,
        typed_choices: true,
    });
    let mut schema = maker.document("policy", "Guard policy", &POLICY, PARTS);
    if let Some(rule) = schema
        .get_mut("$defs")
        .and_then(|defs| defs.get_mut(RULE.name))
    {
        // What a rule matches; and of a result, nobody is asked, and what is taken out has to be said.
        rule["anyOf"] = json!([{"required": ["when"]}, {"required": ["pattern"]}]);
        let decision = |word: &str| json!({"required": ["decision"], "properties": {"decision": {"const": word}}});
        rule["if"] = json!({"required": ["on"], "properties": {"on": {"const": "result"}}});
        rule["then"] = json!({"allOf": [
            {"not": decision("ask")},
            {"if": decision("redact"), "then": {"required": ["pattern"]}},
        ]});
    }
    Value::Object(schema)
}

/// The keys as a page in Markdown.
#[must_use]
pub fn reference() -> String {
    page::markdown(
        "Keys of guard policies",
        "proofhouse schema policy --reference",
        &POLICY,
        PARTS,
    )
}
