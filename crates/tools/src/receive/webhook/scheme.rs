//! Signature schemes: one table with a row per scheme, and one way to check them all.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ring::hmac;

use super::Delivery;
use super::keys::Refusal;

/// How far a signed time may be from ours, in both directions.
pub const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);
/// A header of signatures holds a few of some hundred bytes; more is no signature.
const MAX_HEADER_BYTES: usize = 4_096;
/// How many signatures of one header are looked at. Platforms send two while they rotate a secret.
const MAX_SIGNATURES: usize = 16;
/// The longest id that is signed along.
const MAX_ID_BYTES: usize = 256;

/// How a platform signs what it sends. All schemes are HMACs that differ in what is signed and how it is
/// written, so one description fits them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// Its name in the operator's file.
    pub name: Cow<'static, str>,
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
    /// What is signed: text, `{body}`, `{timestamp}` and `{id}`.
    pub signed: Cow<'static, str>,
    /// The header with the time, in whole seconds since 1970.
    pub timestamp_header: Option<Cow<'static, str>>,
    /// The header with the id, where the signature covers it.
    pub id_header: Option<Cow<'static, str>>,
    /// The header in which the platform names a delivery without signing the name.
    pub unsigned_id_header: Option<Cow<'static, str>>,
    /// Whether a secret of a manifest may be one of it. Not for a scheme whose parts the operator must tell first.
    pub is_for_manifests: bool,
    /// Whether secrets are base64, perhaps after `whsec_`.
    pub base64_secrets: bool,
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

/// The schemes that have a name. `hmac` is the one whose parts the operator configures.
pub static SCHEMES: [Scheme; 4] = [
    Scheme {
        name: text("github"),
        header: text("x-hub-signature-256"),
        prefix: text("sha256="),
        separator: None,
        encoding: Encoding::Hex,
        hash: Hash::Sha256,
        signed: text("{body}"),
        timestamp_header: None,
        id_header: None,
        unsigned_id_header: Some(text("x-github-delivery")),
        is_for_manifests: true,
        base64_secrets: false,
    },
    Scheme {
        name: text("standard"),
        header: text("webhook-signature"),
        prefix: text("v1,"),
        separator: Some(' '),
        encoding: Encoding::Base64,
        hash: Hash::Sha256,
        signed: text("{id}.{timestamp}.{body}"),
        timestamp_header: Some(text("webhook-timestamp")),
        id_header: Some(text("webhook-id")),
        unsigned_id_header: None,
        is_for_manifests: true,
        base64_secrets: true,
    },
    Scheme {
        name: text("slack"),
        header: text("x-slack-signature"),
        prefix: text("v0="),
        separator: None,
        encoding: Encoding::Hex,
        hash: Hash::Sha256,
        signed: text("v0:{timestamp}:{body}"),
        timestamp_header: Some(text("x-slack-request-timestamp")),
        id_header: None,
        unsigned_id_header: None,
        is_for_manifests: true,
        base64_secrets: false,
    },
    Scheme {
        name: text("hmac"),
        header: text("x-signature"),
        prefix: text(""),
        separator: None,
        encoding: Encoding::Hex,
        hash: Hash::Sha256,
        signed: text("{body}"),
        timestamp_header: None,
        id_header: None,
        unsigned_id_header: None,
        is_for_manifests: false,
        base64_secrets: false,
    },
];

/// Why a scheme or a secret cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// A signature that does not cover the body says nothing about it.
    #[error("what is signed must hold `{{body}}`")]
    NoBody,
    /// A time that is not signed can be changed by anyone.
    #[error("`timestamp_header` is given, and what is signed does not hold `{{timestamp}}`")]
    TimestampNotSigned,
    /// There is nothing to put in.
    #[error("what is signed holds `{{timestamp}}`, and there is no `timestamp_header`")]
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
        if !holds("{body}") {
            return Err(SchemeError::NoBody);
        }
        match (holds("{timestamp}"), &self.timestamp_header) {
            (true, None) => return Err(SchemeError::NoTimestampHeader),
            (false, Some(_)) => return Err(SchemeError::TimestampNotSigned),
            _ => {}
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

    /// Whether the delivery id is covered by the signature, so that a replay cannot change it.
    #[must_use]
    pub fn signs_id(&self) -> bool {
        self.id_header.is_some()
    }

    /// Checks a delivery with one key. The signature is compared in constant time, and before the time: only
    /// who can sign learns that a time is off.
    pub(super) fn verify(&self, delivery: &Delivery<'_>, key: &[u8]) -> Result<(), Refusal> {
        let signatures = self.signatures(delivery)?;
        let time = match &self.timestamp_header {
            Some(header) => Some(one(delivery, header)?),
            None => None,
        };
        let id = match &self.id_header {
            Some(header) => Some(one(delivery, header)?),
            None => None,
        };
        let seconds = time.map(seconds).transpose()?;
        if id.is_some_and(|id| !is_id(id)) {
            return Err(Refusal::Malformed);
        }
        let key = hmac::Key::new(self.hash.algorithm(), key);
        let message = self.message(delivery.body, time.unwrap_or(""), id.unwrap_or(""));
        // All are compared, so that the time taken does not say which one fits.
        let mut fits = false;
        for signature in &signatures {
            fits |= hmac::verify(&key, &message, signature).is_ok();
        }
        if !fits {
            return Err(Refusal::Mismatch);
        }
        let is_near = |seconds| {
            let then = Timestamp::from_second(seconds).ok()?;
            Some(delivery.received_at.duration_since(then).abs() <= TOLERANCE)
        };
        match seconds.map(is_near) {
            None | Some(Some(true)) => Ok(()),
            Some(_) => Err(Refusal::Stale),
        }
    }

    /// The signatures of the header, as bytes.
    fn signatures(&self, delivery: &Delivery<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
        let header = one(delivery, &self.header)?;
        if header.len() > MAX_HEADER_BYTES {
            return Err(Refusal::Malformed);
        }
        let written: Vec<&str> = match self.separator {
            Some(separator) => header.split(separator).take(MAX_SIGNATURES).collect(),
            None => vec![header],
        };
        let signatures: Vec<Vec<u8>> = written
            .into_iter()
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
    fn message<'b>(&self, body: &'b [u8], time: &str, id: &str) -> Cow<'b, [u8]> {
        if self.signed == "{body}" {
            return Cow::Borrowed(body);
        }
        let mut message = Vec::with_capacity(body.len() + self.signed.len() + id.len() + 16);
        let mut rest: &str = &self.signed;
        while let Some(at) = rest.find('{') {
            message.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            let values: [(&str, &[u8]); 3] = [
                ("{body}", body),
                ("{timestamp}", time.as_bytes()),
                ("{id}", id.as_bytes()),
            ];
            match values.into_iter().find(|(name, _)| rest.starts_with(name)) {
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
        let tag = hmac::sign(&key, &self.message(body, time, id));
        let written = match self.encoding {
            Encoding::Hex => tag.as_ref().iter().fold(String::new(), |mut text, byte| {
                text.push_str(&format!("{byte:02x}"));
                text
            }),
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

/// Whole seconds, as platforms write them.
fn seconds(text: &str) -> Result<i64, Refusal> {
    let plain = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(seconds) if plain => Ok(seconds),
        _ => Err(Refusal::Malformed),
    }
}

/// Whether a text can be an id. Nothing in it looks like the start of a body, so a signature of one scheme
/// cannot be passed off as that of another.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'/');
    !text.is_empty() && text.len() <= MAX_ID_BYTES && text.bytes().all(fits)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let engines: [&GeneralPurpose; 4] = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    engines.iter().find_map(|engine| engine.decode(text).ok())
}
