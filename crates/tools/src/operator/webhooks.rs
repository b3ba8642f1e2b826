//! The `webhooks` block: how deliveries to each tool or source are signed, and with which secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proofhouse_source::{NodeRef, Segment, did_you_mean};
use proofhouse_wire::HeaderName;

use super::reader::Reader;
use crate::receive::webhook::{Encoding, Hash, SCHEMES, Scheme};
use proofhouse_manifest::interpolate::Sealed;

/// The keys of a source; those after `secrets` are of the scheme `hmac` only.
const KEYS: [&str; 10] = [
    "scheme",
    "secret",
    "secrets",
    "header",
    "hash",
    "encoding",
    "prefix",
    "signed",
    "timestamp_header",
    "id_header",
];
const OF_EVERY_SCHEME: usize = 3;
const HASHES: [(&str, Hash); 4] = [
    ("sha1", Hash::Sha1),
    ("sha256", Hash::Sha256),
    ("sha384", Hash::Sha384),
    ("sha512", Hash::Sha512),
];
const ENCODINGS: [(&str, Encoding); 2] = [("hex", Encoding::Hex), ("base64", Encoding::Base64)];

/// How deliveries are signed, by the name in the address they are posted to: a tool, or a source of triggers.
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
}

impl WebhookConfig {
    /// What is configured for a tool or a source.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&WebhookSource> {
        self.sources.get(name)
    }

    /// The names that something is configured for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }
}

/// Reads the block. A source with an error is left out.
pub(super) fn read<'s>(node: NodeRef<'s>, reader: &mut Reader<'s, '_>) -> WebhookConfig {
    let mut config = WebhookConfig::default();
    if !reader.is_mapping(node) {
        return config;
    }
    for (name, node) in node.entries().into_iter().flatten() {
        let source = reader.within(Segment::Key(name), |reader| {
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

fn source<'s>(node: NodeRef<'s>, reader: &mut Reader<'s, '_>) -> Option<WebhookSource> {
    if !reader.mapping(node, &KEYS) {
        return None;
    }
    let Some(kind) = reader.field(node, "scheme") else {
        reader.missing("scheme");
        return None;
    };
    let known: Vec<(&str, &'static Scheme)> = SCHEMES
        .iter()
        .map(|scheme| (&*scheme.name, scheme))
        .collect();
    let found = reader.within(Segment::Key("scheme"), |reader| {
        choice(kind, &known, reader)
    })?;
    let mut scheme = found.clone();
    if scheme.name == "hmac" {
        configure(node, &mut scheme, reader);
    } else {
        for key in &KEYS[OF_EVERY_SCHEME..] {
            if node.get(key).is_some() {
                reader.within(Segment::Key(key), |reader| {
                    let message = format!("`{key}` is only for the scheme `hmac`");
                    reader.error("OC-005", message, None);
                });
            }
        }
    }
    let secrets = secrets(node, &scheme, reader);
    Some(WebhookSource { scheme, secrets })
}

/// The parts of the scheme `hmac`.
fn configure<'s>(node: NodeRef<'s>, scheme: &mut Scheme, reader: &mut Reader<'s, '_>) {
    if node.get("header").is_none_or(|header| header.is_null()) {
        reader.missing("header");
    }
    let header = |key: &'static str, reader: &mut Reader<'s, '_>| {
        let node = reader.field(node, key)?;
        reader.within(Segment::Key(key), |reader| {
            let text = reader.text(node)?;
            let name = HeaderName::try_from(&text).ok();
            if name.is_none() {
                let message = "this is not the name of a header".to_owned();
                reader.error("OC-005", message, None);
            }
            name.map(|name| Cow::Owned(name.as_str().to_owned()))
        })
    };
    if let Some(name) = header("header", reader) {
        scheme.header = name;
    }
    scheme.timestamp_header = header("timestamp_header", reader);
    scheme.id_header = header("id_header", reader);
    if let Some(node) = reader.field(node, "hash") {
        let hash = reader.within(Segment::Key("hash"), |reader| choice(node, &HASHES, reader));
        scheme.hash = hash.unwrap_or(scheme.hash);
    }
    if let Some(node) = reader.field(node, "encoding") {
        let encoding = reader.within(Segment::Key("encoding"), |reader| {
            choice(node, &ENCODINGS, reader)
        });
        scheme.encoding = encoding.unwrap_or(scheme.encoding);
    }
    for key in ["prefix", "signed"] {
        if let Some(node) = reader.field(node, key)
            && let Some(text) = reader.within(Segment::Key(key), |reader| reader.text(node))
        {
            match key {
                "prefix" => scheme.prefix = Cow::Owned(text),
                _ => scheme.signed = Cow::Owned(text),
            }
        }
    }
    if let Err(error) = scheme.check() {
        let help = "write for example `signed: \"{timestamp}.{body}\"`".to_owned();
        reader.error("OC-005", error.to_string(), Some(help));
    }
}

fn secrets<'s>(
    node: NodeRef<'s>,
    scheme: &Scheme,
    reader: &mut Reader<'s, '_>,
) -> Vec<Sealed<String>> {
    let mut secrets = Vec::new();
    let before = reader.findings();
    let mut keep = |text: String, reader: &mut Reader<'s, '_>| match scheme.key(&text) {
        Ok(_) => secrets.push(Sealed::new(text)),
        Err(error) => reader.error("OC-005", error.to_string(), None),
    };
    if let Some(one) = reader.field(node, "secret") {
        reader.within(Segment::Key("secret"), |reader| {
            if let Some(text) = reader.text(one) {
                keep(text, reader);
            }
        });
    }
    if let Some(list) = reader.field(node, "secrets") {
        reader.within(Segment::Key("secrets"), |reader| {
            for (text, index) in reader.texts(list) {
                reader.within(Segment::Index(index), |reader| keep(text, reader));
            }
        });
    }
    if secrets.is_empty() && reader.findings() == before {
        reader.missing("secrets");
    }
    secrets
}

fn choice<'s, T: Copy>(
    node: NodeRef<'s>,
    known: &[(&str, T)],
    reader: &mut Reader<'s, '_>,
) -> Option<T> {
    let text = reader.text(node)?;
    let found = known.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let help = match did_you_mean(&text, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of: {}", names.join(", ")),
        };
        let message = "this is not one of the values that can be used".to_owned();
        reader.error("OC-005", message, Some(help));
    }
    found.map(|(_, value)| *value)
}
