//! What to do about each error of the YAML parser.

use granit_parser::ErrorKind;

/// For an error that nobody has met yet.
const UNKNOWN: &str = "look at this line and the one above it: a quote, bracket, colon or indentation is out of place";

const SPACES: &str = "indent with spaces; YAML does not allow tabs there";
const CLOSE_BRACKET: &str = "add the `]` or `}` that is missing, or put quotes around the text";
const CLOSE_QUOTE: &str = "add the quote that is missing at the end of the text";
const ALIGN: &str = "indent this line as far as the key above it";
const NO_DIRECTIVE: &str =
    "remove the line that begins with `%`, or put quotes around a text that begins with it";
const NO_TAG: &str = "remove the tag, or put quotes around a text that begins with `!`";
const NO_ANCHOR: &str =
    "put quotes around a text that begins with `&` or `*`; anchors and aliases are not allowed";
const QUOTE_START: &str = "put quotes around a text that begins with this character";
const ESCAPES: &str =
    "in double quotes, write `\\\\` for a backslash, or use single quotes, which take it as it is";
const SURROGATES: &str = "write the character itself, or its code as `\\U` and eight digits";
const CLOSE_OR_INDENT: &str = "add the quote that is missing at the end of the text above, or indent its lines further than its key";
const QUOTE_COLON: &str = "put quotes around a text that holds `: `";
const NEEDS_COLON: &str = "a key is followed by a colon and a space";
const OWN_LINES: &str = "put each key and each `- ` on a line of its own";
const SEPARATE: &str =
    "put a comma between the entries, and quotes around a text with a comma, a colon or a bracket";
const TEXT_FILE: &str = "save the file as plain text in UTF-8";

/// What to do about an error.
pub(super) fn for_syntax(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => SPACES,

        ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnclosedFlowCollection { .. } => CLOSE_BRACKET,
        ErrorKind::MisplacedFlowCollectionEnd => {
            "remove this bracket, or put quotes around the text that holds it"
        }
        ErrorKind::MismatchedFlowCollectionEnd { .. } => "close `[` with `]` and `{` with `}`",
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => {
            SEPARATE
        }
        ErrorKind::BlockEntryInFlowCollection
        | ErrorKind::PlainScalarStartsWithDashFlowIndicator => {
            "between brackets, write entries with commas and without `- `"
        }
        ErrorKind::FlowMappingValueAdjacentCollection
        | ErrorKind::InvalidMappingValueWhitespace => "put a space after the colon",
        ErrorKind::InvalidBlockEntryWhitespace => "put a space after the `-`",
        ErrorKind::ExpectedWhitespace => "put a space here",
        ErrorKind::CommentNotSeparated => {
            "put a space before the `#` of a comment, or quotes around a text that holds it"
        }
        ErrorKind::CommentInterceptedScalar => {
            "move the comment above the text, or put quotes around a text that holds `#`"
        }

        ErrorKind::UnclosedQuotedScalar => CLOSE_QUOTE,
        ErrorKind::DocumentIndicatorInQuotedScalar => {
            "add the quote that is missing above this line, or indent the `---` in the text"
        }
        // Usually the quote of a line above was not closed.
        ErrorKind::InvalidQuotedScalarIndent => CLOSE_OR_INDENT,
        ErrorKind::InvalidBlockScalarIndent | ErrorKind::InvalidFlowScalarIndent => {
            "indent the lines of this text further than its key"
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "put the whole value in quotes, and write `''` for a quote inside single quotes"
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "put the whole value in quotes, and write `\\\"` for a quote inside double quotes"
        }
        ErrorKind::UnknownQuotedScalarEscape => ESCAPES,
        ErrorKind::InvalidQuotedScalarHexEscape => {
            "write two digits after `\\x`, four after `\\u` and eight after `\\U`, or `\\\\` for a backslash"
        }
        ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => SURROGATES,

        ErrorKind::ZeroBlockScalarIndent => "write a digit from 1 to 9 after `|` or `>`, or none",
        ErrorKind::InvalidBlockScalarHeader => {
            "put the text on the lines below `|` or `>`, or put quotes around a text that begins with it"
        }

        ErrorKind::ExpectedBlockMappingKey => ALIGN,
        ErrorKind::InvalidIndentation => {
            "indent this line as far as the line above it that it belongs to"
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            "indent this line as far as the key above it, or begin it with `- `"
        }
        ErrorKind::BlockSequenceEntryNotAllowed => {
            "put the list on lines of its own below its key, or quotes around a text that begins with `- `"
        }
        ErrorKind::MappingKeyNotAllowed => OWN_LINES,
        ErrorKind::MappingValueNotAllowed => QUOTE_COLON,
        ErrorKind::InvalidColonPlacement => SEPARATE,
        ErrorKind::SimpleKeyExpected => NEEDS_COLON,
        ErrorKind::InvalidSimpleKey => {
            "write the key and its colon on one line; a key has at most 1,024 characters"
        }
        ErrorKind::ExpectedNodeContent => {
            "write a value here, or put quotes around a text that begins with this character"
        }
        ErrorKind::UnexpectedCharacter { .. } | ErrorKind::UnexpectedEndOfPlainScalar => {
            QUOTE_START
        }
        ErrorKind::UnexpectedEof
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::UnexpectedEofBlockMapping => {
            "the text ends too early; see whether the file is complete"
        }
        ErrorKind::ExpectedDocumentStart | ErrorKind::InvalidDocumentEnd => {
            "remove what follows the end of the document, or indent it so that it belongs to a key"
        }

        ErrorKind::DuplicateVersionDirective
        | ErrorKind::UnsupportedYamlMajorVersion
        | ErrorKind::DuplicateTagDirective
        | ErrorKind::MissingDocumentEndBeforeDirective
        | ErrorKind::ExpectedTagDirectiveBang
        | ErrorKind::InvalidDirectiveTerminator
        | ErrorKind::DirectiveDisallowed
        | ErrorKind::MissingYamlVersionSeparator
        | ErrorKind::MissingDirectiveName
        | ErrorKind::InvalidDirectiveName
        | ErrorKind::DirectiveByteLimitExceeded { .. }
        | ErrorKind::TooManyReservedDirectiveParams { .. }
        | ErrorKind::YamlVersionTooLong
        | ErrorKind::MissingYamlVersion
        | ErrorKind::InvalidTagDirectiveTerminator => NO_DIRECTIVE,

        ErrorKind::UndeclaredTagHandle
        | ErrorKind::ExpectedTagBang
        | ErrorKind::InvalidGlobalTagCharacter
        | ErrorKind::InvalidTagTerminator
        | ErrorKind::MissingTagUri
        | ErrorKind::UnclosedVerbatimTag
        | ErrorKind::InvalidTagEscape
        | ErrorKind::InvalidTagUtf8LeadingByte
        | ErrorKind::InvalidTagUtf8TrailingByte
        | ErrorKind::InvalidTagUtf8 => NO_TAG,

        ErrorKind::AnchorCountOverflow
        | ErrorKind::UnknownAnchor
        | ErrorKind::MissingAnchorOrAliasName => NO_ANCHOR,

        ErrorKind::MultipleDocumentsUnsupported => "split the file at `---`",
        ErrorKind::RecursionLimitExceeded => "nest lists and mappings less deeply",
        ErrorKind::BomInsideDocument
        | ErrorKind::InputIo { .. }
        | ErrorKind::InputDecoding { .. }
        | ErrorKind::InputOffsetsWithoutSlice
        | ErrorKind::InputSlicingUnavailable => TEXT_FILE,
        ErrorKind::InputByteLimitExceeded { .. } => "split the document or raise the size limit",
        // Errors of what is not used here, and those of later versions of the parser; a test tells us when one is met.
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read::{ReadErrorKind, ReadLimits, read};

    /// The first thing that is wrong with a text, and what to do about it.
    fn first(text: &str) -> Option<(ReadErrorKind, String, &'static str)> {
        let (_, errors) = read(text, &ReadLimits::default());
        let error = errors.into_iter().next()?;
        Some((error.kind, error.message, error.help))
    }

    #[test]
    fn what_people_mistype_has_an_answer() {
        let mut wrong = Vec::new();
        for (text, message, help) in [
            ("a: \"x\ny\"\n", "multiline quoted scalar", CLOSE_OR_INDENT),
            ("a: 'x\nb: y\n", "multiline quoted scalar", CLOSE_OR_INDENT),
            ("a: \"x\n", "multiline quoted scalar", CLOSE_OR_INDENT),
            ("\"a", "unclosed quote", CLOSE_QUOTE),
            ("a: 'it's'\n", "single-quoted", "`''`"),
            ("a: \"b\" c\n", "double-quoted", "whole value"),
            ("a: \"\\d+\"\n", "escape", ESCAPES),
            ("a: \"\\u12\"\n", "hexadecimal", "four after"),
            ("a: \"\\uD800\"\n", "surrogate", SURROGATES),
            ("a: [1, 2\n", "unclosed bracket", CLOSE_BRACKET),
            ("a: [1, 2}\n", "mismatched bracket", "close `[`"),
            ("a: 1]\nb: ]\n", "misplaced bracket", "remove this bracket"),
            ("a: {b: 1 c: 2}\n", "", SEPARATE),
            ("a: b: c\n", "mapping values", QUOTE_COLON),
            ("a: - b\n", "block sequence entries", "lines of its own"),
            ("a:\n\t- b\n", "tab", SPACES),
            ("a:\n  b: 1\n c: 2\n", "", "indent this line"),
            ("a:\n  - b\n  c: 1\n", "'-' indicator", "begin it with `- `"),
            ("a: @b\n", "unexpected character", QUOTE_START),
            ("a: `b`\n", "unexpected character", QUOTE_START),
            ("a: %b\n", "unexpected character", QUOTE_START),
            ("a: | text\n  more\n", "block scalar", "below `|`"),
            ("a: |0\n  x\n", "indentation indicator", "1 to 9"),
            ("a: 1\nb\n", "simple key", NEEDS_COLON),
            ("a: & b\n", "anchor or alias", NO_ANCHOR),
            ("a: !<x y\n", "verbatim tag", NO_TAG),
            ("%YAML 3.0\n---\na: 1\n", "major version", NO_DIRECTIVE),
            ("\"x\n---\ny\"\n", "document indicator", "add the quote"),
            ("a: [- b]\n", "", "without `- `"),
            ("a: 1\n... b\n", "document end", "remove what follows"),
        ] {
            let Some((kind, told, given)) = first(text) else {
                wrong.push(format!("{text:?} is fine"));
                continue;
            };
            if kind != ReadErrorKind::Syntax || !told.contains(message) || !given.contains(help) {
                wrong.push(format!("{text:?}: {told}: {given}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// A version of the parser with further errors fails here.
    #[test]
    fn no_broken_text_is_left_without_an_answer_of_its_own() {
        const PIECES: &[&str] = &[
            "a",
            "b: ",
            ": ",
            ":",
            "- ",
            "-",
            "\n",
            "\n  ",
            "\n ",
            " ",
            "\t",
            "\"",
            "'",
            "[",
            "]",
            "{",
            "}",
            ",",
            "#",
            " # c",
            "|",
            ">",
            "|0",
            "|2",
            "!",
            "!<",
            "!a!b",
            "!%zz",
            "&",
            "&x ",
            "*",
            "*x",
            "%",
            "\n%YAML 1.2\n",
            "%TAG ! x\n",
            "---",
            "\n---\n",
            "...",
            "\n...\n",
            "\\",
            "\\x",
            "\\uD800",
            "\\uDC00",
            "? ",
            "?",
            "@",
            "`",
            "\u{feff}",
            "ä",
            "\r\n",
            "1",
            "~",
            "<<: ",
        ];
        let mut state = 7_u64;
        let mut below = |most: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % most
        };
        let mut met = std::collections::BTreeSet::new();
        for _ in 0..20_000 {
            let length = 1 + below(9);
            let text: String = (0..length).map(|_| PIECES[below(PIECES.len())]).collect();
            let Some((kind, message, help)) = first(&text) else {
                continue;
            };
            assert_ne!(help, UNKNOWN, "{text:?}: {message}");
            assert!(!help.is_empty(), "{text:?}: {message}");
            if kind == ReadErrorKind::Syntax {
                met.insert(message);
            }
        }
        assert!(met.len() > 40, "only {} errors: {met:#?}", met.len());
    }
}
