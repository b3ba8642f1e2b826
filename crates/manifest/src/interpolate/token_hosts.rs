//! Where a token may be sent: the hosts that the operator binds a provider to.

use url::Url;

/// Hosts, each as `api.example.com`, `api.example.com:8443`, `*.example.com` for all below it, or `*` for any.
///
/// ```
/// use proofhouse_manifest::interpolate::TokenHosts;
/// let hosts = TokenHosts::parse(["api.example.com", "*.example.org"]).unwrap();
/// let allows = |url: &str| hosts.allows(&url.parse().unwrap());
/// assert!(allows("https://api.example.com/v1") && allows("https://a.b.example.org"));
/// assert!(!allows("https://api.example.com.evil.net") && !allows("https://example.org"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHosts(Vec<HostPattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPattern {
    name: HostName,
    /// Any port, if there is none.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Any,
    /// With the dot before it.
    Below(String),
    Exactly(String),
}

/// A text that is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no host; write `api.example.com`, `*.example.com`, `127.0.0.1:8080` or `*`")]
pub struct NotAHost;

impl TokenHosts {
    /// Every host, and what is no host: commands and Jobs.
    #[must_use]
    pub fn any() -> Self {
        Self(vec![HostPattern {
            name: HostName::Any,
            port: None,
        }])
    }

    /// Reads hosts.
    ///
    /// # Errors
    ///
    /// Returns an error when one of them is none.
    pub fn parse<T: AsRef<str>>(hosts: impl IntoIterator<Item = T>) -> Result<Self, NotAHost> {
        let patterns = hosts.into_iter().map(|host| pattern(host.as_ref()));
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    /// The hosts of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether a token may go to this address.
    #[must_use]
    pub fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else {
            return false;
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|pattern| {
            let is_named = match &pattern.name {
                HostName::Any => true,
                HostName::Below(suffix) => host.ends_with(suffix.as_str()),
                HostName::Exactly(name) => host == *name,
            };
            is_named
                && pattern
                    .port
                    .is_none_or(|port| url.port_or_known_default() == Some(port))
        })
    }

    /// Whether it may go anywhere, also to where nobody can say what becomes of it.
    #[must_use]
    pub fn is_any(&self) -> bool {
        let anywhere =
            |pattern: &HostPattern| pattern.name == HostName::Any && pattern.port.is_none();
        self.0.iter().any(anywhere)
    }
}

fn pattern(text: &str) -> Result<HostPattern, NotAHost> {
    let text = text.trim();
    if text == "*" {
        return Ok(HostPattern {
            name: HostName::Any,
            port: None,
        });
    }
    let (below, rest) = match text.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // Read as a URL is, so that both are written alike: in lower case, in Punycode, addresses in short.
    let url = Url::parse(&format!("http://{rest}/")).map_err(|_| NotAHost)?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let host = url.host_str().filter(|_| bare && url.username().is_empty());
    let host = host.ok_or(NotAHost)?.trim_end_matches('.').to_owned();
    if host.contains('*') || rest.contains(['/', '?', '#', '@']) {
        return Err(NotAHost);
    }
    // Port 80 is the default of the scheme above, so it is not told apart there.
    let port = match (url.port(), rest.ends_with(":80")) {
        (None, true) => Some(80),
        (port, _) => port,
    };
    Ok(HostPattern {
        name: if below {
            HostName::Below(format!(".{host}"))
        } else {
            HostName::Exactly(host)
        },
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_only_where_it_may() {
        for (pattern, url, expected) in [
            ("api.example.com", "https://API.example.com/x", true),
            ("api.example.com", "https://api.example.com./x", true),
            (
                "api.example.com",
                "https://api.example.com@evil.net/",
                false,
            ),
            ("api.example.com", "https://evil.net/api.example.com", false),
            ("api.example.com", "https://xapi.example.com", false),
            ("*.example.com", "https://a.example.com:444", true),
            ("*.example.com", "https://example.com", false),
            ("*.example.com", "https://evilexample.com", false),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8081/", false),
            ("example.com:80", "http://example.com/", true),
            ("example.com:80", "https://example.com/", false),
            ("[::1]:9", "http://[::1]:9/", true),
            ("bücher.example", "https://xn--bcher-kva.example/", true),
            ("*", "http://anything/", true),
        ] {
            let hosts = TokenHosts::parse([pattern]).unwrap();
            assert_eq!(
                hosts.allows(&url.parse().unwrap()),
                expected,
                "{pattern} {url}"
            );
        }
        for wrong in [
            "",
            "a b",
            "https://a.example",
            "a/b",
            "a@b",
            "*.*",
            "a.*.b",
            "a?b",
            "**",
        ] {
            assert_eq!(TokenHosts::parse([wrong]), Err(NotAHost), "{wrong}");
        }
    }
}
