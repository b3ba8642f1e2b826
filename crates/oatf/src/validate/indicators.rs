//! Rules about indicators and how they combine.

use super::metadata::{ends_in_number, is_attack_id};
use super::view::{ValidationPass, attack_path};

pub(super) fn not_empty(check: &mut ValidationPass<'_>) {
    if check
        .document
        .attack
        .indicators
        .as_ref()
        .is_some_and(Vec::is_empty)
    {
        check
            .report_key(&attack_path().key("indicators"), "`indicators` is empty")
            .help =
            Some("add one, or remove the key for a document that only simulates".to_owned());
    }
}

pub(super) fn unique_ids(check: &mut ValidationPass<'_>) {
    let mut seen = std::collections::HashSet::new();
    check.each_indicator(|check, view| {
        if let Some(id) = &view.indicator.id
            && !seen.insert(id)
        {
            let shown: String = id.chars().take(60).collect();
            check.report(
                &view.path.key("id"),
                format!("indicator id `{shown}` is used twice"),
            );
        }
    });
}

pub(super) fn one_detection(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let indicator = view.indicator;
        let present = [
            indicator.pattern.as_ref().map(|_| "pattern"),
            indicator.expression.as_ref().map(|_| "expression"),
            indicator.semantic.as_ref().map(|_| "semantic"),
        ];
        let present: Vec<&str> = present.into_iter().flatten().collect();
        match present.as_slice() {
            [_] => {}
            [] => {
                check.report(
                    &view.path,
                    "an indicator needs one of `pattern`, `expression` and `semantic`",
                );
            }
            several => {
                let listed = several.join("`, `");
                let message =
                    format!("an indicator has one way of detection, not several: `{listed}`");
                check.report(&view.path, message).help =
                    Some("write one indicator for each".to_owned());
            }
        }
    });
}

pub(super) fn threshold(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let threshold = view.indicator.semantic.as_ref().and_then(|s| s.threshold);
        if let Some(threshold) = threshold.filter(|t| !(0.0..=1.0).contains(t)) {
            check.report(
                &view.path.key("semantic").key("threshold"),
                format!("`threshold` is {threshold}; it must be from 0.0 to 1.0"),
            );
        }
    });
}

pub(super) fn id_format(check: &mut ValidationPass<'_>) {
    let Some(attack_id) = check.document.attack.id.as_deref() else {
        return;
    };
    let shown_id: String = attack_id.chars().take(60).collect();
    check.each_indicator(|check, view| {
        let Some(id) = view.indicator.id.as_deref() else {
            return;
        };
        let well_formed = ends_in_number(id, 2)
            && id
                .rsplit_once('-')
                .is_some_and(|(head, _)| is_attack_id(head) && head == attack_id);
        if !well_formed {
            let shown: String = id.chars().take(60).collect();
            check
                .report(
                    &view.path.key("id"),
                    format!("`{shown}` is not an indicator id of {shown_id}"),
                )
                .help = Some(format!(
                "write {shown_id}-01, or leave it out to have it generated"
            ));
        }
    });
}

pub(super) fn confidence(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        if let Some(confidence) = view.indicator.confidence.filter(|c| !(0..=100).contains(c)) {
            check.report(
                &view.path.key("confidence"),
                format!("`confidence` is {confidence}; it must be from 0 to 100"),
            );
        }
    });
}

pub(super) fn correlation(check: &mut ValidationPass<'_>) {
    let attack = &check.document.attack;
    if attack.correlation.is_some() && attack.indicators.is_none() {
        check.report_key(
            &attack_path().key("correlation"),
            "`correlation` combines indicators, and there are none",
        );
    }
}

pub(super) fn actor_exists(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        let Some(actor) = view.indicator.actor.as_deref() else {
            return;
        };
        if !check.has_actor(actor) {
            // Where there are actors, one of them is meant; otherwise there is only the one.
            let near = match check.document.attack.execution.actors {
                Some(_) => check.near(actor, check.written_actors()),
                None => check.near(actor, ["default"]),
            };
            let shown: String = actor.chars().take(60).collect();
            check
                .report(
                    &view.path.key("actor"),
                    format!("there is no actor `{shown}`"),
                )
                .help = near.map(|near| format!("did you mean `{near}`?"));
        }
    });
}

pub(super) fn method_matches(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        if let (Some(method), Some(present)) = (view.indicator.method, view.indicator.detection())
            && method != present
        {
            check.report(
                &view.path.key("method"),
                format!("`method` is {method}, but the indicator has `{present}`"),
            );
        }
    });
}

pub(super) fn semantic(check: &mut ValidationPass<'_>) {
    check.each_indicator(|check, view| {
        if view.indicator.semantic.is_some() {
            check.report_key(
                &view.path.key("semantic"),
                "the outcome of a semantic indicator depends on the evaluator in use",
            );
        }
    });
}
