//! Puts the threat library into the binary: a table of the files below `scenarios/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut table = String::from("&[\n");
    for folder in sorted(&root)?.iter().filter(|folder| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        for file in sorted(folder)? {
            let parts = (folder.file_name(), file.file_name());
            if let (Some(folder), Some(name)) = parts
                && file
                    .extension()
                    .is_some_and(|extension| extension == "yaml")
            {
                let name = Path::new(folder).join(name);
                let _ = writeln!(table, "({:?}, include_str!({:?})),", name, file);
            }
        }
    }
    println!("cargo::rerun-if-changed={}", root.display());
    table.push(']');
    let out = env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    fs::write(out.join("scenarios.rs"), table)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}
