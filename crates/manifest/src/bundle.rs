//! Bundles: a file of one or more manifests, read whatever is wrong with some of them.

use proofhouse_source::format::FormatReader;
use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, ReadErrorKind, ReadLimits, Source, Span, SpanShift, YamlScalar,
    did_you_mean,
};
use serde_json::Value;

use super::agent::Agent;
use super::decode::ManifestDecoder;
use super::fields::{TYPES, VERSIONS};
use super::model::Tool;
use super::template_variables::TemplateVariables;
use super::triggers::{EventTrigger, Schedule};

/// How large a file of manifests may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleLimits {
    /// Bytes of the file.
    pub max_bytes: usize,
    /// Documents in it.
    pub max_documents: usize,
    /// Bytes of one document.
    pub max_document_bytes: usize,
}

impl Default for BundleLimits {
    /// 2 MB, 200 documents of 512 KB.
    fn default() -> Self {
        Self {
            max_bytes: 2_000_000,
            max_documents: 200,
            max_document_bytes: 512_000,
        }
    }
}

/// One document of a bundle.
#[derive(Debug, Clone)]
pub enum Manifest {
    /// A tool.
    Tool(Tool),
    /// An agent.
    Agent(Agent),
    /// A trigger.
    Trigger(EventTrigger),
    /// A schedule.
    Schedule(Schedule),
    /// A manifest of another type, kept as it is.
    Other(OtherManifest),
}

/// A manifest of a type that nothing is done with.
#[derive(Debug, Clone)]
pub struct OtherManifest {
    /// The version of the specification, such as `v1beta2`.
    pub version: String,
    /// What it is: `bundledescription`.
    pub kind: String,
    /// The document.
    pub value: Value,
}

/// The manifests of one file.
///
/// ```
/// use proofhouse_manifest::Bundle;
///
/// let (bundle, findings) = Bundle::read(r#"
/// kind: commonagents.info/v1beta2/tool
/// namespace: demo
/// name: clock
/// description: Tells the time.
/// actions:
///   - name: now
///     description: The time in UTC.
///     execute:
///       cel: {expression: "{'now': now}"}
/// "#);
/// assert!(findings.is_empty(), "{findings:?}");
/// assert_eq!(bundle.tools().next().unwrap().actions[0].name, "now");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// The documents that could be read, in order.
    pub manifests: Vec<Manifest>,
    /// The template variables that manifests need and that have no value. Such a bundle can be checked and not be used.
    pub unset_variables: Vec<String>,
}

impl Bundle {
    /// Reads a file of manifests with the usual limits.
    ///
    /// The findings are in the order of their places. A bundle is fit for use when none of them is an
    /// error; a document with one is left out.
    #[must_use]
    pub fn read(text: &str) -> (Self, Vec<Diagnostic>) {
        Self::read_within(text, &BundleLimits::default())
    }

    /// Reads a file of manifests.
    #[must_use]
    pub fn read_within(text: &str, limits: &BundleLimits) -> (Self, Vec<Diagnostic>) {
        let mut bundle = Self::default();
        if text.len() > limits.max_bytes {
            let message = format!(
                "the file has {} bytes; the limit is {}",
                text.len(),
                limits.max_bytes
            );
            return (bundle, vec![whole("TM-001", message)]);
        }
        let mut findings = Vec::new();
        let mut count = 0;
        let mut variables = TemplateVariables::default();
        for (start, piece) in documents(text) {
            count += 1;
            if count > limits.max_documents {
                let message = format!("the file has more than {} documents", limits.max_documents);
                findings.push(whole("TM-001", message));
                break;
            }
            let (piece, shift) = variables.put_in(piece, start, &mut findings);
            if let Some(manifest) = read_document(&piece, &shift, limits, &mut findings) {
                if let (1, Manifest::Other(description)) = (count, &manifest) {
                    variables = TemplateVariables::declared(&description.value);
                }
                bundle.manifests.push(manifest);
            }
        }
        if count == 0 {
            findings.push(whole(
                "TM-001",
                "there is no document in the file".to_owned(),
            ));
        }
        bundle.unset_variables = variables.into_unset();
        findings.sort_by_key(|finding| finding.span.map(|span| (span.offset, span.length)));
        (bundle, findings)
    }

    /// Whether a text says that it holds manifests: a document of it has a `kind` of the specification, or
    /// nearly one. Also texts that cannot be read to their end say so.
    ///
    /// ```
    /// use proofhouse_manifest::Bundle;
    /// assert!(Bundle::is_meant_by("# mine\nkind: commonagents.info/v1/tool\nname: [\n"));
    /// assert!(Bundle::is_meant_by("{\"kind\": \"commonagents.info/v1/tool\"}"));
    /// assert!(!Bundle::is_meant_by("oatf: \"0.1\"\nattack:\n  kind: commonagents.info/v1/tool\n"));
    /// ```
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        documents(text).into_iter().any(|(_, piece)| {
            let piece = piece.trim_start_matches('\u{feff}');
            let is_flow = piece
                .trim_start_matches("---")
                .trim_start()
                .starts_with('{');
            if is_flow {
                piece
                    .match_indices("kind")
                    .any(|(at, _)| says_kind(&piece[at..]))
            } else {
                let lines = piece.lines();
                let mut lines = lines.map(|line| line.trim_start_matches(['"', '\'']));
                lines.any(|line| says_kind(line) || line.starts_with("path_prefixes:"))
            }
        })
    }

    /// The tools among the manifests.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.manifests.iter().filter_map(|manifest| match manifest {
            Manifest::Tool(tool) => Some(tool),
            _ => None,
        })
    }

    /// The triggers among the manifests.
    pub fn triggers(&self) -> impl Iterator<Item = &EventTrigger> {
        self.manifests.iter().filter_map(|manifest| match manifest {
            Manifest::Trigger(trigger) => Some(trigger),
            _ => None,
        })
    }

    /// The schedules among the manifests.
    pub fn schedules(&self) -> impl Iterator<Item = &Schedule> {
        self.manifests.iter().filter_map(|manifest| match manifest {
            Manifest::Schedule(schedule) => Some(schedule),
            _ => None,
        })
    }

    /// The agents among the manifests.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.manifests.iter().filter_map(|manifest| match manifest {
            Manifest::Agent(agent) => Some(agent),
            _ => None,
        })
    }
}

/// Whether a text starts with the key `kind` and the start of a kind of the specification.
fn says_kind(text: &str) -> bool {
    let blank = |c: char| c == ' ' || c == '\t';
    text.strip_prefix("kind")
        .map(|rest| {
            rest.trim_start_matches(['"', '\''])
                .trim_start_matches(blank)
        })
        .and_then(|rest| rest.strip_prefix(':'))
        .map(|rest| rest.trim_start_matches(|c| blank(c) || c == '"' || c == '\''))
        .is_some_and(|rest| rest.starts_with("commonagent"))
}

fn whole(code: &'static str, message: String) -> Diagnostic {
    Diagnostic {
        severity: DiagnosticSeverity::Error,
        code,
        path: None,
        span: Some(Span {
            offset: 0,
            length: 0,
            line: 1,
            column: 1,
        }),
        message,
        help: None,
    }
}

/// The documents of a text and where they start. In YAML a line of `---` starts one wherever it
/// stands, also within a quoted or a block text. Pieces with nothing but comments
/// and directives are none.
fn documents(text: &str) -> Vec<(SpanShift, &str)> {
    let mut starts = vec![SpanShift::default()];
    let mut offset = 0;
    for (line, content) in text.split_inclusive('\n').enumerate() {
        if offset > 0
            && content.starts_with("---")
            && content[3..].starts_with(['\n', '\r', ' ', '\t']) | (content.len() == 3)
        {
            starts.push(SpanShift {
                offset,
                line,
                replaced: Vec::new(),
            });
        }
        offset += content.len();
    }
    let ends = starts
        .iter()
        .skip(1)
        .map(|start| start.offset)
        .chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| (start.clone(), &text[start.offset..end]))
        .filter(|(_, piece)| {
            piece.trim_start_matches('\u{feff}').lines().any(|line| {
                let line = line.trim();
                let empty = line.is_empty() || line.starts_with(['#', '%']);
                !(empty || line == "---" || line == "...")
            })
        })
        .collect()
}

fn read_document(
    text: &str,
    shift: &SpanShift,
    limits: &BundleLimits,
    findings: &mut Vec<Diagnostic>,
) -> Option<Manifest> {
    let read_limits = ReadLimits {
        max_bytes: limits.max_document_bytes,
        ..ReadLimits::default()
    };
    let (source, errors) = Source::read_leniently(text, &read_limits);
    let broken = !errors.is_empty();
    for error in errors {
        if error.kind != ReadErrorKind::Empty {
            findings.push(Diagnostic {
                severity: DiagnosticSeverity::Error,
                code: "TM-001",
                path: None,
                span: Some(shift.apply(error.span)),
                help: Some(error.help.to_owned()),
                message: error.message,
            });
        }
    }
    let source = source?;
    let mut decoder = ManifestDecoder::new(&source, shift.clone());
    let manifest = match kind(&source, &mut decoder) {
        Some((_, "tool")) => decoder.tool(source.root()).map(Manifest::Tool),
        Some((_, "agent")) => decoder.agent(source.root()).map(Manifest::Agent),
        Some((_, "trigger")) => decoder.trigger(source.root()).map(Manifest::Trigger),
        Some((_, "schedule")) => decoder.schedule(source.root()).map(Manifest::Schedule),
        Some((version, kind)) => {
            let value = decoder.value(source.root());
            Some(Manifest::Other(OtherManifest {
                version: version.to_owned(),
                kind: kind.to_owned(),
                value,
            }))
        }
        None => None,
    };
    let found = decoder.walk.into_findings();
    let wrong = found
        .iter()
        .any(|finding| finding.severity == DiagnosticSeverity::Error);
    findings.extend(found);
    manifest.filter(|_| !wrong && !broken)
}

/// The version and the type that the document says it is of.
fn kind(
    source: &Source,
    decoder: &mut ManifestDecoder<'_>,
) -> Option<(&'static str, &'static str)> {
    let Some(YamlScalar::Text(kind)) = source.root().get("kind").and_then(|kind| kind.scalar())
    else {
        if source.root().get("path_prefixes").is_some() {
            let message = "the configuration of a mount is skipped: whoever runs the agent says where its files are";
            let help = Some("name a directory with --files".to_owned());
            decoder.warn("TM-002", message.to_owned(), help);
            return None;
        }
        let help = Some("start with `kind: commonagents.info/v1beta2/tool`".to_owned());
        decoder.error("TM-005", "the document needs `kind`".to_owned(), help);
        return None;
    };
    let mut words = kind.splitn(3, '/');
    let found = (words.next(), words.next(), words.next());
    if let (Some("commonagents.info"), Some(version), Some(of)) = found {
        let version = VERSIONS.into_iter().find(|known| *known == version);
        let of = TYPES.into_iter().find(|known| *known == of);
        if let (Some(version), Some(of)) = (version, of) {
            return Some((version, of));
        }
    }
    let known: Vec<String> = VERSIONS
        .iter()
        .flat_map(|version| {
            TYPES
                .iter()
                .map(move |of| format!("commonagents.info/{version}/{of}"))
        })
        .collect();
    let near = did_you_mean(kind, known.iter().map(String::as_str));
    let shown: String = kind.chars().take(60).collect();
    let help = near.map(|near| format!("did you mean `{near}`?"));
    decoder.within(proofhouse_source::PathSegment::Key("kind"), |decoder| {
        decoder.warn(
            "TM-002",
            format!("`{shown}` is not a known kind; the document is skipped"),
            help,
        );
    });
    None
}
