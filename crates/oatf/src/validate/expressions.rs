//! Rules about small languages: regular expressions, CEL, JSONPath and dot-paths.

use proofhouse_expr::re2::{self, Re2ErrorKind};
#[cfg(any(test, not(feature = "cel")))]
use proofhouse_source::DiagnosticSeverity;
use proofhouse_source::DocPath;
use serde_json::Value;

use super::view::ValidationPass;
use crate::model::{Condition, ExtractorType, JsonPathError, MatchCondition};
use crate::primitives::{MAX_TRAVERSAL_DEPTH, is_simple_path, is_wildcard_path, is_within_depth};

pub(super) fn regexes(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let Some(phase) = view.phase else { return };
        for (index, extractor) in phase.extractors.iter().flatten().enumerate() {
            if extractor.r#type == ExtractorType::Regex {
                let path = view.path.key("extractors").index(index).key("selector");
                check_regex(check, &path, extractor.selector.as_str());
            }
        }
        let predicate = phase
            .trigger
            .as_ref()
            .and_then(|trigger| trigger.r#match.as_ref());
        if let Some(predicate) = predicate {
            let path = view.path.key("trigger").key("match");
            for (field, entry) in predicate {
                if let Condition::Operators(operators) = entry
                    && let Some(regex) = &operators.regex
                {
                    check_regex(check, &path.key(field).key("regex"), regex.as_str());
                }
            }
        }
    });
    check.each_phase(|check, _, view| {
        for (path, when) in view.when_predicates() {
            for (field, condition) in when {
                if let Some(Value::String(regex)) = condition.get("regex") {
                    check_regex(check, &path.key(field).key("regex"), regex);
                }
            }
        }
    });
    check.each_indicator(|check, view| {
        let Some(pattern) = &view.indicator.pattern else {
            return;
        };
        let Some(Condition::Operators(operators)) = &pattern.condition else {
            return;
        };
        let Some(regex) = &operators.regex else {
            return;
        };
        let path = view.path.key("pattern");
        let path = if pattern.shorthand {
            path
        } else {
            path.key("condition")
        };
        check_regex(check, &path.key("regex"), regex.as_str());
    });
    patterns_of_cel(check);
}

fn check_regex<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, regex: &str) {
    let Err(error) = re2::check(regex, &mut check.large_regexes) else {
        return;
    };
    match error.kind {
        Re2ErrorKind::Syntax => {
            let message = format!("not an RE2 regular expression: {}", error.message);
            check.report_within(path, error.range, message);
        }
        Re2ErrorKind::Limit => over_limit(check, path, "regular expression", &error.message),
    }
}

/// What is well-formed but over a limit of ours is told under a code of ours.
fn over_limit<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, what: &str, message: &str) {
    check.report_limit(path, format!("the {what} is over a limit: {message}"));
}

pub(super) fn capture_groups(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let extractors = view.phase.and_then(|phase| phase.extractors.as_deref());
        for (index, extractor) in extractors.unwrap_or_default().iter().enumerate() {
            if extractor.r#type == ExtractorType::Regex
                && re2::has_captures(extractor.selector.as_str()) == Ok(false)
            {
                check
                    .report(
                        &view.path.key("extractors").index(index).key("selector"),
                        "a regex extractor needs a capture group: it extracts the first one",
                    )
                    .help = Some("put parentheses around the part you want".to_owned());
            }
        }
    });
}

#[cfg(feature = "cel")]
pub(super) fn cel(check: &mut ValidationPass<'_>) {
    use proofhouse_expr::CompileErrorKind;

    check.each_indicator(|check, view| {
        let Some(expression) = &view.indicator.expression else {
            return;
        };
        let path = view.path.key("expression").key("cel");
        match crate::cel::compiled(&expression.cel) {
            Err(error) if error.kind == CompileErrorKind::Syntax => {
                let message = format!("not a CEL expression: {}", error.message);
                match error.offset {
                    Some(at) => check.report_within(&path, at..at, message),
                    None => check.report(&path, message),
                };
            }
            Err(error) if error.kind == CompileErrorKind::Unsupported => {
                check.report_limit(
                    &path,
                    format!("the expression cannot be used: {}", error.message),
                );
            }
            Err(error) => over_limit(check, &path, "expression", &error.message),
            Ok(_) => {}
        }
    });
}

#[cfg(not(feature = "cel"))]
pub(super) fn cel(check: &mut ValidationPass<'_>) {
    without_cel(check);
}

/// Without the `cel` feature there is no parser to ask, which must not look like an expression that passed.
#[cfg(any(test, not(feature = "cel")))]
fn without_cel(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        if view.indicator.expression.is_some() {
            let path = view.path.key("expression").key("cel");
            let message = "not checked: this build has no CEL parser (feature `cel`)";
            check.report(&path, message).severity = DiagnosticSeverity::Warning;
        }
    });
}

/// The constant patterns of `matches`.
#[cfg(feature = "cel")]
fn patterns_of_cel(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let expression = view.indicator.expression.as_ref();
        let Some(Ok(program)) = expression.map(|expression| crate::cel::compiled(&expression.cel))
        else {
            return;
        };
        let path = view.path.key("expression").key("cel");
        for error in program.pattern_errors() {
            match error.kind {
                Re2ErrorKind::Syntax => {
                    let message = format!("not an RE2 regular expression: {}", error.message);
                    check.report(&path, message);
                }
                Re2ErrorKind::Limit => {
                    over_limit(check, &path, "regular expression", &error.message);
                }
            }
        }
    });
}

/// V-014 says that there is no parser.
#[cfg(not(feature = "cel"))]
fn patterns_of_cel(_: &mut ValidationPass<'_>) {}

pub(super) fn json_paths(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let extractors = view.phase.and_then(|phase| phase.extractors.as_deref());
        for (index, extractor) in extractors.unwrap_or_default().iter().enumerate() {
            if extractor.r#type == ExtractorType::JsonPath
                && let Err(error) = extractor.selector.json_path()
            {
                let path = view.path.key("extractors").index(index).key("selector");
                if *error == JsonPathError::RegexFunction {
                    check.report_limit(&path, format!("the JSONPath cannot be used: {error}"));
                } else if error.is_limit() {
                    over_limit(check, &path, "JSONPath", &error.to_string());
                } else {
                    check.report(&path, format!("not a JSONPath (RFC 9535): {error}"));
                }
            }
        }
    });
}

pub(super) fn targets(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let indicator = view.indicator;
        check_target(check, &view.path.key("target"), &indicator.target);
        if let Some(target) = indicator.pattern.as_ref().and_then(|p| p.target.as_deref()) {
            check_target(check, &view.path.key("pattern").key("target"), target);
        }
        if let Some(target) = indicator
            .semantic
            .as_ref()
            .and_then(|s| s.target.as_deref())
        {
            check_target(check, &view.path.key("semantic").key("target"), target);
        }
    });
}

fn check_target<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, target: &str) {
    if !is_wildcard_path(target) {
        let shown: String = target.chars().take(60).collect();
        check
            .report(path, format!("`{shown}` is not a wildcard dot-path"))
            .help = Some(if target.contains('[') {
            "use `[*]` for all items; for one item use a CEL expression".to_owned()
        } else {
            "join names of letters, digits, `_` and `-` with dots".to_owned()
        });
    } else {
        check_depth(check, path, target);
    }
}

/// A path that resolution gives up on never resolves.
fn check_depth<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, dot_path: &str) {
    if !is_within_depth(dot_path) {
        let message = format!("more than {MAX_TRAVERSAL_DEPTH} segments");
        over_limit(check, path, "path", &message);
    }
}

pub(super) fn variable_paths(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let variables = view
            .indicator
            .expression
            .as_ref()
            .and_then(|e| e.variables.as_ref());
        for (name, path) in variables.into_iter().flatten() {
            if !is_simple_path(path) {
                let shown: String = path.chars().take(60).collect();
                check
                    .report(
                        &view.path.key("expression").key("variables").key(name),
                        format!("`{shown}` is not a simple dot-path"),
                    )
                    .help =
                    Some("bind the list and use `.exists(x, …)` in the expression".to_owned());
            } else {
                let at = view.path.key("expression").key("variables").key(name);
                check_depth(check, &at, path);
            }
        }
    });
}

pub(super) fn variable_names(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let variables = view
            .indicator
            .expression
            .as_ref()
            .and_then(|e| e.variables.as_ref());
        for (name, _) in variables.into_iter().flatten() {
            let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !identifier {
                let shown: String = name.chars().take(60).collect();
                check.report_key(
                    &view.path.key("expression").key("variables").key(name),
                    format!("`{shown}` is not a CEL identifier"),
                );
            }
        }
    });
}

pub(super) fn predicate_paths(check: &mut ValidationPass<'_>) {
    check.each_phase(|check, _, view| {
        let trigger = view.phase.and_then(|phase| phase.trigger.as_ref());
        if let Some(predicate) = trigger.and_then(|trigger| trigger.r#match.as_ref()) {
            let path = view.path.key("trigger").key("match");
            for field in predicate.keys() {
                check_predicate_path(check, &path.key(field), field);
            }
        }
        for (path, when) in view.when_predicates() {
            for field in when.keys() {
                check_predicate_path(check, &path.key(field), field);
            }
        }
    });
}

fn check_predicate_path<'d>(check: &mut ValidationPass<'d>, path: &DocPath<'d>, field: &str) {
    if !is_simple_path(field) {
        let shown: String = field.chars().take(60).collect();
        check
            .report_key(path, format!("`{shown}` is not a simple dot-path"))
            .help = Some("wildcards and indices cannot be used in predicates".to_owned());
    } else {
        check_depth(check, path, field);
    }
}

/// The operators of a condition inside protocol state, where conditions are plain values.
pub(super) fn state_operators(condition: &Value) -> Option<&serde_json::Map<String, Value>> {
    let map = condition.as_object()?;
    MatchCondition::OPERATORS
        .iter()
        .any(|operator| map.contains_key(*operator))
        .then_some(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::RULES;

    /// A build without the feature `cel` says which expressions it has not checked, also those that are fine.
    #[test]
    fn expressions_without_a_parser_are_told() {
        let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {tools: []}}\n  indicators:\n    \
            - {target: '', expression: {cel: 'true'}}\n    - {target: a, pattern: {contains: x}}\n    \
            - {target: '', expression: {cel: 'tr ue'}}\n";
        let document = crate::parse(text).unwrap();
        let mut check = ValidationPass::new(&document);
        let rule = RULES.iter().find(|rule| rule.code == "V-014").unwrap();
        check.begin(rule);
        without_cel(&mut check);
        let result = check.finish();
        assert_eq!(result.errors, []);
        let told: Vec<_> = result
            .warnings
            .iter()
            .map(|one| (one.code, one.path.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(
            told,
            [
                ("V-014", "attack.indicators[0].expression.cel"),
                ("V-014", "attack.indicators[2].expression.cel"),
            ]
        );
        assert!(result.warnings[0].message.starts_with("not checked"));
    }
}
