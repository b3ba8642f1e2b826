//! The fields of every block of a tool manifest: one table that the reader, the JSON Schema and the reference share.

use proofhouse_source::format::{Durations, FieldKind as Kind, FieldSpec, TypeSpec};

use super::schema::event_parameters;

/// Text with `{…}` references; nobody quotes numbers in headers.
pub(super) const TEMPLATE: Kind =
    Kind::Called("text with references", &Kind::Scalar(&["string", "number"]));
const TEMPLATE_MAP: Kind = Kind::map(&TEMPLATE);
const TEMPLATES: Kind = Kind::list(&TEMPLATE);
pub(super) const CEL_TEXT: Kind = Kind::Called("CEL expression", &Kind::Text);
/// Names to texts in CEL.
pub(super) const CEL_MAP: Kind = Kind::map(&Kind::Called(
    "CEL expression",
    &Kind::Scalar(&["string", "number", "boolean"]),
));
const JSON_PATH: Kind = Kind::Called("JSONPath", &Kind::Matching(r"^\$"));
const JSON_PATHS: Kind = Kind::map(&JSON_PATH);
/// Any value, whose texts may hold references.
pub(super) const BODY: Kind = Kind::Any;
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

const fn alias(key: &'static str, alias: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::optional(key, kind, doc).or(alias, "TM-006")
}

/// The versions of the specification whose manifests are read.
pub(super) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1beta2"];
/// The types of manifest of the specification.
pub(super) const TYPES: [&str; 5] = ["tool", "agent", "trigger", "schedule", "bundledescription"];
/// The methods of an HTTP call.
pub const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
pub(super) const TRANSPORTS: &[&str] = &["stdio", "sse", "streamable_http"];

pub(super) static TOOL: TypeSpec = TypeSpec {
    name: "Tool",
    doc: "A tool: actions an agent can take, and events that can reach it.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed(
            "kind",
            Kind::Text,
            "What the document is: commonagents.info/v1beta2/tool.",
        ),
        needed(
            "namespace",
            Kind::Text,
            "The namespace the tool belongs to.",
        ),
        needed("name", Kind::Text, "Its name, unique in the namespace."),
        needed("description", Kind::Text, "What the tool is for."),
        field(
            "synchronous",
            Kind::Flag,
            "Whether actions run while the task waits; false when absent.",
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
            Kind::list(&Kind::Type(&ACTION)),
            "What an agent can do.",
        ),
        field(
            "events",
            Kind::list(&Kind::Type(&EVENT)),
            "What can reach the agent.",
        ),
        field(
            "stateless_http",
            Kind::Type(&HTTP),
            "What actions with this backend inherit.",
        ),
        field(
            "stateful_session",
            Kind::Type(&SESSION),
            "What actions with this backend inherit.",
        ),
        field(
            "openapi",
            Kind::Type(&OPENAPI),
            "A specification whose operations are all actions.",
        ),
        field(
            "mcp",
            Kind::Type(&MCP),
            "A server whose tools are all actions.",
        ),
    ],
};

pub(super) static ACTION: TypeSpec = TypeSpec {
    name: "Action",
    doc: "Something an agent can do.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed("name", Kind::Text, "Its name, unique in the tool."),
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

pub(super) static EXECUTE: TypeSpec = TypeSpec {
    name: "Execute",
    doc: "How an action is done; exactly one backend.",
    extensions: true,
    exactly_one: Some("TM-007"),
    fields: &[
        field("cel", Kind::Type(&CEL), "An expression."),
        field("stateless_http", Kind::Type(&HTTP), "One HTTP request."),
        field(
            "stateful_session",
            Kind::Type(&SESSION),
            "A request in a remote session.",
        ),
        field(
            "openapi",
            Kind::Type(&OPENAPI),
            "The operation of the action's name.",
        ),
        field(
            "mcp",
            Kind::Type(&MCP),
            "The MCP tool of the action's name.",
        ),
        field(
            "kubernetes_job",
            Kind::Type(&KUBERNETES_JOB),
            "A Kubernetes Job.",
        ),
    ],
};

pub(super) static CEL: TypeSpec = TypeSpec {
    name: "Cel",
    doc: "An expression whose result is the result of the action.",
    extensions: true,
    exactly_one: None,
    fields: &[needed(
        "expression",
        CEL_TEXT,
        "CEL over context, input, now and runtime.",
    )],
};

pub(super) static HTTP: TypeSpec = TypeSpec {
    name: "Http",
    doc: "One HTTP request. In an action, what is absent comes from the tool's block of the same name.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("method", TEMPLATE, "GET, POST, PUT, PATCH or DELETE."),
        field(
            "url",
            TEMPLATE,
            "Where to; parameters are percent-encoded and never choose the host.",
        ),
        field("headers", TEMPLATE_MAP, "Headers by name."),
        alias("body", "json", BODY, "What is sent, as JSON."),
        field(
            "response_path",
            JSON_PATH,
            "What to take from the response.",
        ),
    ],
};

pub(super) static SESSION: TypeSpec = TypeSpec {
    name: "Session",
    doc: "A remote session: made at the first call, closed when the task ends.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field(
            "create",
            Kind::Type(&HTTP),
            "The call that makes the session.",
        ),
        field(
            "initialize",
            Kind::Type(&HTTP),
            "A call after that; the call that makes it, if `create` is absent.",
        ),
        field(
            "extract",
            JSON_PATHS,
            "What to keep of the answer, as {session.key}.",
        ),
        field("execute", Kind::Type(&HTTP), "The call of each action."),
        alias(
            "destroy",
            "teardown",
            Kind::Type(&HTTP),
            "The call that ends the session.",
        ),
    ],
};

pub(super) static OPENAPI: TypeSpec = TypeSpec {
    name: "OpenApi",
    doc: "An OpenAPI 3.x specification.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field(
            "url",
            TEMPLATE,
            "Where the specification is: a URL, or a file below the manifest's directory.",
        ),
        field("headers", TEMPLATE_MAP, "Headers of every request."),
    ],
};

pub(super) static MCP: TypeSpec = TypeSpec {
    name: "Mcp",
    doc: "A server of the Model Context Protocol.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("transport", Kind::Choice(TRANSPORTS), "How to talk to it."),
        field("command", TEMPLATE, "What to start, for stdio."),
        field("args", TEMPLATES, "Its arguments."),
        field("url", TEMPLATE, "Where it is, for sse and streamable_http."),
        field("headers", TEMPLATE_MAP, "Headers of every request."),
        field("env", TEMPLATE_MAP, "Environment of the command."),
    ],
};

pub(super) static KUBERNETES_JOB: TypeSpec = TypeSpec {
    name: "KubernetesJob",
    doc: "A Kubernetes Job whose output is the result.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed("namespace", TEMPLATE, "The namespace of the Job."),
        needed("spec", BODY, "A JobSpec, or a whole Job."),
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
        needed("method", TEMPLATE, "GET, POST, PUT, PATCH or DELETE."),
        needed("url", TEMPLATE, "Where to ask."),
        field("headers", TEMPLATE_MAP, "Headers by name."),
        alias("body", "json", BODY, "What is sent, as JSON."),
        needed(
            "detect",
            CEL_TEXT,
            "CEL over response, poll and parameters that gives the new items.",
        ),
        field("interval", DURATION, "How often; 60s when absent."),
    ],
};

/// Every type below the tool, for the schema.
pub(super) static ALL: [&TypeSpec; 13] = [
    &ACTION,
    &EXECUTE,
    &CEL,
    &HTTP,
    &SESSION,
    &OPENAPI,
    &MCP,
    &KUBERNETES_JOB,
    &EVENT,
    &RECEIVE,
    &WEBHOOK,
    &SUBSCRIPTION,
    &POLL,
];
