//! Holds ARCHITECTURE.md to the truth: the map, who may use whom, how large crates are, the sentence each file opens
//! with, that errors have types, and that the name of a type means one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::sources::{code_of, root, rust_files};

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");

/// The crate that any other may use for its tests, and for nothing else.
const TEST_SUPPORT: &str = "test-support";

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

/// The most lines of code that a crate may have, so that it can still be read as one thing.
const MAX_CRATE_LINES: usize = 15_000;

/// The same of the binary: what others could call belongs into libraries.
const MAX_BINARY_LINES: usize = 10_000;

#[test]
fn no_crate_is_too_large() {
    let members = members();
    let ours = members.iter();
    let ours = ours.filter(|(_, member)| member.directory.starts_with("crates/"));
    let sizes: BTreeMap<&str, usize> = ours
        .map(|(name, _)| {
            let files = code_of(name);
            (
                name.as_str(),
                files.iter().map(|(_, lines)| lines.len()).sum(),
            )
        })
        .collect();
    assert!(
        sizes.values().all(|lines| *lines > 0),
        "no code was found in some: {sizes:#?}"
    );
    let too_large: Vec<_> = sizes
        .iter()
        .filter(|(name, lines)| {
            let most = if **name == "cli" {
                MAX_BINARY_LINES
            } else {
                MAX_CRATE_LINES
            };
            **lines > most
        })
        .collect();
    assert!(
        too_large.is_empty(),
        "too many lines of code: {too_large:?}, of {sizes:#?}"
    );
}

/// The code of every crate by file, as paths from `crates/`.
fn all_code() -> Vec<(String, Vec<(usize, String)>)> {
    let members = members();
    let ours = members.iter();
    let ours = ours.filter(|(_, member)| member.directory.starts_with("crates/"));
    ours.flat_map(|(name, _)| code_of(name)).collect()
}

#[test]
fn errors_have_types() {
    let code = all_code();
    assert!(code.len() > 50, "only {} files were found", code.len());
    let untyped: Vec<String> = code
        .iter()
        .flat_map(|(file, lines)| {
            let lines = untyped_errors(lines).into_iter();
            lines.map(move |line| format!("{file}:{line}"))
        })
        .collect();
    assert!(
        untyped.is_empty(),
        "{} times `Result<_, String>`, which says nothing of what can go wrong: {untyped:#?}",
        untyped.len()
    );
}

#[test]
fn untyped_errors_are_found() {
    let lines = [
        "fn one() -> Result<(), String> {",
        "type Two = Option<Result<Vec<(u8, String)>, String>>;",
        "    read: impl Fn(&str) -> Result<",
        "        Map<String, Value>,",
        "        String,",
        "    >,",
        ") -> Result<String, MyError> {}",
        "fn five() -> Result<Result<u8, String>, Error> {}",
    ];
    let lines: Vec<(usize, String)> = (1..).zip(lines.map(str::to_owned)).collect();
    assert_eq!(untyped_errors(&lines), [1, 2, 3, 8]);
}

/// The lines where a `Result` has a text for its error.
fn untyped_errors(lines: &[(usize, String)]) -> Vec<usize> {
    let mut found = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        for (start, opening) in line.match_indices("Result<") {
            let rest = lines[index + 1..].iter().take(8);
            let rest = rest.fold(
                line[start + opening.len()..].to_owned(),
                |text, (_, line)| text + " " + line,
            );
            if matches!(arguments(&rest).as_slice(), [_, "String"]) && found.last() != Some(number)
            {
                found.push(*number);
            }
        }
    }
    found
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

/// A type is called the same in no two places, private or not, so that a reader who has met it knows what it is.
#[test]
fn the_name_of_a_type_means_one_thing() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, lines) in all_code() {
        for (number, line) in lines {
            if let Some(name) = declared_type(&line) {
                let place = format!("{file}:{number}");
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    // Two of one kind for two platforms are one type.
    places.retain(|_, places| {
        let files: BTreeSet<&str> = places
            .iter()
            .filter_map(|place| place.split(':').next())
            .collect();
        files.len() > 1
    });
    assert!(
        places.is_empty(),
        "names with more than one meaning: {places:#?}"
    );
}

/// The name of the type that a line declares, if it does. Associated types belong to their trait.
fn declared_type(line: &str) -> Option<&str> {
    let words = line.trim_start();
    let item = match words.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => words,
    };
    let (kind, rest) = item.split_once(' ')?;
    let is_alias = kind == "type" && words.len() == line.len();
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_name && (matches!(kind, "struct" | "enum" | "trait") || is_alias)).then_some(name)
}
