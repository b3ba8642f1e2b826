//! Where to ask, how, and within which limits.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use proofhouse_wire::gate::RequestGate;
use proofhouse_wire::{ProxySettings, is_this_machine};

use crate::secret::Secret;

/// How a text is scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// By the distance of its embedding to those of the intent and of the positive examples.
    Embeddings,
    /// By a chat model that is asked for a score. A judge reads the text, so a text can talk to it;
    /// see the guide on semantic indicators.
    Judge,
}

/// Where to ask, how, and within which limits. [`Config::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address up to and without `/embeddings` or `/chat/completions`, as `https://host/v1`.
    pub base_url: String,
    /// The model, as the endpoint calls it.
    pub model: String,
    /// How a text is scored.
    pub method: Method,
    /// The key, if the endpoint wants one. It is sent over HTTPS or to this machine only.
    pub api_key: Option<Secret>,
    /// The time one question has, with its retries and waits.
    pub timeout: Duration,
    /// The part of it that connecting may take.
    pub connect_timeout: Duration,
    /// The longest wait before a retry; an endpoint that asks for a longer one is not asked again.
    pub max_wait: Duration,
    /// How often a question is repeated after status 429 or 5xx.
    pub retries: u32,
    /// The largest text that is sent. A larger one is an error: half a text has half a meaning.
    pub max_text_bytes: usize,
    /// The largest answer that is read.
    pub max_response_bytes: u64,
    /// How many texts are remembered with what was answered about them.
    pub cache_entries: usize,
    /// How many requests are made at most, retries included.
    pub max_requests: u64,
    /// After how many failed questions in a row the endpoint is no longer asked.
    pub max_failures: u32,
    /// The proxies that requests go through; never those to this machine.
    pub proxies: ProxySettings,
    /// What requests go through that count together with those of others.
    pub gate: Option<Arc<dyn RequestGate>>,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address is not one.
    #[error("`{url}` is not an address: {reason}")]
    BadUrl {
        /// The address; left out when it may hold a password.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// No model is named.
    #[error("no model is named")]
    NoModel,
    /// The key cannot be sent as a header.
    #[error("the key is empty, or has characters that no key has")]
    BadKey,
    /// The key would be readable on its way.
    #[error("the key would go to {host} unencrypted; use https, or no key")]
    PlainKey {
        /// Where it would go.
        host: String,
    },
    /// The client cannot be set up.
    #[error("{0}")]
    Setup(String),
}

impl Config {
    /// A configuration with the default limits and no key.
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, method: Method) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            method,
            api_key: None,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_wait: Duration::from_secs(20),
            retries: 2,
            max_text_bytes: 16 << 10,
            max_response_bytes: 8 << 20,
            cache_entries: 1024,
            max_requests: 1000,
            max_failures: 5,
            proxies: ProxySettings::default(),
            gate: None,
        }
    }

    /// The host of the address, once all of it was checked.
    pub(crate) fn check(&self) -> Result<String, ConfigError> {
        let bad = |reason| ConfigError::BadUrl {
            url: without_secrets(&self.base_url),
            reason,
        };
        let uri: Uri = self
            .base_url
            .parse()
            .map_err(|_| bad("it cannot be parsed"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(bad("it has to start with https:// or http://"));
        };
        if *scheme != Scheme::HTTPS && *scheme != Scheme::HTTP {
            return Err(bad("it has to start with https:// or http://"));
        }
        if authority.as_str().contains('@') {
            return Err(ConfigError::BadUrl {
                url: format!("{scheme}://…@{}", authority.host()),
                reason: "names and passwords do not belong in it",
            });
        }
        if uri.query().is_some() || self.base_url.contains('#') {
            return Err(bad("it ends before `?` and `#`"));
        }
        if self.model.trim().is_empty() {
            return Err(ConfigError::NoModel);
        }
        if let Some(key) = &self.api_key {
            let key = key.expose();
            if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(ConfigError::BadKey);
            }
            if *scheme == Scheme::HTTP && !is_this_machine(authority.host()) {
                return Err(ConfigError::PlainKey {
                    host: authority.to_string(),
                });
            }
        }
        Ok(authority.to_string())
    }
}

/// An address for messages: what may hold a key is left out.
fn without_secrets(url: &str) -> String {
    let (path, rest) = match url.find(['?', '#']) {
        Some(end) => (&url[..end], "?…"),
        None => (url, ""),
    };
    let path = match path.rfind('@') {
        Some(at) => {
            let scheme = path.find("://").map_or("", |end| &path[..end + 3]);
            format!("{scheme}…{}", &path[at..])
        }
        None => path.to_owned(),
    };
    format!("{path}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, key: Option<&str>) -> Result<String, ConfigError> {
        Config {
            api_key: key.map(Secret::new),
            ..Config::new(url, "m", Method::Judge)
        }
        .check()
    }

    #[test]
    fn messages_do_not_repeat_keys() {
        for url in [
            "https://models.example/v1?api_key=HUSH",
            "https://models.example/v1#HUSH",
            "models.example/v1?key=HUSH",
            "https://user:HUSH@models.example/v1",
            "user:HUSH@models.example",
            "https://user:HUSH@models.example/v1 ?",
        ] {
            let error = check(url, None).unwrap_err().to_string();
            assert!(!error.contains("HUSH"), "{error}");
            assert!(error.contains("models.example"), "{error}");
        }
    }

    #[test]
    fn addresses() {
        for (url, host) in [
            ("https://example.com/v1", "example.com"),
            ("https://example.com:8443", "example.com:8443"),
            ("http://gpu.internal:8000/v1/", "gpu.internal:8000"),
        ] {
            assert_eq!(check(url, None).as_deref(), Ok(host));
        }
        for url in [
            "",
            "example.com",
            "example.com/v1",
            "ftp://example.com",
            "https://",
            "https://example.com/v1?key=a",
            "https://example.com/v1#a",
            "https://exa mple.com",
        ] {
            assert!(
                matches!(check(url, None), Err(ConfigError::BadUrl { .. })),
                "{url}"
            );
        }
        let error = check("https://user:hunter2@example.com", None).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn keys_travel_encrypted_or_not_at_all() {
        for url in [
            "https://example.com",
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://localhost:1",
        ] {
            assert!(check(url, Some("k")).is_ok(), "{url}");
        }
        for url in [
            "http://example.com",
            "http://10.0.0.1",
            "http://localhost.example.com",
        ] {
            assert!(
                matches!(check(url, Some("k")), Err(ConfigError::PlainKey { .. })),
                "{url}"
            );
        }
        for key in ["", "a b", "a\r\nX-Other: b", "ключ"] {
            assert_eq!(check("https://a", Some(key)), Err(ConfigError::BadKey));
        }
    }

    #[test]
    fn a_model_is_needed() {
        let config = Config::new("https://a", " ", Method::Judge);
        assert_eq!(config.check(), Err(ConfigError::NoModel));
    }

    #[test]
    fn debugging_does_not_show_the_key() {
        let config = Config {
            api_key: Some(Secret::new("sk-secret")),
            ..Config::new("https://a", "m", Method::Judge)
        };
        assert!(!format!("{config:?}").contains("sk-secret"));
    }
}
