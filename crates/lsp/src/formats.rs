//! The formats that people write: how a file is recognized and checked, what its schema says, what codes mean.

use std::path::Path;

use proofhouse_campaign::cases::{self, is_cases_file};
use proofhouse_campaign::config::{self, ConfigVariables};
use proofhouse_campaign::document;
use proofhouse_detect::EXTENSION_FIELD;
use proofhouse_guard::policy;
use proofhouse_manifest::{self as manifest, Bundle};
use proofhouse_oatf::{CodeExplanation, ExplanationKind, ReadLimits, load_with};
use proofhouse_report as report;
use proofhouse_source::Diagnostic;
use proofhouse_subjects::bundles::{across, sort};
use proofhouse_tools::operator::{self, OperatorConfig};
use serde_json::Value;

/// Declares the formats: the name on the command line, what it is for, its schema and the page of its keys.
macro_rules! formats {
    ($( $(#[$about:meta])* $variant:ident $name:literal $for_whom:literal $schema:path, $page:expr; )+) => {
        /// A format with a JSON Schema.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FormatKind {
            $( $(#[$about])* $variant, )+
        }

        impl FormatKind {
            /// Every format.
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// The name on the command line and in the name of its schema.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// What it is for, in a few words.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self { $( Self::$variant => $for_whom, )+ }
            }

            /// Its JSON Schema.
            #[must_use]
            pub fn schema(self) -> Value {
                match self { $( Self::$variant => $schema(), )+ }
            }

            /// The page of its keys, if people write it.
            #[must_use]
            pub fn reference(self) -> Option<String> {
                let page: Option<fn() -> String> = match self { $( Self::$variant => $page, )+ };
                page.map(|page| page())
            }
        }
    };
}

formats! {
    /// Threat documents.
    Oatf "oatf" "Threat documents" proofhouse_oatf::json_schema, Some(proofhouse_oatf::reference);
    /// Tool manifests.
    Tool "tool" "Tool manifests" manifest::json_schema, Some(manifest::reference);
    /// Results of campaigns.
    Result "result" "Campaign results (result.json)" report::json_schema, None;
    /// Agent manifests.
    Agent "agent" "Agent manifests" manifest::agent_json_schema, Some(manifest::agent_reference);
    /// Trigger manifests.
    Trigger "trigger" "Trigger manifests" manifest::trigger_json_schema, Some(manifest::trigger_reference);
    /// Schedule manifests.
    Schedule "schedule" "Schedule manifests" manifest::schedule_json_schema, Some(manifest::schedule_reference);
    /// The configuration of a project.
    Config "config" "Project configuration (proofhouse.yaml)" config::json_schema, Some(config::reference);
    /// What the operator configures.
    Operator "operator" "The operator's settings file" operator::json_schema, Some(operator::reference);
    /// Labelled cases of threat documents.
    Cases "cases" "Labelled cases of threat documents" cases::json_schema, Some(cases::reference);
    /// Policies of the guard.
    Policy "policy" "Policies of the guard" policy::json_schema, Some(policy::reference);
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// The configuration of a project.
    Config,
    /// Labelled cases.
    Cases,
    /// A policy of the guard.
    Policy,
    /// What the operator configures.
    Operator,
    /// Manifests, one or several.
    Manifests,
    /// A threat document, which is whatever is nothing else.
    Document,
}

impl FileKind {
    /// What a file of this name with this text is. Standard input has no path.
    #[must_use]
    pub fn of(path: Option<&Path>, text: &str) -> Self {
        let name = path.map(|path| path.to_string_lossy()).unwrap_or_default();
        if config::is_meant_by(&name, text) {
            Self::Config
        } else if path.is_some_and(is_cases_file) {
            Self::Cases
        } else if Bundle::is_meant_by(text) {
            Self::Manifests
        } else if policy::is_meant_by(text) {
            Self::Policy
        } else if operator::is_meant_by(text) {
            Self::Operator
        } else {
            Self::Document
        }
    }

    /// What a file is, if its name or its keys say so. Editors open files of every program; `validate` is only given ours.
    #[must_use]
    pub fn recognized(path: Option<&Path>, text: &str) -> Option<Self> {
        let kind = Self::of(path, text);
        let is_ours =
            kind != Self::Document || path.is_some_and(document::is_twin_file) || is_threat(text);
        is_ours.then_some(kind)
    }

    /// The format of the part of a file that begins with this text; manifests say it in their `kind`.
    #[must_use]
    pub fn format(self, part: &str) -> FormatKind {
        match self {
            Self::Config => FormatKind::Config,
            Self::Cases => FormatKind::Cases,
            Self::Policy => FormatKind::Policy,
            Self::Operator => FormatKind::Operator,
            Self::Document => FormatKind::Oatf,
            Self::Manifests => {
                let kind = part.lines().find_map(|line| line.strip_prefix("kind:"));
                let kind = kind.unwrap_or_default();
                let kind = kind.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
                match kind.rsplit('/').next() {
                    Some("agent") => FormatKind::Agent,
                    Some("trigger") => FormatKind::Trigger,
                    Some("schedule") => FormatKind::Schedule,
                    _ => FormatKind::Tool,
                }
            }
        }
    }
}

/// Whether a text is meant to be a threat document: `oatf` or `attack` is a key at its top.
fn is_threat(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let says = |piece: &str| {
        let quote = |c: char| c == '"' || c == '\'';
        let piece = piece.trim_start_matches(quote);
        ["oatf", "attack"].iter().any(|key| {
            let rest = piece.strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start_matches(quote).trim_start().starts_with(':'))
        })
    };
    if text.trim_start_matches("---").trim_start().starts_with('{') {
        text.split(['{', ',']).map(str::trim_start).any(says)
    } else {
        text.lines().any(says)
    }
}

/// A file that was checked by itself.
#[derive(Debug)]
pub struct CheckedFile {
    /// What it is.
    pub kind: FileKind,
    /// What is wrong with it, by place.
    pub findings: Vec<Diagnostic>,
    /// Its manifests, which are to be checked with those of other files ([`across`]).
    pub bundle: Option<Bundle>,
}

/// Checks a file by itself. Manifests may name those of other files; [`check_alone`] counts what is not here as missing.
#[must_use]
pub fn check(path: Option<&Path>, text: &str, limits: &ReadLimits) -> CheckedFile {
    check_as(FileKind::of(path, text), path, text, limits)
}

/// Checks a file by itself as what it is said to be, whatever it looks like.
#[must_use]
pub fn check_as(
    kind: FileKind,
    path: Option<&Path>,
    text: &str,
    limits: &ReadLimits,
) -> CheckedFile {
    let (findings, bundle) = match kind {
        FileKind::Config => {
            // Its variables belong to where it is run.
            let directory = path.and_then(Path::parent).unwrap_or(Path::new(""));
            let read = config::read(text, directory, ConfigVariables::Unread, &|_| true);
            (read.1, None)
        }
        FileKind::Cases => (cases::read(text).1, None),
        FileKind::Policy => (policy::read(text).1, None),
        FileKind::Operator => {
            // Its variables belong to where it is used.
            let (_, mut findings) = OperatorConfig::read(text, &|_| None);
            findings.retain(|finding| finding.code != operator::NOT_SET);
            (findings, None)
        }
        FileKind::Manifests => {
            let (bundle, findings) = Bundle::read(text);
            (findings, Some(bundle))
        }
        FileKind::Document => {
            let mut findings = proofhouse_oatf::check(text, limits);
            // What is ours in it can be judged once the rest can be.
            if text.contains(EXTENSION_FIELD)
                && let Ok(loaded) = load_with(text, limits)
            {
                findings.extend(document::check(&loaded.document));
                sort(&mut findings);
            }
            (findings, None)
        }
    };
    CheckedFile {
        kind,
        findings,
        bundle,
    }
}

/// Checks a file as `proofhouse validate FILE` does: alone.
#[must_use]
pub fn check_alone(path: Option<&Path>, text: &str, limits: &ReadLimits) -> CheckedFile {
    let mut checked = check(path, text, limits);
    if let Some(bundle) = &checked.bundle {
        checked
            .findings
            .extend(across(&[bundle]).into_iter().flatten());
        sort(&mut checked.findings);
    }
    checked
}

/// The comment by which editors find the schema of a file.
#[must_use]
pub fn schema_line(place: &str) -> String {
    format!("# yaml-language-server: $schema={place}\n")
}

/// Where the schema of a format lies beside a file that names it.
#[must_use]
pub fn schema_place(kind: FormatKind) -> String {
    format!(".proofhouse/{}.schema.json", kind.name())
}

/// The codes about what operators configure that are never errors.
const OPERATOR_WARNINGS: &[&str] = &["OC-008", "OC-009", "OC-010", "OC-011"];

/// Explains a code, whatever its case; `None` when there is no such code.
#[must_use]
pub fn explain(code: &str) -> Option<CodeExplanation> {
    explanations().find(|explanation| explanation.code.eq_ignore_ascii_case(code.trim()))
}

/// Every code with its explanation: those of threat documents, of manifests, of what operators configure, of
/// `proofhouse.yaml`, of labelled cases, of policies and of our keys in threat documents.
pub fn explanations() -> impl Iterator<Item = CodeExplanation> {
    let tools = manifest::CODES.iter().chain(operator::CODES);
    let tools = tools
        .chain(config::CODES)
        .chain(cases::CODES)
        .chain(policy::CODES)
        .chain(document::CODES);
    let warnings = [
        manifest::WARNING_CODES,
        OPERATOR_WARNINGS,
        config::WARNING_CODES,
        cases::WARNING_CODES,
        policy::WARNING_CODES,
    ];
    let is_warning = move |code: &str| warnings.iter().any(|codes| codes.contains(&code));
    let tools = tools.map(move |(code, text)| CodeExplanation {
        spec_ref: "own",
        code,
        kind: if is_warning(code) {
            ExplanationKind::Warning
        } else {
            ExplanationKind::Error
        },
        title: (*text).to_owned(),
        text: (*text).to_owned(),
    });
    proofhouse_oatf::explanations().chain(tools)
}
