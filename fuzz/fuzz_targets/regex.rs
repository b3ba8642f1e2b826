//! RE2 patterns: validation and compilation agree on which patterns are good, and matching ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_oatf::{MatchBudget, ReadLimits, RegexPattern, check};
use proofhouse_source::to_yaml;
use serde_json::json;

fuzz_target!(|text: &str| {
    let pattern = RegexPattern::new(text);
    let compiled = pattern.regex();
    match compiled {
        Ok(regex) => {
            let _ = regex.is_match(
                "The quick brown fox; 127.0.0.1 ~/.ssh/id_rsa zażółć\n",
                &mut MatchBudget::default(),
            );
        }
        Err(error) => assert!(error.range.end <= text.len(), "{error}: {:?}", error.range),
    }
    let document = to_yaml(&json!({
        "oatf": "0.1",
        "attack": {
            "execution": {"mode": "mcp_server", "state": {"tools": []}},
            "indicators": [
                {"surface": "tools/call", "target": "arguments", "pattern": {"regex": text}},
            ],
        },
    }));
    let findings = check(&document, &ReadLimits::default());
    let refused = findings.iter().any(|finding| matches!(finding.code, "V-013" | "PH-105"));
    assert_eq!(
        refused,
        compiled.is_err(),
        "{text:?}: {compiled:?}, {findings:?}"
    );
});
