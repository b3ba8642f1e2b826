//! What the packages of the SDK hold: their pages link to nothing outside.

#![expect(clippy::disallowed_methods, reason = "files of this repository")]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that are published.
const PACKAGES: [&str; 5] = ["source", "expr", "protocol", "oatf", "detect"];

#[test]
fn no_package_has_an_address_that_is_empty() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let is_empty = read("Cargo.toml")
        .lines()
        .any(|line| line == "repository = \"\"");
    for name in PACKAGES {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let names_it = manifest.lines().any(|line| line.starts_with("repository"));
        assert_eq!(names_it, !is_empty, "{name}");
    }
}

/// An example that needs a feature says so, or a build without it fails.
#[test]
fn examples_name_the_features_they_need() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for entry in fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path
            .file_stem()
            .filter(|_| path.extension().is_some_and(|e| e == "rs"))
        else {
            continue;
        };
        if fs::read_to_string(&path)
            .unwrap()
            .contains("DefaultCelEvaluator")
        {
            let section = format!(
                "[[example]]\nname = \"{}\"\nrequired-features = [\"cel\"]\n",
                name.to_string_lossy()
            );
            assert!(manifest.contains(&section), "{section}");
        }
    }
}

/// The guide for evaluators has the functions of the reference page, word by word: a package cannot link to that page.
#[test]
fn the_guide_lists_the_functions_of_expressions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let functions = text.split("| function | what it gives | example |").nth(1);
        let rows = functions.unwrap_or_default().lines().skip(1);
        rows.take_while(|line| line.starts_with('|'))
            .map(str::to_owned)
            .collect()
    };
    let reference = rows("../../docs/reference/expressions.md");
    assert!(reference.len() > 20);
    assert_eq!(rows("guide/evaluator.md"), reference);
}

#[test]
fn pages_link_to_what_their_package_holds() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut links = 0;
    for name in PACKAGES {
        let root = crates.join(name).canonicalize().unwrap();
        let mut pages: Vec<PathBuf> = vec![root.join("README.md")];
        if let Ok(guide) = fs::read_dir(root.join("guide")) {
            pages.extend(guide.map(|entry| entry.unwrap().path()));
        }
        for page in pages.iter().filter(|page| page.exists()) {
            let text = fs::read_to_string(page).unwrap();
            for link in text.split("](").skip(1) {
                let target = link.split([')', '#']).next().unwrap_or_default();
                if target.is_empty() || target.contains("://") {
                    continue;
                }
                let place = page.parent().unwrap().join(target).canonicalize();
                let inside = place.is_ok_and(|place| place.starts_with(&root));
                assert!(inside, "{}: {target}", page.display());
                links += 1;
            }
        }
    }
    assert!(links > 3, "{links}");
}
