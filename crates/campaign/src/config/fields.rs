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
            "The agents to attack. Default: both simulations.",
        ),
        field(
            "documents",
            PATHS,
            "Threat documents to run: files or directories. Default: the built-in library.",
        ),
        field(
            "filters",
            Kind::Type(&FILTERS),
            "Run only attacks that match every filter.",
        ),
        field(
            "prompt",
            Kind::SomeText,
            "The user's message, for attacks that do not define one.",
        ),
        field(
            "repeats",
            Kind::Integer {
                min: 1,
                max: Some(MAX_REPEATS),
            },
            "Runs per attack and subject. Default: 1.",
        ),
        field(
            "jobs",
            Kind::Integer {
                min: 1,
                max: Some(MAX_JOBS),
            },
            "Runs in parallel. Default: 8.",
        ),
        field(
            "seed",
            Kind::Integer {
                min: 0,
                max: Some(u64::MAX),
            },
            "Random seed. Default: 0.",
        ),
        field(
            "fail_fast",
            Kind::Flag,
            "Whether to stop at the first attack that gets through.",
        ),
        field(
            "fail_on",
            FAIL_ON,
            "When the campaign fails: exploited, partial, inconclusive, regression, tier=TIER or severity=LEVEL (or worse), \
             utility<SHARE, exposed<SHARE. Default: partial.",
        ),
        field(
            "baseline",
            PATH,
            "The result.json of an earlier campaign to compare with.",
        ),
        field(
            "threshold",
            Kind::Share,
            "Accepted probability that the comparison with the baseline reports a regression where there is none. Default: 0.05.",
        ),
        field(
            "out",
            PATH,
            "The directory for the result, the traces and the reports. {time} is replaced by the start time. \
             Default: `.proofhouse/results/{time}`.",
        ),
        field(
            "reports",
            Kind::OneOrMore(&Kind::Choice(REPORTS)),
            "The reports to write next to the result. Default: html.",
        ),
        field(
            "accepted",
            Kind::OneOrMore(&Kind::Type(&ACCEPTED)),
            "Findings accepted until a date: they are reported but do not fail the campaign.",
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
    doc: "Which attacks to run. Each filter is a list; an attack matches if one entry does.",
    fields: &[
        field("ids", TEXTS, "Ids; `*` matches any text."),
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
const DEADLINE: FieldSpec = field("deadline", DURATION, "Time limit of a run. Default: 3m.");
const BASE_URL: FieldSpec = field(
    "base_url",
    URL,
    "The base URL of the model's provider, if not the usual one.",
);
const HEADERS: FieldSpec = field(
    "headers",
    VARIABLES,
    "Headers to send to the agent. Write secrets as variables, such as `Bearer ${TOKEN}`.",
);

pub(super) static SIMULATION: TypeSpec = TypeSpec {
    name: "Simulation",
    doc: "A simulated agent, which needs no model and says nothing about yours.",
    fields: &[
        field(
            "name",
            NAME_OF_SUBJECT,
            "Its name. Default: the name of the simulation.",
        ),
        needed("simulation", Kind::Choice(SIMULATIONS), "The simulation."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MANIFEST: TypeSpec = TypeSpec {
    name: "Manifest",
    doc: "An agent from a manifest.",
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
            "The agent's name, if the manifest has several.",
        ),
        field(
            "model",
            Kind::SomeText,
            "The model to use instead of the manifest's, such as openai:MODEL.",
        ),
        BASE_URL,
        field(
            "allow",
            NETWORKS,
            "Networks its tools may connect to besides this machine.",
        ),
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MODEL: TypeSpec = TypeSpec {
    name: "Model",
    doc: "A model without an agent.",
    fields: &[
        NAME,
        needed("model", Kind::SomeText, "The model, such as openai:MODEL."),
        BASE_URL,
        field("instructions", Kind::SomeText, "The system prompt."),
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
            "The working directory. Default: a new directory for every run.",
        ),
        field(
            "copy_of",
            PATH,
            "Run in a copy of this directory; every run gets a new copy.",
        ),
        field(
            "environment",
            VARIABLES,
            "Environment variables to set. `${NAME}` is replaced from the environment of Proofhouse.",
        ),
        field(
            "serves",
            Kind::Choice(SERVES),
            "The protocol it serves at {port}. Without it, the command does one task and exits.",
        ),
        field(
            "ready",
            Kind::Type(&READY),
            "How to tell that it is ready. Default: its port is open.",
        ),
        HEADERS,
        field(
            "mcp_config",
            MCP_CONFIG_FILE,
            "An MCP configuration file whose servers are replaced by the attack's.",
        ),
        field(
            "max_disk",
            SIZE,
            "The most a run may write to its directory, in bytes.",
        ),
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static READY: TypeSpec = TypeSpec {
    name: "Ready",
    doc: "How to tell that the server is ready: `line` or `url`.",
    fields: &[
        field(
            "line",
            Kind::SomeText,
            "Ready when it prints a line with this text.",
        ),
        field(
            "url",
            Kind::SomeText,
            "Ready when this URL, or this path at its port, answers with success.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MCP_CONFIG: TypeSpec = TypeSpec {
    name: "McpConfig",
    doc: "An MCP configuration file whose servers are replaced by the attack's.",
    fields: &[
        needed("file", PATH, "The file, such as .mcp.json."),
        field(
            "in_place",
            Kind::Flag,
            "Whether to rewrite the file itself and restore it after the run. Otherwise a changed copy is at {mcp_config}.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static ENDPOINT: TypeSpec = TypeSpec {
    name: "Endpoint",
    doc: "An agent that is already running.",
    fields: &[
        NAME,
        needed("endpoint", Kind::Type(&URLS), "Its URLs."),
        field(
            "listen",
            Kind::Type(&LISTEN),
            "Addresses where the agent expects its servers; the attack listens there.",
        ),
        HEADERS,
        DEADLINE,
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static URLS: TypeSpec = TypeSpec {
    name: "Urls",
    doc: "URLs of the running agent; at least one.",
    fields: &[
        field("ag_ui", URL, "Its AG-UI URL."),
        field("a2a", URL, "Its A2A URL."),
        field("mcp", URL, "Its MCP URL."),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static LISTEN: TypeSpec = TypeSpec {
    name: "Listen",
    doc: "Addresses where the agent expects its servers.",
    fields: &[
        field(
            "mcp",
            ADDRESS,
            "The address of its MCP server, such as 127.0.0.1:8080.",
        ),
        field(
            "a2a",
            ADDRESS,
            "The address of the A2A agent that it calls.",
        ),
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
