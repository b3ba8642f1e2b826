//! `load` and `check`: the entry points in one call, for programs and for authors.

use proofhouse_source::{Diagnostic, Limits};

use crate::error::{OatfError, ParseError};
use crate::model::Document;
use crate::parse::{parse_leniently, parse_with};
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
    load_with(text, &Limits::default())
}

/// Parses with limits of the caller's, validates and normalizes.
///
/// # Errors
///
/// Returns the errors of the first stage that fails.
pub fn load_with(text: &str, limits: &Limits) -> Result<LoadResult, Vec<OatfError>> {
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
pub fn check(text: &str, limits: &Limits) -> Vec<Diagnostic> {
    let (document, errors) = parse_leniently(text, limits);
    let mut findings = Vec::new();
    if let Some(document) = document {
        let result = validate(&document);
        let later = result
            .errors
            .into_iter()
            .map(Diagnostic::from)
            .chain(result.warnings);
        findings.extend(later.filter(|finding| !follows_from(finding, &errors)));
    }
    findings.extend(errors.into_iter().map(Diagnostic::from));
    findings.sort_by_key(|finding| (finding.span.map(|span| span.offset), finding.severity));
    findings
}

/// Whether a finding is about a place where reading already failed.
fn follows_from(finding: &Diagnostic, errors: &[ParseError]) -> bool {
    let Some(path) = finding.path.as_deref() else {
        return false;
    };
    errors
        .iter()
        .filter(|error| error.code != "PH-009")
        .any(|error| {
            let Some(broken) = error.path.as_deref() else {
                return false;
            };
            is_within(path, broken) || parent(broken) == path
        })
}

fn is_within(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn parent(path: &str) -> &str {
    path.rfind(['.', '[']).map_or("", |at| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<&'static str> {
        check(text, &Limits::default())
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
        assert!(is_within("a.b[0]", "a.b") && is_within("a.b", "a.b") && !is_within("a.bc", "a.b"));
        assert_eq!(
            (parent("a.b"), parent("a.b[2]"), parent("a")),
            ("a", "a.b", "")
        );
    }
}
