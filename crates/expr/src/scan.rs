//! Bounds the shape of a source text before the parser sees it.
//!
//! The parser recurses per bracket and per `? :`, copies call chains as it goes,
//! and builds a tree as deep as a `1+1+…` is long. One pass over the text, with
//! a stack of its own, finds upper bounds for all of that; what is over them is
//! refused here, so nothing that recurses later can meet a deep tree.

use std::borrow::Cow;

use crate::ExprLimits;
use crate::error::{CompileError, CompileErrorKind};

/// What `has` of a bare name is called in the text the parser gets.
pub(crate) const IS_BOUND: &str = "__h";

/// Levels a macro such as `exists` adds to the tree, at most.
const MACRO_LEVELS: usize = 4;

/// What one pair of brackets, or the text as a whole, holds so far.
#[derive(Default)]
struct BracketLevel {
    open: usize,
    /// Levels the brackets themselves add to the tree.
    adds: usize,
    /// The operands since the last `&&`, `||`, comma or colon.
    run: CharRun,
    /// The deepest finished run of this comma-separated part.
    deepest_run: usize,
    logical: usize,
    ternaries: usize,
    nested_recursion: usize,
    /// The deepest finished part.
    depth: usize,
    recursion: usize,
}

#[derive(Default)]
struct CharRun {
    links: usize,
    nested: usize,
}

impl BracketLevel {
    fn end_run(&mut self) {
        let depth = self.run.links + self.run.nested;
        self.deepest_run = self.deepest_run.max(depth);
        self.run = CharRun::default();
    }

    fn end_part(&mut self) {
        self.end_run();
        // Chains of one logical operator come out of the parser as balanced trees.
        let logical = (usize::BITS - self.logical.leading_zeros()) as usize;
        self.depth = self.depth.max(self.deepest_run + self.ternaries + logical);
        self.recursion = self.recursion.max(self.ternaries + self.nested_recursion);
        (self.deepest_run, self.logical) = (0, 0);
        (self.ternaries, self.nested_recursion) = (0, 0);
    }
}

/// Where a text is in an operand, as far as its signs go: CEL's grammar has `!` of `!`s and `-` of `-`s, and neither of
/// the other, but for a negative number, which is a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signs {
    /// An operand may begin.
    Begin,
    /// After one `!` or more.
    Not,
    /// After one `-` or more.
    Minus,
    /// After `!-`, where only a number makes sense of the `-` at this position.
    NotMinus(usize),
    /// An operand was begun.
    Over,
}

/// Keeps a text to what CEL's grammar has and the parser does not mind.
struct PlainText<'s> {
    source: &'s str,
    signs: Signs,
}

impl PlainText<'_> {
    /// Looks at the token from `start` to `end`.
    fn token(&mut self, start: usize, end: usize) -> Result<(), CompileError> {
        let token = &self.source.as_bytes()[start..end];
        let refused = |at, message: &str| {
            Err(CompileError::new(CompileErrorKind::Syntax, message).at(self.source, at))
        };
        let first = token.first().copied().unwrap_or_default();
        if first == 0x0b {
            return refused(start, "unexpected character outside a text literal");
        }
        if first.is_ascii_whitespace() || token.starts_with(b"//") {
            return Ok(());
        }
        if token.starts_with(b"0X") {
            return refused(start, "hexadecimal numbers begin with `0x`");
        }
        let is_number = first.is_ascii_digit()
            || first == b'.'
                && self
                    .source
                    .as_bytes()
                    .get(end)
                    .is_some_and(u8::is_ascii_digit);
        let is_unsigned = is_number && matches!(token.last(), Some(b'u' | b'U'));
        if let Signs::NotMinus(at) = self.signs
            && (!is_number || is_unsigned)
        {
            return refused(at, "`-` cannot follow `!`; write `!(-…)`");
        }
        self.signs = match (token, self.signs) {
            (b"!", Signs::Minus) => {
                return refused(start, "`!` cannot follow `-`; write `-(!…)`");
            }
            (b"!", _) => Signs::Not,
            (b"-", Signs::Begin | Signs::Minus) => Signs::Minus,
            (b"-", Signs::Not) => Signs::NotMinus(start),
            (b")" | b"]" | b"}", _) => Signs::Over,
            (b"in", _) => Signs::Begin,
            _ if is_word(first) || is_number => Signs::Over,
            _ if matches!(first, b'\'' | b'"' | b'`') => Signs::Over,
            _ => Signs::Begin,
        };
        Ok(())
    }
}

/// Refuses a text that is too long, or whose tree would be too deep. Gives the
/// text to parse: `has(name)`, which the parser refuses though people write it,
/// is a call of [`IS_BOUND`] in it where that is allowed.
pub(crate) fn check<'s>(
    source: &'s str,
    limits: &ExprLimits,
    extended: bool,
) -> Result<Cow<'s, str>, CompileError> {
    if source.len() > limits.max_source_bytes {
        return Err(CompileError::new(
            CompileErrorKind::TooLarge,
            format!(
                "the expression has {} bytes; the limit is {}",
                source.len(),
                limits.max_source_bytes
            ),
        ));
    }
    let too_deep = |offset| {
        CompileError::new(
            CompileErrorKind::TooDeep,
            format!("the expression is nested deeper than {}", limits.max_depth),
        )
        .at(source, offset)
    };
    let bytes = source.as_bytes();
    let mut levels = vec![BracketLevel::default()];
    let mut has = Vec::new();
    let mut plain = PlainText {
        source,
        signs: Signs::Begin,
    };
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        let nested = levels.len() > 1;
        let Some(level) = levels.last_mut() else {
            break;
        };
        match byte {
            b'\'' | b'"' => at = after_text(source, start, false)?,
            b'`' => at = after(bytes, at, b"`"),
            b'/' if bytes.get(at) == Some(&b'/') => at = after(bytes, at, b"\n"),
            b'&' | b'|' if bytes.get(at) == Some(&byte) => {
                at += 1;
                level.logical += 1;
                level.end_run();
            }
            b',' => level.end_part(),
            b'?' => {
                level.ternaries += 1;
                level.end_run();
            }
            b':' => level.end_run(),
            b'(' | b'[' | b'{' => {
                let before = bytes[..start].trim_ascii_end().last();
                let adds = match before {
                    _ if byte != b'(' => 1,
                    Some(before) if is_word(*before) => MACRO_LEVELS,
                    // Parentheses that only group leave no trace in the tree.
                    _ => 0,
                };
                level.run.links += usize::from(byte == b'[');
                if levels.len() > limits.max_depth {
                    return Err(too_deep(start));
                }
                levels.push(BracketLevel {
                    open: start,
                    adds,
                    ..BracketLevel::default()
                });
            }
            b')' | b']' | b'}' if nested => {
                let Some(mut closed) = levels.pop() else {
                    break;
                };
                closed.end_part();
                if is_over(limits, &closed) {
                    return Err(too_deep(closed.open));
                }
                if let Some(level) = levels.last_mut() {
                    let depth = closed.depth + closed.adds;
                    level.run.nested = level.run.nested.max(depth);
                    level.nested_recursion = level.nested_recursion.max(closed.recursion + 1);
                }
            }
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'<' | b'>' | b'=' => {
                level.run.links += 1;
                // `<=`, `==` and the like are one link.
                if bytes.get(at) == Some(&b'=') {
                    at += 1;
                }
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                while bytes.get(at).is_some_and(|byte| is_word(*byte)) {
                    at += 1;
                }
                let word = &bytes[start..at];
                if word == b"in" {
                    level.run.links += 1;
                }
                if extended
                    && word == b"has"
                    && is_bare_name(&bytes[at..])
                    && !after_dot(&bytes[..start])
                {
                    has.push(start);
                }
                if let (Some(b'\'' | b'"'), true) = (bytes.get(at), word.len() <= 2) {
                    // A prefix: r, b or br, in either case. The parser would take rb too, which CEL does not have.
                    if word.eq_ignore_ascii_case(b"rb") {
                        let message = "bytes without escapes are written `br'…'`";
                        return Err(
                            CompileError::new(CompileErrorKind::Syntax, message).at(source, start)
                        );
                    }
                    let raw = word.iter().any(|byte| byte.eq_ignore_ascii_case(&b'r'));
                    at = after_text(source, at, raw)?;
                }
            }
            _ if !byte.is_ascii() => {
                return Err(CompileError::new(
                    CompileErrorKind::Syntax,
                    "unexpected character outside a text literal",
                )
                .at(source, start));
            }
            _ => {}
        }
        if !extended {
            plain.token(start, at)?;
        }
    }
    // Whatever is still open is a syntax error the parser will report, but it
    // counts here all the same.
    let (mut depth, mut recursion) = (0, 0);
    while let Some(mut level) = levels.pop() {
        level.run.nested = level.run.nested.max(depth);
        level.nested_recursion = level.nested_recursion.max(recursion);
        level.end_part();
        if is_over(limits, &level) {
            return Err(too_deep(level.open));
        }
        (depth, recursion) = (level.depth + level.adds, level.recursion + 1);
    }
    let mut parsed = Cow::Borrowed(source);
    for at in has {
        // As long as `has`, so that positions stay what they are.
        parsed.to_mut().replace_range(at..at + 3, IS_BOUND);
    }
    Ok(parsed)
}

/// Whether `(name)` is next.
fn is_bare_name(bytes: &[u8]) -> bool {
    let Some(inner) = bytes.trim_ascii_start().strip_prefix(b"(") else {
        return false;
    };
    let inner = inner.trim_ascii_start();
    let name = inner.iter().take_while(|byte| is_word(**byte)).count();
    name > 0 && inner[name..].trim_ascii_start().starts_with(b")")
}

fn after_dot(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b".")
}

/// The bound on depth is a rough one, twice what is allowed, because links that
/// sit side by side are counted as if they were nested; the exact depth is
/// checked on the tree.
fn is_over(limits: &ExprLimits, level: &BracketLevel) -> bool {
    level.depth > limits.max_depth.saturating_mul(2) || level.recursion > limits.max_depth
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The position after the text literal whose first quote is at `quote`.
fn after_text(source: &str, quote: usize, raw: bool) -> Result<usize, CompileError> {
    let bytes = source.as_bytes();
    let mark = bytes[quote];
    let triple = bytes[quote..].starts_with(&[mark; 3]);
    let end: &[u8] = if triple { &[mark; 3] } else { &[mark] };
    let mut at = quote + end.len();
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(end) {
            return Ok(at + end.len());
        } else if !triple && matches!(bytes[at], b'\n' | b'\r') {
            let message = "a text literal ends on its line; write \\n, or use three quotes";
            return Err(CompileError::new(CompileErrorKind::Syntax, message).at(source, at));
        } else {
            at += 1;
        }
    }
    Ok(bytes.len())
}

/// The position after the next `end`, or the end of the text.
fn after(bytes: &[u8], from: usize, end: &[u8]) -> usize {
    bytes[from..]
        .windows(end.len())
        .position(|window| window == end)
        .map_or(bytes.len(), |found| from + found + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(source: &str) -> Option<CompileErrorKind> {
        check(source, &ExprLimits::default(), true)
            .err()
            .map(|error| error.kind)
    }

    #[test]
    fn ordinary_texts_pass() {
        for source in [
            "",
            "a.b.c == 'x' && size(d) > 3",
            "r'\\' + \"\\\"((((\" // ((((",
            "'''it's''' + r\"\"\"a\\\"\"\"",
            "b'\\xff' == b\"\"",
            "'é' in ['ü']",
            ")))",
        ] {
            assert_eq!(kind(source), None, "{source}");
        }
        // Brackets in texts and comments are not brackets.
        assert_eq!(kind(&format!("'{}'", "(".repeat(2000))), None);
        assert_eq!(kind(&format!("1 // {}", "(".repeat(2000))), None);
        // Wide is not deep.
        assert_eq!(kind(&vec!["a.b == 1"; 400].join(" && ")), None);
        assert_eq!(kind(&format!("[{}]", vec!["a.b"; 2000].join(","))), None);
    }

    #[test]
    fn deep_texts_do_not() {
        let deep = Some(CompileErrorKind::TooDeep);
        assert_eq!(kind(&"(".repeat(10_000)), deep);
        assert_eq!(kind(&vec!["1"; 2000].join("+")), deep);
        assert_eq!(kind(&vec!["a"; 2000].join(".")), deep);
        assert_eq!(kind(&format!("a{}", ".f()".repeat(2000))), deep);
        assert_eq!(kind(&format!("a{}", "[0]".repeat(2000))), deep);
        assert_eq!(kind(&format!("{}a", "a?b:".repeat(2000))), deep);
        assert_eq!(kind(&format!("{}a", "!-".repeat(2000))), deep);
        assert_eq!(kind(&format!("{}a", "[a?".repeat(50))), deep);
        assert_eq!(kind(&"a ".repeat(9000)), Some(CompileErrorKind::TooLarge));
    }

    #[test]
    fn plain_texts_keep_to_the_grammar() {
        for (source, offset) in [
            ("0X1F", 0),
            ("a == 0X1Fu", 5),
            ("!-message.a", 1),
            ("a && ! - a", 7),
            ("-!message.a", 1),
            ("- // b\n !a", 8),
            ("[!-1u]", 2),
            ("!--1", 1),
            ("a \u{b}== 1", 2),
        ] {
            let error = check(source, &ExprLimits::default(), false).map(|_| ());
            let error = error.unwrap_err();
            assert_eq!(
                (error.kind, error.offset),
                (CompileErrorKind::Syntax, Some(offset)),
                "{source:?}"
            );
            assert_eq!(kind(source), None, "{source:?}");
        }
        for source in [
            "0x1F",
            "!-1",
            "!- 1.5",
            "!-.5",
            "--a",
            "!!a",
            "a -!b",
            "-(!a)",
            "!(-a)",
            "a[0] - -b",
            "1e-5 != -a",
            "a != -b",
            "'0X1F \u{b} !-a'",
            "a // \u{b} !-a",
        ] {
            let checked = check(source, &ExprLimits::default(), false);
            assert!(checked.is_ok(), "{source:?}");
        }
    }

    #[test]
    fn letters_belong_in_texts() {
        let error = check("a == é", &ExprLimits::default(), true).unwrap_err();
        assert_eq!(error.kind, CompileErrorKind::Syntax);
        assert_eq!(error.offset, Some(5));
    }
}
