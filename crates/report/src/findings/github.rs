//! Findings as annotations of a GitHub Actions run.

use proofhouse_source::{printable, printable_line};

use super::Checked;

/// The findings of all files, each on a line of its own.
#[must_use]
pub fn annotations(checked: &[Checked]) -> String {
    let mut lines = String::new();
    for file in checked {
        for finding in &file.findings {
            let level = finding.severity;
            let mut properties = format!("file={}", escape_property(&printable_line(&file.name)));
            if let Some(span) = finding.span {
                let end = file.end_column(span);
                properties.push_str(&format!(
                    ",line={},col={},endColumn={end}",
                    span.line, span.column
                ));
            }
            let mut message = finding.message.clone();
            if let Some(help) = &finding.help {
                message.push_str(&format!("\nhelp: {help}"));
            }
            let (code, message) = (finding.code, escape(&printable(&message)));
            lines.push_str(&format!("::{level} {properties},title={code}::{message}\n"));
        }
    }
    lines
}

/// Escapes a message, so that a document cannot smuggle in a command of its own.
fn escape(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_github_would_read() {
        assert_eq!(escape("50%\n::error::x"), "50%25%0A::error::x");
        assert_eq!(escape_property("a,b:c"), "a%2Cb%3Ac");
    }
}
