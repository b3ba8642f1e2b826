//! The `trusted_proxies` of a server: whose word counts about where a request comes from.

use ipnet::IpNet;
use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};

use super::network;
use super::reader::OperatorReader;

/// A text that names no proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyNetworkError {
    /// It is no network.
    #[error("write the address or the network of a proxy, such as 10.0.0.5 or 10.1.0.0/16")]
    NoNetwork,
    /// Everybody would be a proxy, and could say that they speak for anybody.
    #[error("this names every address; name the network of the proxies alone")]
    Everybody,
}

/// Reads the address or the network of a proxy.
///
/// # Errors
///
/// Returns an error when it is neither, or when it is every address.
///
/// ```
/// use proofhouse_tools::operator::proxy_network;
///
/// assert!(proxy_network("10.1.0.0/16").is_ok());
/// assert!(proxy_network("0.0.0.0/0").is_err());
/// ```
pub fn proxy_network(text: &str) -> Result<IpNet, ProxyNetworkError> {
    let network = network(text).ok_or(ProxyNetworkError::NoNetwork)?;
    if network.prefix_len() == 0 {
        return Err(ProxyNetworkError::Everybody);
    }
    Ok(network)
}

pub(super) fn read<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for (text, index) in reader.texts(node) {
        reader.within(PathSegment::Index(index), |reader| {
            match proxy_network(&text) {
                Ok(network) => networks.push(network),
                Err(error) => reader.error("OC-005", error.to_string(), None),
            }
        });
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::super::OperatorConfig;

    #[test]
    fn proxies_are_networks_or_addresses_and_never_everybody() {
        let text = "trusted_proxies: [10.1.0.0/16, 192.0.2.7, 'fd00::/8']\n";
        let (config, findings) = OperatorConfig::read(text, &|_| None);
        assert!(findings.is_empty(), "{findings:?}");
        let read: Vec<String> = config
            .trusted_proxies
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(read, ["10.1.0.0/16", "192.0.2.7/32", "fd00::/8"]);
        for wrong in ["0.0.0.0/0", "'::/0'", "proxy.example.com", "10.1.0.0/99"] {
            let text = format!("trusted_proxies: [{wrong}]\n");
            let (config, findings) = OperatorConfig::read(&text, &|_| None);
            assert_eq!(findings.len(), 1, "{wrong}: {findings:?}");
            assert!(config.trusted_proxies.is_empty());
        }
    }
}
