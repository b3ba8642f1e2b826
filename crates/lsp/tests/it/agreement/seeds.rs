//! The files to begin with: every valid one of this repository, and those that the documentation shows.

use std::path::{Path, PathBuf};

use proofhouse_lsp::formats::{FileKind, FormatKind, check};
use proofhouse_oatf::ReadLimits;
use proofhouse_source::{DiagnosticSeverity, Source};
use serde_json::Value;

/// A valid file.
#[derive(Debug)]
pub(super) struct Seed {
    pub(super) name: String,
    pub(super) kind: FileKind,
    pub(super) format: FormatKind,
    pub(super) value: Value,
}

/// What is no source of ours.
const SKIPPED: &[&str] = &["target", "node_modules", ".git", "deploy", ".proofhouse"];

/// Every valid file of a format that is no threat document.
pub(super) fn all() -> Vec<Seed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    files_below(&root, &mut files);
    files.sort();
    let mut seeds = Vec::new();
    for path in files {
        #[expect(clippy::disallowed_methods, reason = "a file of this repository")]
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy();
        if name.ends_with(".md") {
            for (number, block) in blocks(&text).enumerate() {
                let place = format!("{name}, block {number}");
                add(&place, Path::new("proofhouse.yaml"), &block, &mut seeds);
                add(&place, Path::new("x.cases.yaml"), &block, &mut seeds);
                add(&place, Path::new("x.yaml"), &block, &mut seeds);
            }
        } else {
            add(&name, &path, &text, &mut seeds);
        }
    }
    seeds
}

fn files_below(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_symlink() || SKIPPED.contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            files_below(&path, into);
        } else if name.ends_with(".yaml") || name.ends_with(".md") {
            into.push(path);
        }
    }
}

/// The blocks of YAML that a page shows.
fn blocks(page: &str) -> impl Iterator<Item = String> {
    let mut parts = page.split("\n```yaml");
    parts.next();
    parts.filter_map(|part| {
        let (_, rest) = part.split_once('\n')?;
        let (block, _) = rest.split_once("```")?;
        Some(block.to_owned())
    })
}

/// Labelled cases are many and alike.
const MOST_CASES: usize = 8;

fn cases_of(seeds: &[Seed]) -> usize {
    let cases = seeds.iter().filter(|seed| seed.kind == FileKind::Cases);
    cases.count()
}

fn add(name: &str, path: &Path, text: &str, seeds: &mut Vec<Seed>) {
    let kind = FileKind::of(Some(path), text);
    if kind == FileKind::Document {
        return;
    }
    for part in text.split("\n---\n") {
        let format = kind.format(part);
        let findings = check(Some(path), part, &ReadLimits::default()).findings;
        let is_valid = findings
            .iter()
            .all(|finding| finding.severity != DiagnosticSeverity::Error);
        if !is_valid
            || FileKind::of(Some(path), part) != kind
            || seeds
                .iter()
                .any(|seed| seed.name == name && seed.kind == kind)
            || (kind == FileKind::Cases && cases_of(seeds) == MOST_CASES)
        {
            continue;
        }
        let Ok(source) = Source::read(part, &ReadLimits::default()) else {
            continue;
        };
        seeds.push(Seed {
            name: name.to_owned(),
            kind,
            format,
            value: source.root().to_value(&mut |_| {}),
        });
    }
}
