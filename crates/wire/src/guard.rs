//! Guards: which addresses a client may connect to, asked for every address of every connection.

use std::net::{IpAddr, SocketAddr};

use rustls::pki_types::CertificateDer;

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
    fn check(&self, address: IpAddr) -> Result<(), AddressDenied>;

    /// Says whether a name may be looked up. Asking for a name already tells it to others.
    ///
    /// # Errors
    ///
    /// Returns why not, in one sentence.
    fn check_name(&self, _name: &str) -> Result<(), AddressDenied> {
        Ok(())
    }

    /// The address that a name has whatever a name server says; it is checked like any other. A port of it stands in for
    /// that of URLs without one.
    fn address_of(&self, _name: &str) -> Option<SocketAddr> {
        None
    }

    /// Certificates of authorities that are believed beside those of the client.
    fn authorities(&self) -> &[CertificateDer<'static>] {
        &[]
    }
}

/// Why a guard does not let a client connect, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressDenied(pub String);
