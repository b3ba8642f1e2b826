//! URI templates of resources, as far as servers use them: `{name}` stands for one or more characters.

use serde_json::{Map, Value};

/// The longest URI that is compared; longer ones match nothing.
const MAX_URI_BYTES: usize = 8 << 10;

/// The variables with which the template makes the URI, if there are any.
///
/// A variable takes no `/`, unless it is written `{+name}` or `{name*}`.
pub(super) fn variables(template: &str, uri: &str) -> Option<Map<String, Value>> {
    if uri.len() > MAX_URI_BYTES {
        return None;
    }
    let mut found = Map::new();
    let (mut template, mut uri) = (template, uri);
    while let Some(open) = template.find('{') {
        uri = uri.strip_prefix(&template[..open])?;
        let rest = &template[open + 1..];
        let close = rest.find('}')?;
        let (expression, after) = (&rest[..close], &rest[close + 1..]);
        let name = expression.trim_matches(['+', '*', '#', '/']);
        let spans = name.len() != expression.len();
        // The text up to the next variable tells where this one ends.
        let literal = &after[..after.find('{').unwrap_or(after.len())];
        let end = if literal.is_empty() {
            uri.len()
        } else if after.len() == literal.len() {
            uri.strip_suffix(literal)?.len()
        } else {
            uri.find(literal)?
        };
        let value = &uri[..end];
        if value.is_empty() || (!spans && value.contains('/')) {
            return None;
        }
        found.insert(name.to_owned(), value.into());
        uri = &uri[end..];
        template = after;
    }
    (uri == template).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn variables_are_what_the_template_leaves_open() {
        for (template, uri, expected) in [
            (
                "test://{id}/data",
                "test://12/data",
                Some(json!({"id": "12"})),
            ),
            ("test://{id}/data", "test://1/2/data", None),
            (
                "test://{+id}/data",
                "test://1/2/data",
                Some(json!({"id": "1/2"})),
            ),
            ("a://{x}/{y}", "a://1/2", Some(json!({"x": "1", "y": "2"}))),
            ("a://{x}", "a://", None),
            ("a://b", "a://b", Some(json!({}))),
            ("a://{x", "a://1", None),
            ("a://{é}!", "a://ü!", Some(json!({"é": "ü"}))),
        ] {
            let found = variables(template, uri).map(Value::Object);
            assert_eq!(found, expected, "{template} {uri}");
        }
        assert!(variables("{+x}", &"a".repeat(MAX_URI_BYTES + 1)).is_none());
    }

    proptest! {
        #[test]
        fn anything_may_be_compared(template in "[a{}+*/é]{0,12}", uri in "[a{}/é]{0,12}") {
            let _ = variables(&template, &uri);
        }

        #[test]
        fn what_was_put_in_is_found(one in "[a-zé]{1,8}", other in "[a-zé/]{1,8}") {
            let found = variables("t://{one}!{+other}", &format!("t://{one}!{other}"));
            let expected = json!({"one": one, "other": other});
            prop_assert_eq!(found.map(Value::Object), Some(expected));
        }
    }
}
