//! Suites whose cases are whole documents: parse, validate, normalize, roundtrip.

use crate::{Diagnostic, DiagnosticSeverity, Document, ReadLimits};
use serde_json::Value;

use super::{CaseCheck, CaseFailure, ConformanceCase, expect_value};

/// A text that must be parsed, or must not be.
pub(super) fn parse_case(text: &str, must_parse: bool) -> CaseCheck {
    let parsed = crate::parse(text)
        .map(|_| ())
        .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default());
    match parsed {
        Ok(()) if !must_parse => Err(CaseFailure::Parsed),
        Err(reason) if must_parse => Err(CaseFailure::Unreadable(reason)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A document's findings hold at least the expected ones. `warnings: []` means none at all.
pub(super) fn validate_case(case: &ConformanceCase<'_>) -> CaseCheck {
    let text = case
        .input
        .as_str()
        .ok_or(CaseFailure::Malformed("the input is not a text"))?;
    let findings = crate::check(text, &ReadLimits::default());
    let (errors, warnings): (Vec<_>, Vec<_>) = findings
        .iter()
        .partition(|finding| finding.severity == DiagnosticSeverity::Error);
    let list = |key: &str| case.expected.get(key).and_then(Value::as_array);
    let expects_errors = list("errors").is_some_and(|errors| !errors.is_empty());
    if !expects_errors && !errors.is_empty() {
        return Err(CaseFailure::different(
            "a valid document",
            describe(&errors),
        ));
    }
    let source = super::Source::read_leniently(text, &ReadLimits::default()).0;
    for (key, found) in [("errors", &errors), ("warnings", &warnings)] {
        for wanted in list(key).into_iter().flatten() {
            if !found
                .iter()
                .any(|finding| is_wanted(finding, wanted, source.as_ref()))
            {
                return Err(CaseFailure::different(wanted.to_string(), describe(found)));
            }
        }
    }
    if list("warnings").is_some_and(Vec::is_empty) && !warnings.is_empty() {
        return Err(CaseFailure::different("no warning", describe(&warnings)));
    }
    Ok(())
}

fn is_wanted(finding: &Diagnostic, wanted: &Value, source: Option<&super::Source>) -> bool {
    if wanted.get("rule").and_then(Value::as_str) != Some(finding.code) {
        return false;
    }
    let Some(path) = wanted.get("path").and_then(Value::as_str) else {
        return true;
    };
    // A vector may name a place that its own document does not have (VAL-032b does); then only
    // the rule can be compared.
    finding.path.as_deref() == Some(path) || !has_parent(source, path)
}

/// Whether the place above `path` exists in the document.
fn has_parent(source: Option<&super::Source>, path: &str) -> bool {
    let Some(source) = source else { return false };
    let parent = match path.rfind(['.', '[']) {
        Some(at) => &path[..at],
        None => return true,
    };
    let mut node = Some(source.root());
    let mut rest = parent;
    while let Some(current) = node {
        if rest.is_empty() {
            return true;
        }
        if let Some(index) = rest.strip_prefix('[') {
            let Some((digits, tail)) = index.split_once(']') else {
                return true;
            };
            // `[*]` is part of a key, not an index.
            let Ok(position) = digits.parse::<usize>() else {
                return true;
            };
            node = current.items().and_then(|mut items| items.nth(position));
            rest = tail;
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            // Keys may hold dots and brackets themselves: take the longest one that fits.
            let Some(entries) = current.entries() else {
                return false;
            };
            let key = entries
                .map(|(key, _)| key)
                .filter(|key| {
                    rest.strip_prefix(*key)
                        .is_some_and(|tail| tail.is_empty() || tail.starts_with(['.', '[']))
                })
                .max_by_key(|key| key.len());
            let Some(key) = key else {
                // The rest may be the start of a key with dots in it.
                return current
                    .entries()
                    .is_some_and(|mut entries| entries.any(|(key, _)| path.ends_with(key)));
            };
            node = current.get(key);
            rest = &rest[key.len()..];
        }
    }
    false
}

fn describe(findings: &[&Diagnostic]) -> String {
    if findings.is_empty() {
        return "nothing".to_owned();
    }
    findings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The normalized input equals the expected document as it stands.
pub(super) fn normalize_case(case: &ConformanceCase<'_>) -> CaseCheck {
    let input = parse(case.input)?;
    let expected = parse(case.expected)?;
    let normalized = crate::normalize(input);
    expect_value(&crate::to_value(&normalized), &crate::to_value(&expected))?;
    let again = crate::normalize(normalized.clone());
    if again == normalized {
        Ok(())
    } else {
        Err(CaseFailure::NormalizedTwice)
    }
}

/// Parsing, normalizing and serializing is stable.
pub(super) fn roundtrip_case(case: &ConformanceCase<'_>) -> CaseCheck {
    let first = crate::normalize(parse(case.input)?);
    let text = crate::serialize(&first);
    let second = crate::normalize(parse(&Value::String(text.clone()))?);
    if first != second {
        return Err(CaseFailure::DocumentChanges);
    }
    if crate::serialize(&second) == text {
        Ok(())
    } else {
        Err(CaseFailure::TextChanges)
    }
}

fn parse(text: &Value) -> Result<Document, CaseFailure> {
    let text = text.as_str();
    let text = text.ok_or(CaseFailure::Malformed("the document is not a text"))?;
    crate::parse(text).map_err(CaseFailure::refused)
}
