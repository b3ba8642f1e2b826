//! Coverage: which entries of the lists of others the documents stand for, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::overview::{close_table, open_table};
use super::untrusted::{code, escape, short};
use crate::report::view::{Pair, View};
use crate::result::Outcome;

/// A list of others.
struct List {
    /// The name that documents have for it.
    framework: &'static str,
    /// Its title.
    title: &'static str,
    /// The entries, where there are few enough to say which are missing.
    entries: &'static [(&'static str, &'static str)],
}

/// The lists that are always shown, in this order; others follow by name.
const LISTS: &[List] = &[
    List {
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
    List {
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
    List {
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
    List {
        framework: "atlas",
        title: "MITRE ATLAS",
        entries: &[],
    },
    List {
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
struct Entry<'a> {
    name: Option<&'a str>,
    documents: BTreeSet<usize>,
}

pub(super) fn write(view: &View<'_>, out: &mut String) {
    let mut lists: BTreeMap<String, BTreeMap<&str, Entry<'_>>> = BTreeMap::new();
    for (number, document) in view.result.documents.iter().enumerate() {
        for mapping in &document.mappings {
            let list = lists.entry(framework(&mapping.framework)).or_default();
            let entry = list.entry(mapping.id.as_str()).or_default();
            entry.name = entry.name.or(mapping.name.as_deref());
            entry.documents.insert(number);
        }
    }
    let pairs: Vec<Pair<'_>> = view.pairs().collect();
    out.push_str("<section id=\"coverage\"><h2>Coverage</h2>\n");
    for known in LISTS {
        let found = lists.remove(known.framework).unwrap_or_default();
        list(view, &pairs, known.title, known.entries, &found, out);
    }
    for (name, found) in lists.iter().take(MOST_LISTS) {
        list(view, &pairs, name, &[], found, out);
    }
    out.push_str("</section>\n");
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
    view: &View<'_>,
    pairs: &[Pair<'_>],
    title: &str,
    known: &[(&str, &str)],
    found: &BTreeMap<&str, Entry<'_>>,
    out: &mut String,
) {
    // A list may name an entry with its year: `LLM01:2025`.
    let covers = |id: &str| {
        found
            .keys()
            .any(|entry| entry.split(':').next() == Some(id))
    };
    let covered = known.iter().filter(|(id, _)| covers(id)).count();
    let count = if known.is_empty() {
        format!("{} entries", found.len())
    } else {
        format!("{covered} of {} entries", known.len())
    };
    let _ = writeln!(
        out,
        "<details{}><summary><h3>{}</h3> <span class=\"muted\">{count}</span></summary>",
        if found.is_empty() { "" } else { " open" },
        escape(title),
    );
    let names: Vec<String> = view
        .result
        .subjects
        .iter()
        .map(|subject| short(&subject.name))
        .collect();
    let mut headings = vec!["Entry", "Documents"];
    headings.extend(names.iter().map(String::as_str));
    open_table("Entries of the list", &headings, out);
    for (id, entry) in found.iter().take(MOST_ENTRIES) {
        let plain = id.split(':').next().unwrap_or_default();
        let listed = known
            .iter()
            .find(|(known, name)| *known == plain && !name.is_empty());
        let name = entry
            .name
            .or(listed.map(|(_, name)| *name))
            .unwrap_or_default();
        row(view, pairs, (id, name), entry, out);
    }
    if found.len() > MOST_ENTRIES {
        let _ = writeln!(
            out,
            "<tr><td colspan=\"{}\">{} more are left out.</td></tr>",
            headings.len(),
            found.len() - MOST_ENTRIES
        );
    }
    for (id, name) in known.iter().filter(|(id, _)| !covers(id)) {
        let _ = writeln!(
            out,
            "<tr class=\"absent\"><th scope=\"row\"><code>{id}</code> {name}</th><td colspan=\"{}\">no document</td></tr>",
            names.len() + 1
        );
    }
    close_table(out);
    out.push_str("</details>\n");
}

fn row(
    view: &View<'_>,
    pairs: &[Pair<'_>],
    (id, name): (&str, &str),
    entry: &Entry<'_>,
    out: &mut String,
) {
    let _ = write!(
        out,
        "<tr><th scope=\"row\">{} {}</th><td>",
        code(id),
        escape(name)
    );
    let documents = entry
        .documents
        .iter()
        .filter_map(|number| Some((*number, view.result.documents.get(*number)?)));
    for (number, document) in documents.take(MOST_DOCUMENTS) {
        let _ = write!(
            out,
            "<a href=\"#pair-{number}-0\">{}</a> ",
            short(&document.id)
        );
    }
    if entry.documents.len() > MOST_DOCUMENTS {
        let _ = write!(out, "and {} more", entry.documents.len() - MOST_DOCUMENTS);
    }
    out.push_str("</td>");
    let width = view.result.subjects.len();
    for subject in 0..width {
        // The pairs are by document, and within one by subject.
        let cells = entry
            .documents
            .iter()
            .filter_map(|document| pairs.get(document * width + subject));
        let outcomes: Vec<Outcome> = cells.filter_map(|pair| pair.cell.outcome).collect();
        let counted = outcomes.iter().filter(|outcome| outcome.counts()).count();
        let through = outcomes.iter().filter(|outcome| outcome.gave_way()).count();
        let class = match (through, counted) {
            (_, 0) => "not-reached",
            (0, _) => "resisted",
            _ => "exploited",
        };
        let text = if counted == 0 {
            "unproved".to_owned()
        } else {
            format!("{through} of {counted} got through")
        };
        let _ = write!(out, "<td><span class=\"badge {class}\">{text}</span></td>");
    }
    out.push_str("</tr>\n");
}
