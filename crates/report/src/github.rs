//! The report as annotations of a GitHub Actions run: workflow commands at the lines of documents.

use super::text::{cut, interval, line, of, percent, visible};
use super::view::{MatrixCell, ReportView, reasons_line};
use proofhouse_campaign::outcome::RunOutcome;

/// How much of a text is told.
const MOST_CHARACTERS: usize = 300;

/// How many annotations there are; GitHub shows fewer.
const MOST_ANNOTATIONS: usize = 200;

pub(crate) fn render(view: &ReportView<'_>) -> String {
    let cells = view.by_severity();
    let mut annotations: Vec<(u8, String)> = cells
        .iter()
        .filter_map(|cell| annotation(view, cell))
        .collect();
    // GitHub shows only the first few of each kind, so the worst come first.
    annotations.sort_by_key(|(rank, _)| *rank);
    let mut out = String::new();
    for (_, annotation) in annotations.iter().take(MOST_ANNOTATIONS) {
        out.push_str(annotation);
        out.push('\n');
    }
    let overall = &view.summary.overall;
    let summary = format!(
        "attack success rate {} ({} runs, 95% interval {}); {} of {} {} {}; {} of {} runs inconclusive{}{}",
        percent(&overall.attacks.success),
        of(&overall.attacks.success),
        interval(&overall.attacks.success),
        overall.documents_exploited,
        overall.documents_counted,
        view.counted_attacks(),
        view.got_through(),
        overall.attacks.inconclusive,
        overall.attacks.runs,
        if overall.reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", reasons_line(overall, 3))
        },
        if view.result.complete {
            ""
        } else {
            "; incomplete"
        },
    );
    out.push_str(&format!(
        "::notice title=proofhouse::{}\n",
        escape(&summary)
    ));
    out
}

fn annotation(view: &ReportView<'_>, cell: &MatrixCell<'_>) -> Option<(u8, String)> {
    let summary = cell.summary;
    let regressed = cell
        .change
        .is_some_and(|change| change.change.is_regression());
    let (rank, level) = match summary.outcome? {
        RunOutcome::Exploited | RunOutcome::Partial if view.is_accepted(cell) => (4, "notice"),
        RunOutcome::Exploited => (u8::from(!regressed), "error"),
        RunOutcome::Partial => (2, "warning"),
        RunOutcome::Inconclusive => (3, "warning"),
        RunOutcome::Resisted => return None,
    };
    let findings = cell.findings();
    let finding = findings.first();
    let number = finding.and_then(|finding| finding.info?.line);
    let (file, number) = view.place_of(cell.document, number);
    let mut message = match summary.outcome? {
        RunOutcome::Inconclusive => {
            let unmet = cell.unmet_line();
            format!(
                "inconclusive: {}\nconditions that did not hold: {unmet}",
                cell.unproved()
            )
        }
        outcome @ (RunOutcome::Exploited | RunOutcome::Partial | RunOutcome::Resisted) => format!(
            "{} in {} runs (95% interval {}){}{}",
            outcome.word(),
            of(&summary.attacks.success),
            interval(&summary.attacks.success),
            if summary.flaky { ", flaky" } else { "" },
            if regressed {
                ", a regression since the baseline"
            } else {
                ""
            },
        ),
    };
    if let Some(finding) = finding {
        message.push_str(&format!("\n{}", finding.indicator.id));
        if let Some(evidence) = finding.evidence {
            message.push_str(&format!(" in {}", evidence.messages()));
            if let Some(path) = &evidence.path {
                message.push_str(&format!(" at {}", cut(path, MOST_CHARACTERS)));
            }
            if let Some(text) = &evidence.text {
                message.push_str(&format!(": {}", cut(text, MOST_CHARACTERS)));
            }
        }
    }
    if let Some(risk) = view.acceptance(cell) {
        let reason = cut(&risk.reason, MOST_CHARACTERS);
        message.push_str(&format!("\nAccepted until {}: {reason}", risk.until));
    } else if cell.gave_way()
        && let Some((place, what)) = cell.document.mitigation.parts().next()
    {
        let place = place.to_lowercase();
        message.push_str(&format!("\nFix {place}: {}", cut(what, MOST_CHARACTERS)));
    }
    let title = format!("{} on {}", cell.title(), cell.subject.name);
    let annotation = format!(
        "::{level} file={},line={number},title={}::{}",
        property(&file),
        property(&cut(&title, MOST_CHARACTERS)),
        escape(&message),
    );
    Some((rank, annotation))
}

/// Escapes a message, so that nothing in it is a command of its own.
fn escape(text: &str) -> String {
    visible(&cut(text, 4 * MOST_CHARACTERS))
        .replace('%', "%25")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escape(&line(text)).replace(':', "%3A").replace(',', "%2C")
}
