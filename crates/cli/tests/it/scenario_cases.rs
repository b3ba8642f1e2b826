//! The labelled cases of the threat library and of the guard's own documents: every one is judged as it says, and every
//! document has one of every kind.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proofhouse_campaign::cases::{CaseKind, LabelledCase, is_cases_file, judge, read};
use proofhouse_campaign::library;
use proofhouse_detect::{Scanner, TraceMessage};
use proofhouse_oatf::{Direction, load};
use serde_json::Value;

/// What the `needs` of a case may name and is there; a case that needs something else is left out until it is.
const BUILT: &[&str] = &["assembly", "canary"];

fn text(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "a file of this project")]
    let text = std::fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where the guard's own documents lie.
fn pack() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../guard/src/pack")
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folders = std::fs::read_dir(root).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .filter(|folder| folder.is_dir())
        .chain([pack()])
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| is_cases_file(path))
        .collect();
    files.sort();
    files
}

/// The file of the document that cases are about.
fn document_of(cases: &Path) -> PathBuf {
    let name = cases.file_name().unwrap().to_str().unwrap();
    cases.with_file_name(name.replace(".cases.", "."))
}

/// What is wrong with the cases of one document, a line each.
fn misjudged(file: &Path) -> String {
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut wrong = String::new();
    let (cases, findings) = read(&text(file));
    for finding in findings {
        let _ = writeln!(wrong, "{name}: {finding}");
    }
    let has = |kind: &&CaseKind| cases.iter().any(|case| case.kind == **kind);
    for kind in CaseKind::ALL.iter().filter(|kind| !has(kind)) {
        let _ = writeln!(wrong, "{name}: no case of kind {}", kind.as_str());
    }
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    if names.len() < cases.len() {
        let _ = writeln!(wrong, "{name}: two cases have one name");
    }
    let document = document_of(file);
    let loaded = load(&text(&document)).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let is_judged = |case: &LabelledCase| {
        let needs = case.needs.as_deref();
        needs.is_none_or(|needs| BUILT.contains(&needs))
    };
    let judged = match judge(&loaded.document, &cases) {
        Ok(judged) => judged,
        Err(error) => {
            let _ = writeln!(wrong, "{name}: {error}");
            return wrong;
        }
    };
    for judged in judged {
        let case = judged.case;
        if is_judged(case) && !judged.is_right() {
            let _ = writeln!(
                wrong,
                "{name}:{} {:<11} expected {:<13} got {:<13} matched [{}] {}",
                case.line,
                case.kind.as_str(),
                case.expect.as_str(),
                judged.result.as_str(),
                judged.matched.join(", "),
                case.name,
            );
        }
    }
    wrong
}

#[test]
fn every_case_is_judged_as_it_says() {
    let files = files();
    let wrong: String = files.iter().map(|file| misjudged(file)).collect();
    assert!(wrong.is_empty(), "misjudged cases:\n{wrong}");
}

#[test]
fn no_document_is_without_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let attacks = library::attacks();
    let has_none = |path: &&str| !root.join(path).with_extension("cases.yaml").is_file();
    let without: Vec<&str> = attacks
        .iter()
        .map(|attack| attack.path)
        .filter(has_none)
        .collect();
    assert!(without.is_empty(), "no labelled cases: {without:?}");
    for (name, _) in proofhouse_guard::pack::DOCUMENTS {
        for ending in ["cases", "twin"] {
            let path = pack().join(format!("{name}.{ending}.yaml"));
            assert!(path.is_file(), "{name} has no {ending}");
        }
    }
}

/// The guard's own documents, compiled.
fn own_documents() -> Scanner {
    let mut builder = Scanner::builder();
    for (name, text) in proofhouse_guard::pack::DOCUMENTS {
        let mut document = load(text).unwrap().document;
        for indicator in document.attack.indicators.iter_mut().flatten() {
            indicator.actor = None;
        }
        builder = builder.add(*name, document);
    }
    builder.build().unwrap()
}

fn message(operation: &str, direction: Direction, content: Value) -> TraceMessage {
    let mut message = TraceMessage::new("mcp", operation, content);
    message.direction = Some(direction);
    message
}

/// What the MCP servers of a document send: their lists of tools, and every result.
fn sent_by_servers(text: &str) -> Vec<TraceMessage> {
    let document = load(text).unwrap().document;
    let actors = document.attack.execution.actors().iter();
    let phases = actors.flat_map(|actor| &actor.phases);
    let mut sent = Vec::new();
    for state in phases.filter_map(|phase| phase.state.as_ref()) {
        let tools = state["tools"].as_array().cloned().unwrap_or_default();
        if tools.is_empty() {
            continue;
        }
        let results = tools.iter().flat_map(|tool| tool["responses"].as_array());
        let results: Vec<Value> = results.flatten().cloned().collect();
        let list = serde_json::json!({"tools": tools});
        sent.push(message("tools/list", Direction::Response, list));
        for result in results {
            sent.push(message("tools/call", Direction::Response, result));
        }
    }
    sent
}

/// How many messages of the library's controls and innocent cases the guard's own documents find something in, and how
/// many of its attacks they find by what the servers send.
#[test]
fn the_guards_own_documents_find_what_the_page_says() {
    let scanner = own_documents();
    let mut innocent = Vec::new();
    for file in files() {
        let (cases, _) = read(&text(&file));
        let cases = cases.iter().filter(|case| case.kind.is_innocent());
        for one in cases.flat_map(|case| &case.messages) {
            if one.operation == "tools/call" || one.operation == "tools/list" {
                innocent.push(message(&one.operation, one.direction, one.content.clone()));
            }
        }
    }
    let (controls, attacks): (Vec<_>, Vec<_>) = library::all()
        .iter()
        .partition(|(path, _)| path.ends_with(".twin.yaml"));
    innocent.extend(controls.iter().flat_map(|(_, text)| sent_by_servers(text)));
    let alarms: Vec<_> = innocent
        .iter()
        .filter(|message| !scanner.scan(message).is_empty())
        .collect();
    let attacks = attacks.iter().map(|(_, text)| sent_by_servers(text));
    let attacks: Vec<_> = attacks.filter(|sent| !sent.is_empty()).collect();
    let is_found = |sent: &&Vec<TraceMessage>| sent.iter().any(|one| !scanner.scan(one).is_empty());
    let found = attacks.iter().filter(is_found).count();
    let page = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explanation/guard.md"));
    for said in [
        format!("{} of {} messages", alarms.len(), innocent.len()),
        format!("{found} of the {} attacks", attacks.len()),
    ] {
        assert!(
            page.contains(&said),
            "docs/explanation/guard.md does not say `{said}`: {alarms:#?}"
        );
    }
}
