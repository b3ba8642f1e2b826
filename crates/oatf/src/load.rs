//! `load` and `check`: the entry points in one call, for programs and for authors.

use std::collections::HashSet;

use proofhouse_source::{Diagnostic, ReadLimits};

use crate::error::{OatfError, ParseError};
use crate::model::Document;
use crate::parse::{Understood, parse_leniently, parse_with};
use crate::{normalize, validate};

/// A document that is ready for use, and what is doubtful about it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadResult {
    /// The normalized document.
    pub document: Document,
    /// What is allowed but doubtful.
    pub warnings: Vec<Diagnostic>,
}

/// Parses, validates and normalizes.
///
/// ```
/// let loaded = proofhouse_oatf::load(r#"
/// oatf: "0.1"
/// attack:
///   execution: {mode: mcp_server, state: {tools: []}}
/// "#).unwrap();
/// assert_eq!(loaded.document.attack.name.as_deref(), Some("Untitled"));
/// ```
///
/// # Errors
///
/// Returns the errors of the first stage that fails.
pub fn load(text: &str) -> Result<LoadResult, Vec<OatfError>> {
    load_with(text, &ReadLimits::default())
}

/// Parses with limits of the caller's, validates and normalizes.
///
/// ```
/// use proofhouse_oatf::{ReadLimits, load_with};
/// let limits = ReadLimits { max_bytes: 20, ..ReadLimits::default() };
/// let errors = load_with("oatf: \"0.1\"\nattack: {execution: {mode: mcp_server, state: {}}}", &limits).unwrap_err();
/// assert!(errors[0].to_string().contains("PH-002"));
/// ```
///
/// # Errors
///
/// Returns the errors of the first stage that fails.
pub fn load_with(text: &str, limits: &ReadLimits) -> Result<LoadResult, Vec<OatfError>> {
    let document = parse_with(text, limits)
        .map_err(|errors| errors.into_iter().map(OatfError::Parse).collect::<Vec<_>>())?;
    let result = validate(&document);
    if !result.is_valid() {
        return Err(result
            .errors
            .into_iter()
            .map(OatfError::Validation)
            .collect());
    }
    Ok(LoadResult {
        document: normalize(document),
        warnings: result.warnings,
    })
}

/// Everything that is wrong or doubtful about a text, from all stages at once, ordered by place.
///
/// Unlike [`load`], which stops at the first failing stage, this goes on with whatever could be
/// understood, so that an author sees all there is to mend. What merely follows from an earlier
/// error is left out.
///
/// ```
/// let findings = proofhouse_oatf::check("oatf: \"0.1\"\nattack:\n  status: done\n  version: 0\n  \
///     execution: {mode: mcp_server, state: {}}\n", &Default::default());
/// let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
/// assert_eq!(codes, ["V-005", "V-035"]);
/// ```
#[must_use]
pub fn check(text: &str, limits: &ReadLimits) -> Vec<Diagnostic> {
    let Understood {
        document,
        errors,
        misspelled,
    } = parse_leniently(text, limits);
    let mut findings = Vec::new();
    if let Some(document) = document {
        let result = validate(&document);
        let later = result
            .errors
            .into_iter()
            .map(Diagnostic::from)
            .chain(result.warnings);
        let broken = Broken::new(&errors, &misspelled);
        findings.extend(later.filter(|finding| !broken.explains(finding)));
    }
    findings.extend(errors.into_iter().map(Diagnostic::from));
    findings.sort_by_key(|finding| (finding.span.map(|span| span.offset), finding.severity));
    findings
}

/// Rules about something being absent, which it may only be because it could not be read.
const ABOUT_ABSENCE: &[&str] = &[
    "V-006", "V-007", "V-009", "V-012", "V-030", "V-038", "V-040", "V-043", "PH-103", "PH-104",
];

/// The places where reading failed.
#[derive(Default)]
struct Broken<'e> {
    paths: HashSet<&'e str>,
    parents: HashSet<&'e str>,
    ancestors: HashSet<&'e str>,
    offsets: HashSet<usize>,
}

impl<'e> Broken<'e> {
    fn new(errors: &'e [ParseError], misspelled: &'e [String]) -> Self {
        let mut broken = Self::default();
        for path in misspelled {
            broken.paths.insert(path);
            broken.ancestors.insert(parent(path));
        }
        for error in errors.iter().filter(|error| error.code != "PH-009") {
            let Some(path) = error.path.as_deref() else {
                broken.offsets.extend(error.offset());
                continue;
            };
            broken.paths.insert(path);
            broken.parents.insert(parent(path));
            broken.ancestors.extend(ancestors(path));
        }
        broken
    }

    /// Whether a finding merely follows from what could not be read.
    fn explains(&self, finding: &Diagnostic) -> bool {
        if let Some(span) = finding.span
            && self.offsets.contains(&span.offset)
        {
            return true;
        }
        let Some(path) = finding.path.as_deref() else {
            return false;
        };
        self.parents.contains(path)
            || self.paths.contains(path)
            || ancestors(path).any(|ancestor| self.paths.contains(ancestor))
            || (ABOUT_ABSENCE.contains(&finding.code) && self.ancestors.contains(path))
    }
}

fn parent(path: &str) -> &str {
    path.rfind(['.', '[']).map_or("", |at| &path[..at])
}

/// Everything a path leads through, without itself. Keys may hold dots of their own, so some of
/// these are no places, which does no harm.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices(['.', '['])
        .map(|(at, _)| &path[..at])
        .take(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<&'static str> {
        check(text, &ReadLimits::default())
            .into_iter()
            .map(|finding| finding.code)
            .collect()
    }

    #[test]
    fn reports_all_stages_but_no_echoes() {
        // The missing execution is one error, not also "needs one of state, phases, actors".
        assert_eq!(codes("oatf: \"0.1\"\nattack:\n  name: x\n"), ["V-004"]);
        // A broken mode is not also a missing mode.
        assert_eq!(
            codes("oatf: \"0.1\"\nattack:\n  execution: {mode: [], state: {}}\n"),
            ["PH-010"]
        );
        // An unknown key does not hide what else is wrong.
        assert_eq!(
            codes(
                "oatf: \"9\"\nattack:\n  nme: x\n  indicators: []\n  execution: {mode: x_server, state: {}}\n"
            ),
            ["V-001", "PH-009", "V-006", "W-002"]
        );
        assert_eq!(
            codes("attack: {execution: {mode: mcp_server, state: {}}}"),
            ["V-001"]
        );
    }

    #[test]
    fn a_misspelled_key_is_not_also_a_missing_one() {
        let document = |body: &str| {
            format!(
                "oatf: \"0.1\"\nattack:\n  execution: {{mode: mcp_server, state: {{}}}}\n{body}"
            )
        };
        for text in [
            document("  indicators: [{target: a, pattern: {contians: x}}]\n"),
            document("  indicators: [{targt: a, pattern: {contains: x}}]\n"),
            document("  indicators: [{target: a, patern: {contains: x}}]\n"),
            document("  severity: {levl: high}\n"),
            document("  references: [{ulr: x}]\n"),
            "oatf: \"0.1\"\nattack:\n  exection: {mode: mcp_server, state: {}}\n".to_owned(),
            "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, stat: {}}\n".to_owned(),
            "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, phases: [{stat: {}}]}\n"
                .to_owned(),
            "oatf: \"0.1\"\nattak:\n  execution: {mode: mcp_server, state: {}}\n".to_owned(),
            "otf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n".to_owned(),
        ] {
            assert_eq!(codes(&text), ["PH-009"], "{text}");
            assert!(load(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn load_stops_at_the_first_failing_stage() {
        let errors = load("oatf: \"9\"\nattack: {nme: x}\n").unwrap_err();
        assert!(
            errors
                .iter()
                .all(|error| matches!(error, OatfError::Parse(_)))
        );
        let errors =
            load("oatf: \"9\"\nattack: {execution: {mode: mcp_server, state: {}}}").unwrap_err();
        assert!(matches!(&errors[..], [OatfError::Validation(error)] if error.rule == "V-001"));
    }

    #[test]
    fn paths() {
        assert_eq!(
            ancestors("a.b[0].c").collect::<Vec<_>>(),
            ["a", "a.b", "a.b[0]"]
        );
        assert_eq!(
            (parent("a.b"), parent("a.b[2]"), parent("a")),
            ("a", "a.b", "")
        );
    }
}
