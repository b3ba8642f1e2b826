//! The way back from an authorization server that names itself (RFC 9207): people come back through the guard, which puts the name
//! that the client knows in place of the right one, and leaves every other name as it is, so that the client refuses it.
//!
//! Programs on this machine may come back at any port (RFC 8252), so theirs becomes the guard's. Other addresses are told to the
//! authorization server when a client registers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;

use proofhouse_wire::server::Reply;
use proofhouse_wire::sync::lock;
use proofhouse_wire::{StatusCode, Url, is_this_machine};
use serde_json::Value;

use super::sign_in::{FormText, SIGN_IN};

/// The parameters of a form that the way back is about.
const REDIRECT: &str = "redirect_uri";
const STATE: &str = "state";
const ISSUER: &str = "iss";

/// The path of those that do not come back to this machine.
const BACK: &str = "back";

/// How many people may be under way at the same time.
const MAX_UNDER_WAY: usize = 100;

/// The member of a registration with the addresses that people come back to.
const REGISTERED: &str = "redirect_uris";

/// Somebody who was sent to an authorization server.
#[derive(Debug, Clone)]
struct Traveller {
    state: String,
    /// The path at which they come back to the guard.
    path: String,
    /// Where the client waits for them.
    client: Url,
    /// How the authorization server names itself.
    theirs: String,
    /// How the client knows it.
    ours: String,
}

/// Those who are under way.
#[derive(Debug)]
pub(super) struct WaysBack {
    address: SocketAddr,
    travellers: Mutex<VecDeque<Traveller>>,
}

impl WaysBack {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            travellers: Mutex::default(),
        }
    }

    /// Whether people can come back through the guard: their browser is on the same machine.
    pub(super) fn are_open(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// Where people come back to the guard who shall come back to this address.
    pub(super) fn through(&self, redirect: &Url, number: usize) -> Option<Url> {
        let is_here = redirect.host_str().is_some_and(is_this_machine);
        if redirect.scheme() == "http" && is_here {
            let mut through = redirect.clone();
            through.set_port(Some(self.address.port())).ok()?;
            return Some(through);
        }
        Url::parse(&format!("http://{}{SIGN_IN}{number}/{BACK}", self.address)).ok()
    }

    /// A form whose people come back through the guard. Where it begins a journey, it is remembered.
    pub(super) fn through_form(
        &self,
        form: &str,
        number: usize,
        theirs: &str,
        ours: &str,
    ) -> String {
        let redirect = FormText(form).value(REDIRECT);
        let Some(client) = redirect.and_then(|text| Url::parse(&text).ok()) else {
            return form.to_owned();
        };
        let Some(through) = self.through(&client, number) else {
            return form.to_owned();
        };
        if let Some(state) = FormText(form).value(STATE) {
            let mut travellers = lock(&self.travellers);
            travellers.retain(|known| known.state != state);
            if travellers.len() >= MAX_UNDER_WAY {
                travellers.pop_front();
            }
            travellers.push_back(Traveller {
                state,
                path: through.path().to_owned(),
                client,
                theirs: theirs.to_owned(),
                ours: ours.to_owned(),
            });
        }
        FormText(form).with(REDIRECT, |_| Some(through.to_string()))
    }

    /// Sends somebody who came back on to the client, once; nothing where nobody is expected.
    pub(super) fn arrived(&self, path: &str, query: &str) -> Option<Reply> {
        let state = FormText(query).value(STATE)?;
        let mut travellers = lock(&self.travellers);
        let is_expected = |known: &Traveller| known.state == state && known.path == path;
        let at = travellers.iter().position(is_expected)?;
        let traveller = travellers.remove(at)?;
        let query = FormText(query).with(ISSUER, |named| {
            (named == traveller.theirs).then(|| traveller.ours.clone())
        });
        let mut client = traveller.client;
        let query = match client.query() {
            Some(own) => format!("{own}&{query}"),
            None => query,
        };
        client.set_query(Some(&query));
        Some(redirect(&client))
    }

    /// A registration that also allows the ways through the guard; nothing where it has no addresses.
    pub(super) fn registration(&self, body: &[u8], number: usize) -> Option<String> {
        let mut registration: Value = serde_json::from_slice(body).ok()?;
        let addresses = registration.get_mut(REGISTERED)?.as_array_mut()?;
        let mut through: Vec<Value> = Vec::new();
        for address in addresses.iter().filter_map(Value::as_str) {
            let way = Url::parse(address).ok();
            let way = way.and_then(|address| self.through(&address, number));
            through.extend(way.map(|way| Value::from(way.to_string())));
        }
        through.retain(|way| !addresses.contains(way));
        through.dedup();
        addresses.extend(through);
        Some(registration.to_string())
    }
}

/// A redirect to an address that may hold what is secret.
pub(super) fn redirect(to: &Url) -> Reply {
    Reply::empty(StatusCode::FOUND)
        .with_header("location", to.as_str())
        .with_header("referrer-policy", "no-referrer")
        .with_header("cache-control", "no-store")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ways() -> WaysBack {
        WaysBack::new(SocketAddr::from(([127, 0, 0, 1], 9090)))
    }

    #[test]
    fn programs_on_this_machine_come_back_at_the_port_of_the_guard() {
        for (client, through) in [
            (
                "http://127.0.0.1:8976/callback",
                "http://127.0.0.1:9090/callback",
            ),
            ("http://localhost/cb?x=1", "http://localhost:9090/cb?x=1"),
            (
                "cursor://oauth/back",
                "http://127.0.0.1:9090/.proofhouse/sign-in/3/back",
            ),
            (
                "https://client.example/back",
                "http://127.0.0.1:9090/.proofhouse/sign-in/3/back",
            ),
        ] {
            let client = Url::parse(client).unwrap();
            assert_eq!(ways().through(&client, 3).unwrap().as_str(), through);
        }
        let registration = json!({
            "client_name": "c", "redirect_uris": ["http://127.0.0.1:8976/callback", "cursor://oauth/back"],
        });
        let told = ways().registration(registration.to_string().as_bytes(), 0);
        let told: Value = serde_json::from_str(&told.unwrap()).unwrap();
        assert_eq!(
            told["redirect_uris"],
            json!([
                "http://127.0.0.1:8976/callback",
                "cursor://oauth/back",
                "http://127.0.0.1:9090/callback",
                "http://127.0.0.1:9090/.proofhouse/sign-in/0/back",
            ])
        );
    }

    #[test]
    fn only_the_right_name_becomes_the_one_that_the_client_knows() {
        for (named, heard) in [
            ("https%3A%2F%2Flogin.example", "http%3A%2F%2Fguard%2F0"),
            (
                "https%3A%2F%2Flogin.example%2F",
                "https%3A%2F%2Flogin.example%2F",
            ),
            ("https%3A%2F%2Fevil.example", "https%3A%2F%2Fevil.example"),
        ] {
            let ways = ways();
            let form =
                "client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A8976%2Fcallback&state=s%201";
            let sent = ways.through_form(form, 0, "https://login.example", "http://guard/0");
            assert_eq!(
                sent,
                "client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%3A9090%2Fcallback&state=s%201"
            );
            let query = format!("code=x&state=s+1&iss={named}");
            assert!(ways.arrived("/other", &query).is_none());
            let reply = ways.arrived("/callback", &query).unwrap();
            assert_eq!(
                reply.headers["location"],
                format!("http://127.0.0.1:8976/callback?code=x&state=s+1&iss={heard}")
            );
            assert!(ways.arrived("/callback", &query).is_none(), "once");
        }
    }
}
