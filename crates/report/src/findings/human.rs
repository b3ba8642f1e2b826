//! Findings for people: the line in the source, underlined, and what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, Span, is_invisible, is_variation_selector, printable,
    printable_line,
};

use super::{Checked, FindingTotals};
use crate::text::{plural, push_line};

/// How many findings of one document are shown; the other formats have them all.
const MAX_SHOWN: usize = 100;

/// The findings of all files, and how many there are. Colours are taken out by the stream where nobody can see them.
#[must_use]
pub fn text(checked: &[Checked]) -> String {
    let mut text = String::new();
    for shown in checked.iter().flat_map(findings) {
        push_line(&mut text, &shown);
        text.push('\n');
    }
    push_line(&mut text, &summary_line(FindingTotals::of(checked)));
    text
}

/// The findings of one document, each ready to be printed, and how many are left out.
#[must_use]
pub fn findings(file: &Checked) -> Vec<String> {
    // Colours are stripped by the stream where nobody can see them.
    let renderer = Renderer::styled().term_width(100);
    let shown = file.findings.iter().take(MAX_SHOWN);
    let mut shown: Vec<String> = shown
        .map(|finding| render(&renderer, file, finding))
        .collect();
    if let Some(more) = file
        .findings
        .len()
        .checked_sub(MAX_SHOWN)
        .filter(|more| *more > 0)
    {
        let name = printable_line(&file.name);
        shown.push(format!(
            "{name}: and {more} more; `--format json` shows all of them"
        ));
    }
    shown
}

fn render(renderer: &Renderer, file: &Checked, finding: &Diagnostic) -> String {
    let level = match finding.severity {
        DiagnosticSeverity::Error => Level::ERROR,
        DiagnosticSeverity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(printable(&finding.message))
        .id(finding.code);
    let path = finding.path.as_deref().map(printable).unwrap_or_default();
    let name = printable_line(&file.name);
    let shown = finding
        .span
        .map(|span| (span.line, ShownLine::new(&file.text, span)));
    let mut group = match &shown {
        Some((line, shown)) => title.element(
            Snippet::source(shown.line.as_str())
                .line_start(*line)
                .path(name.as_str())
                .annotation(
                    AnnotationKind::Primary
                        .span(shown.range.clone())
                        .label(path),
                ),
        ),
        None => Group::with_title(title).element(Origin::path(name.as_str())),
    };
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    renderer.render(&[group])
}

/// The line a span is on, made fit for a terminal, and the place in it.
struct ShownLine {
    line: String,
    range: std::ops::Range<usize>,
}

impl ShownLine {
    fn new(text: &str, span: Span) -> Self {
        // A span of another file, or of a text that was not kept, is shown at the nearest place there is.
        let offset = text.floor_char_boundary(span.offset);
        let (before, after) = text.split_at(offset);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(text.len(), |at| offset + at);
        let mut line = same_length(text[start..end].trim_end_matches('\r'));
        let from = (offset - start).min(line.len());
        // So that the place after the last character can be shown.
        if from == line.len() {
            line.push(' ');
        }
        // A place between characters is shown as the one after it.
        let least = line[from..].chars().next().map_or(1, char::len_utf8);
        let to = from.saturating_add(span.length.max(least));
        let to = line.ceil_char_boundary(to.min(line.len()));
        Self {
            line,
            range: from..to,
        }
    }
}

/// The text with what would drive or confuse a terminal replaced by something as long, so that
/// places in it stay the same.
fn same_length(text: &str) -> String {
    text.chars()
        .map(|c| match (c.len_utf8(), c) {
            (_, '\t') => c,
            (1, c) if c.is_control() => '?',
            (2, c) if c.is_control() => '\u{b7}',
            // As `printable` does: the form of an emoji stays.
            (3, c) if is_invisible(c) && !is_variation_selector(c) => '\u{fffd}',
            _ => c,
        })
        .collect()
}

fn summary_line(summary: FindingTotals) -> String {
    let FindingTotals {
        files,
        valid,
        errors,
        warnings,
    } = summary;
    let mut line = format!("{}: {valid} valid", plural(files as u64, "document"));
    if files > valid {
        line.push_str(&format!(", {} invalid", files - valid));
    }
    if errors + warnings > 0 {
        line.push_str(&format!(
            " ({}, {})",
            plural(errors as u64, "error"),
            plural(warnings as u64, "warning")
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_inside_their_line() {
        for (text, offset, length, line, expected) in [
            ("a: \"foo\" é\n", 9, 1, 1, "é"),
            ("a: é", 3, 0, 1, "é"),
            ("a: x\nb: y\n", 4, 1, 1, " "),
            ("a: \u{9b}31m x\n", 3, 2, 1, "\u{b7}"),
            ("\u{feff}a: 1\r\n", 3, 1, 1, "a"),
            ("", 0, 0, 1, " "),
            ("a\n", 2, 0, 2, " "),
        ] {
            let shown = ShownLine::new(
                text,
                Span {
                    offset,
                    length,
                    line,
                    column: 1,
                },
            );
            assert_eq!(&shown.line[shown.range.clone()], expected, "{text:?}");
            assert!(!shown.line.contains(['\u{9b}', '\n', '\r']));
        }
    }

    /// A finding may point into another file than the one whose text is at hand, or into a text
    /// that was not kept: whatever the place, something is shown and nothing panics.
    #[test]
    fn places_of_other_files_are_shown_without_panicking() {
        let texts = [
            "",
            "a",
            "é",
            "a: é\u{1f600}\nb: \u{202e}x\r\n",
            "\n\n",
            "\u{feff}",
        ];
        let sizes = (0..40).chain([usize::MAX / 2, usize::MAX - 1, usize::MAX]);
        for text in texts {
            for offset in sizes.clone() {
                for length in sizes.clone() {
                    let span = Span {
                        offset,
                        length,
                        line: length,
                        column: offset,
                    };
                    let shown = ShownLine::new(text, span);
                    assert!(shown.line.get(shown.range.clone()).is_some());
                    let file = Checked {
                        name: "other.yaml".to_owned(),
                        text: text.to_owned(),
                        findings: vec![Diagnostic {
                            severity: DiagnosticSeverity::Error,
                            code: "TM-020",
                            path: Some("agent".to_owned()),
                            span: Some(span),
                            message: "there is no agent".to_owned(),
                            help: None,
                        }],
                    };
                    assert!(findings(&file)[0].contains("there is no agent"));
                    assert!(file.end_column(span) >= 1);
                }
            }
        }
    }

    /// A text of pieces that make places hard: several lines, ends of lines of both kinds, wide and invisible characters.
    fn any_text(below: &mut impl FnMut(usize) -> usize) -> String {
        const PIECES: &[&str] = &[
            "agent: x",
            "- ",
            "[",
            "\"",
            "\n",
            "\r\n",
            "\r",
            "\t\u{9b}\u{202e}",
            "é\u{1f600}\u{feff}",
            "\u{0}",
            "\u{301}",
            "\u{200d}",
            "\u{3000}",
            "kind: commonagents.info/v1/schedule\nagent: nobody\n",
            "{{",
            "`",
            "\u{1b}[31m",
        ];
        let count = below(12);
        (0..count).map(|_| PIECES[below(PIECES.len())]).collect()
    }

    /// Random findings of one text, shown with another one, in every form.
    #[test]
    fn findings_of_other_files_are_shown_in_every_form() {
        let mut state = 42_u64;
        let mut below = |most: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % most.max(1)
        };
        for round in 0..3_000 {
            let (read, text) = (any_text(&mut below), any_text(&mut below));
            let count = 1 + below(3);
            let findings: Vec<Diagnostic> = (0..count)
                .map(|_| {
                    // Any place of the other text, on its edges and far beyond it.
                    let far = if below(8) == 0 {
                        usize::MAX
                    } else {
                        read.len() + 4
                    };
                    let span = Span {
                        offset: below(far),
                        length: below(far),
                        line: below(far),
                        column: below(far),
                    };
                    Diagnostic {
                        severity: [DiagnosticSeverity::Error, DiagnosticSeverity::Warning]
                            [below(2)],
                        code: "TM-020",
                        path: (below(2) == 0).then(|| read.clone()),
                        span: (below(6) > 0).then_some(span),
                        message: format!("there is no agent {round}{read}"),
                        help: (below(2) == 0).then(|| read.clone()),
                    }
                })
                .collect();
            for finding in &findings {
                let Some(span) = finding.span else { continue };
                let shown = ShownLine::new(&text, span);
                let place = shown.line.get(shown.range);
                assert!(
                    place.is_some_and(|place| !place.is_empty()),
                    "{text:?} {span:?}"
                );
            }
            let file = Checked {
                name: any_text(&mut below),
                text,
                findings,
            };
            let all = [file];
            let shown = super::text(&all);
            assert!(
                shown.contains(&format!("there is no agent {round}")),
                "{shown}"
            );
            let shown = super::super::github::annotations(&all);
            assert_eq!(shown.matches("there is no agent").count(), count, "{shown}");
            for value in [
                super::super::json::document(&all),
                super::super::sarif::document(&all, std::iter::empty()),
            ] {
                assert!(
                    value
                        .to_string()
                        .contains(&format!("there is no agent {round}"))
                );
            }
        }
    }

    #[test]
    fn summaries() {
        let line = |files, valid, errors, warnings| {
            summary_line(FindingTotals {
                files,
                valid,
                errors,
                warnings,
            })
        };
        assert_eq!(line(40, 40, 0, 0), "40 documents: 40 valid");
        assert_eq!(
            line(1, 0, 1, 2),
            "1 document: 0 valid, 1 invalid (1 error, 2 warnings)"
        );
        assert_eq!(
            line(2, 2, 0, 1),
            "2 documents: 2 valid (0 errors, 1 warning)"
        );
    }
}
