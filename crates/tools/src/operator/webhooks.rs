//! The `webhooks` block: how deliveries to each tool or source are signed, and with which secrets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proofhouse_source::format::{Durations, FormatReader};
use proofhouse_source::{NodeRef, PathSegment};
use proofhouse_wire::HeaderName;

use super::fields::{OF_EVERY_SCHEME, WEBHOOK};
use super::reader::{OperatorFields, OperatorReader};
use crate::receive::webhook::{
    DedupeBy, DedupeChoice, Encoding, Hash, ID_WINDOW, SCHEMES, Scheme, SignatureKind,
    TimestampFormat,
};
use proofhouse_manifest::Tool;
use proofhouse_manifest::interpolate::Sealed;

const HASHES: [(&str, Hash); 4] = [
    ("sha1", Hash::Sha1),
    ("sha256", Hash::Sha256),
    ("sha384", Hash::Sha384),
    ("sha512", Hash::Sha512),
];
const FORMATS: [(&str, TimestampFormat); 3] = [
    ("seconds", TimestampFormat::Seconds),
    ("milliseconds", TimestampFormat::Milliseconds),
    ("rfc3339", TimestampFormat::Rfc3339),
];
const REPEATS: [(&str, DedupeBy); 3] = [
    ("id", DedupeBy::Id),
    ("body", DedupeBy::Body),
    ("none", DedupeBy::Nothing),
];
/// A signed time that is further off proves nothing.
const MAX_TOLERANCE: Duration = Duration::from_secs(24 * 3600);
const ENCODINGS: [(&str, Encoding); 2] = [("hex", Encoding::Hex), ("base64", Encoding::Base64)];

/// How deliveries are signed: by `namespace/name` of a tool, or by the name in the address they are posted to, of a tool or a
/// source of triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookConfig {
    sources: BTreeMap<String, WebhookSource>,
}

/// How one source signs. Any of the secrets will do, so that they can be changed one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSource {
    /// How a signature is made.
    pub scheme: Scheme,
    /// The secrets.
    pub secrets: Vec<Sealed<String>>,
    /// What counts as the same delivery again.
    pub dedupe: DedupeChoice,
}

impl WebhookConfig {
    /// What is configured for a source, or for a tool as `namespace/name`, else by its name alone.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&WebhookSource> {
        let bare = name.split_once('/').map(|(_, bare)| bare);
        let found = self.sources.get(name);
        found.or_else(|| self.sources.get(bare?))
    }

    /// What is configured for a tool.
    ///
    /// # Errors
    ///
    /// Returns an error when only a name without a namespace is configured, and several of these tools have it.
    pub fn of_tool<'t>(
        &self,
        tool: &Tool,
        tools: impl Iterator<Item = &'t Arc<Tool>>,
    ) -> Result<Option<&WebhookSource>, AmbiguousSource> {
        let own = format!("{}/{}", tool.namespace, tool.name);
        if !self.sources.contains_key(&own) && self.sources.contains_key(&tool.name) {
            let of_name = tools.filter(|one| one.name == tool.name);
            let namespaces: BTreeSet<String> = of_name.map(|one| one.namespace.clone()).collect();
            if namespaces.len() > 1 {
                let namespaces = namespaces.into_iter().collect::<Vec<_>>().join(", ");
                let name = tool.name.clone();
                return Err(AmbiguousSource {
                    name,
                    own,
                    namespaces,
                });
            }
        }
        Ok(self.source(&own))
    }

    /// The names that something is configured for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }
}

/// A name in `webhooks` that may mean several tools, of which each would take what is meant for another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`webhooks.{name}` may mean the tools of several namespaces: {namespaces}; write `{own}`")]
pub struct AmbiguousSource {
    /// The name.
    pub name: String,
    /// The tool, with its namespace.
    pub own: String,
    namespaces: String,
}

/// Reads the block. A source with an error is left out.
pub(super) fn read<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> WebhookConfig {
    let mut config = WebhookConfig::default();
    if !reader.is_mapping(node) {
        return config;
    }
    for (name, node) in node.entries().into_iter().flatten() {
        let source = reader.within(PathSegment::Key(name), |reader| {
            let before = reader.findings();
            let source = source(node, reader);
            source.filter(|_| reader.findings() == before)
        });
        config
            .sources
            .extend(source.map(|source| (name.to_owned(), source)));
    }
    config
}

fn source<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<WebhookSource> {
    let mut fields = reader.fields(node, &WEBHOOK)?;
    let known: Vec<(&str, &'static Scheme)> = SCHEMES
        .iter()
        .map(|scheme| (&*scheme.name, scheme))
        .collect();
    let found = fields.read("scheme", |reader, node| choice(node, &known, reader))?;
    let mut scheme = found.clone();
    configure(&mut fields, &mut scheme);
    for key in WEBHOOK.keys().skip(OF_EVERY_SCHEME) {
        if node.get(key).is_some() && !scheme.configured.contains(&key) {
            let takes = SCHEMES.iter().filter(|one| one.configured.contains(&key));
            let names: Vec<String> = takes.map(|one| format!("`{}`", one.name)).collect();
            fields.reader.within(PathSegment::Key(key), |reader| {
                let names = names.join(" or ");
                let message = format!("`{key}` is only for the scheme {names}");
                reader.error("OC-005", message, None);
            });
        }
    }
    let dedupe = DedupeChoice {
        by: fields.read("dedupe", |reader, node| choice(node, &REPEATS, reader)),
        window: fields.read("dedupe_window", |reader, node| {
            duration(node, ID_WINDOW, reader)
        }),
    };
    let secrets = secrets(&mut fields, &scheme);
    Some(WebhookSource {
        scheme,
        secrets,
        dedupe,
    })
}

/// The parts of a scheme that the operator says.
fn configure(fields: &mut OperatorFields<'_, '_, '_>, scheme: &mut Scheme) {
    if let Some(needed) = scheme.needs.filter(|key| !fields.has(key)) {
        fields.missing(needed, "OC-004");
    }
    let takes = |key: &str| scheme.configured.contains(&key);
    if takes("header")
        && let Some(name) = header(fields, "header")
    {
        scheme.header = name;
    }
    if takes("prefix")
        && let Some(prefix) = fields.text("prefix")
    {
        scheme.prefix = Cow::Owned(prefix);
    }
    if takes("url")
        && let Some(url) = fields.text("url")
    {
        scheme.url = Cow::Owned(url);
    }
    if !takes("signed") {
        return;
    }
    scheme.timestamp_header = header(fields, "timestamp_header");
    scheme.timestamp_key = fields.text("timestamp_key").map(Cow::Owned);
    scheme.id_header = header(fields, "id_header");
    let hash = fields.read("hash", |reader, node| choice(node, &HASHES, reader));
    scheme.hash = hash.unwrap_or(scheme.hash);
    let encoding = fields.read("encoding", |reader, node| choice(node, &ENCODINGS, reader));
    scheme.encoding = encoding.unwrap_or(scheme.encoding);
    let format = fields.read("timestamp_format", |reader, node| {
        choice(node, &FORMATS, reader)
    });
    scheme.timestamp_format = format.unwrap_or(scheme.timestamp_format);
    let tolerance = fields.read("tolerance", |reader, node| {
        duration(node, MAX_TOLERANCE, reader)
    });
    let tolerance = tolerance.and_then(|tolerance| tolerance.try_into().ok());
    scheme.tolerance = tolerance.unwrap_or(scheme.tolerance);
    scheme.separator = fields.read("separator", |reader, node| {
        let text = reader.text(node)?;
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(one), None) => Some(one),
            _ => {
                let message = "what stands between signatures is one character".to_owned();
                reader.error("OC-005", message, None);
                None
            }
        }
    });
    if let Some(signed) = fields.text("signed") {
        scheme.signed = Cow::Owned(signed);
    }
    if let Err(error) = scheme.check() {
        let help = "write for example `signed: \"{timestamp}.{body}\"`".to_owned();
        fields.reader.error("OC-005", error.to_string(), Some(help));
    }
}

/// A duration of at most so much.
fn duration<'s>(
    node: NodeRef<'s>,
    most: Duration,
    reader: &mut OperatorReader<'s, '_>,
) -> Option<Duration> {
    let text = reader.text(node)?;
    let found = Durations::POSITIVE.parse(&text).ok();
    let found = found.filter(|found| *found <= most);
    if found.is_none() {
        let message = format!("this is not a duration of at most {} s", most.as_secs());
        reader.error(
            "OC-005",
            message,
            Some("write for example `10m`".to_owned()),
        );
    }
    found
}

fn header(fields: &mut OperatorFields<'_, '_, '_>, key: &'static str) -> Option<Cow<'static, str>> {
    fields.read(key, |reader, node| {
        let text = reader.text(node)?;
        let name = HeaderName::try_from(&text).ok();
        if name.is_none() {
            let message = "this is not the name of a header".to_owned();
            reader.error("OC-005", message, None);
        }
        name.map(|name| Cow::Owned(name.as_str().to_owned()))
    })
}

fn secrets(fields: &mut OperatorFields<'_, '_, '_>, scheme: &Scheme) -> Vec<Sealed<String>> {
    let mut secrets = Vec::new();
    let before = fields.reader.findings();
    let mut keep = |text: String, reader: &mut OperatorReader<'_, '_>| match scheme.key(&text) {
        Ok(_) => secrets.push(Sealed::new(text)),
        Err(error) => reader.error("OC-005", error.to_string(), None),
    };
    fields.read("secret", |reader, node| {
        let text = reader.text(node)?;
        keep(text, reader);
        Some(())
    });
    fields.read("secrets", |reader, list| {
        for (text, index) in reader.texts(list) {
            reader.within(PathSegment::Index(index), |reader| keep(text, reader));
        }
        Some(())
    });
    if scheme.kind == SignatureKind::Unsigned {
        if !secrets.is_empty() {
            let message = "a source that does not sign has no secret".to_owned();
            fields.reader.error("OC-005", message, None);
        }
    } else if secrets.is_empty() && fields.reader.findings() == before {
        fields.missing("secrets", "OC-004");
    }
    secrets
}

fn choice<'s, T: Copy>(
    node: NodeRef<'s>,
    known: &[(&str, T)],
    reader: &mut OperatorReader<'s, '_>,
) -> Option<T> {
    let text = reader.text(node)?;
    let found = known.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        reader.unknown_word(&text, &names);
    }
    found.map(|(_, value)| *value)
}
