//! Texts that must be there for a regular expression to match, so that most expressions never run.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The longest literal that is searched for; more adds states but hardly any selectivity.
const MAX_LENGTH: usize = 24;
/// The shortest literal worth searching for.
const MIN_LENGTH: usize = 2;
/// The most alternatives one expression may ask for.
const MAX_ALTERNATIVES: usize = 64;

/// Characters beyond ASCII that fold to an ASCII letter. A text that holds one of them can match
/// without holding the ASCII literal, so it is judged without the literals.
pub(super) const FOLDS_TO_ASCII: [&str; 2] = ["\u{17f}", "\u{212a}"];

/// Lower-case literals of which every match holds at least one, whatever its ASCII case; `None`
/// when there is no useful set. The pattern is in the engine's syntax.
pub(super) fn required(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let hir = regex_syntax::ParserBuilder::new()
        .nest_limit(100)
        .utf8(false)
        .build()
        .parse(pattern)
        .ok()?;
    let mut literals = required_of(&hir)?;
    literals.sort_unstable();
    literals.dedup();
    let useful = literals.iter().all(|literal| literal.len() >= MIN_LENGTH);
    useful.then_some(literals)
}

fn required_of(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => None,
        HirKind::Literal(_) | HirKind::Class(_) => {
            let mut run = Vec::new();
            extend(&mut run, hir).then(|| vec![cut(run)])
        }
        HirKind::Capture(capture) => required_of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min >= 1 => required_of(&repetition.sub),
        HirKind::Repetition(_) => None,
        HirKind::Alternation(branches) => {
            let mut all = Vec::new();
            for branch in branches {
                all.extend(required_of(branch)?);
                if all.len() > MAX_ALTERNATIVES {
                    return None;
                }
            }
            Some(all)
        }
        HirKind::Concat(parts) => best_of(parts),
    }
}

/// The most selective requirement among the parts of a sequence: a run of literal characters, or
/// what one of the other parts requires.
fn best_of(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let mut candidates: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut run = Vec::new();
    for part in parts {
        if extend(&mut run, part) {
            continue;
        }
        if !run.is_empty() {
            candidates.push(vec![cut(std::mem::take(&mut run))]);
        }
        candidates.extend(required_of(part));
    }
    if !run.is_empty() {
        candidates.push(vec![cut(run)]);
    }
    candidates.into_iter().max_by_key(|set| {
        let shortest = set.iter().map(Vec::len).min().unwrap_or(0);
        // Longer is better; among equals, fewer alternatives.
        (shortest, usize::MAX - set.len())
    })
}

/// Adds a part to a run of literal characters, if it is one.
fn extend(run: &mut Vec<u8>, hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => {
            run.extend(literal.0.iter().map(u8::to_ascii_lowercase));
            true
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut letter = None;
            for range in class.ranges() {
                for c in range.start()..=range.end() {
                    if FOLDS_TO_ASCII.iter().any(|odd| odd.starts_with(c)) {
                        continue;
                    }
                    let folded = c.to_ascii_lowercase();
                    if !c.is_ascii() || letter.is_some_and(|letter| letter != folded) {
                        return false;
                    }
                    letter = Some(folded);
                }
            }
            let Some(letter) = letter else { return false };
            run.extend(letter.to_string().bytes());
            true
        }
        HirKind::Capture(capture) => extend(run, &capture.sub),
        _ => false,
    }
}

fn cut(mut run: Vec<u8>) -> Vec<u8> {
    // The end of a run is as good as its start; the start keeps it simple.
    run.truncate(MAX_LENGTH);
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(pattern: &str) -> Option<Vec<String>> {
        required(pattern).map(|set| {
            set.into_iter()
                .map(|literal| String::from_utf8_lossy(&literal).into_owned())
                .collect()
        })
    }

    #[test]
    fn finds_what_every_match_holds() {
        for (pattern, expected) in [
            ("id_rsa|passwd", Some(vec!["id_rsa", "passwd"])),
            (
                "(429|rate limit|delegate.*analytics)",
                Some(vec!["429", "analytics", "rate limit"]),
            ),
            ("(?i)secret", Some(vec!["secret"])),
            ("(?i)Key=[0-9]+", Some(vec!["key="])),
            ("a[0-9]+secret[0-9]", Some(vec!["secret"])),
            ("(abc)+", Some(vec!["abc"])),
            ("x(foo|bar)y", Some(vec!["bar", "foo"])),
            ("[Aa][Bb][Cc]", Some(vec!["abc"])),
            ("(abc)?", None),
            ("[0-9]{16}", None),
            ("a|[0-9]", None),
            (".*", None),
            ("^$", None),
            ("é+", Some(vec!["é"])),
            ("(", None),
        ] {
            let expected =
                expected.map(|set| set.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }
}
