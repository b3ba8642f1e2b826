//! Replayed runs for people.

use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::replay::{Again, DocumentState, Replayed};
use proofhouse_source::printable_line;

use crate::conversation;
use crate::quoting::quoted;
use crate::text::{plural, push_line};

/// Characters of what a user or a subject said that are shown.
const SAID: usize = 400;

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownMessages {
    /// Only the verdicts.
    None,
    /// One line per message.
    Short,
    /// Each message in full.
    Full,
}

/// The text of all of them, and how many differ.
#[must_use]
pub fn text(replayed: &[Replayed<'_>], messages: ShownMessages) -> String {
    let mut text = String::new();
    let out = &mut text;
    if messages == ShownMessages::None && !replayed.is_empty() {
        push_line(out, "  RECORDED     NOW          RUN");
    }
    for one in replayed {
        match messages {
            ShownMessages::None => line(out, one),
            ShownMessages::Short => page(out, one, false),
            ShownMessages::Full => page(out, one, true),
        }
    }
    if replayed.len() > 1 {
        let failed = replayed.iter().filter(|one| one.again.is_err()).count();
        let changed = replayed.iter().filter(|one| one.differs()).count();
        let same = replayed.len() - failed - changed;
        let mut summary = format!(
            "\n{}: {same} as recorded, {changed} changed",
            plural(replayed.len() as u64, "run")
        );
        if failed > 0 {
            summary.push_str(&format!(", {failed} not judged again"));
        }
        push_line(out, &summary);
    }
    text
}

/// A run on one line, and why it differs, if it does.
fn line(out: &mut String, one: &Replayed<'_>) {
    let then = one.record.outcome.word();
    let id = printable_line(&one.record.id);
    match &one.again {
        Err(error) => {
            push_line(out, &format!("! {then:<12} –            {id}"));
            push_line(out, &format!("    {}", printable_line(&error.to_string())));
        }
        Ok(again) => {
            let mark = if one.differs() { '≠' } else { '=' };
            let now = again.judged.outcome.word();
            push_line(out, &format!("{mark} {then:<12} {now:<12} {id}"));
            if one.differs() {
                reasons(out, one);
            }
        }
    }
}

fn reasons(out: &mut String, one: &Replayed<'_>) {
    for reason in one.reasons() {
        push_line(out, &format!("    {}", printable_line(&reason)));
    }
}

/// A run with its conversation.
fn page(out: &mut String, one: &Replayed<'_>, full: bool) {
    let record = one.record;
    let name = one.info.map_or("", |info| info.name.as_str());
    push_line(out, &printable_line(&format!("{}  {name}", record.id)));
    let again = match &one.again {
        Err(error) => {
            return push_line(
                out,
                &format!(
                    "  cannot be judged again: {}",
                    printable_line(&error.to_string())
                ),
            );
        }
        Ok(again) => again,
    };
    let mut subjects = one.result.subjects.iter();
    let subject = subjects.find(|subject| subject.name == record.subject);
    let about = subject.map_or("", |subject| subject.description.as_str());
    let state = match again.state {
        DocumentState::Given => "given",
        DocumentState::AsRun => "as it was run",
        DocumentState::Changed => "changed since the run",
    };
    let (sent, places) = record.carriers;
    let reached = if record.reached {
        "the attack reached the subject"
    } else {
        "nothing of the attack reached the subject"
    };
    for (label, text) in [
        ("subject", format!("{}, {about}", record.subject)),
        ("document", format!("{}, {state}", again.document)),
        (
            "recording",
            format!(
                "{}, {} messages",
                printable_line(&again.recording.path.display().to_string()),
                again.recording.messages
            ),
        ),
        (
            "exposure",
            if record.twin {
                "control run, no payload".to_owned()
            } else {
                format!(
                    "{reached}; the payload was sent in {sent} of {}",
                    plural(places, "place")
                )
            },
        ),
    ] {
        push_line(out, &printable_line(&format!("  {label:<11}{text}")));
    }
    push_line(out, "");
    talk(out, one, again, full);
    push_line(out, "");
    verdict(
        out,
        "recorded",
        record.outcome,
        record.reason,
        record.tier.as_deref(),
    );
    let judged = &again.judged;
    verdict(
        out,
        "now",
        judged.outcome,
        judged.reason,
        judged.tier.as_deref(),
    );
    for (name, condition) in judged.conditions.each() {
        if !condition.held && !record.twin {
            let text = format!(
                "       {} does not hold: {}",
                name.replace('_', " "),
                condition.why
            );
            push_line(out, printable_line(&text).trim_end_matches([':', ' ']));
        }
    }
    if let Some(error) = &judged.error {
        push_line(out, &format!("       {}", printable_line(error)));
    }
    for indicator in &judged.indicators {
        let why = judged.reasons.get(&indicator.id);
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("       {}: {}{why}", indicator.id, indicator.result);
        push_line(out, &printable_line(&text));
    }
    if one.differs() {
        push_line(out, "differs:");
        reasons(out, one);
    } else {
        push_line(out, "the same verdict as recorded");
    }
}

fn verdict(
    out: &mut String,
    when: &str,
    outcome: RunOutcome,
    reason: Option<InconclusiveReason>,
    tier: Option<&str>,
) {
    let tier = tier.map(|tier| format!(", {tier}")).unwrap_or_default();
    let reason = reason.map(|reason| format!(" ({}): {}", reason.code(), reason.sentence()));
    push_line(
        out,
        &printable_line(&format!(
            "{when:<8}  {}{tier}{}",
            outcome.word(),
            reason.unwrap_or_default()
        )),
    );
}

fn talk(out: &mut String, one: &Replayed<'_>, again: &Again, full: bool) {
    let subject = one.record.subject.as_str();
    for prompt in &again.prompts {
        let arrow = printable_line(&format!("user → {subject}"));
        push_line(out, &format!("        {arrow}  {}", quoted(prompt, SAID)));
    }
    let recording = &again.recording;
    for message in &recording.shown {
        let arrow = conversation::arrow(one.info, subject, message);
        let direction = message.direction.map_or("", |direction| direction.as_str());
        let head = printable_line(&format!(
            "{:>5}   {arrow}  {} {} {direction}",
            message.sequence, message.protocol, message.operation
        ));
        push_line(out, head.trim_end());
        if full {
            for line in conversation::full(message) {
                push_line(out, &format!("          {line}"));
            }
        } else {
            push_line(out, &format!("          {}", conversation::gist(message)));
        }
        for evidence in conversation::evidence(&again.judged.indicators, message.sequence) {
            push_line(out, &format!("     ▲    {evidence}"));
        }
    }
    let more = recording.messages - recording.shown.len() as u64;
    if more > 0 {
        push_line(
            out,
            &format!("        {more} more messages are in the recording"),
        );
    }
    if let Some(answer) = &one.record.answer {
        let arrow = printable_line(&format!("{subject} → user"));
        push_line(out, &format!("        {arrow}  {}", quoted(answer, SAID)));
    }
}
