//! The egress policy: which addresses tools may connect to.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{AddressDenied, AddressGuard};
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Addresses that tools may not reach unless the operator says so, by what they are.
const DENIED: &[(&str, &str)] = &[
    ("0.0.0.0/8", "an unspecified address"),
    ("10.0.0.0/8", "a private address"),
    ("100.64.0.0/10", "a carrier-grade NAT address"),
    ("127.0.0.0/8", "a loopback address"),
    ("168.63.129.16/32", "a metadata address"),
    ("169.254.0.0/16", "a link-local or metadata address"),
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.168.0.0/16", "a private address"),
    ("198.18.0.0/15", "a benchmarking address"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved or broadcast address"),
    ("::/128", "an unspecified address"),
    ("::1/128", "a loopback address"),
    ("::ffff:0:0/96", "an IPv4 address in IPv6 form"),
    ("64:ff9b:1::/48", "an address of a local NAT64"),
    ("100::/64", "an address that discards"),
    ("2001::/32", "a Teredo address"),
    ("2001:2::/48", "a benchmarking address"),
    ("2001:10::/28", "an address that is no longer used"),
    ("2001:db8::/32", "an address for documentation"),
    ("fc00::/7", "a unique local address"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a site-local address"),
    ("ff00::/8", "a multicast address"),
];

/// This machine.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// What tools may connect to: everything public, and what is allowed by CIDR.
///
/// ```
/// use proofhouse_wire::EgressPolicy;
/// let policy = EgressPolicy::default();
/// assert!(policy.check("93.184.216.34".parse().unwrap()).is_ok());
/// assert!(policy.check("169.254.169.254".parse().unwrap()).is_err());
/// let policy = EgressPolicy::allowing(["10.1.0.0/16".parse().unwrap()]);
/// assert!(policy.check("10.1.2.3".parse().unwrap()).is_ok());
/// ```
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy {
    allow: Vec<IpNet>,
    /// Whether what is public is closed, too.
    is_closed: bool,
    /// Names with the addresses that the operator gave them.
    hosts: BTreeMap<String, SocketAddr>,
    /// Certificates of authorities that the operator believes.
    authorities: Vec<CertificateDer<'static>>,
}

/// The text holds no certificate in PEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no certificate in PEM (`-----BEGIN CERTIFICATE-----`)")]
pub struct NotACertificate;

impl EgressPolicy {
    /// A policy that allows these networks beside the public ones.
    #[must_use]
    pub fn allowing(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            allow: networks.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A policy that allows this machine and these networks, and nothing else, the public ones included.
    ///
    /// ```
    /// use proofhouse_wire::EgressPolicy;
    /// let policy = EgressPolicy::only(["10.1.0.0/16".parse().unwrap()]);
    /// assert!(policy.check("127.0.0.1".parse().unwrap()).is_ok());
    /// assert!(policy.check("10.1.2.3".parse().unwrap()).is_ok());
    /// assert!(policy.check("93.184.216.34".parse().unwrap()).is_err());
    /// ```
    #[must_use]
    pub fn only(networks: impl IntoIterator<Item = IpNet>) -> Self {
        let this_machine = LOOPBACK.into_iter().flat_map(str::parse);
        Self {
            allow: this_machine.chain(networks).collect(),
            is_closed: true,
            ..Self::default()
        }
    }

    /// The same policy, with an address for a name, as in a file of hosts. The address still has to be allowed; its port,
    /// if it is not 0, stands in for that of URLs without one.
    #[must_use]
    pub fn with_host(mut self, name: &str, address: SocketAddr) -> Self {
        self.hosts.insert(name.to_ascii_lowercase(), address);
        self
    }

    /// The same policy, which believes the authorities of these certificates, too.
    ///
    /// # Errors
    ///
    /// Returns an error when the text holds none.
    pub fn believing(mut self, pem: &str) -> Result<Self, NotACertificate> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let found = found.map_err(|_| NotACertificate)?;
        if found.is_empty() {
            return Err(NotACertificate);
        }
        self.authorities.extend(found);
        Ok(self)
    }

    /// The same policy, which allows these networks too.
    #[must_use]
    pub fn and_allowing(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        self.allow.extend(networks);
        self
    }

    /// Says whether an address may be connected to.
    ///
    /// # Errors
    ///
    /// Returns why not, and what would allow it.
    pub fn check(&self, address: IpAddr) -> Result<(), EgressDenied> {
        if self.allow.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        if self.is_closed {
            return Err(EgressDenied::Elsewhere { address });
        }
        let inner = embedded(address).map(IpAddr::V4);
        let found = std::iter::once(address).chain(inner).find_map(kind);
        match found {
            None => Ok(()),
            Some(kind) => Err(EgressDenied::Internal { address, kind }),
        }
    }
}

/// Why an address may not be connected to, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressDenied {
    /// The policy keeps tools on this machine, and the address is elsewhere.
    #[error(
        "{address} is not on this machine, and tools may not leave it; to permit it, give its network \
         with `--allow`"
    )]
    Elsewhere {
        /// The address.
        address: IpAddr,
    },
    /// The address belongs to this machine or its network, not to the public.
    #[error(
        "{address} is {kind}, which tools may not reach; to permit it, add \
         `{address}/{bits}` to `egress.allow` in the operator's file, or give it with `--allow`",
        bits = if address.is_ipv4() { 32 } else { 128 }
    )]
    Internal {
        /// The address.
        address: IpAddr,
        /// What sort of address it is, such as "a private address".
        kind: &'static str,
    },
}

impl AddressGuard for EgressPolicy {
    fn check(&self, address: IpAddr) -> Result<(), AddressDenied> {
        Self::check(self, address).map_err(|denied| AddressDenied(denied.to_string()))
    }

    fn check_name(&self, name: &str) -> Result<(), AddressDenied> {
        let stays = |network: &IpNet| network.network().is_loopback();
        let is_here = name.trim_end_matches('.').eq_ignore_ascii_case("localhost");
        // Where no address beyond this machine is allowed, a name need not be told to others either.
        if self.is_closed && !is_here && self.allow.iter().all(stays) {
            Err(AddressDenied(format!(
                "`{name}` is not on this machine, and tools may not leave it; to permit it, give its network \
                 with `--allow`"
            )))
        } else {
            Ok(())
        }
    }

    fn address_of(&self, name: &str) -> Option<SocketAddr> {
        self.hosts.get(&name.to_ascii_lowercase()).copied()
    }

    fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }
}

fn kind(address: IpAddr) -> Option<&'static str> {
    DENIED
        .iter()
        .find(|(network, _)| {
            network
                .parse::<IpNet>()
                .is_ok_and(|network| network.contains(&address))
        })
        .map(|(_, kind)| *kind)
}

/// The IPv4 address that a translated IPv6 address leads to: NAT64, 6to4, IPv4-compatible, ISATAP.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match Ipv6Addr::segments(&address) {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] => {
            Some(from(high, low))
        }
        [0x2002, high, low, ..] => Some(from(high, low)),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_policy_keeps_to_this_machine() {
        let policy = EgressPolicy::only([]);
        for here in ["127.0.0.1", "127.9.9.9", "::1"] {
            assert_eq!(policy.check(here.parse().unwrap()), Ok(()), "{here}");
        }
        for elsewhere in ["8.8.8.8", "10.0.0.1", "2606:4700::1111", "::ffff:127.0.0.1"] {
            assert!(
                policy.check(elsewhere.parse().unwrap()).is_err(),
                "{elsewhere}"
            );
        }
        let asks = |policy: &EgressPolicy, name| AddressGuard::check_name(policy, name).is_ok();
        assert!(asks(&policy, "localhost") && asks(&policy, "LocalHost."));
        assert!(!asks(&policy, "example.com"), "no name leaves the machine");
        let wider = EgressPolicy::only(["10.0.0.0/8".parse().unwrap()]);
        assert!(asks(&wider, "inside.example") && asks(&EgressPolicy::default(), "example.com"));
        assert!(wider.check("10.0.0.1".parse().unwrap()).is_ok());
    }

    #[test]
    fn only_public_addresses_are_open() {
        for (network, _) in DENIED {
            assert!(network.parse::<IpNet>().is_ok(), "{network}");
        }
        let policy = EgressPolicy::default();
        for denied in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "fd00:ec2::254",
            "fe80::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::a00:1",
            "64:ff9b:1::a00:1",
            "64:ff9b:1:fffe::808:808",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2606:4700::5efe:7f00:1",
            "2606:4700::200:5efe:a00:1",
            "2002:7f00:1::",
            "::127.0.0.1",
            "168.63.129.16",
        ] {
            let error = policy.check(denied.parse().unwrap()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("egress.allow"), "{denied}: {error}");
        }
        for open in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
        ] {
            assert_eq!(policy.check(open.parse().unwrap()), Ok(()), "{open}");
        }
    }
}
