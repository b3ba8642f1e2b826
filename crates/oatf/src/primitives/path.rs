//! Dot-paths into values: simple ones name one value, wildcard ones fan out over arrays.

use serde_json::Value;

use crate::error::{EvaluationError, EvaluationErrorKind};

/// How many segments a path may have before resolution gives up.
pub const MAX_TRAVERSAL_DEPTH: usize = 64;

/// Resolves a simple dot-path such as `arguments.command`; the empty path is the root.
///
/// ```
/// use proofhouse_oatf::resolve_simple_path;
/// use serde_json::json;
/// let value = json!({"a": {"b": [1]}});
/// assert_eq!(resolve_simple_path("a.b", &value), Some(&json!([1])));
/// assert_eq!(resolve_simple_path("a.b.c", &value), None);
/// ```
#[must_use]
pub fn resolve_simple_path<'v>(path: &str, value: &'v Value) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    let mut current = value;
    for (depth, segment) in path.split('.').enumerate() {
        if depth >= MAX_TRAVERSAL_DEPTH || !is_name(segment) {
            return None;
        }
        current = current.as_object()?.get(segment)?;
    }
    Some(current)
}

/// Resolves a wildcard dot-path such as `tools[*].description` to every value it reaches, in
/// document order; the empty path is the root.
///
/// ```
/// use proofhouse_oatf::resolve_wildcard_path;
/// use serde_json::json;
/// let value = json!({"tools": [{"name": "a"}, {"name": "b"}]});
/// assert_eq!(resolve_wildcard_path("tools[*].name", &value), [&json!("a"), &json!("b")]);
/// assert!(resolve_wildcard_path("tools.name", &value).is_empty());
/// ```
#[must_use]
pub fn resolve_wildcard_path<'v>(path: &str, value: &'v Value) -> Vec<&'v Value> {
    let mut reached = Vec::new();
    if is_within_depth(path) {
        visit(path, value, &mut |value| {
            reached.push(value);
            true
        });
    }
    reached
}

/// Whether `test` holds for any value the path reaches; stops at the first that does.
pub(crate) fn any_at_wildcard_path<'v>(
    path: &str,
    value: &'v Value,
    mut test: impl FnMut(&'v Value) -> Result<bool, EvaluationError>,
) -> Result<bool, EvaluationError> {
    let mut found = Ok(false);
    if is_within_depth(path) {
        visit(path, value, &mut |value| {
            found = test(value);
            found == Ok(false)
        });
    }
    found
}

/// Refuses a path that resolution would give up on: whether it resolves is not known.
pub(crate) fn within_depth(path: &str) -> Result<(), EvaluationError> {
    if is_within_depth(path) {
        return Ok(());
    }
    let message = format!("the path has more than {MAX_TRAVERSAL_DEPTH} segments");
    Err(EvaluationError::new(
        EvaluationErrorKind::PathResolution,
        message,
    ))
}

/// Whether resolution does not give up on a path.
pub(crate) fn is_within_depth(path: &str) -> bool {
    path.bytes().filter(|b| *b == b'.').count() < MAX_TRAVERSAL_DEPTH
}

/// Calls `reach` for every value at `path` until it returns `false`.
fn visit<'v>(path: &str, value: &'v Value, reach: &mut dyn FnMut(&'v Value) -> bool) -> bool {
    if path.is_empty() {
        return reach(value);
    }
    let mut current = value;
    let mut rest = Some(path);
    while let Some(path) = rest {
        let (segment, tail) = match path.split_once('.') {
            Some((segment, tail)) => (segment, Some(tail)),
            None => (path, None),
        };
        let (name, fans_out) = match segment.strip_suffix("[*]") {
            Some(name) => (name, true),
            None => (segment, false),
        };
        let object = current.as_object().filter(|_| is_name(name));
        let Some(next) = object.and_then(|object| object.get(name)) else {
            return true;
        };
        if fans_out {
            let Some(items) = next.as_array() else {
                return true;
            };
            return match tail {
                Some(tail) => items.iter().all(|item| visit(tail, item, reach)),
                None => items.iter().all(reach),
            };
        }
        current = next;
        rest = tail;
    }
    reach(current)
}

/// Whether `path` is a simple dot-path: segments of `[a-zA-Z0-9_-]+` joined by dots, or empty.
///
/// ```
/// use proofhouse_oatf::is_simple_path;
/// assert!(is_simple_path("") && is_simple_path("headers.x-api-key"));
/// assert!(!is_simple_path("a..b") && !is_simple_path("tools[*].name"));
/// ```
#[must_use]
pub fn is_simple_path(path: &str) -> bool {
    path.is_empty() || path.split('.').all(is_name)
}

/// Whether `path` is a wildcard dot-path: a simple one whose segments may end in `[*]`.
///
/// ```
/// use proofhouse_oatf::is_wildcard_path;
/// assert!(is_wildcard_path("tools[*].name") && is_wildcard_path("a"));
/// assert!(!is_wildcard_path("tools[0]") && !is_wildcard_path("tools[*.x"));
/// ```
#[must_use]
pub fn is_wildcard_path(path: &str) -> bool {
    path.is_empty()
        || path
            .split('.')
            .all(|segment| is_name(segment.strip_suffix("[*]").unwrap_or(segment)))
}

fn is_name(segment: &str) -> bool {
    !segment.is_empty()
        && segment
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn simple_paths_stop_at_arrays_scalars_and_missing_keys() {
        let value = json!({"a": {"b": {"c": 1}, "list": [{"x": 1}], "n": null}, "0": "zero"});
        for (path, expected) in [
            ("", Some(value.clone())),
            ("a.b.c", Some(json!(1))),
            ("a.n", Some(json!(null))),
            ("a.list", Some(json!([{"x": 1}]))),
            ("a.list.x", None),
            ("a.b.c.d", None),
            ("a.zz", None),
            ("0", Some(json!("zero"))),
            (".", None),
        ] {
            assert_eq!(
                resolve_simple_path(path, &value),
                expected.as_ref(),
                "{path}"
            );
        }
    }

    #[test]
    fn wildcard_paths_fan_out_in_order() {
        let value = json!({"a": [{"b": [{"c": 1}, {"c": 2}]}, {"b": "no"}, {"b": [{"c": 3}]}]});
        let all = |path: &str| {
            resolve_wildcard_path(path, &value)
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(all("a[*].b[*].c"), [json!(1), json!(2), json!(3)]);
        assert_eq!(
            all("a[*].b"),
            [json!([{"c": 1}, {"c": 2}]), json!("no"), json!([{"c": 3}])]
        );
        assert_eq!(all("a[*]").len(), 3);
        assert!(all("a.b").is_empty() && all("b[*]").is_empty() && all("a[0]").is_empty());
        assert_eq!(all("").len(), 1);
    }

    #[test]
    fn a_search_stops_at_the_first_hit() {
        let value = json!({"a": [1, 2, 3]});
        let mut seen = 0;
        let found = any_at_wildcard_path("a[*]", &value, |v| {
            seen += 1;
            Ok(*v == json!(2))
        });
        assert_eq!((found, seen), (Ok(true), 2));
        let found = any_at_wildcard_path("a[*]", &value, |v| Ok(*v == json!(9)));
        assert_eq!(found, Ok(false));
        let nested = json!({"a": [{"b": [1]}, {"b": [2]}]});
        let mut seen = 0;
        let found = any_at_wildcard_path("a[*].b[*]", &nested, |_| {
            seen += 1;
            Ok(true)
        });
        assert_eq!((found, seen), (Ok(true), 1));
    }

    #[test]
    fn depth_is_bounded() {
        let mut value = json!("end");
        for _ in 0..MAX_TRAVERSAL_DEPTH {
            value = json!({ "a": value });
        }
        let at_limit = vec!["a"; MAX_TRAVERSAL_DEPTH].join(".");
        assert_eq!(resolve_simple_path(&at_limit, &value), Some(&json!("end")));
        assert_eq!(resolve_wildcard_path(&at_limit, &value), [&json!("end")]);
        let deeper = json!({ "a": value });
        let beyond = vec!["a"; MAX_TRAVERSAL_DEPTH + 1].join(".");
        assert_eq!(resolve_simple_path(&beyond, &deeper), None);
        assert!(resolve_wildcard_path(&beyond, &deeper).is_empty());
        let found = any_at_wildcard_path(&beyond, &deeper, |_| Ok(true));
        assert_eq!(found, Ok(false));
        assert!(within_depth(&at_limit).is_ok() && within_depth(&beyond).is_err());
    }

    #[test]
    fn syntax() {
        for (path, simple, wildcard) in [
            ("", true, true),
            ("a", true, true),
            ("a-b_c.D9", true, true),
            ("a[*]", false, true),
            ("a[*].b[*]", false, true),
            ("[*]", false, false),
            ("a[*][*]", false, false),
            ("a[0]", false, false),
            ("a[*.x", false, false),
            ("a..b", false, false),
            (".a", false, false),
            ("a.", false, false),
            ("a b", false, false),
            ("é", false, false),
        ] {
            assert_eq!(
                (is_simple_path(path), is_wildcard_path(path)),
                (simple, wildcard),
                "{path}"
            );
        }
    }
}
