//! Which runs are meant: the ids of runs, their recordings, or the directories of whole campaigns.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proofhouse_source::did_you_mean;

use crate::plan::{globs, run_id};
use crate::result::CampaignResult;
use crate::store::{self, ResultStoreError};

/// Why the runs that are meant cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Nothing was named.
    #[error("name a run, its trace file, or the directory of a campaign")]
    NothingNamed,
    /// There is nothing of this name.
    #[error(
        "{}: no such file; if it is the id of a run, say with --out DIR which campaign has it",
        .0.display()
    )]
    NotFound(PathBuf),
    /// The campaign has made no run.
    #[error("{}: there is no run in it yet", .0.display())]
    NoRuns(PathBuf),
    /// The directory is not that of a campaign.
    #[error("{}: no result.json in this directory; is it the directory of a campaign?", .0.display())]
    NoResult(PathBuf),
    /// The directory is not there.
    #[error("{}: no such directory", .0.display())]
    NoDirectory(PathBuf),
    /// The result cannot be read.
    #[error(transparent)]
    Store(#[from] ResultStoreError),
    /// Nothing is known about the run of a recording.
    #[error(
        "{}: there is no result.json beside its directory, so nothing is known about the run. Each line of the recording is a \
         message, as JSON; `proofhouse scan {} --rules DOCUMENT` judges it by a threat document alone",
        .0.display(),
        .0.display()
    )]
    NoResultBeside(PathBuf),
    /// No run has this recording.
    #[error("{}: no run in {} was recorded in this file", file.display(), result.display())]
    NotRecorded {
        /// The recording.
        file: PathBuf,
        /// The result.
        result: PathBuf,
    },
    /// The campaign has no run of this id.
    #[error("{}: there is no run `{id}`; {hint}", result.display())]
    Unknown {
        /// The result.
        result: PathBuf,
        /// The id.
        id: String,
        /// What may have been meant.
        hint: String,
    },
}

impl FindError {
    /// Whether something else has to be named, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Store(_))
    }
}

/// A campaign, and which of its runs are replayed.
#[derive(Debug)]
pub struct KeptCampaign {
    /// Its directory.
    pub directory: PathBuf,
    /// Its result.
    pub result: CampaignResult,
    /// The places of the runs in the result, each once.
    pub runs: Vec<usize>,
    /// Whether all of its runs are meant.
    pub is_whole: bool,
}

impl KeptCampaign {
    /// The ids of runs that a campaign which broke off has not made, as far as that can be told: which documents could
    /// not meet a subject is not kept. Nothing where only some runs are meant.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        if self.result.complete || !self.is_whole {
            return Vec::new();
        }
        let made: HashSet<&str> = self.result.runs.iter().map(|run| run.id.as_str()).collect();
        let mut planned = Vec::new();
        for repeat in 1..=self.result.repeats {
            for document in &self.result.documents {
                for subject in &self.result.subjects {
                    if repeat == 1 && document.has_twin {
                        planned.push(run_id(document, subject, repeat, true));
                    }
                    planned.push(run_id(document, subject, repeat, false));
                }
            }
        }
        planned.retain(|id| !made.contains(id.as_str()));
        planned
    }
}

/// The runs behind words; with `out`, ids are those of its campaign, and no word at all means all of them.
///
/// # Errors
///
/// Returns an error when a word means no run, or a result cannot be read.
pub fn find(words: &[PathBuf], out: Option<&Path>) -> Result<Vec<KeptCampaign>, FindError> {
    let mut found: Vec<KeptCampaign> = Vec::new();
    if words.is_empty() {
        let out = out.ok_or(FindError::NothingNamed)?;
        all_of(&mut found, out)?;
    }
    for word in words {
        one(&mut found, word, out)?;
    }
    for kept in &mut found {
        kept.runs.sort_unstable();
        kept.runs.dedup();
    }
    Ok(found)
}

fn one(found: &mut Vec<KeptCampaign>, word: &Path, out: Option<&Path>) -> Result<(), FindError> {
    if let Some(out) = out {
        let kept = open(found, out)?;
        if take(kept, &word.to_string_lossy()) {
            return Ok(());
        }
    }
    if word.is_dir() {
        return all_of(found, word);
    }
    if word.is_file() {
        return if word.file_name().is_some_and(|name| name == store::FILE) {
            all_of(found, parent(word))
        } else {
            recorded(found, word)
        };
    }
    if let Some(out) = out {
        return Err(unknown(open(found, out)?, &word.to_string_lossy()));
    }
    // `results/DOCUMENT/SUBJECT/1`: a directory, and the id of a run of it.
    for directory in word.ancestors().skip(1) {
        let directory = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        if directory.join(store::FILE).is_file() {
            let id = word.strip_prefix(directory).unwrap_or(word);
            let id = id.to_string_lossy().into_owned();
            let kept = open(found, directory)?;
            return if take(kept, &id) {
                Ok(())
            } else {
                Err(unknown(kept, &id))
            };
        }
    }
    Err(FindError::NotFound(word.to_owned()))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn all_of(found: &mut Vec<KeptCampaign>, directory: &Path) -> Result<(), FindError> {
    let kept = open(found, directory)?;
    if kept.result.runs.is_empty() {
        return Err(FindError::NoRuns(directory.join(store::FILE)));
    }
    kept.runs.extend(0..kept.result.runs.len());
    kept.is_whole = true;
    Ok(())
}

/// The campaign in a directory, read once.
fn open<'f>(
    found: &'f mut Vec<KeptCampaign>,
    directory: &Path,
) -> Result<&'f mut KeptCampaign, FindError> {
    if let Some(place) = found.iter().position(|kept| kept.directory == directory) {
        return Ok(&mut found[place]);
    }
    let file = directory.join(store::FILE);
    if !file.is_file() {
        let directory = directory.to_owned();
        return Err(if directory.is_dir() {
            FindError::NoResult(directory)
        } else {
            FindError::NoDirectory(directory)
        });
    }
    let result = store::load(&file)?;
    found.push(KeptCampaign {
        directory: directory.to_owned(),
        result,
        runs: Vec::new(),
        is_whole: false,
    });
    let last = found.len() - 1;
    Ok(&mut found[last])
}

/// The run that was recorded in this file.
fn recorded(found: &mut Vec<KeptCampaign>, file: &Path) -> Result<(), FindError> {
    let directory = parent(parent(file));
    // `traces/x.jsonl`, named from within the directory.
    let directory = if parent(file) == Path::new(".") {
        Path::new("..")
    } else {
        directory
    };
    if !directory.join(store::FILE).is_file() {
        return Err(FindError::NoResultBeside(file.to_owned()));
    }
    let name = file.file_name().map(|name| name.to_string_lossy());
    let name = format!("traces/{}", name.unwrap_or_default());
    let kept = open(found, directory)?;
    let mut runs = kept.result.runs.iter();
    let place = runs.position(|run| run.trace.as_deref() == Some(name.as_str()));
    match place {
        Some(place) => {
            kept.runs.push(place);
            Ok(())
        }
        None => Err(FindError::NotRecorded {
            file: file.to_owned(),
            result: directory.join(store::FILE),
        }),
    }
}

/// Takes the runs with this id, or with ids that begin with it, or that fit it where it has a `*`.
fn take(kept: &mut KeptCampaign, id: &str) -> bool {
    let id = id.trim_end_matches('/');
    // People say control; ids have had another word for it from the beginning.
    let control = id.strip_suffix("/control").map(|run| format!("{run}/twin"));
    let id = control.as_deref().unwrap_or(id);
    let begins = |run: &str| {
        let rest = run.strip_prefix(id);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let runs = &kept.result.runs;
    let exact = runs.iter().position(|run| run.id == id);
    let before = kept.runs.len();
    match exact {
        Some(place) => kept.runs.push(place),
        None => {
            let fits = |run: &str| begins(run) || (id.contains('*') && globs(id, run));
            let all = runs.iter().enumerate();
            let fitting = all.filter(|(_, run)| fits(&run.id)).map(|(place, _)| place);
            kept.runs.extend(fitting);
        }
    }
    kept.runs.len() > before
}

fn unknown(kept: &KeptCampaign, id: &str) -> FindError {
    let runs = &kept.result.runs;
    let ids = runs.iter().map(|run| run.id.as_str());
    let documents = runs.iter().map(|run| run.document.as_str());
    let hint = match did_you_mean(id, ids.chain(documents)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match runs.first() {
            Some(first) => format!(
                "it has {} run{}, such as `{}`",
                runs.len(),
                if runs.len() == 1 { "" } else { "s" },
                first.id
            ),
            None => "it has none yet".to_owned(),
        },
    };
    FindError::Unknown {
        result: kept.directory.join(store::FILE),
        id: id.to_owned(),
        hint,
    }
}
