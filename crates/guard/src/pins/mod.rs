//! Pins: what servers said of themselves when somebody approved it, and what differs now.
//!
//! Pinned are tools, prompts, templates of resources, the instructions of a server and the card of an agent. They are
//! kept whole in [`Lock`], a file that people review like code. `changes` compares, [`inspect`] looks at definitions
//! at first sight.

mod canonical;
mod changes;
mod file;
mod inspect;
mod lock;
mod lookalike;
mod review;

use std::collections::BTreeMap;

use proofhouse_protocol::mcp::McpMethod;
use serde_json::Value;

pub use canonical::{canonical, canonical_card};
pub use changes::{
    PinChange, PinDifference, changes_of_card, changes_of_item, changes_of_server, changes_of_text,
};
pub use file::{LockFile, LockFileError, NoSuchLock};
pub use inspect::{Inspection, Suspicion, hidden_text, inspect};
pub use lock::{FILE, LOCK_LIMITS, Lock, LockSyntax};
pub use lookalike::{is_mixed, skeleton};
pub(crate) use review::visible;
pub use review::{OfferedChanges, UnknownServer, approve, check_server, diff_lines, review};

/// A kind of definition that has a name and comes in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PinKind {
    /// Tools.
    Tool,
    /// Prompts.
    Prompt,
    /// Templates of resources.
    ResourceTemplate,
}

impl PinKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Tool, Self::Prompt, Self::ResourceTemplate];

    /// Its key in the lock, which is the member of the result that lists it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::ResourceTemplate => "resourceTemplates",
        }
    }

    /// What people call one.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::ResourceTemplate => "resource template",
        }
    }

    /// The kind that a method lists.
    #[must_use]
    pub fn listed_by(method: &str) -> Option<Self> {
        match McpMethod::parse(method)? {
            McpMethod::ToolsList => Some(Self::Tool),
            McpMethod::PromptsList => Some(Self::Prompt),
            McpMethod::ResourcesTemplatesList => Some(Self::ResourceTemplate),
            _ => None,
        }
    }

    /// The name of a definition.
    #[must_use]
    pub fn name_of(self, item: &Value) -> Option<&str> {
        item.get(self.name_key())?.as_str()
    }

    /// Where the name of a definition stands.
    const fn name_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::ResourceTemplate => "uriTemplate",
        }
    }
}

/// A card of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardKind {
    /// The one that everybody gets.
    Public,
    /// The one for those who are known.
    Extended,
}

impl CardKind {
    /// Both.
    pub const ALL: &'static [Self] = &[Self::Public, Self::Extended];

    /// Its key in the lock.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Public => "agentCard",
            Self::Extended => "extendedAgentCard",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Public => "agent card",
            Self::Extended => "extended agent card",
        }
    }
}

/// What one server was approved with. What it was never asked for is `None`, and is recorded when it comes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerPins {
    /// How the server is started or reached, for the person who reviews.
    pub origin: Option<String>,
    /// Its instructions; empty for a server that gave none.
    pub instructions: Option<String>,
    /// Its cards, if it is an agent.
    pub cards: BTreeMap<CardKind, Value>,
    /// Definitions by name, in canonical form.
    pub items: BTreeMap<PinKind, BTreeMap<String, Value>>,
}

impl ServerPins {
    /// The definitions of a kind, if they were listed.
    #[must_use]
    pub fn listed(&self, kind: PinKind) -> Option<&BTreeMap<String, Value>> {
        self.items.get(&kind)
    }
}

/// Definitions of a list by name, in canonical form. Further ones of the same name have a number after it; those
/// without a name are called by their number alone.
#[must_use]
pub fn by_name(kind: PinKind, items: &[Value]) -> BTreeMap<String, Value> {
    let mut named = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let name = match kind.name_of(item) {
            Some(name) => name.to_owned(),
            None => format!("#{}", index + 1),
        };
        let mut key = name.clone();
        let mut number = 1;
        while named.contains_key(&key) {
            number += 1;
            key = format!("{name} #{number}");
        }
        named.insert(key, canonical(kind, item));
    }
    named
}
