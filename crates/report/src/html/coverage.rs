//! Coverage: which entries of the lists of others the documents stand for, and what came of them.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::elements::{anchor, table};
use super::untrusted::{code, name, text};
use crate::view::{MatrixCell, ReportView};
use proofhouse_campaign::outcome::RunOutcome;

/// A list of others.
struct CoverageList {
    /// The name that documents have for it.
    framework: &'static str,
    /// Its title.
    title: &'static str,
    /// The entries, where there are few enough to say which are missing.
    entries: &'static [(&'static str, &'static str)],
}

/// The lists that are always shown, in this order; others follow by name.
const LISTS: &[CoverageList] = &[
    CoverageList {
        framework: "owasp_llm",
        title: "OWASP Top 10 for LLM Applications (2025)",
        entries: &[
            ("LLM01", "Prompt Injection"),
            ("LLM02", "Sensitive Information Disclosure"),
            ("LLM03", "Supply Chain"),
            ("LLM04", "Data and Model Poisoning"),
            ("LLM05", "Improper Output Handling"),
            ("LLM06", "Excessive Agency"),
            ("LLM07", "System Prompt Leakage"),
            ("LLM08", "Vector and Embedding Weaknesses"),
            ("LLM09", "Misinformation"),
            ("LLM10", "Unbounded Consumption"),
        ],
    },
    CoverageList {
        framework: "owasp_agentic",
        title: "OWASP Top 10 for Agentic Applications",
        entries: &[
            ("ASI01", "Agent Goal Hijack"),
            ("ASI02", "Tool Misuse and Exploitation"),
            ("ASI03", "Identity and Privilege Abuse"),
            ("ASI04", "Agentic Supply Chain Vulnerabilities"),
            ("ASI05", "Unexpected Code Execution"),
            ("ASI06", "Memory and Context Poisoning"),
            ("ASI07", "Insecure Inter-Agent Communication"),
            ("ASI08", "Cascading Failures"),
            ("ASI09", "Human-Agent Trust Exploitation"),
            ("ASI10", "Rogue Agents"),
        ],
    },
    CoverageList {
        framework: "owasp_mcp",
        title: "OWASP MCP Top 10",
        entries: &[
            ("MCP01", ""),
            ("MCP02", ""),
            ("MCP03", ""),
            ("MCP04", ""),
            ("MCP05", ""),
            ("MCP06", ""),
            ("MCP07", ""),
            ("MCP08", ""),
            ("MCP09", ""),
            ("MCP10", ""),
        ],
    },
    CoverageList {
        framework: "atlas",
        title: "MITRE ATLAS",
        entries: &[],
    },
    CoverageList {
        framework: "cwe",
        title: "CWE",
        entries: &[],
    },
];

/// How many documents an entry names.
const MOST_DOCUMENTS: usize = 40;

/// How many lists, and entries of one list, are shown: documents can make up any number.
const MOST_LISTS: usize = 20;
const MOST_ENTRIES: usize = 300;

/// The documents of an entry, by number, and its name.
#[derive(Default)]
struct CoverageEntry<'a> {
    name: Option<&'a str>,
    documents: BTreeSet<usize>,
}

pub(super) fn section(view: &ReportView<'_>) -> Markup {
    let mut lists: BTreeMap<String, BTreeMap<&str, CoverageEntry<'_>>> = BTreeMap::new();
    for (number, document) in view.result.documents.iter().enumerate() {
        for mapping in &document.mappings {
            let list = lists
                .entry(framework(mapping.framework.as_str()))
                .or_default();
            let entry = list.entry(mapping.id.as_str()).or_default();
            entry.name = entry.name.or(mapping.name.as_deref());
            entry.documents.insert(number);
        }
    }
    let cells: Vec<MatrixCell<'_>> = view.cells().collect();
    html! {
        section #coverage { h2 { "Coverage" } "\n"
            @for known in LISTS {
                @let covered = lists.remove(known.framework).unwrap_or_default();
                (list(view, &cells, known.title, known.entries, &covered))
            }
            @for (name, covered) in lists.iter().take(MOST_LISTS) {
                (list(view, &cells, name, &[], covered))
            }
        } "\n"
    }
}

/// The name of a list as the table has it, however a document writes it.
fn framework(name: &str) -> String {
    let name = name.trim().to_lowercase().replace([' ', '-'], "_");
    match name.as_str() {
        "mitre_atlas" => "atlas".to_owned(),
        _ => name,
    }
}

fn list(
    view: &ReportView<'_>,
    cells: &[MatrixCell<'_>],
    title: &str,
    known: &[(&str, &str)],
    covered: &BTreeMap<&str, CoverageEntry<'_>>,
) -> Markup {
    // A list may name an entry with its year: `LLM01:2025`.
    let is_covered = |id: &str| {
        covered
            .keys()
            .any(|entry| entry.split(':').next() == Some(id))
    };
    let uncovered: Vec<_> = known.iter().filter(|(id, _)| !is_covered(id)).collect();
    let mut headings = vec![html! { "Entry" }, html! { "Attacks" }];
    headings.extend(view.subject_names().map(name));
    let rows = html! {
        @for (id, entry) in covered.iter().take(MOST_ENTRIES) {
            (row(view, cells, id, entry_name(id, entry, known), entry))
        }
        @if covered.len() > MOST_ENTRIES {
            tr {
                td colspan=(headings.len()) { (covered.len() - MOST_ENTRIES) " more are left out." }
            } "\n"
        }
        @for (id, name) in &uncovered {
            tr.absent {
                th scope="row" { code { (id) } " " (name) }
                td colspan=(headings.len() - 1) { "no document" }
            } "\n"
        }
    };
    html! {
        details open[!covered.is_empty()] {
            summary {
                h3 { (text(title)) } " "
                span.muted {
                    @if known.is_empty() {
                        (covered.len()) " entries"
                    } @else {
                        (known.len() - uncovered.len()) " of " (known.len()) " entries"
                    }
                }
            } "\n"
            (table("Entries of the list", &headings, &rows))
        } "\n"
    }
}

/// The name of an entry: as a document has it, or else as the list itself does.
fn entry_name<'a>(id: &str, entry: &CoverageEntry<'a>, known: &[(&str, &'a str)]) -> &'a str {
    let plain = id.split(':').next().unwrap_or_default();
    let listed = known.iter().find(|(known, _)| *known == plain);
    entry
        .name
        .or(listed.map(|(_, name)| *name))
        .unwrap_or_default()
}

fn row(
    view: &ReportView<'_>,
    cells: &[MatrixCell<'_>],
    id: &str,
    title: &str,
    entry: &CoverageEntry<'_>,
) -> Markup {
    let documents = entry
        .documents
        .iter()
        .filter_map(|number| Some((*number, view.result.documents.get(*number)?)));
    let width = view.result.subjects.len();
    html! {
        tr {
            th scope="row" { (code(id)) " " (text(title)) }
            td {
                @for (number, document) in documents.take(MOST_DOCUMENTS) {
                    a href={ "#" (anchor(number, 0)) } { (name(&document.id)) } " "
                }
                @if entry.documents.len() > MOST_DOCUMENTS {
                    "and " (entry.documents.len() - MOST_DOCUMENTS) " more"
                }
            }
            @for subject in 0..width {
                // The cells are by document, and within one by subject.
                (result_on(entry.documents.iter().filter_map(|document| cells.get(document * width + subject))))
            }
        } "\n"
    }
}

/// What came of the documents of an entry against one subject.
fn result_on<'a>(cells: impl Iterator<Item = &'a MatrixCell<'a>>) -> Markup {
    let outcomes: Vec<RunOutcome> = cells.filter_map(|cell| cell.summary.outcome).collect();
    let counted = outcomes.iter().filter(|outcome| outcome.counts()).count();
    let through = outcomes.iter().filter(|outcome| outcome.gave_way()).count();
    let class = match (through, counted) {
        (_, 0) => "inconclusive",
        (0, _) => "resisted",
        _ => "exploited",
    };
    html! {
        td {
            span class={ "badge " (class) } {
                @if counted == 0 {
                    "inconclusive"
                } @else {
                    (through) " of " (counted) " got through"
                }
            }
        }
    }
}
