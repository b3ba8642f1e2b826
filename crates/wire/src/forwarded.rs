//! Where a request comes from: the peer of its connection, or what a trusted proxy says about whom it speaks for.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

/// What proxies write, each behind what the one before it has written.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies that are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// The proxies in these networks.
    #[must_use]
    pub fn of(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// Where a request of this peer comes from: what its proxies say is read from the nearest to the farthest, as long as they are
    /// trusted. What somebody else says is not read at all.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return peer;
        }
        let said = |name: &HeaderName, read: fn(&str) -> Vec<Option<IpAddr>>| {
            let hops = joined(headers, name).map(|text| read(&text))?;
            Some(self.nearest_stranger(peer, &hops))
        };
        let listed = said(&X_FORWARDED_FOR, addresses);
        match (listed, said(&header::FORWARDED, elements)) {
            (None, None) => peer,
            (Some(client), None) | (None, Some(client)) => client,
            // A proxy writes one of them and hands on the other as the client sent it: nobody knows which is which.
            (Some(one), Some(other)) => {
                if one == other {
                    one
                } else {
                    peer
                }
            }
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The first from the right that is no trusted proxy. What is left of something that cannot be read was said by nobody known.
    fn nearest_stranger(&self, peer: IpAddr, hops: &[Option<IpAddr>]) -> IpAddr {
        let mut nearest = peer;
        for hop in hops.iter().rev() {
            let Some(address) = hop else {
                break;
            };
            nearest = *address;
            if !self.trusts(nearest) {
                break;
            }
        }
        nearest
    }
}

/// All that a header says, in order. What is no text is something that cannot be read.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter();
    let texts: Vec<&str> = values.map(|value| value.to_str().unwrap_or("?")).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// The addresses of `X-Forwarded-For`.
fn addresses(text: &str) -> Vec<Option<IpAddr>> {
    text.split(',').map(address).collect()
}

/// An address, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let ip = bare.unwrap_or(text).parse::<IpAddr>();
    let ip = ip.or_else(|_| text.parse::<SocketAddr>().map(|place| place.ip()));
    ip.ok().map(|ip| ip.to_canonical())
}

/// The addresses of `Forwarded` (RFC 7239). A header that is not written as it must be says nothing: a quote that somebody opened
/// could hide what comes after it.
fn elements(text: &str) -> Vec<Option<IpAddr>> {
    let mut hops = Vec::new();
    let mut rest = text;
    loop {
        let Some((hop, after)) = element(rest) else {
            return vec![None];
        };
        hops.push(hop);
        match after {
            Some(after) => rest = after,
            None => return hops,
        }
    }
}

/// Reads one element: whom it speaks for, and what comes after the comma.
fn element(mut rest: &str) -> Option<(Option<IpAddr>, Option<&str>)> {
    let mut hop = None;
    loop {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_matches([' ', '\t']);
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            return None;
        }
        let (value, after) = value(after)?;
        if name.eq_ignore_ascii_case("for") {
            hop = address(&value);
        }
        let after = after.trim_start_matches([' ', '\t']);
        if after.is_empty() {
            return Some((hop, None));
        }
        if let Some(next) = after.strip_prefix(',') {
            return Some((hop, Some(next)));
        }
        rest = after.strip_prefix(';')?;
    }
}

/// Reads a value, quoted or not, and returns what comes after it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ';', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (!value.is_empty() && !value.contains('"')).then(|| (value.to_owned(), after));
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn proxies() -> TrustedProxies {
        TrustedProxies::of(["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()))
    }

    fn client(peer: &str, said: &[(&str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let client = proxies().client(peer.parse().unwrap(), &headers);
        client.to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_only_as_far_as_they_reach() {
        let listed = "x-forwarded-for";
        for (peer, said, wanted) in [
            ("192.0.2.1", "203.0.113.9", "192.0.2.1"),
            ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
            ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
            ("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),
            ("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "1.1.1.1, unknown, 10.0.0.2", "10.0.0.2"),
            ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
            ("fd00::1", "[2001:db8::9]:4711", "2001:db8::9"),
            ("10.0.0.1", "[2001:db8::9]", "2001:db8::9"),
            ("10.0.0.1", "2001:db8::9", "2001:db8::9"),
            ("10.0.0.1", "1.1.1.1,", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
        ] {
            assert_eq!(client(peer, &[(listed, said)]), wanted, "{peer}: {said}");
        }
        // What is sent in two lines is one list; the proxy adds to its end.
        let lines = [(listed, "1.1.1.1"), (listed, "203.0.113.9")];
        assert_eq!(client("10.0.0.1", &lines), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        let strange = HeaderMap::from_iter([(
            X_FORWARDED_FOR,
            http::HeaderValue::from_bytes(b"\xff").unwrap(),
        )]);
        let peer = "10.0.0.1".parse().unwrap();
        assert_eq!(proxies().client(peer, &strange), peer);
        assert_eq!(
            TrustedProxies::default().client(peer, &HeaderMap::new()),
            peer
        );
    }

    #[test]
    fn the_standard_header_is_read_and_nothing_hides_in_quotes() {
        for (said, wanted) in [
            ("for=203.0.113.9", "203.0.113.9"),
            (r#"For="[2001:db8::9]:4711";proto=https"#, "2001:db8::9"),
            ("for=1.1.1.1;by=10.0.0.2, for=203.0.113.9", "203.0.113.9"),
            ("for=203.0.113.9, for=10.0.0.2", "203.0.113.9"),
            ("for=1.1.1.1, for=_hidden", "10.0.0.1"),
            ("for=1.1.1.1, proto=https", "10.0.0.1"),
            // A client opened a quote, or its host name pretends to be another element.
            (r#"for=", for=203.0.113.9"#, "10.0.0.1"),
            (r#"for="x, for=203.0.113.9;host="a""#, "10.0.0.1"),
            (r#"for=203.0.113.9;host="a, for=1.1.1.1;b=""#, "203.0.113.9"),
            (
                r#"for=203.0.113.9;host="a\", for=1.1.1.1;b=""#,
                "203.0.113.9",
            ),
            ("for", "10.0.0.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[("forwarded", said)]), wanted, "{said}");
        }
    }

    #[test]
    fn two_headers_that_differ_say_nothing() {
        let both = |one, other| {
            client(
                "10.0.0.1",
                &[("x-forwarded-for", one), ("forwarded", other)],
            )
        };
        assert_eq!(both("203.0.113.9", "for=203.0.113.9"), "203.0.113.9");
        assert_eq!(both("203.0.113.9", "for=1.1.1.1"), "10.0.0.1");
    }

    proptest! {
        #[test]
        fn whatever_is_said_is_read_without_harm(text in "[ -~]{0,80}") {
            client("10.0.0.1", &[("forwarded", &text), ("x-forwarded-for", &text)]);
        }
    }
}
