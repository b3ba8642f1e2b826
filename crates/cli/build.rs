//! Puts the threat library into the binary: a table of its files, by their paths from the root.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../scenarios");
    let mut files = Vec::new();
    walk(Path::new("../../scenarios"), &mut files);
    files.sort();
    let mut table = String::from("pub(crate) const FILES: &[(&str, &str)] = &[\n");
    for file in files {
        let shown = file.to_string_lossy().replace('\\', "/");
        let name = shown.trim_start_matches("../../");
        table.push_str(&format!(
            "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))),\n",
            format!("/{shown}")
        ));
    }
    table.push_str("];\n");
    let out = env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    fs::write(out.join("library.rs"), table)
}

/// The YAML files below a directory; none if there is no such directory.
fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            walk(&path, files);
        } else if path
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
        {
            files.push(path);
        }
    }
}
