//! `{{…}}` templates: values captured from traffic or read from the current exchange.

use std::borrow::Cow;
use std::collections::HashMap;

use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use serde_json::{Map, Value};

use super::json::to_text;
use super::resolve_simple_path;

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplatePart<'t> {
    /// Text to be copied.
    Text(&'t str),
    /// `\{{`, which stands for `{{`.
    Escape,
    /// `{{name}}`, with the byte offset of its braces.
    ///
    /// Spaces are part of the name, and no extractor has such a name: the specification trims nothing.
    Reference { name: &'t str, at: usize },
    /// `{{` without an end; the rest of the text.
    Unclosed { text: &'t str, at: usize },
}

/// Splits a template into its pieces without copying.
pub(crate) fn template_parts(template: &str) -> impl Iterator<Item = TemplatePart<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &template[at..];
        if rest.is_empty() {
            return None;
        }
        let start = at;
        if rest.starts_with("\\{{") {
            at += 3;
            return Some(TemplatePart::Escape);
        }
        if let Some(inner) = rest.strip_prefix("{{") {
            return Some(if let Some(end) = inner.find("}}") {
                at += end + 4;
                TemplatePart::Reference {
                    name: &inner[..end],
                    at: start,
                }
            } else {
                at = template.len();
                TemplatePart::Unclosed {
                    text: rest,
                    at: start,
                }
            });
        }
        // A backslash that escapes belongs to the next piece.
        let length = rest.find("{{").map_or(rest.len(), |open| {
            if rest[..open].ends_with('\\') {
                open - 1
            } else {
                open
            }
        });
        at += length;
        Some(TemplatePart::Text(&rest[..length]))
    })
}

/// Resolves the references in a template.
///
/// A name is looked up in `extractors` first, which holds local names and qualified
/// `actor.name` ones, then as a path into `request` or `response`. What does not resolve becomes
/// the empty string and a W-004 warning. Results are never expanded again.
///
/// ```
/// use proofhouse_oatf::interpolate_template;
/// use std::collections::HashMap;
/// let extractors = HashMap::from([("who".to_owned(), "{{nobody}}".to_owned())]);
/// let (text, warnings) = interpolate_template(r"{{who}} \{{x}} {{y}}", &extractors, None, None);
/// assert_eq!(text, "{{nobody}} {{x}} ");
/// assert_eq!(warnings.len(), 1);
/// ```
#[must_use]
pub fn interpolate_template(
    template: &str,
    extractors: &HashMap<String, String>,
    request: Option<&Value>,
    response: Option<&Value>,
) -> (String, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let text = interpolate(template, extractors, request, response, &mut diagnostics);
    (text, diagnostics)
}

fn interpolate(
    template: &str,
    extractors: &HashMap<String, String>,
    request: Option<&Value>,
    response: Option<&Value>,
    diagnostics: &mut Vec<Diagnostic>,
) -> String {
    let mut out = String::with_capacity(template.len());
    for part in template_parts(template) {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            // Escapes hold in it too.
            TemplatePart::Unclosed { text, .. } => out.push_str(&text.replace("\\{{", "{{")),
            TemplatePart::Escape => out.push_str("{{"),
            TemplatePart::Reference { name, .. } => {
                match resolve(name, extractors, request, response) {
                    Some(value) => out.push_str(&value),
                    None => diagnostics.push(unresolved(name)),
                }
            }
        }
    }
    out
}

fn resolve<'a>(
    name: &str,
    extractors: &'a HashMap<String, String>,
    request: Option<&'a Value>,
    response: Option<&'a Value>,
) -> Option<Cow<'a, str>> {
    if let Some(value) = extractors.get(name) {
        return Some(Cow::Borrowed(value));
    }
    let (path, root) = match (
        name.strip_prefix("request."),
        name.strip_prefix("response."),
    ) {
        (Some(path), _) => (path, request?),
        (_, Some(path)) => (path, response?),
        _ => return None,
    };
    resolve_simple_path(path, root).map(to_text)
}

fn unresolved(name: &str) -> Diagnostic {
    let name: String = name.chars().take(80).collect();
    Diagnostic {
        severity: DiagnosticSeverity::Warning,
        code: "W-004",
        path: None,
        span: None,
        message: format!("`{{{{{name}}}}}` does not resolve and becomes the empty string"),
        help: None,
    }
}

/// Resolves the templates in every string of a value, but not in its keys.
///
/// ```
/// use proofhouse_oatf::interpolate_value;
/// use serde_json::json;
/// use std::collections::HashMap;
/// let request = json!({"q": [1]});
/// let (value, _) = interpolate_value(
///     &json!({"{{k}}": ["got {{request.q}}", 7]}), &HashMap::new(), Some(&request), None);
/// assert_eq!(value, json!({"{{k}}": ["got [1]", 7]}));
/// ```
#[must_use]
pub fn interpolate_value(
    value: &Value,
    extractors: &HashMap<String, String>,
    request: Option<&Value>,
    response: Option<&Value>,
) -> (Value, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let value = walk(value, &mut |text| {
        interpolate(text, extractors, request, response, &mut diagnostics)
    });
    (value, diagnostics)
}

/// A list or map that is being copied.
enum Copying<'v> {
    List(std::slice::Iter<'v, Value>, Vec<Value>),
    Map(
        serde_json::map::Iter<'v>,
        Map<String, Value>,
        Option<&'v String>,
    ),
}

/// Copies a value with its texts replaced, without recursion.
fn walk(value: &Value, replace: &mut dyn FnMut(&str) -> String) -> Value {
    let mut open: Vec<Copying<'_>> = Vec::new();
    let mut next = value;
    loop {
        let mut done = match next {
            Value::String(text) if text.contains("{{") => Value::String(replace(text)),
            Value::Array(items) => {
                open.push(Copying::List(items.iter(), Vec::with_capacity(items.len())));
                Value::Null
            }
            Value::Object(map) => {
                open.push(Copying::Map(map.iter(), Map::new(), None));
                Value::Null
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => next.clone(),
        };
        let mut is_new = next.is_array() || next.is_object();
        // Hands finished values to what holds them, up to something that is not finished.
        next = loop {
            let Some(holder) = open.last_mut() else {
                return done;
            };
            let following = match holder {
                Copying::List(rest, copied) => {
                    if !is_new {
                        copied.push(done);
                    }
                    rest.next()
                }
                Copying::Map(rest, copied, key) => {
                    if let Some(key) = key.take() {
                        copied.insert(key.clone(), done);
                    }
                    rest.next().map(|(name, value)| {
                        *key = Some(name);
                        value
                    })
                }
            };
            if let Some(following) = following {
                break following;
            }
            is_new = false;
            done = match open.pop() {
                Some(Copying::List(_, copied)) => Value::Array(copied),
                Some(Copying::Map(_, copied, _)) => Value::Object(copied),
                None => return Value::Null,
            };
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn run(template: &str) -> (String, usize) {
        let extractors = HashMap::from(
            [("a", "A"), ("b.c", "BC"), ("empty", ""), ("evil", "{{a}}")]
                .map(|(k, v)| (k.to_owned(), v.to_owned())),
        );
        let request = json!({"x": {"y": "why", "n": 3}, "z": {"k": [1, "2"]}});
        let response = json!({"ok": true});
        let (text, diagnostics) =
            interpolate_template(template, &extractors, Some(&request), Some(&response));
        (text, diagnostics.len())
    }

    #[test]
    fn references_escapes_and_misses() {
        for (template, expected, misses) in [
            ("", "", 0),
            ("plain", "plain", 0),
            ("{{a}}", "A", 0),
            ("{{ a }}", "", 1),
            ("x{{a}}y{{b.c}}z", "xAyBCz", 0),
            ("{{empty}}", "", 0),
            ("{{evil}}", "{{a}}", 0),
            ("{{request.x.y}}", "why", 0),
            ("{{request.x.n}}", "3", 0),
            ("{{request.z}}", r#"{"k":[1,"2"]}"#, 0),
            ("{{response.ok}}", "true", 0),
            ("{{request.nope}}", "", 1),
            ("{{response.nope}}", "", 1),
            ("{{request}}", "", 1),
            ("{{nope}}{{nope}}", "", 2),
            ("{{}}", "", 1),
            (r"\{{a}}", "{{a}}", 0),
            (r"\\{{a}}", r"\{{a}}", 0),
            (r"\{{a}} {{a}}", "{{a}} A", 0),
            (r"a\b {{a}}", r"a\b A", 0),
            ("{{unclosed", "{{unclosed", 0),
            ("{{a}} {{b", "A {{b", 0),
            ("{a}", "{a}", 0),
            ("}}{{a}}", "}}A", 0),
            ("é{{a}}é", "éAé", 0),
        ] {
            assert_eq!(run(template), (expected.to_owned(), misses), "{template:?}");
        }
    }

    #[test]
    fn without_request_or_response_paths_do_not_resolve() {
        let (text, diagnostics) =
            interpolate_template("{{request.x}}{{response.y}}", &HashMap::new(), None, None);
        assert_eq!((text.as_str(), diagnostics.len()), ("", 2));
        assert_eq!(diagnostics[0].code, "W-004");
        assert!(diagnostics[0].message.contains("{{request.x}}"));
    }

    #[test]
    fn values_keep_their_types_and_keys() {
        let extractors = HashMap::from([("n".to_owned(), "3".to_owned())]);
        let value =
            json!({"{{n}}": "{{n}}", "list": ["{{n}}", {"deep": "{{m}}"}], "b": true, "z": null});
        let (out, diagnostics) = interpolate_value(&value, &extractors, None, None);
        assert_eq!(
            out,
            json!({"{{n}}": "3", "list": ["3", {"deep": ""}], "b": true, "z": null})
        );
        assert_eq!(diagnostics.len(), 1);
    }

    proptest! {
        #[test]
        fn parts_put_together_are_the_template(template in r"([{}\\a ]|\PC){0,30}") {
            let rebuilt: usize = template_parts(&template).map(|part| match part {
                TemplatePart::Text(text) | TemplatePart::Unclosed { text, .. } => text.len(),
                TemplatePart::Escape => 3,
                TemplatePart::Reference { at, .. } => template[at + 2..].find("}}").unwrap() + 4,
            }).sum();
            prop_assert_eq!(rebuilt, template.len());
        }

        #[test]
        fn extracted_text_is_never_expanded(value in r"([{}a]|\PC){0,20}") {
            let extractors = HashMap::from([("v".to_owned(), value.clone()), ("a".to_owned(), "X".to_owned())]);
            prop_assert_eq!(interpolate_template("{{v}}", &extractors, None, None).0, value);
        }
    }
}
