//! Which document judges a run: one that is given, the one that was kept with the result, or, for results of
//! earlier versions, the one it came from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_campaign::document::{CampaignDocument, is_twin_file};
use proofhouse_campaign::replay::Judge;
use proofhouse_campaign::result::DocumentInfo;
use proofhouse_oatf::{Document, SemanticEvaluator};
use proofhouse_source::did_you_mean;

use super::find::Kept;
use crate::campaign::documents;
use crate::input::{DOCUMENTS, Input, Shown, SizeLimit, collect};
use crate::output::{CommandError, printable_line};
use crate::rules::load_or_complain;

/// What judges the runs of one document.
pub(crate) struct Source {
    attack: Judge,
    /// Of the twin, which has the same indicators; absent where the document is given.
    twin: Option<Judge>,
    /// How messages name the document.
    pub(crate) name: String,
    pub(crate) state: State,
    /// What the user said, in attacks and in twins.
    attack_prompts: Vec<String>,
    twin_prompts: Vec<String>,
}

/// How the document relates to the one that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It was named on the command line.
    Given,
    /// It is the one that was run.
    AsRun,
    /// It is not: the file has changed since.
    Changed,
}

impl State {
    /// The word in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::AsRun => "as_run",
            Self::Changed => "changed",
        }
    }
}

impl Source {
    pub(crate) fn judge(&self, twin: bool) -> &Judge {
        match &self.twin {
            Some(judge) if twin => judge,
            _ => &self.attack,
        }
    }

    pub(crate) fn prompts(&self, twin: bool) -> &[String] {
        match twin {
            true => &self.twin_prompts,
            false => &self.attack_prompts,
        }
    }
}

/// A document that was named on the command line.
struct Given {
    id: String,
    name: String,
    document: Document,
}

/// Documents of replayed runs, each read and compiled once.
pub(crate) struct Sources {
    given: Vec<Given>,
    size: SizeLimit,
    semantic: Option<Arc<dyn SemanticEvaluator>>,
    library: Option<Vec<CampaignDocument>>,
    known: HashMap<(PathBuf, String), Result<Source, String>>,
}

impl Sources {
    /// With the documents in these files, each of which must have been run in one of the campaigns.
    pub(crate) fn new(
        paths: &[PathBuf],
        size: SizeLimit,
        semantic: Option<Arc<dyn SemanticEvaluator>>,
        found: &[Kept],
    ) -> Result<Self, CommandError> {
        let mut given: Vec<Given> = Vec::new();
        let mut inputs = collect(paths, DOCUMENTS)?;
        inputs.retain(|input| !matches!(input, Input::File(path) if is_twin_file(path)));
        let mut seen = std::collections::HashSet::new();
        inputs.retain(|input| seen.insert(input.name()));
        for input in inputs {
            let cannot =
                |what: &str| CommandError::cannot_run(format!("{}: {what}", input.shown()));
            let document = load_or_complain(&input, size)
                .ok_or_else(|| cannot("it cannot be used, so nothing was judged"))?;
            if document.attack.indicators().is_empty() {
                return Err(cannot(
                    "the document has no indicators, so there would be no verdict",
                ));
            }
            let id = id_of(&input, &document);
            if let Some(other) = given.iter().find(|other| other.id == id) {
                return Err(CommandError::usage(printable_line(&format!(
                    "two documents have the id `{id}`: {} and {}",
                    other.name,
                    input.name()
                ))));
            }
            given.push(Given {
                id,
                name: input.name(),
                document,
            });
        }
        // Of a directory, what was not run is no mistake, as long as something was.
        let named = |one: &&Given| {
            paths
                .iter()
                .any(|path| path.display().to_string() == one.name)
        };
        let missing = |one: &&Given| !was_run(&one.id, found);
        if let Some(one) = given.iter().filter(named).find(missing) {
            return Err(not_run(one, found));
        }
        if let (true, Some(one)) = (given.iter().all(|one| missing(&one)), given.first()) {
            return Err(not_run(one, found));
        }
        Ok(Self {
            given,
            size,
            semantic,
            library: None,
            known: HashMap::new(),
        })
    }

    /// What judges the runs of a document of a campaign.
    pub(crate) fn of(&mut self, kept: &Kept, document: &str) -> &Result<Source, String> {
        let key = (kept.directory.clone(), document.to_owned());
        if !self.known.contains_key(&key) {
            let source = self.find(kept, document);
            self.known.insert(key.clone(), source);
        }
        &self.known[&key]
    }

    fn find(&mut self, kept: &Kept, id: &str) -> Result<Source, String> {
        let mut documents = kept.result.documents.iter();
        let info = documents.find(|info| info.id == id);
        let as_run = info.ok_or_else(|| "the result does not have its document".to_owned());
        let as_run = as_run.and_then(|info| self.as_run(&kept.directory, info));
        let compile = |document: &Document| {
            Judge::new(document, self.semantic.clone()).map_err(|error| error.to_string())
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
            return Ok(Source {
                attack: compile(&given.document)?,
                twin: None,
                name: given.name.clone(),
                state: State::Given,
                attack_prompts,
                twin_prompts,
            });
        }
        let (document, state) = as_run?;
        let (attack_prompts, twin_prompts) = prompts(&document);
        let twin = document.twin.as_ref();
        Ok(Source {
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
    ) -> Result<(CampaignDocument, State), String> {
        let state = |document: &CampaignDocument| match document.info.digest == info.digest {
            true => State::AsRun,
            false => State::Changed,
        };
        let prompt = info.prompt.as_deref();
        let mut why = "the result has no copy of the document".to_owned();
        if let Some(path) = &info.kept {
            // A result that was made elsewhere must not make us read elsewhere.
            let path = match path.starts_with("documents/") && !path.contains("..") {
                true => directory.join(path),
                false => return Err(format!("`{path}` is not among the kept documents")),
            };
            let shown = path.display().to_string();
            if path.is_file() {
                let document = documents::named(&Input::File(path), self.size, prompt);
                let document = document.ok_or_else(|| format!("{shown}: it cannot be used"))?;
                let state = state(&document);
                return Ok((document, state));
            }
            why = format!("{shown}: the copy of the document is gone");
        }
        let library = self
            .library
            .get_or_insert_with(|| documents::load(&[], self.size, None).unwrap_or_default());
        let shipped = library.iter().find(|document| document.info.id == info.id);
        // One of the same id that says something else is nothing to trust.
        if let Some(document) = shipped.filter(|document| state(document) == State::AsRun) {
            return Ok((document.clone(), State::AsRun));
        }
        let path = Path::new(&info.path);
        if path.is_file() {
            let document = documents::named(&Input::File(path.to_owned()), self.size, prompt);
            if let Some(document) = document.filter(|document| document.info.id == info.id) {
                let state = state(&document);
                return Ok((document, state));
            }
        }
        Err(format!("{why}; name the document with --document FILE"))
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
fn id_of(input: &Input, document: &Document) -> String {
    let stem = match input {
        Input::File(path) => path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned()),
        Input::Stdin => None,
    };
    let id = document.attack.id.clone();
    id.or(stem).unwrap_or_else(|| "document".to_owned())
}

/// The ids of the documents of the runs that are replayed.
fn ids(found: &[Kept]) -> impl Iterator<Item = &str> {
    found.iter().flat_map(|kept| {
        let runs = kept.runs.iter();
        runs.map(|place| kept.result.runs[*place].document.as_str())
    })
}

fn was_run(id: &str, found: &[Kept]) -> bool {
    ids(found).any(|known| known == id)
}

fn not_run(given: &Given, found: &[Kept]) -> CommandError {
    let hint = match did_you_mean(&given.id, ids(found)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => match ids(found).next() {
            Some(first) => format!("; one of them is of `{first}`"),
            None => String::new(),
        },
    };
    CommandError::usage(printable_line(&format!(
        "{}: none of the runs is of `{}`{hint}",
        given.name, given.id
    )))
}
