//! What a campaign would do, without doing it: the attacks, and the runs against each subject.

use std::collections::BTreeMap;

use proofhouse_campaign::plan::Plan;
use proofhouse_campaign::result::SubjectInfo;
use serde_json::{Value, json};

use crate::text::{line, plural};

/// The attacks that would run, one line each.
#[must_use]
pub fn attacks(plan: &Plan) -> Vec<String> {
    let lines = used(plan).into_iter().map(|place| {
        let info = &plan.documents[place].info;
        let severity = info.severity.as_deref().unwrap_or("-");
        let name = line(&info.name);
        format!("{:<12} {severity:<13} {name}", line(&info.id))
    });
    lines.map(|text| text.trim_end().to_owned()).collect()
}

/// The attacks that would run, for programs.
#[must_use]
pub fn attacks_json(plan: &Plan) -> Value {
    let attacks = used(plan).into_iter().map(|place| {
        let info = &plan.documents[place].info;
        json!({
            "id": info.id, "name": info.name, "severity": info.severity, "category": info.category,
            "protocols": info.protocols, "path": info.path, "has_control": info.has_twin,
        })
    });
    Value::Array(attacks.collect())
}

/// The runs that would be made, for people.
#[must_use]
pub fn runs(plan: &Plan, subjects: &[SubjectInfo]) -> Vec<String> {
    let counts = counts(plan);
    let mut lines = vec![format!(
        "Would run {} with {} each ({} in all), and before them {}the channel probes:",
        plural(used(plan).len() as u64, "attack"),
        plural(u64::from(plan.repeats), "repeat"),
        plural(plan.runs.len() as u64, "run"),
        // Simulations need no preflight.
        if subjects.iter().all(|subject| subject.simulation) {
            ""
        } else {
            "the preflight and "
        },
    )];
    for (number, subject) in subjects.iter().enumerate() {
        let (attacks, controls) = counts.get(&number).copied().unwrap_or_default();
        lines.push(format!(
            "  {}: {}, {} ({})",
            line(&subject.name),
            plural(attacks, "attack run"),
            plural(controls, "control run"),
            line(&subject.description)
        ));
    }
    lines.push("Nothing was run. --list names the attacks.".to_owned());
    lines
}

/// The runs that would be made, for programs.
#[must_use]
pub fn runs_json(plan: &Plan, subjects: &[SubjectInfo]) -> Value {
    let counts = counts(plan);
    let subjects = subjects.iter().enumerate().map(|(number, subject)| {
        let (attacks, controls) = counts.get(&number).copied().unwrap_or_default();
        json!({
            "name": subject.name, "kind": subject.kind, "simulation": subject.simulation,
            "attack_runs": attacks, "control_runs": controls,
        })
    });
    let subjects: Vec<Value> = subjects.collect();
    json!({
        "attacks": used(plan).len(), "repeats": plan.repeats, "seed": plan.seed,
        "runs": plan.runs.len(), "subjects": subjects,
    })
}

/// The documents of a plan that have runs.
fn used(plan: &Plan) -> Vec<usize> {
    let mut used: Vec<usize> = plan.runs.iter().map(|run| run.document).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// Attack runs and control runs of each subject, by its number.
fn counts(plan: &Plan) -> BTreeMap<usize, (u64, u64)> {
    let mut counts: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for run in &plan.runs {
        let (attacks, controls) = counts.entry(run.subject).or_default();
        *attacks += u64::from(!run.twin);
        *controls += u64::from(run.twin);
    }
    counts
}
