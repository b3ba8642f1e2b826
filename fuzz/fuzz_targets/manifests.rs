//! Manifests of tools: any text is read without a panic, findings lie inside it in their order, and
//! what was read can be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_manifest::{Bundle, CODES};
use serde_json::Map;

fuzz_target!(|text: &str| {
    let (bundle, findings) = Bundle::read(text);
    let mut last = None;
    for finding in &findings {
        let known = CODES.iter().any(|(code, _)| *code == finding.code);
        assert!(known, "{finding} has a code that is not listed");
        let Some(span) = finding.span else {
            continue;
        };
        assert!(
            text.get(span.range()).is_some(),
            "{finding} lies outside: {span:?}"
        );
        assert!(last <= Some(span.offset), "{finding} is out of order");
        last = Some(span.offset);
    }
    // Nothing is left out without a word.
    assert!(!bundle.manifests.is_empty() || !findings.is_empty());
    for tool in bundle.tools() {
        for action in &tool.actions {
            let schema = action.parameters.json_schema();
            assert_eq!(schema["type"], "object");
            let _ = action.parameters.complete(Map::new());
        }
    }
});
