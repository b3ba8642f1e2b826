//! Reading JSON from outside so that as much of it as possible is judged, and telling what was done.

use serde_json::Value;

use super::item::{LineError, LineErrorKind};
use super::repair::{Repairs, repair};
use super::value::{Hidden, MAX_READINGS, parse, parse_start};

/// What has to be told about a line that was kept.
#[derive(Debug, Default)]
pub(crate) struct RepairNotes {
    pub(crate) repairs: Repairs,
    /// About keys that came twice.
    twice: Option<String>,
    /// Whether some of their values are not judged.
    left_out: bool,
}

impl RepairNotes {
    /// The other readings of a value, and the notes they ask for.
    pub(crate) fn readings(&mut self, value: &Value, hidden: &Hidden) -> Vec<Value> {
        if hidden.is_empty() {
            return Vec::new();
        }
        self.twice.get_or_insert_with(|| hidden.describe());
        let readings = hidden.readings(value);
        self.left_out |= !readings.complete;
        readings.others
    }

    /// Notes that a name came twice where names are not keys of objects.
    pub(crate) fn twice(&mut self, what: String, complete: bool) {
        self.twice.get_or_insert(what);
        self.left_out |= !complete;
    }

    /// The problems to report, which come before the messages of the line.
    pub(crate) fn problems(self, line: u64) -> impl Iterator<Item = LineError> {
        let problem = move |kind, message| LineError {
            line,
            kind,
            message,
        };
        let repaired = (!self.repairs.is_empty())
            .then(|| problem(LineErrorKind::Repaired, self.repairs.to_string()));
        let twice = self
            .twice
            .map(|message| problem(LineErrorKind::DuplicateKey, message));
        let left_out = self.left_out.then(|| {
            problem(
                LineErrorKind::NotAMessage,
                format!(
                    "keys come again so often that there are more than {MAX_READINGS} ways to read it; the others are not judged"
                ),
            )
        });
        [repaired, twice, left_out].into_iter().flatten()
    }
}

/// Reads a text; what is refused is mended and tried again. The error is that of the first try.
pub(crate) fn read_mended<T>(
    text: &str,
    repairs: &mut Repairs,
    read: impl Fn(&str) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let error = match read(text) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let mut done = Repairs::default();
    let found = repair(text, &mut done).and_then(|mended| read(&mended).ok());
    let found = found.ok_or(error)?;
    repairs.add(&done);
    Ok(found)
}

/// Reads JSON that came over a wire, as leniently as traces are read: bytes that are not UTF-8 and half characters
/// become U+FFFD, numbers that JSON has not become texts, and what lies too deep is kept as its text. The second value
/// says what was mended, if anything was.
///
/// # Errors
///
/// Returns the error of the strict reader when nothing can mend the text.
///
/// ```
/// use serde_json::json;
///
/// let (value, mended) = proofhouse_detect::read_lenient(br#"{"a": "\ud800"}"#).unwrap();
/// assert_eq!(value, json!({"a": "\u{fffd}"}));
/// assert!(mended.unwrap().contains("lone surrogates"));
/// assert!(proofhouse_detect::read_lenient(b"<html>").is_err());
/// ```
pub fn read_lenient(bytes: &[u8]) -> Result<(Value, Option<String>), serde_json::Error> {
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    let mut repairs = Repairs::default();
    let text = String::from_utf8_lossy(bytes);
    if let Err(wrong) = std::str::from_utf8(bytes) {
        repairs.not_utf8 = Some(wrong.valid_up_to() + 1);
    }
    match read_mended(&text, &mut repairs, |text| serde_json::from_str(text)) {
        Ok(value) => Ok((value, Some(repairs.to_string()))),
        Err(_) => Err(error),
    }
}

/// Every reading of a JSON text, the usual one first.
pub(crate) fn parse_all(
    text: &str,
    notes: &mut RepairNotes,
) -> Result<Vec<Value>, serde_json::Error> {
    all_readings(text, notes, parse)
}

/// Every reading of the JSON at the beginning of a text, whatever comes after it.
pub(crate) fn parse_first(
    text: &str,
    notes: &mut RepairNotes,
) -> Result<Vec<Value>, serde_json::Error> {
    all_readings(text, notes, parse_start)
}

fn all_readings(
    text: &str,
    notes: &mut RepairNotes,
    parse: fn(&str) -> Result<(Value, Hidden), serde_json::Error>,
) -> Result<Vec<Value>, serde_json::Error> {
    let (value, hidden) = read_mended(text, &mut notes.repairs, parse)?;
    let others = notes.readings(&value, &hidden);
    let mut all = vec![value];
    all.extend(others);
    Ok(all)
}
