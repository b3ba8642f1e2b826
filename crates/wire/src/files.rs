//! Where documents come from: files, directories and stdin, each read up to a size limit.
//!
//! Every crate that reads a file a user names goes through here, so that no file can fill the memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How deep directories are searched; symbolic links are not followed into directories.
const MAX_DIRECTORY_DEPTH: usize = 32;
/// How many files one command takes on.
const MAX_FILES: usize = 100_000;

/// One place a document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileInput {
    /// Standard input.
    Stdin,
    /// A file, which need not be there.
    File(PathBuf),
}

impl FileInput {
    /// The input that a person names; `-` is stdin.
    #[must_use]
    pub fn named(path: &Path) -> Self {
        if path == Path::new("-") {
            Self::Stdin
        } else {
            Self::File(path.to_owned())
        }
    }

    /// How messages name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Reads the text.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be read, is larger than `limit` bytes, or is not UTF-8.
    pub fn read(&self, limit: usize) -> Result<String, Unreadable> {
        let bytes = match self {
            Self::Stdin => read_capped(io::stdin().lock(), limit)?,
            Self::File(path) => read_capped(File::open(path)?, limit)?,
        };
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
                + 1;
            Unreadable::NotUtf8 { line }
        })
    }
}

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// There is more of it than may be read.
    #[error("the document is larger than {limit} bytes; raise the limit if it may be")]
    TooLarge {
        /// The most bytes that are read.
        limit: usize,
    },
    /// It is no text.
    #[error("the text is not UTF-8 (line {line})")]
    NotUtf8 {
        /// The first line that is none.
        line: usize,
    },
    /// The system refused.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
}

/// Reads all of it, up to `limit` bytes.
///
/// # Errors
///
/// Returns an error when it cannot be read or there is more of it.
pub fn read_capped(reader: impl Read, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    reader
        .take((limit as u64).saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(Unreadable::TooLarge { limit });
    }
    Ok(bytes)
}

/// What a directory is searched for.
#[derive(Debug, Clone, Copy)]
pub struct FileSearch {
    extensions: &'static [&'static str],
    /// What may stand after the extension.
    compressions: &'static [&'static str],
    /// What stands before the extension of files that are something else, though they lie beside what is wanted.
    except: &'static [&'static str],
}

/// Threat documents.
pub const DOCUMENTS: FileSearch = FileSearch {
    extensions: &["yaml", "yml"],
    compressions: &[],
    // Labelled cases of a document.
    except: &["cases"],
};

/// Traces.
pub const TRACES: FileSearch = FileSearch {
    extensions: &["jsonl", "ndjson", "json", "log"],
    compressions: &["gz", "zst"],
    except: &[],
};

impl FileSearch {
    fn has(self, path: &Path) -> bool {
        let ends = |path: &Path, with: &[&str]| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| with.contains(&extension))
        };
        if ends(&path.with_extension(""), self.except) {
            return false;
        }
        ends(path, self.extensions)
            || (ends(path, self.compressions) && ends(&path.with_extension(""), self.extensions))
    }

    fn names(self) -> String {
        let names: Vec<_> = self.extensions.iter().map(|e| format!(".{e}")).collect();
        match names.as_slice() {
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
            [] => String::new(),
        }
    }
}

/// Why the files behind paths could not be found.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A directory has no such file.
    #[error("{}: no {} file in this directory", path.display(), wanted.names())]
    Nothing {
        /// The directory.
        path: PathBuf,
        /// What was looked for.
        wanted: FileSearch,
    },
    /// There is nothing of this name.
    #[error("{}: no such file", .0.display())]
    NotFound(PathBuf),
    /// There are too many files.
    #[error("more than {MAX_FILES} files")]
    TooMany,
}

impl CollectError {
    /// The path where nothing is.
    #[must_use]
    pub fn missing(&self) -> Option<&Path> {
        match self {
            Self::NotFound(path) => Some(path),
            Self::Nothing { .. } | Self::TooMany => None,
        }
    }
}

/// A file or a directory that somebody named, and that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingInput {
    /// There is no such file.
    #[error("{}: no such file", .0.display())]
    File(PathBuf),
    /// There is no such directory.
    #[error("{}: no such directory", .0.display())]
    Directory(PathBuf),
    /// A directory is wanted, and this is a file.
    #[error("{}: a file, not a directory", .0.display())]
    NotADirectory(PathBuf),
}

/// Refuses files that are not there; `-` is stdin. Whatever else is wrong with one is told by who reads it.
///
/// # Errors
///
/// Returns the first that is missing.
pub fn named_files<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), MissingInput> {
    let is_missing =
        |path: &&Path| path.as_os_str() != "-" && matches!(path.try_exists(), Ok(false));
    match paths.into_iter().find(is_missing) {
        Some(path) => Err(MissingInput::File(path.to_owned())),
        None => Ok(()),
    }
}

/// Refuses what is not a directory.
///
/// # Errors
///
/// Returns an error when there is none.
pub fn named_directory(path: &Path) -> Result<(), MissingInput> {
    if path.is_dir() {
        Ok(())
    } else if path.exists() {
        Err(MissingInput::NotADirectory(path.to_owned()))
    } else {
        Err(MissingInput::Directory(path.to_owned()))
    }
}

/// The files behind paths, in order, directories sorted by name; `-` is stdin.
///
/// # Errors
///
/// Returns an error when a path leads nowhere, when a directory has no file that is wanted, and when there are too
/// many.
pub fn collect(paths: &[PathBuf], wanted: FileSearch) -> Result<Vec<FileInput>, CollectError> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            if !inputs.contains(&FileInput::Stdin) {
                inputs.push(FileInput::Stdin);
            }
        } else if path.is_dir() {
            let before = inputs.len();
            walk(path, 0, wanted, &mut inputs)?;
            if inputs.len() == before {
                return Err(CollectError::Nothing {
                    path: path.clone(),
                    wanted,
                });
            }
        } else if path.exists() {
            inputs.push(FileInput::File(path.clone()));
        } else {
            return Err(CollectError::NotFound(path.clone()));
        }
    }
    Ok(inputs)
}

/// The YAML files below a directory, sorted by name.
///
/// # Errors
///
/// Returns an error when there are too many.
pub fn files_in(directory: &Path) -> Result<Vec<FileInput>, CollectError> {
    let mut inputs = Vec::new();
    walk(directory, 0, DOCUMENTS, &mut inputs)?;
    Ok(inputs)
}

fn walk(
    directory: &Path,
    depth: usize,
    wanted: FileSearch,
    inputs: &mut Vec<FileInput>,
) -> Result<(), CollectError> {
    if depth > MAX_DIRECTORY_DEPTH {
        return Ok(());
    }
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let Ok(mut entries) = listed else {
        // It is an input that cannot be read, which is told in its turn and costs no other.
        inputs.push(FileInput::File(directory.to_owned()));
        return Ok(());
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            inputs.push(FileInput::File(path));
            continue;
        };
        if kind.is_dir() {
            walk(&path, depth + 1, wanted, inputs)?;
        } else if wanted.has(&path)
            // A broken link is reported when it is read; pipes and devices are not looked for.
            && (path.is_file() || (kind.is_symlink() && !path.exists()))
        {
            if inputs.len() >= MAX_FILES {
                return Err(CollectError::TooMany);
            }
            inputs.push(FileInput::File(path));
        }
    }
    Ok(())
}

/// A text that is no number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a number of bytes, or one with K, M or G, such as 8M")]
pub struct SizeError;

/// Reads a number of bytes, such as `4096` or `8M`.
///
/// # Errors
///
/// Returns an error when it is none, or zero.
pub fn parse_size(text: &str) -> Result<usize, SizeError> {
    let (digits, factor) = match text.strip_suffix(['K', 'k', 'M', 'm', 'G', 'g']) {
        Some(digits) => {
            let factor = match text.chars().last() {
                Some('K' | 'k') => 1 << 10,
                Some('M' | 'm') => 1 << 20,
                _ => 1 << 30,
            };
            (digits, factor)
        }
        None => (text, 1usize),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|size| *size > 0)
        .ok_or(SizeError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("12"), Ok(12));
        assert_eq!(parse_size("4M"), Ok(4 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        assert!(parse_size("0").is_err() && parse_size("x").is_err() && parse_size("-1").is_err());
        assert!(parse_size("99999999999999999999G").is_err());
    }

    #[test]
    fn directories_are_searched_by_extension() {
        for (name, document, trace) in [
            ("a.yaml", true, false),
            ("a.yml", true, false),
            ("a.yaml.gz", false, false),
            ("a.cases.yaml", false, false),
            ("cases.yaml", true, false),
            ("a.cases.json", false, true),
            ("a.jsonl", false, true),
            ("a.b.json.zst", false, true),
            ("a.log.gz", false, true),
            ("a.gz", false, false),
            ("jsonl", false, false),
        ] {
            let path = Path::new(name);
            assert_eq!(
                (DOCUMENTS.has(path), TRACES.has(path)),
                (document, trace),
                "{name}"
            );
        }
        assert_eq!(DOCUMENTS.names(), ".yaml or .yml");
    }

    #[test]
    fn reading_stops_at_the_limit() {
        assert!(matches!(
            read_capped(io::repeat(b'a'), 10),
            Err(Unreadable::TooLarge { limit: 10 })
        ));
        assert_eq!(read_capped(&b"abc"[..], 3).unwrap(), b"abc");
    }
}
