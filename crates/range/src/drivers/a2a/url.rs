//! Just enough of URLs to tell where they lead; what is doubtful leads nowhere.

use std::net::IpAddr;

/// The parts of an `http` or `https` URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) struct UrlParts<'u> {
    /// The scheme with `://`.
    pub(in crate::drivers) scheme: &'u str,
    pub(in crate::drivers) host: &'u str,
    pub(in crate::drivers) port: u16,
    /// Scheme, host and port as they were written.
    pub(in crate::drivers) origin: &'u str,
    /// The path and what follows.
    pub(in crate::drivers) path: &'u str,
}

/// Takes a URL apart. Credentials, backslashes, blanks and other things that readers of URLs do not
/// agree on are refused, so that what is checked here is what is connected to.
pub(in crate::drivers) fn parse(url: &str) -> Option<UrlParts<'_>> {
    let odd = |byte: u8| byte <= b' ' || byte >= 0x7f || matches!(byte, b'\\' | b'@');
    let authority_end = |rest: &str| rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (scheme, default_port) =
        ["http://", "https://"]
            .into_iter()
            .zip([80, 443])
            .find(|(scheme, _)| {
                url.get(..scheme.len())
                    .is_some_and(|s| s.eq_ignore_ascii_case(scheme))
            })?;
    let rest = &url[scheme.len()..];
    let (authority, path) = rest.split_at(authority_end(rest));
    if authority.bytes().any(odd) || path.bytes().any(|byte| byte <= b' ' || byte == b'\\') {
        return None;
    }
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (host, after) = inner.split_once(']')?;
        (
            host,
            after.strip_prefix(':').or(after.is_empty().then_some(""))?,
        )
    } else {
        authority.split_once(':').unwrap_or((authority, ""))
    };
    if host.is_empty() {
        return None;
    }
    let port = if port.is_empty() {
        default_port
    } else {
        port.parse().ok()?
    };
    Some(UrlParts {
        scheme,
        host,
        port,
        origin: &url[..scheme.len() + authority.len()],
        path,
    })
}

impl UrlParts<'_> {
    /// Whether it leads to this machine and nowhere else.
    pub(in crate::drivers) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Whether both lead to the same place. Servers that listen on every address write
    /// `0.0.0.0` in their cards, and this machine has many names.
    pub(in crate::drivers) fn same_place(&self, other: &Self) -> bool {
        let local = |parts: &Self| {
            parts.is_loopback()
                || parts
                    .host
                    .parse()
                    .is_ok_and(|ip: IpAddr| ip.is_unspecified())
        };
        self.port == other.port
            && (self.host.eq_ignore_ascii_case(other.host) || (local(self) && local(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_and_tricks_lead_nowhere() {
        for (url, loopback) in [
            ("http://127.0.0.1:80/x", Some(true)),
            ("http://127.9.9.9", Some(true)),
            ("HTTP://LocalHost:8080?x", Some(true)),
            ("https://[::1]:99/", Some(true)),
            ("http://10.0.0.1/", Some(false)),
            ("http://localhost.example.com/", Some(false)),
            ("http://127.0.0.1.example.com/", Some(false)),
            ("http://example.com#@127.0.0.1/", Some(false)),
            ("http://example.com\\@127.0.0.1/", None),
            ("http://127.0.0.1@example.com/", None),
            ("http://127.0.0.1 .example.com/", None),
            ("http://127.0.0.1\t/", None),
            ("http:///x", None),
            ("http://a:b/", None),
            ("http://[::1]x/", None),
            ("file:///etc/passwd", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(
                parse(url).map(|parts| parts.is_loopback()),
                loopback,
                "{url}"
            );
        }
    }

    #[test]
    fn places_are_compared_by_host_and_port() {
        for (one, other, same) in [
            ("http://localhost:1/a", "http://127.0.0.1:1/b", true),
            ("http://0.0.0.0:1/", "http://127.0.0.1:1/", true),
            ("http://A.example/", "http://a.example:80/", true),
            ("http://localhost:1/", "http://127.0.0.1:2/", false),
            ("http://a.example/", "http://b.example/", false),
        ] {
            let (one, other) = (parse(one).unwrap(), parse(other).unwrap());
            assert_eq!(one.same_place(&other), same);
        }
    }
}
