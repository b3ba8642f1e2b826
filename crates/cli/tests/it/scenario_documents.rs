//! The documents of the threat library: what each must have, what they cover together, and how they are shown.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proofhouse_campaign::cases::is_cases_file;
use proofhouse_oatf::{Category, Direction, Document, Indicator, Mode, Protocol, load};
use serde_json::Value;

use crate::support::{json, run};

struct File {
    path: PathBuf,
    text: String,
    document: Document,
}

impl File {
    fn own(&self) -> &Value {
        &self.document.attack.extensions["x-proofhouse"]
    }

    fn modes(&self) -> BTreeSet<&Mode> {
        let actors = self.document.attack.execution.actors();
        actors.iter().map(|actor| &actor.mode).collect()
    }

    /// Fails with the name of the file.
    fn must(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}", self.path.display());
    }
}

/// Attacks and twins.
fn library() -> (Vec<File>, Vec<File>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if is_cases_file(&path) {
                continue;
            }
            #[expect(clippy::disallowed_methods, reason = "a file of this project")]
            let text = std::fs::read_to_string(&path).unwrap();
            let loaded =
                load(&text).unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()));
            let warnings = &loaded.warnings;
            assert!(warnings.is_empty(), "{}: {warnings:#?}", path.display());
            files.push(File {
                path,
                text,
                document: loaded.document,
            });
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
        .into_iter()
        .partition(|file| !file.path.to_str().unwrap().ends_with(".twin.yaml"))
}

/// Whether an indicator looks at what the agent did: what it sent to a server of ours, or answered to a client.
fn sees_the_agent(file: &File, indicator: &Indicator) -> bool {
    let actors = file.document.attack.execution.actors();
    let of = |mode: &Mode| {
        if mode.is_server() {
            Direction::Request
        } else {
            Direction::Response
        }
    };
    let mut looked_at = actors.iter().filter(|actor| match &indicator.actor {
        Some(name) => actor.name == *name,
        None => true,
    });
    looked_at.all(|actor| indicator.direction == Some(of(&actor.mode)))
}

#[test]
fn every_attack_has_what_a_campaign_needs() {
    let (attacks, twins) = library();
    assert!(attacks.len() >= 40, "{}", attacks.len());
    assert_eq!(attacks.len(), twins.len());
    let (mut ids, mut slugs) = (BTreeSet::new(), BTreeSet::new());
    for file in &attacks {
        let attack = &file.document.attack;
        let id = attack.id.as_deref().unwrap_or_default();
        let name = file.path.file_name().unwrap().to_str().unwrap();
        let slug = name.strip_suffix(".yaml").unwrap_or_default();
        file.must(
            slug.split('-').count() >= 2
                && slug
                    .chars()
                    .all(|c| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit()),
            "the file's name says in two words or more what happens, in small letters",
        );
        file.must(
            slugs.insert(slug.to_owned()),
            "the file's name is used twice",
        );
        file.must(
            id.strip_prefix("PROOF-")
                .is_some_and(|number| number.len() == 3),
            "the id is PROOF- and a number",
        );
        let mitigation = attack
            .extensions
            .get("x-proofhouse")
            .map(|ours| &ours["mitigation"]);
        for who in ["agent", "tool", "policy"] {
            let says = mitigation.and_then(|mitigation| mitigation[who].as_str());
            file.must(
                says.is_some_and(|text| text.len() > 20),
                "`mitigation` says what to change in the agent, in the tool and in the policy",
            );
        }
        file.must(ids.insert(id.to_owned()), "the id is used twice");
        let classification = attack.classification.as_ref().unwrap();
        let category = classification.category.unwrap().as_str();
        file.must(
            file.path.parent().unwrap().ends_with(category),
            "it is in the wrong folder",
        );
        let frameworks: BTreeSet<&str> = classification
            .mappings
            .iter()
            .flatten()
            .map(|mapping| mapping.framework.as_str())
            .collect();
        file.must(
            frameworks.contains("owasp_agentic") && frameworks.len() >= 3,
            "it needs mappings",
        );
        file.must(
            attack.description.as_ref().is_some_and(|it| it.len() > 100),
            "it needs a description",
        );
        file.must(
            attack.severity.is_some() && attack.impact.is_some(),
            "it needs severity and impact",
        );
        file.must(
            attack.references.as_ref().is_some_and(|it| it.len() >= 2),
            "it needs references",
        );
        file.must(
            file.own()["prompt"]
                .as_str()
                .is_some_and(|it| it.len() > 10),
            "it needs a prompt",
        );
        let twin = file.path.with_extension("twin.yaml");
        file.must(
            file.own()["twin"].as_str() == twin.file_name().unwrap().to_str(),
            "it names no twin",
        );
        let indicators = attack.indicators();
        file.must(indicators.len() >= 2, "it needs two indicators");
        for indicator in indicators {
            file.must(
                indicator.tier.is_some() && indicator.description.is_some(),
                "an indicator needs a tier and a description",
            );
            file.must(
                sees_the_agent(file, indicator),
                "an indicator looks at what we sent",
            );
        }
    }
}

#[test]
fn every_twin_is_the_same_task_without_the_payload() {
    let (attacks, twins) = library();
    for (file, twin) in attacks.iter().zip(&twins) {
        twin.must(
            file.path.with_extension("twin.yaml") == twin.path,
            "it belongs to no attack",
        );
        twin.must(
            twin.own()["twin_of"].as_str() == file.document.attack.id.as_deref(),
            "twin_of",
        );
        twin.must(
            twin.own()["prompt"] == file.own()["prompt"],
            "it asks for something else",
        );
        let success = &twin.own()["success"];
        let says = success["tool"].is_string() || success["answer_contains"].is_string();
        twin.must(says, "it does not say when the task is done");
        twin.must(twin.modes() == file.modes(), "it has other actors");
        let plain = |file: &File| -> Vec<Indicator> {
            let mut all = file.document.attack.indicators().to_vec();
            all.iter_mut().for_each(|indicator| indicator.id = None);
            all
        };
        twin.must(plain(twin) == plain(file), "it has other indicators");
        twin.must(
            twin.document.attack.execution != file.document.attack.execution,
            "it carries the payload",
        );
    }
}

#[test]
fn the_library_covers_what_it_promises() {
    let (attacks, _) = library();
    for category in Category::ALL {
        let any = attacks.iter().any(|file| {
            file.document
                .attack
                .classification
                .as_ref()
                .unwrap()
                .category
                == Some(*category)
        });
        assert!(any, "{}", category.as_str());
    }
    for mode in Mode::KNOWN {
        assert!(
            attacks.iter().any(|file| file.modes().contains(mode)),
            "{mode}"
        );
    }
    let chains = attacks.iter().filter(|file| {
        let protocols: BTreeSet<Protocol> = file.modes().into_iter().map(Mode::protocol).collect();
        protocols.len() > 1
    });
    assert!(chains.count() >= 8);
    for number in 1..=10 {
        let entry = format!("ASI{number:02}");
        let any = attacks.iter().any(|file| {
            let classification = file.document.attack.classification.as_ref().unwrap();
            classification
                .mappings
                .iter()
                .flatten()
                .any(|mapping| mapping.id == entry)
        });
        assert!(any, "{entry}");
    }
}

/// Names under which nobody real can be found, and those of publications.
#[test]
fn nothing_in_it_reaches_a_real_system() {
    let (attacks, twins) = library();
    for file in attacks.iter().chain(&twins) {
        let mut is_reference = false;
        for line in file.text.lines() {
            // References are the only list at this depth that may name real hosts.
            if line.starts_with("  ") && !line.starts_with("   ") {
                is_reference = line.starts_with("  references:");
            }
            if is_reference {
                continue;
            }
            let hosts = line.split("://").skip(1).chain(line.split('@').skip(1));
            for host in hosts {
                let end = host
                    .find(|letter: char| !letter.is_ascii_alphanumeric() && !"-.".contains(letter));
                let host = host[..end.unwrap_or(host.len())].trim_end_matches('.');
                let is_reserved = [".example", ".test", ".invalid"]
                    .iter()
                    .any(|end| host.ends_with(end));
                file.must(is_reserved, &format!("`{host}` may be real"));
            }
        }
    }
}

#[test]
fn the_binary_brings_the_library_along() {
    let (attacks, _) = library();
    let listed = json(&run(&["scenarios", "list", "--format", "json"]).stdout);
    let listed: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    let mut ids: Vec<&str> = attacks
        .iter()
        .map(|file| file.document.attack.id.as_deref().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(listed, ids);

    let first = attacks
        .iter()
        .find(|file| file.document.attack.id.as_deref() == Some("PROOF-001"))
        .unwrap();
    assert_eq!(run(&["scenarios", "show", "proof-001"]).stdout, first.text);
    assert_eq!(
        run(&["scenarios", "show", "weather-key-theft"]).stdout,
        first.text
    );
    let twin = run(&["scenarios", "show", "PROOF-001", "--twin"]);
    assert!(
        twin.stdout.contains("twin_of: PROOF-001"),
        "{}",
        twin.stdout
    );

    for (filter, fits) in [
        (["--category", "oversight_bypass"], "category"),
        (["--mode", "a2a_client"], "modes"),
        (["--severity", "critical"], "severity"),
        (["--tag", "rug-pull"], "tags"),
        (["--entry", "asi07"], "entries"),
    ] {
        let found = json(
            &run(&[
                "scenarios",
                "list",
                filter[0],
                filter[1],
                "--format",
                "json",
            ])
            .stdout,
        );
        let found = found.as_array().unwrap();
        assert!(!found.is_empty() && found.len() < ids.len(), "{filter:?}");
        for it in found {
            let has = it[fits].to_string().to_lowercase();
            assert!(
                has.contains(&format!("\"{}\"", filter[1])),
                "{filter:?}: {has}"
            );
        }
    }
    let wrong = run(&["scenarios", "list", "--mode", "a2a_clent"]);
    assert_eq!(wrong.code, Some(64));
    assert!(wrong.stderr.contains("a2a_client"), "{}", wrong.stderr);
    let wrong = run(&["scenarios", "show", "PROOF-0001"]);
    assert_eq!(wrong.code, Some(64), "{}", wrong.stderr);
}

#[test]
fn the_coverage_is_told() {
    let (attacks, _) = library();
    let told = json(&run(&["scenarios", "coverage", "--format", "json"]).stdout);
    assert_eq!(told["documents"], attacks.len());
    let page = include_str!("../../../../docs/reference/scenarios.md");
    assert!(page.contains(&format!("set of {} attacks", attacks.len())));
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&format!("{} attacks with their controls", attacks.len())));
    assert_eq!(
        told["categories"].as_array().unwrap().len(),
        Category::ALL.len()
    );
    let of = |category: &Value| -> usize {
        let modes = category["modes"].as_object().unwrap().values();
        modes.map(|ids| ids.as_array().unwrap().len()).sum()
    };
    let counted: usize = told["categories"].as_array().unwrap().iter().map(of).sum();
    let expected: usize = attacks.iter().map(|file| file.modes().len()).sum();
    assert_eq!(counted, expected);
    let human = run(&["scenarios", "coverage"]).stdout;
    assert!(human.lines().all(|line| line.len() <= 80), "{human}");
    assert!(
        human.contains("ASI10") && human.contains("cross_protocol_chain"),
        "{human}"
    );
}
