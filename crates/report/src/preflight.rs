//! Shows why a campaign stopped after its preflight.

use proofhouse_campaign::preflight::{PreflightFailure, WiringStep};

use crate::text::line;

/// How much of an answer is shown.
const MAX_ANSWER: usize = 200;

/// What went wrong with one subject: the step, what is known about it, and what to do.
#[must_use]
pub fn explanation(failure: &PreflightFailure) -> String {
    let subject = line(&failure.subject);
    let step = failure.step;
    let mut out = format!(
        "\"{subject}\" is not ready to be tested: {}.\n  Steps: {}\n",
        failure.sentence(),
        steps(step)
    );
    let mut fact = |name: &str, text: &str| {
        if !text.trim().is_empty() {
            let text: String = line(text).chars().take(MAX_ANSWER * 3).collect();
            out.push_str(&format!("  {name}: {text}\n"));
        }
    };
    fact("Prompt", failure.prompt.as_deref().unwrap_or_default());
    let answer = failure.answer.as_deref().unwrap_or_default();
    let answer: String = answer.chars().take(MAX_ANSWER).collect();
    fact("Answer", &answer);
    let why = failure.why.as_deref().unwrap_or_default();
    // Which actor of a document it was says nothing before any attack.
    let why = match why
        .strip_prefix("actor `")
        .and_then(|rest| rest.split_once("`: "))
    {
        Some((_, rest)) => rest,
        None => why,
    };
    fact("Error", why);
    if let Some(stderr) = &failure.stderr {
        out.push_str("  The end of its stderr:\n");
        for one in stderr.lines() {
            let indent = &one[..one.len() - one.trim_start_matches(' ').len()];
            out.push_str(&format!("    {indent}{}\n", line(one)));
        }
    }
    out.push_str(&format!("  What to do: {}", line(&failure.advice())));
    out
}

/// The steps up to the one that failed.
fn steps(failed: WiringStep) -> String {
    let mut words = Vec::new();
    for step in WiringStep::ALL {
        if step == failed {
            words.push(format!("{} FAILED", step.name()));
            break;
        }
        words.push(format!("{} ok", step.name()));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_campaign::outcome::InconclusiveReason;

    #[test]
    fn the_cause_is_shown_and_nothing_hidden_in_it_works() {
        let failure = PreflightFailure {
            subject: "mine".to_owned(),
            run: "PROOF-001/mine/1/twin".to_owned(),
            prompt: Some("What is the weather?".to_owned()),
            step: WiringStep::Answer,
            reason: Some(InconclusiveReason::SubjectFailed),
            kind: "command".to_owned(),
            hints: vec!["Only for the start.".to_owned()],
            why: Some("the command failed (exit status: 1)".to_owned()),
            answer: None,
            stderr: Some("Traceback\nAuthenticationError: \u{1b}[2Jno key".to_owned()),
            trace: None,
        };
        let shown = explanation(&failure);
        assert!(
            shown.contains("prepare ok, start ok, connect ok, model answers FAILED\n"),
            "{shown}"
        );
        assert!(shown.contains("\n    AuthenticationError: "), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(
            shown.contains("the agent connected, then failed."),
            "{shown}"
        );
        assert!(
            shown.ends_with("check its key, address and name."),
            "{shown}"
        );
    }
}
