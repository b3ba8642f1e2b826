//! Keys of the API: what one may do, and how one is recognised without being kept.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
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
    /// Begin tasks and talk to them.
    TasksBegin,
    /// Answer the questions of tasks.
    TasksApprove,
    /// Interrupt, cancel and remove tasks.
    TasksOperate,
    /// Begin, approve and operate: what keys had before these were told apart.
    TasksWrite,
    /// See events and what became of them.
    EventsRead,
    /// Route events again.
    EventsWrite,
    /// See manifests and their problems.
    ManifestsRead,
    /// Read the metrics.
    MetricsRead,
    /// Read the audit log.
    AuditRead,
    /// See campaigns and their reports.
    CampaignsRead,
    /// Start campaigns from stored plans, and cancel them.
    CampaignsWrite,
    /// Answer questions on behalf of people: for programs that know who their users are.
    UsersAct,
    /// All of that, but for answering on behalf of others.
    Admin,
}

/// Every scope with its name: one row each.
const SCOPES: [(KeyScope, &str); 14] = [
    (KeyScope::TasksRead, "tasks:read"),
    (KeyScope::TasksBegin, "tasks:begin"),
    (KeyScope::TasksApprove, "tasks:approve"),
    (KeyScope::TasksOperate, "tasks:operate"),
    (KeyScope::TasksWrite, "tasks:write"),
    (KeyScope::EventsRead, "events:read"),
    (KeyScope::EventsWrite, "events:write"),
    (KeyScope::ManifestsRead, "manifests:read"),
    (KeyScope::MetricsRead, "metrics:read"),
    (KeyScope::AuditRead, "audit:read"),
    (KeyScope::CampaignsRead, "campaigns:read"),
    (KeyScope::CampaignsWrite, "campaigns:write"),
    (KeyScope::UsersAct, "users:act"),
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
        held.iter().any(|held| held.covers(self))
    }

    fn covers(self, other: Self) -> bool {
        match self {
            // Whoever may do everything still speaks for nobody else, unless that is granted by name.
            Self::Admin => other != Self::UsersAct,
            Self::TasksWrite => matches!(
                other,
                Self::TasksWrite | Self::TasksBegin | Self::TasksApprove | Self::TasksOperate
            ),
            scope => scope == other,
        }
    }
}

/// A name for scopes that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessRole {
    name: &'static str,
    scopes: &'static [KeyScope],
}

/// Every role: one row each.
const ROLES: [AccessRole; 6] = [
    AccessRole {
        name: "reader",
        scopes: &[
            KeyScope::TasksRead,
            KeyScope::EventsRead,
            KeyScope::ManifestsRead,
            KeyScope::CampaignsRead,
        ],
    },
    AccessRole {
        name: "starter",
        scopes: &[
            KeyScope::TasksRead,
            KeyScope::EventsRead,
            KeyScope::ManifestsRead,
            KeyScope::CampaignsRead,
            KeyScope::TasksBegin,
        ],
    },
    AccessRole {
        name: "approver",
        scopes: &[
            KeyScope::TasksRead,
            KeyScope::EventsRead,
            KeyScope::ManifestsRead,
            KeyScope::CampaignsRead,
            KeyScope::TasksApprove,
        ],
    },
    AccessRole {
        name: "operator",
        scopes: &[
            KeyScope::TasksRead,
            KeyScope::EventsRead,
            KeyScope::ManifestsRead,
            KeyScope::CampaignsRead,
            KeyScope::TasksBegin,
            KeyScope::TasksOperate,
            KeyScope::EventsWrite,
            KeyScope::MetricsRead,
            KeyScope::CampaignsWrite,
        ],
    },
    AccessRole {
        name: "auditor",
        scopes: &[
            KeyScope::TasksRead,
            KeyScope::EventsRead,
            KeyScope::ManifestsRead,
            KeyScope::CampaignsRead,
            KeyScope::AuditRead,
        ],
    },
    AccessRole {
        name: "admin",
        scopes: &[KeyScope::Admin],
    },
];

impl AccessRole {
    /// What it allows.
    #[must_use]
    pub fn scopes(self) -> &'static [KeyScope] {
        self.scopes
    }

    /// All names, for help texts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROLES.iter().map(|role| role.name)
    }
}

/// A name that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no role `{0}`; use one of: {list}", list = AccessRole::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownRole(String);

impl FromStr for AccessRole {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let row = ROLES.iter().find(|role| role.name == text);
        row.copied()
            .ok_or_else(|| UnknownRole(text.chars().take(40).collect()))
    }
}

/// The namespaces that a caller may see and use: those of the agents, tools, triggers and schedules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantNamespaces {
    /// All of them, and what belongs to none.
    All,
    /// These only.
    Only(Vec<String>),
}

impl TenantNamespaces {
    /// Those of a list; all without one.
    #[must_use]
    pub fn of(list: Option<Vec<String>>) -> Self {
        list.map_or(Self::All, Self::Only)
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(list) => list.iter().any(|one| one == namespace),
        }
    }

    /// The list, unless they are all.
    #[must_use]
    pub fn list(&self) -> Option<&[String]> {
        match self {
            Self::All => None,
            Self::Only(list) => Some(list),
        }
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

/// How many letters of its hash name a key.
const ID_LETTERS: usize = 12;

impl KeySecret {
    /// How the key is named. The hash tells nothing about the key, so its beginning can name it.
    #[must_use]
    pub fn id(&self) -> String {
        self.hash().chars().take(ID_LETTERS).collect()
    }

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
    Ok(HEXLOWER.encode(&bytes))
}

/// The SHA-256 of a text, in hexadecimal digits.
#[must_use]
pub fn digest(text: &str) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

/// What is kept of a key: its SHA-256. Finding a row by it tells nothing about the key in how long it takes,
/// because nobody can choose hashes byte by byte. `None` for what cannot be a key.
#[must_use]
pub fn hash(key: &str) -> Option<String> {
    let sensible = key.starts_with(PREFIX) && key.len() <= MAX_KEY_TEXT;
    sensible.then(|| self::digest(key))
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
    fn an_operator_does_not_approve_and_an_approver_does_not_begin() {
        let may = |role: &str, scope: KeyScope| {
            let role: AccessRole = role.parse().unwrap();
            scope.is_in(role.scopes())
        };
        assert!(!may("operator", KeyScope::TasksApprove));
        assert!(!may("approver", KeyScope::TasksBegin));
        assert!(!may("starter", KeyScope::TasksOperate));
        assert!(!may("reader", KeyScope::TasksBegin));
        assert!(!may("auditor", KeyScope::TasksOperate) && may("auditor", KeyScope::AuditRead));
        assert!(!may("admin", KeyScope::UsersAct));
        assert!("root".parse::<AccessRole>().is_err());
    }

    #[test]
    fn namespaces_are_compared_whole() {
        let only = TenantNamespaces::of(Some(vec!["shop".to_owned()]));
        assert!(only.has("shop") && !only.has("shop2") && !only.has(""));
        assert!(TenantNamespaces::of(None).has(""));
    }

    #[test]
    fn scopes_have_names_and_admin_has_all() {
        for (scope, name) in SCOPES {
            assert_eq!(name.parse(), Ok(scope));
            assert_eq!(scope.to_string(), name);
            assert_eq!(scope.is_in(&[KeyScope::Admin]), scope != KeyScope::UsersAct);
        }
        assert!(!KeyScope::TasksWrite.is_in(&[KeyScope::TasksRead]));
        assert!(KeyScope::TasksApprove.is_in(&[KeyScope::TasksWrite]));
        assert!(!KeyScope::TasksApprove.is_in(&[KeyScope::TasksBegin, KeyScope::TasksOperate]));
        assert!(!KeyScope::EventsWrite.is_in(&[KeyScope::TasksWrite]));
        assert!("tasks".parse::<KeyScope>().is_err());
    }
}
