//! The fields of every block of a tool manifest: one table that the reader and the JSON Schema share.

/// A mapping with known keys.
pub(super) struct TypeSpec {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) fields: &'static [FieldSpec],
    /// Whether exactly one of the keys must be there.
    pub(super) exactly_one: bool,
}

/// One key of a mapping.
pub(super) struct FieldSpec {
    pub(super) key: &'static str,
    /// Another word for the same key.
    pub(super) alias: Option<&'static str>,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) doc: &'static str,
}

/// What a key may hold.
pub(super) enum Kind {
    Text,
    Flag,
    Duration,
    /// Text with `{…}` references.
    Template,
    /// Names to texts with references.
    TemplateMap,
    /// A list of texts with references.
    Templates,
    Cel,
    JsonPath,
    /// Names to JSONPaths.
    JsonPaths,
    /// Any value, whose texts may hold references.
    Body,
    Choice(&'static [&'static str]),
    Parameters,
    /// Aliases in CEL, or a parameter schema.
    EventParameters,
    Type(&'static TypeSpec),
    List(&'static TypeSpec),
    /// A whole number.
    Number,
    /// A list of names.
    Names,
    /// Names to texts in CEL.
    CelMap,
    /// References to tools and agents, each `"*"` or the mapping.
    Capabilities(&'static TypeSpec),
}

pub(super) const fn field(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec {
        key,
        alias: None,
        kind,
        required: false,
        doc,
    }
}

pub(super) const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec {
        key,
        alias: None,
        kind,
        required: true,
        doc,
    }
}

const fn alias(key: &'static str, alias: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec {
        key,
        alias: Some(alias),
        kind,
        required: false,
        doc,
    }
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
    exactly_one: false,
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
            Kind::Parameters,
            "What the operator configures; never shown to the model.",
        ),
        field(
            "parameters",
            Kind::Parameters,
            "Parameters of every action and event.",
        ),
        field("actions", Kind::List(&ACTION), "What an agent can do."),
        field("events", Kind::List(&EVENT), "What can reach the agent."),
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
    exactly_one: false,
    fields: &[
        needed("name", Kind::Text, "Its name, unique in the tool."),
        needed("description", Kind::Text, "What it does, for the model."),
        field(
            "parameters",
            Kind::Parameters,
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
    exactly_one: true,
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
    exactly_one: false,
    fields: &[needed(
        "expression",
        Kind::Cel,
        "CEL over context, input, now and runtime.",
    )],
};

pub(super) static HTTP: TypeSpec = TypeSpec {
    name: "Http",
    doc: "One HTTP request. In an action, what is absent comes from the tool's block of the same name.",
    exactly_one: false,
    fields: &[
        field("method", Kind::Template, "GET, POST, PUT, PATCH or DELETE."),
        field(
            "url",
            Kind::Template,
            "Where to; parameters are percent-encoded and never choose the host.",
        ),
        field("headers", Kind::TemplateMap, "Headers by name."),
        alias("body", "json", Kind::Body, "What is sent, as JSON."),
        field(
            "response_path",
            Kind::JsonPath,
            "What to take from the response.",
        ),
    ],
};

pub(super) static SESSION: TypeSpec = TypeSpec {
    name: "Session",
    doc: "A remote session: made at the first call, closed when the task ends.",
    exactly_one: false,
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
            Kind::JsonPaths,
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
    exactly_one: false,
    fields: &[
        field(
            "url",
            Kind::Template,
            "Where the specification is: a URL, or a file below the manifest's directory.",
        ),
        field("headers", Kind::TemplateMap, "Headers of every request."),
    ],
};

pub(super) static MCP: TypeSpec = TypeSpec {
    name: "Mcp",
    doc: "A server of the Model Context Protocol.",
    exactly_one: false,
    fields: &[
        field("transport", Kind::Choice(TRANSPORTS), "How to talk to it."),
        field("command", Kind::Template, "What to start, for stdio."),
        field("args", Kind::Templates, "Its arguments."),
        field(
            "url",
            Kind::Template,
            "Where it is, for sse and streamable_http.",
        ),
        field("headers", Kind::TemplateMap, "Headers of every request."),
        field("env", Kind::TemplateMap, "Environment of the command."),
    ],
};

pub(super) static KUBERNETES_JOB: TypeSpec = TypeSpec {
    name: "KubernetesJob",
    doc: "A Kubernetes Job whose output is the result.",
    exactly_one: false,
    fields: &[
        needed("namespace", Kind::Template, "The namespace of the Job."),
        needed("spec", Kind::Body, "A JobSpec, or a whole Job."),
    ],
};

pub(super) static EVENT: TypeSpec = TypeSpec {
    name: "Event",
    doc: "Something that can reach the agent.",
    exactly_one: false,
    fields: &[
        needed("name", Kind::Text, "Its name, unique in the tool."),
        field("description", Kind::Text, "What it is, for people."),
        needed("message", Kind::Template, "What the agent is told."),
        field(
            "timeout",
            Kind::Duration,
            "How long a task stays subscribed.",
        ),
        field(
            "max_timeout",
            Kind::Duration,
            "The longest an agent may ask for.",
        ),
        field(
            "parameters",
            Kind::EventParameters,
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
    exactly_one: true,
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
    exactly_one: false,
    fields: &[
        field("filter", Kind::Cel, "CEL over event and parameters."),
        field(
            "secret",
            Kind::Template,
            "The signing secret, as a setting.",
        ),
    ],
};

pub(super) static SUBSCRIPTION: TypeSpec = TypeSpec {
    name: "Subscription",
    doc: "A push channel.",
    exactly_one: false,
    fields: &[
        field("filter", Kind::Cel, "CEL over event and parameters."),
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
    exactly_one: false,
    fields: &[
        field("filter", Kind::Cel, "CEL over event and parameters."),
        needed("method", Kind::Template, "GET, POST, PUT, PATCH or DELETE."),
        needed("url", Kind::Template, "Where to ask."),
        field("headers", Kind::TemplateMap, "Headers by name."),
        alias("body", "json", Kind::Body, "What is sent, as JSON."),
        needed(
            "detect",
            Kind::Cel,
            "CEL over response, poll and parameters that gives the new items.",
        ),
        field("interval", Kind::Duration, "How often; 60s when absent."),
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
