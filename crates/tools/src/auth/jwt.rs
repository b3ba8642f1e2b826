//! JSON Web Tokens signed with RS256 (RFC 7515, RFC 7519): keys from PEM, and claims made into a text.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use proofhouse_manifest::interpolate::Sealed;

/// A PEM of the largest key that can be used has about 3 KiB.
const MAX_PEM_BYTES: usize = 64 << 10;

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no private key in PEM.
    #[error("it is not a private key in PEM (`-----BEGIN … PRIVATE KEY-----`)")]
    NotPem,
    /// It is a key of another kind.
    #[error("it is not an RSA key, which RS256 needs")]
    NotRsa,
    /// It is an RSA key that is not used: too small, too large or inconsistent.
    #[error("the RSA key is refused: {0}")]
    Refused(String),
}

/// An RSA key that signs.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<RsaKeyPair>,
    pem: Sealed<String>,
}

impl SigningKey {
    /// Reads a key in PEM, PKCS#1 (`RSA PRIVATE KEY`) or PKCS#8 (`PRIVATE KEY`), of 2048 to 4096 bits.
    ///
    /// In environment variables, line breaks are often written as `\n`; that is read too.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be used, without any of it.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if text.len() > MAX_PEM_BYTES {
            return Err(KeyError::NotPem);
        }
        let unfolded = if text.trim().contains('\n') {
            text.to_owned()
        } else {
            text.replace("\\n", "\n")
        };
        let der =
            PrivateKeyDer::from_pem_slice(unfolded.as_bytes()).map_err(|_| KeyError::NotPem)?;
        let pair = match &der {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
            _ => return Err(KeyError::NotRsa),
        };
        let pair = pair.map_err(|refused| match refused.to_string().as_str() {
            "WrongAlgorithm" => KeyError::NotRsa,
            reason => KeyError::Refused(reason.to_owned()),
        })?;
        Ok(Self {
            pair: Arc::new(pair),
            pem: Sealed::new(text.trim().to_owned()),
        })
    }

    /// The text it was read from.
    #[must_use]
    pub fn pem(&self) -> &Sealed<String> {
        &self.pem
    }

    /// The claims as a signed token; `None` if the system gives no random numbers.
    pub(super) fn sign(&self, claims: &Value) -> Option<Sealed<String>> {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let mut token = format!(
            "{}.{}",
            encode(&json!({"alg": "RS256", "typ": "JWT"})),
            encode(claims)
        );
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                token.as_bytes(),
                &mut signature,
            )
            .ok()?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Some(Sealed::new(token))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "SigningKey({} bits)",
            self.pair.public().modulus_len() * 8
        )
    }
}
