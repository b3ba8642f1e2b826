//! Findings for people: the line in the source, underlined, and what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};

use super::{Checked, Summary};
use crate::output::{CommandError, Data, printable};

pub(crate) fn write(data: &mut Data, checked: &[Checked]) -> Result<(), CommandError> {
    // Colours are stripped by the stream where nobody can see them.
    let renderer = Renderer::styled().term_width(100);
    for file in checked {
        for finding in &file.findings {
            data.line(&render(&renderer, file, finding))?;
            data.line("")?;
        }
    }
    data.line(&summary_line(Summary::of(checked)))
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
    let mut group = match finding.span {
        Some(span) => {
            // A place between characters is shown as the one after it.
            let end = (span.offset + span.length.max(1))
                .min(file.text.len())
                .max(span.offset);
            let annotation = AnnotationKind::Primary.span(span.offset..end).label(path);
            title.element(
                Snippet::source(file.text.as_str())
                    .path(file.name.as_str())
                    .annotation(annotation),
            )
        }
        None => Group::with_title(title).element(Origin::path(file.name.as_str())),
    };
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    renderer.render(&[group])
}

fn summary_line(summary: Summary) -> String {
    let Summary {
        files,
        valid,
        errors,
        warnings,
    } = summary;
    let plural =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut line = format!("{}: {valid} valid", plural(files, "document"));
    if files > valid {
        line.push_str(&format!(", {} invalid", files - valid));
    }
    if errors + warnings > 0 {
        line.push_str(&format!(
            " ({}, {})",
            plural(errors, "error"),
            plural(warnings, "warning")
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let line = |files, valid, errors, warnings| {
            summary_line(Summary {
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
