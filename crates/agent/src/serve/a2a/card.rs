//! The card of the agent, as both generations read it.

use proofhouse_manifest::Agent;
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
        "protocolVersion": "0.3.0",
        "name": agent.name,
        "description": agent.description,
        "url": url,
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
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
