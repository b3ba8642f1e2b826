//! Where results stay when nobody names a directory: `.proofhouse/results/<time>/`, with `latest` beside them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// The directory of all results of a project.
pub const RESULTS: &str = ".proofhouse/results";

/// What leads to the newest of them: a link, or where links cannot be made a file with its name.
pub const LATEST: &str = "latest";

/// How many results of one second have names of their own.
const MAX_PER_SECOND: usize = 1000;

/// The longest name of a directory that is read.
const MAX_NAME: u64 = 255;

/// What stands for the time of a campaign in the name of a directory.
const TIME: &str = "{time}";

/// Whether a path names a directory after the time of a campaign.
#[must_use]
pub fn has_time(path: &Path) -> bool {
    path.to_string_lossy().contains(TIME)
}

/// The path with the time in it, in a form that every file system takes.
#[must_use]
pub fn at_this_time(path: PathBuf, time: &str) -> PathBuf {
    match path.to_str() {
        Some(text) => text.replace(TIME, &time.replace(':', "-")).into(),
        None => path,
    }
}

/// Makes a new directory for the results of a campaign that begins at this time, RFC 3339.
///
/// # Errors
///
/// Returns an error when it cannot be made.
pub fn create(project: &Path, time: &str) -> io::Result<PathBuf> {
    let results = project.join(RESULTS);
    std::fs::create_dir_all(&results)?;
    // Results are nothing to commit, but the schemas are that files name in their first line. Who wants it otherwise changes
    // the file, and it stays.
    if let Some(ours) = results.parent() {
        let ignore = ours.join(".gitignore");
        if ignore.symlink_metadata().is_err() {
            let _ = std::fs::write(ignore, "*\n!.gitignore\n!*.schema.json\n");
        }
    }
    let whole = time.split('.').next().unwrap_or(time);
    let name = whole.trim_end_matches('Z').replace(':', "-");
    for number in 1..=MAX_PER_SECOND {
        let path = results.join(if number == 1 {
            name.clone()
        } else {
            format!("{name}-{number}")
        });
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many results of one second"))
}

/// Makes `latest` lead to a directory beside it, in one step.
///
/// # Errors
///
/// Returns an error when it cannot be written.
pub fn set_latest(directory: &Path) -> io::Result<()> {
    let (Some(results), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(io::Error::other("the directory has no name"));
    };
    let new = results.join(format!(".{LATEST}.{}", std::process::id()));
    let _ = std::fs::remove_file(&new);
    link(Path::new(name), &new)?;
    std::fs::rename(&new, results.join(LATEST))
}

#[cfg(unix)]
fn link(name: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(name, at)
}

#[cfg(not(unix))]
fn link(name: &Path, at: &Path) -> io::Result<()> {
    std::fs::write(at, name.as_os_str().as_encoded_bytes())
}

/// The directory of the newest results of a project, if there are any.
#[must_use]
pub fn latest(project: &Path) -> Option<PathBuf> {
    let results = project.join(RESULTS);
    let latest = results.join(LATEST);
    let name = match latest.read_link() {
        Ok(name) => name,
        Err(_) => {
            let mut name = String::new();
            let file = File::open(&latest).ok()?;
            #[expect(clippy::disallowed_methods, reason = "capped by take")]
            file.take(MAX_NAME).read_to_string(&mut name).ok()?;
            PathBuf::from(name.trim_end())
        }
    };
    // It leads to what is beside it, and nowhere else.
    let mut parts = name.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => {
            Some(results.join(name)).filter(|path| path.is_dir())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_campaign_has_a_directory_of_its_own_and_the_newest_is_found() {
        let project = tempfile::tempdir().unwrap();
        assert_eq!(latest(project.path()), None);
        let time = "2026-11-18T00:33:44.123456Z";
        let first = create(project.path(), time).unwrap();
        assert!(first.ends_with("2026-11-18T00-33-44"), "{first:?}");
        let second = create(project.path(), time).unwrap();
        assert!(second.ends_with("2026-11-18T00-33-44-2"), "{second:?}");
        for directory in [&first, &second, &first] {
            set_latest(directory).unwrap();
            assert_eq!(latest(project.path()).as_ref(), Some(directory));
        }
        #[expect(clippy::disallowed_methods, reason = "a file of this test")]
        let ignored = std::fs::read_to_string(project.path().join(".proofhouse/.gitignore"));
        assert_eq!(ignored.unwrap(), "*\n!.gitignore\n!*.schema.json\n");
        std::fs::remove_dir(&first).unwrap();
        assert_eq!(latest(project.path()), None, "it is gone");
    }

    #[test]
    fn a_directory_may_be_named_after_the_time() {
        let named = PathBuf::from("results/{time}");
        assert!(has_time(&named));
        let path = at_this_time(named, "2026-11-18T00:33:44Z");
        assert!(!has_time(&path));
        assert!(path.ends_with("2026-11-18T00-33-44Z"), "{path:?}");
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_not_followed() {
        let project = tempfile::tempdir().unwrap();
        let directory = create(project.path(), "2026-11-18T00:33:44Z").unwrap();
        let latest_file = directory.with_file_name(LATEST);
        std::fs::write(&latest_file, "2026-11-18T00-33-44\n").unwrap();
        assert_eq!(latest(project.path()), Some(directory));
        for elsewhere in ["../..", "/etc", ".", "a/b"] {
            std::fs::write(&latest_file, elsewhere).unwrap();
            assert_eq!(latest(project.path()), None, "{elsewhere}");
        }
    }
}
