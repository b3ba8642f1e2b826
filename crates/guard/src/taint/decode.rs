//! What a text decodes to: runs of base64 and hex in it, its percent escapes, those of JSON and of HTML, and what is left without
//! characters that nobody sees. One layer, within bounds.

use std::fmt;

use proofhouse_protocol::base64;
use proofhouse_source::is_invisible;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::TaintForm;

/// Shorter runs decode to next to nothing.
const MIN_RUN: usize = 12;

/// How many bytes of one text are decoded.
const MAX_BYTES: usize = 256 << 10;

/// Longer ones stand for no letter.
const MAX_ENTITY: usize = 12;

/// The entities that may stand in a name or an address.
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("colon", ':'),
    ("commat", '@'),
    ("dash", '-'),
    ("gt", '>'),
    ("hyphen", '-'),
    ("lowbar", '_'),
    ("lt", '<'),
    ("nbsp", ' '),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("equals", '='),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// Calls `found` with every text that hides in another one.
pub(super) fn each(text: &str, found: &mut dyn FnMut(TaintForm, &str)) {
    // A long number that was written as `1e8` is the same as one that is all digits.
    let digits = text.strip_suffix(".0").filter(|digits| {
        digits.len() >= super::MIN_NUMBER && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if let Some(digits) = digits {
        found(TaintForm::Verbatim, digits);
    }
    if let Some(plain) = percent(text) {
        found(TaintForm::Percent, &plain);
    }
    if let Some(plain) = json(text) {
        found(TaintForm::Json, &plain);
    }
    if let Some(plain) = plain_letters(text) {
        found(TaintForm::Unicode, &plain);
    }
    let unescaped = entities(text);
    if let Some(plain) = visible(unescaped.as_deref().unwrap_or(text)) {
        found(TaintForm::Invisible, &plain);
    } else if let Some(plain) = unescaped {
        found(TaintForm::Entities, &plain);
    }
    let mut left = MAX_BYTES;
    let runs = text.as_bytes().split(|byte| !is_of_run(*byte));
    // What is short in whole is short in parts.
    let runs = runs.filter(|run| run.len() >= MIN_RUN);
    let runs = runs.filter_map(|run| str::from_utf8(run).ok());
    for run in runs.flat_map(segments) {
        if run.len() < MIN_RUN || run.len() > left {
            continue;
        }
        left -= run.len();
        let readings = [
            (TaintForm::Hex, hex(run)),
            (TaintForm::Base64, sixty_four(run)),
        ];
        for (form, bytes) in readings {
            let plain = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(plain) = plain.filter(|plain| !plain.chars().any(is_noise)) {
                found(form, &plain);
            }
        }
    }
}

/// The text with ASCII in place of letters and digits that are the same in another shape, if it has any: full-width, mathematical and
/// circled ones.
fn plain_letters(text: &str) -> Option<String> {
    if text.is_ascii() || text.len() > MAX_BYTES || !text.chars().any(|c| ascii_of(c).is_some()) {
        return None;
    }
    let plain = text.chars().map(|c| ascii_of(c).unwrap_or(c));
    Some(plain.filter(|c| !is_invisible(*c)).collect())
}

/// The character of ASCII that another one is a shape of.
fn ascii_of(c: char) -> Option<char> {
    let code = u32::from(c);
    let letter = |index: u32| {
        let base = if index < 26 { 'A' } else { 'a' };
        char::from_u32(u32::from(base) + index % 26)
    };
    match code {
        0xff01..=0xff5e => char::from_u32(code - 0xfee0),
        0x3002 | 0xff61 => Some('.'),
        0x24b6..=0x24e9 => letter(code - 0x24b6),
        0x1d400..=0x1d6a3 => letter((code - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => char::from_u32(u32::from('0') + (code - 0x1d7ce) % 10),
        _ => None,
    }
}

/// The text without characters that cannot be seen, if it has any: they cut a word in two for readers of letters alone.
fn visible(text: &str) -> Option<String> {
    // All of them take more than a byte.
    if text.is_ascii() || text.len() > MAX_BYTES || !text.chars().any(is_invisible) {
        return None;
    }
    Some(text.chars().filter(|c| !is_invisible(*c)).collect())
}

/// The text without the entities of HTML that may stand in a name or an address, if it has any.
fn entities(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES || !text.contains('&') {
        return None;
    }
    let (mut plain, mut rest, mut any) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = rest.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        match length.and_then(|length| Some((entity(&rest[1..length])?, length))) {
            Some((c, length)) => {
                plain.push(c);
                rest = &rest[length + 1..];
                any = true;
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    any.then_some(plain)
}

/// The character of an entity, by what stands between `&` and `;`.
fn entity(name: &str) -> Option<char> {
    let number = |digits: &str, radix| {
        let is_sign = digits.starts_with('+');
        char::from_u32(
            u32::from_str_radix(digits, radix)
                .ok()
                .filter(|_| !is_sign)?,
        )
    };
    if let Some(digits) = name.strip_prefix('#') {
        return match digits.strip_prefix(['x', 'X']) {
            Some(digits) => number(digits, 16),
            None => number(digits, 10),
        };
    }
    let named = ENTITIES.iter().find(|(known, _)| *known == name);
    named.map(|(_, c)| *c)
}

/// What a text says that is JSON with escapes: its keys and values, one on a line.
fn json(text: &str) -> Option<String> {
    let is_json = text.trim_start().starts_with(['{', '[', '"']);
    // Other escapes stand for what is no part of a word.
    let is_escape = |pair: &[u8]| matches!(pair, [b'\\', b'b' | b'f' | b'n' | b'r' | b't' | b'u']);
    if !is_json || text.len() > MAX_BYTES || !text.as_bytes().windows(2).any(is_escape) {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    JsonWords(&mut plain).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(plain)
}

/// Collects the words of JSON as they come; keys that come twice count twice.
struct JsonWords<'w>(&'w mut String);

impl JsonWords<'_> {
    fn push(&mut self, word: &str) {
        self.0.push_str(word);
        self.0.push('\n');
    }
}

impl<'de> DeserializeSeed<'de> for JsonWords<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonWords<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.push(&value.to_string());
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.push(&value.to_string());
        Ok(())
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<(), E> {
        self.push(&value.to_string());
        Ok(())
    }

    fn visit_str<E>(mut self, value: &str) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(JsonWords(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(JsonWords(self.0))?.is_some() {
            members.next_value_seed(JsonWords(self.0))?;
        }
        Ok(())
    }
}

/// A run, and its parts: a slash may belong to base64, and to an address around it.
fn segments(run: &str) -> impl Iterator<Item = &str> {
    std::iter::once(run).chain(run.split('/').filter(move |part| *part != run))
}

fn is_of_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// What no text has that somebody encoded.
fn is_noise(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

fn hex(run: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let digits: Vec<u8> = run.as_bytes().iter().map(digit).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| {
        let pairs = digits.chunks_exact(2);
        pairs.map(|pair| pair[0] << 4 | pair[1]).collect()
    })
}

fn sixty_four(run: &str) -> Option<Vec<u8>> {
    let plain: String = run
        .chars()
        .map(|c| match c {
            '+' => '-',
            '/' => '_',
            c => c,
        })
        .collect();
    base64::decode_url_safe(&plain)
}

/// The text without percent escapes, if it has any.
fn percent(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES || !text.contains('%') {
        return None;
    }
    let bytes = text.as_bytes();
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let (mut plain, mut at, mut any) = (Vec::with_capacity(bytes.len()), 0, false);
    while let Some(byte) = bytes.get(at) {
        if let (b'%', Some(high), Some(low)) =
            (*byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2)))
            && let Ok(value) = u8::try_from(high * 16 + low)
        {
            plain.push(value);
            at += 3;
            any = true;
        } else {
            plain.push(if *byte == b'+' { b' ' } else { *byte });
            at += 1;
        }
    }
    any.then(|| String::from_utf8(plain).ok()).flatten()
}
