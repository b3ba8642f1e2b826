//! Agent cards: written so that both generations accept them, and read for where to speak and how.

use serde_json::{Map, Value, json};

use super::complete::{fill, fresh_id};
use super::methods::Generation;

const BINDING: &str = "JSONRPC";

/// The document's card as it is served: for both generations, at our address. The author's fields
/// stay; a signed card stays whole, since every change would break the signature.
pub(in crate::drivers) fn hybrid(card: &Value, address: &str) -> Value {
    let Value::Object(card) = card else {
        return card.clone();
    };
    let mut card = card.clone();
    if is_signed(&card) {
        return card.into();
    }
    fill(&mut card, "name", || "agent".into());
    fill(&mut card, "description", || "".into());
    fill(&mut card, "version", || "1.0.0".into());
    fill(&mut card, "url", || address.into());
    fill(&mut card, "protocolVersion", || "0.3.0".into());
    fill(
        &mut card,
        "capabilities",
        || json!({"streaming": true, "pushNotifications": true}),
    );
    fill(&mut card, "defaultInputModes", || json!(["text/plain"]));
    fill(&mut card, "defaultOutputModes", || json!(["text/plain"]));
    fill(&mut card, "skills", || json!([]));
    fill(&mut card, "supportedInterfaces", || {
        json!([
            {"url": address, "protocolBinding": BINDING, "protocolVersion": "1.0"},
            {"url": address, "protocolBinding": BINDING, "protocolVersion": "0.3"},
        ])
    });
    if let Some(Value::Array(skills)) = card.get_mut("skills") {
        for skill in skills.iter_mut().filter_map(Value::as_object_mut) {
            let name = skill.get("name").cloned();
            fill(skill, "id", || name.unwrap_or_else(|| fresh_id().into()));
            let id = skill.get("id").cloned().unwrap_or_default();
            fill(skill, "name", || id);
            fill(skill, "description", || "".into());
            fill(skill, "tags", || json!([]));
        }
    }
    card.into()
}

fn is_signed(card: &Map<String, Value>) -> bool {
    matches!(card.get("signatures"), Some(Value::Array(signatures)) if !signatures.is_empty())
}

/// Where a card says that JSON-RPC is spoken, and in which generation: 1.0 where it is offered.
pub(in crate::drivers) fn interface(card: &Value) -> Option<(Generation, &str)> {
    let offered = |generation: Generation| {
        let interfaces = card.get("supportedInterfaces")?.as_array()?;
        interfaces.iter().find_map(|interface| {
            let binding = interface.get("protocolBinding").and_then(Value::as_str);
            let version = interface.get("protocolVersion").and_then(Value::as_str);
            let url = interface.get("url").and_then(Value::as_str)?;
            let speaks = match version {
                Some(version) if version.starts_with("0.") => Generation::Legacy,
                _ => Generation::Modern,
            };
            (binding == Some(BINDING) && speaks == generation).then_some((generation, url))
        })
    };
    offered(Generation::Modern)
        .or_else(|| offered(Generation::Legacy))
        .or_else(|| legacy_url(card).map(|url| (Generation::Legacy, url)))
}

fn legacy_url(card: &Value) -> Option<&str> {
    let text = |value: &'_ Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .is_none_or(|t| t == BINDING)
    };
    if text(card, "preferredTransport")
        && let Some(url) = card.get("url").and_then(Value::as_str)
    {
        return Some(url);
    }
    let others = card.get("additionalInterfaces")?.as_array()?;
    others
        .iter()
        .find(|other| text(other, "transport"))
        .and_then(|other| other.get("url")?.as_str())
}

/// A card as 0.3 would have it: what only 1.0 says is said in the old place too.
pub(in crate::drivers) fn project(card: &Value) -> Value {
    let Value::Object(map) = card else {
        return card.clone();
    };
    let mut map = map.clone();
    if let Some((_, url)) = interface(card)
        && !map.contains_key("url")
    {
        map.insert("url".to_owned(), url.into());
        fill(&mut map, "preferredTransport", || BINDING.into());
    }
    let extended = card
        .get("capabilities")
        .and_then(|capabilities| capabilities.get("extendedAgentCard"))
        .cloned();
    if let Some(extended) = extended {
        fill(&mut map, "supportsAuthenticatedExtendedCard", || extended);
    }
    map.into()
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
            interface(&served),
            Some((Generation::Modern, "http://127.0.0.1:1"))
        );
        assert_eq!(
            hybrid(&json!({}), "http://127.0.0.1:1")["url"],
            "http://127.0.0.1:1"
        );

        let signed = json!({"name": "A", "signatures": [{"protected": "p", "signature": "s"}]});
        assert_eq!(hybrid(&signed, "http://127.0.0.1:1"), signed);
        assert_eq!(hybrid(&json!("no card"), "x"), json!("no card"));
    }

    #[test]
    fn a_card_tells_where_and_how_to_speak() {
        let modern = json!({"url": "b", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        let legacy = json!({"url": "c", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
        let grpc = json!({"url": "d", "protocolBinding": "GRPC", "protocolVersion": "1.0"});
        for (card, expected) in [
            (
                json!({"url": "a", "supportedInterfaces": [grpc, legacy, modern]}),
                Some((Generation::Modern, "b")),
            ),
            (
                json!({"url": "a", "supportedInterfaces": [grpc, legacy]}),
                Some((Generation::Legacy, "c")),
            ),
            (json!({"url": "a"}), Some((Generation::Legacy, "a"))),
            (
                json!({"url": "a", "preferredTransport": "GRPC",
                    "additionalInterfaces": [{"url": "a", "transport": "GRPC"}, {"url": "e", "transport": "JSONRPC"}]}),
                Some((Generation::Legacy, "e")),
            ),
            (json!({"supportedInterfaces": [grpc]}), None),
            (json!([]), None),
            (json!({"supportedInterfaces": "x", "url": 3}), None),
        ] {
            assert_eq!(interface(&card), expected, "{card}");
        }
        let seen = project(
            &json!({"supportedInterfaces": [modern], "capabilities": {"extendedAgentCard": true}}),
        );
        assert_eq!(
            (&seen["url"], &seen["supportsAuthenticatedExtendedCard"]),
            (&json!("b"), &json!(true))
        );
    }
}
