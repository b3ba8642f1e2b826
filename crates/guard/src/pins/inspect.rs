//! What is suspicious about definitions at first sight: hidden text, names that shadow or resemble others.

use std::collections::BTreeMap;

use proofhouse_source::{is_invisible, is_variation_selector, printable_line};
use serde_json::Value;

use super::{Lock, PinKind, is_mixed, skeleton};
use crate::finding::FindingCode;

/// What makes a definition suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspicion {
    /// It holds characters that nobody sees; in its name, control characters and white space at the ends count as well.
    HiddenText,
    /// Its name looks like another one.
    LookalikeName,
    /// A definition of another server has its name.
    ShadowedName,
    /// Its name is listed twice.
    DuplicateName,
}

impl Suspicion {
    /// How findings call it.
    #[must_use]
    pub const fn code(self) -> FindingCode {
        match self {
            Self::HiddenText => FindingCode::HiddenText,
            Self::LookalikeName => FindingCode::LookalikeName,
            Self::ShadowedName => FindingCode::ShadowedName,
            Self::DuplicateName => FindingCode::DuplicateName,
        }
    }
}

/// Something suspicious about a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// What.
    pub kind: Suspicion,
    /// The definition.
    pub name: String,
    /// Where in it.
    pub path: Option<String>,
    /// What, for people.
    pub message: String,
}

/// Looks at the definitions of one list; `lock` has those of the other servers.
#[must_use]
pub fn inspect(kind: PinKind, server: &str, items: &[Value], lock: &Lock) -> Vec<Inspection> {
    let mut found = Vec::new();
    let mut looks: BTreeMap<String, String> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let unnamed = format!("#{}", index + 1);
        let name = kind.name_of(item).unwrap_or(&unnamed);
        let mut add = |suspicion, path: Option<String>, message: String| {
            found.push(Inspection {
                kind: suspicion,
                name: name.to_owned(),
                path,
                message,
            });
        };
        if let Some((path, c)) = hidden_text(item) {
            let message = format!(
                "{} `{}` has the hidden character U+{:04X}",
                kind.noun(),
                printable_line(name),
                u32::from(c)
            );
            add(Suspicion::HiddenText, Some(path), message);
        } else if let Some(how) = hidden_in_name(name) {
            let message = format!(
                "the name of the {} `{}` {how}",
                kind.noun(),
                printable_line(name)
            );
            let path = kind.name_key().to_owned();
            add(Suspicion::HiddenText, Some(path), message);
        }
        // Templates of resources are addresses; they resemble each other by nature.
        let is_called = match kind {
            PinKind::Tool | PinKind::Prompt => true,
            PinKind::ResourceTemplate => false,
        };
        if !is_called {
            continue;
        }
        let shown = printable_line(name);
        if is_mixed(name) {
            let message =
                format!("the name `{shown}` mixes Latin letters with others that look like them");
            add(Suspicion::LookalikeName, None, message);
        }
        match looks.insert(skeleton(name), name.to_owned()) {
            Some(other) if other == name => {
                let message = format!("`{shown}` is listed twice");
                add(Suspicion::DuplicateName, None, message);
            }
            Some(other) => {
                let other = printable_line(&other);
                let message = format!("`{shown}` looks like `{other}` of the same server");
                add(Suspicion::LookalikeName, None, message);
            }
            None => {}
        }
        if let Some((other_server, other)) = resembling(kind, server, name, lock) {
            let (suspicion, verb) = if other == name {
                (Suspicion::ShadowedName, "is also a")
            } else {
                (Suspicion::LookalikeName, "looks like a")
            };
            let message = format!(
                "`{shown}` {verb} {} of the server `{}`{}",
                kind.noun(),
                printable_line(other_server),
                if other == name {
                    String::new()
                } else {
                    format!(", `{}`", printable_line(other))
                }
            );
            add(suspicion, None, message);
        }
    }
    found
}

/// A definition of another server that has the same name, or else one that looks like it.
fn resembling<'l>(
    kind: PinKind,
    server: &str,
    name: &str,
    lock: &'l Lock,
) -> Option<(&'l str, &'l str)> {
    let look = skeleton(name);
    let others = || {
        let servers = lock.servers.iter();
        servers
            .filter(|(other, _)| *other != server)
            .flat_map(|(other, pins)| {
                let names = pins.listed(kind).into_iter().flatten();
                names.map(|(name, _)| (other.as_str(), name.as_str()))
            })
    };
    let same = others().find(|(_, other)| *other == name);
    same.or_else(|| others().find(|(_, other)| skeleton(other) == look))
}

/// The first character below a value that cannot be seen or changes the order of others, and where it stands; keys
/// count as well.
#[must_use]
pub fn hidden_text(value: &Value) -> Option<(String, char)> {
    look(value, &mut String::new())
}

fn look(value: &Value, path: &mut String) -> Option<(String, char)> {
    match value {
        Value::String(text) => hidden_character(text).map(|c| (path.clone(), c)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let length = path.len();
            path.push_str(&format!("[{index}]"));
            let found = look(item, path);
            path.truncate(length);
            found
        }),
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let length = path.len();
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
            let found = match hidden_character(key) {
                Some(c) => Some((printable_line(path), c)),
                None => look(value, path),
            };
            path.truncate(length);
            found
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// What nobody sees in a name, though it makes it another one: in a text of several lines, it is in order.
fn hidden_in_name(name: &str) -> Option<String> {
    if let Some(c) = name.chars().find(|c| c.is_control()) {
        return Some(format!("has the control character U+{:04X}", u32::from(c)));
    }
    (name.trim() != name).then(|| "begins or ends with white space".to_owned())
}

fn hidden_character(text: &str) -> Option<char> {
    let mut before = ' ';
    for c in text.chars() {
        let is_control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if is_control || (is_invisible(c) && !joins(before, c) && !selects(before, c)) {
            return Some(c);
        }
        before = c;
    }
    None
}

/// Whether a variation selector has work to do: after a sign that has several forms. One after a letter of ASCII, or after
/// another one, changes nothing that is shown, and could carry a text.
fn selects(before: char, c: char) -> bool {
    let has_forms = !before.is_ascii() || before.is_ascii_digit() || matches!(before, '#' | '*');
    is_variation_selector(c) && has_forms && !is_invisible(before)
}

/// Whether a joiner has work to do: between parts of an emoji, or in scripts that are written with it.
fn joins(before: char, c: char) -> bool {
    let is_joiner = matches!(c, '\u{200c}' | '\u{200d}');
    is_joiner
        && matches!(
            before,
            '\u{600}'..='\u{dff}' | '\u{2600}'..='\u{27bf}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}'
        )
}
