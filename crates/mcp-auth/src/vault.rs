//! Where tokens are kept between runs: one sealed file for each MCP server, which only the holder of the key can open.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proofhouse_wire::files::read_capped;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// What a sealed file begins with.
const MAGIC: &[u8; 8] = b"PHTOKEN1";
/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// How large a sealed file may be.
const MAX_BYTES: usize = 1 << 20;

/// Why tokens cannot be kept or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// The key is no key.
    #[error(
        "the key of the tokens must be 32 bytes in base64, such as `openssl rand -base64 32` prints"
    )]
    Key,
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// A file was sealed with another key, for another server, or changed since.
    #[error(
        "{path} cannot be opened with this key; if the key is lost, delete the file and log in again"
    )]
    Sealed {
        /// Which.
        path: String,
    },
    /// The system gives no random numbers.
    #[error("this machine cannot draw random numbers")]
    Machine,
}

/// A directory of sealed files.
pub struct TokenVault {
    directory: PathBuf,
    key: LessSafeKey,
}

impl std::fmt::Debug for TokenVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenVault({})", self.directory.display())
    }
}

impl TokenVault {
    /// A vault in a directory, which is made when it is needed. The key is 32 bytes in base64.
    ///
    /// # Errors
    ///
    /// Returns an error when the key is none.
    pub fn new(directory: &Path, key: &str) -> Result<Self, VaultError> {
        let text = key.trim();
        let bytes = STANDARD
            .decode(text)
            .or_else(|_| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')))
            .map_err(|_| VaultError::Key)?;
        if bytes.len() != KEY_BYTES {
            return Err(VaultError::Key);
        }
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| VaultError::Key)?;
        Ok(Self {
            directory: directory.to_owned(),
            key: LessSafeKey::new(key),
        })
    }

    /// What was kept under a name.
    ///
    /// # Errors
    ///
    /// Returns an error when there is something that cannot be read or opened.
    pub fn open(&self, name: &str) -> Result<Option<Vec<u8>>, VaultError> {
        let path = self.path(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(of_file(&path, &error)),
        };
        let sealed = read_capped(file, MAX_BYTES).map_err(|error| of_file(&path, &error))?;
        let broken = || VaultError::Sealed {
            path: path.display().to_string(),
        };
        let rest = sealed.strip_prefix(MAGIC).ok_or_else(broken)?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN).ok_or_else(broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
        let mut text = text.to_vec();
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(aad(name)), &mut text)
            .map_err(|_| broken())?;
        Ok(Some(opened.to_vec()))
    }

    /// Keeps something under a name, in place of what was there. Nobody else of this machine can read the file.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be written.
    pub fn keep(&self, name: &str, value: &[u8]) -> Result<(), VaultError> {
        let path = self.path(name);
        let mut nonce = [0_u8; NONCE_LEN];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| VaultError::Machine)?;
        let mut text = value.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(aad(name)),
                &mut text,
            )
            .map_err(|_| VaultError::Machine)?;
        let wrong = |error: std::io::Error| of_file(&path, &error);
        std::fs::create_dir_all(&self.directory).map_err(wrong)?;
        // Only the owner can read temporary files, and the name is put in place in one step.
        let mut file = tempfile::NamedTempFile::new_in(&self.directory).map_err(wrong)?;
        for part in [&MAGIC[..], &nonce, &text] {
            file.write_all(part).map_err(wrong)?;
        }
        file.as_file().sync_all().map_err(wrong)?;
        file.persist(&path).map_err(|error| wrong(error.error))?;
        Ok(())
    }

    /// Forgets what was kept under a name; whether there was anything.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be removed.
    pub fn forget(&self, name: &str) -> Result<bool, VaultError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(of_file(&path, &error)),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        let name = URL_SAFE_NO_PAD.encode(digest(&SHA256, name.as_bytes()));
        self.directory.join(format!("{name}.token"))
    }
}

/// A file is good under its name only: tokens of one server cannot be passed off as those of another.
fn aad(name: &str) -> Vec<u8> {
    [&MAGIC[..], name.as_bytes()].concat()
}

fn of_file(path: &Path, error: &dyn std::fmt::Display) -> VaultError {
    VaultError::File {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of the test")]
    fn only_the_key_opens_what_was_kept_and_only_under_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let vault = TokenVault::new(directory.path(), KEY).unwrap();
        assert_eq!(vault.open("a"), Ok(None));
        vault.keep("a", b"token of a").unwrap();
        vault.keep("b", b"token of b").unwrap();
        assert_eq!(vault.open("a"), Ok(Some(b"token of a".to_vec())));
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(5).any(|part| part == b"token"));
        }
        let other = STANDARD.encode([7; 32]);
        let other = TokenVault::new(directory.path(), &other).unwrap();
        assert!(matches!(other.open("a"), Err(VaultError::Sealed { .. })));
        // A file that is moved to another name does not open there.
        std::fs::copy(vault.path("a"), vault.path("b")).unwrap();
        assert!(matches!(vault.open("b"), Err(VaultError::Sealed { .. })));
        // Nor does one of which a bit was changed.
        let mut bytes = std::fs::read(vault.path("a")).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(vault.path("a"), &bytes).unwrap();
        assert!(matches!(vault.open("a"), Err(VaultError::Sealed { .. })));
        assert_eq!(vault.forget("a"), Ok(true));
        assert_eq!(vault.forget("a"), Ok(false));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let vault = TokenVault::new(directory.path(), KEY).unwrap();
        vault.keep("a", b"x").unwrap();
        let mode = std::fs::metadata(vault.path("a"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for key in ["", "short", "AAECAwQF", &"A".repeat(64)] {
            assert_eq!(
                TokenVault::new(Path::new("x"), key).unwrap_err(),
                VaultError::Key
            );
        }
        assert!(!VaultError::Key.to_string().contains("AAEC"));
    }
}
