//! A finding as a Detection Finding of OCSF 1.3, with the profile of security controls.

use serde_json::{Value, json};

use crate::finding::{GuardDecision, GuardFinding};

/// The class: Detection Finding.
const CLASS: u32 = 2004;

/// The event of a finding.
///
/// ```
/// use proofhouse_guard::record::to_ocsf;
/// use proofhouse_guard::{FindingCode, GuardDecision, GuardFinding};
///
/// let finding = GuardFinding::new(FindingCode::PinChanged, GuardDecision::Block, "files", "tool `read` changed");
/// let event = to_ocsf(&finding, jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!((&event["class_uid"], &event["type_uid"], &event["disposition"]), (&2004.into(), &200_401.into(), &"Blocked".into()));
/// ```
#[must_use]
pub fn to_ocsf(finding: &GuardFinding, time: jiff::Timestamp) -> Value {
    let (action, disposition, disposition_name) = match finding.decision {
        GuardDecision::Allow => (1, 1, "Allowed"),
        GuardDecision::Log => (1, 17, "Logged"),
        GuardDecision::Redact => (1, 7, "Custom Action"),
        GuardDecision::Ask => (99, 14, "Delayed"),
        GuardDecision::Block => (2, 2, "Blocked"),
    };
    let uid = format!(
        "{}:{}:{}",
        finding.server,
        finding.code.as_str(),
        finding.sequence.unwrap_or_default()
    );
    json!({
        "class_uid": CLASS,
        "class_name": "Detection Finding",
        "category_uid": 2,
        "category_name": "Findings",
        "activity_id": 1,
        "type_uid": CLASS * 100 + 1,
        "time": time.as_millisecond(),
        "severity_id": finding.severity.ocsf(),
        "status_id": 1,
        "action_id": action,
        "disposition_id": disposition,
        "disposition": disposition_name,
        "message": finding.message,
        "finding_info": {
            "uid": uid,
            "title": finding.code.meaning().trim(),
            "types": [finding.code.as_str()],
            "desc": finding.message,
        },
        "resources": [{
            "type": "MCP server",
            "name": finding.server,
        }],
        "metadata": {
            "version": "1.3.0",
            "product": {"name": "Proofhouse guard", "vendor_name": "Proofhouse"},
            "profiles": ["security_control"],
        },
        "unmapped": {
            "decision": finding.decision.as_str(),
            "item": finding.item,
            "path": finding.path,
            "rule": finding.rule,
            "sequence": finding.sequence,
        },
    })
}
