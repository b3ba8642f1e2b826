//! Makes a subject of its description.

use std::path::Path;
use std::sync::Arc;

use proofhouse_campaign::result::SubjectInfo;
use proofhouse_campaign::subject::{Pace, Subject};
use proofhouse_manifest::{Agent, Bundle, BundleLimits};
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};
use serde_json::json;

use super::agent::{AgentSubject, ModelOfRun};
use super::command::CommandSubject;
use super::digest::digest;
use super::endpoint::EndpointSubject;
use super::spec::{ManifestSpec, ModelSpec, SubjectKind, SubjectSpec};
use crate::agents::{bundles, models};
use crate::input::{DOCUMENTS, collect};
use crate::output::{CommandError, printable_line};

/// The agent behind the simulations.
const SIMULATED: &str = include_str!("sim.yaml");

/// The agent around a bare model.
const BARE: &str = include_str!("model.yaml");

/// What a bare model is told: nothing that helps it to resist, and nothing that makes it give way.
const PLAIN_PROMPT: &str = "You are a helpful assistant.";

/// The model of a manifest that names none.
const DEFAULT_MODEL: &str = "sim:careful";

/// Models that go through a file from its beginning to its end.
const REMEMBERING: [&str; 2] = ["sim:scripted:", "replay:"];

/// What precedes a model where a subject is named.
pub(crate) const MODEL_PREFIX: &str = "model:";

/// The simulations, and what each is.
pub(crate) const SIMULATIONS: [(&str, &str); 2] = [
    (
        "sim:gullible",
        "a simulation that takes every order for the user's",
    ),
    (
        "sim:careful",
        "a simulation that does what the user asked and nothing else",
    ),
];

/// Makes the subject that is described. It must be called where there is a runtime.
pub(crate) fn open(spec: &SubjectSpec) -> Result<Arc<dyn Subject>, CommandError> {
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
        digest: Some(digest(&spec.kind, &[])),
    };
    Ok(match &spec.kind {
        SubjectKind::Simulation(model) => {
            let known = SIMULATIONS.iter().find(|(known, _)| known == model);
            let about = known.map_or("a simulation", |(_, about)| about);
            Arc::new(simulation(info(model, "sim", about.to_owned()), model)?)
        }
        SubjectKind::Manifest(manifest) => {
            let (bundles, agent, model) = of_manifest(manifest)?;
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
            Arc::new(bare_model(info(&name, "model", about), model)?.with_pace(pace))
        }
        SubjectKind::Command(command) => {
            let program = command.words.first().map_or("", String::as_str);
            let about = format!("the command `{program}`, started for every run");
            let info = info("command", "command", about);
            Arc::new(CommandSubject::new(info, command, pace)?)
        }
        SubjectKind::Endpoint(endpoint) => {
            let urls: Vec<String> = endpoint.urls.all().map(without_credentials).collect();
            let about = format!("an agent at {}", urls.join(", "));
            let info = info("endpoint", "endpoint", about);
            Arc::new(EndpointSubject::new(info, endpoint, pace)?)
        }
    })
}

/// A URL as results may have it: keys are often in its query, and passwords before its host.
pub(crate) fn without_credentials(url: &str) -> String {
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

fn simulation(info: SubjectInfo, model: &str) -> Result<AgentSubject, CommandError> {
    if !model.starts_with("sim:") {
        return Err(CommandError::usage(printable_line(&format!(
            "--subject {model}: write sim:gullible, sim:careful, model:openai:MODEL or another model, or the \
             file of an agent manifest"
        ))));
    }
    let opened = opened(model, None, Path::new(".")).map_err(|error| CommandError {
        message: printable_line(&format!("--subject {model}: {error}")),
        exit: error.exit,
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
struct Opened {
    name: String,
    is_simulation: bool,
    of_run: ModelOfRun,
}

/// Opens a model. Those that remember what they said already are opened again for every run.
fn opened(name: &str, base_url: Option<&str>, directory: &Path) -> Result<Opened, CommandError> {
    let model = models::open(name, base_url, directory)?;
    let is_simulation = model.is_simulation();
    let of_run: ModelOfRun = match REMEMBERING.iter().any(|start| name.starts_with(start)) {
        false => Box::new(move || Ok(Arc::clone(&model))),
        true => {
            let (name, directory) = (name.to_owned(), directory.to_owned());
            Box::new(move || {
                models::open(&name, None, &directory).map_err(|error| error.to_string())
            })
        }
    };
    Ok(Opened {
        name: name.to_owned(),
        is_simulation,
        of_run,
    })
}

/// An agent of a manifest and its model.
fn of_manifest(spec: &ManifestSpec) -> Result<(Vec<Bundle>, Agent, Opened), CommandError> {
    let mut bundles = bundles::read(std::slice::from_ref(&spec.path))?;
    let agent = bundles::chosen(&mut bundles, spec.agent.as_deref())?.clone();
    let model = spec.model.as_deref().or(agent.model.as_deref());
    let model = model.unwrap_or(DEFAULT_MODEL);
    let directory = match spec.path.is_dir() {
        true => Some(spec.path.as_path()),
        false => spec.path.parent(),
    };
    let directory = directory.unwrap_or(Path::new("."));
    let opened = opened(model, spec.base_url.as_deref(), directory)?;
    Ok((bundles, agent, opened))
}

/// The texts of manifests.
fn texts(spec: &ManifestSpec) -> Result<Vec<String>, CommandError> {
    let inputs = collect(std::slice::from_ref(&spec.path), DOCUMENTS)?;
    let texts = inputs.iter().map(|input| {
        input
            .read(BundleLimits::default().max_bytes)
            .map_err(|error| CommandError::usage(format!("{}: {error}", input.shown())))
    });
    texts.collect()
}

/// A model with a plain prompt.
fn bare_model(info: SubjectInfo, spec: &ModelSpec) -> Result<AgentSubject, CommandError> {
    let directory = spec.directory.as_deref().unwrap_or(Path::new("."));
    let opened = opened(&spec.model, spec.base_url.as_deref(), directory)?;
    let prompt = spec.instructions.as_deref().unwrap_or(PLAIN_PROMPT);
    // A text in JSON is a text in YAML, whatever is in it.
    let (bundle, findings) = Bundle::read(&format!("{BARE}prompt: {}\n", json!(prompt)));
    let wrong = |finding: &&Diagnostic| finding.severity == DiagnosticSeverity::Error;
    if let Some(finding) = findings.iter().find(wrong) {
        return Err(CommandError::usage(printable_line(&format!(
            "the prompt of {} cannot be used: {}",
            info.name, finding.message
        ))));
    }
    let info = SubjectInfo {
        simulation: opened.is_simulation,
        ..info
    };
    AgentSubject::new(info, vec![bundle], None, opened.of_run, &[])
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
