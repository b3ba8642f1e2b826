//! The fields of every block of an agent manifest, for the reader, the JSON Schema and the reference.

use proofhouse_source::format::{FieldKind as Kind, TypeSpec};

use super::model::MountScope;
use crate::fields::{
    CEL_MAP, CEL_TEXT, DURATION, NAME, NAMES, NUMBER, PARAMETERS, TEMPLATE, field, needed,
};
use crate::schema::{capabilities, mount};

/// References to tools and agents, each `"*"` or the mapping.
const CAPABILITIES: Kind = Kind::Written(
    "mapping of references to `\"*\"`, or [Capability](#capability)",
    capabilities,
);

/// Expressions by name; the message is the output itself.
const EXPOSES: Kind = Kind::Map {
    names: Some("^(?!message$)"),
    values: &CEL_TEXT,
};

/// One word, or the list of those that are files.
const MOUNT: Kind = Kind::Written(
    "`none`, or `task`, `agent`, `workspace`, or a list of these three",
    mount,
);

/// The scopes that a mount can have.
pub(crate) const MOUNT_SCOPES: &[&str] = &[
    MountScope::Task.name(),
    MountScope::Agent.name(),
    MountScope::Workspace.name(),
];
/// The word for no files.
pub(crate) const NO_MOUNT: &str = "none";
pub(super) const ON_FAIL: &[&str] = &["block", "continue", "lock_task"];

pub(crate) static AGENT: TypeSpec = TypeSpec {
    name: "Agent",
    doc: "An agent: a prompt, what it may use, and the rules around that.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed(
            "kind",
            Kind::Text,
            "What the document is: commonagents.info/v1beta2/agent.",
        ),
        field(
            "namespace",
            NAME,
            "The namespace the agent belongs to; `default` when absent.",
        ),
        needed("name", NAME, "Its name, unique in the namespace."),
        field("description", Kind::Text, "What the agent is for."),
        field(
            "prompt",
            TEMPLATE,
            "What the model is told; {context…}, {runtime…} and {now} are filled in. Nothing when absent.",
        ),
        field("model", Kind::Text, "The model it asks for."),
        field("priority", NUMBER, "Which tasks go first."),
        field(
            "mount",
            MOUNT,
            "Which files it may use, as one scope or a list of scopes; none when absent.",
        ),
        field("limits", Kind::Type(&LIMITS), "What a task may use up."),
        field(
            "parameters",
            PARAMETERS,
            "What an input holds beside the message.",
        ),
        field(
            "capabilities",
            CAPABILITIES,
            "Tools and agents by reference, each \"*\" or with rules.",
        ),
        field(
            "model_capabilities",
            NAMES,
            "What the provider of the model offers by itself.",
        ),
        field(
            "guardrails",
            Kind::Type(&GUARDRAILS),
            "Steps around inputs and outputs.",
        ),
        field(
            "exposes",
            EXPOSES,
            "What an output holds beside the message.",
        ),
    ],
};

pub(super) static LIMITS: TypeSpec = TypeSpec {
    name: "Limits",
    doc: "What a task may use up; beyond it, the task ends with limit_exceeded.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("max_turns", NUMBER, "Turns of the model."),
        field("max_prompt_tokens", NUMBER, "Tokens sent, in all."),
        field("max_completion_tokens", NUMBER, "Tokens made, in all."),
        field("max_age", DURATION, "Time, such as 2h."),
        field("max_tool_calls", NUMBER, "Calls of capabilities."),
    ],
};

pub(crate) static CAPABILITY: TypeSpec = TypeSpec {
    name: "Capability",
    doc: "The rules of a capability.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field(
            "include",
            NAMES,
            "Which actions and events; all when absent.",
        ),
        field(
            "bindings",
            CEL_MAP,
            "Parameters that the model neither sees nor sets, in CEL.",
        ),
        field("event_timeout", DURATION, "How long events are awaited."),
        field(
            "before_first",
            Kind::list(&Kind::Type(&STEP)),
            "Steps before the first call.",
        ),
        field(
            "before",
            Kind::list(&Kind::Type(&STEP)),
            "Steps before each call and event.",
        ),
        field(
            "after",
            Kind::list(&Kind::Type(&STEP)),
            "Steps after each call and event.",
        ),
    ],
};

pub(super) static GUARDRAILS: TypeSpec = TypeSpec {
    name: "Guardrails",
    doc: "Steps around the inputs and outputs of an agent.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field(
            "before",
            Kind::list(&Kind::Type(&STEP)),
            "When input comes.",
        ),
        field(
            "after",
            Kind::list(&Kind::Type(&STEP)),
            "Before the agent responds.",
        ),
    ],
};

pub(crate) static STEP: TypeSpec = TypeSpec {
    name: "Step",
    doc: "One step; exactly one of assert, invoke and transform.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("assert", CEL_TEXT, "Something that must hold."),
        field("invoke", Kind::Text, "Another action: tool:action."),
        field("transform", CEL_TEXT, "What replaces the result."),
        field(
            "match",
            Kind::Text,
            "Only for the action or event of this name.",
        ),
        field("condition", CEL_TEXT, "Only if this holds."),
        field("error_message", TEMPLATE, "What is told when it fails."),
        field(
            "on_fail",
            Kind::Choice(ON_FAIL),
            "block (the default of capabilities), continue, or lock_task (the default of guardrails).",
        ),
        field("bindings", CEL_MAP, "The parameters of an invoked action."),
    ],
};

/// Every block but the agent itself.
pub(crate) static ALL: [&TypeSpec; 4] = [&LIMITS, &CAPABILITY, &GUARDRAILS, &STEP];
