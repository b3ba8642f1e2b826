//! What a campaign would do, without doing it: `run --list` and `run --dry-run`.

use std::collections::BTreeMap;

use proofhouse_campaign::plan::Plan;
use proofhouse_campaign::result::SubjectInfo;
use serde_json::{Value, json};

use crate::output::{CommandError, StdoutData, printable_line};
use crate::report::plural;

/// The attacks that would run: one line each, or JSON.
pub(crate) fn list(plan: &Plan, as_json: bool) -> Result<(), CommandError> {
    let mut data = StdoutData::new();
    let used = used(plan);
    if as_json {
        let attacks = used.iter().map(|place| {
            let info = &plan.documents[*place].info;
            json!({
                "id": info.id, "name": info.name, "severity": info.severity, "category": info.category,
                "protocols": info.protocols.iter().map(|one| one.to_string()).collect::<Vec<String>>(),
                "path": info.path, "has_control": info.has_twin,
            })
        });
        data.json(&Value::Array(attacks.collect()))?;
        return data.finish();
    }
    for place in used {
        let info = &plan.documents[place].info;
        let severity = info.severity.as_deref().unwrap_or("-");
        let line = format!("{:<12} {severity:<13} {}", info.id, info.name);
        data.line(printable_line(&line).trim_end())?;
    }
    data.finish()
}

/// The documents of a plan that have runs.
fn used(plan: &Plan) -> Vec<usize> {
    let mut used: Vec<usize> = plan.runs.iter().map(|run| run.document).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// What would be run: for each subject, how many attacks and runs.
pub(crate) fn dry_run(
    plan: &Plan,
    subjects: &[SubjectInfo],
    as_json: bool,
) -> Result<(), CommandError> {
    let mut counts: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for run in &plan.runs {
        let (attacks, controls) = counts.entry(run.subject).or_default();
        if run.twin {
            *controls += 1;
        } else {
            *attacks += 1;
        }
    }
    let mut data = StdoutData::new();
    if as_json {
        let subjects = subjects.iter().enumerate().map(|(number, subject)| {
            let (attacks, controls) = counts.get(&number).copied().unwrap_or_default();
            json!({
                "name": subject.name, "kind": subject.kind, "simulation": subject.simulation,
                "attack_runs": attacks, "control_runs": controls,
            })
        });
        let subjects: Vec<Value> = subjects.collect();
        data.json(&json!({
            "attacks": used(plan).len(), "repeats": plan.repeats, "seed": plan.seed,
            "runs": plan.runs.len(), "subjects": subjects,
        }))?;
        return data.finish();
    }
    data.line(&format!(
        "Would run {} with {} each ({} in all), and before them the preflight and the channel probes:",
        plural(used(plan).len(), "attack"),
        plural(plan.repeats as usize, "repeat"),
        plural(plan.runs.len(), "run"),
    ))?;
    for (number, subject) in subjects.iter().enumerate() {
        let (attacks, controls) = counts.get(&number).copied().unwrap_or_default();
        let line = format!(
            "  {}: {}, {} ({})",
            subject.name,
            plural(attacks, "attack run"),
            plural(controls, "control run"),
            subject.description
        );
        data.line(&printable_line(&line))?;
    }
    data.line("Nothing was run. --list names the attacks.")?;
    data.finish()
}
