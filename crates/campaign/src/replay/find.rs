//! Which runs are meant: the ids of runs, their recordings, or the directories of whole campaigns.

use std::path::{Path, PathBuf};

use proofhouse_campaign::plan::globs;
use proofhouse_campaign::result::CampaignResult;
use proofhouse_campaign::store;
use proofhouse_source::did_you_mean;

use crate::output::{CommandError, printable_line, shown_path};
use crate::report::plural;

/// A campaign, and which of its runs are replayed.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) directory: PathBuf,
    pub(crate) result: CampaignResult,
    /// The places of the runs in the result, each once.
    pub(crate) runs: Vec<usize>,
}

/// The runs behind words; with `out`, ids are those of its campaign, and no word at all means all of them.
pub(crate) fn find(words: &[PathBuf], out: Option<&Path>) -> Result<Vec<Kept>, CommandError> {
    let mut found: Vec<Kept> = Vec::new();
    if words.is_empty() {
        let out = out.ok_or_else(|| {
            CommandError::usage(
                "name a run, its recording or a directory of `proofhouse run --out`",
            )
        })?;
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

fn one(found: &mut Vec<Kept>, word: &Path, out: Option<&Path>) -> Result<(), CommandError> {
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
        return match word.file_name().is_some_and(|name| name == store::FILE) {
            true => all_of(found, parent(word)),
            false => recorded(found, word),
        };
    }
    if let Some(out) = out {
        return Err(unknown(open(found, out)?, &word.to_string_lossy()));
    }
    // `results/DOCUMENT/SUBJECT/1`: a directory, and the id of a run of it.
    for directory in word.ancestors().skip(1) {
        let directory = match directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => directory,
        };
        if directory.join(store::FILE).is_file() {
            let id = word.strip_prefix(directory).unwrap_or(word);
            let id = id.to_string_lossy().into_owned();
            let kept = open(found, directory)?;
            return match take(kept, &id) {
                true => Ok(()),
                false => Err(unknown(kept, &id)),
            };
        }
    }
    Err(CommandError::usage(format!(
        "{}: no such file or directory; if it is the id of a run, say with --out DIR which campaign has it",
        shown_path(word)
    )))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn all_of(found: &mut Vec<Kept>, directory: &Path) -> Result<(), CommandError> {
    let kept = open(found, directory)?;
    if kept.result.runs.is_empty() {
        return Err(CommandError::usage(format!(
            "{}: there is no run in it yet",
            shown_path(&directory.join(store::FILE))
        )));
    }
    kept.runs.extend(0..kept.result.runs.len());
    Ok(())
}

/// The campaign in a directory, read once.
fn open<'f>(found: &'f mut Vec<Kept>, directory: &Path) -> Result<&'f mut Kept, CommandError> {
    if let Some(place) = found.iter().position(|kept| kept.directory == directory) {
        return Ok(&mut found[place]);
    }
    let file = directory.join(store::FILE);
    if !file.is_file() {
        let what = match directory.is_dir() {
            true => "there is no result.json in it; `proofhouse run --out DIR` keeps one",
            false => "there is no such directory",
        };
        return Err(CommandError::usage(format!(
            "{}: {what}",
            shown_path(directory)
        )));
    }
    let result = store::load(&file)
        .map_err(|error| CommandError::cannot_run(printable_line(&error.to_string())))?;
    found.push(Kept {
        directory: directory.to_owned(),
        result,
        runs: Vec::new(),
    });
    let last = found.len() - 1;
    Ok(&mut found[last])
}

/// The run that was recorded in this file.
fn recorded(found: &mut Vec<Kept>, file: &Path) -> Result<(), CommandError> {
    let directory = parent(parent(file));
    // `traces/x.jsonl`, named from within the directory.
    let directory = match parent(file) == Path::new(".") {
        true => Path::new(".."),
        false => directory,
    };
    if !directory.join(store::FILE).is_file() {
        return Err(CommandError::usage(format!(
            "{}: there is no result.json beside its directory, so nothing is known about the run; \
             `proofhouse scan` judges a recording alone",
            shown_path(file)
        )));
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
        None => Err(CommandError::usage(format!(
            "{}: no run in {} was recorded in this file",
            shown_path(file),
            shown_path(&directory.join(store::FILE))
        ))),
    }
}

/// Takes the runs with this id, or with ids that begin with it, or that fit it where it has a `*`.
fn take(kept: &mut Kept, id: &str) -> bool {
    let id = id.trim_end_matches('/');
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

fn unknown(kept: &Kept, id: &str) -> CommandError {
    let runs = &kept.result.runs;
    let ids = runs.iter().map(|run| run.id.as_str());
    let documents = runs.iter().map(|run| run.document.as_str());
    let hint = match did_you_mean(id, ids.chain(documents)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match runs.first() {
            Some(first) => format!(
                "it has {}, such as `{}`",
                plural(runs.len(), "run"),
                first.id
            ),
            None => "it has none yet".to_owned(),
        },
    };
    let file = kept.directory.join(store::FILE);
    CommandError::usage(printable_line(&format!(
        "{}: there is no run `{id}`; {hint}",
        file.display()
    )))
}
