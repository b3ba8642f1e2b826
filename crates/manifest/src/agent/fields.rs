//! The fields of every block of an agent manifest, for the reader and the JSON Schema.

use crate::fields::{Kind, TypeSpec, field, needed};

pub(super) const MOUNTS: &[&str] = &["none", "task", "agent", "workspace"];
pub(super) const ON_FAIL: &[&str] = &["block", "continue", "lock_task"];

pub(crate) static AGENT: TypeSpec = TypeSpec {
    name: "Agent",
    doc: "An agent: a prompt, what it may use, and the rules around that.",
    exactly_one: false,
    fields: &[
        needed(
            "kind",
            Kind::Text,
            "What the document is: commonagents.info/v1beta2/agent.",
        ),
        needed(
            "namespace",
            Kind::Text,
            "The namespace the agent belongs to.",
        ),
        needed("name", Kind::Text, "Its name, unique in the namespace."),
        needed("description", Kind::Text, "What the agent is for."),
        needed(
            "prompt",
            Kind::Template,
            "What the model is told; {context…}, {runtime…} and {now} are filled in.",
        ),
        field("model", Kind::Text, "The model it asks for."),
        field("priority", Kind::Number, "Which tasks go first."),
        field(
            "mount",
            Kind::Choice(MOUNTS),
            "Which files it may use; none when absent.",
        ),
        field("limits", Kind::Type(&LIMITS), "What a task may use up."),
        field(
            "parameters",
            Kind::Parameters,
            "What an input holds beside the message.",
        ),
        field(
            "capabilities",
            Kind::Capabilities(&CAPABILITY),
            "Tools and agents by reference, each \"*\" or with rules.",
        ),
        field(
            "model_capabilities",
            Kind::Names,
            "What the provider of the model offers by itself.",
        ),
        field(
            "guardrails",
            Kind::Type(&GUARDRAILS),
            "Steps around inputs and outputs.",
        ),
        field(
            "exposes",
            Kind::CelMap,
            "What an output holds beside the message.",
        ),
    ],
};

pub(super) static LIMITS: TypeSpec = TypeSpec {
    name: "Limits",
    doc: "What a task may use up; beyond it, the task ends with limit_exceeded.",
    exactly_one: false,
    fields: &[
        field("max_turns", Kind::Number, "Turns of the model."),
        field("max_prompt_tokens", Kind::Number, "Tokens sent, in all."),
        field(
            "max_completion_tokens",
            Kind::Number,
            "Tokens made, in all.",
        ),
        field("max_age", Kind::Duration, "Time, such as 2h."),
        field("max_tool_calls", Kind::Number, "Calls of capabilities."),
    ],
};

pub(super) static CAPABILITY: TypeSpec = TypeSpec {
    name: "Capability",
    doc: "The rules of a capability.",
    exactly_one: false,
    fields: &[
        field(
            "include",
            Kind::Names,
            "Which actions and events; all when absent.",
        ),
        field(
            "bindings",
            Kind::CelMap,
            "Parameters that the model neither sees nor sets, in CEL.",
        ),
        field(
            "event_timeout",
            Kind::Duration,
            "How long events are awaited.",
        ),
        field(
            "before_first",
            Kind::List(&STEP),
            "Steps before the first call.",
        ),
        field(
            "before",
            Kind::List(&STEP),
            "Steps before each call and event.",
        ),
        field(
            "after",
            Kind::List(&STEP),
            "Steps after each call and event.",
        ),
    ],
};

pub(super) static GUARDRAILS: TypeSpec = TypeSpec {
    name: "Guardrails",
    doc: "Steps around the inputs and outputs of an agent.",
    exactly_one: false,
    fields: &[
        field("before", Kind::List(&STEP), "When input comes."),
        field("after", Kind::List(&STEP), "Before the agent responds."),
    ],
};

pub(crate) static STEP: TypeSpec = TypeSpec {
    name: "Step",
    doc: "One step; exactly one of assert, invoke and transform.",
    exactly_one: false,
    fields: &[
        field("assert", Kind::Cel, "Something that must hold."),
        field("invoke", Kind::Text, "Another action: tool:action."),
        field("transform", Kind::Cel, "What replaces the result."),
        field(
            "match",
            Kind::Text,
            "Only for the action or event of this name.",
        ),
        field("condition", Kind::Cel, "Only if this holds."),
        field(
            "error_message",
            Kind::Template,
            "What is told when it fails.",
        ),
        field(
            "on_fail",
            Kind::Choice(ON_FAIL),
            "block (the default of capabilities), continue, or lock_task (the default of guardrails).",
        ),
        field(
            "bindings",
            Kind::CelMap,
            "The parameters of an invoked action.",
        ),
    ],
};

/// Every block but the agent itself.
pub(crate) static ALL: [&TypeSpec; 4] = [&LIMITS, &CAPABILITY, &GUARDRAILS, &STEP];
