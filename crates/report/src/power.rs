//! Tells what the comparison with a baseline can find, and how many repeats it takes to find more.

use std::fmt::Write;

use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::sensitivity::Sensitivity;

use crate::text::plural;

/// One line for whoever compares: what so many repeats can find.
#[must_use]
pub fn note(sensitivity: &Sensitivity) -> String {
    detects(sensitivity, "this comparison")
}

/// One line for whoever repeats and has nothing to compare with: what a comparison with as many runs could find. `None`
/// where nothing is repeated.
#[must_use]
pub fn later(sensitivity: &Sensitivity) -> Option<String> {
    (sensitivity.repeats > 1).then(|| {
        detects(
            sensitivity,
            "a comparison with this campaign as the baseline",
        )
    })
}

fn detects(sensitivity: &Sensitivity, comparison: &str) -> String {
    let runs = if sensitivity.before == sensitivity.repeats {
        format!("With {}", plural(sensitivity.repeats, "repeat"))
    } else {
        format!(
            "With {} and {} before",
            plural(sensitivity.repeats, "repeat"),
            sensitivity.before
        )
    };
    match found(sensitivity) {
        Some(found) => {
            format!("{runs}, {comparison} detects four of five true regressions if {found}.")
        }
        None => format!("{runs}, no regression can be detected: there are too few runs."),
    }
}

/// Where no regression was found, why that proves nothing, if so.
#[must_use]
pub fn unproved(comparison: &Comparison) -> Vec<String> {
    if comparison.regressions() > 0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if let Some(obstacle) = comparison.obstacle() {
        lines.push(format!("nothing is compared: {obstacle}"));
    } else if comparison.is_blind() {
        lines.push(
            "there are too few runs to detect any regression; `--detect 0.2` prints how many repeats are needed"
                .to_owned(),
        );
    }
    let unknown = comparison.unknown_successes();
    if unknown > 0 {
        lines.push(format!(
            "{} got through that the baseline did not include; create a new baseline, or add --fail-on partial",
            plural(unknown as u64, "attack")
        ));
    }
    lines
}

/// How many repeats find a rise, and what those that are planned can find.
#[must_use]
pub fn plan(sensitivity: &Sensitivity, rise: f64, has_baseline: bool) -> String {
    let known = if has_baseline {
        "in the baseline"
    } else {
        "assumed before; --baseline FILE reads it from a result"
    };
    let mut out = format!(
        "Repeats to detect a rise by {} percentage points, with 80% power and at most {} false alarms over the whole gate\n({}, {}; attack success rate {} {known}):\n",
        points(rise),
        share(sensitivity.threshold),
        plural(sensitivity.subjects, "subject"),
        plural(sensitivity.documents, "attack"),
        share(sensitivity.rate),
    );
    let ways = [
        ("one attack", sensitivity.repeats_for_one(rise)),
        ("all attacks", sensitivity.repeats_for_all(rise)),
    ];
    for (what, repeats) in ways {
        let repeats = repeats.map_or_else(
            || "not with any number of repeats".to_owned(),
            |repeats| format!("--repeats {repeats}"),
        );
        let _ = writeln!(out, "  {what:<14} {repeats}");
    }
    let _ = writeln!(out, "{}", note(sensitivity));
    out
}

/// What is found: `the success rate of one attack rises from 5% to 84% or more, or that of all 59 attacks from 5% to 12% or more`.
fn found(sensitivity: &Sensitivity) -> Option<String> {
    let from = share(sensitivity.rate);
    let of =
        |least: Option<f64>| least.map(|least| format!("from {from} to {} or more", share(least)));
    let one = of(sensitivity.least_of_one());
    let all = of(sensitivity.least_of_all());
    let documents = sensitivity.documents;
    Some(match (one, all) {
        (Some(one), _) if documents == 1 => format!("the success rate of the attack rises {one}"),
        (Some(one), Some(all)) => {
            format!(
                "the success rate of one attack rises {one}, or that of all {documents} attacks {all}"
            )
        }
        (Some(one), None) => format!("the success rate of one attack rises {one}"),
        (None, Some(all)) => {
            format!(
                "the success rate of all {documents} attacks rises {all}; the rise of a single attack cannot be detected"
            )
        }
        (None, None) => return None,
    })
}

/// A share in percent, rounded up, as it is a bound.
fn share(share: f64) -> String {
    format!("{}%", points(share))
}

fn points(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 || (percent - percent.round()).abs() < 1e-9 {
        let text = format!("{percent:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return text.to_owned();
    }
    format!("{}", percent.ceil())
}
