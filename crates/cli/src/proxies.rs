//! The proxies that the environment names, for requests to endpoints that the user names.

use proofhouse_wire::ProxySettings;

/// What the usual variables say, in upper or lower case.
pub(crate) fn from_environment() -> ProxySettings {
    #[expect(
        clippy::disallowed_methods,
        reason = "the binary reads the environment"
    )]
    read(|name| std::env::var(name).ok())
}

fn read(environment: impl Fn(&str) -> Option<String>) -> ProxySettings {
    let value = |name: &str| {
        let set = environment(name).or_else(|| environment(&name.to_ascii_lowercase()));
        set.unwrap_or_default()
    };
    ProxySettings {
        http: value("HTTP_PROXY"),
        https: value("HTTPS_PROXY"),
        all: value("ALL_PROXY"),
        except: value("NO_PROXY"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cases_are_read() {
        let settings = read(|name| match name {
            "HTTPS_PROXY" => Some("http://upper.example".to_owned()),
            "https_proxy" | "all_proxy" => Some("http://lower.example".to_owned()),
            "NO_PROXY" => Some("inside.example".to_owned()),
            _ => None,
        });
        assert_eq!(settings.https, "http://upper.example");
        assert_eq!(settings.all, "http://lower.example");
        assert_eq!(settings.http, "");
        assert_eq!(settings.except, "inside.example");
    }
}
