//! Extractors: values captured from traffic.

use proofhouse_expr::re2::MatchBudget;
use serde_json::Value;

use super::condition::timed_out;
use super::json::{MAX_VALUE_DEPTH, shape_within, to_text};
use super::path_cost::{MAX_VISITS, visits};
use super::{coerce_to_text, unusable, usable};
use crate::error::{EvaluationError, EvaluationErrorKind};
use crate::model::{Extractor, ExtractorSource, ExtractorType};

/// What `extractor` captures from `message`, which is a request or a response as `direction` says.
///
/// `None` means that nothing matched; `Some("")` is a match of nothing.
///
/// ```
/// use proofhouse_oatf::{Extractor, ExtractorSource, Fragment, evaluate_extractor};
/// use serde_json::json;
/// let extractor = Extractor::from_value(&json!({
///     "name": "first", "source": "request", "type": "json_path", "selector": "$.tools[*].name",
/// })).unwrap();
/// let message = json!({"tools": [{"name": "calc"}]});
/// assert_eq!(evaluate_extractor(&extractor, &message, ExtractorSource::Request), Some("calc".into()));
/// assert_eq!(evaluate_extractor(&extractor, &message, ExtractorSource::Response), None);
/// ```
#[must_use]
pub fn evaluate_extractor(
    extractor: &Extractor,
    message: &Value,
    direction: ExtractorSource,
) -> Option<String> {
    let budget = &mut MatchBudget::default();
    evaluate_extractor_within(extractor, message, direction, budget)
        .ok()
        .flatten()
}

/// As [`evaluate_extractor`], within a time that the caller gives; tells "nothing matched" from "could not be tried".
///
/// # Errors
///
/// Returns `regex_timeout` when the time is over, `path_resolution` when the message is nested deeper than 512 levels or
/// the JSONPath may visit more than 5,000,000 places of it, and an error when the selector does not compile.
pub fn evaluate_extractor_within(
    extractor: &Extractor,
    message: &Value,
    direction: ExtractorSource,
    budget: &mut MatchBudget,
) -> Result<Option<String>, EvaluationError> {
    if extractor.source != direction {
        return Ok(None);
    }
    match extractor.r#type {
        ExtractorType::JsonPath => {
            let path = extractor.selector.json_path();
            let path = path.map_err(|error| unusable(format!("not a JSONPath: {error}")))?;
            let refused =
                |text: String| EvaluationError::new(EvaluationErrorKind::PathResolution, text);
            let Some(shape) = shape_within(message, MAX_VALUE_DEPTH) else {
                let text = format!("the message is nested deeper than {MAX_VALUE_DEPTH} levels");
                return Err(refused(text));
            };
            if visits(extractor.selector.as_str(), shape) > MAX_VISITS {
                let text = "the JSONPath may look at too many places of a message this large";
                return Err(refused(text.to_owned()));
            }
            let first = path.query(message).first();
            Ok(first.map(|found| to_text(found).into_owned()))
        }
        ExtractorType::Regex => {
            let regex = usable(extractor.selector.as_regex())?;
            let text = coerce_to_text(message);
            let group = regex.first_group(&text, budget).map_err(timed_out)?;
            Ok(group.map(|range| text[range].to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Selector;
    use serde_json::json;

    fn extract(r#type: ExtractorType, selector: &str, message: &Value) -> Option<String> {
        let extractor = Extractor {
            name: "x".into(),
            source: ExtractorSource::Response,
            r#type,
            selector: Selector::new(selector),
        };
        assert_eq!(
            evaluate_extractor(&extractor, message, ExtractorSource::Request),
            None
        );
        evaluate_extractor(&extractor, message, ExtractorSource::Response)
    }

    #[test]
    fn json_paths_give_the_first_node() {
        let message = json!({"z": [{"b": 1, "a": [true]}, "s"], "n": null, "e": ""});
        for (selector, expected) in [
            ("$.z[1]", Some("s")),
            ("$.z[0]", Some(r#"{"b":1,"a":[true]}"#)),
            ("$.z[*].b", Some("1")),
            ("$.n", Some("null")),
            ("$.e", Some("")),
            ("$.missing", None),
            ("$.[", None),
        ] {
            let found = extract(ExtractorType::JsonPath, selector, &message);
            assert_eq!(found.as_deref(), expected, "{selector}");
        }
    }

    #[test]
    fn regexes_give_the_first_group() {
        let text = json!("key=abc other=def");
        for (selector, expected) in [
            ("key=(\\w+)", Some("abc")),
            ("(key)=(\\w+)", Some("key")),
            ("key=(\\d*)", Some("")),
            ("nope=(\\w+)", None),
            ("key=\\w+", None),
            ("key(x)?=", None),
            ("[", None),
        ] {
            assert_eq!(
                extract(ExtractorType::Regex, selector, &text).as_deref(),
                expected,
                "{selector}"
            );
        }
        let object = json!({"b": 1, "a": 2});
        assert_eq!(
            extract(ExtractorType::Regex, r"^(\{.*)$", &object).as_deref(),
            Some(r#"{"a":2,"b":1}"#)
        );
    }
}
