//! What the packages of the SDK hold: their pages link to nothing outside.

#![expect(clippy::disallowed_methods, reason = "files of this repository")]

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn pages_link_to_what_their_package_holds() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut links = 0;
    for name in ["source", "expr", "protocol", "oatf", "detect"] {
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
