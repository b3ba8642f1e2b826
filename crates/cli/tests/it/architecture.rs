//! Holds ARCHITECTURE.md to the truth: the map, who may use whom, the sentence each file opens with, and that errors have
//! types.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");

/// The crate that any other may use for its tests, and for nothing else.
const TEST_SUPPORT: &str = "test-support";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text under a heading, up to the next heading of the same level.
fn section(heading: &str) -> &'static str {
    let (_, rest) = PAGE
        .split_once(&format!("\n## {heading}\n"))
        .expect(heading);
    rest.split("\n## ").next().unwrap_or_default()
}

/// The directories the map names, as paths from the root.
fn map() -> BTreeSet<String> {
    let block = section("The map").split("```").nth(1).unwrap_or_default();
    let mut parent = "";
    let mut directories = BTreeSet::new();
    for line in block.lines() {
        let Some(directory) = line
            .split_whitespace()
            .next()
            .and_then(|word| word.strip_suffix('/'))
        else {
            continue;
        };
        match line.len() - line.trim_start().len() {
            0 => {
                parent = directory;
                directories.insert(directory.to_owned());
            }
            2 => {
                directories.insert(format!("{parent}/{directory}"));
            }
            _ => {}
        }
    }
    directories
}

/// What the table allows: `None` is everything.
fn table() -> BTreeMap<String, Option<BTreeSet<String>>> {
    section("Who may use whom")
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| ")?
                .strip_suffix(" |")?
                .split_once(" | ")
        })
        .filter(|(name, _)| *name != "crate")
        .map(|(name, allowed)| {
            let allowed = match allowed {
                "everything" => None,
                "nothing of ours" => Some(BTreeSet::new()),
                names => Some(names.split(", ").map(str::to_owned).collect()),
            };
            (name.to_owned(), allowed)
        })
        .collect()
}

/// One crate of the workspace.
struct Member {
    /// Its directory, from the root.
    directory: String,
    /// The crates of ours it depends on, for building or for tests, by short name.
    uses: Vec<String>,
    /// Those among them that more than its tests need.
    needs: Vec<String>,
    /// The programs of its integration tests.
    tests: Vec<String>,
}

/// The crates of the workspace by short name, the last part of their directory.
fn members() -> BTreeMap<String, Member> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let top = path(&metadata["workspace_root"]);
    let members = list(&metadata["packages"]).iter().map(|package| {
        let directory = path(&package["manifest_path"])
            .parent()
            .and_then(|directory| directory.strip_prefix(top).ok())
            .expect("members lie in the workspace");
        let dependencies = list(&package["dependencies"]).iter();
        let ours = dependencies.filter(|dependency| dependency["path"].is_string());
        let of_tests = |target: &&Value| list(&target["kind"]).contains(&Value::from("test"));
        let tests = list(&package["targets"]).iter().filter(of_tests);
        let member = Member {
            directory: directory.display().to_string().replace('\\', "/"),
            needs: ours
                .clone()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| short(path(&dependency["path"])))
                .collect(),
            uses: ours
                .map(|dependency| short(path(&dependency["path"])))
                .collect(),
            tests: tests
                .map(|target| target["name"].as_str().expect("a name").to_owned())
                .collect(),
        };
        (short(directory), member)
    });
    members.collect()
}

fn path(value: &Value) -> &Path {
    Path::new(value.as_str().expect("a path"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn short(directory: &Path) -> String {
    let name = directory.file_name().expect("a directory has a name");
    name.to_string_lossy().into_owned()
}

#[test]
fn every_crate_is_on_the_map() {
    let map = map();
    for Member { directory, .. } in members().values() {
        assert!(map.contains(directory), "{directory} is not on the map");
    }
}

#[test]
fn everything_on_the_map_exists() {
    let map = map();
    assert!(map.len() > 5, "the map could not be read: {map:?}");
    for directory in map {
        assert!(
            root().join(&directory).is_dir(),
            "{directory} is on the map only"
        );
    }
}

#[test]
fn crates_use_what_the_table_allows() {
    let (members, table) = (members(), table());
    let known: BTreeSet<_> = members.keys().collect();
    let listed: BTreeSet<_> = table.keys().collect();
    assert_eq!(
        known, listed,
        "the crates there are, and those the table lists"
    );
    for (name, Member { uses, .. }) in &members {
        let Some(allowed) = &table[name] else {
            continue;
        };
        for used in uses.iter().filter(|used| *used != TEST_SUPPORT) {
            assert!(allowed.contains(used), "{name} may not use {used}");
        }
        for allowed in allowed {
            assert!(
                members.contains_key(allowed),
                "the table lets {name} use {allowed}, which does not exist"
            );
        }
    }
}

#[test]
fn only_tests_need_the_support_of_tests() {
    for (name, Member { needs, .. }) in &members() {
        assert!(
            !needs.iter().any(|needed| needed == TEST_SUPPORT),
            "{name} needs {TEST_SUPPORT} for more than its tests"
        );
    }
}

#[test]
fn the_integration_tests_of_a_crate_are_one_program() {
    for (name, Member { tests, .. }) in &members() {
        assert!(
            tests.is_empty() || *tests == ["it"],
            "{name} has other test programs than `tests/it/main.rs`: {tests:?}"
        );
    }
}

#[test]
fn every_file_opens_with_a_sentence() {
    let mut files = Vec::new();
    for directory in ["crates", "bench", "fuzz"] {
        rust_files(&root().join(directory), &mut files);
    }
    assert!(files.len() > 50, "only {} files were found", files.len());
    let silent: Vec<_> = files
        .iter()
        .filter(|file| {
            let mut first = String::new();
            let opened = File::open(file).expect("the file opens");
            BufReader::new(opened).read_line(&mut first).expect("text");
            !first.starts_with("//! ")
        })
        .collect();
    assert!(
        silent.is_empty(),
        "no `//!` sentence at the top: {silent:#?}"
    );
}

#[test]
fn errors_have_types() {
    let mut files = Vec::new();
    for Member { directory, .. } in members().values() {
        let source = root().join(directory).join("src");
        if directory.starts_with("crates/") {
            rust_files(&source, &mut files);
        }
    }
    assert!(files.len() > 50, "only {} files were found", files.len());
    let read: Vec<_> = files
        .iter()
        .map(|file| {
            #[expect(clippy::disallowed_methods, reason = "our own source")]
            let text = fs::read_to_string(file).expect("the file is text");
            (file, without_tests(&text))
        })
        .collect();
    let tests: BTreeSet<PathBuf> = read
        .iter()
        .flat_map(|(file, (_, modules))| modules.iter().map(|module| file.with_file_name(module)))
        .collect();
    let untyped: Vec<String> = read
        .iter()
        .filter(|(file, _)| !tests.contains(*file))
        .flat_map(|(file, (code, _))| {
            let lines = untyped_errors(code).into_iter();
            lines.map(|line| format!("{}:{line}", file.display()))
        })
        .collect();
    assert!(
        untyped.is_empty(),
        "{} times `Result<_, String>`, which says nothing of what can go wrong: {untyped:#?}",
        untyped.len()
    );
}

#[test]
fn untyped_errors_are_found_outside_of_tests() {
    let text = "\
/// Not this: Result<(), String>.
fn one() -> Result<(), String> {
    Ok(())
}
type Two = Option<Result<Vec<(u8, String)>, String>>;
fn three(
    read: impl Fn(&str) -> Result<
        Map<String, Value>,
        String,
    >,
) -> Result<String, MyError> {}
#[cfg(test)]
#[path = \"more.rs\"]
mod tests;
#[cfg(test)]
mod odd;
#[cfg(test)]
mod inner {
    fn four() -> Result<(), String> {
        Ok(())
    }
}
fn five() -> Result<Result<u8, String>, Error> {}
";
    let (code, modules) = without_tests(text);
    assert_eq!(untyped_errors(&code), [2, 5, 7, 23]);
    assert_eq!(modules, ["more.rs", "odd.rs"]);
}

/// A file's code without comments and without items that only tests have, each of their lines left empty, and the files
/// of the modules among those items. It relies on the layout that rustfmt gives.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut code, mut modules) = (String::new(), Vec::new());
    // The indentation of the item that is left out, and the file it names.
    let mut item: Option<(usize, Option<String>)> = None;
    for line in text.lines() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        match &mut item {
            None if words == "#[cfg(test)]" => item = Some((indent, None)),
            None if words.starts_with("//") => {}
            None => code.push_str(line),
            Some((at, file)) if *at == indent => {
                if let Some(path) = words.strip_prefix("#[path = ") {
                    *file = Some(path.trim_matches(['"', ']']).to_owned());
                } else if let Some(name) = words
                    .strip_prefix("mod ")
                    .and_then(|name| name.strip_suffix(';'))
                {
                    modules.push(file.take().unwrap_or_else(|| format!("{name}.rs")));
                    item = None;
                } else if words.starts_with('}') || words.ends_with([';', '}']) {
                    item = None;
                }
            }
            Some(_) => {}
        }
        code.push('\n');
    }
    (code, modules)
}

/// The lines, from 1, where a `Result` has a text for its error.
fn untyped_errors(code: &str) -> Vec<usize> {
    let results = code.match_indices("Result<").filter(|(start, opening)| {
        let arguments = arguments(&code[start + opening.len()..]);
        matches!(arguments[..], [_, "String"])
    });
    let newlines = |end: usize| code[..end].matches('\n').count();
    results.map(|(start, _)| newlines(start) + 1).collect()
}

/// The arguments of a type, up to the bracket that closes them.
fn arguments(text: &str) -> Vec<&str> {
    let (mut arguments, mut start, mut depth, mut before) = (Vec::new(), 0, 0_usize, ' ');
    for (at, c) in text.char_indices() {
        // An arrow closes nothing.
        let closes = matches!(c, '>' | ')' | ']') && before != '-';
        let ends = depth == 0 && (closes || c == ',');
        if ends {
            arguments.push(text[start..at].trim());
            start = at + 1;
        }
        if matches!(c, '<' | '(' | '[') {
            depth += 1;
        } else if closes && depth > 0 {
            depth -= 1;
        } else if closes {
            break;
        }
        before = c;
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
