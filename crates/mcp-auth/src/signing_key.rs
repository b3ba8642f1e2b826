//! JSON Web Tokens signed with RS256 or ES256 (RFC 7515, RFC 7519): keys from PEM, and claims made into a text.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::secret::SecretText;

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

/// A private key that signs.
#[derive(Clone)]
pub struct SigningKey {
    pair: KeyPair,
    pem: SecretText,
}

#[derive(Clone)]
enum KeyPair {
    Rsa(Arc<RsaKeyPair>),
    P256(Arc<EcdsaKeyPair>),
}

impl SigningKey {
    /// Reads a key in PEM: RSA of 2048 to 4096 bits in PKCS#1 (`RSA PRIVATE KEY`) or PKCS#8 (`PRIVATE KEY`), or one of
    /// the curve P-256 in PKCS#8.
    ///
    /// In environment variables, line breaks are often written as `\n`; that is read too.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be used, without any of it.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let der = der(text)?;
        if let PrivateKeyDer::Pkcs8(key) = &der {
            let pair = EcdsaKeyPair::from_pkcs8(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                key.secret_pkcs8_der(),
                &SystemRandom::new(),
            );
            if let Ok(pair) = pair {
                return Ok(Self::new(KeyPair::P256(Arc::new(pair)), text));
            }
        }
        Self::rsa(&der, text)
    }

    /// The same for those who take RSA only.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be used, without any of it.
    pub fn rsa_from_pem(text: &str) -> Result<Self, KeyError> {
        Self::rsa(&der(text)?, text)
    }

    fn rsa(der: &PrivateKeyDer<'_>, text: &str) -> Result<Self, KeyError> {
        let pair = match der {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
            _ => return Err(KeyError::NotRsa),
        };
        let pair = pair.map_err(|refused| match refused.to_string().as_str() {
            "WrongAlgorithm" => KeyError::NotRsa,
            reason => KeyError::Refused(reason.to_owned()),
        })?;
        Ok(Self::new(KeyPair::Rsa(Arc::new(pair)), text))
    }

    fn new(pair: KeyPair, text: &str) -> Self {
        Self {
            pair,
            pem: SecretText::new(text.trim()),
        }
    }

    /// The text it was read from.
    #[must_use]
    pub fn pem(&self) -> &SecretText {
        &self.pem
    }

    /// How signatures of it are called.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match &self.pair {
            KeyPair::Rsa(_) => "RS256",
            KeyPair::P256(_) => "ES256",
        }
    }

    /// The claims as a signed token; `None` if the system gives no random numbers.
    #[must_use]
    pub fn sign(&self, claims: &Value) -> Option<SecretText> {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let mut token = format!(
            "{}.{}",
            encode(&json!({"alg": self.algorithm(), "typ": "JWT"})),
            encode(claims)
        );
        let random = SystemRandom::new();
        let signature = match &self.pair {
            KeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, token.as_bytes(), &mut signature)
                    .ok()?;
                signature
            }
            KeyPair::P256(pair) => pair.sign(&random, token.as_bytes()).ok()?.as_ref().to_vec(),
        };
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Some(SecretText::new(token))
    }
}

fn der(text: &str) -> Result<PrivateKeyDer<'static>, KeyError> {
    if text.len() > MAX_PEM_BYTES {
        return Err(KeyError::NotPem);
    }
    let unfolded = if text.trim().contains('\n') {
        text.to_owned()
    } else {
        text.replace("\\n", "\n")
    };
    PrivateKeyDer::from_pem_slice(unfolded.as_bytes()).map_err(|_| KeyError::NotPem)
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.pair {
            KeyPair::Rsa(pair) => {
                write!(f, "SigningKey({} bits)", pair.public().modulus_len() * 8)
            }
            KeyPair::P256(_) => f.write_str("SigningKey(P-256)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    #[test]
    fn tokens_of_p256_keys_can_be_verified() {
        let made = rcgen::KeyPair::generate().unwrap();
        let key = SigningKey::from_pem(&made.serialize_pem()).unwrap();
        assert_eq!(key.algorithm(), "ES256");
        let token = key.sign(&json!({"iss": "c"})).unwrap();
        let (signed, signature) = token.expose().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let KeyPair::P256(pair) = &key.pair else {
            panic!("another kind");
        };
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &signature).unwrap();
        assert!(public.verify(b"another", &signature).is_err());
        assert_eq!(
            SigningKey::rsa_from_pem(&made.serialize_pem()).unwrap_err(),
            KeyError::NotRsa
        );
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }
}
