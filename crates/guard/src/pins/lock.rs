//! `proofhouse.lock`: the pins of all servers as a text that people review.

use std::collections::BTreeMap;

use proofhouse_source::format::{
    FieldKind as Kind, FieldSpec, FileFormat, FormatReader, TypeSpec, Wording,
};
use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, DocumentWalk, NodeRef, PathSegment, ReadLimits, to_yaml,
};
use serde_json::{Map, Value, json};

use super::{CardKind, PinKind, ServerPins};

/// What the file is called.
pub const FILE: &str = "proofhouse.lock";

/// How large a lock may be: some servers describe a hundred tools at length.
pub const LOCK_LIMITS: ReadLimits = ReadLimits {
    max_bytes: 32 << 20,
    max_depth: 140,
    max_nodes: 2_000_000,
};

/// What stands above the pins.
const HEADER: &str = "\
# What your servers said of themselves when it was approved. The guard compares every later word with it.
# Review changes like code: these texts are read by your model. `proofhouse guard approve` shows and takes changes.
";

const VERSION: u64 = 1;

/// The pins of all servers, by the names they have in the configuration of the client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    /// The servers.
    pub servers: BTreeMap<String, ServerPins>,
}

/// What is wrong with the text of a lock.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", first(.0))]
pub struct LockSyntax(pub Vec<Diagnostic>);

fn first(findings: &[Diagnostic]) -> String {
    findings
        .first()
        .map(ToString::to_string)
        .unwrap_or_default()
}

const MISSING: &str = "GL-004";

static LOCK: TypeSpec = TypeSpec {
    name: "Lock",
    doc: "The pins of all servers.",
    fields: &[
        FieldSpec::required(
            "version",
            Kind::Exactly(VERSION),
            MISSING,
            "The version of the format.",
        ),
        FieldSpec::required(
            "servers",
            Kind::map(&Kind::Type(&SERVER)),
            MISSING,
            "The servers by name.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

static SERVER: TypeSpec = TypeSpec {
    name: "LockedServer",
    doc: "What one server was approved with.",
    fields: &[
        FieldSpec::optional("origin", Kind::Text, "How it is started or reached."),
        FieldSpec::optional(
            "instructions",
            Kind::Text,
            "Its instructions; empty if it gave none.",
        ),
        FieldSpec::optional(CardKind::Public.key(), Kind::Any, "The card of an agent."),
        FieldSpec::optional(
            CardKind::Extended.key(),
            Kind::Any,
            "The card of an agent for those who are known.",
        ),
        FieldSpec::optional("tools", Kind::Object, "Its tools by name."),
        FieldSpec::optional("prompts", Kind::Object, "Its prompts by name."),
        FieldSpec::optional(
            "resourceTemplates",
            Kind::Object,
            "Its templates of resources by address.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

impl Lock {
    /// Reads a lock.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with it, with places.
    ///
    /// ```
    /// use proofhouse_guard::pins::Lock;
    ///
    /// let lock = Lock::parse("version: 1\nservers:\n  files:\n    instructions: Read only.\n").unwrap();
    /// assert_eq!(lock.servers["files"].instructions.as_deref(), Some("Read only."));
    /// assert_eq!(Lock::parse(&lock.to_text()).unwrap(), lock);
    /// let error = Lock::parse("version: 2\nservers: {}\n").unwrap_err();
    /// assert!(error.to_string().contains("`version` must be 1"), "{error}");
    /// ```
    pub fn parse(text: &str) -> Result<Self, LockSyntax> {
        let format = FileFormat {
            limits: &LOCK_LIMITS,
            unreadable: "GL-001",
            may_be_empty: false,
        };
        let (lock, mut findings) = format.read(text, |source| {
            let mut reader = LockReader(DocumentWalk::new(source));
            let lock = reader.root(source.root());
            (lock, reader.0.into_findings())
        });
        findings.retain(|finding| finding.severity == DiagnosticSeverity::Error);
        match lock {
            Some(lock) if findings.is_empty() => Ok(lock),
            _ => Err(LockSyntax(findings)),
        }
    }

    /// The text, in one form: what is the same has the same text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let servers = self.servers.iter();
        let servers: Map<String, Value> = servers
            .map(|(name, pins)| (name.clone(), server_value(pins)))
            .collect();
        let value = json!({"version": VERSION, "servers": servers});
        format!("{HEADER}{}", to_yaml(&value))
    }
}

fn server_value(pins: &ServerPins) -> Value {
    let mut server = Map::new();
    let texts = [
        ("origin", &pins.origin),
        ("instructions", &pins.instructions),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            server.insert(key.to_owned(), Value::from(text.as_str()));
        }
    }
    for (kind, card) in &pins.cards {
        server.insert(kind.key().to_owned(), card.clone());
    }
    for kind in PinKind::ALL {
        if let Some(items) = pins.listed(*kind) {
            let items: Map<String, Value> = items
                .iter()
                .map(|(name, item)| (name.clone(), item.clone()))
                .collect();
            server.insert(kind.key().to_owned(), Value::Object(items));
        }
    }
    Value::Object(server)
}

struct LockReader<'s>(DocumentWalk<'s>);

impl<'s> FormatReader<'s> for LockReader<'s> {
    const WORDING: Wording = Wording {
        whole: "the lock",
        text: "a text",
        list: "a list",
        mismatch: "GL-002",
        unknown_key: "GL-003",
        empty: "GL-005",
        refused: "GL-002",
        shows_values: true,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.0
    }
}

impl<'s> LockReader<'s> {
    fn root(&mut self, node: NodeRef<'s>) -> Option<Lock> {
        let mut fields = self.fields(node, &LOCK)?;
        let version = fields.read("version", |reader, node| {
            let version = reader.value(node);
            if version != json!(VERSION) {
                reader.mismatch(node, "1");
                return None;
            }
            Some(())
        });
        let servers = fields.read("servers", |reader, node| {
            reader.is_mapping(node).then_some(())?;
            let mut servers = BTreeMap::new();
            for (name, node) in node.entries().into_iter().flatten() {
                let pins = reader.within(PathSegment::Key(name), |reader| reader.server(node));
                servers.extend(pins.map(|pins| (name.to_owned(), pins)));
            }
            Some(servers)
        });
        version?;
        Some(Lock { servers: servers? })
    }

    fn server(&mut self, node: NodeRef<'s>) -> Option<ServerPins> {
        let mut fields = self.fields(node, &SERVER)?;
        let origin = fields.text("origin");
        let instructions = fields.text("instructions");
        let mut cards = BTreeMap::new();
        for kind in CardKind::ALL {
            let card = fields.read(kind.key(), |reader, node| Some(reader.value(node)));
            cards.extend(card.map(|card| (*kind, card)));
        }
        let mut items = BTreeMap::new();
        for kind in PinKind::ALL {
            let read = fields.read(kind.key(), |reader, node| {
                reader.is_mapping(node).then_some(())?;
                let entries = node.entries().into_iter().flatten();
                let named: BTreeMap<String, Value> = entries
                    .map(|(name, node)| (name.to_owned(), reader.value(node)))
                    .collect();
                Some(named)
            });
            items.extend(read.map(|named| (*kind, named)));
        }
        Some(ServerPins {
            origin,
            instructions,
            cards,
            items,
        })
    }
}
