//! What the threat library covers: categories by modes, and the entries of frameworks with their documents.

use std::collections::BTreeMap;

use proofhouse_campaign::library::Scenario;
use proofhouse_oatf::{Category, Mode};
use serde_json::{Map, Value, json};

use crate::text::push_line;

/// How many ids stand on a line.
const IDS: usize = 7;

/// Documents, and what they cover.
pub struct LibraryCoverage<'a> {
    all: &'a [Scenario],
    /// Entries of frameworks, with their names and the documents that are an example of them.
    entries: BTreeMap<(&'a str, &'a str), (&'a str, Vec<&'a str>)>,
    /// Documents that speak several protocols.
    chains: Vec<&'a str>,
}

impl<'a> LibraryCoverage<'a> {
    /// The coverage of these documents.
    #[must_use]
    pub fn new(all: &'a [Scenario]) -> Self {
        let mut entries = BTreeMap::new();
        for it in all {
            for mapping in it.mappings() {
                let key = (mapping.framework.as_str(), mapping.id.as_str());
                let name = mapping.name.as_deref().unwrap_or_default();
                let (_, ids) = entries.entry(key).or_insert((name, Vec::new()));
                ids.push(it.id());
            }
        }
        let chains = all.iter().filter(|it| it.protocols().len() > 1);
        Self {
            all,
            entries,
            chains: chains.map(Scenario::id).collect(),
        }
    }

    /// The form for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let categories = Category::ALL.iter().map(|category| {
            let modes = Mode::KNOWN.iter();
            let modes: Map<String, Value> = modes
                .map(|mode| (mode.to_string(), json!(self.ids(category.as_str(), mode))))
                .collect();
            json!({"category": category.as_str(), "modes": modes})
        });
        let entries = self.entries.iter();
        let entries = entries.map(|((framework, id), (name, documents))| {
            json!({"framework": framework, "id": id, "name": name, "documents": documents})
        });
        json!({
            "documents": self.all.len(),
            "cross_protocol": self.chains,
            "categories": categories.collect::<Vec<Value>>(),
            "entries": entries.collect::<Vec<Value>>(),
        })
    }

    /// The text for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.table(&mut text);
        let (all, chains) = (self.all.len(), self.chains.len());
        push_line(
            &mut text,
            &format!("\n{all} documents, {chains} across protocols"),
        );
        let mut before = "";
        for ((framework, id), (name, documents)) in &self.entries {
            if before != *framework {
                push_line(&mut text, &format!("\n{framework}"));
                before = framework;
            }
            push_line(&mut text, &format!("  {id:<14} {}", short(name)));
            for some in documents.chunks(IDS) {
                push_line(&mut text, &format!("    {}", some.join(" ")));
            }
        }
        text
    }

    /// Categories by modes, with the number of documents.
    fn table(&self, text: &mut String) {
        // The names of modes have two parts, which stand above each other to keep the table narrow.
        let parts = Mode::NAMES
            .iter()
            .map(|mode| mode.rsplit_once('_').unwrap_or((mode, "")));
        let (mut protocols, mut sides) = (format!("{:<24}", ""), format!("{:<24}", ""));
        for (protocol, side) in parts {
            protocols.push_str(&format!(" {protocol:>7}"));
            sides.push_str(&format!(" {side:>7}"));
        }
        push_line(text, &protocols);
        push_line(text, &sides);
        for category in Category::ALL {
            let mut row = format!("{:<24}", category.as_str());
            for mode in Mode::KNOWN {
                row.push_str(&format!(" {:>7}", self.ids(category.as_str(), mode).len()));
            }
            push_line(text, &row);
        }
    }

    fn ids(&self, category: &str, mode: &Mode) -> Vec<&'a str> {
        self.all
            .iter()
            .filter(|it| it.category() == category && it.modes().contains(mode))
            .map(Scenario::id)
            .collect()
    }
}

/// A scenario as programs see it in a list.
#[must_use]
pub fn scenario_value(scenario: &Scenario) -> Value {
    let mappings = scenario.mappings().iter();
    json!({
        "id": scenario.id(),
        "slug": scenario.slug(),
        "name": scenario.name(),
        "path": scenario.path,
        "category": scenario.category(),
        "severity": scenario.severity(),
        "modes": scenario.modes(),
        "protocols": scenario.protocols(),
        "tags": scenario.tags(),
        "entries": mappings
            .map(|mapping| json!({"framework": mapping.framework, "id": mapping.id, "name": mapping.name}))
            .collect::<Vec<Value>>(),
        "prompt": scenario.prompt(),
    })
}

/// The same as people see it: a line.
#[must_use]
pub fn scenario_line(scenario: &Scenario) -> String {
    format!(
        "{}  {:<26}  {:<8}  {:<23}  {}",
        scenario.id(),
        scenario.slug(),
        scenario.severity(),
        scenario.category(),
        scenario.name()
    )
}

/// A name that leaves room for the entry on a line of 80 letters.
fn short(name: &str) -> String {
    const ROOM: usize = 60;
    match name.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
