//! Addresses on the loopback interface: those that are free, those where nobody listens, and servers of HTTP.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
#[cfg(feature = "wire")]
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

#[cfg(feature = "wire")]
use proofhouse_wire::server::{BoundServer, Handler};
#[cfg(feature = "wire")]
use proofhouse_wire::{CancellationToken, WireLimits};
#[cfg(feature = "wire")]
use tokio::task::JoinHandle;

/// Any port of the loopback interface.
const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// An address that is free, for a program that is told where to listen. Its port is below those that the system hands
/// out by itself and is given to one test only, so that it stays free until it is taken, and between two takings.
pub fn free_address() -> SocketAddr {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Several test programs may run at once.
    let first = 12_000 + u16::try_from(std::process::id() % 100).unwrap_or_default() * 150;
    loop {
        let port = first + TRIED.fetch_add(1, Ordering::Relaxed) % 5_000;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// An address at which nobody listens, nor will while this is there.
#[derive(Debug)]
pub struct Vacant {
    address: SocketAddr,
    _held: (TcpListener, TcpStream),
}

impl Vacant {
    /// Takes one: that of the near end of a connection, which can have no other user.
    pub fn new() -> Self {
        let listener = TcpListener::bind(ANY).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Self {
            address: stream.local_addr().unwrap(),
            _held: (listener, stream),
        }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Default for Vacant {
    fn default() -> Self {
        Self::new()
    }
}

/// A free address, taken; the server is still to be named.
#[cfg(feature = "wire")]
pub async fn bound() -> BoundServer {
    BoundServer::new(ANY.into()).await.unwrap()
}

/// A server that ends when this is dropped.
#[cfg(feature = "wire")]
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

#[cfg(feature = "wire")]
impl Serving {
    /// Serves at a free address.
    pub async fn start<H: Handler>(handler: Arc<H>, limits: WireLimits) -> Self {
        Self::at(bound().await, handler, limits)
    }

    /// Serves at an address that is taken already, because the handler had to know it.
    pub fn at<H: Handler>(bound: BoundServer, handler: Arc<H>, limits: WireLimits) -> Self {
        let (address, stop) = (bound.address(), CancellationToken::new());
        let task = tokio::spawn(bound.serve(handler, limits, stop.clone()));
        Self {
            address,
            stop,
            task: Some(task),
        }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is, as a URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends it, and returns when nothing of it runs any more.
    ///
    /// # Panics
    ///
    /// If it does not end, or has panicked.
    pub async fn finish(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let ended = tokio::time::timeout(crate::wait::PATIENCE, task).await;
            ended.expect("the server ends").unwrap();
        }
    }
}

#[cfg(feature = "wire")]
impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_answers_at_a_vacant_address() {
        let vacant = Vacant::new();
        let refused = TcpStream::connect(vacant.address()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert!(TcpListener::bind(vacant.address()).is_err());
    }
}
