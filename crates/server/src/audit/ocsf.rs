//! Entries as events of the Open Cybersecurity Schema Framework: API Activity, and Authentication for signing in and out.

use proofhouse_store::model::AuditRecord;
use serde_json::{Value, json};

/// The version of the schema.
const OCSF_VERSION: &str = "1.3.0";

/// An entry as an event.
#[must_use]
pub fn ocsf_event(record: &AuditRecord) -> Value {
    let entry: Value = serde_json::from_str(&record.entry).unwrap_or_default();
    let action = entry["action"].as_str().unwrap_or_default();
    let is_done = entry["outcome"] == "done";
    let actor = &entry["actor"];
    let person = actor["person"].as_str().or(actor["id"].as_str());
    let user = json!({
        "uid": actor["id"].as_str().unwrap_or("unknown"),
        "name": person.unwrap_or("unknown"),
        "type_id": if actor["kind"] == "server" { 3 } else { 1 },
    });
    let status = if is_done {
        (1, "Success")
    } else {
        (2, "Failure")
    };
    let mut event = json!({
        "time": record.at,
        "severity_id": if is_done { 1 } else { 2 },
        "status_id": status.0,
        "status": status.1,
        "status_code": entry["status"].as_u64().map(|code| code.to_string()),
        "metadata": {
            "version": OCSF_VERSION,
            "uid": record.hash,
            "sequence": record.seq,
            "product": {"name": "Proofhouse", "vendor_name": "Proofhouse", "version": env!("CARGO_PKG_VERSION")},
        },
        "src_endpoint": {"ip": entry["from"].as_str().unwrap_or("127.0.0.1")},
        "unmapped": {
            "namespace": record.namespace, "detail": entry["detail"], "forwarded_for": entry["forwarded_for"],
            "proxy": entry["proxy"],
        },
    });
    let (category, class, activity) = match action {
        "session.begin" => (3, 3002, 1),
        "session.end" => (3, 3002, 2),
        action => (6, 6003, activity(action)),
    };
    event["category_uid"] = category.into();
    event["class_uid"] = class.into();
    event["activity_id"] = activity.into();
    event["type_uid"] = (class * 100 + activity).into();
    if class == 3002 {
        event["user"] = user.clone();
        event["is_remote"] = true.into();
    }
    event["actor"] = json!({"user": user});
    event["api"] = json!({"operation": action, "service": {"name": "proofhouse"}});
    if let Some(object) = entry["object"].as_object() {
        event["resources"] = json!([{
            "type": object.get("kind"), "uid": object.get("id"), "namespace": record.namespace,
        }]);
    }
    event
}

/// Create, read, update, delete or other.
fn activity(action: &str) -> i64 {
    match action.rsplit('.').next().unwrap_or_default() {
        "begin" | "create" | "message" => 1,
        "read" | "export" => 2,
        "review" | "interrupt" | "cancel" | "replay" | "rotate" | "reload" => 3,
        "delete" | "revoke" | "prune" => 4,
        _ => 99,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(action: &str, outcome: &str) -> Value {
        let entry = json!({
            "action": action, "outcome": outcome, "status": 204, "from": "192.0.2.1",
            "actor": {"kind": "key", "id": "k1", "person": "ann@example.com"},
            "object": {"kind": "task", "id": "t1"},
        });
        ocsf_event(&AuditRecord {
            seq: 3,
            at: 5,
            namespace: Some("shop".to_owned()),
            entry: entry.to_string(),
            hash: "abc".to_owned(),
        })
    }

    #[test]
    fn every_event_has_what_its_class_needs() {
        for (action, class, activity) in [
            ("task.begin", 6003, 1),
            ("task.review", 6003, 3),
            ("task.delete", 6003, 4),
            ("key.revoke", 6003, 4),
            ("PUT /v1/new", 6003, 99),
            ("session.begin", 3002, 1),
            ("session.end", 3002, 2),
        ] {
            let event = event(action, "done");
            assert_eq!(event["class_uid"], class, "{action}");
            assert_eq!(event["activity_id"], activity, "{action}");
            assert_eq!(event["type_uid"], class * 100 + activity, "{action}");
            assert_eq!(event["category_uid"], class / 1000, "{action}");
            for needed in [
                "time",
                "severity_id",
                "metadata",
                "actor",
                "api",
                "src_endpoint",
            ] {
                assert!(!event[needed].is_null(), "{action} {needed}");
            }
            assert!(class != 3002 || event["user"]["name"] == "ann@example.com");
        }
        let refused = event("task.cancel", "refused");
        assert_eq!(refused["status_id"], 2);
        assert_eq!(refused["resources"][0]["uid"], "t1");
    }
}
