//! Cards of agents on their way to clients: the addresses in them become the guard's, and ways around the guard are left out.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proofhouse_protocol::a2a::card::JSON_RPC;
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Url, is_this_machine};
use serde_json::Value;

use crate::pins::LockFileError;

/// How many addresses of an agent are known.
const MAX_PLACES: usize = 16;

/// Why a card does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum CardProblem {
    /// It is no card.
    #[error("what the agent has in the place of its card is none")]
    NoCard,
    /// Nothing in it can be guarded.
    #[error(
        "the card names no JSON-RPC at the guarded address; give the address that it names with --url"
    )]
    NoWay,
}

/// Why a client gets no card.
#[derive(Debug, thiserror::Error)]
pub(super) enum CardRefusal {
    /// It is no JSON.
    #[error("the card cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// The policy withholds it.
    #[error("{0}")]
    Withheld(String),
    /// It cannot be rewritten.
    #[error(transparent)]
    Problem(#[from] CardProblem),
}

/// Where an agent is reached through the guard.
#[derive(Debug)]
pub(super) struct AgentPlaces {
    /// The guarded address.
    upstream: Url,
    /// The origin of the guard.
    own: String,
    /// Paths that cards named.
    paths: Mutex<BTreeSet<String>>,
}

impl AgentPlaces {
    pub(super) fn new(upstream: Url, own: String) -> Self {
        let paths = BTreeSet::from([upstream.path().to_owned()]);
        Self {
            upstream,
            own,
            paths: Mutex::new(paths),
        }
    }

    /// Whether the agent takes messages at this path.
    pub(super) fn takes(&self, path: &str) -> bool {
        let paths = lock(&self.paths);
        paths.contains(path)
    }

    /// A card with the addresses of the guard. What is not JSON-RPC, or elsewhere, goes around the guard and is left out; so is a
    /// signature, which is for the addresses of the agent.
    pub(super) fn rewrite(&self, mut card: Value) -> Result<Value, CardProblem> {
        let members = card.as_object_mut().ok_or(CardProblem::NoCard)?;
        if !members.contains_key("url") && !members.contains_key("supportedInterfaces") {
            return Err(CardProblem::NoCard);
        }
        let mut others = Vec::new();
        for (list, transport) in [
            ("supportedInterfaces", "protocolBinding"),
            ("additionalInterfaces", "transport"),
        ] {
            let Some(Value::Array(interfaces)) = members.get_mut(list) else {
                continue;
            };
            interfaces.retain_mut(|interface| {
                let through = is_json_rpc(interface.get(transport));
                let through = through
                    .then(|| self.through(interface.get("url")))
                    .flatten();
                match through {
                    Some(through) => {
                        interface["url"] = Value::from(through);
                        true
                    }
                    None => false,
                }
            });
            if list == "additionalInterfaces" {
                let urls = interfaces.iter().filter_map(|one| one.get("url").cloned());
                others.extend(urls);
            }
        }
        if members.contains_key("url") {
            let is_spoken = is_json_rpc(members.get("preferredTransport"));
            let through = is_spoken
                .then(|| self.through(members.get("url")))
                .flatten();
            match through.map(Value::from).or_else(|| others.first().cloned()) {
                Some(url) => {
                    if members.contains_key("preferredTransport") {
                        members.insert("preferredTransport".to_owned(), JSON_RPC.into());
                    }
                    members.insert("url".to_owned(), url);
                }
                None => {
                    members.remove("url");
                }
            }
        }
        members.remove("signatures");
        let is_reachable = members.contains_key("url")
            || members
                .get("supportedInterfaces")
                .and_then(Value::as_array)
                .is_some_and(|interfaces| !interfaces.is_empty());
        is_reachable.then_some(card).ok_or(CardProblem::NoWay)
    }

    /// An address of the agent through the guard; nothing where it is elsewhere.
    fn through(&self, url: Option<&Value>) -> Option<String> {
        let url = Url::parse(url?.as_str()?).ok()?;
        let is_here = |url: &Url| url.host_str().is_some_and(is_this_machine);
        // Agents call themselves by one of the names of this machine, and people use another.
        let is_same = url.origin() == self.upstream.origin()
            || (url.scheme() == self.upstream.scheme()
                && url.port_or_known_default() == self.upstream.port_or_known_default()
                && is_here(&url)
                && is_here(&self.upstream));
        if !is_same {
            return None;
        }
        let mut paths = lock(&self.paths);
        if paths.len() < MAX_PLACES {
            paths.insert(url.path().to_owned());
        }
        let query = url.query().map(|query| format!("?{query}"));
        let query = query.unwrap_or_default();
        Some(format!("{}{}{query}", self.own, url.path()))
    }
}

/// Whether an interface speaks JSON-RPC, which it does where it does not say.
fn is_json_rpc(transport: Option<&Value>) -> bool {
    transport.is_none_or(|transport| transport.as_str() == Some(JSON_RPC))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places() -> AgentPlaces {
        let upstream = Url::parse("http://127.0.0.1:7000/").unwrap();
        AgentPlaces::new(upstream, "http://127.0.0.1:9090".to_owned())
    }

    #[test]
    fn addresses_become_those_of_the_guard_and_ways_around_it_are_left_out() {
        let places = places();
        let card = json!({
            "name": "a", "url": "http://localhost:7000/a2a", "preferredTransport": "GRPC",
            "additionalInterfaces": [
                {"url": "http://localhost:7000/a2a", "transport": "GRPC"},
                {"url": "http://127.0.0.1:7000/rpc?x=1", "transport": "JSONRPC"},
                {"url": "http://127.0.0.1:7001/rpc", "transport": "JSONRPC"},
            ],
            "supportedInterfaces": [
                {"url": "http://127.0.0.1:7000/v1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": "http://127.0.0.1:7000/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
                {"url": "https://elsewhere.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            ],
            "signatures": [{"signature": "x"}],
        });
        assert_eq!(
            places.rewrite(card).unwrap(),
            json!({
                "name": "a", "url": "http://127.0.0.1:9090/rpc?x=1", "preferredTransport": "JSONRPC",
                "additionalInterfaces": [{"url": "http://127.0.0.1:9090/rpc?x=1", "transport": "JSONRPC"}],
                "supportedInterfaces": [
                    {"url": "http://127.0.0.1:9090/v1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                ],
            })
        );
        for (path, is_taken) in [("/", true), ("/rpc", true), ("/v1", true), ("/a2a", false)] {
            assert_eq!(places.takes(path), is_taken, "{path}");
        }
    }

    #[test]
    fn a_card_without_a_way_through_the_guard_does_not_pass() {
        for (card, problem) in [
            (
                json!({"url": "https://elsewhere.example/"}),
                CardProblem::NoWay,
            ),
            (
                json!({"url": "http://127.0.0.1:7000/", "preferredTransport": "GRPC"}),
                CardProblem::NoWay,
            ),
            (json!({"supportedInterfaces": []}), CardProblem::NoWay),
            (json!({"resource": "x"}), CardProblem::NoCard),
            (json!("x"), CardProblem::NoCard),
        ] {
            assert_eq!(places().rewrite(card.clone()), Err(problem), "{card}");
        }
    }
}
