//! What somebody approves: the difference between the lock and what servers offered since, and taking it.

use std::collections::BTreeSet;

use proofhouse_source::is_invisible;
use serde_json::{Value, json};

use super::changes::{PinChange, changes_of_server};
use super::file::{LockFile, LockFileError, listed};
use super::lock::Lock;
use super::{PinKind, ServerPins};

/// The changes that one server offers.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedChanges {
    /// The server.
    pub server: String,
    /// What differs.
    pub changes: Vec<PinChange>,
}

impl OfferedChanges {
    /// As lines of a diff.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![visible(&self.server)];
        let changes = self.changes.iter().flat_map(diff_lines);
        lines.extend(changes.map(|line| format!("  {line}")));
        lines
    }

    /// As programs read it.
    #[must_use]
    pub fn value(&self) -> Value {
        let changes = self.changes.iter().map(|change| {
            let differences = change
                .differences
                .iter()
                .map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
            json!({
                "what": change.noun,
                "name": change.name,
                "change": change.code.as_str(),
                "differences": differences.collect::<Vec<_>>(),
            })
        });
        json!({"server": self.server, "changes": changes.collect::<Vec<_>>()})
    }
}

/// A server that neither the lock nor what was offered has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no server `{name}` in the lock; {}", listed("servers there", names))]
pub struct UnknownServer {
    /// What it was called.
    pub name: String,
    /// The servers there are.
    pub names: Vec<String>,
}

/// Checks that the lock or what was offered has a server of this name.
///
/// # Errors
///
/// Returns an error, with the names there are, when neither has.
pub fn check_server(lock: &Lock, pending: &Lock, name: &str) -> Result<(), UnknownServer> {
    let names: BTreeSet<&String> = lock.servers.keys().chain(pending.servers.keys()).collect();
    if names.iter().any(|known| *known == name) {
        return Ok(());
    }
    Err(UnknownServer {
        name: name.to_owned(),
        names: names.into_iter().cloned().collect(),
    })
}

/// What servers offered that the lock does not have.
#[must_use]
pub fn review(lock: &Lock, pending: &Lock, only: Option<&str>) -> Vec<OfferedChanges> {
    let none = ServerPins {
        instructions: Some(String::new()),
        ..ServerPins::default()
    };
    let offered = pending.servers.iter();
    offered
        .filter(|(server, _)| only.is_none_or(|only| only == *server))
        .map(|(server, offered)| {
            let mut pinned = lock.servers.get(server).unwrap_or(&none).clone();
            pinned.instructions.get_or_insert_default();
            for kind in PinKind::ALL {
                pinned.items.entry(*kind).or_default();
            }
            OfferedChanges {
                server: server.clone(),
                changes: changes_of_server(&pinned, offered),
            }
        })
        .filter(|offered| !offered.changes.is_empty())
        .collect()
}

/// Takes what servers offered into the lock.
///
/// # Errors
///
/// Returns an error when a file cannot be read or written.
pub fn approve(file: &LockFile, reviewed: &Lock, only: Option<&str>) -> Result<(), LockFileError> {
    let chosen = |server: &str| only.is_none_or(|only| only == server);
    file.update(|lock| {
        for (server, offered) in reviewed.servers.iter().filter(|(server, _)| chosen(server)) {
            let pins = lock.servers.entry(server.clone()).or_default();
            pins.origin = offered.origin.clone().or(pins.origin.take());
            pins.instructions = offered.instructions.clone().or(pins.instructions.take());
            pins.cards.extend(offered.cards.clone());
            for (kind, items) in &offered.items {
                pins.items.insert(*kind, items.clone());
            }
        }
    })?;
    let pending = file.pending();
    let left = pending.update(|pending| {
        // What was offered after it was looked at stays.
        pending.servers.retain(|server, offered| {
            !chosen(server) || reviewed.servers.get(server) != Some(offered)
        });
    })?;
    if left.servers.is_empty() {
        pending.remove()?;
    }
    Ok(())
}

/// A change as lines of a diff; what cannot be seen is written out.
///
/// ```
/// use proofhouse_guard::pins::{PinKind, changes_of_item, diff_lines};
/// use serde_json::json;
///
/// let (before, after) = (json!({"description": "Reads."}), json!({"description": "Reads\u{200b}."}));
/// let change = changes_of_item(PinKind::Tool, "read", Some(&before), Some(&after)).unwrap();
/// assert_eq!(diff_lines(&change), [
///     "~ tool `read` changed at description",
///     "    description",
///     "  - Reads.",
///     "  + Reads\\u{200b}.",
/// ]);
/// ```
#[must_use]
pub fn diff_lines(change: &PinChange) -> Vec<String> {
    let mark = match change.code {
        crate::FindingCode::PinAdded => '+',
        crate::FindingCode::PinRemoved => '-',
        _ => '~',
    };
    let mut lines = vec![visible(&format!("{mark} {change}"))];
    for difference in &change.differences {
        if !difference.path.is_empty() {
            lines.push(format!("    {}", visible(&difference.path)));
        }
        for (mark, value) in [('-', &difference.before), ('+', &difference.after)] {
            let text = match value {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => continue,
            };
            lines.extend(
                text.lines()
                    .map(|line| format!("  {mark} {}", visible(line))),
            );
        }
    }
    lines
}

/// A text in which everything can be seen.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) || c.is_control() {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
