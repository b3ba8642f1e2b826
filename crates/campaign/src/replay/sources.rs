//! Which document judges a run: one that is given, the one that was kept with the result, or, for results of
//! earlier versions, the one it came from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_oatf::{Document, ReadLimits, SemanticEvaluator};
use proofhouse_source::did_you_mean;
use proofhouse_subjects::Notice;
use proofhouse_wire::files::{CollectError, DOCUMENTS, FileInput, collect};

use super::ReplayError;
use super::find::KeptCampaign;
use super::judge::Judge;
use crate::canaries;
use crate::cases::is_cases_file;
use crate::document::{CampaignDocument, is_twin_file};
use crate::load::{UnknownNames, load, load_document, load_one};
use crate::result::{DocumentInfo, RunRecord};

/// Why documents that are given cannot judge the runs.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// The files cannot be found.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// One cannot be used; what is wrong with it was told before.
    #[error("{0}: it cannot be used, so nothing was judged")]
    Unusable(String),
    /// One has nothing to judge by.
    #[error("{0}: the document has no indicators, so there would be no verdict")]
    NoIndicators(String),
    /// Two have the same id.
    #[error("two documents have the id `{id}`: {one} and {other}")]
    SameId {
        /// The id.
        id: String,
        /// The first file.
        one: String,
        /// The second file.
        other: String,
    },
    /// No run is of one of them.
    #[error("{name}: none of the runs is of `{id}`{hint}")]
    NotRun {
        /// The file.
        name: String,
        /// The id of its attack.
        id: String,
        /// What may have been meant.
        hint: String,
    },
}

impl GivenError {
    /// Whether something else has to be named, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Collect(_) | Self::SameId { .. } | Self::NotRun { .. } => true,
            Self::Unusable(_) | Self::NoIndicators(_) => false,
        }
    }
}

/// What judges the runs of one document.
pub(super) struct ReplaySource {
    attack: JudgingDocument,
    /// Of the twin, which has the same indicators; absent where the document is given.
    twin: Option<JudgingDocument>,
    /// How messages name the document.
    pub(super) name: String,
    pub(super) state: DocumentState,
    /// What the user said, in attacks and in twins.
    attack_prompts: Vec<String>,
    twin_prompts: Vec<String>,
}

/// A document and what it judges with.
struct JudgingDocument {
    judge: Judge,
    document: Document,
    semantic: Option<Arc<dyn SemanticEvaluator>>,
}

/// What judges a run: what all runs of the document share, or, where it had canaries of its own, what is made for it.
pub(super) enum RunJudge<'s> {
    Shared(&'s Judge),
    Own(Box<Judge>),
}

impl std::ops::Deref for RunJudge<'_> {
    type Target = Judge;

    fn deref(&self) -> &Judge {
        match self {
            Self::Shared(judge) => judge,
            Self::Own(judge) => judge,
        }
    }
}

/// How the document relates to the one that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentState {
    /// It was named on the command line.
    Given,
    /// It is the one that was run.
    AsRun,
    /// It is not: the file has changed since.
    Changed,
}

impl DocumentState {
    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::AsRun => "as_run",
            Self::Changed => "changed",
        }
    }
}

impl ReplaySource {
    /// What judges a run of the document, with the canaries that it had.
    pub(super) fn judge(&self, record: &RunRecord) -> Result<RunJudge<'_>, ReplayError> {
        let judging = match &self.twin {
            Some(twin) if record.twin => twin,
            _ => &self.attack,
        };
        if record.canaries.is_empty() {
            return Ok(RunJudge::Shared(&judging.judge));
        }
        let document = canaries::replace(&judging.document, &record.canaries);
        let document = document.map_err(|error| ReplayError::Build(error.to_string()))?;
        let judge = Judge::new(&document, judging.semantic.clone());
        let judge = judge.map_err(|error| ReplayError::Build(error.to_string()))?;
        Ok(RunJudge::Own(Box::new(judge)))
    }

    /// What the user said in a run.
    pub(super) fn prompts(&self, record: &RunRecord) -> Vec<String> {
        let prompts = if record.twin {
            &self.twin_prompts
        } else {
            &self.attack_prompts
        };
        let prompts = prompts.iter();
        prompts
            .map(|text| canaries::replace_text(text, &record.canaries))
            .collect()
    }
}

/// A document that was named on the command line.
struct NamedDocument {
    id: String,
    name: String,
    document: Document,
}

/// Documents of replayed runs, each read and compiled once.
pub struct Sources<'n> {
    given: Vec<NamedDocument>,
    limits: ReadLimits,
    notify: &'n dyn Fn(Notice),
    semantic: Option<Arc<dyn SemanticEvaluator>>,
    library: Option<Vec<CampaignDocument>>,
    known: HashMap<(PathBuf, String), Result<ReplaySource, ReplayError>>,
}

impl<'n> Sources<'n> {
    /// With the documents in these files, each of which must have been run in one of the campaigns.
    ///
    /// # Errors
    ///
    /// Returns an error when one cannot be used, or no run is of it.
    pub fn new(
        paths: &[PathBuf],
        limits: ReadLimits,
        semantic: Option<Arc<dyn SemanticEvaluator>>,
        found: &[KeptCampaign],
        notify: &'n dyn Fn(Notice),
    ) -> Result<Self, GivenError> {
        let mut given: Vec<NamedDocument> = Vec::new();
        let mut inputs = collect(paths, DOCUMENTS)?;
        inputs.retain(
            |input| !matches!(input, FileInput::File(path) if is_twin_file(path) || is_cases_file(path)),
        );
        let mut seen = std::collections::HashSet::new();
        inputs.retain(|input| seen.insert(input.name()));
        for input in inputs {
            let document = load_document(&input, &limits, UnknownNames::Allowed, notify)
                .ok_or_else(|| GivenError::Unusable(input.name()))?;
            if document.attack.indicators().is_empty() {
                return Err(GivenError::NoIndicators(input.name()));
            }
            let id = id_of(&input, &document);
            if let Some(other) = given.iter().find(|other| other.id == id) {
                return Err(GivenError::SameId {
                    id,
                    one: other.name.clone(),
                    other: input.name(),
                });
            }
            given.push(NamedDocument {
                id,
                name: input.name(),
                document,
            });
        }
        // Of a directory, what was not run is no mistake, as long as something was.
        let named = |one: &&NamedDocument| {
            paths
                .iter()
                .any(|path| path.display().to_string() == one.name)
        };
        let missing = |one: &&NamedDocument| !was_run(&one.id, found);
        if let Some(one) = given.iter().filter(named).find(missing) {
            return Err(not_run(one, found));
        }
        if let (true, Some(one)) = (given.iter().all(|one| missing(&one)), given.first()) {
            return Err(not_run(one, found));
        }
        Ok(Self {
            given,
            limits,
            notify,
            semantic,
            library: None,
            known: HashMap::new(),
        })
    }

    /// What judges the runs of a document of a campaign.
    pub(super) fn of(
        &mut self,
        kept: &KeptCampaign,
        document: &str,
    ) -> &Result<ReplaySource, ReplayError> {
        let key = (kept.directory.clone(), document.to_owned());
        if !self.known.contains_key(&key) {
            let source = self.find(kept, document);
            self.known.insert(key.clone(), source);
        }
        &self.known[&key]
    }

    fn find(&mut self, kept: &KeptCampaign, id: &str) -> Result<ReplaySource, ReplayError> {
        let mut documents = kept.result.documents.iter();
        let info = documents.find(|info| info.id == id);
        let as_run = info.ok_or(ReplayError::NoDocument);
        let as_run = as_run.and_then(|info| self.as_run(&kept.directory, info));
        let compile = |document: &Document| {
            let judge = Judge::new(document, self.semantic.clone())
                .map_err(|error| ReplayError::Build(error.to_string()))?;
            Ok(JudgingDocument {
                judge,
                document: document.clone(),
                semantic: self.semantic.clone(),
            })
        };
        if let Some(given) = self.given.iter().find(|given| given.id == id) {
            let prompt = || info.and_then(|info| info.prompt.clone());
            let (attack_prompts, twin_prompts) = match &as_run {
                Ok((document, _)) => prompts(document),
                Err(_) => (
                    prompt().into_iter().collect(),
                    prompt().into_iter().collect(),
                ),
            };
            return Ok(ReplaySource {
                attack: compile(&given.document)?,
                twin: None,
                name: given.name.clone(),
                state: DocumentState::Given,
                attack_prompts,
                twin_prompts,
            });
        }
        let (document, state) = as_run?;
        let (attack_prompts, twin_prompts) = prompts(&document);
        let twin = document.twin.as_ref();
        Ok(ReplaySource {
            attack: compile(&document.attack.document)?,
            twin: twin.map(|twin| compile(&twin.document)).transpose()?,
            name: document.info.path.clone(),
            state,
            attack_prompts,
            twin_prompts,
        })
    }

    /// The document as it was run, or what it became.
    fn as_run(
        &mut self,
        directory: &Path,
        info: &DocumentInfo,
    ) -> Result<(CampaignDocument, DocumentState), ReplayError> {
        let state = |document: &CampaignDocument| {
            if document.info.digest == info.digest {
                DocumentState::AsRun
            } else {
                DocumentState::Changed
            }
        };
        let prompt = info.prompt.as_deref();
        let mut why = "the result has no copy of the document".to_owned();
        if let Some(path) = &info.kept {
            // A result that was made elsewhere must not make us read elsewhere.
            if !path.starts_with("documents/") || path.contains("..") {
                return Err(ReplayError::ElsewhereKept(path.clone()));
            }
            let path = directory.join(path);
            let shown = path.display().to_string();
            if path.is_file() {
                let input = FileInput::File(path.clone());
                let unknown = UnknownNames::Allowed;
                let document = load_one(&input, &self.limits, prompt, unknown, self.notify);
                let document = document.ok_or(ReplayError::Unusable(path))?;
                let state = state(&document);
                return Ok((document, state));
            }
            why = format!("{shown}: the copy of the document is gone");
        }
        let library = self.library.get_or_insert_with(|| {
            load(&[], &self.limits, None, UnknownNames::Allowed, self.notify).unwrap_or_default()
        });
        let shipped = library.iter().find(|document| document.info.id == info.id);
        // One of the same id that says something else is nothing to trust.
        if let Some(document) = shipped.filter(|document| state(document) == DocumentState::AsRun) {
            return Ok((document.clone(), DocumentState::AsRun));
        }
        let path = Path::new(&info.path);
        if path.is_file() {
            let document = load_one(
                &FileInput::File(path.to_owned()),
                &self.limits,
                prompt,
                UnknownNames::Allowed,
                self.notify,
            );
            if let Some(document) = document.filter(|document| document.info.id == info.id) {
                let state = state(&document);
                return Ok((document, state));
            }
        }
        Err(ReplayError::Gone(why))
    }
}

fn prompts(document: &CampaignDocument) -> (Vec<String>, Vec<String>) {
    let twin = document.twin.as_ref();
    (
        document.attack.prompts.clone(),
        twin.map(|twin| twin.prompts.clone()).unwrap_or_default(),
    )
}

/// The id under which a campaign has a document.
fn id_of(input: &FileInput, document: &Document) -> String {
    let stem = match input {
        FileInput::File(path) => path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned()),
        FileInput::Stdin => None,
    };
    let id = document.attack.id.clone();
    id.or(stem).unwrap_or_else(|| "document".to_owned())
}

/// The ids of the documents of the runs that are replayed.
fn ids(found: &[KeptCampaign]) -> impl Iterator<Item = &str> {
    found.iter().flat_map(|kept| {
        let runs = kept.runs.iter();
        runs.map(|place| kept.result.runs[*place].document.as_str())
    })
}

fn was_run(id: &str, found: &[KeptCampaign]) -> bool {
    ids(found).any(|known| known == id)
}

fn not_run(given: &NamedDocument, found: &[KeptCampaign]) -> GivenError {
    let hint = match did_you_mean(&given.id, ids(found)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => match ids(found).next() {
            Some(first) => format!("; one of them is of `{first}`"),
            None => String::new(),
        },
    };
    GivenError::NotRun {
        name: given.name.clone(),
        id: given.id.clone(),
        hint,
    }
}
