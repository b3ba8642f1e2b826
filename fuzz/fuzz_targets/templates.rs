//! Templates: nothing panics, plain text stays as it is, and what was put in is never expanded again.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use proofhouse_oatf::{interpolate_template, interpolate_value};
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let extractors = HashMap::from([
        ("a".to_owned(), "{{b}}".to_owned()),
        ("b".to_owned(), "EXPANDED TWICE".to_owned()),
        ("actor.a".to_owned(), "{{b}}".to_owned()),
    ]);
    let request = json!({"a": "{{b}}", "list": [1, {"x": null}], "text": "t"});
    let (out, warnings) = interpolate_template(text, &extractors, Some(&request), None);
    if !text.contains("{{") {
        assert_eq!(out, text);
        assert!(warnings.is_empty());
    }
    if !text.contains('b') && !text.contains("TWICE") {
        assert!(!out.contains("EXPANDED TWICE"), "{text:?} gave {out:?}");
    }
    let (value, _) = interpolate_value(&json!([text]), &extractors, Some(&request), None);
    assert_eq!(value, json!([out]));
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let _ = interpolate_value(&value, &extractors, Some(&value), Some(&request));
    }
});
