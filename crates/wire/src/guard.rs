//! Guards: which addresses a client may connect to, asked for every address of every connection.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Decides about addresses.
///
/// It is asked for the address that is connected to, not for the name, so a name that resolves to
/// something else the second time gains nothing.
pub trait AddressGuard: Send + Sync {
    /// Says whether the address may be connected to.
    ///
    /// # Errors
    ///
    /// Returns why not, in one sentence.
    fn check(&self, address: IpAddr) -> Result<(), String>;

    /// Says whether a name may be looked up. Asking for a name already tells it to others.
    ///
    /// # Errors
    ///
    /// Returns why not, in one sentence.
    fn check_name(&self, _name: &str) -> Result<(), String> {
        Ok(())
    }
}

/// The reason of a guard, on its way through the layers of the HTTP library.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Denied(pub(crate) String);

/// Looks names up and lets the guard see every answer.
pub(crate) struct GuardedResolver(pub(crate) Arc<dyn AddressGuard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            guard.check_name(name.as_str()).map_err(Denied)?;
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<_> = found.collect();
            for address in &addresses {
                guard.check(address.ip()).map_err(Denied)?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
