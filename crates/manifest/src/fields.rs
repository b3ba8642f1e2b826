//! The fields of every block of a tool manifest: one table that the reader, the JSON Schema and the reference share.

use proofhouse_source::format::{Durations, FieldKind as Kind, FieldSpec, TypeSpec};

use super::execute::http::HTTP;
use super::execute::{BackendKind, EXECUTE, SHARED_COUNT, with_shared_blocks};
use super::schema::{event_parameters, http_method};

/// Text with `{…}` references; nobody quotes numbers in headers.
pub(super) const TEMPLATE: Kind =
    Kind::Called("text with references", &Kind::Scalar(&["string", "number"]));
pub(super) const TEMPLATE_MAP: Kind = Kind::map(&TEMPLATE);
pub(super) const TEMPLATES: Kind = Kind::list(&TEMPLATE);
pub(super) const CEL_TEXT: Kind = Kind::Called("CEL expression", &Kind::Text);
/// Names to texts in CEL.
pub(super) const CEL_MAP: Kind = Kind::map(&Kind::Called(
    "CEL expression",
    &Kind::Scalar(&["string", "number", "boolean"]),
));
pub(super) const JSON_PATH: Kind = Kind::Called("JSONPath", &Kind::Matching(r"^\$"));
pub(super) const JSON_PATHS: Kind = Kind::map(&JSON_PATH);
/// Any value, whose texts may hold references.
pub(super) const BODY: Kind = Kind::Any;
/// The letters of a name, and how many; `Decoder::name` reads it.
pub(super) const NAME: Kind = Kind::Called("name", &Kind::Matching("^[A-Za-z0-9_.-]{1,128}$"));
/// The method of an HTTP request.
pub(super) const METHOD: Kind = Kind::Written("text with references", http_method);
pub(super) const PARAMETERS: Kind = Kind::Shape("Parameters");
const EVENT_PARAMETERS: Kind =
    Kind::Written("Parameters, or names to CEL expressions", event_parameters);
pub(super) const DURATION: Kind = Kind::Duration(Durations::POSITIVE);
pub(super) const NUMBER: Kind = Kind::Integer { min: 0, max: None };
pub(super) const NAMES: Kind = Kind::list(&Kind::Text);

pub(super) const fn field(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::optional(key, kind, doc)
}

pub(super) const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::required(key, kind, "TM-005", doc)
}

pub(super) const fn alias(
    key: &'static str,
    alias: &'static str,
    kind: Kind,
    doc: &'static str,
) -> FieldSpec {
    FieldSpec::optional(key, kind, doc).or(alias, "TM-006")
}

/// The versions of the specification whose manifests are read.
pub(super) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1beta2"];
/// The types of manifest of the specification.
pub(super) const TYPES: [&str; 5] = ["tool", "agent", "trigger", "schedule", "bundledescription"];
/// The methods of an HTTP call.
pub const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// The namespace of manifests that name none.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// What `idle_eviction` may say.
pub(crate) const IDLE_EVICTION: &[&str] = &["allowed", "never"];

pub(super) static TOOL: TypeSpec = TypeSpec {
    name: "Tool",
    doc: "A tool: actions an agent can take, and events that can reach it.",
    extensions: true,
    exactly_one: None,
    fields: &WITH_SHARED_BLOCKS,
};

/// The keys of a tool, with the blocks that its actions inherit from.
static WITH_SHARED_BLOCKS: [FieldSpec; TOOL_FIELDS.len() + SHARED_COUNT] =
    with_shared_blocks(TOOL_FIELDS);

const ACTION_BLOCK: Kind = Kind::Type(&ACTION);
const EVENT_BLOCK: Kind = Kind::Type(&EVENT);

/// The keys of a tool that are no blocks of backends.
const TOOL_FIELDS: [FieldSpec; 10] = [
    needed(
        "kind",
        Kind::Text,
        "What the document is: commonagents.info/v1beta2/tool.",
    ),
    field(
        "namespace",
        NAME,
        "The namespace the tool belongs to; `default` when absent.",
    ),
    needed("name", NAME, "Its name, unique in the namespace."),
    needed("description", Kind::Text, "What the tool is for."),
    field(
        "synchronous",
        Kind::Flag,
        "Whether actions run while the task waits; false when absent.",
    ),
    field(
        "idle_eviction",
        Kind::Choice(IDLE_EVICTION),
        "Whether sessions and servers of a task that sleeps may be ended until its next call; allowed when absent.",
    ),
    field(
        "settings",
        PARAMETERS,
        "What the operator configures; never shown to the model.",
    ),
    field(
        "parameters",
        PARAMETERS,
        "Parameters of every action and event.",
    ),
    field(
        "actions",
        Kind::list(&ACTION_BLOCK),
        "What an agent can do.",
    ),
    field(
        "events",
        Kind::list(&EVENT_BLOCK),
        "What can reach the agent.",
    ),
];

pub(super) static ACTION: TypeSpec = TypeSpec {
    name: "Action",
    doc: "Something an agent can do.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed("name", NAME, "Its name, unique in the tool."),
        needed("description", Kind::Text, "What it does, for the model."),
        field(
            "parameters",
            PARAMETERS,
            "Parameters beside those of the tool.",
        ),
        needed(
            "execute",
            Kind::Type(&EXECUTE),
            "How it is done; exactly one backend.",
        ),
    ],
};

pub(super) static EVENT: TypeSpec = TypeSpec {
    name: "Event",
    doc: "Something that can reach the agent.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed("name", Kind::Text, "Its name, unique in the tool."),
        field("description", Kind::Text, "What it is, for people."),
        needed("message", TEMPLATE, "What the agent is told."),
        field("timeout", DURATION, "How long a task stays subscribed."),
        field("max_timeout", DURATION, "The longest an agent may ask for."),
        field(
            "parameters",
            EVENT_PARAMETERS,
            "Aliases in CEL, or parameters of the filter.",
        ),
        needed(
            "receive",
            Kind::Type(&RECEIVE),
            "How it arrives; exactly one.",
        ),
    ],
};

pub(super) static RECEIVE: TypeSpec = TypeSpec {
    name: "Receive",
    doc: "How an event arrives; exactly one.",
    extensions: true,
    exactly_one: Some("TM-007"),
    fields: &[
        field("webhook", Kind::Type(&WEBHOOK), "The platform posts it."),
        field(
            "subscription",
            Kind::Type(&SUBSCRIPTION),
            "A push channel that is registered and renewed.",
        ),
        field(
            "poll",
            Kind::Type(&POLL),
            "An endpoint that is asked again and again.",
        ),
    ],
};

pub(super) static WEBHOOK: TypeSpec = TypeSpec {
    name: "Webhook",
    doc: "The platform posts events.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("filter", CEL_TEXT, "CEL over event and parameters."),
        field("secret", TEMPLATE, "The signing secret, as a setting."),
    ],
};

pub(super) static SUBSCRIPTION: TypeSpec = TypeSpec {
    name: "Subscription",
    doc: "A push channel.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("filter", CEL_TEXT, "CEL over event and parameters."),
        needed(
            "subscribe",
            Kind::Type(&HTTP),
            "The call that registers the channel.",
        ),
        field(
            "unsubscribe",
            Kind::Type(&HTTP),
            "The call that removes it.",
        ),
    ],
};

pub(super) static POLL: TypeSpec = TypeSpec {
    name: "Poll",
    doc: "An endpoint that is asked again and again.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("filter", CEL_TEXT, "CEL over event and parameters."),
        needed("method", METHOD, "GET, POST, PUT, PATCH or DELETE."),
        needed("url", TEMPLATE, "Where to ask."),
        field("headers", TEMPLATE_MAP, "Headers by name."),
        alias("body", "json", BODY, "What is sent, as JSON."),
        needed(
            "detect",
            CEL_TEXT,
            "CEL over response, poll and parameters that gives the new items.",
        ),
        field(
            "key",
            CEL_TEXT,
            "CEL over item: what fired under the same key does not fire again. Without it, each item fires.",
        ),
        field("interval", DURATION, "How often; 60s when absent."),
    ],
};

/// Every type below the tool, for the schema.
pub(super) fn all() -> Vec<&'static TypeSpec> {
    let mut types = vec![&ACTION, &EXECUTE];
    types.extend(BackendKind::ALL.map(BackendKind::spec));
    types.extend([&HTTP, &EVENT, &RECEIVE, &WEBHOOK, &SUBSCRIPTION, &POLL]);
    types
}
