//! Judges one message with the indicators of a threat document: the example of the README.
#![expect(
    clippy::print_stdout,
    reason = "an example shows its result on the terminal"
)]

use std::collections::HashMap;

use proofhouse_oatf::{DefaultCelEvaluator, Surface, compute_verdict, evaluate_indicator, load};
use serde_json::json;

fn main() {
    let text = include_str!("threat.yaml");
    let loaded = load(text).expect("the document is valid");
    let attack = &loaded.document.attack;

    // What the agent sent to the server when it called the poisoned tool.
    let message = json!({"name": "weather", "arguments": {"note": "CANARY-0badcafe"}});

    let mut verdicts = HashMap::new();
    for indicator in attack.indicators() {
        // The message is a tool call; indicators for other messages stay out of it.
        if indicator.surface == Some(Surface::ToolsCall) {
            let verdict = evaluate_indicator(indicator, &message, Some(&DefaultCelEvaluator), None);
            println!("{}: {}", verdict.indicator_id, verdict.result);
            verdicts.insert(verdict.indicator_id.clone(), verdict);
        }
    }
    println!("verdict: {}", compute_verdict(attack, &verdicts).result);
}
