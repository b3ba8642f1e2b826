//! Where documents come from: files, directories and stdin, each read up to a size limit.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_oatf::ReadLimits;

use crate::output::{CommandError, printable_line, shown_path};

/// How deep directories are searched; symbolic links are not followed into directories.
const MAX_DIRECTORY_DEPTH: usize = 32;
/// How many files one command takes on.
const MAX_FILES: usize = 100_000;

/// The documents a command works on.
#[derive(Debug, Clone, Args)]
pub(crate) struct Inputs {
    /// Files, directories (searched for .yaml and .yml), or `-` for stdin
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) size: SizeLimit,
}

/// The size limit of a document.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SizeLimit {
    /// Largest document that is read, in bytes, or with K, M or G
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size)]
    pub(crate) max_size: usize,
}

impl SizeLimit {
    pub(crate) fn limits(self) -> ReadLimits {
        ReadLimits {
            max_bytes: self.max_size,
            ..ReadLimits::default()
        }
    }
}

/// One place a document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Stdin,
    File(PathBuf),
}

impl Input {
    /// How messages name it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The name on one line, for stderr.
    pub(crate) fn shown(&self) -> String {
        printable_line(&self.name())
    }

    /// Reads the text. Too much of it, or bytes that are no text, are errors in words.
    pub(crate) fn read(&self, limit: usize) -> Result<String, Unreadable> {
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
#[derive(Debug)]
pub(crate) enum Unreadable {
    TooLarge { limit: usize },
    NotUtf8 { line: usize },
    Io(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { limit } => {
                write!(
                    f,
                    "the document is larger than {limit} bytes; raise the limit if it may be"
                )
            }
            Self::NotUtf8 { line } => write!(f, "the text is not UTF-8 (line {line})"),
            Self::Io(error) => write!(f, "cannot read: {error}"),
        }
    }
}

fn read_capped(reader: impl Read, limit: usize) -> Result<Vec<u8>, Unreadable> {
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

impl Inputs {
    /// The files behind the paths, in order, directories sorted by name.
    pub(crate) fn collect(&self) -> Result<Vec<Input>, CommandError> {
        collect(&self.paths, DOCUMENTS)
    }
}

/// What a directory is searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    extensions: &'static [&'static str],
    /// What may stand after the extension.
    compressions: &'static [&'static str],
}

/// Threat documents.
pub(crate) const DOCUMENTS: Wanted = Wanted {
    extensions: &["yaml", "yml"],
    compressions: &[],
};

/// Traces.
pub(crate) const TRACES: Wanted = Wanted {
    extensions: &["jsonl", "ndjson", "json", "log"],
    compressions: &["gz", "zst"],
};

impl Wanted {
    fn has(self, path: &Path) -> bool {
        let ends = |path: &Path, with: &[&str]| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| with.contains(&extension))
        };
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

/// The files behind paths, in order, directories sorted by name.
pub(crate) fn collect(paths: &[PathBuf], wanted: Wanted) -> Result<Vec<Input>, CommandError> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            if !inputs.contains(&Input::Stdin) {
                inputs.push(Input::Stdin);
            }
        } else if path.is_dir() {
            let before = inputs.len();
            walk(path, 0, wanted, &mut inputs)?;
            if inputs.len() == before {
                return Err(CommandError::usage(format!(
                    "{}: no {} file in this directory",
                    shown_path(path),
                    wanted.names(),
                )));
            }
        } else if path.exists() {
            inputs.push(Input::File(path.clone()));
        } else {
            return Err(CommandError::usage(format!(
                "{}: no such file or directory",
                shown_path(path)
            )));
        }
    }
    Ok(inputs)
}

/// The YAML files below a directory, sorted by name.
pub(crate) fn files_in(directory: &Path) -> Result<Vec<Input>, CommandError> {
    let mut inputs = Vec::new();
    walk(directory, 0, DOCUMENTS, &mut inputs)?;
    Ok(inputs)
}

fn walk(
    directory: &Path,
    depth: usize,
    wanted: Wanted,
    inputs: &mut Vec<Input>,
) -> Result<(), CommandError> {
    if depth > MAX_DIRECTORY_DEPTH {
        return Ok(());
    }
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let Ok(mut entries) = listed else {
        // It is an input that cannot be read, which is told in its turn and costs no other.
        inputs.push(Input::File(directory.to_owned()));
        return Ok(());
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            inputs.push(Input::File(path));
            continue;
        };
        if kind.is_dir() {
            walk(&path, depth + 1, wanted, inputs)?;
        } else if wanted.has(&path)
            // A broken link is reported when it is read; pipes and devices are not looked for.
            && (path.is_file() || (kind.is_symlink() && !path.exists()))
        {
            if inputs.len() >= MAX_FILES {
                return Err(CommandError::usage(format!("more than {MAX_FILES} files")));
            }
            inputs.push(Input::File(path));
        }
    }
    Ok(())
}

pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
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
        .ok_or_else(|| "write a number of bytes, or one with K, M or G, such as 8M".to_owned())
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
