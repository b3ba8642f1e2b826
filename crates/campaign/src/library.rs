//! The threat library that comes with the binary: the documents of `scenarios/`, and what they cover.

use std::collections::BTreeSet;
use std::path::Path;

use proofhouse_detect::EXTENSION_FIELD;
use proofhouse_oatf::{Document, FrameworkMapping, Mode, Protocol, did_you_mean, load};
use serde_json::Value;

use crate::document::slug;

/// Every file of the library, twins too: its path below `scenarios/`, and its text.
#[must_use]
pub fn all() -> &'static [(&'static str, &'static str)] {
    include!(concat!(env!("OUT_DIR"), "/scenarios.rs"))
}

/// An attack of the library.
pub struct Scenario {
    /// Its path below `scenarios/`.
    pub path: &'static str,
    /// As it is written.
    pub text: &'static str,
    /// As it is read.
    pub document: Document,
}

/// The attacks of the library, by id. A test loads every one of them, so none is left out.
#[must_use]
pub fn attacks() -> Vec<Scenario> {
    let files = all()
        .iter()
        .filter(|(path, _)| !path.ends_with(".twin.yaml"));
    let mut found: Vec<Scenario> = files
        .filter_map(|(path, text)| {
            let document = load(text).ok()?.document;
            Some(Scenario {
                path,
                text,
                document,
            })
        })
        .collect();
    found.sort_by(|one, other| one.id().cmp(other.id()));
    found
}

/// The attack with this id or file name, if the library has it.
#[must_use]
pub fn named(name: &str) -> Option<Scenario> {
    let is_meant = |scenario: &Scenario| {
        let names = [scenario.id(), scenario.slug()];
        names.iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    attacks().into_iter().find(is_meant)
}

/// What to do with the name of an attack of the library where something else was looked for; `None` for any other name.
#[must_use]
pub fn advice(name: &str) -> Option<String> {
    let scenario = named(name)?;
    let (id, slug) = (scenario.id(), scenario.slug());
    Some(format!(
        "{id} is an attack of the library: `proofhouse run --id {id}` runs it, and `proofhouse scenarios show {id} > {slug}.yaml` writes it to a file; \
         put its control beside it: `proofhouse scenarios show {id} --control > {slug}.twin.yaml`"
    ))
}

/// A message that nothing is at a path, with that advice where it names an attack of the library, or nearly does.
#[must_use]
pub fn with_advice(message: String, missing: Option<&Path>) -> String {
    let Some(name) = missing.and_then(Path::to_str) else {
        return message;
    };
    if let Some(advice) = advice(name) {
        return format!("{message}; {advice}");
    }
    let attacks = attacks();
    let names = attacks.iter().flat_map(|one| [one.id(), one.slug()]);
    match did_you_mean(name, names) {
        Some(near) => format!("{message}, and no attack of the library; did you mean {near}?"),
        None => message,
    }
}

impl Scenario {
    /// The id of the attack.
    #[must_use]
    pub fn id(&self) -> &str {
        self.document.attack.id.as_deref().unwrap_or_default()
    }

    /// What it is called by its file, such as `weather-key-theft`.
    #[must_use]
    pub fn slug(&self) -> &'static str {
        slug(self.path)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.document.attack.name.as_deref().unwrap_or_default()
    }

    /// Its category; empty where it has none.
    #[must_use]
    pub fn category(&self) -> &'static str {
        let classification = self.document.attack.classification.as_ref();
        let category = classification.and_then(|classification| classification.category);
        category.map_or("", |category| category.as_str())
    }

    /// Its severity level; empty where it has none.
    #[must_use]
    pub fn severity(&self) -> &'static str {
        let severity = self.document.attack.severity.as_ref();
        severity.map_or("", |severity| severity.level.as_str())
    }

    /// The modes of its actors, each once.
    #[must_use]
    pub fn modes(&self) -> BTreeSet<&Mode> {
        let actors = self.document.attack.execution.actors();
        actors.iter().map(|actor| &actor.mode).collect()
    }

    /// The protocols that its actors speak. More than one makes it a chain.
    #[must_use]
    pub fn protocols(&self) -> BTreeSet<Protocol> {
        self.modes().into_iter().map(Mode::protocol).collect()
    }

    /// Its tags.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        let classification = self.document.attack.classification.as_ref();
        let tags = classification.and_then(|classification| classification.tags.as_deref());
        tags.unwrap_or_default()
    }

    /// The entries of frameworks that it is an example of.
    #[must_use]
    pub fn mappings(&self) -> &[FrameworkMapping] {
        let classification = self.document.attack.classification.as_ref();
        let mappings = classification.and_then(|classification| classification.mappings.as_deref());
        mappings.unwrap_or_default()
    }

    /// What the user asks the agent.
    #[must_use]
    pub fn prompt(&self) -> Option<&str> {
        self.own()?.get("prompt")?.as_str()
    }

    /// The text of its benign twin.
    #[must_use]
    pub fn twin(&self) -> Option<&'static str> {
        let name = self.own()?.get("twin")?.as_str()?;
        let folder = self.path.rsplit_once('/')?.0;
        let path = format!("{folder}/{name}");
        let found = all().iter().find(|(other, _)| *other == path)?;
        Some(found.1)
    }

    fn own(&self) -> Option<&Value> {
        self.document.attack.extensions.get(EXTENSION_FIELD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_found_by_id_and_by_file_name() {
        let by_id = named("proof-001").unwrap();
        assert_eq!(by_id.id(), "PROOF-001");
        assert_eq!(named(by_id.slug()).unwrap().id(), "PROOF-001");
        for name in ["", "PROOF-9999", "no/such.yaml"] {
            assert!(named(name).is_none(), "{name}");
            assert_eq!(advice(name), None);
        }
        let advice = advice(by_id.slug()).unwrap();
        assert!(advice.contains("run --id PROOF-001"), "{advice}");

        let told = |name: &str| with_advice("no such file".to_owned(), Some(Path::new(name)));
        assert!(
            told(by_id.slug()).contains("--control >"),
            "{}",
            told(by_id.slug())
        );
        let near = told("weather-key-theftt");
        assert!(near.ends_with("did you mean weather-key-theft?"), "{near}");
        assert_eq!(told("nowhere.yaml"), "no such file");
    }
}
