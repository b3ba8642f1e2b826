//! Undoes what a text may be encoded with: escapes, runs of base64 or hex, and compression below them.

use std::io::Read as _;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::{GzDecoder, ZlibDecoder};
use memchr::memchr;

use super::form::CanaryEncoding;

/// Runs that are shorter hold no encoding of an encoding of a canary.
pub(super) const MIN_RUN: usize = 16;

/// Base64 as it is cut out of a text: without padding, and with bits left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The character that an escape stands for, none where it is a separator, and the length of the escape; nothing where there
/// is no escape.
type EscapeRead = Option<(Option<char>, usize)>;

/// A way to write single characters.
pub(super) struct Escape {
    pub(super) encoding: CanaryEncoding,
    /// What every escape begins with.
    mark: u8,
    read: fn(&[u8]) -> EscapeRead,
}

/// The escapes that are known.
pub(super) const ESCAPES: &[Escape] = &[
    Escape {
        encoding: CanaryEncoding::Percent,
        mark: b'%',
        read: percent,
    },
    Escape {
        encoding: CanaryEncoding::Backslash,
        mark: b'\\',
        read: backslash,
    },
    Escape {
        encoding: CanaryEncoding::HtmlEntity,
        mark: b'&',
        read: entity,
    },
    Escape {
        encoding: CanaryEncoding::Hex,
        mark: b'0',
        read: prefixed_byte,
    },
];

impl Escape {
    /// The text without its escapes; nothing where it has none.
    pub(super) fn decode(&self, text: &str) -> Option<String> {
        let bytes = text.as_bytes();
        let mut out: Option<Vec<u8>> = None;
        let (mut at, mut copied) = (0, 0);
        while let Some(found) = memchr(self.mark, &bytes[at..]) {
            at += found;
            let Some((character, length)) = (self.read)(&bytes[at..]) else {
                at += 1;
                continue;
            };
            let out = out.get_or_insert_with(|| Vec::with_capacity(bytes.len()));
            out.extend_from_slice(&bytes[copied..at]);
            match character {
                // A percent escape is a byte, which may be a part of a character.
                Some(c) if self.encoding == CanaryEncoding::Percent => {
                    out.push(u8::try_from(u32::from(c)).unwrap_or(b' '));
                }
                Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => out.push(b' '),
            }
            at += length;
            copied = at;
        }
        let mut out = out?;
        out.extend_from_slice(&bytes[copied..]);
        Some(to_text(out))
    }
}

pub(super) fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
    is_number
        .then(|| u32::from_str_radix(text, radix).ok())
        .flatten()
}

fn character(digits: &[u8], radix: u32) -> Option<Option<char>> {
    number(digits, radix).map(char::from_u32)
}

/// `%41`.
fn percent(text: &[u8]) -> EscapeRead {
    Some((character(text.get(1..3)?, 16)?, 3))
}

/// `\x41`, `\u0041`, `\u{41}`, `\101`, `\n`.
fn backslash(text: &[u8]) -> EscapeRead {
    let is_octal = |digits: &&[u8]| digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    if let Some(digits) = text.get(1..4).filter(is_octal) {
        return Some((character(digits, 8)?.filter(char::is_ascii), 4));
    }
    match text.get(1)? {
        b'x' => Some((character(text.get(2..4)?, 16)?, 4)),
        b'u' if text.get(2) == Some(&b'{') => {
            let end = text.iter().take(12).position(|byte| *byte == b'}')?;
            Some((character(text.get(3..end)?, 16)?, end + 1))
        }
        b'u' => Some((character(text.get(2..6)?, 16)?, 6)),
        b'n' | b'r' | b't' | b'b' | b'f' | b'0' => Some((None, 2)),
        _ => None,
    }
}

/// `&#65;`, `&#x41;`; an entity with a name is a separator.
fn entity(text: &[u8]) -> EscapeRead {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let name = text.get(1..end)?;
    let meant = match name {
        [b'#', b'x' | b'X', digits @ ..] => character(digits, 16)?,
        [b'#', digits @ ..] => character(digits, 10)?,
        _ if name.len() > 1 && name.iter().all(u8::is_ascii_alphabetic) => None,
        _ => return None,
    };
    Some((meant, end + 1))
}

/// `0x41` where no third digit follows: a byte in a list of them.
fn prefixed_byte(text: &[u8]) -> EscapeRead {
    let is_byte =
        matches!(text.get(1)?, b'x' | b'X') && !text.get(4).is_some_and(u8::is_ascii_hexdigit);
    let meant = is_byte.then(|| character(text.get(2..4)?, 16)).flatten()?;
    // What stands between the bytes of a list would split a character.
    Some((meant.filter(char::is_ascii), 4))
}

/// A run of characters that base64 or hex may be made of.
pub(super) struct Run<'r> {
    /// The text in which it begins.
    pub(super) text: usize,
    /// Its characters without line breaks, those of the URL alphabet as those of the standard one.
    pub(super) characters: &'r [u8],
}

/// Calls `each` with every run that is long enough, until it says that it has seen enough. A run goes on after a line
/// break and in the next text.
pub(super) fn runs(texts: &[&str], mut each: impl FnMut(&Run<'_>) -> bool) {
    let mut run: Vec<u8> = Vec::new();
    let mut begun = 0;
    for (index, text) in texts.iter().enumerate() {
        // Spaces after a line break indent it; others end a run.
        let mut broken = true;
        for byte in text.bytes() {
            let character = match byte {
                b'-' => b'+',
                b'_' => b'/',
                _ => byte,
            };
            match character {
                b'+' | b'/' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                    if run.is_empty() {
                        begun = index;
                    }
                    run.push(character);
                    broken = false;
                }
                b'\n' | b'\r' => broken = true,
                b' ' | b'\t' if broken => {}
                // Characters that cannot be seen are between others for no good reason.
                0x80.. => {}
                _ => {
                    let characters = run.as_slice();
                    if characters.len() >= MIN_RUN
                        && !each(&Run {
                            text: begun,
                            characters,
                        })
                    {
                        return;
                    }
                    run.clear();
                    broken = false;
                }
            }
        }
    }
    if run.len() >= MIN_RUN {
        each(&Run {
            text: begun,
            characters: &run,
        });
    }
}

impl Run<'_> {
    /// How many ways there are to read it.
    pub(super) const READINGS: usize = 6;

    /// One way to read it: as base64 from one of its first four characters, or as hex from one of its first two.
    pub(super) fn decode(&self, reading: usize) -> Option<(CanaryEncoding, Vec<u8>)> {
        let (encoding, bytes) = if reading < 4 {
            let characters = self.characters.get(reading..)?;
            // One character alone is no byte.
            let cut = characters.len() - usize::from(characters.len() % 4 == 1);
            (
                CanaryEncoding::Base64,
                BASE64.decode(&characters[..cut]).ok()?,
            )
        } else {
            let characters = self.characters.get(reading - 4..)?;
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            if !characters.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let pairs = characters.chunks_exact(2);
            let bytes = pairs.filter_map(|pair| {
                let byte = digit(&pair[0])? * 16 + digit(&pair[1])?;
                u8::try_from(byte).ok()
            });
            (CanaryEncoding::Hex, bytes.collect())
        };
        Some((encoding, bytes))
    }
}

/// What bytes hold that were compressed with zlib or gzip, at most `limit` bytes; nothing where they were not.
#[expect(
    clippy::disallowed_methods,
    reason = "the readers are taken: they end at the limit"
)]
pub(super) fn inflate(bytes: &[u8], limit: usize) -> Option<String> {
    let [first, second, ..] = bytes else {
        return None;
    };
    let is_gzip = [*first, *second] == [0x1f, 0x8b];
    let is_zlib = first & 15 == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0;
    let limit = limit.try_into().unwrap_or(u64::MAX);
    let mut plain = Vec::new();
    // What was read before something went wrong was there all the same.
    if is_gzip {
        let _ = GzDecoder::new(bytes).take(limit).read_to_end(&mut plain);
    } else if is_zlib {
        let _ = ZlibDecoder::new(bytes).take(limit).read_to_end(&mut plain);
    }
    (!plain.is_empty()).then(|| to_text(plain))
}
