//! The flags that say who is attacked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use proofhouse_agent::model::{self, Model, ModelConfig};
use proofhouse_campaign::result::SubjectInfo;
use proofhouse_campaign::subject::{Pace, Subject};
use proofhouse_tools::interpolate::Sealed;
use proofhouse_tools::manifest::{Bundle, BundleLimits};

use super::agent::AgentSubject;
use super::command::{CommandSubject, Serves, from_everywhere};
use super::endpoint::{EndpointSubject, Urls};
use crate::duration::duration;
use crate::input::Input;
use crate::output::{CommandError, printable_line};
use crate::tools::manifests::show;

/// The simulations, and what each is.
const SIMULATIONS: [(&str, &str); 2] = [
    (
        "sim:gullible",
        "a simulation that takes every order for the user's",
    ),
    (
        "sim:careful",
        "a simulation that does what the user asked and nothing else",
    ),
];

/// Who is attacked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Subjects")]
pub(crate) struct SubjectOptions {
    /// Who is attacked: sim:gullible, sim:careful, or the file of an agent manifest; may be given again, to
    /// compare [default: both simulations]
    #[arg(long = "subject", value_name = "SUBJECT")]
    subjects: Vec<String>,

    /// The model of agents in manifests, such as openai:MODEL; the key is read from PROOFHOUSE_MODEL_KEY
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// Where the provider of that model is, if not at its usual address
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,

    /// Start this command for every run. It finds {mcp_url}, {a2a_url}, {prompt}, {port} and {directory} in
    /// its arguments and, as PROOFHOUSE_MCP_URL and so on, in its environment; the prompt is on its stdin,
    /// too. What it prints until it ends is its answer
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,

    /// The command serves this at {port} instead of doing one task
    #[arg(long, value_enum, requires = "command")]
    serves: Option<Serves>,

    /// The command is ready when it prints a line with this text; otherwise when its port is open
    #[arg(long, value_name = "TEXT", requires = "serves")]
    ready_line: Option<String>,

    /// The agent runs already and speaks AG-UI here
    #[arg(long, value_name = "URL")]
    ag_ui_url: Option<String>,

    /// The agent runs already and speaks A2A here
    #[arg(long, value_name = "URL")]
    a2a_url: Option<String>,

    /// The agent runs already and serves MCP here
    #[arg(long, value_name = "URL")]
    mcp_url: Option<String>,

    /// Where that agent looks for its MCP server, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDR")]
    mcp_listen: Option<SocketAddr>,

    /// Where that agent looks for its A2A agent
    #[arg(long, value_name = "ADDR")]
    a2a_listen: Option<SocketAddr>,

    /// The longest a run against a subject of your own may take
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "3m")]
    deadline: Duration,
}

impl SubjectOptions {
    /// Whether nobody was named, so that the simulations show what the library does.
    pub(crate) fn is_demonstration(&self) -> bool {
        self.subjects.is_empty() && self.command.is_none() && self.urls().is_empty()
    }

    fn urls(&self) -> Urls {
        Urls {
            ag_ui: self.ag_ui_url.clone(),
            a2a: self.a2a_url.clone(),
            mcp: self.mcp_url.clone(),
        }
    }

    fn pace(&self) -> Pace {
        Pace {
            deadline: self.deadline,
            ..Pace::default()
        }
    }

    /// The subjects.
    pub(crate) fn open(&self) -> Result<Vec<Arc<dyn Subject>>, CommandError> {
        let mut subjects: Vec<Arc<dyn Subject>> = Vec::new();
        if self.is_demonstration() {
            for (name, _) in SIMULATIONS {
                subjects.push(simulation(name)?);
            }
        }
        for name in &self.subjects {
            let is_file = [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
            subjects.push(match is_file {
                true => self.manifest(Path::new(name))?,
                false => simulation(name)?,
            });
        }
        if let Some(command) = &self.command {
            subjects.push(Arc::new(self.command(command)?));
        }
        if !self.urls().is_empty() {
            subjects.push(Arc::new(self.endpoint()?));
        }
        Ok(subjects)
    }

    fn command(&self, text: &str) -> Result<CommandSubject, CommandError> {
        let words = shlex::split(text).unwrap_or_default();
        if words.first().is_none_or(String::is_empty) {
            return Err(CommandError::usage(
                "--command: write a command; quotes and backslashes must be closed",
            ));
        }
        Ok(CommandSubject {
            name: "command".to_owned(),
            words: words.iter().map(|word| from_everywhere(word)).collect(),
            serves: self.serves,
            ready_line: self.ready_line.clone(),
            headers: Vec::new(),
            pace: self.pace(),
        })
    }

    fn endpoint(&self) -> Result<EndpointSubject, CommandError> {
        let urls = self.urls();
        for url in [&urls.ag_ui, &urls.a2a, &urls.mcp].into_iter().flatten() {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(CommandError::usage(printable_line(&format!(
                    "{url}: write a URL that begins with http:// or https://"
                ))));
            }
        }
        for address in [self.mcp_listen, self.a2a_listen].into_iter().flatten() {
            if !address.ip().is_loopback() {
                crate::output::talk(&format!(
                    "warning: attacks listen on {address}, where others may reach them"
                ));
            }
        }
        Ok(EndpointSubject {
            name: "endpoint".to_owned(),
            urls,
            mcp_listen: self.mcp_listen,
            a2a_listen: self.a2a_listen,
            headers: Vec::new(),
            pace: self.pace(),
        })
    }

    /// The agent of a manifest.
    fn manifest(&self, path: &Path) -> Result<Arc<dyn Subject>, CommandError> {
        let input = Input::File(path.to_owned());
        let text = input
            .read(BundleLimits::default().max_bytes)
            .map_err(|error| CommandError::usage(format!("{}: {error}", input.shown())))?;
        let (bundle, findings) = Bundle::read(&text);
        show(input.name(), text, findings);
        let agent = bundle.agents().next().ok_or_else(|| {
            CommandError::cannot_run(format!("{}: there is no agent in it", input.shown()))
        })?;
        let spec = self.model.clone().or_else(|| agent.model.clone());
        let spec = spec.unwrap_or_else(|| "sim:careful".to_owned());
        let model = self.open_model(&spec, path)?;
        let info = SubjectInfo {
            name: agent.name.clone(),
            kind: "manifest".to_owned(),
            simulation: model.is_simulation(),
            description: format!("the agent {} with {spec}", agent.name),
        };
        let subject = AgentSubject::new(info, vec![bundle], model)
            .map_err(CommandError::cannot_run)?
            .with_pace(self.pace());
        Ok(Arc::new(subject))
    }

    fn open_model(&self, spec: &str, manifest: &Path) -> Result<Arc<dyn Model>, CommandError> {
        #[expect(clippy::disallowed_methods, reason = "the help names the variable")]
        let key = std::env::var("PROOFHOUSE_MODEL_KEY").ok();
        let config = ModelConfig {
            base_url: self.base_url.clone(),
            key: key.map(Sealed::new),
            directory: manifest.parent().map(PathBuf::from).unwrap_or_default(),
            ..ModelConfig::default()
        };
        model::open(spec, &config)
            .map_err(|error| CommandError::usage(printable_line(&format!("--model: {error}"))))
    }
}

fn simulation(name: &str) -> Result<Arc<dyn Subject>, CommandError> {
    let known = SIMULATIONS.iter().find(|(known, _)| *known == name);
    let about = known.map_or("a simulation", |(_, about)| about);
    if !name.starts_with("sim:") {
        return Err(CommandError::usage(printable_line(&format!(
            "--subject {name}: write sim:gullible, sim:careful or the file of an agent manifest"
        ))));
    }
    let model = model::open(name, &ModelConfig::default()).map_err(|error| {
        CommandError::usage(printable_line(&format!("--subject {name}: {error}")))
    })?;
    let subject = AgentSubject::simulation(name, about, model);
    let subject = subject.map_err(CommandError::cannot_run)?;
    Ok(Arc::new(subject))
}
