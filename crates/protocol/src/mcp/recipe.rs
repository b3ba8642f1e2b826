//! Holds CONTRIBUTING.md to the truth: a revision of MCP is named in one place, its row.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::McpRevision;

/// Files that may name a revision by its date besides the table, each with its reason.
const EXCEPTIONS: [&str; 1] = [
    // Test code: which revision each SDK of others speaks, whatever we know.
    "test-support/src/peers.rs",
];

/// More than any file of code has.
const MAX_BYTES: u64 = 1 << 20;

/// The code of a file, without comments and without the tests at its end.
fn code(path: &Path) -> String {
    let file = File::open(path).expect("the file opens");
    let mut text = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "the size is capped")]
    file.take(MAX_BYTES)
        .read_to_end(&mut text)
        .expect("the file is read");
    let text = String::from_utf8(text).expect("code is text");
    let code = text.lines().take_while(|line| *line != "mod tests {");
    let code = code.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            rust_files(&path, files);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

#[test]
fn a_revision_is_named_in_its_row_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !crates.join("test-support").is_dir() {
        // The package has this crate only.
        return;
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates are there") {
        let source = entry.expect("an entry").path().join("src");
        if source.is_dir() {
            rust_files(&source, &mut files);
        }
    }
    assert!(files.len() > 100, "only {} files were found", files.len());
    let mut rows = 0;
    for path in &files {
        let code = code(path);
        let dates = McpRevision::ALL.iter();
        let named: usize = dates
            .map(|known| code.matches(known.as_str()).count())
            .sum();
        let name = path.strip_prefix(&crates).unwrap_or(path);
        let name = name.to_string_lossy().replace('\\', "/");
        if name == "protocol/src/mcp/revision.rs" {
            rows = named;
        } else if !EXCEPTIONS.contains(&&*name) {
            assert_eq!(named, 0, "{name} names a revision of MCP by its date");
        }
    }
    assert_eq!(rows, McpRevision::ALL.len(), "one row each");
}
