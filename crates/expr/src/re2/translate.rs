//! Reads a pattern as RE2 does and writes it in the dialect of the engine.
//!
//! The two are close relatives, linear-time both, but not the same language: in RE2 `\d`, `\w`,
//! `\s`, `\b` and `\B` are ASCII, `[` inside a class is a character, `\Q…\E` quotes, `\p{^Lu}` negates, and
//! repetition operators do not stack. What a document means here is what it means in every other RE2 tool.

use std::fmt::Write as _;

use regex_syntax::hir::{Hir, HirKind};

use super::everyday;

/// The largest compiled size a pattern may reach.
pub(super) const SIZE_LIMIT: usize = 2 << 20;
/// The longest pattern that is looked at.
const MAX_BYTES: usize = 16 << 10;
/// The deepest nesting of groups.
const NEST_LIMIT: u32 = 100;
/// RE2's bound on `{n}`.
const MAX_REPEAT: u32 = 1000;
/// Estimates up to which a pattern always fits [`SIZE_LIMIT`], and from which it never does.
const CERTAINLY_SMALL: u64 = 2_000;
const CERTAINLY_TOO_LARGE: u64 = 300_000;
const TOO_LARGE: &str = "too large when compiled";

/// Categories of characters, as RE2 spells them.
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd",
    "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z",
    "Zl", "Zp", "Zs",
];
/// The named classes of ASCII.
const ASCII_CLASSES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Why a pattern is not an RE2 regular expression we accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Re2Error {
    /// Whether RE2 or only we refuse it.
    pub kind: Re2ErrorKind,
    /// What is wrong.
    pub message: String,
    /// Which bytes of the pattern are to blame.
    pub range: std::ops::Range<usize>,
}

/// Who refuses a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Re2ErrorKind {
    /// It is not RE2.
    Syntax,
    /// It is RE2, but over a limit of ours: its length, the depth of its groups, or its size when compiled.
    Limit,
}

impl std::fmt::Display for Re2Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Re2Error {}

/// Checks that a pattern compiles. Only the few whose size is in doubt are compiled, and no more
/// than `budget` of them: each takes milliseconds, and a document may hold fifty thousand.
///
/// # Errors
///
/// Returns why it does not.
pub fn check(pattern: &str, budget: &mut usize) -> Result<(), Re2Error> {
    if everyday::is_everyday(pattern) {
        return Ok(());
    }
    let hir = parse(pattern)?;
    let states = estimate(&hir);
    if states > CERTAINLY_TOO_LARGE {
        return Err(too_large(pattern.len()));
    }
    if states > CERTAINLY_SMALL {
        let Some(left) = budget.checked_sub(1) else {
            return Err(limit(
                pattern.len(),
                "one too many large expressions in a document",
            ));
        };
        *budget = left;
        super::Re2Pattern::compile(pattern)?;
    }
    Ok(())
}

/// Whether a pattern has a capture group.
///
/// # Errors
///
/// Returns why it is not RE2.
pub fn has_captures(pattern: &str) -> Result<bool, Re2Error> {
    parse(pattern).map(|hir| hir.properties().explicit_captures_len() > 0)
}

/// Parses a pattern into the engine's form.
pub(super) fn parse(pattern: &str) -> Result<Hir, Re2Error> {
    let translated = translate(pattern)?;
    let hir = regex_syntax::ParserBuilder::new()
        .nest_limit(NEST_LIMIT)
        // Only `\B` looks between the bytes of a character; see `Re2Pattern`.
        .utf8(false)
        .build()
        .parse(&translated)
        .map_err(|error| engine_error(pattern, &error))?;
    if !repeats_within(&hir, MAX_REPEAT) {
        return Err(whole(pattern, "repetition counts above 1000 together"));
    }
    Ok(hir)
}

fn engine_error(pattern: &str, error: &regex_syntax::Error) -> Re2Error {
    let too_deep = matches!(error, regex_syntax::Error::Parse(error)
        if matches!(error.kind(), regex_syntax::ast::ErrorKind::NestLimitExceeded(_)));
    let mut found = whole(pattern, &last_line(&error.to_string()));
    if too_deep {
        found.kind = Re2ErrorKind::Limit;
    }
    found
}

/// The engine's messages draw the pattern; only the reason is wanted here.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn whole(pattern: &str, message: &str) -> Re2Error {
    Re2Error {
        kind: Re2ErrorKind::Syntax,
        message: message.to_owned(),
        range: 0..pattern.len(),
    }
}

/// A pattern of `length` bytes is over a limit of ours.
fn limit(length: usize, message: &str) -> Re2Error {
    Re2Error {
        kind: Re2ErrorKind::Limit,
        message: message.to_owned(),
        range: 0..length,
    }
}

pub(super) fn too_large(length: usize) -> Re2Error {
    limit(length, TOO_LARGE)
}

/// Whether no counts multiply to more than `left`, as RE2 demands.
fn repeats_within(hir: &Hir, left: u32) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => true,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            times <= left && repeats_within(&repetition.sub, left / times)
        }
        HirKind::Capture(capture) => repeats_within(&capture.sub, left),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(|part| repeats_within(part, left))
        }
    }
}

/// A rough upper bound on the number of states, cheap enough for every pattern.
fn estimate(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => 2 + class.ranges().len() as u64,
        HirKind::Class(_) => 2,
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min + 1).max(1));
            estimate(&repetition.sub).saturating_mul(times)
        }
        HirKind::Capture(capture) => 2 + estimate(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(estimate).fold(1, u64::saturating_add)
        }
    }
}

/// Rewrites an RE2 pattern in the engine's dialect, that of the `regex` crate for bytes.
///
/// # Errors
///
/// Returns what RE2 would refuse, as far as it shows without parsing.
pub fn translate(pattern: &str) -> Result<String, Re2Error> {
    if pattern.len() > MAX_BYTES {
        let message = format!("longer than {MAX_BYTES} bytes");
        return Err(limit(pattern.len(), &message));
    }
    let mut reader = PatternReader {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        repeated: false,
    };
    while reader.at < pattern.len() {
        reader.item()?;
    }
    Ok(reader.out)
}

struct PatternReader<'p> {
    pattern: &'p str,
    at: usize,
    out: String,
    /// Whether the last thing written was a repetition operator.
    repeated: bool,
}

impl PatternReader<'_> {
    fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    fn error<T>(&self, from: usize, length: usize, message: &str) -> Result<T, Re2Error> {
        let to = (from + length).min(self.pattern.len());
        Err(Re2Error {
            kind: Re2ErrorKind::Syntax,
            message: message.to_owned(),
            range: from..to,
        })
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn item(&mut self) -> Result<(), Re2Error> {
        let start = self.at;
        let was_repeated = std::mem::take(&mut self.repeated);
        let Some(c) = self.next() else { return Ok(()) };
        match c {
            '\\' => self.escape(start),
            '[' => self.class(start),
            '(' if self.rest().starts_with('?') => self.group_flags(start),
            '*' | '+' | '?' => self.repeat(start, was_repeated, None),
            '{' => match parse_counts(&self.pattern[start..]) {
                Some((counts, length)) => {
                    self.at = start + length;
                    self.repeat(start, was_repeated, Some(counts))
                }
                None => {
                    self.out.push_str("\\{");
                    Ok(())
                }
            },
            '}' => {
                self.out.push_str("\\}");
                Ok(())
            }
            c => {
                self.out.push(c);
                Ok(())
            }
        }
    }

    fn repeat(
        &mut self,
        start: usize,
        was_repeated: bool,
        counts: Option<(u32, Option<u32>)>,
    ) -> Result<(), Re2Error> {
        if was_repeated {
            return self.error(
                start,
                self.at - start,
                "repetition operators cannot be stacked; RE2 has no possessive quantifiers",
            );
        }
        if let Some((low, high)) = counts {
            if low > MAX_REPEAT || high.is_some_and(|high| high > MAX_REPEAT) {
                return self.error(start, self.at - start, "repetition count above 1000");
            }
            if high.is_some_and(|high| high < low) {
                return self.error(start, self.at - start, "repetition counts in wrong order");
            }
        }
        if self.rest().starts_with('?') {
            self.at += 1;
        }
        self.out.push_str(&self.pattern[start..self.at]);
        self.repeated = true;
        Ok(())
    }

    fn group_flags(&mut self, start: usize) -> Result<(), Re2Error> {
        for (lead, message) in [
            ("?=", "look-ahead is not part of RE2"),
            ("?!", "look-ahead is not part of RE2"),
            ("?<=", "look-behind is not part of RE2"),
            ("?<!", "look-behind is not part of RE2"),
            ("?>", "atomic groups are not part of RE2"),
            ("?P=", "back-references are not part of RE2"),
            ("?P>", "recursion is not part of RE2"),
            ("?#", "comments are not part of RE2"),
            ("?|", "branch reset groups are not part of RE2"),
        ] {
            if self.rest().starts_with(lead) {
                return self.error(start, lead.len() + 1, message);
            }
        }
        if self.rest().starts_with("?P<") || self.rest().starts_with("?<") {
            self.out.push('(');
            return Ok(());
        }
        // Flags end at `)` or `:`; RE2 knows i, m, s and U.
        let flags = &self.rest()[1..];
        let end = flags.find([')', ':']).unwrap_or(flags.len());
        if let Some(odd) = flags[..end]
            .chars()
            .find(|c| !matches!(c, 'i' | 'm' | 's' | 'U' | '-'))
        {
            return self.error(
                start,
                end + 3,
                &format!("unknown flag `{odd}`; RE2 has i, m, s, U"),
            );
        }
        self.out.push('(');
        Ok(())
    }

    /// An escape outside a class; the backslash has been read.
    fn escape(&mut self, start: usize) -> Result<(), Re2Error> {
        let Some(c) = self.next() else {
            return self.error(start, 1, "trailing backslash");
        };
        match c {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str("[\\t\\n\\x0C\\r ]"),
            'S' => self.out.push_str("[^\\t\\n\\x0C\\r ]"),
            'b' => self.out.push_str("(?-u:\\b)"),
            'B' => self.out.push_str("(?-u:\\B)"),
            'A' | 'z' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'p' | 'P' => return self.property(start),
            'Q' => {
                let (quoted, length) = match self.rest().find("\\E") {
                    Some(end) => (&self.rest()[..end], end + 2),
                    None => (self.rest(), self.rest().len()),
                };
                let escaped = regex_syntax::escape(quoted);
                self.out.push_str(&escaped);
                self.at += length;
            }
            'E' => {}
            'C' => return self.error(start, 2, "`\\C` would match a part of a character"),
            '1'..='9' if !self.rest().starts_with(|c: char| c.is_digit(8)) => {
                return self.error(start, 2, "back-references are not part of RE2");
            }
            c => {
                let code = self.character(start, c)?;
                self.literal(code);
            }
        }
        Ok(())
    }

    /// `\pN`, `\p{Name}`, `\p{^Name}` and their negations: a category or a script. The engine knows more properties, and
    /// is more lenient about how they are spelled.
    fn property(&mut self, start: usize) -> Result<(), Re2Error> {
        let mut negated = self.pattern[start..].starts_with("\\P");
        let from = self.at;
        let name = match self.next() {
            Some('{') => match self.rest().find('}') {
                Some(end) => {
                    let name = &self.pattern[self.at..self.at + end];
                    self.at += end + 1;
                    name
                }
                None => return self.error(start, 3, "unclosed Unicode property"),
            },
            Some(_) => &self.pattern[from..self.at],
            None => return self.error(start, 2, "unfinished Unicode property"),
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                negated = !negated;
                name
            }
            None => name,
        };
        let sign = if negated { 'P' } else { 'p' };
        if CATEGORIES.contains(&name) || name == "Any" {
            let _ = write!(self.out, "\\{sign}{{{name}}}");
        } else if name == "Cs" {
            // Surrogates are no characters of a text.
            self.out
                .push_str(if negated { "\\p{Any}" } else { "\\P{Any}" });
        } else if is_script_name(name) {
            let _ = write!(self.out, "\\{sign}{{Script={name}}}");
        } else {
            return self.error(start, self.at - start, "unknown Unicode property");
        }
        Ok(())
    }

    /// An escape that stands for one character; backslash and `c` have been read.
    fn character(&mut self, start: usize, c: char) -> Result<char, Re2Error> {
        let code = match c {
            'a' => 7,
            'f' => 12,
            't' => 9,
            'n' => 10,
            'r' => 13,
            'v' => 11,
            '0'..='7' => {
                let mut code = c as u32 - '0' as u32;
                for _ in 0..2 {
                    let Some(digit) = self.rest().chars().next().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                code
            }
            'x' => self.hexadecimal(start)?,
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => c as u32,
            c => return self.error(start, 1 + c.len_utf8(), "unknown escape"),
        };
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.error(start, self.at - start, "not a character"),
        }
    }

    fn hexadecimal(&mut self, start: usize) -> Result<u32, Re2Error> {
        let (digits, length) = match self.rest().strip_prefix('{') {
            Some(rest) => match rest.find('}') {
                Some(end) => (&rest[..end], end + 2),
                None => return self.error(start, 3, "unclosed hexadecimal escape"),
            },
            None => (self.rest().get(..2).unwrap_or_default(), 2),
        };
        match u32::from_str_radix(digits, 16) {
            Ok(code) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                self.at += length;
                Ok(code)
            }
            _ => self.error(start, 2, "malformed hexadecimal escape"),
        }
    }

    fn literal(&mut self, c: char) {
        let _ = write!(self.out, "\\x{{{:X}}}", u32::from(c));
    }

    /// A bracketed class; the `[` has been read.
    ///
    /// A class with `\W` in it holds nearly all characters, and the engine would look up the other case of each of
    /// them. So `[\W_]` is written as what it leaves out: all but the word characters that are no `_`.
    fn class(&mut self, start: usize) -> Result<(), Re2Error> {
        let before = std::mem::take(&mut self.out);
        let is_negated = self.rest().starts_with('^');
        if is_negated {
            self.at += 1;
        }
        let left_out = self.class_items(start)?;
        let items = std::mem::replace(&mut self.out, before);
        let is_complement = is_negated != left_out.is_some();
        self.out.push_str(if is_complement { "[^" } else { "[" });
        match left_out {
            None => self.out.push_str(&items),
            Some(set) if items.is_empty() => self.out.push_str(set),
            Some(set) => {
                let _ = write!(self.out, "[{set}]--[{items}]");
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// What stands in a class, up to its `]`; returns what the first of its negated shorthands leaves out, which is
    /// not written.
    fn class_items(&mut self, start: usize) -> Result<Option<&'static str>, Re2Error> {
        let mut left_out = None;
        let mut first = true;
        loop {
            if self.rest().starts_with(']') && !first {
                self.at += 1;
                return Ok(left_out);
            }
            first = false;
            if self.at >= self.pattern.len() {
                return self.error(start, 1, "unclosed character class");
            }
            // The end is looked for behind `[:`, so that `[[:]` is a class of two characters.
            if let Some(named) = self.rest().strip_prefix("[:")
                && let Some((name, _)) = named.split_once(":]")
            {
                let length = "[::]".len() + name.len();
                if !ASCII_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return self.error(self.at, length, "unknown class of characters");
                }
                self.out.push_str(&self.pattern[self.at..self.at + length]);
                self.at += length;
                continue;
            }
            if let Some(set) = self.negated_shorthand()
                && left_out.is_none_or(|other| other == set)
            {
                self.at += 2;
                left_out = Some(set);
                continue;
            }
            self.class_item(start)?;
        }
    }

    /// What the negated shorthand leaves out that is next.
    fn negated_shorthand(&self) -> Option<&'static str> {
        let letter = self.rest().strip_prefix('\\')?.bytes().next()?;
        match letter {
            b'D' => Some("0-9"),
            b'W' => Some("0-9A-Za-z_"),
            b'S' => Some("\\t\\n\\x0C\\r "),
            _ => None,
        }
    }

    fn class_item(&mut self, class: usize) -> Result<(), Re2Error> {
        let start = self.at;
        if self.rest().starts_with('\\') {
            let shorthand = match self.rest().as_bytes().get(1) {
                Some(b'd') => Some("0-9"),
                Some(b'D') => Some("[^0-9]"),
                Some(b'w') => Some("0-9A-Za-z_"),
                Some(b'W') => Some("[^0-9A-Za-z_]"),
                Some(b's') => Some("\\t\\n\\x0C\\r "),
                Some(b'S') => Some("[^\\t\\n\\x0C\\r ]"),
                Some(b'p' | b'P') => {
                    self.at += 2;
                    return self.property(start);
                }
                _ => None,
            };
            if let Some(shorthand) = shorthand {
                self.at += 2;
                self.out.push_str(shorthand);
                return Ok(());
            }
        }
        let low = self.class_character(class)?;
        self.literal(low);
        if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
            self.at += 1;
            if self.at >= self.pattern.len() {
                return self.error(class, 1, "unclosed character class");
            }
            let high = self.class_character(class)?;
            if high < low {
                return self.error(start, self.at - start, "character range in wrong order");
            }
            self.out.push('-');
            self.literal(high);
        }
        Ok(())
    }

    fn class_character(&mut self, class: usize) -> Result<char, Re2Error> {
        let start = self.at;
        match self.next() {
            Some('\\') => match self.next() {
                Some(c) => self.character(start, c),
                None => self.error(class, 1, "unclosed character class"),
            },
            Some(c) => Ok(c),
            None => self.error(class, 1, "unclosed character class"),
        }
    }
}

/// Whether a name is spelled as those of scripts are, `Greek` or `Old_Italic`.
fn is_script_name(name: &str) -> bool {
    name.split('_').all(|word| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.len() > 1
            && word.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

/// Reads `{n}`, `{n,}` or `{n,m}`; anything else is literal text to RE2.
fn parse_counts(text: &str) -> Option<((u32, Option<u32>), usize)> {
    let end = text.find('}')?;
    let inner = &text[1..end];
    let number = |part: &str| -> Option<u32> {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| part.parse().unwrap_or(u32::MAX))
    };
    let counts = match inner.split_once(',') {
        None => {
            let count = number(inner)?;
            (count, Some(count))
        }
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
    };
    Some((counts, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::re2::{MatchBudget, Re2Pattern};
    use proptest::prelude::*;

    fn compile(pattern: &str) -> Result<Re2Pattern, Re2Error> {
        Re2Pattern::compile(pattern)
    }

    #[test]
    fn classes_with_negated_shorthands_hold_what_they_say() {
        type Holds = fn(char) -> bool;
        fn word(c: char) -> bool {
            c.is_ascii_alphanumeric() || c == '_'
        }
        // The long s and the sign for Kelvin are other cases of letters of ASCII.
        fn folded(c: char) -> bool {
            word(c) || matches!(c, '\u{17f}' | '\u{212a}')
        }
        fn space(c: char) -> bool {
            matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ')
        }
        let cases: [(&str, Holds); 11] = [
            (r"[\W]", |c| !word(c)),
            (r"[\W_]", |c| !word(c) || c == '_'),
            (r"[^\W_]", |c| word(c) && c != '_'),
            (r"[\s\S]", |_| true),
            (r"[^\s\S]", |_| false),
            (r"[\W\Wa]", |c| !word(c) || c == 'a'),
            (r"[\D\W5]", |c| !c.is_ascii_digit() || c == '5'),
            (r"[\S\t-\n]", |c| !space(c) || matches!(c, '\t' | '\n')),
            (r"(?i)[\W_]", |c| !folded(c) || c == '_'),
            (r"(?i)[\Wk]", |c| {
                !folded(c) || matches!(c, 'k' | 'K' | '\u{212a}')
            }),
            (r"(?i)[^\Wk]", |c| {
                folded(c) && !matches!(c, 'k' | 'K' | '\u{212a}')
            }),
        ];
        for (pattern, holds) in cases {
            let compiled = compile(&format!("^{pattern}$")).unwrap();
            for c in '\0'..='\u{2fff}' {
                let found = compiled.is_match(&c.to_string(), &mut MatchBudget::default());
                assert_eq!(found.unwrap(), holds(c), "{pattern} {c:?}");
            }
        }
    }

    #[test]
    fn means_what_re2_means() {
        for (pattern, text, expected) in [
            (r"\d", "٣", false),
            (r"\d", "3", true),
            (r"\w", "é", false),
            (r"\W", "é", true),
            (r"\s", "\u{a0}", false),
            (r"\S", "\u{a0}", true),
            (r"\bcaf\b", "café", true),
            (r"a\Bb", "ab", true),
            (r"[[]", "[", true),
            (r"[a&&b]", "&", true),
            (r"[a-]", "-", true),
            (r"[+--]", ",", true),
            (r"[]a]", "]", true),
            (r"[^]a]", "]", false),
            (r"[[:alpha:]_]+", "ab_", true),
            (r"[[:]", ":", true),
            (r"o^[[:]+$", "o:", false),
            (r"[a:[lph[:]][^]a-]", ":]b", true),
            (r"[\d-]", "-", true),
            (r"[\W]", "é", true),
            (r"[\]]", "]", true),
            (r"[\x41-\x{43}]", "B", true),
            (r"\Qa.b\E+", "a.bb", true),
            (r"\Qa.b", "axb", false),
            (r"x{,3}", "x{,3}", true),
            (r"{", "{", true),
            (r"a{2}", "aa", true),
            (r"a{2,3}?", "aaa", true),
            (r"\<b\>", "<b>", true),
            (r"\_\/\-", "_/-", true),
            (r"\101\60", "A0", true),
            (r"\x41\x{1F600}", "A😀", true),
            (r"\a\f\t\n\r\v", "\u{7}\u{c}\t\n\r\u{b}", true),
            (r"(?i)ABC", "abc", true),
            (r"(?i:A)b", "ab", true),
            (r"(?s)a.b", "a\nb", true),
            (r"(?P<n>a)(?<m>b)", "ab", true),
            (r"\pL\p{Greek}\PN", "aαx", true),
            (r"[\pL]+", "é", true),
            (r"\p{^Greek}\P{^N}", "a7", true),
            (r"[\p{^Lu}]", "A", false),
            (r"\p{Any}\P{Cs}\p{Old_Italic}?", "ab", true),
            (r"\p{Cs}", "a", false),
            (r"\B", "aéa", false),
            (r"\B", "aéé", true),
            (r"^a$|\Ab\z", "b", true),
            (r"a # b", "a # b", true),
            (r"", "x", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            let found = regex.is_match(text, &mut MatchBudget::default());
            assert_eq!(found, Ok(expected), "{pattern} on {text:?}");
            assert!(check(pattern, &mut 1).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn refuses_what_re2_refuses_and_says_where() {
        for (pattern, shown, message) in [
            ("[unclosed", "[", "unclosed character class"),
            ("x[a-", "[", "unclosed"),
            ("x[a\\", "[", "unclosed"),
            ("(?=a)", "(?=", "look-ahead"),
            ("(?!a)", "(?!", "look-ahead"),
            ("x(?<=a)", "(?<=", "look-behind"),
            ("(?<!a)", "(?<!", "look-behind"),
            ("(?>a)", "(?>", "atomic"),
            ("(?P=n)", "(?P=", "back-reference"),
            (r"(a)\1", r"\1", "back-reference"),
            ("a++", "+", "stacked"),
            ("a**", "*", "stacked"),
            ("a{2}{3}", "{3}", "stacked"),
            ("a{1001}", "{1001}", "above 1000"),
            ("a{3,2}", "{3,2}", "wrong order"),
            ("[b-a]", "b-a", "wrong order"),
            ("(?x)a", "(?x)", "unknown flag"),
            (r"\C", r"\C", "part of a character"),
            (r"\q", r"\q", "unknown escape"),
            (r"\u0041", r"\u", "unknown escape"),
            (r"\x4", r"\x", "hexadecimal"),
            (r"\x{110000}", r"\x{110000}", "not a character"),
            (r"\x{41", r"\x{", "unclosed hexadecimal"),
            ("\\", "\\", "trailing backslash"),
            (r"\p{", r"\p{", "unclosed Unicode"),
            (r"\p", r"\p", "unfinished"),
            ("(a", "(a", "unclosed group"),
            ("a)", "a)", "unopened group"),
            ("*a", "*a", "missing expression"),
            (r"\p{Nope}", r"\p{Nope}", "property"),
            (r"x\p{Alphabetic}", r"x\p{Alphabetic}", "property"),
            (r"\p{Letter}", r"\p{Letter}", "property"),
            (r"x\p{greek}", r"\p{greek}", "property"),
            (r"x\p{sc=Greek}", r"\p{sc=Greek}", "property"),
            (r"x[a[:nope:]]", "[:nope:]", "unknown class"),
            ("(a{100}){11}", "(a{100}){11}", "together"),
        ] {
            let error = check(pattern, &mut 1).unwrap_err();
            assert!(
                error.message.contains(message),
                "{pattern}: {}",
                error.message
            );
            assert_eq!(&pattern[error.range.clone()], shown, "{pattern}");
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn fat_and_deep_patterns_are_refused() {
        let deep = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
        for pattern in [r"\pL{900}", r"(\pL{30}){30}", &"a".repeat(20_000), &deep] {
            assert!(check(pattern, &mut 1).is_err());
            assert!(compile(pattern).is_err());
        }
        let error = compile(r"\pL{900}").unwrap_err();
        assert!(error.message.contains("too large") && error.kind == Re2ErrorKind::Limit);
    }

    #[test]
    fn only_so_many_are_compiled() {
        let mut budget = 1;
        assert!(check("a", &mut budget).is_ok());
        assert!(check(r"\pL{900}", &mut budget).is_err());
        assert_eq!(budget, 1);
        assert!(check("([a-cx-z]{500}){2}", &mut budget).is_ok());
        assert_eq!(budget, 0);
        let error = check("([a-cx-z]{500}){2}", &mut budget).unwrap_err();
        assert!(error.message.contains("too many"));
        assert!(check("a", &mut budget).is_ok());
    }

    #[test]
    fn counts_capture_groups() {
        assert_eq!(has_captures("a(b)"), Ok(true));
        assert_eq!(has_captures("(?P<n>b)"), Ok(true));
        assert_eq!(has_captures("a(?:b)"), Ok(false));
        assert!(has_captures("(").is_err());
    }

    proptest! {
        #[test]
        fn checking_agrees_with_compiling(pattern in r"([a-c.\\()\[\]{}*+?|^$0-9,:=!<>PQEdwsbx-]|\\PC){0,16}") {
            prop_assert_eq!(check(&pattern, &mut 1).is_ok(), compile(&pattern).is_ok());
        }
    }
}
