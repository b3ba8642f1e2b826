//! Results in files: written whole or not at all, and read with suspicion.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::outcome::ControlState;
use crate::plan::Plan;
use crate::probes::ProbeRecord;
use crate::result::{CampaignResult, RunRecord, SubjectInfo, VERSION};

/// The name of the file in a campaign's directory.
pub const FILE: &str = "result.json";

/// The largest result that is read; a hundred thousand runs with evidence are smaller.
const MAX_BYTES: u64 = 512 << 20;

/// How the names of results begin that are not written to their end.
pub(crate) const UNFINISHED: &str = ".result";

/// Why a result cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultStoreError {
    /// The system says no.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is too large.
    #[error("{}: too large for a campaign result (over {MAX_BYTES} bytes)", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not a result.
    #[error("{}: not a campaign result: {reason}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It was written by a version that is not known.
    #[error("{}: this result has version {version}; this program reads versions 1 to {VERSION}", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version.
        version: u64,
    },
}

/// Why a result cannot be compared with.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It is the directory of a campaign.
    #[error("{}: a directory; name the file in it: --baseline {}", .0.display(), .0.join(FILE).display())]
    Directory(PathBuf),
    /// It is something else.
    #[error("{0}; name the {FILE} of a campaign")]
    NotAResult(ResultStoreError),
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(ResultStoreError),
}

/// Reads a result to compare with.
///
/// # Errors
///
/// Returns what is wrong with it, and what to name instead.
pub fn load_baseline(path: &Path) -> Result<CampaignResult, BaselineError> {
    if path.is_dir() {
        return Err(BaselineError::Directory(path.to_owned()));
    }
    load(path).map_err(|error| match error {
        ResultStoreError::Corrupt { .. } => BaselineError::NotAResult(error),
        ResultStoreError::Io { .. }
        | ResultStoreError::TooLarge { .. }
        | ResultStoreError::Version { .. } => BaselineError::Unreadable(error),
    })
}

/// Reads a result.
///
/// # Errors
///
/// Returns an error when there is none, or it cannot be used.
pub fn load(path: &Path) -> Result<CampaignResult, ResultStoreError> {
    let failed = |source| ResultStoreError::Io {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ResultStoreError::TooLarge {
            path: path.to_owned(),
        });
    }
    let corrupt = |error: serde_json::Error| ResultStoreError::Corrupt {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let version: Versioned = serde_json::from_slice(&bytes).map_err(corrupt)?;
    // Outcomes of version 1 had other names, which are still read.
    if !(1..=u64::from(VERSION)).contains(&version.version) {
        return Err(ResultStoreError::Version {
            path: path.to_owned(),
            version: version.version,
        });
    }
    serde_json::from_slice(&bytes).map_err(corrupt)
}

#[derive(serde::Deserialize)]
struct Versioned {
    version: u64,
}

/// Writes a result in one step: whoever reads the file sees the old one or the new one.
///
/// # Errors
///
/// Returns an error when it cannot be written; the old file is still there then.
pub fn save(path: &Path, result: &CampaignResult) -> Result<(), ResultStoreError> {
    let bytes = serde_json::to_vec_pretty(result).map_err(|error| ResultStoreError::Io {
        path: path.to_owned(),
        source: error.into(),
    })?;
    replace(path, &[bytes.as_slice(), b"\n"].concat())
}

/// Writes a result that was rendered already, such as the report with its summary, in one step.
///
/// # Errors
///
/// Returns an error when it cannot be written; the old file is still there then.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), ResultStoreError> {
    let failed = |source| ResultStoreError::Io {
        path: path.to_owned(),
        source,
    };
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Removes what a campaign left that was killed while it wrote a file.
pub(crate) fn sweep(directory: &Path, unfinished: &str) {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(unfinished.as_bytes()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Why a result is not the beginning of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// It has another seed.
    #[error("the earlier campaign had the seed {earlier}, this one has {now}")]
    Seed {
        /// Its seed.
        earlier: u64,
        /// The seed of the campaign.
        now: u64,
    },
    /// A subject of the same name is another one.
    #[error(
        "`{0}` is not the subject that the earlier campaign attacked: its description has changed, or a file that its \
         command names has, and runs of both must not be counted together; begin a new campaign in another directory"
    )]
    Subject(String),
    /// It has runs that are not planned.
    #[error(
        "{lost} of the {runs} runs of the earlier campaign are not in this one, such as {first}, and would be lost; \
         use the same documents, filters, subjects and repeats, or another directory"
    )]
    Lost {
        /// How many.
        lost: usize,
        /// Of how many.
        runs: usize,
        /// The first of them.
        first: String,
    },
}

/// Why a directory cannot be that of a campaign.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It cannot be made.
    #[error("--out: {}: cannot create the directory: {error}; name one that you may write to", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a file.
    #[error("--out: {} is a file; name a directory", .0.display())]
    IsFile(PathBuf),
    /// It has a result, and nobody said to go on with it.
    #[error(
        "--out {}: there is a result already; continue it with --resume, or name another directory",
        .0.display()
    )]
    Taken(PathBuf),
    /// Its result cannot be read.
    #[error("--out: {0}")]
    Load(#[from] ResultStoreError),
    /// Its result is not the beginning of this campaign.
    #[error("--resume: {0}")]
    Resume(#[from] ResumeError),
    /// Nothing can be written there.
    #[error("--out: {}: cannot write: {error}", path.display())]
    Write {
        /// The place.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl PrepareError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Resume(_) | Self::IsFile(_) => true,
            Self::Taken(_) | Self::Make { .. } | Self::Load(_) | Self::Write { .. } => false,
        }
    }
}

/// What an earlier part of a campaign found that need not be found again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EarlierCampaign {
    /// Its runs.
    pub runs: Vec<RunRecord>,
    /// What its probes have shown, of subjects of which all is known; one that is another now was refused.
    pub probes: Vec<ProbeRecord>,
}

/// Gets the directory of a campaign ready, and gives the runs in it that need not be made again. That nothing can be
/// written is found out now, not after all the runs.
///
/// # Errors
///
/// Returns an error when the directory cannot be used, or has another result.
pub fn prepare(
    directory: &Path,
    resume: bool,
    plan: &Plan,
    subjects: &[SubjectInfo],
) -> Result<EarlierCampaign, PrepareError> {
    make(directory)?;
    let file = directory.join(FILE);
    let is_there = file.symlink_metadata().is_ok();
    if is_there && !resume {
        return Err(PrepareError::Taken(directory.to_owned()));
    }
    let earlier = if is_there {
        let earlier = load(&file)?;
        let runs = resumable(plan, subjects, &earlier)?;
        let kept: HashSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        let is_open = |name: &str| {
            let mut open = plan
                .runs
                .iter()
                .filter(|run| !kept.contains(run.id.as_str()));
            open.any(|run| {
                subjects
                    .get(run.subject)
                    .is_some_and(|one| one.name == name)
            })
        };
        let may_differ: HashSet<&str> = subjects
            .iter()
            .filter(|subject| !subject.is_all_known() && is_open(&subject.name))
            .map(|subject| subject.name.as_str())
            .collect();
        let probes = earlier.probes.into_iter().filter(is_settled);
        let probes = probes.filter(|probe| !may_differ.contains(probe.subject.as_str()));
        EarlierCampaign {
            probes: probes.collect(),
            runs,
        }
    } else {
        EarlierCampaign::default()
    };
    for name in ["", "traces", "documents"] {
        try_writing(directory.join(name))?;
    }
    Ok(earlier)
}

/// The same for a campaign that is kept elsewhere: the directory gets its result and reports, in place of those it may have.
///
/// # Errors
///
/// Returns an error when the directory cannot be used.
pub fn prepare_copy(directory: &Path) -> Result<(), PrepareError> {
    make(directory)?;
    try_writing(directory.to_owned())
}

/// Makes a directory for results.
fn make(directory: &Path) -> Result<(), PrepareError> {
    if directory.is_file() {
        return Err(PrepareError::IsFile(directory.to_owned()));
    }
    std::fs::create_dir_all(directory).map_err(|error| PrepareError::Make {
        path: directory.to_owned(),
        error,
    })
}

/// Finds out whether a directory, made if need be, takes files.
fn try_writing(path: PathBuf) -> Result<(), PrepareError> {
    let tried = std::fs::create_dir_all(&path).and_then(|()| tempfile::tempfile_in(&path));
    tried.map_err(|error| PrepareError::Write { path, error })?;
    Ok(())
}

/// The runs of an earlier result that need not be made again for this plan. Runs of documents that have
/// changed since, and runs that came to an error, are made again. So are controls that runs still to be made rest on, unless
/// all of the subject is known: its code may have changed.
///
/// # Errors
///
/// Returns why the result is not the beginning of this plan: another seed, another subject of the same
/// name, or runs that are not planned, which would be lost.
pub fn resumable(
    plan: &Plan,
    subjects: &[SubjectInfo],
    earlier: &CampaignResult,
) -> Result<Vec<RunRecord>, ResumeError> {
    if earlier.seed != plan.seed {
        return Err(ResumeError::Seed {
            earlier: earlier.seed,
            now: plan.seed,
        });
    }
    for subject in subjects {
        let mut known = earlier.subjects.iter();
        if let Some(other) = known.find(|other| other.name == subject.name)
            && !other.is_same(subject)
        {
            return Err(ResumeError::Subject(subject.name.clone()));
        }
    }
    let digests: HashMap<&str, &str> = earlier
        .documents
        .iter()
        .map(|document| (document.id.as_str(), document.digest.as_str()))
        .collect();
    let planned: HashMap<&str, &str> = plan
        .runs
        .iter()
        .map(|run| {
            let document = &plan.documents[run.document].info;
            (run.id.as_str(), document.digest.as_str())
        })
        .collect();
    let mut runs = earlier.runs.iter();
    let lost = runs
        .clone()
        .filter(|run| !planned.contains_key(run.id.as_str()));
    if let (count @ 1.., Some(first)) = (
        lost.count(),
        runs.find(|run| !planned.contains_key(run.id.as_str())),
    ) {
        return Err(ResumeError::Lost {
            lost: count,
            runs: earlier.runs.len(),
            first: first.id.clone(),
        });
    }
    let is_same = |run: &RunRecord| {
        planned
            .get(run.id.as_str())
            .is_some_and(|digest| digests.get(run.document.as_str()) == Some(digest))
    };
    let kept = earlier.runs.iter();
    // What version 1 called resisted may not have earned it.
    let kept = kept.filter(|run| run.verdict.is_some() && !run.has_failed() && is_same(run));
    let kept: Vec<RunRecord> = kept.cloned().collect();
    Ok(without_old_controls(plan, subjects, kept))
}

/// The same without the controls of subjects of which not all is known, where there are attacks still to be made: those rest on
/// a control of the same code. What rests on a control that failed is made again with it.
fn without_old_controls(
    plan: &Plan,
    subjects: &[SubjectInfo],
    kept: Vec<RunRecord>,
) -> Vec<RunRecord> {
    let ids: HashSet<&str> = kept.iter().map(|run| run.id.as_str()).collect();
    let open = plan.runs.iter().filter(|run| {
        let subject = subjects.get(run.subject);
        !run.twin
            && !ids.contains(run.id.as_str())
            && subject.is_some_and(|subject| !subject.is_all_known())
    });
    let open: HashSet<(String, String)> = open
        .map(|run| {
            let document = plan.documents[run.document].info.id.clone();
            (document, subjects[run.subject].name.clone())
        })
        .collect();
    let pair = |run: &RunRecord| (run.document.clone(), run.subject.clone());
    let controls = kept.iter().filter(|run| run.twin);
    let failed: HashSet<_> = controls
        .filter(|run| !ControlState::of(run).condition().held)
        .map(pair)
        .collect();
    let stays = |run: &RunRecord| {
        let pair = pair(run);
        !open.contains(&pair) || (!run.twin && (run.outcome.gave_way() || !failed.contains(&pair)))
    };
    let stays: Vec<bool> = kept.iter().map(stays).collect();
    let kept = kept.into_iter().zip(stays);
    kept.filter_map(|(run, stays)| stays.then_some(run))
        .collect()
}

/// Whether a probe has an answer; one without is asked again.
fn is_settled(probe: &ProbeRecord) -> bool {
    probe.state.is_read().is_some()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::outcome::{Conditions, InconclusiveReason, RunCondition};
    use crate::result::{DocumentInfo, RunOutcome};

    pub(crate) fn run(
        document: &str,
        subject: &str,
        repeat: u32,
        outcome: RunOutcome,
    ) -> RunRecord {
        let verdict = match outcome {
            RunOutcome::Exploited | RunOutcome::Partial => outcome.word(),
            RunOutcome::Resisted | RunOutcome::Inconclusive => "not_exploited",
        };
        let mut record = RunRecord {
            id: format!("{document}/{subject}/{repeat}"),
            document: document.to_owned(),
            subject: subject.to_owned(),
            repeat,
            twin: false,
            outcome,
            reason: None,
            verdict: Some(verdict.to_owned()),
            conditions: conditions(outcome.counts()),
            tier: outcome.gave_way().then(|| "local_action".to_owned()),
            reached: outcome.counts(),
            carriers: (1, 1),
            indicators: Vec::new(),
            task_done: None,
            answer: None,
            deeds: None,
            error: None,
            broken: None,
            broken_by: None,
            warnings: Vec::new(),
            milliseconds: 10,
            messages: 1,
            tokens: Some(5),
            trace: None,
            trace_digest: None,
            trace_lost: None,
            stderr: None,
            canaries: std::collections::BTreeMap::new(),
            guard: None,
        };
        record.settle(&done());
        record
    }

    /// A control that did its task.
    pub(crate) fn done() -> ControlState {
        ControlState::Done {
            why: String::new(),
            deeds: None,
        }
    }

    /// All conditions, with or without a delivery.
    pub(crate) fn conditions(delivered: bool) -> Conditions {
        let held = || RunCondition::held("");
        Conditions {
            delivered: if delivered {
                held()
            } else {
                RunCondition::unmet(InconclusiveReason::NotDelivered, "")
            },
            exposed: held(),
            alive: held(),
            seen_whole: held(),
            protocol_spoken: held(),
            indicators_evaluated: held(),
        }
    }

    pub(crate) fn result(runs: Vec<RunRecord>) -> CampaignResult {
        let document = |id: &str| DocumentInfo {
            id: id.to_owned(),
            category: Some("c".to_owned()),
            digest: "1".to_owned(),
            ..DocumentInfo::default()
        };
        CampaignResult {
            version: VERSION,
            proofhouse: "0".to_owned(),
            started_at: String::new(),
            finished_at: None,
            complete: true,
            repeats: 1,
            seed: 0,
            subjects: vec![SubjectInfo {
                name: "s".to_owned(),
                kind: "sim".to_owned(),
                simulation: true,
                description: String::new(),
                digest: None,
                guard: None,
            }],
            documents: vec![document("A"), document("B")],
            probes: Vec::new(),
            runs,
            spared: 0,
            accepted: Vec::new(),
        }
    }

    #[test]
    fn a_result_comes_back_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let written = result(vec![run("A", "s", 1, RunOutcome::Exploited)]);
        save(&path, &written).unwrap();
        save(&path, &written).unwrap();
        std::fs::write(directory.path().join(".resultAbC123"), "{").unwrap();
        sweep(directory.path(), UNFINISHED);
        assert_eq!(load(&path).unwrap(), written);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn changed_subjects_are_told_apart() {
        let info = |digest: Option<&str>, description: &str| SubjectInfo {
            name: "s".to_owned(),
            kind: "command".to_owned(),
            simulation: false,
            description: description.to_owned(),
            digest: digest.map(str::to_owned),
            guard: None,
        };
        assert!(info(Some("1"), "a").is_same(&info(Some("1"), "a")));
        assert!(!info(Some("1"), "a").is_same(&info(Some("2"), "a")));
        assert!(
            info(None, "a").is_same(&info(Some("2"), "a")),
            "of an earlier program"
        );
        assert!(!info(None, "a").is_same(&info(Some("2"), "b")));
    }

    #[test]
    fn what_is_no_result_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        for (text, expected) in [
            ("", "not a campaign result"),
            ("{\"version\": 1}", "not a campaign result"),
            ("{\"version\": 3}", "version 3"),
            ("{\"version\": 0}", "version 0"),
            ("[]", "not a campaign result"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = load(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(load(&directory.path().join("none")).is_err());
        assert!(save(&directory.path().join("no/dir.json"), &result(Vec::new())).is_err());
    }
}
