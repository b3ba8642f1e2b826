//! Keys of the API: what one may do, and how one is recognised without being kept.

use std::fmt;
use std::str::FromStr;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes of a key: enough that its hash needs no salt and no slow function.
const SECRET_BYTES: usize = 32;
/// What keys begin with, so that scanners of repositories find leaked ones.
const PREFIX: &str = "phk_";
/// The longest text that is looked up as a key.
const MAX_KEY_TEXT: usize = 128;

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyScope {
    /// See tasks and their turns.
    TasksRead,
    /// Create tasks, talk to them, approve, interrupt and cancel.
    TasksWrite,
    /// See events and what became of them.
    EventsRead,
    /// Route events again.
    EventsWrite,
    /// See manifests and their problems.
    ManifestsRead,
    /// Read the metrics.
    MetricsRead,
    /// All of that.
    Admin,
}

/// Every scope with its name: one row each.
const SCOPES: [(KeyScope, &str); 7] = [
    (KeyScope::TasksRead, "tasks:read"),
    (KeyScope::TasksWrite, "tasks:write"),
    (KeyScope::EventsRead, "events:read"),
    (KeyScope::EventsWrite, "events:write"),
    (KeyScope::ManifestsRead, "manifests:read"),
    (KeyScope::MetricsRead, "metrics:read"),
    (KeyScope::Admin, "admin"),
];

impl KeyScope {
    /// The name, as keys and documents write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let row = SCOPES.iter().find(|(scope, _)| *scope == self);
        row.map_or("", |(_, name)| name)
    }

    /// All names, for help texts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SCOPES.iter().map(|(_, name)| *name)
    }

    /// Whether someone with these scopes may do what needs this one.
    #[must_use]
    pub fn is_in(self, held: &[Self]) -> bool {
        held.contains(&Self::Admin) || held.contains(&self)
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scope `{0}`; use one of: {list}", list = KeyScope::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownScope(String);

impl FromStr for KeyScope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let row = SCOPES.iter().find(|(_, name)| *name == text);
        row.map(|(scope, _)| *scope)
            .ok_or_else(|| UnknownScope(text.chars().take(40).collect()))
    }
}

/// A key as its holder has it. It is shown once, when it is made.
pub struct KeySecret(String);

impl KeySecret {
    /// A new one.
    ///
    /// # Errors
    ///
    /// Returns an error when the machine has no randomness to give.
    pub fn new() -> Result<Self, NoRandomness> {
        Ok(Self(format!("{PREFIX}{}", random_text()?)))
    }

    /// The text, for the one time it is shown.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The machine's source of chance fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this machine gives no randomness")]
pub struct NoRandomness;

/// Text that nobody can guess.
///
/// # Errors
///
/// Returns an error when the machine has no randomness to give.
pub fn random_text() -> Result<String, NoRandomness> {
    let mut bytes = [0; SECRET_BYTES];
    let random = SystemRandom::new();
    random.fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(hex(&bytes))
}

/// What is kept of a key: its SHA-256. Finding a row by it tells nothing about the key in how long it takes,
/// because nobody can choose hashes byte by byte. `None` for what cannot be a key.
#[must_use]
pub fn hash(key: &str) -> Option<String> {
    let sensible = key.starts_with(PREFIX) && key.len() <= MAX_KEY_TEXT;
    sensible.then(|| hex(digest::digest(&digest::SHA256, key.as_bytes()).as_ref()))
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_only_their_hash_is_kept() {
        let (one, other) = (KeySecret::new().unwrap(), KeySecret::new().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(hash(one.reveal()), Some(one.hash()));
        assert!(!one.hash().contains(&one.reveal()[PREFIX.len()..]));
        assert!(!format!("{one:?}").contains(&one.reveal()[PREFIX.len()..]));
    }

    #[test]
    fn what_cannot_be_a_key_is_not_looked_up() {
        assert_eq!(hash("secret"), None);
        assert_eq!(hash(&format!("{PREFIX}{}", "a".repeat(4096))), None);
    }

    #[test]
    fn scopes_have_names_and_admin_has_all() {
        for (scope, name) in SCOPES {
            assert_eq!(name.parse(), Ok(scope));
            assert_eq!(scope.to_string(), name);
            assert!(scope.is_in(&[KeyScope::Admin]));
        }
        assert!(!KeyScope::TasksWrite.is_in(&[KeyScope::TasksRead]));
        assert!("tasks".parse::<KeyScope>().is_err());
    }
}
