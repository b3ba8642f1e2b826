//! Makes a subject of its description.

use std::path::Path;
use std::sync::Arc;

use proofhouse_manifest::{Agent, Bundle, BundleLimits};
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use proofhouse_tools::runtime::ActionError;
use proofhouse_wire::files::{DOCUMENTS, Unreadable, collect};
use proofhouse_wire::gate::RequestGate;
use serde_json::json;

use crate::agent::{AgentSubject, ModelOfRun};
use crate::bundles::{self, BundleError};
use crate::command::CommandSubject;
use crate::digest::{digest, named_files};
use crate::endpoint::EndpointSubject;
use crate::headers::HeaderError;
use crate::mcp_config::McpConfigError;
use crate::models::{self, SubjectModelError};
use crate::spec::{ManifestSpec, ModelSpec, SubjectKind, SubjectSpec};
use crate::subject::{Pace, Subject, SubjectInfo};
use crate::{EnvironmentLookup, Notice};

/// The agent behind the simulations.
const SIMULATED: &str = include_str!("sim.yaml");

/// The agent around a bare model.
const BARE: &str = include_str!("model.yaml");

/// What a bare model is told: nothing that helps it to resist, and nothing that makes it give way.
const PLAIN_PROMPT: &str = "You are a helpful assistant.";

/// Models that go through a file from its beginning to its end.
const REMEMBERING: [&str; 2] = ["sim:scripted:", "replay:"];

/// What precedes a model where a subject is named.
pub const MODEL_PREFIX: &str = "model:";

/// The simulations, and what each is.
pub const SIMULATIONS: [(&str, &str); 2] = [
    (
        "sim:gullible",
        "a simulation that obeys every instruction it reads",
    ),
    (
        "sim:careful",
        "a simulation that does what the user asked and nothing else",
    ),
];

/// What opening subjects needs of the program around it.
pub struct OpenContext<'o> {
    /// The variables of the environment.
    pub environment: EnvironmentLookup,
    /// Hears what its user should know.
    pub notify: &'o dyn Fn(Notice),
    /// What the requests of its model go through, if they count together with those of others.
    pub gate: Option<Arc<dyn RequestGate>>,
}

/// Why a subject cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SubjectOpenError {
    /// No simulation, model or file is written like this.
    #[error(
        "--subject {0}: write sim:gullible, sim:careful, model:openai:MODEL or another model, or the file of an \
         agent manifest"
    )]
    NoSubject(String),
    /// The simulation cannot be had.
    #[error("--subject {name}: {error}")]
    Simulation {
        /// Its name.
        name: String,
        /// Why.
        error: SubjectModelError,
    },
    /// Its model cannot be had.
    #[error(transparent)]
    Model(#[from] SubjectModelError),
    /// Its manifests cannot be used.
    #[error(transparent)]
    Bundles(#[from] BundleError),
    /// One of its manifests cannot be read.
    #[error("{name}: {error}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        error: Unreadable,
    },
    /// The prompt of a bare model cannot stand in a manifest.
    #[error("the prompt of {name} cannot be used: {message}")]
    Prompt {
        /// The subject.
        name: String,
        /// Why.
        message: String,
    },
    /// There is no agent.
    #[error("there is no agent in the manifest")]
    NoAgent,
    /// What runs its tools cannot be set up.
    #[error("{0}")]
    Runtimes(ActionError),
    /// The command is empty.
    #[error("there is no command to start")]
    NoCommand,
    /// The command's directory is not there.
    #[error("{}: no such directory", .0.display())]
    NoDirectory(std::path::PathBuf),
    /// The configuration of its MCP servers cannot be used.
    #[error(transparent)]
    McpConfig(#[from] McpConfigError),
    /// A header cannot be sent.
    #[error("header {0}")]
    Header(#[from] HeaderError),
    /// A URL is none.
    #[error("{0}: write a URL that begins with http:// or https://")]
    Url(String),
    /// There is no URL.
    #[error("a running agent needs a URL: --ag-ui-url, --a2a-url or --mcp-url")]
    NoUrl,
}

impl SubjectOpenError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoSubject(_)
            | Self::Unreadable { .. }
            | Self::Prompt { .. }
            | Self::NoCommand
            | Self::NoDirectory(_)
            | Self::Header(_)
            | Self::Url(_)
            | Self::NoUrl => true,
            Self::Simulation { error, .. } | Self::Model(error) => error.is_usage(),
            Self::Bundles(error) => error.is_usage(),
            Self::McpConfig(error) => error.is_usage(),
            Self::NoAgent | Self::Runtimes(_) => false,
        }
    }
}

/// Makes the subject that is described. It must be called where there is a runtime.
///
/// # Errors
///
/// Returns an error when the description makes no sense, or when what it needs is not there.
pub fn open(
    spec: &SubjectSpec,
    opening: &OpenContext<'_>,
) -> Result<Arc<dyn Subject>, SubjectOpenError> {
    let mut pace = Pace::default();
    if let Some(deadline) = spec.deadline {
        pace.deadline = deadline;
        pace.start = pace.start.min(deadline);
    }
    let info = |usual: &str, kind: &str, description: String| SubjectInfo {
        name: spec.name.clone().unwrap_or_else(|| usual.to_owned()),
        kind: kind.to_owned(),
        simulation: false,
        description,
        digest: Some(digest(&spec.kind, &named(&spec.kind))),
        guard: None,
    };
    Ok(match &spec.kind {
        SubjectKind::Simulation(model) => {
            let known = SIMULATIONS.iter().find(|(known, _)| known == model);
            let about = known.map_or("a simulation", |(_, about)| about);
            Arc::new(simulation(
                info(model, "sim", about.to_owned()),
                model,
                opening,
            )?)
        }
        SubjectKind::Manifest(manifest) => {
            let (bundles, agent, model) = of_manifest(manifest, opening)?;
            let about = format!("the agent {} with {}", agent.name, model.name);
            let info = SubjectInfo {
                simulation: model.is_simulation,
                digest: Some(digest(&spec.kind, &texts(manifest)?)),
                ..info(&agent.name, "manifest", about)
            };
            let agent =
                AgentSubject::new(info, bundles, Some(&agent), model.of_run, &manifest.allow)?;
            Arc::new(agent.with_pace(pace))
        }
        SubjectKind::Model(model) => {
            let name = format!("{MODEL_PREFIX}{}", model.model);
            let about = format!("the model {} with a plain prompt", model.model);
            Arc::new(bare_model(info(&name, "model", about), model, opening)?.with_pace(pace))
        }
        SubjectKind::Command(command) => {
            let program = command.words.first().map_or("", String::as_str);
            let about = format!("the command `{program}`, started for every run");
            let info = info("command", "command", about);
            Arc::new(CommandSubject::new(info, command, pace, opening)?)
        }
        SubjectKind::Endpoint(endpoint) => {
            let urls: Vec<String> = endpoint.urls.all().map(without_credentials).collect();
            let about = format!("an agent at {}", urls.join(", "));
            let info = info("endpoint", "endpoint", about);
            Arc::new(EndpointSubject::new(info, endpoint, pace, opening)?)
        }
    })
}

/// A URL as results may have it: keys are often in its query, and passwords before its host.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => url.to_owned(),
    }
}

fn simulation(
    info: SubjectInfo,
    model: &str,
    opening: &OpenContext<'_>,
) -> Result<AgentSubject, SubjectOpenError> {
    if !model.starts_with("sim:") {
        return Err(SubjectOpenError::NoSubject(model.to_owned()));
    }
    let opened = opened(model, None, Path::new("."), opening);
    let opened = opened.map_err(|error| SubjectOpenError::Simulation {
        name: model.to_owned(),
        error,
    })?;
    let info = SubjectInfo {
        simulation: true,
        ..info
    };
    let (bundle, _) = Bundle::read(SIMULATED);
    let subject = AgentSubject::new(info, vec![bundle], None, opened.of_run, &[])?;
    Ok(subject.with_pace(AgentSubject::PACE_OF_SIMULATIONS))
}

/// A model that was opened.
struct OpenedModel {
    name: String,
    is_simulation: bool,
    of_run: ModelOfRun,
}

/// Opens a model. Those that remember what they said already are opened again for every run.
fn opened(
    name: &str,
    base_url: Option<&str>,
    directory: &Path,
    opening: &OpenContext<'_>,
) -> Result<OpenedModel, SubjectModelError> {
    let model = models::open_behind(
        opening.gate.as_ref(),
        name,
        base_url,
        directory,
        &opening.environment,
    )?;
    let is_simulation = model.is_simulation();
    let remembers = REMEMBERING.iter().any(|start| name.starts_with(start));
    let of_run: ModelOfRun = if remembers {
        let (name, directory) = (name.to_owned(), directory.to_owned());
        let environment = Arc::clone(&opening.environment);
        Box::new(move || models::open(&name, None, &directory, &environment))
    } else {
        Box::new(move || Ok(Arc::clone(&model)))
    };
    Ok(OpenedModel {
        name: name.to_owned(),
        is_simulation,
        of_run,
    })
}

/// An agent of a manifest and its model.
fn of_manifest(
    spec: &ManifestSpec,
    opening: &OpenContext<'_>,
) -> Result<(Vec<Bundle>, Agent, OpenedModel), SubjectOpenError> {
    let mut bundles = bundles::read(std::slice::from_ref(&spec.path), opening.notify)?;
    let agent = bundles::chosen(&mut bundles, spec.agent.as_deref())?.clone();
    let model = spec.model.as_deref().or(agent.model.as_deref());
    let model = model.unwrap_or(models::DEFAULT_MODEL);
    let directory = if spec.path.is_dir() {
        Some(spec.path.as_path())
    } else {
        spec.path.parent()
    };
    let directory = directory.unwrap_or(Path::new("."));
    let opened = opened(model, spec.base_url.as_deref(), directory, opening)?;
    Ok((bundles, agent, opened))
}

/// The texts of manifests.
fn texts(spec: &ManifestSpec) -> Result<Vec<String>, SubjectOpenError> {
    let inputs = collect(std::slice::from_ref(&spec.path), DOCUMENTS).map_err(BundleError::from)?;
    let texts = inputs.iter().map(|input| {
        input
            .read(BundleLimits::default().max_bytes)
            .map_err(|error| SubjectOpenError::Unreadable {
                name: input.name(),
                error,
            })
    });
    texts.collect()
}

/// A model with a plain prompt.
fn bare_model(
    info: SubjectInfo,
    spec: &ModelSpec,
    opening: &OpenContext<'_>,
) -> Result<AgentSubject, SubjectOpenError> {
    let directory = spec.directory.as_deref().unwrap_or(Path::new("."));
    let opened = opened(&spec.model, spec.base_url.as_deref(), directory, opening)?;
    let prompt = spec.instructions.as_deref().unwrap_or(PLAIN_PROMPT);
    // A text in JSON is a text in YAML, whatever is in it.
    let (bundle, findings) = Bundle::read(&format!("{BARE}prompt: {}\n", json!(prompt)));
    let wrong = |finding: &&Diagnostic| finding.severity == DiagnosticSeverity::Error;
    if let Some(finding) = findings.iter().find(wrong) {
        return Err(SubjectOpenError::Prompt {
            name: info.name,
            message: finding.message.clone(),
        });
    }
    let info = SubjectInfo {
        simulation: opened.is_simulation,
        ..info
    };
    AgentSubject::new(info, vec![bundle], None, opened.of_run, &[])
}

/// What is in the files that a command names.
fn named(kind: &SubjectKind) -> Vec<String> {
    match kind {
        SubjectKind::Command(command) => named_files(command),
        SubjectKind::Simulation(_)
        | SubjectKind::Manifest(_)
        | SubjectKind::Model(_)
        | SubjectKind::Endpoint(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_no_credentials_of_urls() {
        for (url, shown) in [
            ("http://u:p@host:1/a?key=x#y", "http://host:1/a"),
            ("https://host", "https://host/"),
            ("https://host?token=a/b@c", "https://host/"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
