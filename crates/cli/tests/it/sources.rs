//! The Rust code of this repository as tests look at it: file by file, without comments and without tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below a directory, in the order of their names.
pub(crate) fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if !path.ends_with("target") {
                rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// A line of code, with its number in the file.
pub(crate) type CodeLine = (usize, String);

/// The lines of code of a crate by file, as paths from `crates/`. What only tests have is left out: files called
/// `tests.rs` or `*_tests.rs`, modules and items behind `#[cfg(test)]`, and the files of such modules.
pub(crate) fn code_of(member: &str) -> Vec<(String, Vec<CodeLine>)> {
    let crates = root().join("crates");
    let mut files = Vec::new();
    rust_files(&crates.join(member).join("src"), &mut files);
    let mut code = Vec::new();
    let mut of_tests = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        #[expect(clippy::disallowed_methods, reason = "our own code")]
        let text = fs::read_to_string(&file).expect("code is text");
        let (lines, modules) = without_tests(&text);
        let folder = match &*name {
            "mod" | "lib" | "main" => file.with_file_name(""),
            _ => file.with_extension(""),
        };
        of_tests.extend(modules.iter().flat_map(|module| {
            let path = folder.join(module);
            [path.with_extension("rs"), path]
        }));
        code.push((file, lines));
    }
    code.retain(|(file, _)| !of_tests.iter().any(|module| file.starts_with(module)));
    let from_crates = |file: PathBuf| {
        let path = file.strip_prefix(&crates).expect("a file of the crate");
        path.display().to_string().replace('\\', "/")
    };
    let code = code.into_iter();
    code.map(|(file, lines)| (from_crates(file), lines))
        .collect()
}

/// The lines of code of a text, and the modules in other files that only tests have. It relies on the format that rustfmt
/// gives: what opens at the end of a line closes on a line of its own, as far to the left.
fn without_tests(text: &str) -> (Vec<CodeLine>, Vec<String>) {
    let (mut lines, mut modules) = (Vec::new(), Vec::new());
    let mut numbered = text.lines().enumerate();
    while let Some((index, line)) = numbered.next() {
        let written = line.trim_start();
        if written != "#[cfg(test)]" {
            if !written.is_empty() && !written.starts_with("//") {
                lines.push((index + 1, line.to_owned()));
            }
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - written.len()]);
        for (_, line) in numbered.by_ref() {
            let item = line.trim();
            let is_nested = line.len() - item.len() >= end.len();
            let is_whole = item.ends_with(';') || item.ends_with("{}");
            if is_whole && !is_nested {
                let module = item.strip_suffix(';').and_then(|it| it.split_once("mod "));
                modules.extend(module.map(|(_, name)| name.to_owned()));
                break;
            }
            if line == end {
                break;
            }
        }
    }
    (lines, modules)
}

#[test]
fn code_is_what_is_neither_a_comment_nor_a_test() {
    let text = "\
//! A file.

use a::b;

#[cfg(test)]
mod recipe;

/// Documented.
fn one() {
    #[cfg(test)]
    count();
    two(); // Said.
}

#[cfg(test)]
mod tests {
    fn three() {
        four();
    }
}

fn five() {}
";
    let (lines, modules) = without_tests(text);
    let lines: Vec<_> = lines.iter().map(|(at, line)| (*at, line.trim())).collect();
    let expected = [
        (3, "use a::b;"),
        (9, "fn one() {"),
        (12, "two(); // Said."),
        (13, "}"),
        (22, "fn five() {}"),
    ];
    assert_eq!(lines, expected);
    assert_eq!(modules, ["recipe"]);
}
