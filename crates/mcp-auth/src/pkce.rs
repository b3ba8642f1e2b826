//! What only the client that began an authorization can know: the verifier of PKCE (RFC 7636) and the state.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::AuthorizationError;

/// The secrets of one authorization.
pub(crate) struct Pkce {
    pub(crate) verifier: String,
    pub(crate) challenge: String,
    pub(crate) state: String,
}

impl Pkce {
    pub(crate) fn new() -> Result<Self, AuthorizationError> {
        let verifier = random_text()?;
        Ok(Self {
            challenge: URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
            state: random_text()?,
            verifier,
        })
    }
}

/// 32 random bytes as a text for URLs.
pub(crate) fn random_text() -> Result<String, AuthorizationError> {
    let mut bytes = [0_u8; 32];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| AuthorizationError::Machine)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_hash_of_the_verifier() {
        // Appendix B of RFC 7636.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, two) = (Pkce::new().unwrap(), Pkce::new().unwrap());
        assert_eq!(one.verifier.len(), 43);
        assert!(one.verifier != two.verifier && one.state != two.state);
    }
}
