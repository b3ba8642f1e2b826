//! The `webhooks` block: how deliveries to each tool or source are signed, and with which secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment, did_you_mean};
use proofhouse_wire::HeaderName;

use super::fields::{OF_EVERY_SCHEME, WEBHOOK};
use super::reader::{OperatorFields, OperatorReader};
use crate::receive::webhook::{Encoding, Hash, SCHEMES, Scheme};
use proofhouse_manifest::interpolate::Sealed;

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
    if scheme.name == "hmac" {
        configure(&mut fields, &mut scheme);
    } else {
        for key in WEBHOOK.keys().skip(OF_EVERY_SCHEME) {
            if node.get(key).is_some() {
                fields.reader.within(PathSegment::Key(key), |reader| {
                    let message = format!("`{key}` is only for the scheme `hmac`");
                    reader.error("OC-005", message, None);
                });
            }
        }
    }
    let secrets = secrets(&mut fields, &scheme);
    Some(WebhookSource { scheme, secrets })
}

/// The parts of the scheme `hmac`.
fn configure(fields: &mut OperatorFields<'_, '_, '_>, scheme: &mut Scheme) {
    if !fields.has("header") {
        fields.missing("header", "OC-004");
    }
    if let Some(name) = header(fields, "header") {
        scheme.header = name;
    }
    scheme.timestamp_header = header(fields, "timestamp_header");
    scheme.id_header = header(fields, "id_header");
    let hash = fields.read("hash", |reader, node| choice(node, &HASHES, reader));
    scheme.hash = hash.unwrap_or(scheme.hash);
    let encoding = fields.read("encoding", |reader, node| choice(node, &ENCODINGS, reader));
    scheme.encoding = encoding.unwrap_or(scheme.encoding);
    if let Some(prefix) = fields.text("prefix") {
        scheme.prefix = Cow::Owned(prefix);
    }
    if let Some(signed) = fields.text("signed") {
        scheme.signed = Cow::Owned(signed);
    }
    if let Err(error) = scheme.check() {
        let help = "write for example `signed: \"{timestamp}.{body}\"`".to_owned();
        fields.reader.error("OC-005", error.to_string(), Some(help));
    }
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
    if secrets.is_empty() && fields.reader.findings() == before {
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
        let help = match did_you_mean(&text, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of: {}", names.join(", ")),
        };
        let message = "this is not one of the values that can be used".to_owned();
        reader.error("OC-005", message, Some(help));
    }
    found.map(|(_, value)| *value)
}
