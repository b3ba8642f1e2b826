//! Checkpoints: signed statements that the chain had this hash at this entry. One stands for entries that were removed, or is
//! kept elsewhere to notice that the end of the log is missing.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::model::{AuditCheckpoint, Millis};

/// What public keys and signatures begin with.
const SCHEME: &str = "ed25519:";

/// Why a checkpoint does not count, or cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The bytes are no key.
    #[error("this is not an Ed25519 key in PKCS #8")]
    NoKey,
    /// The machine's source of chance fails.
    #[error("this machine gives no randomness")]
    NoRandomness,
    /// The statement says something else than what it stands for.
    #[error("the statement is not about this entry")]
    OtherEntry,
    /// Somebody else signed it.
    #[error("it is signed with another key than the one that is trusted")]
    OtherKey,
    /// The signature is wrong.
    #[error("the signature is wrong")]
    Signature,
}

/// Signs checkpoints.
pub struct CheckpointKey(Ed25519KeyPair);

impl std::fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CheckpointKey")
            .field(&self.public())
            .finish()
    }
}

impl CheckpointKey {
    /// A new key, as what is to be kept of it: PKCS #8, in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// Returns an error when the machine has no randomness to give.
    pub fn generate() -> Result<String, CheckpointError> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let made = made.map_err(|_| CheckpointError::NoRandomness)?;
        Ok(HEXLOWER.encode(made.as_ref()))
    }

    /// The key that was kept as this text.
    ///
    /// # Errors
    ///
    /// Returns an error when the text is no key.
    pub fn read(text: &str) -> Result<Self, CheckpointError> {
        let bytes = unhex(text.trim()).ok_or(CheckpointError::NoKey)?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes).map_err(|_| CheckpointError::NoKey)?;
        Ok(Self(pair))
    }

    /// The public half, for those who check signatures.
    #[must_use]
    pub fn public(&self) -> String {
        format!("{SCHEME}{}", HEXLOWER.encode(self.0.public_key().as_ref()))
    }

    /// States that the chain had this hash at this entry.
    #[must_use]
    pub fn sign(&self, seq: i64, hash: &str, at: Millis) -> AuditCheckpoint {
        let statement = json!({
            "proofhouse_audit_checkpoint": 1, "seq": seq, "hash": hash, "at": at, "key": self.public(),
        });
        let statement = statement.to_string();
        let signature = self.0.sign(statement.as_bytes());
        AuditCheckpoint {
            seq,
            hash: hash.to_owned(),
            signature: format!("{SCHEME}{}", HEXLOWER.encode(signature.as_ref())),
            statement,
        }
    }
}

/// Checks a checkpoint, and returns the public key it is signed with. With a key that is trusted, it must be that one.
///
/// # Errors
///
/// Returns an error when it is about another entry, by somebody else, or signed wrongly.
pub fn verify_checkpoint(
    checkpoint: &AuditCheckpoint,
    trusted: Option<&str>,
) -> Result<String, CheckpointError> {
    let said: Value = serde_json::from_str(&checkpoint.statement).unwrap_or_default();
    let is_about = said["proofhouse_audit_checkpoint"] == 1
        && said["seq"] == checkpoint.seq
        && said["hash"] == checkpoint.hash.as_str();
    if !is_about {
        return Err(CheckpointError::OtherEntry);
    }
    let key = said["key"].as_str().unwrap_or_default();
    if trusted.is_some_and(|trusted| trusted != key) {
        return Err(CheckpointError::OtherKey);
    }
    let bytes = |text: &str| text.strip_prefix(SCHEME).and_then(unhex);
    let (Some(public), Some(signature)) = (bytes(key), bytes(&checkpoint.signature)) else {
        return Err(CheckpointError::Signature);
    };
    let verified = UnparsedPublicKey::new(&ED25519, public)
        .verify(checkpoint.statement.as_bytes(), &signature);
    verified.map_err(|_| CheckpointError::Signature)?;
    Ok(key.to_owned())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let decoded = HEXLOWER_PERMISSIVE.decode(text.as_bytes());
    decoded.ok().filter(|_| text.len() <= 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_believed_as_it_was_signed() {
        let key = CheckpointKey::read(&CheckpointKey::generate().unwrap()).unwrap();
        let other = CheckpointKey::read(&CheckpointKey::generate().unwrap()).unwrap();
        let signed = key.sign(7, "abc", 5);
        assert_eq!(verify_checkpoint(&signed, None), Ok(key.public()));
        assert_eq!(
            verify_checkpoint(&signed, Some(&key.public())),
            Ok(key.public())
        );
        assert_eq!(
            verify_checkpoint(&signed, Some(&other.public())),
            Err(CheckpointError::OtherKey)
        );
        let moved = AuditCheckpoint {
            seq: 8,
            ..signed.clone()
        };
        assert_eq!(
            verify_checkpoint(&moved, None),
            Err(CheckpointError::OtherEntry)
        );
        let forged = AuditCheckpoint {
            hash: "abd".to_owned(),
            statement: signed.statement.replace("abc", "abd"),
            ..signed
        };
        assert_eq!(
            verify_checkpoint(&forged, None),
            Err(CheckpointError::Signature)
        );
        assert!(!format!("{key:?}").contains("302e"));
        assert_eq!(
            CheckpointKey::read("zz").unwrap_err(),
            CheckpointError::NoKey
        );
    }
}
