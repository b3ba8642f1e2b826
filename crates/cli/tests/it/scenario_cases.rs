//! The labelled cases of the threat library: every one is judged as it says, and every document has one of every kind.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proofhouse_campaign::cases::{CaseKind, LabelledCase, is_cases_file, judge, read};
use proofhouse_campaign::library;
use proofhouse_oatf::load;

/// What the `needs` of a case may name and is there; a case that needs something else is left out until it is.
const BUILT: &[&str] = &["assembly", "canary"];

fn text(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "a file of this project")]
    let text = std::fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folders = std::fs::read_dir(root).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .filter(|folder| folder.is_dir())
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
}
