//! Rules about the attack envelope.

use super::view::{ValidationPass, attack_path};
use crate::model::Impact;
use proofhouse_source::{DocPath, PathSegment};

pub(super) fn version(check: &mut ValidationPass<'_>) {
    let oatf = &check.document.oatf;
    if oatf != crate::SUPPORTED_VERSION {
        let mut path = DocPath::default();
        path.push(PathSegment::Key("oatf"));
        let shown: String = oatf.chars().take(40).collect();
        check
            .report(&path, format!("version `{shown}` is not supported"))
            .help = Some(format!("write `oatf: \"{}\"`", crate::SUPPORTED_VERSION));
    }
}

pub(super) fn severity_confidence(check: &mut ValidationPass<'_>) {
    let confidence = check
        .document
        .attack
        .severity
        .as_ref()
        .and_then(|s| s.confidence);
    if let Some(confidence) = confidence.filter(|c| !(0..=100).contains(c)) {
        let path = attack_path().key("severity").key("confidence");
        check.report(
            &path,
            format!("`confidence` is {confidence}; it must be from 0 to 100"),
        );
    }
}

pub(super) fn attack_id(check: &mut ValidationPass<'_>) {
    if let Some(id) = &check.document.attack.id
        && !is_attack_id(id)
    {
        let shown: String = id.chars().take(60).collect();
        check
            .report(
                &attack_path().key("id"),
                format!("`{shown}` is not an attack id"),
            )
            .help = Some(
            "write upper-case words and a number of three digits, such as ACME-001".to_owned(),
        );
    }
}

pub(super) fn document_version(check: &mut ValidationPass<'_>) {
    if let Some(version) = check.document.attack.version.filter(|version| *version < 1) {
        check.report(
            &attack_path().key("version"),
            format!("`version` is {version}; it starts at 1"),
        );
    }
}

pub(super) fn unique_impact(check: &mut ValidationPass<'_>) {
    let impact = check.document.attack.impact.as_deref().unwrap_or_default();
    let repeated: Vec<Impact> = impact
        .iter()
        .enumerate()
        .filter(|(index, item)| impact[..*index].contains(item))
        .map(|(_, item)| *item)
        .collect();
    if let Some(first) = repeated.first() {
        check.report(
            &attack_path().key("impact"),
            format!("`{first}` is listed twice"),
        );
    }
}

pub(super) fn grace_period(check: &mut ValidationPass<'_>) {
    let grace = check.document.attack.grace_period.as_ref();
    if let Some(grace) = grace.filter(|grace| grace.duration().is_none()) {
        super::execution::report_duration(check, &attack_path().key("grace_period"), grace);
    }
}

/// `^[A-Z][A-Z0-9-]*-[0-9]{3,}$`
pub(super) fn is_attack_id(id: &str) -> bool {
    ends_in_number(id, 3)
}

/// `^[A-Z][A-Z0-9-]*-[0-9]{digits,}$`
pub(super) fn ends_in_number(id: &str, digits: usize) -> bool {
    id.rsplit_once('-').is_some_and(|(head, number)| {
        number.len() >= digits
            && number.bytes().all(|b| b.is_ascii_digit())
            && head.starts_with(|c: char| c.is_ascii_uppercase())
            && head
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-')
    })
}
