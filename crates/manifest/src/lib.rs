//! Manifests: documents of tools, agents, triggers and schedules as YAML, read with every finding collected.

mod agent;
mod bundle;
mod catalog;
mod decode;
mod execute;
mod fields;
pub mod interpolate;
pub mod json_schema;
mod model;
mod mount;
mod names;
mod parameters;
mod reach;
mod receive;
pub mod schedule;
mod schema;
mod template_variables;
mod texts;
mod tool;
mod triggers;

pub use agent::{
    Agent, Binding, Capability, Grant, Guardrails, MiddlewareStep, MountScope, OnFail, StepAction,
    TaskLimits,
};
pub use bundle::{Bundle, BundleLimits, Manifest, OtherManifest};
pub use catalog::{Catalog, Referent};
pub use execute::{
    BackendKind, CelCall, DescriptionPlace, Execute, HttpCall, KubernetesJob, Mcp, McpTransport,
    OpenApi, OperationPattern, SessionSpec, SharedBlocks,
};
pub use fields::METHODS;
pub use model::{
    EventParameters, Poll, Receive, Subscription, Tool, ToolAction, ToolEvent, Webhook,
};
pub use mount::mount_functions;
pub use parameters::{InvalidParameters, ParameterSchema};
pub use schema::{
    agent_json_schema, agent_reference, json_schema, reference, schedule_json_schema,
    schedule_reference, trigger_json_schema, trigger_reference,
};
pub use texts::compiler;
pub use triggers::{EventTrigger, Schedule, TriggerSource};

/// The codes whose findings are never errors: worth a look, and the manifest is fit for use. `TM-017` can
/// be either.
pub const WARNING_CODES: &[&str] = &[
    "TM-002", "TM-018", "TM-025", "TM-031", "TM-032", "TM-033", "TM-034", "TM-035", "TM-036",
    "TM-037", "TM-038",
];

/// The codes of findings about manifests, and what each means.
///
/// ```
/// use proofhouse_manifest::CODES;
/// assert!(CODES.iter().any(|(code, _)| *code == "TM-007"));
/// ```
pub const CODES: &[(&str, &str)] = &[
    (
        "TM-001",
        "The text is not YAML that can be read, or is larger than it may be.",
    ),
    (
        "TM-002",
        "The kind is not one of the specification; the document is skipped.",
    ),
    ("TM-003", "A value has the wrong type."),
    ("TM-004", "A key is unknown."),
    ("TM-005", "A key that is needed is missing."),
    ("TM-006", "Two keys mean the same; only one may be there."),
    (
        "TM-007",
        "Exactly one backend or receive block must be there.",
    ),
    ("TM-008", "A value is not one of those that may be used."),
    ("TM-009", "A CEL expression cannot be used."),
    ("TM-010", "A JSONPath cannot be used."),
    (
        "TM-011",
        "A parameter schema cannot be used, or a default does not fit it.",
    ),
    ("TM-012", "A reference names something that is not there."),
    ("TM-013", "A URL cannot be used."),
    ("TM-014", "A header cannot be used."),
    ("TM-015", "A name is used twice, or cannot be a name."),
    ("TM-016", "A duration cannot be used."),
    (
        "TM-017",
        "A reference names a setting that the tool does not declare.",
    ),
    ("TM-018", "A key is empty and counts as absent."),
    ("TM-019", "The actions of a tool define different sessions."),
    (
        "TM-020",
        "A capability or an `invoke` step names no tool or agent that is there.",
    ),
    (
        "TM-021",
        "A binding names a parameter that is not declared.",
    ),
    (
        "TM-022",
        "A parameter needs a binding (`require_binding`), and there is none.",
    ),
    (
        "TM-023",
        "A guardrail may not `block`: there is no call to block.",
    ),
    (
        "TM-024",
        "A step has exactly one of `assert`, `invoke` and `transform`; only `invoke` has `bindings`.",
    ),
    (
        "TM-025",
        "A binding is not CEL over the task's context; it counts as plain text.",
    ),
    (
        "TM-026",
        "`include` or `match` names an action or event that is not there.",
    ),
    (
        "TM-027",
        "A capability is `\"*\"` or a mapping with at least one key.",
    ),
    (
        "TM-028",
        "A model capability needs a mount, or has the name of a capability.",
    ),
    ("TM-029", "A cron expression or a time zone cannot be used."),
    (
        "TM-030",
        "The inputs of a trigger or a schedule do not fit its agent.",
    ),
    (
        "TM-031",
        "A filter names a parameter that is not declared; it would discard every event.",
    ),
    (
        "TM-032",
        "A tool, agent, trigger or schedule is defined more than once; the first that is read is used.",
    ),
    (
        "TM-033",
        "Nobody has to sign the webhooks of a tool, or it is not clear with which secret: none is configured for it alone.",
    ),
    (
        "TM-034",
        "A poll has no `key` and does not ask what is newer: what is listed fires at every poll.",
    ),
    (
        "TM-035",
        "A poll or a push channel needs a parameter that the agent does not bind and that has no default.",
    ),
    (
        "TM-036",
        "A rule counts calls of a function that the agent does not have: it never counts one.",
    ),
    (
        "TM-037",
        "A manifest says too little to be of use: a tool without actions and events, an agent without a prompt.",
    ),
    (
        "TM-038",
        "A template variable of a bundle is needed and has no value; the bundle can be checked and not be used.",
    ),
];
