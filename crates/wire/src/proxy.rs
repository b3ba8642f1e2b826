//! Proxies for what the operator's own endpoints are asked: which one, and the tunnel through it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Authority;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt as _};

use crate::connect::{ConnectFailure, GuardedResolver};

/// The proxies to use, in the form that the usual environment variables have and with the meaning
/// that `curl` gives them. The default is no proxy.
///
/// Connections to this machine never go through one: what is meant for it must not leave it.
#[derive(Clone, Default)]
pub struct ProxySettings {
    /// For `http` URLs (`HTTP_PROXY`); empty for none.
    pub http: String,
    /// For `https` URLs (`HTTPS_PROXY`); empty for none.
    pub https: String,
    /// For both, where they have none of their own (`ALL_PROXY`); empty for none.
    pub all: String,
    /// Hosts that are connected to directly (`NO_PROXY`), separated by commas.
    pub except: String,
}

impl ProxySettings {
    /// What the usual variables say, in upper or lower case.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| {
            let set = variable(name).or_else(|| variable(&name.to_ascii_lowercase()));
            set.unwrap_or_default()
        };
        Self {
            http: value("HTTP_PROXY"),
            https: value("HTTPS_PROXY"),
            all: value("ALL_PROXY"),
            except: value("NO_PROXY"),
        }
    }

    pub(crate) fn matcher(&self) -> Matcher {
        // `*.example.com` is how some write `.example.com`, which is what the matcher knows.
        let except: Vec<_> = self.except.split(',').map(str::trim).collect();
        let except = except
            .iter()
            .map(|entry| match entry.strip_prefix('*') {
                Some(suffix) if suffix.starts_with('.') => suffix,
                _ => entry,
            })
            .collect::<Vec<_>>()
            .join(",");
        Matcher::builder()
            .http(self.http.clone())
            .https(self.https.clone())
            .all(self.all.clone())
            .no(except)
            .build()
    }
}

impl fmt::Debug for ProxySettings {
    /// Tells which are set and nothing more: the address of a proxy may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxySettings")
            .field("http", &!self.http.is_empty())
            .field("https", &!self.https.is_empty())
            .field("all", &!self.all.is_empty())
            .field("except", &self.except)
            .finish()
    }
}

/// A connection to a server or to the proxy before it. TLS to a proxy is part of it; TLS to the server
/// is not.
pub(crate) type ProxiedStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Connects to a server, directly or through a tunnel.
#[derive(Clone)]
pub(crate) struct Route {
    direct: HttpConnector<GuardedResolver>,
    proxies: Option<Arc<Proxies>>,
}

struct Proxies {
    matcher: Matcher,
    connector: HttpsConnector<HttpConnector<GuardedResolver>>,
}

impl Route {
    pub(crate) fn direct(connector: HttpConnector<GuardedResolver>) -> Self {
        Self {
            direct: connector,
            proxies: None,
        }
    }

    /// `secure` connects to the proxies, some of which are reached over TLS.
    pub(crate) fn through(
        settings: &ProxySettings,
        direct: HttpConnector<GuardedResolver>,
        secure: HttpsConnector<HttpConnector<GuardedResolver>>,
    ) -> Self {
        let proxies = Proxies {
            matcher: settings.matcher(),
            connector: secure,
        };
        Self {
            direct,
            proxies: Some(Arc::new(proxies)),
        }
    }
}

impl Service<Uri> for Route {
    type Response = ProxiedStream;
    type Error = ConnectFailure;
    type Future = BoxFuture<'static, Result<ProxiedStream, ConnectFailure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let tunnel = self.proxies.as_ref().and_then(|proxies| {
            let proxy = intercept(&proxies.matcher, &to)?;
            let tunnel = Tunnel::new(proxy.uri().clone(), proxies.connector.clone());
            Some(match proxy.basic_auth() {
                Some(credentials) => tunnel.with_auth(credentials.clone()),
                None => tunnel,
            })
        });
        if let Some(tunnel) = tunnel {
            return Box::pin(async move { Ok(tunnel.oneshot(with_port(to)?).await?) });
        }
        let connecting = self.direct.clone().oneshot(to);
        Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
    }
}

/// The proxy for a URL, if there is one.
fn intercept(matcher: &Matcher, to: &Uri) -> Option<Intercept> {
    let here = to.host().is_none_or(is_this_machine);
    if here { None } else { matcher.intercept(to) }
}

/// A tunnel leads to the port of `https` unless one is named.
fn with_port(to: Uri) -> Result<Uri, http::Error> {
    let mut parts = to.into_parts();
    let plain = parts.scheme == Some(http::uri::Scheme::HTTP);
    if let Some(authority) = &parts.authority
        && authority.port().is_none()
        && plain
    {
        parts.authority = Some(Authority::try_from(format!("{}:80", authority.host()))?);
    }
    Ok(Uri::from_parts(parts)?)
}

/// Whether a host of a URL is the machine this runs on, whatever a name server would say.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cases_are_read() {
        let settings = ProxySettings::from_variables(|name| match name {
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

    fn proxy(settings: &ProxySettings, url: &str) -> Option<String> {
        let found = intercept(&settings.matcher(), &url.parse().unwrap());
        found.map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn variables_mean_what_they_mean_to_others() {
        let settings = ProxySettings {
            http: "http://plain.example:3128".to_owned(),
            https: "secure.example:3128".to_owned(),
            all: String::new(),
            except: "inside.example, *.lab.example,10.0.0.0/8".to_owned(),
        };
        let plain = Some("http://plain.example:3128/".to_owned());
        let secure = Some("http://secure.example:3128/".to_owned());
        assert_eq!(proxy(&settings, "http://models.example/v1"), plain);
        assert_eq!(proxy(&settings, "https://models.example/v1"), secure);
        for direct in [
            "https://inside.example",
            "https://a.inside.example",
            "https://gpu.lab.example",
            "http://10.1.2.3:8000",
        ] {
            assert_eq!(proxy(&settings, direct), None, "{direct}");
        }
        assert_eq!(proxy(&settings, "https://notinside.example"), secure);
        let all = ProxySettings {
            all: "http://all.example".to_owned(),
            ..ProxySettings::default()
        };
        for url in ["http://models.example", "https://models.example"] {
            assert_eq!(proxy(&all, url).as_deref(), Some("http://all.example/"));
            assert_eq!(proxy(&ProxySettings::default(), url), None);
        }
    }

    #[test]
    fn what_is_meant_for_this_machine_goes_through_no_proxy() {
        let all = ProxySettings {
            all: "http://all.example".to_owned(),
            ..ProxySettings::default()
        };
        for url in [
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://LOCALHOST/v1",
        ] {
            assert_eq!(proxy(&all, url), None, "{url}");
        }
        assert!(proxy(&all, "http://localhost.example").is_some());
    }

    #[test]
    fn tunnels_lead_to_the_port_of_the_scheme() {
        for (url, port) in [
            ("http://a.example/x", Some(80)),
            ("http://a.example:81/x", Some(81)),
            ("https://a.example/x", None),
        ] {
            let uri = with_port(url.parse().unwrap()).unwrap();
            assert_eq!(uri.port_u16(), port, "{url}");
        }
    }

    #[test]
    fn passwords_of_proxies_are_not_shown() {
        let settings = ProxySettings {
            all: "http://ada:HUSH@all.example".to_owned(),
            ..ProxySettings::default()
        };
        assert!(!format!("{settings:?}").contains("HUSH"));
    }
}
