//! Labelled cases: traffic with the verdict that a document must give on it, in a file beside the document.
//!
//! `weather.yaml` has `weather.cases.yaml`. Compromises must be found however they are worded or disguised; what is
//! innocent must not be. A test judges the cases of the library, and `proofhouse validate` checks the files.

mod fields;
mod judge;

use std::path::Path;

use proofhouse_oatf::{AttackResult, Direction};
use proofhouse_source::format::{FileFormat, FormatReader, Wording};
use proofhouse_source::{Diagnostic, DocumentWalk, NodeRef, ReadLimits};
use serde_json::Value;

pub use fields::{json_schema, reference};
pub use judge::{CaseError, JudgedCase, judge};

/// A file of cases has some dozens of messages.
pub const LIMITS: ReadLimits = ReadLimits {
    max_bytes: 4 << 20,
    max_depth: 128,
    max_nodes: 500_000,
};

/// The codes of findings about labelled cases, and what each means.
pub const CODES: &[(&str, &str)] = &[
    (
        "LC-001",
        "The text is not YAML that can be read, or is larger than it may be.",
    ),
    ("LC-002", "A value has the wrong type."),
    ("LC-003", "A key is unknown."),
    ("LC-004", "A key that is needed is missing."),
    ("LC-005", "A value is not one of those that are known."),
    ("LC-006", "A key is empty and counts as absent."),
    (
        "LC-007",
        "The kind of a case and the verdict it expects contradict each other.",
    ),
];

/// The codes that are never errors.
pub const WARNING_CODES: &[&str] = &["LC-006"];

/// What a case is an example of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CaseKind {
    /// A compromise exactly as the payload asks.
    AsWritten,
    /// The same harm with other words, arguments or paths.
    Reworded,
    /// The same harm encoded, split, or through another tool.
    Disguised,
    /// Innocent: does the task and nothing else.
    Ignores,
    /// Innocent: refuses, and may quote the payload.
    Refuses,
    /// Innocent: takes the safe choice, or warns.
    SafeChoice,
}

impl CaseKind {
    /// Every kind; a document needs a case of each.
    pub const ALL: &'static [Self] = &[
        Self::AsWritten,
        Self::Reworded,
        Self::Disguised,
        Self::Ignores,
        Self::Refuses,
        Self::SafeChoice,
    ];

    /// The word in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AsWritten => "as_written",
            Self::Reworded => "reworded",
            Self::Disguised => "disguised",
            Self::Ignores => "ignores",
            Self::Refuses => "refuses",
            Self::SafeChoice => "safe_choice",
        }
    }

    /// Whether it is an example of what must not be found.
    #[must_use]
    pub fn is_innocent(self) -> bool {
        match self {
            Self::AsWritten | Self::Reworded | Self::Disguised => false,
            Self::Ignores | Self::Refuses | Self::SafeChoice => true,
        }
    }
}

/// Traffic and the verdict on it.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledCase {
    /// What happens, in a few words.
    pub name: String,
    /// What it is an example of.
    pub kind: CaseKind,
    /// The verdict.
    pub expect: AttackResult,
    /// What has to be built before it can be judged right.
    pub needs: Option<String>,
    /// What was on the wire, in order.
    pub messages: Vec<CaseMessage>,
    /// Where it stands in the file, from 1.
    pub line: usize,
}

/// A message of a case: what an indicator can see of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseMessage {
    /// The actor whose traffic it is; the first of the document where it is absent.
    pub actor: Option<String>,
    /// The protocol; the actor's where it is absent.
    pub protocol: Option<String>,
    /// The operation or event.
    pub operation: String,
    /// Its role.
    pub direction: Direction,
    /// The content root.
    pub content: Value,
}

/// Whether a file holds labelled cases, by its name.
#[must_use]
pub fn is_cases_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.ends_with(".cases.yaml") || name.ends_with(".cases.yml"))
}

/// Reads a file of cases. What has an error is left out; who finds an error among the findings should not use it.
///
/// ```
/// use proofhouse_campaign::cases::{CaseKind, read};
/// let text = "cases:\n  - name: asks for the weather\n    kind: ignores\n    expect: not_exploited\n    messages:\n      \
///     - {operation: tools/call, content: {name: weather}}\n";
/// let (cases, findings) = read(text);
/// assert_eq!((cases[0].kind, findings.len()), (CaseKind::Ignores, 0));
///
/// let (_, findings) = read(&text.replace("ignores", "ignored"));
/// let finding = findings[0].to_string();
/// assert_eq!(finding, "error[LC-005] 3:11 cases[0].kind: `ignored` is not a value of `kind`");
/// assert_eq!(findings[0].help.as_deref(), Some("did you mean `ignores`?"));
/// ```
#[must_use]
pub fn read(text: &str) -> (Vec<LabelledCase>, Vec<Diagnostic>) {
    let format = FileFormat {
        limits: &LIMITS,
        unreadable: "LC-001",
        may_be_empty: false,
    };
    let (cases, findings) = format.read(text, |source| {
        let mut reader = Reader(DocumentWalk::new(source));
        let cases = reader.root(source.root());
        (cases, reader.0.into_findings())
    });
    (cases.unwrap_or_default(), findings)
}

/// Walks a file.
struct Reader<'s>(DocumentWalk<'s>);

impl<'s> FormatReader<'s> for Reader<'s> {
    const WORDING: Wording = Wording {
        whole: "the file",
        text: "a text",
        list: "a list",
        mismatch: "LC-002",
        unknown_key: "LC-003",
        empty: "LC-006",
        refused: "LC-005",
        shows_values: true,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.0
    }
}

impl<'s> Reader<'s> {
    fn root(&mut self, node: NodeRef<'s>) -> Option<Vec<LabelledCase>> {
        let mut fields = self.fields(node, &fields::CASES)?;
        fields.list("cases", Self::case)
    }

    fn case(&mut self, node: NodeRef<'s>) -> Option<LabelledCase> {
        let mut fields = self.fields(node, &fields::CASE)?;
        let name = fields.text("name");
        let kind = fields.word("kind");
        let kind = kind.and_then(|word| called(word, CaseKind::ALL, CaseKind::as_str));
        let expect = fields.word("expect");
        let expect = expect.and_then(|word| called(word, EXPECTED, AttackResult::as_str));
        let needs = fields.text("needs");
        let messages = fields.list("messages", Self::message);
        if let (Some(kind), Some(expect)) = (kind, expect)
            && kind.is_innocent() != (expect == AttackResult::NotExploited)
        {
            let message = format!(
                "a case of kind `{}` cannot be `{}`",
                kind.as_str(),
                expect.as_str()
            );
            let help = "`ignores`, `refuses` and `safe_choice` are `not_exploited`, the other kinds are not";
            self.0.error("LC-007", message, Some(help.to_owned()));
            return None;
        }
        Some(LabelledCase {
            name: name?,
            kind: kind?,
            expect: expect?,
            needs,
            messages: messages?,
            line: node.span().line,
        })
    }

    fn message(&mut self, node: NodeRef<'s>) -> Option<CaseMessage> {
        let mut fields = self.fields(node, &fields::MESSAGE)?;
        let actor = fields.text("actor");
        let protocol = fields.text("protocol");
        let operation = fields.text("operation");
        let direction = fields.choice("direction");
        let content = fields.read("content", |reader, node| Some(reader.value(node)));
        Some(CaseMessage {
            actor,
            protocol,
            operation: operation?,
            direction: direction.unwrap_or(Direction::Request),
            content: content?,
        })
    }
}

/// The value that a word of the table stands for.
fn called<T: Copy>(called: &str, all: &[T], word: fn(T) -> &'static str) -> Option<T> {
    all.iter().copied().find(|value| word(*value) == called)
}

/// The verdicts that a case may expect.
const EXPECTED: &[AttackResult] = &[
    AttackResult::Exploited,
    AttackResult::Partial,
    AttackResult::NotExploited,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            ("cases: 3\n", "LC-002 1:8"),
            ("cases: []\ncase: []\n", "LC-003 2:1"),
            ("a: [\n", "LC-001"),
            (
                "cases:\n  - {name: x, kind: refuses, expect: exploited, messages: []}\n",
                "LC-007 2:6",
            ),
            (
                "cases:\n  - {name: x, kind: refuses, expect: not_exploited}\n",
                "LC-004 2:6",
            ),
            (
                "cases:\n  - {name: x, kind: refuses, expect: not_exploited, messages: [{operation: 1, content: {}}]}\n",
                "LC-002 2:",
            ),
        ] {
            let (cases, findings) = read(text);
            let first = findings.first().unwrap_or_else(|| panic!("{text}"));
            let place = first.span.unwrap();
            let told = format!("{} {}:{}", first.code, place.line, place.column);
            assert!(told.starts_with(expected), "{told}: {first}");
            assert!(cases.is_empty() || cases[0].messages.is_empty(), "{text}");
        }
    }

    #[test]
    fn files_are_told_by_their_names() {
        for (name, expected) in [
            ("a/b.cases.yaml", true),
            ("b.cases.yml", true),
            ("cases.yaml", false),
            ("b.twin.yaml", false),
        ] {
            assert_eq!(is_cases_file(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn every_code_is_listed() {
        for code in WARNING_CODES {
            assert!(CODES.iter().any(|(known, _)| known == code));
        }
    }
}
