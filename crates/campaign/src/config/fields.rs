//! The keys of `proofhouse.yaml`: one table that the reader and the JSON Schema share.

use proofhouse_oatf::{Category, SeverityLevel};

/// A mapping with known keys.
#[derive(Debug)]
pub(super) struct TypeSpec {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) fields: &'static [FieldSpec],
}

/// One key of a mapping.
#[derive(Debug)]
pub(super) struct FieldSpec {
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) doc: &'static str,
}

/// What a key may hold. Where a list is meant, one value stands for a list of one.
#[derive(Debug)]
pub(super) enum Kind {
    /// The version of the format.
    Version,
    /// The name of a subject.
    Name,
    Text,
    Flag,
    Whole {
        min: u64,
        max: u64,
    },
    /// A number from 0 to 1.
    Share,
    /// Such as `90s` or `5m`.
    Duration,
    /// Bytes, such as `8M`.
    Size,
    /// A file or directory, relative to the file that names it.
    Path,
    Paths,
    Url,
    /// Such as `127.0.0.1:8080`.
    Address,
    /// Such as `10.1.0.0/16`.
    Networks,
    Texts,
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    FailOn,
    /// One text that is split as a shell would, or a list of words.
    Command,
    /// Names to texts with variables of the environment.
    Variables,
    Type(&'static TypeSpec),
    /// A file, or a mapping that says more.
    McpConfig,
    Subjects,
}

const fn field(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec {
        key,
        kind,
        required: false,
        doc,
    }
}

const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec {
        key,
        kind,
        required: true,
        doc,
    }
}

impl TypeSpec {
    pub(super) fn keys(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.key).collect()
    }

    pub(super) fn field(&self, key: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// The protocols that documents can be filtered by.
pub(super) const PROTOCOLS: &[&str] = proofhouse_oatf::Protocol::NAMES;
/// The simulations.
pub(super) const SIMULATIONS: &[&str] = &["sim:gullible", "sim:careful"];
/// What a command may serve.
pub(super) const SERVES: &[&str] = &["ag-ui", "a2a", "mcp"];
/// The formats of reports that can be written beside a result.
pub(super) const REPORTS: &[&str] = crate::report::FORMAT_NAMES;
/// The most repeats, as on the command line.
pub(super) const MAX_REPEATS: u64 = 10_000;
/// The most runs at a time, as on the command line.
pub(super) const MAX_JOBS: u64 = 256;

pub(super) static CONFIG: TypeSpec = TypeSpec {
    name: "Config",
    doc: "What `proofhouse run` does in this project.",
    fields: &[
        needed(
            "proofhouse",
            Kind::Version,
            "The version of this format, which is 1.",
        ),
        field(
            "subjects",
            Kind::Subjects,
            "Who is attacked; both simulations when absent.",
        ),
        field(
            "documents",
            Kind::Paths,
            "Threat documents: files, or directories searched for them; the library when absent.",
        ),
        field(
            "filters",
            Kind::Type(&FILTERS),
            "Only documents that fit all of these take part.",
        ),
        field(
            "prompt",
            Kind::Text,
            "What the user asks, for documents that do not say it themselves.",
        ),
        field(
            "repeats",
            Kind::Whole {
                min: 1,
                max: MAX_REPEATS,
            },
            "Attacks per document and subject; 1 when absent.",
        ),
        field(
            "jobs",
            Kind::Whole {
                min: 1,
                max: MAX_JOBS,
            },
            "Runs at a time; 8 when absent.",
        ),
        field(
            "seed",
            Kind::Whole {
                min: 0,
                max: u64::MAX,
            },
            "Where chance comes from; 0 when absent.",
        ),
        field(
            "early_stop",
            Kind::Flag,
            "Whether repeats that cannot change the answer are left out.",
        ),
        field(
            "fail_fast",
            Kind::Flag,
            "Whether the campaign stops when an attack gets through.",
        ),
        field(
            "fail_on",
            Kind::FailOn,
            "What counts as failure: exploited, regression, tier=TIER or severity=LEVEL and worse; exploited \
             when absent.",
        ),
        field(
            "baseline",
            Kind::Path,
            "The earlier result that this one is compared with.",
        ),
        field(
            "threshold",
            Kind::Share,
            "How unlikely a difference to the baseline must be by chance; 0.05 when absent.",
        ),
        field(
            "out",
            Kind::Path,
            "The directory that gets the result, the traces and the reports; {time} in it is the time of the \
             campaign.",
        ),
        field(
            "reports",
            Kind::Choices(REPORTS),
            "The reports that are written into `out`; html when absent.",
        ),
    ],
};

pub(super) static FILTERS: TypeSpec = TypeSpec {
    name: "Filters",
    doc: "Which documents take part; each is a list of which one must fit.",
    fields: &[
        field("ids", Kind::Texts, "Ids; `*` stands for anything."),
        field("tags", Kind::Texts, "Tags."),
        field("categories", Kind::Choices(Category::NAMES), "Categories."),
        field(
            "severities",
            Kind::Choices(SeverityLevel::NAMES),
            "Severity levels.",
        ),
        field("protocols", Kind::Choices(PROTOCOLS), "Protocols."),
    ],
};

const NAME: FieldSpec = needed(
    "name",
    Kind::Name,
    "Its name in results and for `--subject`, unique in the file.",
);
const DEADLINE: FieldSpec = field(
    "deadline",
    Kind::Duration,
    "The longest a run may take; 3m when absent.",
);
const BASE_URL: FieldSpec = field(
    "base_url",
    Kind::Url,
    "Where the model's provider is, if not at its usual address.",
);
const HEADERS: FieldSpec = field(
    "headers",
    Kind::Variables,
    "Headers of requests to the agent; secrets are variables, such as `Bearer ${TOKEN}`.",
);

pub(super) static SIMULATION: TypeSpec = TypeSpec {
    name: "Simulation",
    doc: "A simulated agent, which needs no model and says nothing about yours.",
    fields: &[
        field(
            "name",
            Kind::Name,
            "Its name; that of the simulation when absent.",
        ),
        needed("simulation", Kind::Choice(SIMULATIONS), "Which one."),
    ],
};

pub(super) static MANIFEST: TypeSpec = TypeSpec {
    name: "Manifest",
    doc: "The agent of a manifest.",
    fields: &[
        NAME,
        needed(
            "manifest",
            Kind::Path,
            "The file of the manifest, or a directory of manifests.",
        ),
        field("agent", Kind::Text, "Which agent, where there are several."),
        field(
            "model",
            Kind::Text,
            "Its model, such as openai:MODEL, if not that of the manifest.",
        ),
        BASE_URL,
        field(
            "allow",
            Kind::Networks,
            "Networks that its tools may reach beside this machine.",
        ),
        DEADLINE,
    ],
};

pub(super) static MODEL: TypeSpec = TypeSpec {
    name: "Model",
    doc: "A bare model behind a plain loop.",
    fields: &[
        NAME,
        needed("model", Kind::Text, "The model, such as openai:MODEL."),
        BASE_URL,
        field("instructions", Kind::Text, "What the model is told first."),
        DEADLINE,
    ],
};

pub(super) static COMMAND: TypeSpec = TypeSpec {
    name: "Command",
    doc: "A command that is started for every run.",
    fields: &[
        NAME,
        needed(
            "command",
            Kind::Command,
            "The program and its arguments, with placeholders such as {mcp_url} and {prompt}.",
        ),
        field(
            "directory",
            Kind::Path,
            "Where it runs; in a directory of its own for every run when absent.",
        ),
        field(
            "copy_of",
            Kind::Path,
            "Every run gets a copy of this directory to run in.",
        ),
        field(
            "environment",
            Kind::Variables,
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
            Kind::McpConfig,
            "A configuration of MCP servers that is made to name the attack's.",
        ),
        field(
            "max_disk",
            Kind::Size,
            "Bytes that a run may write into its directory.",
        ),
        DEADLINE,
    ],
};

pub(super) static READY: TypeSpec = TypeSpec {
    name: "Ready",
    doc: "When a command that serves is ready; one of the two.",
    fields: &[
        field("line", Kind::Text, "When it prints a line with this text."),
        field(
            "url",
            Kind::Text,
            "When this URL, or this path at its port, answers with success.",
        ),
    ],
};

pub(super) static MCP_CONFIG: TypeSpec = TypeSpec {
    name: "McpConfig",
    doc: "A configuration of MCP servers that is made to name the attack's.",
    fields: &[
        needed("file", Kind::Path, "The file, such as .mcp.json."),
        field(
            "in_place",
            Kind::Flag,
            "Whether the file itself is rewritten and put back; a rewritten copy is at {mcp_config} otherwise.",
        ),
    ],
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
};

pub(super) static URLS: TypeSpec = TypeSpec {
    name: "Urls",
    doc: "Where an agent is spoken to; at least one.",
    fields: &[
        field("ag_ui", Kind::Url, "Where it speaks AG-UI."),
        field("a2a", Kind::Url, "Where it speaks A2A."),
        field("mcp", Kind::Url, "Where it serves MCP."),
    ],
};

pub(super) static LISTEN: TypeSpec = TypeSpec {
    name: "Listen",
    doc: "Where an agent looks for its servers.",
    fields: &[
        field(
            "mcp",
            Kind::Address,
            "Its MCP server, such as 127.0.0.1:8080.",
        ),
        field("a2a", Kind::Address, "The A2A agent that it asks."),
    ],
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
pub(super) static PARTS: [&TypeSpec; 5] = [&FILTERS, &READY, &MCP_CONFIG, &URLS, &LISTEN];
