//! Guards: which addresses a client may connect to, asked for every address of every connection.

use std::net::IpAddr;

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
}

/// Why a guard does not let a client connect, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressDenied(pub String);
