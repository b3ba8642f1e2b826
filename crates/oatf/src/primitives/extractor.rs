//! Extractors: values captured from traffic.

use serde_json::Value;

use super::coerce_to_text;
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
    if extractor.source != direction {
        return None;
    }
    match extractor.r#type {
        ExtractorType::JsonPath => {
            let path = extractor.selector.json_path().ok()?;
            match path.query(message).first()? {
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            }
        }
        ExtractorType::Regex => {
            let regex = extractor.selector.regex().ok()?;
            let text = coerce_to_text(message);
            let captures = regex.captures(&text)?;
            captures.get(1).map(|group| group.as_str().to_owned())
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
