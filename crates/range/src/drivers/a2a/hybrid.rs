//! Agent cards, written so that both generations accept them.

use proofhouse_protocol::a2a::{A2aVersion, card};
use serde_json::{Map, Value, json};

use super::complete::{fill, fresh_id};

/// The document's card as it is served: for both generations, at our address. The author's fields
/// stay; a signed card stays whole, since every change would break the signature.
pub(in crate::drivers) fn hybrid(written: &Value, address: &str) -> Value {
    let Value::Object(map) = written else {
        return written.clone();
    };
    let mut served = map.clone();
    if is_signed(&served) {
        return served.into();
    }
    fill(&mut served, "name", || "agent".into());
    fill(&mut served, "description", || "".into());
    fill(&mut served, "version", || "1.0.0".into());
    fill(&mut served, "url", || address.into());
    fill(&mut served, "protocolVersion", || {
        A2aVersion::CARD_0_3.into()
    });
    fill(
        &mut served,
        "capabilities",
        || json!({"streaming": true, "pushNotifications": true}),
    );
    fill(&mut served, "defaultInputModes", || json!(["text/plain"]));
    fill(&mut served, "defaultOutputModes", || json!(["text/plain"]));
    fill(&mut served, "skills", || json!([]));
    fill(&mut served, "supportedInterfaces", || {
        card::interfaces(address)
    });
    if let Some(Value::Array(skills)) = served.get_mut("skills") {
        for skill in skills.iter_mut().filter_map(Value::as_object_mut) {
            let name = skill.get("name").cloned();
            fill(skill, "id", || name.unwrap_or_else(|| fresh_id().into()));
            let id = skill.get("id").cloned().unwrap_or_default();
            fill(skill, "name", || id);
            fill(skill, "description", || "".into());
            fill(skill, "tags", || json!([]));
        }
    }
    served.into()
}

fn is_signed(card: &Map<String, Value>) -> bool {
    matches!(card.get("signatures"), Some(Value::Array(signatures)) if !signatures.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_fields_stay_and_the_rest_is_filled() {
        let card = json!({"name": "A", "url": "https://a.example", "capabilities": {"streaming": false},
            "skills": [{"id": "s", "name": "S", "description": "d"}, {"name": "T", "tags": ["x"]}, 3]});
        let served = hybrid(&card, "http://127.0.0.1:1");
        assert_eq!(served["url"], "https://a.example");
        assert_eq!(served["capabilities"], json!({"streaming": false}));
        assert_eq!(
            served["skills"][0],
            json!({"id": "s", "name": "S", "description": "d", "tags": []})
        );
        assert_eq!(served["skills"][1]["tags"], json!(["x"]));
        assert_eq!(
            card::interface(&served),
            Some((A2aVersion::V1_0, "http://127.0.0.1:1"))
        );
        assert_eq!(
            hybrid(&json!({}), "http://127.0.0.1:1")["url"],
            "http://127.0.0.1:1"
        );

        let signed = json!({"name": "A", "signatures": [{"protected": "p", "signature": "s"}]});
        assert_eq!(hybrid(&signed, "http://127.0.0.1:1"), signed);
        assert_eq!(hybrid(&json!("no card"), "x"), json!("no card"));
    }
}
