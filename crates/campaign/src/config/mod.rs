//! `proofhouse.yaml`: what the campaigns of a project are, in one file beside it.
//!
//! `${NAME}` in headers, variables and URLs is a variable of the environment, as in what operators configure.
//! Secrets do not stand in the file, and no finding shows a value.

mod duration;
mod fields;
mod mask;
mod reader;
mod schema;
mod secrets;
mod subjects;
mod write;

use std::path::{Path, PathBuf};

use proofhouse_source::format::{FileFormat, FormatReader};
use proofhouse_source::{Diagnostic, NodeRef, ReadLimits, YamlScalar};
use proofhouse_subjects::spec::SubjectSpec;

use crate::accepted::{self, AcceptedRisk};
use crate::gates::FailOn;
use crate::plan::DocumentFilter;
use crate::report_format::ReportFormat;
pub use duration::{InvalidDuration, duration, positive_duration};
pub(crate) use fields::MAX_REPEATS;
pub use reader::ConfigVariables;
use reader::{ConfigFields, ConfigReader};
pub use schema::{json_schema, reference};
pub use secrets::{looks_secret, sounds_secret};
pub use write::{Draft, text};

/// What the file is called.
pub const FILE: &str = "proofhouse.yaml";

/// A configuration that people write has a few KiB; one that a program writes, some more.
pub const LIMITS: ReadLimits = ReadLimits {
    max_bytes: 1 << 20,
    max_depth: 32,
    max_nodes: 50_000,
};

/// The version of the format that is read.
const VERSION: i64 = 1;

/// The codes of findings about the file, and what each means.
pub const CODES: &[(&str, &str)] = &[
    (
        "PC-001",
        "The text is not YAML that can be read, or is larger than it may be.",
    ),
    ("PC-002", "A value has the wrong type."),
    (
        "PC-003",
        "A key is unknown, or does not belong to this kind of subject.",
    ),
    ("PC-004", "A key that is needed is missing."),
    ("PC-005", "A value cannot be used."),
    ("PC-006", "An environment variable is not set."),
    ("PC-007", "A `${` is not the start of a variable."),
    ("PC-008", "A secret stands in the file."),
    ("PC-009", "A subject is of no kind, or of several."),
    ("PC-010", "A key is empty and counts as absent."),
    ("PC-011", "A file or directory that is named is not there."),
    ("PC-012", "Two subjects have one name."),
    (
        "PC-013",
        "Two keys do not go together, or one needs another.",
    ),
];

/// The codes that are never errors.
pub const WARNING_CODES: &[&str] = &["PC-010"];

/// What a file says; what it does not say is absent.
#[derive(Debug, Default)]
pub struct ProjectConfig {
    /// Who is attacked.
    pub subjects: Vec<SubjectSpec>,
    /// Threat documents: files, or directories searched for them.
    pub documents: Vec<PathBuf>,
    /// Which documents take part.
    pub filter: DocumentFilter,
    /// What the user asks, for documents that do not say it themselves.
    pub prompt: Option<String>,
    /// Attacks per document and subject.
    pub repeats: Option<u32>,
    /// Runs at a time.
    pub jobs: Option<u16>,
    /// The random seed.
    pub seed: Option<u64>,
    /// Whether the campaign stops when an attack gets through.
    pub fail_fast: Option<bool>,
    /// What counts as failure.
    pub fail_on: Vec<FailOn>,
    /// The earlier result that this one is compared with.
    pub baseline: Option<PathBuf>,
    /// How likely a false alarm of the whole comparison with the baseline may be.
    pub threshold: Option<f64>,
    /// The directory that gets the result, the traces and the reports.
    pub out: Option<PathBuf>,
    /// The reports that are written there.
    pub reports: Vec<ReportFormat>,
    /// Findings that are accepted for a while.
    pub accepted: Vec<AcceptedRisk>,
}

/// Whether a text, of a file of this name, is meant to be such a configuration: it has the key `proofhouse`
/// at its top, or the file is called so.
#[must_use]
pub fn is_meant_by(name: &str, text: &str) -> bool {
    let file = Path::new(name).file_name();
    if file.is_some_and(|file| file == FILE) {
        return true;
    }
    let says = |line: &str| {
        let line = line.trim_start_matches(['\u{feff}', '{', '"', '\'', ' ']);
        let rest = line.strip_prefix("proofhouse");
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
    };
    let is_flow = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{');
    text.lines()
        .filter(|line| is_flow || !line.starts_with(' '))
        .any(says)
}

/// What of a text may be shown.
#[must_use]
pub fn shown(text: &str) -> String {
    mask::masked(text)
}

/// Reads a file. Paths in it are relative to `directory`. The variables of subjects that nobody `wants` are
/// not looked up.
///
/// What has an error is left out; who finds an error among the findings should not use it.
#[must_use]
pub fn read(
    text: &str,
    directory: &Path,
    variables: ConfigVariables<'_>,
    wants: &dyn Fn(&str) -> bool,
) -> (ProjectConfig, Vec<Diagnostic>) {
    let format = FileFormat {
        limits: &LIMITS,
        unreadable: "PC-001",
        may_be_empty: false,
    };
    let (config, findings) = format.read(text, |source| {
        let mut reader = ConfigReader::new(source, directory, variables);
        let config = root(&mut reader, source.root(), wants);
        (config, reader.into_findings())
    });
    (config.unwrap_or_default(), findings)
}

fn root<'s>(
    reader: &mut ConfigReader<'s, '_>,
    node: NodeRef<'s>,
    wants: &dyn Fn(&str) -> bool,
) -> Option<ProjectConfig> {
    let mut fields = reader.fields(node, &fields::CONFIG)?;
    fields.read("proofhouse", |reader, node| {
        if node.scalar() != Some(YamlScalar::Int(VERSION)) {
            reader.unusable("write `proofhouse: 1`; other versions are not known");
        }
        Some(())
    });
    let subjects = fields.read("subjects", |reader, node| {
        Some(subjects::read(reader, node, wants))
    });
    let documents = fields.read("documents", |reader, node| {
        Some(reader.one_or_more(node, ConfigReader::existing))
    });
    let filter = fields.read("filters", |reader, node| filter(reader, node));
    let conditions = fields.read("fail_on", |reader, node| {
        Some(reader.one_or_more(node, |reader, item| {
            reader.parsed(item, str::parse::<FailOn>)
        }))
    });
    let conditions = conditions.unwrap_or_default();
    if conditions.contains(&FailOn::Regression) && !fields.has("baseline") {
        let help = Some("name the earlier result with `baseline`");
        fields.clash(
            "fail_on",
            "`fail_on: regression` compares with nothing",
            help,
        );
    }
    let fail_fast = fields.flag("fail_fast");
    if fail_fast == Some(true) && fields.has("baseline") {
        fields.clash(
            "fail_fast",
            "a campaign that stops on what it sees cannot be compared with a `baseline`",
            Some("take one of them out"),
        );
    }
    let accepted = fields.read("accepted", |reader, node| {
        let mut known: Vec<AcceptedRisk> = Vec::new();
        Some(reader.one_or_more(node, |reader, node| {
            let risk = accepted(reader, node)?;
            accept_once(reader, &mut known, &risk);
            Some(risk)
        }))
    });
    let reports = fields.words("reports").into_iter();
    Some(ProjectConfig {
        subjects: subjects.unwrap_or_default(),
        documents: documents.unwrap_or_default(),
        filter: filter.unwrap_or_default(),
        prompt: fields.some_text("prompt"),
        repeats: fields.whole("repeats"),
        jobs: fields.whole("jobs"),
        seed: fields.whole("seed"),
        fail_fast,
        fail_on: conditions,
        baseline: fields.existing("baseline"),
        threshold: fields.share("threshold"),
        out: fields.path("out"),
        reports: reports.filter_map(ReportFormat::named).collect(),
        accepted: accepted.unwrap_or_default(),
    })
}

/// Says so if a finding was accepted before: which of the two dates counts would depend on their order.
fn accept_once(
    reader: &mut ConfigReader<'_, '_>,
    known: &mut Vec<AcceptedRisk>,
    risk: &AcceptedRisk,
) {
    let mut same = known.iter();
    let same = same.find(|other| other.id == risk.id && other.subject == risk.subject);
    if let Some(other) = same {
        let message = format!(
            "{} on {} is accepted twice, until {} and until {}",
            risk.id, risk.subject, other.until, risk.until
        );
        reader.error("PC-005", &message, Some("keep one of the two entries"));
    }
    known.push(risk.clone());
}

fn accepted<'s>(reader: &mut ConfigReader<'s, '_>, node: NodeRef<'s>) -> Option<AcceptedRisk> {
    let mut fields = reader.fields(node, &fields::ACCEPTED)?;
    let id = fields.some_text("id");
    let subject = fields.some_text("subject");
    let reason = fields.some_text("reason");
    let until = fields.read("until", |reader, node| reader.parsed(node, accepted::date));
    // What is missing was told.
    Some(AcceptedRisk {
        id: id?,
        subject: subject?,
        until: until?,
        reason: reason?,
    })
}

fn filter<'s>(reader: &mut ConfigReader<'s, '_>, node: NodeRef<'s>) -> Option<DocumentFilter> {
    let mut fields = reader.fields(node, &fields::FILTERS)?;
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
    Some(DocumentFilter {
        ids: fields.some_texts("ids"),
        tags: fields.some_texts("tags"),
        categories: owned(fields.words("categories")),
        severities: owned(fields.words("severities")),
        protocols: owned(fields.words("protocols")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"proofhouse: 1
subjects:
  - sim:careful
  - {name: a, command: 'x "y z"', environment: {A_KEY: "${A}"}, ready: {line: x}, serves: mcp}
  - {name: b, endpoint: {mcp: "http://ü/${B}"}, listen: {a2a: "127.0.0.1:1"}, headers: {X: y}}
  - {name: c, model: sim:careful, deadline: 5m}
filters: {tags: [x], severities: low}
repeats: 3
threshold: 0.5
fail_on: tier=local_action
"#;

    fn findings(text: &str) -> Vec<Diagnostic> {
        let lookup = |name: &str| (name == "A").then(|| "1".to_owned());
        let directory = Path::new("/nowhere");
        read(text, directory, ConfigVariables::From(&lookup), &|_| true).1
    }

    #[test]
    fn no_part_of_a_file_breaks_the_reader() {
        let cuts = TEXT.char_indices().map(|(at, _)| at);
        for cut in cuts {
            let without = format!(
                "{}{}",
                &TEXT[..cut],
                TEXT[cut..].get(1..).unwrap_or_default()
            );
            for text in [&TEXT[..cut], &TEXT[cut..], &without] {
                for finding in findings(text) {
                    let span = finding.span.unwrap();
                    assert!(text.get(span.range()).is_some(), "{finding} in {text:?}");
                }
                let shown = shown(text);
                assert_eq!(shown.len(), text.len());
                assert_eq!(shown.lines().count(), text.lines().count());
                let _ = is_meant_by("x.yaml", text);
            }
        }
    }

    #[test]
    fn only_those_who_take_part_need_their_variables() {
        let codes = |wants: &dyn Fn(&str) -> bool| -> Vec<&'static str> {
            let lookup = |_: &str| None;
            let (_, findings) = read(TEXT, Path::new(""), ConfigVariables::From(&lookup), wants);
            findings.iter().map(|finding| finding.code).collect()
        };
        assert_eq!(codes(&|_| true), ["PC-006", "PC-006"]);
        assert_eq!(codes(&|name| name == "a"), ["PC-006"]);
        assert_eq!(codes(&|name| name == "c"), [""; 0]);
    }

    #[test]
    fn a_finding_is_accepted_once() {
        let accepted = "accepted:\n  - {id: A, subject: s, until: 2026-01-01, reason: x}\n";
        let other =
            |id: &str| format!("  - {{id: {id}, subject: s, until: 2099-01-01, reason: y}}\n");
        let of = |id: &str| findings(&format!("proofhouse: 1\n{accepted}{}", other(id)));
        assert_eq!(of("B"), []);
        let twice = of("A");
        assert_eq!(twice.len(), 1, "{twice:?}");
        assert_eq!(twice[0].span.as_ref().unwrap().line, 4);
        let message = "A on s is accepted twice, until 2026-01-01 and until 2099-01-01";
        assert_eq!(twice[0].message, message);
    }

    #[test]
    fn the_mark_is_at_the_top() {
        for (name, text, expected) in [
            ("x.yaml", "proofhouse: 1\n", true),
            ("x.yaml", "# c\n\"proofhouse\": 1\n", true),
            ("x.yaml", "{\n  \"proofhouse\": 1}", true),
            ("a/proofhouse.yaml", "", true),
            ("x.yaml", "attack:\n  proofhouse: 1\n", false),
            ("x.yaml", "proofhouses: 1\nx-proofhouse: 1\n", false),
            ("my-proofhouse.yaml", "oatf: '0.1'\n", false),
        ] {
            assert_eq!(is_meant_by(name, text), expected, "{name} {text:?}");
        }
    }
}
