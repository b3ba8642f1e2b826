//! Agent cards: where they are, and what they say of where and how to speak.

use serde_json::{Map, Value, json};

use super::A2aVersion;

/// Where the card is, below an address.
pub const PATH: &str = ".well-known/agent-card.json";
/// Where it was before 0.3.
pub const OLD_PATH: &str = ".well-known/agent.json";
/// How cards name JSON-RPC.
pub const JSON_RPC: &str = "JSONRPC";

/// Whether clients look for a card at this path of a URL.
///
/// ```
/// use proofhouse_protocol::a2a::card;
///
/// assert!(card::is_at("/agents/7/.well-known/agent-card.json") && !card::is_at("/agent-card.json"));
/// ```
#[must_use]
pub fn is_at(path: &str) -> bool {
    let is_below = |known: &str| path.strip_suffix(known).is_some_and(|at| at.ends_with('/'));
    [PATH, OLD_PATH].into_iter().any(is_below)
}

/// The interfaces of an agent that speaks both generations at one address, the newer first: the value of
/// `supportedInterfaces`.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aVersion, card};
/// use serde_json::json;
///
/// let card = json!({"supportedInterfaces": card::interfaces("http://127.0.0.1:1/")});
/// assert_eq!(card::interface(&card), Some((A2aVersion::V1_0, "http://127.0.0.1:1/")));
/// ```
#[must_use]
pub fn interfaces(url: &str) -> Value {
    let newest_first = A2aVersion::ALL.iter().rev();
    newest_first
        .map(|version| {
            json!({"url": url, "protocolBinding": JSON_RPC, "protocolVersion": version.as_str()})
        })
        .collect()
}

/// Where a card says that JSON-RPC is spoken, and in which generation: 1.0 where it is offered. An interface that does
/// not name its binding, which it must, is the last resort.
#[must_use]
pub fn interface(card: &Value) -> Option<(A2aVersion, &str)> {
    let offered = |version: A2aVersion, binding: Option<&str>| {
        let interfaces = card.get("supportedInterfaces")?.as_array()?;
        interfaces.iter().find_map(|interface| {
            let text = |key: &str| interface.get(key).and_then(Value::as_str);
            let speaks = A2aVersion::of_offer(text("protocolVersion"));
            let url = text("url")?;
            (text("protocolBinding") == binding && speaks == version).then_some((version, url))
        })
    };
    offered(A2aVersion::V1_0, Some(JSON_RPC))
        .or_else(|| offered(A2aVersion::V0_3, Some(JSON_RPC)))
        .or_else(|| legacy_url(card).map(|url| (A2aVersion::V0_3, url)))
        .or_else(|| offered(A2aVersion::V1_0, None))
        .or_else(|| offered(A2aVersion::V0_3, None))
}

fn legacy_url(card: &Value) -> Option<&str> {
    let is_json_rpc = |value: &Value, key: &str| {
        let transport = value.get(key).and_then(Value::as_str);
        transport.is_none_or(|transport| transport == JSON_RPC)
    };
    if is_json_rpc(card, "preferredTransport")
        && let Some(url) = card.get("url").and_then(Value::as_str)
    {
        return Some(url);
    }
    let others = card.get("additionalInterfaces")?.as_array()?;
    others
        .iter()
        .find(|other| is_json_rpc(other, "transport"))
        .and_then(|other| other.get("url")?.as_str())
}

/// A card as 0.3 would have it: what only 1.0 says is said in the old place too.
///
/// ```
/// use proofhouse_protocol::a2a::card;
/// use serde_json::json;
///
/// let new = json!({"supportedInterfaces": [{"url": "http://a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
/// assert_eq!(card::project(&new)["url"], "http://a/");
/// ```
#[must_use]
pub fn project(card: &Value) -> Value {
    let Value::Object(map) = card else {
        return card.clone();
    };
    let mut map: Map<String, Value> = map.clone();
    if let Some((_, url)) = interface(card)
        && !map.contains_key("url")
    {
        map.insert("url".to_owned(), url.into());
        map.entry("preferredTransport")
            .or_insert_with(|| JSON_RPC.into());
    }
    let extended = card
        .get("capabilities")
        .and_then(|capabilities| capabilities.get("extendedAgentCard"));
    if let Some(extended) = extended {
        map.entry("supportsAuthenticatedExtendedCard")
            .or_insert_with(|| extended.clone());
    }
    map.into()
}

/// Whether a value is the card of an agent: it has a name, skills, and says somewhere where it is.
///
/// ```
/// use proofhouse_protocol::a2a::card;
/// use serde_json::json;
///
/// assert!(card::is_card(&json!({"name": "x", "url": "http://x", "skills": []})));
/// assert!(!card::is_card(&json!({"name": "x", "skills": []})));
/// ```
#[must_use]
pub fn is_card(value: &Value) -> bool {
    let says_where = ["url", "supportedInterfaces", "additionalInterfaces"];
    value.get("name").is_some_and(Value::is_string)
        && value.get("skills").is_some_and(Value::is_array)
        && says_where.iter().any(|key| value.get(key).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_tells_where_and_how_to_speak() {
        let modern = json!({"url": "b", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        let legacy = json!({"url": "c", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
        let grpc = json!({"url": "d", "protocolBinding": "GRPC", "protocolVersion": "1.0"});
        for (card, expected) in [
            (
                json!({"url": "a", "supportedInterfaces": [grpc, legacy, modern]}),
                Some((A2aVersion::V1_0, "b")),
            ),
            (
                json!({"url": "a", "supportedInterfaces": [grpc, legacy]}),
                Some((A2aVersion::V0_3, "c")),
            ),
            (json!({"url": "a"}), Some((A2aVersion::V0_3, "a"))),
            (
                json!({"url": "a", "preferredTransport": "GRPC",
                    "additionalInterfaces": [{"url": "a", "transport": "GRPC"}, {"url": "e", "transport": "JSONRPC"}]}),
                Some((A2aVersion::V0_3, "e")),
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
