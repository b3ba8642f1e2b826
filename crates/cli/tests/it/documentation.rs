//! Holds the documents to the truth: every flag is described, generated files and examples are the real ones. `book.rs`
//! checks links and the commands that are shown.
#![allow(clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "our own documents")]
    let text = fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the binary prints on stdout.
fn proofhouse(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the binary runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_command_and_flag_is_described() {
    let page = text(&root().join("docs/reference/cli.md"));
    let readme = text(&root().join("README.md"));
    let help = proofhouse(&["--help"]);
    let commands = commands_in(&help);
    assert!(commands.len() > 5, "{commands:?}");
    for command in &commands {
        assert!(
            page.contains(&format!("\n## {command}\n")),
            "docs/reference/cli.md has no section on {command}"
        );
        assert!(
            readme.contains(&format!("| `proofhouse {command}")),
            "the README's table has no row on {command}"
        );
        let help = proofhouse(&[command, "--help"]);
        check_flags(&page, command, &help);
        for part in commands_in(&help) {
            assert!(
                page.contains(&format!("\n### {command} {part}\n")),
                "docs/reference/cli.md has no section on {command} {part}"
            );
            let help = proofhouse(&[command, &part, "--help"]);
            assert!(help.contains("Example"), "{command} {part}");
            check_flags(&page, &format!("{command} {part}"), &help);
        }
    }
}

/// The commands that a help text lists.
fn commands_in(help: &str) -> Vec<String> {
    let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .map(str::to_owned)
        .collect()
}

fn check_flags(page: &str, command: &str, help: &str) {
    let options = help.split_once("Options:\n").map_or("", |(_, rest)| rest);
    let flags = options
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        .flat_map(str::split_whitespace)
        // A value that may be left out stands in brackets.
        .filter_map(|word| word.split('[').next())
        .filter(|word| word.starts_with("--") && *word != "--help");
    for flag in flags {
        assert!(
            page.contains(flag),
            "docs/reference/cli.md does not describe {command} {flag}"
        );
    }
}

#[test]
fn the_committed_schemas_are_those_printed() {
    for kind in [
        "oatf", "tool", "agent", "trigger", "schedule", "result", "config", "operator", "cases",
        "policy",
    ] {
        let committed = text(&root().join(format!("docs/schema/{kind}.schema.json")));
        assert!(
            committed == proofhouse(&["schema", kind]),
            "update it: cargo run -- schema {kind} > docs/schema/{kind}.schema.json"
        );
    }
}

#[test]
fn the_committed_pages_of_keys_are_those_printed() {
    for kind in [
        "oatf", "tool", "agent", "trigger", "schedule", "config", "operator", "cases", "policy",
    ] {
        let committed = text(&root().join(format!("docs/reference/{kind}.md")));
        assert!(
            committed == proofhouse(&["schema", kind, "--reference"]),
            "update it: cargo run -- schema {kind} --reference > docs/reference/{kind}.md"
        );
    }
}

#[test]
fn the_codes_of_manifests_are_those_of_the_table() {
    let page = text(&root().join("docs/reference/tools.md"));
    let (_, section) = page
        .split_once("\n### Codes\n")
        .expect("a section on codes");
    let shown: Vec<&str> = section
        .lines()
        .skip_while(|line| !line.starts_with("| TM-"))
        .take_while(|line| line.starts_with("| TM-"))
        .collect();
    let table = proofhouse_manifest::CODES.iter();
    let table: Vec<String> = table
        .map(|(code, text)| format!("| {code} | {text} |"))
        .collect();
    assert_eq!(shown, table, "the table in docs/reference/tools.md");
}

#[test]
fn the_codes_of_the_configuration_are_those_explained() {
    let page = text(&root().join("docs/reference/configuration.md"));
    let shown: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| PC-"))
        .collect();
    let all: serde_json::Value =
        serde_json::from_str(&proofhouse(&["explain", "--format", "json"])).expect("JSON");
    let all = all.as_array().expect("a list").iter();
    let told = all.filter(|one| {
        one["code"]
            .as_str()
            .is_some_and(|code| code.starts_with("PC-"))
    });
    let told: Vec<String> = told
        .map(|one| {
            format!(
                "| {} | {} |",
                one["code"].as_str().unwrap_or(""),
                one["text"].as_str().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(shown, told, "the table in docs/reference/configuration.md");
}

#[test]
fn the_page_on_rust_shows_the_real_example() {
    let page = text(&root().join("docs/how-to/rust.md"));
    let shown = page
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the page has a Rust example");
    let example = text(&root().join("crates/oatf/examples/judge.rs"));
    let mut lines = example.lines().map(str::trim);
    for line in shown.lines().map(str::trim) {
        assert!(
            lines.any(|real| real == line),
            "crates/oatf/examples/judge.rs has no line `{line}`, or not in this order"
        );
    }
}

/// The texts of the Rust files below a directory.
fn sources(directory: &Path, found: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push_str(&text(&path));
        }
    }
}

/// Holds the tests that the last cells of a table name to those that the crates have; more than this many are named.
fn tests_are_there(table: &str, crates: &[&str], more_than: usize) {
    let mut known = String::new();
    for name in crates {
        for part in ["src", "tests"] {
            sources(&root().join("crates").join(name).join(part), &mut known);
        }
    }
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let tests = rows.filter_map(|row| row.rsplit("| ").next());
    let words = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let names = words.filter_map(|word| word.rsplit("::").next());
    let names: Vec<&str> = names
        .filter(|name| !name.is_empty() && !name.contains('/'))
        .collect();
    assert!(names.len() > more_than, "{names:?}");
    for name in names {
        assert!(known.contains(&format!("fn {name}(")), "no test `{name}`");
    }
}

/// The page about what the server promises names tests that are there.
#[test]
fn the_tests_of_the_promises_are_there() {
    let page = text(&root().join("docs/explanation/server-promises.md"));
    tests_are_there(&page, &["wire", "store", "server", "cli"], 40);
}

/// The page about right outcomes names tests that are there.
#[test]
fn the_tests_of_what_once_went_wrong_are_there() {
    let page = text(&root().join("docs/explanation/truth.md"));
    let (_, table) = page.split_once("## What once went wrong").unwrap();
    tests_are_there(table, &["range", "agent", "campaign", "cli"], 30);
}
