//! Paths: the first line is a path, the rest a JSON value to walk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_oatf::{
    MAX_TRAVERSAL_DEPTH, Selector, is_simple_path, is_wildcard_path, resolve_simple_path,
    resolve_wildcard_path,
};
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let (path, rest) = text.split_once('\n').unwrap_or((text, ""));
    let value: Value =
        serde_json::from_str(rest).unwrap_or_else(|_| json!({"a": [{"b": 1}, {"b": [2, 3]}]}));
    let simple = resolve_simple_path(path, &value);
    let wildcard = resolve_wildcard_path(path, &value);
    if is_simple_path(path) {
        assert!(is_wildcard_path(path));
        if path.split('.').count() <= MAX_TRAVERSAL_DEPTH {
            assert_eq!(wildcard, Vec::from_iter(simple), "{path}");
        }
    }
    if let Ok(selector) = Selector::new(path).json_path() {
        let _ = selector.query(&value);
    }
});
