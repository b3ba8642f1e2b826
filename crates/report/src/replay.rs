//! Replayed runs for programs.

use proofhouse_campaign::replay::{Again, KeptCampaign, Replayed};
use serde_json::{Value, json};

/// The version of the form.
const VERSION: u32 = 1;

/// All of them as one value, with what was said where that is wanted.
#[must_use]
pub fn document(replayed: &[Replayed<'_>], found: &[KeptCampaign], with_messages: bool) -> Value {
    let missing: Vec<String> = found.iter().flat_map(KeptCampaign::missing).collect();
    json!({
        "version": VERSION,
        "proofhouse": env!("CARGO_PKG_VERSION"),
        "changed": replayed.iter().filter(|one| one.differs()).count(),
        "failed": replayed.iter().filter(|one| one.again.is_err()).count(),
        "missing": missing,
        "runs": replayed.iter().map(|one| run(one, with_messages)).collect::<Vec<_>>(),
    })
}

fn run(one: &Replayed<'_>, with_messages: bool) -> Value {
    let record = one.record;
    let mut run = json!({
        "id": record.id,
        "document": record.document,
        "subject": record.subject,
        "repeat": record.repeat,
        "twin": record.twin,
        "reached": record.reached,
        "then": {
            "outcome": record.outcome,
            "reason": record.reason,
            "verdict": record.verdict,
            "conditions": record.conditions,
            "tier": record.tier,
            "indicators": record.indicators,
            "error": record.error,
            "messages": record.messages,
            "proofhouse": one.result.proofhouse,
        },
    });
    let more = match &one.again {
        Err(error) => json!({"now": null, "changed": null, "failure": error.to_string()}),
        Ok(again) => now(one, again, with_messages),
    };
    if let (Some(run), Value::Object(more)) = (run.as_object_mut(), more) {
        run.extend(more);
    }
    run
}

fn now(one: &Replayed<'_>, again: &Again, with_messages: bool) -> Value {
    let changed = one.differs();
    let reasons = if changed { one.reasons() } else { Vec::new() };
    let recording = &again.recording;
    let problems = recording.problems.iter().map(|problem| {
        json!({"line": problem.line, "kind": problem.kind.as_str(), "message": problem.message})
    });
    let mut value = json!({
        "now": again.judged,
        "changed": changed,
        "changes": again.judged.changes(one.record),
        "reasons": reasons,
        "judged_by": {"document": again.document, "state": again.state.as_str()},
        "recording": {
            "path": recording.path.display().to_string(),
            "messages": recording.messages,
            "skipped": recording.skipped,
            "broke_off": recording.broke_off,
            "problems": problems.collect::<Vec<_>>(),
        },
    });
    if with_messages {
        value["conversation"] = json!({
            "prompts": again.prompts,
            "messages": recording.shown,
            "answer": one.record.answer,
        });
    }
    value
}
