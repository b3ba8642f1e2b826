//! The card of the agent, as both generations read it.

use proofhouse_manifest::Agent;
use proofhouse_protocol::a2a::{A2aVersion, card};
use serde_json::{Value, json};

use crate::task::Host;

/// What clients are told of the agent, which is reached at `url`.
pub(super) fn card(host: &Host, agent: &Agent, url: &str) -> Value {
    let mut skills = vec![skill(&agent.name, &agent.description, "agent")];
    for (reference, _) in &agent.capabilities {
        if let Some((description, is_agent)) = host.describe(&agent.namespace, reference) {
            let tag = if is_agent { "delegation" } else { "tool" };
            skills.push(skill(reference, &description, tag));
        }
    }
    json!({
        "protocolVersion": A2aVersion::CARD_0_3,
        "name": agent.name,
        "description": agent.description,
        "url": url,
        "preferredTransport": card::JSON_RPC,
        "supportedInterfaces": card::interfaces(url),
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": {"streaming": true, "pushNotifications": false},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": skills,
    })
}

fn skill(id: &str, description: &str, tag: &str) -> Value {
    json!({"id": id, "name": id, "description": description, "tags": [tag]})
}
