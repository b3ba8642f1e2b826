//! What differs from the pins: definitions that came, went or changed, and where.

use std::collections::BTreeMap;
use std::fmt;

use proofhouse_source::printable;
use serde_json::Value;

use super::{CardKind, PinKind, ServerPins};
use crate::finding::FindingCode;

/// How many differences of one definition are told.
const MAX_DIFFERENCES: usize = 50;

/// A definition that is not as it was approved.
#[derive(Debug, Clone, PartialEq)]
pub struct PinChange {
    /// What it is: `tool`, `prompt`, `resource template`, `instructions` or `agent card`.
    pub noun: &'static str,
    /// Its name; empty where there is only one.
    pub name: String,
    /// Whether it came, went or changed.
    pub code: FindingCode,
    /// What is different in it; empty where it came or went.
    pub differences: Vec<PinDifference>,
}

/// A place where a definition differs.
#[derive(Debug, Clone, PartialEq)]
pub struct PinDifference {
    /// The place, such as `inputSchema.properties.to.description`.
    pub path: String,
    /// What was approved; `None` where there was nothing.
    pub before: Option<Value>,
    /// What is there now.
    pub after: Option<Value>,
}

impl PinChange {
    /// Whether everything that differs is told.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.differences.len() < MAX_DIFFERENCES
    }
}

impl fmt::Display for PinChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.code {
            FindingCode::PinAdded => "is new",
            FindingCode::PinRemoved => "is gone",
            _ => "changed",
        };
        f.write_str(self.noun)?;
        if !self.name.is_empty() {
            write!(f, " `{}`", printable(&self.name))?;
        }
        write!(f, " {verb}")?;
        let places: Vec<&str> = self.differences.iter().map(|one| &*one.path).collect();
        match places.as_slice() {
            [] | [""] => Ok(()),
            [first] => write!(f, " at {}", printable(first)),
            [first, rest @ ..] => write!(
                f,
                " at {} and {} more place{}",
                printable(first),
                rest.len(),
                if rest.len() == 1 { "" } else { "s" }
            ),
        }
    }
}

/// What differs between two definitions of one name.
#[must_use]
pub fn changes_of_item(
    kind: PinKind,
    name: &str,
    pinned: Option<&Value>,
    now: Option<&Value>,
) -> Option<PinChange> {
    change(kind.noun(), name, pinned, now)
}

/// What differs between two cards of an agent.
#[must_use]
pub fn changes_of_card(
    kind: CardKind,
    pinned: Option<&Value>,
    now: Option<&Value>,
) -> Option<PinChange> {
    change(kind.noun(), "", pinned, now)
}

/// What differs between two instructions.
#[must_use]
pub fn changes_of_text(noun: &'static str, pinned: &str, now: &str) -> Option<PinChange> {
    let some = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    change(noun, "", some(pinned).as_ref(), some(now).as_ref())
}

fn change(
    noun: &'static str,
    name: &str,
    pinned: Option<&Value>,
    now: Option<&Value>,
) -> Option<PinChange> {
    let (code, differences) = match (pinned, now) {
        (None, None) => return None,
        (None, Some(_)) => (FindingCode::PinAdded, Vec::new()),
        (Some(_), None) => (FindingCode::PinRemoved, Vec::new()),
        (Some(pinned), Some(now)) if pinned == now => return None,
        (Some(pinned), Some(now)) => {
            let mut found = Vec::new();
            compare("", Some(pinned), Some(now), &mut found);
            (FindingCode::PinChanged, found)
        }
    };
    Some(PinChange {
        noun,
        name: name.to_owned(),
        code,
        differences,
    })
}

/// Everything that differs between the pins of a server and what it offers. What was never asked for on either side is
/// left out.
#[must_use]
pub fn changes_of_server(pinned: &ServerPins, now: &ServerPins) -> Vec<PinChange> {
    let mut found = Vec::new();
    if let (Some(before), Some(after)) = (&pinned.instructions, &now.instructions) {
        found.extend(changes_of_text("instructions", before, after));
    }
    for (kind, after) in &now.cards {
        found.extend(changes_of_card(*kind, pinned.cards.get(kind), Some(after)));
    }
    for kind in PinKind::ALL {
        if let (Some(before), Some(after)) = (pinned.listed(*kind), now.listed(*kind)) {
            let names: BTreeMap<&String, ()> = before
                .keys()
                .chain(after.keys())
                .map(|name| (name, ()))
                .collect();
            found.extend(names.into_keys().filter_map(|name| {
                changes_of_item(*kind, name, before.get(name), after.get(name))
            }));
        }
    }
    found
}

/// The places where two values differ, the innermost ones.
fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<PinDifference>,
) {
    if found.len() >= MAX_DIFFERENCES || before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys: BTreeMap<&String, ()> = before
                .keys()
                .chain(after.keys())
                .map(|key| (key, ()))
                .collect();
            for key in keys.into_keys() {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                compare(&path, before.get(key), after.get(key), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(
                    &format!("{path}[{index}]"),
                    Some(before),
                    Some(after),
                    found,
                );
            }
        }
        _ => found.push(PinDifference {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}
