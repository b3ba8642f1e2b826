//! Conditions: a JSON array of a condition and the value it is held against.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_oatf::{
    Condition, Fragment, MatchPredicate, coerce_to_text, deep_equal, evaluate_condition,
    evaluate_predicate,
};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok([condition, value]) = serde_json::from_str::<[Value; 2]>(text) else {
        return;
    };
    assert!(deep_equal(&value, &value));
    assert_eq!(
        deep_equal(&condition, &value),
        deep_equal(&value, &condition)
    );
    let _ = coerce_to_text(&value);
    if let Ok(condition) = Condition::from_value(&condition) {
        let _ = evaluate_condition(&condition, &value);
    }
    if let Ok(predicate) = MatchPredicate::from_value(&condition) {
        let _ = evaluate_predicate(&predicate, &value);
    }
});
