//! Connections: names are looked up under the guard and TLS is greeted, all of it within one time.
//! Only a client without a guard knows proxies: a guard could not see where a proxy connects to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::Uri;
use http_body::Frame;
use http_body_util::{Either, Full, StreamBody};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower::{Service, ServiceExt as _};

use crate::guard::AddressGuard;
use crate::proxy::{ProxiedStream, ProxySettings, Route};

/// The body of a request: whole, or in pieces as they come.
pub(crate) type RequestBody = Either<Full<Bytes>, StreamBody<Pieces>>;

/// The pieces of a body.
pub(crate) type Pieces = BoxStream<'static, io::Result<Frame<Bytes>>>;

/// Connections that are open or can be opened.
pub(crate) type Connections = legacy::Client<Dial, RequestBody>;

/// Why a connection could not be opened.
pub(crate) type ConnectFailure = Box<dyn std::error::Error + Send + Sync>;

/// The time for a connection ran out.
#[derive(Debug, thiserror::Error)]
#[error("no answer in time")]
pub(crate) struct ConnectTimedOut;

/// Which servers are connected to, and how.
pub(crate) enum Reach {
    /// All, directly.
    Anywhere,
    /// Those whose addresses the guard allows, directly.
    Guarded(Arc<dyn AddressGuard>),
    /// All, through the proxies that are set.
    Proxied(ProxySettings),
}

/// Connections with these certificates, each opened within this time.
pub(crate) fn connections(tls: rustls::ClientConfig, reach: &Reach, time: Duration) -> Connections {
    let plain = |guard: Option<&Arc<dyn AddressGuard>>| {
        let mut plain = HttpConnector::new_with_resolver(GuardedResolver(guard.cloned()));
        plain.enforce_http(false);
        plain.set_nodelay(true);
        plain
    };
    let route = match reach {
        Reach::Anywhere => Route::direct(plain(None)),
        Reach::Guarded(guard) => Route::direct(plain(Some(guard))),
        Reach::Proxied(settings) => {
            let secure = with_tls(tls.clone(), plain(None));
            Route::through(settings, plain(None), secure)
        }
    };
    let connector = with_tls(tls, route);
    let dial = Dial {
        connector: Arc::new(connector),
        time,
    };
    legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build(dial)
}

fn with_tls<C>(tls: rustls::ClientConfig, connector: C) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector)
}

/// Opens connections. Cloned for every request, so there is little in it.
#[derive(Clone)]
pub(crate) struct Dial {
    connector: Arc<HttpsConnector<Route>>,
    time: Duration,
}

impl Service<Uri> for Dial {
    type Response = MaybeHttpsStream<ProxiedStream>;
    type Error = ConnectFailure;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectFailure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = HttpsConnector::clone(&self.connector).oneshot(to);
        let time = self.time;
        Box::pin(async move {
            let connected = tokio::time::timeout(time, connecting).await;
            connected.map_err(|_| ConnectTimedOut)?
        })
    }
}

/// Looks names up and lets the guard see every answer.
#[derive(Clone)]
pub(crate) struct GuardedResolver(Option<Arc<dyn AddressGuard>>);

impl Service<Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ConnectFailure;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectFailure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move {
            if let Some(guard) = &guard {
                guard.check_name(name.as_str())?;
            }
            let fixed = guard
                .as_ref()
                .and_then(|guard| guard.address_of(name.as_str()));
            let addresses: Vec<_> = match fixed {
                Some(address) => vec![address],
                None => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
            };
            if let Some(guard) = &guard {
                for address in &addresses {
                    guard.check(address.ip())?;
                }
            }
            Ok(addresses.into_iter())
        })
    }
}
