//! The keys of `proofhouse.yaml`: one table that the reader, the JSON Schema and the reference share.
//! Where a list is meant, one value stands for a list of one.

use proofhouse_oatf::{Category, SeverityLevel};
use proofhouse_source::format::{Durations, FieldKind as Kind, FieldSpec, TypeSpec};

use super::schema::subjects;

/// The name of a subject.
const NAME_OF_SUBJECT: Kind = Kind::Called(
    "name",
    &Kind::Matching("^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"),
);
/// Such as `90s` or `5m`.
const DURATION: Kind = Kind::Duration(Durations::POSITIVE);
/// Bytes, such as `8M`.
const SIZE: Kind = Kind::Called(
    "bytes, such as `8M`",
    &Kind::AnyOf(&[
        Kind::Integer { min: 1, max: None },
        Kind::Matching("^[0-9]+[KkMmGg]?$"),
    ]),
);
/// A file or directory, relative to the file that names it.
const PATH: Kind = Kind::Called("path", &Kind::SomeText);
const PATHS: Kind = Kind::OneOrMore(&PATH);
const URL: Kind = Kind::Called("URL", &Kind::Matching("^https?://|\\$\\{"));
const ADDRESS: Kind = Kind::Called(
    "address, such as `127.0.0.1:8080`",
    &Kind::Matching(":[0-9]+$"),
);
const NETWORKS: Kind = Kind::OneOrMore(&Kind::Called(
    "network, such as `10.1.0.0/16`",
    &Kind::SomeText,
));
const TEXTS: Kind = Kind::OneOrMore(&Kind::SomeText);
const FAIL_ON: Kind = Kind::OneOrMore(&Kind::Called(
    "condition",
    &Kind::Matching(
        "^(exploited|partial|inconclusive|regression|tier=.+|severity=.+|utility<.+|exposed<.+)$",
    ),
));
/// One text that is split as a shell would, or a list of words.
const WORDS: Kind = Kind::Called(
    "text, or a list of words",
    &Kind::AnyOf(&[
        Kind::SomeText,
        Kind::List {
            of: &Kind::Text,
            min: 1,
            unique: false,
        },
    ]),
);
/// Names to texts with variables of the environment.
const VARIABLES: Kind = Kind::map(&Kind::Called(
    "text",
    &Kind::Scalar(&["string", "integer", "boolean"]),
));
/// A file, or a mapping that says more.
const MCP_CONFIG_FILE: Kind = Kind::AnyOf(&[PATH, Kind::Type(&MCP_CONFIG)]);
const ALL_SUBJECTS: Kind = Kind::Written(
    "list of simulations and of: [Command](#command), [Endpoint](#endpoint), [Manifest](#manifest), \
     [Simulation](#simulation), [Model](#model)",
    subjects,
);

const fn field(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::optional(key, kind, doc)
}

const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::required(key, kind, "PC-004", doc)
}

/// The protocols that documents can be filtered by.
pub(super) const PROTOCOLS: &[&str] = proofhouse_oatf::Protocol::NAMES;
/// The simulations.
pub(super) const SIMULATIONS: &[&str] = &["sim:gullible", "sim:careful"];
/// What a command may serve.
pub(super) const SERVES: &[&str] = &["ag-ui", "a2a", "mcp"];
/// The formats of reports that can be written beside a result.
pub(super) const REPORTS: &[&str] = crate::report_format::FORMAT_NAMES;
/// The most repeats, as on the command line.
pub(crate) const MAX_REPEATS: u64 = 10_000;
/// The most runs at a time, as on the command line.
pub(super) const MAX_JOBS: u64 = 256;

pub(super) static CONFIG: TypeSpec = TypeSpec {
    name: "Config",
    doc: "What `proofhouse run` does in this project.",
    fields: &[
        needed(
            "proofhouse",
            Kind::Exactly(1),
            "The version of this format, which is 1.",
        )
        .if_missing("start with `proofhouse: 1`"),
        field(
            "subjects",
            ALL_SUBJECTS,
            "Who is attacked; both simulations when absent.",
        ),
        field(
            "documents",
            PATHS,
            "Threat documents: files, or directories searched for them; the library when absent.",
        ),
        field(
            "filters",
            Kind::Type(&FILTERS),
            "Only documents that fit all of these take part.",
        ),
        field(
            "prompt",
            Kind::SomeText,
            "What the user asks, for documents that do not say it themselves.",
        ),
        field(
            "repeats",
            Kind::Integer {
                min: 1,
                max: Some(MAX_REPEATS),
            },
            "Attacks per document and subject; 1 when absent.",
        ),
        field(
            "jobs",
            Kind::Integer {
                min: 1,
                max: Some(MAX_JOBS),
            },
            "Runs at a time; 8 when absent.",
        ),
        field(
            "seed",
            Kind::Integer {
                min: 0,
                max: Some(u64::MAX),
            },
            "Where chance comes from; 0 when absent.",
        ),
        field(
            "fail_fast",
            Kind::Flag,
            "Whether the campaign stops when an attack gets through.",
        ),
        field(
            "fail_on",
            FAIL_ON,
            "What counts as failure: exploited, partial, inconclusive, regression, tier=TIER or severity=LEVEL and worse, \
             utility<SHARE, exposed<SHARE; partial when absent.",
        ),
        field(
            "baseline",
            PATH,
            "The earlier result that this one is compared with.",
        ),
        field(
            "threshold",
            Kind::Share,
            "How likely a false alarm of the whole comparison with the baseline may be; 0.05 when absent.",
        ),
        field(
            "out",
            PATH,
            "The directory that gets the result, the traces and the reports; {time} in it is the time of the \
             campaign. `.proofhouse/results/{time}` when absent.",
        ),
        field(
            "reports",
            Kind::OneOrMore(&Kind::Choice(REPORTS)),
            "The reports that are written beside the result; html when absent.",
        ),
        field(
            "accepted",
            Kind::OneOrMore(&Kind::Type(&ACCEPTED)),
            "Findings that are accepted for a while: they are reported and do not fail the campaign.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static ACCEPTED: TypeSpec = TypeSpec {
    name: "Accepted",
    doc: "An accepted risk: one attack on one subject, until a date.",
    fields: &[
        needed(
            "id",
            Kind::SomeText,
            "The id of the attack, such as PROOF-001.",
        ),
        needed("subject", Kind::SomeText, "The name of the subject."),
        needed(
            "until",
            Kind::Called(
                "date, such as `2026-12-31`",
                &Kind::Matching("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
            ),
            "The last day on which it is accepted, in UTC; after it, the finding fails the campaign again.",
        ),
        needed(
            "reason",
            Kind::SomeText,
            "Why it is accepted; reports show it.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static FILTERS: TypeSpec = TypeSpec {
    name: "Filters",
    doc: "Which documents take part; each is a list of which one must fit.",
    fields: &[
        field("ids", TEXTS, "Ids; `*` stands for anything."),
        field("tags", TEXTS, "Tags."),
        field(
            "categories",
            Kind::OneOrMore(&Kind::Choice(Category::NAMES)),
            "Categories.",
        ),
        field(
            "severities",
            Kind::OneOrMore(&Kind::Choice(SeverityLevel::NAMES)),
            "Severity levels.",
        ),
        field(
            "protocols",
            Kind::OneOrMore(&Kind::Choice(PROTOCOLS)),
            "Protocols.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

const NAME: FieldSpec = needed(
    "name",
    NAME_OF_SUBJECT,
    "Its name in results and for `--subject`, unique in the file.",
);
const DEADLINE: FieldSpec = field(
    "deadline",
    DURATION,
    "The longest a run may take; 3m when absent.",
);
const BASE_URL: FieldSpec = field(
    "base_url",
    URL,
    "Where the model's provider is, if not at its usual address.",
);
const HEADERS: FieldSpec = field(
    "headers",
    VARIABLES,
    "Headers of requests to the agent; secrets are variables, such as `Bearer ${TOKEN}`.",
);

pub(super) static SIMULATION: TypeSpec = TypeSpec {
    name: "Simulation",
    doc: "A simulated agent, which needs no model and says nothing about yours.",
    fields: &[
        field(
            "name",
            NAME_OF_SUBJECT,
            "Its name; that of the simulation when absent.",
        ),
        needed("simulation", Kind::Choice(SIMULATIONS), "Which one."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MANIFEST: TypeSpec = TypeSpec {
    name: "Manifest",
    doc: "The agent of a manifest.",
    fields: &[
        NAME,
        needed(
            "manifest",
            PATH,
            "The file of the manifest, or a directory of manifests.",
        ),
        field(
            "agent",
            Kind::SomeText,
            "Which agent, where there are several.",
        ),
        field(
            "model",
            Kind::SomeText,
            "Its model, such as openai:MODEL, if not that of the manifest.",
        ),
        BASE_URL,
        field(
            "allow",
            NETWORKS,
            "Networks that its tools may reach beside this machine.",
        ),
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MODEL: TypeSpec = TypeSpec {
    name: "Model",
    doc: "A bare model behind a plain loop.",
    fields: &[
        NAME,
        needed("model", Kind::SomeText, "The model, such as openai:MODEL."),
        BASE_URL,
        field(
            "instructions",
            Kind::SomeText,
            "What the model is told first.",
        ),
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static COMMAND: TypeSpec = TypeSpec {
    name: "Command",
    doc: "A command that is started for every run.",
    fields: &[
        NAME,
        needed(
            "command",
            WORDS,
            "The program and its arguments, with placeholders such as {mcp_url} and {prompt}.",
        ),
        field(
            "directory",
            PATH,
            "Where it runs; in a directory of its own for every run when absent.",
        ),
        field(
            "copy_of",
            PATH,
            "Every run gets a copy of this directory to run in.",
        ),
        field(
            "environment",
            VARIABLES,
            "Variables to set for it; secrets are taken from ours, such as `${NAME}`.",
        ),
        field(
            "serves",
            Kind::Choice(SERVES),
            "What it serves at {port}; without it, it does one task and ends.",
        ),
        field(
            "ready",
            Kind::Type(&READY),
            "When it is ready; when its port is open if absent.",
        ),
        HEADERS,
        field(
            "mcp_config",
            MCP_CONFIG_FILE,
            "A configuration of MCP servers that is made to name the attack's.",
        ),
        field(
            "max_disk",
            SIZE,
            "Bytes that a run may write into its directory.",
        ),
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static READY: TypeSpec = TypeSpec {
    name: "Ready",
    doc: "When a command that serves is ready; one of the two.",
    fields: &[
        field(
            "line",
            Kind::SomeText,
            "When it prints a line with this text.",
        ),
        field(
            "url",
            Kind::SomeText,
            "When this URL, or this path at its port, answers with success.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MCP_CONFIG: TypeSpec = TypeSpec {
    name: "McpConfig",
    doc: "A configuration of MCP servers that is made to name the attack's.",
    fields: &[
        needed("file", PATH, "The file, such as .mcp.json."),
        field(
            "in_place",
            Kind::Flag,
            "Whether the file itself is rewritten and put back; a rewritten copy is at {mcp_config} otherwise.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static ENDPOINT: TypeSpec = TypeSpec {
    name: "Endpoint",
    doc: "An agent that runs already.",
    fields: &[
        NAME,
        needed("endpoint", Kind::Type(&URLS), "Where it is."),
        field(
            "listen",
            Kind::Type(&LISTEN),
            "Where it looks for its servers, so that the attack's listen there.",
        ),
        HEADERS,
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static URLS: TypeSpec = TypeSpec {
    name: "Urls",
    doc: "Where an agent is spoken to; at least one.",
    fields: &[
        field("ag_ui", URL, "Where it speaks AG-UI."),
        field("a2a", URL, "Where it speaks A2A."),
        field("mcp", URL, "Where it serves MCP."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static LISTEN: TypeSpec = TypeSpec {
    name: "Listen",
    doc: "Where an agent looks for its servers.",
    fields: &[
        field("mcp", ADDRESS, "Its MCP server, such as 127.0.0.1:8080."),
        field("a2a", ADDRESS, "The A2A agent that it asks."),
    ],
    extensions: false,
    exactly_one: None,
};

/// The kinds of subjects. The key that each is told by is the one it needs beside `name`; `model` comes
/// last, since a manifest may have it, too.
pub(super) static SUBJECTS: [(&str, &TypeSpec); 5] = [
    ("command", &COMMAND),
    ("endpoint", &ENDPOINT),
    ("manifest", &MANIFEST),
    ("simulation", &SIMULATION),
    ("model", &MODEL),
];

/// All other mappings, for the schema.
pub(super) static PARTS: [&TypeSpec; 6] =
    [&ACCEPTED, &FILTERS, &READY, &MCP_CONFIG, &URLS, &LISTEN];
