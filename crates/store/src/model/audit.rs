//! The audit log: entries that are only ever appended, each with a hash over itself and the one before it.

use data_encoding::HEXLOWER;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;

/// An entry to append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewAuditEntry {
    /// The namespace it concerns, if it concerns one.
    pub namespace: Option<String>,
    /// What happened.
    pub entry: Value,
}

/// An entry as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Its number, from 1, without gaps.
    pub seq: i64,
    /// When it was appended, by the clock of the database.
    pub at: Millis,
    /// The namespace it concerns, if it concerns one.
    pub namespace: Option<String>,
    /// What happened, as the very text that was hashed.
    pub entry: String,
    /// [`AuditRecord::link`] of this entry.
    pub hash: String,
}

impl AuditRecord {
    /// The hash that an entry must have behind one with the hash `previous` (empty for the first): SHA-256, in hexadecimal
    /// digits, over all of it. Fields are told apart by their lengths, so that none can stand for another.
    #[must_use]
    pub fn link(
        previous: &str,
        seq: i64,
        at: Millis,
        namespace: Option<&str>,
        entry: &str,
    ) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        let (seq, at) = (seq.to_string(), at.to_string());
        let namespace = namespace.map_or_else(|| "-".to_owned(), |name| format!("={name}"));
        for field in [previous, &seq, &at, &namespace, entry] {
            context.update(format!("{}:", field.len()).as_bytes());
            context.update(field.as_bytes());
        }
        HEXLOWER.encode(context.finish().as_ref())
    }

    /// Whether the entry stands behind one with this hash as it was written.
    #[must_use]
    pub fn follows(&self, previous: &str) -> bool {
        let namespace = self.namespace.as_deref();
        Self::link(previous, self.seq, self.at, namespace, &self.entry) == self.hash
    }
}

/// The end of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of the last entry; 0 if there never was one.
    pub seq: i64,
    /// Its hash; empty if there never was one.
    pub hash: String,
}

/// A signed statement about an entry: the chain up to it had this hash. Entries up to it may be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCheckpoint {
    /// The number of the entry.
    pub seq: i64,
    /// Its hash.
    pub hash: String,
    /// The text that is signed.
    pub statement: String,
    /// The signature, as whoever signs writes it.
    pub signature: String,
}

/// Which entries to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFilter {
    /// Only those that concern one of these namespaces: what whoever asks may see.
    pub namespaces: Option<Vec<String>>,
    /// Only those after this number.
    pub after: i64,
    /// Only those before this number, newest first; without it the oldest come first.
    pub before: Option<i64>,
    /// Only those that were appended before this moment.
    pub until: Option<Millis>,
    /// How many at most; more than `limits::MAX_PAGE` is cut.
    pub limit: usize,
}
