//! How a person agrees: where their browser is sent, and how its answer comes back.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofhouse_wire::client::Client;
use proofhouse_wire::{Bytes, HeaderMap, Method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::error::AuthorizationError;
use crate::metadata::is_safe;
use crate::token::host;

/// Where authorization servers send people back to when nobody waits there.
const NOWHERE: &str = "http://127.0.0.1:8976/callback";
/// The path of the loopback that people are sent back to.
const CALLBACK: &str = "/callback";
/// How much of a request of a browser is read.
const MAX_REQUEST: usize = 32 << 10;
/// How often somebody who stands before an authorization server may send people on.
const MAX_REDIRECTS: usize = 4;
/// How long a browser may take for a request.
const READ_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// Gets the consent of a person.
pub trait Consent: Send + Sync + std::fmt::Debug {
    /// Where the authorization server sends the person back to.
    fn redirect_uri(&self) -> String;

    /// Whether there is anybody to ask.
    fn can_ask(&self) -> bool {
        true
    }

    /// Sends the person to the authorization endpoint; yields the address that they came back to.
    fn ask<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<Url, AuthorizationError>>;
}

/// Nobody is there to agree.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConsent;

impl Consent for NoConsent {
    fn redirect_uri(&self) -> String {
        NOWHERE.to_owned()
    }

    fn can_ask(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<Url, AuthorizationError>> {
        Box::pin(async move { Err(AuthorizationError::NeedsConsent(host(url))) })
    }
}

/// The authorization server agrees at once, as those for tests and for machines do: it answers with the way back.
#[derive(Debug, Clone)]
pub struct AutomaticConsent {
    client: Client,
}

impl AutomaticConsent {
    /// Asks through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl Consent for AutomaticConsent {
    fn redirect_uri(&self) -> String {
        NOWHERE.to_owned()
    }

    fn ask<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<Url, AuthorizationError>> {
        Box::pin(async move {
            let mut at = url.clone();
            for _ in 0..=MAX_REDIRECTS {
                let none = (HeaderMap::new(), Bytes::new());
                let sent = self.client.send(Method::GET, at.as_str(), none.0, none.1);
                let response = sent
                    .await
                    .map_err(|error| AuthorizationError::of_request(&host(&at), &error))?;
                let location = response.header("location").unwrap_or_default();
                let next = at.join(location).ok();
                let Some(next) = next.filter(|_| response.status.is_redirection()) else {
                    break;
                };
                if next.as_str().starts_with(NOWHERE) {
                    return Ok(next);
                }
                // What stands before an authorization server sends people on to it, as a browser would go.
                if !is_safe(&next) {
                    break;
                }
                at = next;
            }
            Err(AuthorizationError::NeedsConsent(host(url)))
        })
    }
}

/// Tells somebody where to go.
type Announce = Arc<dyn Fn(&Url) + Send + Sync>;

/// A person is told where to go, and their browser comes back to a port of this machine (RFC 8252).
pub struct LoopbackConsent {
    listener: std::net::TcpListener,
    port: u16,
    announce: Announce,
}

impl LoopbackConsent {
    /// Listens on a port of the loopback, or on any with 0. `announce` tells the person where to go.
    ///
    /// # Errors
    ///
    /// Returns an error when the port is taken.
    pub fn listen(
        port: u16,
        announce: impl Fn(&Url) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener,
            announce: Arc::new(announce),
        })
    }

    async fn wait(&self) -> Result<Url, AuthorizationError> {
        let failed = |error: std::io::Error| AuthorizationError::NoConsent(error.to_string());
        let listener = self.listener.try_clone().and_then(TcpListener::from_std);
        let listener = listener.map_err(failed)?;
        loop {
            let (stream, _) = listener.accept().await.map_err(failed)?;
            // Browsers also ask for icons; only the way back counts.
            if let Ok(Some(back)) = tokio::time::timeout(READ_TIME, self.take(stream)).await {
                return Ok(back);
            }
        }
    }

    async fn take(&self, mut stream: TcpStream) -> Option<Url> {
        let mut request = Vec::new();
        let mut piece = [0_u8; 4096];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let read = stream.read(&mut piece).await.ok()?;
            if read == 0 || request.len() > MAX_REQUEST {
                return None;
            }
            request.extend_from_slice(&piece[..read]);
        }
        let text = String::from_utf8_lossy(&request);
        let mut words = text.lines().next()?.split(' ');
        let target = (words.next()? == "GET").then(|| words.next())??;
        let base = Url::parse(&self.redirect_uri()).ok()?;
        let back = target
            .starts_with('/')
            .then(|| base.join(target).ok())
            .flatten()
            .filter(|back| back.path() == CALLBACK && back.query().is_some());
        let (status, said) = if back.is_some() {
            ("200 OK", "Thank you. You can close this window.")
        } else {
            ("404 Not Found", "There is nothing here.")
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
             referrer-policy: no-referrer\r\nconnection: close\r\n\r\n{said}",
            said.len()
        );
        // Whoever closed their window has agreed all the same.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        back
    }
}

impl std::fmt::Debug for LoopbackConsent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoopbackConsent({})", self.port)
    }
}

impl Consent for LoopbackConsent {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{CALLBACK}", self.port)
    }

    fn ask<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<Url, AuthorizationError>> {
        Box::pin(async move {
            (self.announce)(url);
            self.wait().await
        })
    }
}
