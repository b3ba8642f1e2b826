//! What every code means, in a paragraph or two.

use crate::normalize::STEPS;
use crate::validate::RULES;

/// A code and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeExplanation {
    /// The code, for example `V-031`.
    pub code: &'static str,
    /// What kind of thing the code stands for.
    pub kind: ExplanationKind,
    /// One sentence.
    pub title: String,
    /// The whole text, in Markdown.
    pub text: String,
    /// Where the specification says so; `own` where it does not.
    pub spec_ref: &'static str,
}

/// What kind of thing a code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplanationKind {
    /// Breaking it makes a document invalid.
    Error,
    /// Worth a look.
    Warning,
    /// A step of normalization.
    Normalization,
}

impl std::fmt::Display for ExplanationKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Padded, because lists of codes are shown in columns.
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Normalization => "normalization",
        })
    }
}

/// Codes of the reader, which no rule of the specification covers.
const READER: &[(&str, &str)] = &[
    (
        "PH-001",
        "The text is not text: it holds NUL bytes or is not UTF-8.",
    ),
    (
        "PH-002",
        "The document is larger than the size limit, 4 MiB unless raised with `--max-size`.",
    ),
    ("PH-003", "The text holds no document."),
    (
        "PH-004",
        "The text holds several YAML documents; a threat document stands alone.",
    ),
    ("PH-005", "The text is not valid YAML 1.2."),
    (
        "PH-006",
        "The document is nested deeper than 128 levels, has more than 500,000 nodes, or has an `id` or `mode` of more than 1,024 bytes.",
    ),
    ("PH-007", "The document is not a mapping."),
    (
        "PH-008",
        "A mapping holds the same key twice; YAML readers disagree on which one counts.",
    ),
    (
        "PH-009",
        "A key is not part of the format. Fields of your own start with `x-`.",
    ),
    ("PH-010", "A value has the wrong type."),
    ("PH-011", "A field that is needed is missing."),
    (
        "PH-012",
        "A number does not fit 64 bits, or is infinite or not a number, which JSON lacks.",
    ),
    ("PH-013", "A mapping key is not a string."),
    (
        "PH-014",
        "A date is neither `YYYY-MM-DD` nor an ISO 8601 date-time with a time zone.",
    ),
    (
        "PH-015",
        "A pattern has both `condition` and operators of its own.",
    ),
];

/// Explains a code, whatever its case; `None` when there is no such code.
///
/// ```
/// let explanation = proofhouse_oatf::explain("v-031").unwrap();
/// assert!(explanation.title.starts_with("Actors have unique names"));
/// assert!(proofhouse_oatf::explain("V-999").is_none());
/// ```
#[must_use]
pub fn explain(code: &str) -> Option<CodeExplanation> {
    explanations().find(|explanation| explanation.code.eq_ignore_ascii_case(code.trim()))
}

/// Every code with its explanation.
pub fn explanations() -> impl Iterator<Item = CodeExplanation> {
    let rules = RULES.iter().map(|rule| {
        let kind = match rule.severity {
            proofhouse_source::DiagnosticSeverity::Error => ExplanationKind::Error,
            proofhouse_source::DiagnosticSeverity::Warning => ExplanationKind::Warning,
        };
        from_doc(rule.code, kind, rule.doc, rule.spec_ref)
    });
    let steps = STEPS.iter().map(|step| {
        from_doc(
            step.code,
            ExplanationKind::Normalization,
            step.doc,
            step.spec_ref,
        )
    });
    let reader = READER.iter().map(|(code, text)| CodeExplanation {
        code,
        kind: ExplanationKind::Error,
        title: (*text).to_owned(),
        text: (*text).to_owned(),
        spec_ref: "own",
    });
    rules.chain(steps).chain(reader)
}

/// Puts a doc comment's lines together: lines become sentences, empty lines paragraphs.
fn from_doc(
    code: &'static str,
    kind: ExplanationKind,
    lines: &[&str],
    spec_ref: &'static str,
) -> CodeExplanation {
    let mut paragraphs = vec![String::new()];
    for line in lines.iter().map(|line| line.trim()) {
        match paragraphs.last_mut() {
            _ if line.is_empty() => paragraphs.push(String::new()),
            Some(paragraph) => {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line);
            }
            None => {}
        }
    }
    CodeExplanation {
        code,
        kind,
        title: paragraphs[0].clone(),
        text: paragraphs.join("\n\n"),
        spec_ref,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_once() {
        let codes: Vec<&str> = explanations().map(|explanation| explanation.code).collect();
        for number in 1..=49 {
            assert!(
                codes.contains(&format!("V-{number:03}").as_str()),
                "V-{number:03}"
            );
        }
        for number in 1..=7 {
            assert!(
                codes.contains(&format!("W-{number:03}").as_str()),
                "W-{number:03}"
            );
        }
        for number in 1..=8 {
            assert!(
                codes.contains(&format!("N-{number:03}").as_str()),
                "N-{number:03}"
            );
        }
        let mut unique = codes.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), codes.len());
    }

    #[test]
    fn every_rule_cites_its_place() {
        for explanation in explanations().filter(|one| !one.code.starts_with("PH-")) {
            let place = explanation.spec_ref;
            assert!(place.contains('§'), "{}: {place}", explanation.code);
            // The chapter that lists all rules is the place of none.
            for listed in ["§11.1", "§11.2", "SDK §3.2", "SDK §3.3", "SDK §2"] {
                let mut cited = place.split(", ").flat_map(|part| part.split(" and "));
                let whole = |part: &str| part.trim_start_matches("format ") == listed;
                assert!(!cited.any(whole), "{}: {place}", explanation.code);
            }
        }
    }

    #[test]
    fn paragraphs_are_kept() {
        let explanation = explain("V-016").unwrap();
        assert_eq!(explanation.text.split("\n\n").count(), 2);
        assert_eq!(
            explanation.title,
            "Templates are closed: every `{{` has its `}}`."
        );
        assert_eq!(explain("PH-009").unwrap().kind.to_string(), "error");
        assert_eq!(explain("W-004").unwrap().kind.to_string(), "warning");
        assert_eq!(explain("n-003").unwrap().kind.to_string(), "normalization");
    }
}
