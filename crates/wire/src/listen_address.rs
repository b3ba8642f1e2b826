//! Addresses to listen at, as flags of the commands that serve take them.

use std::net::SocketAddr;

/// A text that is no address with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write an address and a port, such as 127.0.0.1:8080")]
pub struct NotAnAddress;

/// Reads an address with a port; `localhost` is 127.0.0.1.
///
/// # Errors
///
/// Returns an error for any other text.
pub fn listen_address(text: &str) -> Result<SocketAddr, NotAnAddress> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| NotAnAddress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        let read = |text| listen_address(text).unwrap().to_string();
        assert_eq!(read("localhost:0"), "127.0.0.1:0");
        assert_eq!(read("[::1]:80"), "[::1]:80");
        for wrong in ["8080", "localhost", "example.com:80", ""] {
            assert_eq!(listen_address(wrong), Err(NotAnAddress), "{wrong}");
        }
    }
}
