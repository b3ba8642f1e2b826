//! Peers: who counts as one where addresses share what there is.

use std::net::{IpAddr, Ipv6Addr};

/// The bits of an IPv6 address that name a network; whoever has one has all addresses in it.
const NETWORK: u128 = !0 << 64;

/// The address that stands for a peer: an IPv4 address as it is, an IPv6 address as its network.
#[must_use]
pub fn of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_peer_and_an_ipv4_address_is_one() {
        let peer = |text: &str| of(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:0:0:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
    }
}
