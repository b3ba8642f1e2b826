//! The logs of containers, served over TLS as a kubelet does it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proofhouse_wire::sync::lock;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Where the logs of Pods are, by namespace and name.
#[derive(Debug, Clone, Default)]
pub(super) struct PodLogs(Arc<Mutex<BTreeMap<(String, String), PathBuf>>>);

impl PodLogs {
    pub(super) fn add(&self, namespace: &str, pod: &str, directory: PathBuf) {
        let mut pods = lock(&self.0);
        pods.insert((namespace.to_owned(), pod.to_owned()), directory);
    }

    fn directory(&self, namespace: &str, pod: &str) -> Option<PathBuf> {
        let pods = lock(&self.0);
        pods.get(&(namespace.to_owned(), pod.to_owned())).cloned()
    }
}

/// The file of a container's log; each start has one.
pub(super) fn file(container: &str, start: u32) -> String {
    format!("{container}.{start}.log")
}

/// Serves until the runtime ends.
pub(super) async fn serve(listener: TcpListener, tls: Arc<ServerConfig>, logs: PodLogs) {
    let acceptor = TlsAcceptor::from(tls);
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, logs) = (acceptor.clone(), logs.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| {
                let logs = logs.clone();
                async move { Ok::<_, Infallible>(answer(&request, &logs)) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
        });
    }
}

/// `/containerLogs/NAMESPACE/POD/CONTAINER`, of which the last lines and the first bytes can be asked for.
fn answer(request: &Request<Incoming>, logs: &PodLogs) -> Response<Full<Bytes>> {
    let parts: Vec<&str> = request.uri().path().split('/').collect();
    let found = match parts[..] {
        ["", "containerLogs", namespace, pod, container] => logs
            .directory(namespace, pod)
            .and_then(|directory| read(&directory, container, request.uri().query())),
        _ => None,
    };
    let (status, body) = match found {
        Some(text) => (StatusCode::OK, text),
        None => (StatusCode::NOT_FOUND, b"there is no such log\n".to_vec()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}

fn read(directory: &std::path::Path, container: &str, query: Option<&str>) -> Option<Vec<u8>> {
    let value = |name: &str| {
        let pairs = query.unwrap_or_default().split('&');
        let mut found = pairs.filter_map(|pair| pair.split_once('='));
        let (_, value) = found.find(|(key, _)| *key == name)?;
        Some(value.to_owned())
    };
    let number = |name: &str| value(name).and_then(|text| text.parse::<usize>().ok());
    let starts = (0..).take_while(|start| directory.join(file(container, *start)).exists());
    let last = starts.last()?;
    let start = if value("previous").is_some_and(|text| text == "true") {
        last.checked_sub(1)?
    } else {
        last
    };
    #[expect(clippy::disallowed_methods, reason = "a log of our own")]
    let mut text = std::fs::read(directory.join(file(container, start))).ok()?;
    if let Some(lines) = number("tailLines") {
        let whole = text.strip_suffix(b"\n").unwrap_or(&text);
        let breaks = whole.iter().rev().enumerate();
        let mut breaks = breaks.filter(|(_, byte)| **byte == b'\n');
        if let Some((back, _)) = lines.checked_sub(1).and_then(|nth| breaks.nth(nth)) {
            text = text.split_off(whole.len() - back);
        }
    }
    text.truncate(number("limitBytes").unwrap_or(usize::MAX));
    Some(text)
}
