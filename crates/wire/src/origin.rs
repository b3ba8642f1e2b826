//! Protection against DNS rebinding: requests that a web page made a browser send are refused.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

/// Whether a request to a server at this address may come from where it says it comes: `Host` and
/// `Origin` must name this machine. A server that listens beyond the loopback address is known by names
/// that it cannot know itself; there an origin must be the host that was asked for.
///
/// ```
/// use proofhouse_wire::{HeaderMap, origin};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("host", "evil.example".parse().unwrap());
/// assert!(!origin::is_allowed(&headers, "127.0.0.1:80".parse().unwrap()));
/// ```
#[must_use]
pub fn is_allowed(headers: &HeaderMap, address: SocketAddr) -> bool {
    is_allowed_as(headers, address, &[])
}

/// The same for a server that is also reached under these names, such as that of a proxy before it. Where there are any,
/// `Host` and `Origin` must be one of them or name this machine, wherever the server listens.
///
/// ```
/// use proofhouse_wire::{HeaderMap, origin};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("host", "agents.example.com".parse().unwrap());
/// let (address, names) = ("127.0.0.1:80".parse().unwrap(), ["agents.example.com".to_owned()]);
/// assert!(origin::is_allowed_as(&headers, address, &names));
/// ```
#[must_use]
pub fn is_allowed_as(headers: &HeaderMap, address: SocketAddr, names: &[String]) -> bool {
    let is_named = |host: &str| names.iter().any(|name| host.eq_ignore_ascii_case(name));
    let is_bound = address.ip().is_loopback() || !names.is_empty();
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = text("host").map(host_of);
    // Whoever listens beyond loopback is known by names that we cannot know.
    let host_is_ours =
        !is_bound || host.is_none_or(|host| is_local(host, address) || is_named(host));
    let origin_is_ours = match text("origin") {
        None => true,
        Some(origin) => {
            let origin = origin
                .split_once("://")
                .map_or("", |(_, authority)| host_of(authority));
            is_local(origin, address) || is_named(origin) || (!is_bound && host == Some(origin))
        }
    };
    host_is_ours && origin_is_ours
}

/// The host of an authority, without the port and the brackets of an IPv6 address.
fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

fn is_local(host: &str, address: SocketAddr) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_hosts_of_this_machine_pass(authority in "[\\[\\]:a-z0-9.]{0,16}") {
            let address = SocketAddr::from(([127, 0, 0, 1], 80));
            let local = is_local(host_of(&authority), address);
            prop_assert!(!local || ["localhost", "127.", "::1"].iter().any(|name| authority.contains(name)));
        }
    }

    #[test]
    fn names_that_are_given_hold_wherever_the_server_listens() {
        let names = ["Agents.example".to_owned()];
        for (host, origin, address, allowed) in [
            ("agents.example", None, "127.0.0.1:80", true),
            (
                "agents.example:443",
                Some("https://agents.example"),
                "127.0.0.1:80",
                true,
            ),
            ("localhost", None, "127.0.0.1:80", true),
            ("evil.example", None, "127.0.0.1:80", false),
            (
                "agents.example",
                Some("https://evil.example"),
                "127.0.0.1:80",
                false,
            ),
            (
                "agents.example",
                Some("https://agents.example.evil"),
                "127.0.0.1:80",
                false,
            ),
            ("evil.example", None, "10.0.0.5:80", false),
            (
                "evil.example",
                Some("https://evil.example"),
                "10.0.0.5:80",
                false,
            ),
            (
                "agents.example",
                Some("https://agents.example"),
                "10.0.0.5:80",
                true,
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("origin", origin.parse().unwrap());
            }
            let address = address.parse().unwrap();
            assert_eq!(
                is_allowed_as(&headers, address, &names),
                allowed,
                "{host} {origin:?}"
            );
        }
    }

    #[test]
    fn only_this_machine_may_ask_a_loopback_server() {
        let loopback: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let open: SocketAddr = "10.0.0.5:80".parse().unwrap();
        for (host, origin, address, allowed) in [
            ("localhost:80", None, loopback, true),
            ("[::1]:80", Some("http://[::1]:80"), loopback, true),
            ("127.0.0.1", Some("http://localhost"), loopback, true),
            ("evil.example", None, loopback, false),
            ("127.0.0.1", Some("http://evil.example"), loopback, false),
            ("127.0.0.1", Some("null"), loopback, false),
            (
                "127.0.0.1",
                Some("http://localhost.evil.example"),
                loopback,
                false,
            ),
            ("agent.test", None, open, true),
            ("agent.test", Some("https://agent.test"), open, true),
            ("agent.test", Some("https://evil.example"), open, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("origin", origin.parse().unwrap());
            }
            assert_eq!(is_allowed(&headers, address), allowed, "{host} {origin:?}");
        }
    }
}
