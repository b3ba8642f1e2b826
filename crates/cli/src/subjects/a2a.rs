//! Agents that speak A2A as tools of an agent of ours: the card says what the agent can do, and a message
//! to it is a call.

use std::fmt::Write as _;

use proofhouse_tools::manifest::{Bundle, Manifest};
use proofhouse_wire::client::Client;
use proofhouse_wire::{Limits, Method};
use serde_json::{Value, json};

/// Skills of a card that are told to the model.
const MAX_SKILLS: usize = 50;

/// Asks an agent for its card and makes a tool of it.
pub(crate) async fn tool(namespace: &str, name: &str, url: &str) -> Result<Manifest, String> {
    let client = Client::new(Limits::default()).map_err(|error| error.to_string())?;
    let card_url = format!("{}/.well-known/agent-card.json", url.trim_end_matches('/'));
    let asked = client
        .send(Method::GET, &card_url, <_>::default(), <_>::default())
        .await;
    let answer = asked.map_err(|error| format!("the A2A agent has no card: {error}"))?;
    let bytes = answer.bytes().await.map_err(|error| error.to_string())?;
    let card: Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("the card of the A2A agent is not JSON: {error}"))?;
    let manifest = manifest(namespace, name, url, &card);
    let (mut bundle, findings) = Bundle::read(&manifest.to_string());
    bundle.manifests.pop().ok_or_else(|| {
        let why = findings.first().map(|finding| finding.message.clone());
        format!("the A2A agent cannot be used: {}", why.unwrap_or_default())
    })
}

/// The tool, as JSON, which is YAML.
fn manifest(namespace: &str, name: &str, url: &str, card: &Value) -> Value {
    json!({
        "kind": "commonagents.info/v1beta2/tool",
        "namespace": namespace,
        "name": name,
        "description": about(card),
        "actions": [{
            "name": "message",
            "description": about(card),
            "parameters": {"properties": {"message": {
                "type": "string",
                "description": "The task for the agent.",
            }}},
            "execute": {"stateless_http": {
                "method": "POST",
                // The address that was given, wherever the card would lead.
                "url": format!("{}/", url.trim_end_matches('/')),
                "headers": {"Content-Type": "application/json"},
                "body": {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "message/send",
                    "params": {"message": {
                        "kind": "message",
                        "messageId": "proofhouse-1",
                        "role": "user",
                        "parts": [{"kind": "text", "text": "{parameters.message}"}],
                    }},
                },
            }},
        }],
    })
}

/// What the card says, as a model would be told it.
fn about(card: &Value) -> String {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().trim().to_owned();
    let mut about = format!(
        "The agent {}. {}",
        text(card, "name"),
        text(card, "description")
    );
    let skills = card["skills"].as_array();
    for skill in skills.into_iter().flatten().take(MAX_SKILLS) {
        let _ = write!(
            about,
            "\n\n{}: {}",
            text(skill, "name"),
            text(skill, "description")
        );
    }
    about
}

/// A name of a tool made from the name that a card or an actor has.
pub(crate) fn plain_name(text: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(40) {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.to_owned()
    } else {
        format!("{otherwise}-{name}")
            .trim_end_matches('-')
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_a_tool() {
        let card = json!({"name": "Ledger {x}", "description": "Books.", "skills": [{"name": "s", "description": "d"}]});
        let manifest = manifest("proofhouse", "ledger", "http://127.0.0.1:1", &card);
        let (bundle, findings) = Bundle::read(&manifest.to_string());
        assert!(findings.is_empty(), "{findings:?}");
        let tool = bundle.tools().next().unwrap();
        assert_eq!(tool.description, "The agent Ledger {x}. Books.\n\ns: d");
        assert!(about(&Value::Null).starts_with("The agent"));
    }

    #[test]
    fn names() {
        assert_eq!(plain_name("Data_Agent", "a2a"), "data-agent");
        assert_eq!(plain_name("9 lives", "a2a"), "a2a-9-lives");
        assert_eq!(plain_name("…", "a2a"), "a2a");
    }
}
