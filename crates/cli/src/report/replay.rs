//! Replayed runs for people.

use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::replay::{Again, DocumentState, Replayed};
use proofhouse_report::conversation;

use super::plural;
use crate::commands::replay::MessageDetail;
use crate::output::{CommandError, StdoutData, printable_line, quoted, shown_path};

/// Characters of what a user or a subject said that are shown.
const SAID: usize = 400;

/// Writes all of them, and how many differ.
pub(crate) fn write(
    data: &mut StdoutData,
    replayed: &[Replayed<'_>],
    messages: MessageDetail,
) -> Result<(), CommandError> {
    for one in replayed {
        match messages {
            MessageDetail::None => line(data, one)?,
            _ => page(data, one, messages == MessageDetail::Full)?,
        }
    }
    if replayed.len() > 1 {
        let failed = replayed.iter().filter(|one| one.again.is_err()).count();
        let changed = replayed.iter().filter(|one| one.differs()).count();
        let same = replayed.len() - failed - changed;
        let mut summary = format!(
            "\n{}: {same} as recorded, {changed} changed",
            plural(replayed.len(), "run")
        );
        if failed > 0 {
            summary.push_str(&format!(", {failed} not judged again"));
        }
        data.line(&summary)?;
    }
    Ok(())
}

/// A run on one line, and why it differs, if it does.
fn line(data: &mut StdoutData, one: &Replayed<'_>) -> Result<(), CommandError> {
    let then = one.record.outcome.word();
    let id = printable_line(&one.record.id);
    match &one.again {
        Err(error) => {
            data.line(&format!("! {then:<12} –            {id}"))?;
            data.line(&format!("    {}", printable_line(&error.to_string())))
        }
        Ok(again) => {
            let mark = if one.differs() { '≠' } else { '=' };
            let now = again.judged.outcome.word();
            data.line(&format!("{mark} {then:<12} {now:<12} {id}"))?;
            if one.differs() {
                reasons(data, one)
            } else {
                Ok(())
            }
        }
    }
}

fn reasons(data: &mut StdoutData, one: &Replayed<'_>) -> Result<(), CommandError> {
    for reason in one.reasons() {
        data.line(&format!("    {}", printable_line(&reason)))?;
    }
    Ok(())
}

/// A run with its conversation.
fn page(data: &mut StdoutData, one: &Replayed<'_>, full: bool) -> Result<(), CommandError> {
    let record = one.record;
    let name = one.info.map_or("", |info| info.name.as_str());
    data.line(&printable_line(&format!("{}  {name}", record.id)))?;
    let again = match &one.again {
        Err(error) => {
            return data.line(&format!(
                "  cannot be judged again: {}",
                printable_line(&error.to_string())
            ));
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
    let (delivered, carriers) = record.carriers;
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
                shown_path(&again.recording.path),
                again.recording.messages
            ),
        ),
        (
            "exposure",
            format!("{reached}; {delivered} of {carriers} carriers were delivered"),
        ),
    ] {
        data.line(&printable_line(&format!("  {label:<11}{text}")))?;
    }
    data.line("")?;
    talk(data, one, again, full)?;
    data.line("")?;
    verdict(
        data,
        "then",
        record.outcome,
        record.reason,
        record.tier.as_deref(),
    )?;
    let judged = &again.judged;
    verdict(
        data,
        "now",
        judged.outcome,
        judged.reason,
        judged.tier.as_deref(),
    )?;
    for (name, condition) in judged.conditions.each() {
        if !condition.held && !record.twin {
            let text = format!(
                "       {} does not hold: {}",
                name.replace('_', " "),
                condition.why
            );
            data.line(printable_line(&text).trim_end_matches([':', ' ']))?;
        }
    }
    if let Some(error) = &judged.error {
        data.line(&format!("       {}", printable_line(error)))?;
    }
    for indicator in &judged.indicators {
        let why = judged.reasons.get(&indicator.id);
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("       {}: {}{why}", indicator.id, indicator.result);
        data.line(&printable_line(&text))?;
    }
    if one.differs() {
        data.line("differs:")?;
        reasons(data, one)
    } else {
        data.line("the same verdict as recorded")
    }
}

fn verdict(
    data: &mut StdoutData,
    when: &str,
    outcome: RunOutcome,
    reason: Option<InconclusiveReason>,
    tier: Option<&str>,
) -> Result<(), CommandError> {
    let tier = tier.map(|tier| format!(", {tier}")).unwrap_or_default();
    let reason = reason.map(|reason| format!(" ({}): {}", reason.code(), reason.sentence()));
    data.line(&printable_line(&format!(
        "{when:<5}  {}{tier}{}",
        outcome.word(),
        reason.unwrap_or_default()
    )))
}

fn talk(
    data: &mut StdoutData,
    one: &Replayed<'_>,
    again: &Again,
    full: bool,
) -> Result<(), CommandError> {
    let subject = one.record.subject.as_str();
    for prompt in &again.prompts {
        let arrow = printable_line(&format!("user → {subject}"));
        data.line(&format!("        {arrow}  {}", quoted(prompt, SAID)))?;
    }
    let recording = &again.recording;
    for message in &recording.shown {
        let arrow = conversation::arrow(one.info, subject, message);
        let direction = message.direction.map_or("", |direction| direction.as_str());
        let head = printable_line(&format!(
            "{:>5}   {arrow}  {} {} {direction}",
            message.sequence, message.protocol, message.operation
        ));
        data.line(head.trim_end())?;
        if full {
            for line in conversation::full(message) {
                data.line(&format!("          {line}"))?;
            }
        } else {
            data.line(&format!("          {}", conversation::gist(message)))?;
        }
        for evidence in conversation::evidence(&again.judged.indicators, message.sequence) {
            data.line(&format!("     ▲    {evidence}"))?;
        }
    }
    let more = recording.messages - recording.shown.len() as u64;
    if more > 0 {
        data.line(&format!(
            "        {more} more messages are in the recording"
        ))?;
    }
    if let Some(answer) = &one.record.answer {
        let arrow = printable_line(&format!("{subject} → user"));
        data.line(&format!("        {arrow}  {}", quoted(answer, SAID)))?;
    }
    Ok(())
}
