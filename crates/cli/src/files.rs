//! Which paths lead to one file, so that nothing that is read is written over.

use std::path::{Path, PathBuf};

/// Whether two paths lead to one file. Devices and pipes may be given twice.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    let is_special = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file());
    if is_special(a) || is_special(b) {
        return false;
    }
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// The whole path of a file that may not be there yet.
fn whole(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = path.canonicalize() {
        return Some(found);
    }
    let directory = match path.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        directory => directory,
    };
    Some(directory.canonicalize().ok()?.join(path.file_name()?))
}
