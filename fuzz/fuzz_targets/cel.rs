//! CEL: any text compiles or does not, and any program ends with a value or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_expr::{Program, Variables};
use serde_json::json;

fuzz_target!(|text: &str| {
    let Ok(program) = Program::compile(text) else {
        return;
    };
    let message = json!({"name": "tool", "n": 7, "list": [1, 2.5, "x", null], "map": {"a": true}});
    let mut variables = Variables::new();
    variables.bind("message", &message);
    let _ = program.evaluate(&variables);
    let _ = program.evaluate_bool(&variables);
});
