//! In which form a canary was found, and how people are told.

use std::fmt;

use serde::Serialize;

/// How a text was made from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryEncoding {
    /// Base64, of either alphabet.
    Base64,
    /// Base32.
    Base32,
    /// Two hexadecimal digits per byte.
    Hex,
    /// `%41`.
    Percent,
    /// `\u0041`, `\x41`, `\n`.
    Backslash,
    /// `&#65;`.
    HtmlEntity,
    /// From the end to the beginning.
    Reversed,
    /// Every letter by the one thirteen places on.
    Rot13,
    /// The numbers of the characters: `67 65 78`.
    CharacterCodes,
    /// Compressed: zlib or gzip.
    Compressed,
}

/// How the characters of the canary stood there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryShape {
    /// As they were written.
    AsWritten,
    /// In upper or lower case.
    CaseFolded,
    /// With something between them, or without the separators of the canary.
    Split,
    /// In letters that look like it: of another alphabet, width or style.
    Lookalikes,
    /// In several values that follow each other.
    SplitOverValues,
    /// In several messages.
    SplitOverMessages,
}

/// The form in which a canary was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CanaryForm {
    /// The encodings, outermost first.
    pub encodings: Vec<CanaryEncoding>,
    /// What stood below them.
    pub shape: CanaryShape,
}

impl CanaryEncoding {
    /// What comes before the name of what was encoded.
    fn prefix(self) -> &'static str {
        match self {
            Self::Base64 => "base64 of ",
            Self::Base32 => "base32 of ",
            Self::Hex => "hex of ",
            Self::Percent => "percent-encoded ",
            Self::Backslash => "backslash-escaped ",
            Self::HtmlEntity => "HTML-escaped ",
            Self::Reversed => "reversed ",
            Self::Rot13 => "rot13 of ",
            Self::CharacterCodes => "character codes of ",
            Self::Compressed => "compressed ",
        }
    }
}

impl CanaryForm {
    /// The form and the canary in words: `base64 of CANARY-1`, `CANARY-1 split by separators`.
    #[must_use]
    pub fn describe(&self, canary: &str) -> String {
        let suffix = match self.shape {
            CanaryShape::AsWritten if self.encodings.is_empty() => " as written",
            CanaryShape::AsWritten => "",
            CanaryShape::CaseFolded => " in another letter case",
            CanaryShape::Split => " split by separators",
            CanaryShape::Lookalikes => " in look-alike characters",
            CanaryShape::SplitOverValues => " split over several values",
            CanaryShape::SplitOverMessages => " split over several messages",
        };
        let encodings = self.encodings.iter().map(|encoding| encoding.prefix());
        encodings.chain([canary, suffix]).collect()
    }
}

impl fmt::Display for CanaryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe("the canary"))
    }
}
