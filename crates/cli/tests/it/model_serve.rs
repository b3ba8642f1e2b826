//! `proofhouse model serve` as it is asked for wrongly; `real_agents` uses it rightly.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

#[test]
fn only_what_needs_no_provider_is_served_and_only_here() {
    for (arguments, expected) in [
        (
            &["openai:gpt-5"][..],
            "an agent reaches other models by itself",
        ),
        (&["sim:gulible"], "did you mean `sim:gullible`?"),
        (&["replay:nowhere.jsonl"], "nowhere.jsonl"),
        (&["sim:careful", "--listen", "0.0.0.0:0"], "--allow-remote"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
            .args(["model", "serve"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(output.stdout.is_empty());
    }
}
