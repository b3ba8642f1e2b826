//! Puts the threat library into the crate, and so into the binary: a table of the files below `scenarios/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut table = String::from("&[\n");
    for folder in sorted(&root)?.iter().filter(|folder| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        for file in sorted(folder)? {
            // Labelled cases are judged by a test; nobody plays them.
            let name = last(&file);
            if name.ends_with(".yaml") && !name.ends_with(".cases.yaml") {
                // Slashes on every system: the path is a name here.
                let name = format!("{}/{name}", last(folder));
                let _ = writeln!(table, "({name:?}, include_str!({file:?})),");
            }
        }
    }
    table.push(']');
    #[expect(
        clippy::disallowed_methods,
        reason = "so cargo tells build scripts where to write"
    )]
    let out = env::var_os("OUT_DIR");
    let out = out.ok_or_else(|| io::Error::other("cargo did not set OUT_DIR"))?;
    fs::write(Path::new(&out).join("scenarios.rs"), table)
}

fn last(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}
