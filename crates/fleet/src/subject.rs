//! Subjects as the store keeps them: everything that a worker needs to start one, and no secret. What is secret is named, and every
//! worker takes it from its own environment.

use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use proofhouse_campaign::config::{looks_secret, sounds_secret};
use proofhouse_subjects::headers::{HeaderError, HeaderSource, RequestHeader};
use proofhouse_subjects::spec::{
    CommandSpec, Directory, EndpointSpec, ManifestSpec, McpConfigSpec, ModelSpec, Ready, Serves,
    SubjectKind, SubjectSpec, Urls, network,
};
use proofhouse_subjects::{EnvironmentLookup, Sealed, without_credentials};
use proofhouse_wire::files::{CollectError, DOCUMENTS, FileInput, Unreadable, collect};
use serde::{Deserialize, Serialize};

use crate::caps::ModelRequests;

/// Bytes of one manifest.
const MAX_MANIFEST: usize = 4 << 20;
/// Files of one subject.
const MAX_FILES: usize = 1_000;

/// Why a subject cannot be kept in a store, or be made again from it.
#[derive(Debug, thiserror::Error)]
pub enum StoreSubjectError {
    /// A header has a value that would be stored.
    #[error(
        "the value of header `{0}` would be stored; write `{0}: env:VARIABLE`, and set the variable for every worker"
    )]
    HeaderValue(String),
    /// A URL has a secret in it.
    #[error(
        "{0} has a password, a query or a key, which would be stored; send it in a header from the environment instead"
    )]
    UrlSecret(String),
    /// A header has a secret before its variable.
    #[error(
        "what stands before `env:` in header `{0}` looks like a secret and would be stored; put the whole value in a variable, write `{0}: env:VARIABLE`, and set the variable for every worker"
    )]
    BeforeVariable(String),
    /// The command has a secret in it.
    #[error(
        "the command contains what is or looks like a secret, which would be stored; have the agent read it from a variable of its environment, and set the variable for every worker"
    )]
    CommandSecret,
    /// A text has a secret in it.
    #[error(
        "{0} contains what looks like a secret, which would be stored; take it from a variable of the environment instead, and set the variable for every worker"
    )]
    TextSecret(String),
    /// A manifest cannot be read.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// A manifest cannot be read.
    #[error("{name}: {error}")]
    Read {
        /// The file.
        name: String,
        /// Why not.
        error: Unreadable,
    },
    /// There are too many manifests.
    #[error("{0} files are more than a stored subject may have ({MAX_FILES})")]
    TooMany(usize),
    /// A variable is not set.
    #[error(
        "the variable `{0}` is not set; its value is or looks like a secret, so it was not stored: set it for every worker"
    )]
    NotSet(String),
    /// A stored header makes no sense.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A stored network makes no sense.
    #[error("`{0}` is no network")]
    Network(String),
    /// A stored path leads elsewhere.
    #[error("`{0}` is not a path below the subject's directory")]
    Path(String),
    /// The manifests cannot be written down for the run.
    #[error("the manifests cannot be written: {0}")]
    Write(std::io::Error),
}

/// A subject as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredSubject {
    /// Its name, if it was given one.
    name: Option<String>,
    /// The longest a run may take, in milliseconds.
    deadline_ms: Option<u64>,
    /// What kind it is.
    kind: StoredKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StoredKind {
    Simulation {
        model: String,
    },
    Manifest {
        /// The files, relative to the directory of the manifest.
        files: Vec<(String, String)>,
        /// The one that is named; without one, the whole directory.
        file: Option<String>,
        agent: Option<String>,
        model: Option<String>,
        base_url: Option<String>,
        allow: Vec<String>,
    },
    Model {
        model: String,
        base_url: Option<String>,
        instructions: Option<String>,
        directory: Option<PathBuf>,
    },
    Command {
        words: Vec<String>,
        directory: StoredDirectory,
        environment: Vec<(String, StoredValue)>,
        serves: Option<StoredServes>,
        ready: StoredReady,
        headers: Vec<StoredHeader>,
        mcp_config: Option<(PathBuf, bool)>,
        max_disk: Option<u64>,
    },
    Endpoint {
        ag_ui: Option<String>,
        a2a: Option<String>,
        mcp: Option<String>,
        mcp_listen: Option<SocketAddr>,
        a2a_listen: Option<SocketAddr>,
        headers: Vec<StoredHeader>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredDirectory {
    OfRun,
    CopyOf(PathBuf),
    Fixed(PathBuf),
}

/// The value of a variable of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredValue {
    /// It is no secret.
    Plain(String),
    /// It is what the variable of this name is for the worker.
    OfWorker(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredServes {
    AgUi,
    A2a,
    Mcp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredReady {
    Port,
    Line(String),
    Url(String),
}

/// A header whose value is in a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHeader {
    name: String,
    before: String,
    variable: String,
}

impl StoredSubject {
    /// What of a subject is kept.
    ///
    /// # Errors
    ///
    /// Returns an error when a secret would be kept, or a manifest cannot be read.
    pub fn of(spec: &SubjectSpec) -> Result<Self, StoreSubjectError> {
        let deadline = spec.deadline;
        Ok(Self {
            name: spec.name.clone(),
            deadline_ms: deadline.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            kind: stored(&spec.kind)?,
        })
    }

    /// The model that runs against it ask, for caps; subjects whose model nobody knows have a name of their own.
    #[must_use]
    pub fn lane(&self, name: &str) -> String {
        match &self.kind {
            StoredKind::Simulation { model } | StoredKind::Model { model, .. } => model.clone(),
            StoredKind::Manifest {
                model: Some(model), ..
            } => model.clone(),
            StoredKind::Manifest { .. }
            | StoredKind::Command { .. }
            | StoredKind::Endpoint { .. } => {
                format!("subject:{name}")
            }
        }
    }

    /// Who asks its model.
    #[must_use]
    pub fn requests(&self) -> ModelRequests {
        let of = |model: &str| {
            if model.starts_with("sim:") {
                ModelRequests::Simulated
            } else {
                ModelRequests::Ours
            }
        };
        match &self.kind {
            StoredKind::Simulation { model } | StoredKind::Model { model, .. } => of(model),
            StoredKind::Manifest { model, .. } => model.as_deref().map_or(ModelRequests::Ours, of),
            StoredKind::Command { .. } | StoredKind::Endpoint { .. } => ModelRequests::Unseen,
        }
    }

    /// The subject, with its secrets from the environment. Manifests are written below the directory.
    ///
    /// # Errors
    ///
    /// Returns an error when a variable is not set, or the manifests cannot be written.
    pub fn open(
        &self,
        environment: &EnvironmentLookup,
        directory: &Path,
    ) -> Result<SubjectSpec, StoreSubjectError> {
        Ok(SubjectSpec {
            name: self.name.clone(),
            deadline: self.deadline_ms.map(Duration::from_millis),
            kind: opened(&self.kind, environment, directory)?,
        })
    }
}

fn stored(kind: &SubjectKind) -> Result<StoredKind, StoreSubjectError> {
    Ok(match kind {
        SubjectKind::Simulation(model) => StoredKind::Simulation {
            model: model.clone(),
        },
        SubjectKind::Model(model) => StoredKind::Model {
            model: model.model.clone(),
            base_url: plain_url(model.base_url.as_ref())?,
            instructions: match &model.instructions {
                Some(text) if looks_secret(text) => {
                    let what = "the instructions of the agent".to_owned();
                    return Err(StoreSubjectError::TextSecret(what));
                }
                instructions => instructions.clone(),
            },
            directory: model.directory.clone(),
        },
        SubjectKind::Manifest(manifest) => stored_manifest(manifest)?,
        SubjectKind::Command(command) => stored_command(command)?,
        SubjectKind::Endpoint(endpoint) => StoredKind::Endpoint {
            ag_ui: plain_url(endpoint.urls.ag_ui.as_ref())?,
            a2a: plain_url(endpoint.urls.a2a.as_ref())?,
            mcp: plain_url(endpoint.urls.mcp.as_ref())?,
            mcp_listen: endpoint.mcp_listen,
            a2a_listen: endpoint.a2a_listen,
            headers: stored_headers(&endpoint.headers)?,
        },
    })
}

/// A URL without anything that could be a secret.
fn plain_url(url: Option<&String>) -> Result<Option<String>, StoreSubjectError> {
    let Some(url) = url else { return Ok(None) };
    let plain = without_credentials(url);
    if looks_secret(&plain) {
        let host = plain.split('/').take(3).collect::<Vec<_>>().join("/");
        return Err(StoreSubjectError::UrlSecret(host));
    }
    if plain.trim_end_matches('/') == url.trim_end_matches('/') {
        Ok(Some(url.clone()))
    } else {
        Err(StoreSubjectError::UrlSecret(plain))
    }
}

fn stored_headers(headers: &[RequestHeader]) -> Result<Vec<StoredHeader>, StoreSubjectError> {
    let stored = headers.iter().map(|header| match &header.value {
        HeaderSource::Given(_) => Err(StoreSubjectError::HeaderValue(header.name.clone())),
        HeaderSource::Variable { before, .. } if !is_scheme(before) => {
            Err(StoreSubjectError::BeforeVariable(header.name.clone()))
        }
        HeaderSource::Variable { before, name } => Ok(StoredHeader {
            name: header.name.clone(),
            before: before.clone(),
            variable: name.clone(),
        }),
    });
    stored.collect()
}

/// Whether what stands before a secret is a word that everybody may know, such as `Bearer ` or `session=`.
fn is_scheme(before: &str) -> bool {
    /// `AWS4-HMAC-SHA256` is one of the longest.
    const LONGEST: usize = 20;
    let word = before.trim_end().trim_end_matches(['=', ':']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    word.len() <= LONGEST && word.chars().all(is_plain) && !looks_secret(word)
}

/// What tells that a command is ready, without anything that could be a secret.
fn plain_ready(ready: &Ready) -> Result<StoredReady, StoreSubjectError> {
    let (stored, text) = match ready {
        Ready::Port => return Ok(StoredReady::Port),
        Ready::Line(line) => (StoredReady::Line(line.clone()), line),
        Ready::Url(url) => (StoredReady::Url(url.clone()), url),
    };
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let mut names = query.split('&').filter_map(|part| part.split_once('='));
    if looks_secret(text) || names.any(|(name, _)| sounds_secret(name)) {
        let what = "what says that the agent is ready".to_owned();
        return Err(StoreSubjectError::TextSecret(what));
    }
    Ok(stored)
}

fn stored_manifest(manifest: &ManifestSpec) -> Result<StoredKind, StoreSubjectError> {
    let is_directory = manifest.path.is_dir();
    let root = if is_directory {
        manifest.path.clone()
    } else {
        manifest
            .path
            .parent()
            .map(Path::to_owned)
            .unwrap_or_default()
    };
    let inputs = collect(std::slice::from_ref(&manifest.path), DOCUMENTS)?;
    if inputs.len() > MAX_FILES {
        return Err(StoreSubjectError::TooMany(inputs.len()));
    }
    let mut files = Vec::new();
    for input in &inputs {
        let text = input
            .read(MAX_MANIFEST)
            .map_err(|error| StoreSubjectError::Read {
                name: input.name(),
                error,
            })?;
        if looks_secret(&text) {
            return Err(StoreSubjectError::TextSecret(input.name()));
        }
        let path = match input {
            FileInput::File(path) => path.strip_prefix(&root).unwrap_or(path).to_owned(),
            FileInput::Stdin => PathBuf::from("agent.yaml"),
        };
        files.push((path.to_string_lossy().replace('\\', "/"), text));
    }
    let file = files.first().map(|(path, _)| path.clone());
    Ok(StoredKind::Manifest {
        file: file.filter(|_| !is_directory),
        files,
        agent: manifest.agent.clone(),
        model: manifest.model.clone(),
        base_url: plain_url(manifest.base_url.as_ref())?,
        allow: manifest.allow.iter().map(ToString::to_string).collect(),
    })
}

fn stored_command(command: &CommandSpec) -> Result<StoredKind, StoreSubjectError> {
    let secrets: Vec<&str> = command
        .secrets
        .iter()
        .map(|secret| secret.expose().as_str())
        .filter(|secret| !secret.is_empty())
        .collect();
    let has_secret = |text: &str| secrets.iter().any(|secret| text.contains(secret));
    let is_secret = |text: &str| has_secret(text) || looks_secret(text);
    if command.words.iter().any(|word| is_secret(word)) {
        return Err(StoreSubjectError::CommandSecret);
    }
    let environment = command.environment.iter().map(|(name, value)| {
        let value = value.expose();
        let stored = if sounds_secret(name) || is_secret(value) {
            StoredValue::OfWorker(name.clone())
        } else {
            StoredValue::Plain(value.clone())
        };
        (name.clone(), stored)
    });
    Ok(StoredKind::Command {
        words: command.words.clone(),
        directory: match &command.directory {
            Directory::OfRun => StoredDirectory::OfRun,
            Directory::CopyOf(path) => StoredDirectory::CopyOf(absolute(path)),
            Directory::Fixed(path) => StoredDirectory::Fixed(absolute(path)),
        },
        environment: environment.collect(),
        serves: command.serves.map(|serves| match serves {
            Serves::AgUi => StoredServes::AgUi,
            Serves::A2a => StoredServes::A2a,
            Serves::Mcp => StoredServes::Mcp,
        }),
        ready: plain_ready(&command.ready)?,
        headers: stored_headers(&command.headers)?,
        mcp_config: command
            .mcp_config
            .as_ref()
            .map(|config| (absolute(&config.file), config.in_place)),
        max_disk: command.max_disk,
    })
}

/// A path that means the same in every directory of the machine.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn opened(
    kind: &StoredKind,
    environment: &EnvironmentLookup,
    directory: &Path,
) -> Result<SubjectKind, StoreSubjectError> {
    Ok(match kind {
        StoredKind::Simulation { model } => SubjectKind::Simulation(model.clone()),
        StoredKind::Model {
            model,
            base_url,
            instructions,
            directory,
        } => SubjectKind::Model(ModelSpec {
            model: model.clone(),
            base_url: base_url.clone(),
            instructions: instructions.clone(),
            directory: directory.clone(),
        }),
        StoredKind::Manifest {
            files,
            file,
            agent,
            model,
            base_url,
            allow,
        } => {
            for (path, text) in files {
                write_below(directory, path, text)?;
            }
            let path = match file {
                Some(file) => directory.join(below(file)?),
                None => directory.to_owned(),
            };
            let allow = allow
                .iter()
                .map(|text| network(text).map_err(|_| StoreSubjectError::Network(text.clone())));
            SubjectKind::Manifest(ManifestSpec {
                path,
                agent: agent.clone(),
                model: model.clone(),
                base_url: base_url.clone(),
                allow: allow.collect::<Result<_, _>>()?,
            })
        }
        StoredKind::Command {
            words,
            directory,
            environment: variables,
            serves,
            ready,
            headers,
            mcp_config,
            max_disk,
        } => {
            let (mut set, mut secrets) = (Vec::new(), Vec::new());
            for (name, value) in variables {
                let value = match value {
                    StoredValue::Plain(value) => Sealed::new(value.clone()),
                    StoredValue::OfWorker(variable) => {
                        let value = environment(variable)
                            .ok_or_else(|| StoreSubjectError::NotSet(variable.clone()))?;
                        secrets.push(Sealed::new(value.clone()));
                        Sealed::new(value)
                    }
                };
                set.push((name.clone(), value));
            }
            SubjectKind::Command(CommandSpec {
                words: words.clone(),
                directory: match directory {
                    StoredDirectory::OfRun => Directory::OfRun,
                    StoredDirectory::CopyOf(path) => Directory::CopyOf(path.clone()),
                    StoredDirectory::Fixed(path) => Directory::Fixed(path.clone()),
                },
                environment: set,
                secrets,
                serves: serves.map(|serves| match serves {
                    StoredServes::AgUi => Serves::AgUi,
                    StoredServes::A2a => Serves::A2a,
                    StoredServes::Mcp => Serves::Mcp,
                }),
                ready: match ready {
                    StoredReady::Port => Ready::Port,
                    StoredReady::Line(line) => Ready::Line(line.clone()),
                    StoredReady::Url(url) => Ready::Url(url.clone()),
                },
                headers: opened_headers(headers)?,
                mcp_config: mcp_config.as_ref().map(|(file, in_place)| McpConfigSpec {
                    file: file.clone(),
                    in_place: *in_place,
                }),
                max_disk: *max_disk,
            })
        }
        StoredKind::Endpoint {
            ag_ui,
            a2a,
            mcp,
            mcp_listen,
            a2a_listen,
            headers,
        } => SubjectKind::Endpoint(EndpointSpec {
            urls: Urls {
                ag_ui: ag_ui.clone(),
                a2a: a2a.clone(),
                mcp: mcp.clone(),
            },
            mcp_listen: *mcp_listen,
            a2a_listen: *a2a_listen,
            headers: opened_headers(headers)?,
        }),
    })
}

fn opened_headers(headers: &[StoredHeader]) -> Result<Vec<RequestHeader>, StoreSubjectError> {
    let opened = headers.iter().map(|header| {
        let mut opened = RequestHeader::of_variable(&header.name, &header.variable)?;
        if let HeaderSource::Variable { before, .. } = &mut opened.value {
            before.clone_from(&header.before);
        }
        Ok(opened)
    });
    opened.collect()
}

/// A path that stays below where it starts.
fn below(path: &str) -> Result<&Path, StoreSubjectError> {
    let stays = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if stays && !path.is_empty() {
        Ok(Path::new(path))
    } else {
        Err(StoreSubjectError::Path(path.to_owned()))
    }
}

fn write_below(directory: &Path, path: &str, text: &str) -> Result<(), StoreSubjectError> {
    let path = directory.join(below(path)?);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(StoreSubjectError::Write)?;
    }
    std::fs::write(path, text).map_err(StoreSubjectError::Write)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn again(kind: SubjectKind) -> SubjectSpec {
        let spec = SubjectSpec {
            name: Some("mine".to_owned()),
            deadline: Some(Duration::from_secs(9)),
            kind,
        };
        let text = serde_json::to_string(&StoredSubject::of(&spec).unwrap()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        let stored: StoredSubject = serde_json::from_str(&text).unwrap();
        let environment: EnvironmentLookup =
            Arc::new(|name| (name == "DB_PASSWORD").then(|| "hunter2".to_owned()));
        let directory = tempfile::tempdir().unwrap();
        let opened = stored.open(&environment, directory.path()).unwrap();
        assert_eq!((&opened.name, opened.deadline), (&spec.name, spec.deadline));
        opened
    }

    #[test]
    fn a_command_comes_back_with_the_secrets_of_the_worker() {
        let command = CommandSpec {
            words: vec!["agent".to_owned(), "{mcp_url}".to_owned()],
            environment: vec![
                ("MCP".to_owned(), Sealed::new("{mcp_url}".to_owned())),
                ("DB_PASSWORD".to_owned(), Sealed::new("hunter2".to_owned())),
            ],
            secrets: vec![Sealed::new("hunter2".to_owned())],
            serves: Some(Serves::Mcp),
            ready: Ready::Line("up".to_owned()),
            headers: vec![RequestHeader::read("X-A: Bearer env:T").unwrap()],
            ..CommandSpec::default()
        };
        let opened = again(SubjectKind::Command(command.clone()));
        assert_eq!(opened.kind, SubjectKind::Command(command));
    }

    #[test]
    fn no_secret_is_stored() {
        let refused = |kind| {
            let spec = SubjectSpec {
                name: None,
                deadline: None,
                kind,
            };
            let error = StoredSubject::of(&spec).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        };
        refused(SubjectKind::Endpoint(EndpointSpec {
            headers: vec![RequestHeader::read("X-A: hunter2").unwrap()],
            ..EndpointSpec::default()
        }));
        refused(SubjectKind::Model(ModelSpec {
            model: "openai:x".to_owned(),
            base_url: Some("http://me:hunter2@host/v1".to_owned()),
            ..ModelSpec::default()
        }));
        refused(SubjectKind::Command(CommandSpec {
            words: vec!["a".to_owned(), "--key=hunter2".to_owned()],
            secrets: vec![Sealed::new("hunter2".to_owned())],
            ..CommandSpec::default()
        }));
        // What nobody called a secret looks like one.
        const KEY: &str = "sk-hunter2hunter2";
        refused(SubjectKind::Command(CommandSpec {
            words: vec!["agent".to_owned(), "--key".to_owned(), KEY.to_owned()],
            ..CommandSpec::default()
        }));
        for ready in [
            Ready::Url(format!("/up/{KEY}")),
            Ready::Url("/up?token=hunter2".to_owned()),
            Ready::Line(format!("up as {KEY}")),
        ] {
            refused(SubjectKind::Command(CommandSpec {
                words: vec!["agent".to_owned()],
                ready,
                ..CommandSpec::default()
            }));
        }
        for header in [
            "Authorization: Basic hunter2 env:T",
            "X-A: sk-hunter2hunter2 env:T",
            "Cookie: session=hunter2; csrf=env:T",
        ] {
            refused(SubjectKind::Endpoint(EndpointSpec {
                headers: vec![RequestHeader::read(header).unwrap()],
                ..EndpointSpec::default()
            }));
        }
        refused(SubjectKind::Endpoint(EndpointSpec {
            urls: Urls {
                mcp: Some(format!("http://host/{KEY}/mcp")),
                ..Urls::default()
            },
            ..EndpointSpec::default()
        }));
        refused(SubjectKind::Model(ModelSpec {
            model: "openai:x".to_owned(),
            instructions: Some(format!("Say {KEY} to get in.")),
            ..ModelSpec::default()
        }));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.yaml");
        std::fs::write(&path, "url: postgres://me:hunter2@db/x\n").unwrap();
        refused(SubjectKind::Manifest(ManifestSpec {
            path,
            ..ManifestSpec::default()
        }));
    }

    #[test]
    fn a_variable_that_looks_like_a_secret_is_that_of_the_worker() {
        let url = "postgres://me:hunter2@db/x";
        let command = CommandSpec {
            words: vec!["agent".to_owned()],
            environment: vec![
                ("DATABASE_URL".to_owned(), Sealed::new(url.to_owned())),
                ("LEVEL".to_owned(), Sealed::new("debug".to_owned())),
            ],
            ..CommandSpec::default()
        };
        let spec = SubjectSpec {
            name: None,
            deadline: None,
            kind: SubjectKind::Command(command),
        };
        let stored = StoredSubject::of(&spec).unwrap();
        let text = serde_json::to_string(&stored).unwrap();
        assert!(
            !text.contains("hunter2") && text.contains("debug"),
            "{text}"
        );
        let directory = tempfile::tempdir().unwrap();
        let missing = stored.open(
            &(Arc::new(|_: &str| None) as EnvironmentLookup),
            directory.path(),
        );
        let missing = missing.unwrap_err().to_string();
        assert!(missing.contains("set it for every worker"), "{missing}");
        let set: EnvironmentLookup =
            Arc::new(move |name| (name == "DATABASE_URL").then(|| url.to_owned()));
        let opened = stored.open(&set, directory.path()).unwrap();
        let SubjectKind::Command(opened) = opened.kind else {
            panic!("another kind");
        };
        assert_eq!(opened.environment[0].1.expose(), url);
        assert_eq!(opened.secrets, [Sealed::new(url.to_owned())]);
    }

    #[test]
    fn a_manifest_comes_back_as_its_texts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.yaml");
        std::fs::write(&path, "x: 1\n").unwrap();
        let manifest = ManifestSpec {
            path,
            allow: vec![network("10.0.0.0/8").unwrap()],
            ..ManifestSpec::default()
        };
        let spec = SubjectSpec {
            name: None,
            deadline: None,
            kind: SubjectKind::Manifest(manifest),
        };
        let stored = StoredSubject::of(&spec).unwrap();
        drop(directory);
        let elsewhere = tempfile::tempdir().unwrap();
        let environment: EnvironmentLookup = Arc::new(|_| None);
        let opened = stored.open(&environment, elsewhere.path()).unwrap();
        let SubjectKind::Manifest(opened) = opened.kind else {
            panic!("another kind");
        };
        assert_eq!(opened.path, elsewhere.path().join("agent.yaml"));
        #[expect(clippy::disallowed_methods, reason = "a file of this test")]
        let text = std::fs::read_to_string(opened.path).unwrap();
        assert_eq!((text.as_str(), opened.allow.len()), ("x: 1\n", 1));
        assert!(below("../x").is_err() && below("/x").is_err() && below("a/b").is_ok());
    }
}
