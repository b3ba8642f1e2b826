//! Signature schemes: one table with a row per scheme, and one way to check them all.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use jiff::{SignedDuration, Timestamp};
use ring::{digest, hmac};
use serde_json::Value;

use super::{Delivery, Refusal};

/// How far a signed time may be from ours, in both directions, unless the operator says it.
pub const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);
/// A header of signatures holds a few of some hundred bytes; more is no signature.
const MAX_HEADER_BYTES: usize = 4_096;
/// How many signatures of one header are looked at. Platforms send two while they rotate a secret.
const MAX_SIGNATURES: usize = 16;
/// The longest id that is signed along.
const MAX_ID_BYTES: usize = 256;

/// How a platform signs what it sends. Nearly all schemes are HMACs that differ in what is signed and how it is
/// written, so one description fits them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// Its name in the operator's file.
    pub name: Cow<'static, str>,
    /// What stands in its header.
    pub kind: SignatureKind,
    /// The header with the signature.
    pub header: Cow<'static, str>,
    /// What stands before a signature.
    pub prefix: Cow<'static, str>,
    /// What stands between several signatures of one header.
    pub separator: Option<char>,
    /// How a signature is written.
    pub encoding: Encoding,
    /// The hash of the HMAC.
    pub hash: Hash,
    /// What is signed: text, `{body}`, `{timestamp}` and `{id}`; `{url}`, the address that was posted to, and `{form}`, the
    /// fields of a form by their names.
    pub signed: Cow<'static, str>,
    /// The header with the time.
    pub timestamp_header: Option<Cow<'static, str>>,
    /// What stands before the time, where that is one of the parts of the header with the signature.
    pub timestamp_key: Option<Cow<'static, str>>,
    /// How the time is written.
    pub timestamp_format: TimestampFormat,
    /// How far the time may be from ours.
    pub tolerance: SignedDuration,
    /// The header with the id.
    pub id_header: Option<Cow<'static, str>>,
    /// The field of a body that is signed in which the platform names an event.
    pub id_field: Option<Cow<'static, str>>,
    /// The header in which the platform names a delivery without signing the name.
    pub unsigned_id_header: Option<Cow<'static, str>>,
    /// Whether a secret of a manifest may be one of it. Not for a scheme whose parts the operator must tell first.
    pub is_for_manifests: bool,
    /// Whether secrets are base64, perhaps after `whsec_`.
    pub base64_secrets: bool,
    /// The address that the platform posts to, as it knows it.
    pub url: Cow<'static, str>,
    /// The keys of the operator's file that say more about it.
    pub configured: &'static [&'static str],
    /// The one of them that it cannot do without.
    pub needs: Option<&'static str>,
}

/// What stands in the header of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureKind {
    /// An HMAC.
    Hmac,
    /// The secret itself. It says who sends, and nothing about what.
    Token,
    /// Nothing: the source does not sign.
    Unsigned,
}

/// How a signed time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampFormat {
    /// Whole seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// As in RFC 3339.
    Rfc3339,
}

impl TimestampFormat {
    fn read(self, text: &str) -> Result<Timestamp, Refusal> {
        let is_short = (1..=15).contains(&text.len());
        let digits = || {
            let is_plain = is_short && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<i64>().ok().filter(|_| is_plain)
        };
        let read = match self {
            Self::Seconds => digits().and_then(|count| Timestamp::from_second(count).ok()),
            Self::Milliseconds => {
                digits().and_then(|count| Timestamp::from_millisecond(count).ok())
            }
            Self::Rfc3339 => text.parse().ok(),
        };
        read.ok_or(Refusal::Malformed)
    }
}

/// How a signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal digits.
    Hex,
    /// Base64, with either alphabet and with or without padding.
    Base64,
}

/// The hash of an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1, which some old platforms still use.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    fn algorithm(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

const fn text(text: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(text)
}

/// The schemes that have a name. `hmac` and `token` are those whose parts the operator configures.
pub static SCHEMES: LazyLock<[Scheme; 11]> = LazyLock::new(|| {
    [
        Scheme {
            name: text("github"),
            header: text("x-hub-signature-256"),
            prefix: text("sha256="),
            unsigned_id_header: Some(text("x-github-delivery")),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("standard"),
            header: text("webhook-signature"),
            timestamp_header: Some(text("webhook-timestamp")),
            id_header: Some(text("webhook-id")),
            ..Scheme::of_messages()
        },
        Scheme {
            name: text("svix"),
            header: text("svix-signature"),
            timestamp_header: Some(text("svix-timestamp")),
            id_header: Some(text("svix-id")),
            ..Scheme::of_messages()
        },
        Scheme {
            name: text("slack"),
            header: text("x-slack-signature"),
            prefix: text("v0="),
            signed: text("v0:{timestamp}:{body}"),
            timestamp_header: Some(text("x-slack-request-timestamp")),
            id_field: Some(text("event_id")),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("stripe"),
            header: text("stripe-signature"),
            prefix: text("v1="),
            separator: Some(','),
            signed: text("{timestamp}.{body}"),
            timestamp_key: Some(text("t=")),
            id_field: Some(text("id")),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("shopify"),
            header: text("x-shopify-hmac-sha256"),
            encoding: Encoding::Base64,
            unsigned_id_header: Some(text("x-shopify-webhook-id")),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("twilio"),
            header: text("x-twilio-signature"),
            encoding: Encoding::Base64,
            hash: Hash::Sha1,
            signed: text("{url}{form}"),
            unsigned_id_header: Some(text("i-twilio-idempotency-token")),
            is_for_manifests: false,
            configured: &["url"],
            needs: Some("url"),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("gitlab"),
            kind: SignatureKind::Token,
            header: text("x-gitlab-token"),
            unsigned_id_header: Some(text("x-gitlab-event-uuid")),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("token"),
            kind: SignatureKind::Token,
            is_for_manifests: false,
            configured: &["header", "prefix"],
            needs: Some("header"),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("hmac"),
            is_for_manifests: false,
            configured: HMAC_KEYS,
            needs: Some("header"),
            ..Scheme::of_bodies()
        },
        Scheme {
            name: text("none"),
            kind: SignatureKind::Unsigned,
            is_for_manifests: false,
            ..Scheme::of_bodies()
        },
    ]
});

/// What the operator can say about an HMAC.
const HMAC_KEYS: &[&str] = &[
    "header",
    "hash",
    "encoding",
    "prefix",
    "separator",
    "signed",
    "timestamp_header",
    "timestamp_key",
    "timestamp_format",
    "tolerance",
    "id_header",
];

/// Why a scheme or a secret cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// A signature that does not cover the body says nothing about it.
    #[error("what is signed must hold `{{body}}`")]
    NoBody,
    /// A time that is not signed can be changed by anyone.
    #[error("a timestamp is given, and what is signed does not hold `{{timestamp}}`")]
    TimestampNotSigned,
    /// There is one time.
    #[error(
        "`timestamp_key` is of the header with the signature, so there is no `timestamp_header`"
    )]
    TwoTimestamps,
    /// There is nothing to put in.
    #[error(
        "what is signed holds `{{timestamp}}`, and there is no `timestamp_header` or `timestamp_key`"
    )]
    NoTimestampHeader,
    /// There is nothing to put in.
    #[error("what is signed holds `{{id}}`, and there is no `id_header`")]
    NoIdHeader,
    /// Anyone can sign with it.
    #[error("the secret is empty")]
    EmptySecret,
    /// The scheme's secrets are base64.
    #[error("the secret is not base64, with `whsec_` before it or without")]
    NotBase64,
}

impl Scheme {
    /// A signature of the body, in hexadecimal digits.
    fn of_bodies() -> Self {
        Self {
            name: text(""),
            kind: SignatureKind::Hmac,
            header: text("x-signature"),
            prefix: text(""),
            separator: None,
            encoding: Encoding::Hex,
            hash: Hash::Sha256,
            signed: text("{body}"),
            timestamp_header: None,
            timestamp_key: None,
            timestamp_format: TimestampFormat::Seconds,
            tolerance: TOLERANCE,
            id_header: None,
            id_field: None,
            unsigned_id_header: None,
            is_for_manifests: true,
            base64_secrets: false,
            url: text(""),
            configured: &[],
            needs: None,
        }
    }

    /// Signatures of an id, a time and the body, as Standard Webhooks has them.
    fn of_messages() -> Self {
        Self {
            prefix: text("v1,"),
            separator: Some(' '),
            encoding: Encoding::Base64,
            signed: text("{id}.{timestamp}.{body}"),
            base64_secrets: true,
            ..Self::of_bodies()
        }
    }

    /// The scheme of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SCHEMES.iter().find(|scheme| scheme.name == name)
    }

    /// What is wrong with a configured scheme, if anything.
    ///
    /// # Errors
    ///
    /// Returns the reason why deliveries could not be checked with it.
    pub fn check(&self) -> Result<(), SchemeError> {
        let holds = |name: &str| self.signed.contains(name);
        if !holds("{body}") && !holds("{form}") {
            return Err(SchemeError::NoBody);
        }
        let times = [&self.timestamp_header, &self.timestamp_key];
        match (holds("{timestamp}"), times.into_iter().flatten().count()) {
            (true, 1) | (false, 0) => {}
            (true, 0) => return Err(SchemeError::NoTimestampHeader),
            (false, _) => return Err(SchemeError::TimestampNotSigned),
            (true, _) => return Err(SchemeError::TwoTimestamps),
        }
        if holds("{id}") && self.id_header.is_none() {
            Err(SchemeError::NoIdHeader)
        } else {
            Ok(())
        }
    }

    /// The bytes of a secret.
    ///
    /// # Errors
    ///
    /// Returns an error when the secret is empty or not written as the scheme wants it.
    pub fn key(&self, secret: &str) -> Result<Vec<u8>, SchemeError> {
        let bytes = if self.base64_secrets {
            let written = secret.trim();
            let written = written.strip_prefix("whsec_").unwrap_or(written);
            base64(written).ok_or(SchemeError::NotBase64)?
        } else {
            secret.as_bytes().to_vec()
        };
        if bytes.is_empty() {
            Err(SchemeError::EmptySecret)
        } else {
            Ok(bytes)
        }
    }

    /// The header in which its platform names a delivery, if it does.
    pub(super) fn delivery_header(&self) -> Option<&str> {
        let signed = self.id_header.as_deref();
        signed.or(self.unsigned_id_header.as_deref())
    }

    /// The id of a genuine delivery that its signature covers, with what it is: no replay can change it.
    pub(super) fn signed_id(&self, delivery: &Delivery<'_>, payload: &Value) -> Option<String> {
        let of_header = self.id_header.as_deref();
        let of_header = of_header.filter(|_| self.signed.contains("{id}"));
        let of_body = self.id_field.as_deref();
        let (name, id) = match (of_header, of_body) {
            (Some(header), _) => (header, delivery.header(header)?),
            (None, Some(field)) => (field, payload.get(field)?.as_str()?),
            (None, None) => return None,
        };
        (!id.is_empty()).then(|| format!("{name}:{id}"))
    }

    /// Checks a delivery with one key. The signature is compared in constant time, and before the time: only
    /// who can sign learns that a time is off.
    ///
    /// # Errors
    ///
    /// Returns why it is not genuine.
    pub fn verify(&self, delivery: &Delivery<'_>, key: &[u8]) -> Result<(), Refusal> {
        let header = one(delivery, &self.header)?;
        if header.len() > MAX_HEADER_BYTES {
            return Err(Refusal::Malformed);
        }
        match self.kind {
            SignatureKind::Hmac => self.verify_hmac(delivery, header, key),
            SignatureKind::Token => {
                let given = header.strip_prefix(&*self.prefix);
                let given = given.ok_or(Refusal::Malformed)?.as_bytes();
                // Of hashes, so that the time taken says nothing about the length either.
                let hashed = |key: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, key);
                let tag = hmac::sign(&hashed(given), b"");
                let fits = hmac::verify(&hashed(key), b"", tag.as_ref());
                fits.map_err(|_| Refusal::Mismatch)
            }
            SignatureKind::Unsigned => Err(Refusal::Mismatch),
        }
    }

    fn verify_hmac(
        &self,
        delivery: &Delivery<'_>,
        header: &str,
        key: &[u8],
    ) -> Result<(), Refusal> {
        let parts: Vec<&str> = match self.separator {
            Some(separator) => header.split(separator).take(MAX_SIGNATURES).collect(),
            None => vec![header],
        };
        let signatures = self.signatures(&parts)?;
        let time = match (&self.timestamp_header, &self.timestamp_key) {
            (Some(header), _) => Some(one(delivery, header)?),
            (None, Some(key)) => {
                let mut times = parts
                    .iter()
                    .filter_map(|part| part.trim().strip_prefix(&**key));
                Some(times.next().ok_or(Refusal::Missing)?)
            }
            (None, None) => None,
        };
        let id = match &self.id_header {
            Some(header) => Some(one(delivery, header)?),
            None => None,
        };
        let then = time.map(|time| self.timestamp_format.read(time));
        let then = then.transpose()?;
        if id.is_some_and(|id| !is_id(id)) {
            return Err(Refusal::Malformed);
        }
        let form = if self.signed.contains("{form}") {
            form_text(delivery)?
        } else {
            String::new()
        };
        let url = match delivery.query {
            Some(query) => format!("{}?{query}", self.url),
            None => self.url.to_string(),
        };
        let key = hmac::Key::new(self.hash.algorithm(), key);
        let message = self.message(&[
            ("{body}", delivery.body),
            ("{timestamp}", time.unwrap_or("").as_bytes()),
            ("{id}", id.unwrap_or("").as_bytes()),
            ("{url}", url.as_bytes()),
            ("{form}", form.as_bytes()),
        ]);
        // All are compared, so that the time taken does not say which one fits.
        let mut fits = false;
        for signature in &signatures {
            fits |= hmac::verify(&key, &message, signature).is_ok();
        }
        if !fits {
            return Err(Refusal::Mismatch);
        }
        let is_near = |then| delivery.received_at.duration_since(then).abs() <= self.tolerance;
        if then.is_none_or(is_near) {
            Ok(())
        } else {
            Err(Refusal::Stale)
        }
    }

    /// The signatures among the parts of the header, as bytes.
    fn signatures(&self, parts: &[&str]) -> Result<Vec<Vec<u8>>, Refusal> {
        let signatures: Vec<Vec<u8>> = parts
            .iter()
            .filter_map(|text| text.trim().strip_prefix(&*self.prefix))
            .filter_map(|text| match self.encoding {
                Encoding::Hex => hex(text),
                Encoding::Base64 => base64(text),
            })
            .filter(|bytes| bytes.len() == self.hash.length())
            .collect();
        if signatures.is_empty() {
            Err(Refusal::Malformed)
        } else {
            Ok(signatures)
        }
    }

    /// What is signed, with its values in place.
    fn message<'b>(&self, values: &[(&str, &'b [u8])]) -> Cow<'b, [u8]> {
        if let ("{body}", [("{body}", body), ..]) = (&*self.signed, values) {
            return Cow::Borrowed(body);
        }
        let room: usize = values.iter().map(|(_, value)| value.len()).sum();
        let mut message = Vec::with_capacity(room + self.signed.len());
        let mut rest: &str = &self.signed;
        while let Some(at) = rest.find('{') {
            message.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            match values.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    message.extend_from_slice(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    message.push(b'{');
                    rest = &rest[1..];
                }
            }
        }
        message.extend_from_slice(rest.as_bytes());
        Cow::Owned(message)
    }

    /// Signs a body, for tests and for those who send.
    #[must_use]
    pub fn sign(&self, key: &[u8], body: &[u8], time: &str, id: &str) -> String {
        let key = hmac::Key::new(self.hash.algorithm(), key);
        let values = [
            ("{body}", body),
            ("{timestamp}", time.as_bytes()),
            ("{id}", id.as_bytes()),
        ];
        let tag = hmac::sign(&key, &self.message(&values));
        let written = match self.encoding {
            Encoding::Hex => HEXLOWER.encode(tag.as_ref()),
            Encoding::Base64 => STANDARD.encode(tag),
        };
        format!("{}{written}", self.prefix)
    }
}

/// A header that must be there, once.
fn one<'a>(delivery: &Delivery<'a>, name: &str) -> Result<&'a str, Refusal> {
    if delivery.headers.contains_key(name) {
        delivery.header(name).ok_or(Refusal::Malformed)
    } else {
        Err(Refusal::Missing)
    }
}

/// The fields of a form as Twilio signs them: by their names, each with its values. Of a body that is no form it signs the
/// hash, which stands in the query.
fn form_text(delivery: &Delivery<'_>) -> Result<String, Refusal> {
    let kind = delivery.header("content-type").unwrap_or_default();
    if kind
        .trim()
        .to_ascii_lowercase()
        .starts_with("application/x-www-form-urlencoded")
    {
        let mut fields: BTreeMap<Cow<'_, str>, BTreeSet<Cow<'_, str>>> = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(delivery.body) {
            fields.entry(name).or_default().insert(value);
        }
        let pairs = fields.iter();
        let pairs = pairs.flat_map(|(name, values)| values.iter().map(move |value| [name, value]));
        return Ok(pairs.flatten().map(|text| &**text).collect());
    }
    let query = delivery.query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, given) = pairs
        .find(|(name, _)| name == "bodySHA256")
        .ok_or(Refusal::Missing)?;
    let hash = digest::digest(&digest::SHA256, delivery.body);
    if hex(&given).as_deref() == Some(hash.as_ref()) {
        Ok(String::new())
    } else {
        Err(Refusal::Mismatch)
    }
}

/// Whether a text can be an id. Nothing in it looks like the start of a body, so a signature of one scheme
/// cannot be passed off as that of another.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'/');
    !text.is_empty() && text.len() <= MAX_ID_BYTES && text.bytes().all(fits)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let engines: [&GeneralPurpose; 4] = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    engines.iter().find_map(|engine| engine.decode(text).ok())
}
