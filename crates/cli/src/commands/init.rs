//! `proofhouse init`: writes the `proofhouse.yaml` of a project, from what is found and what is asked.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;
use proofhouse_campaign::config::{self, ConfigVariables, Draft, FILE};
use proofhouse_lsp::formats::FormatKind;
use proofhouse_oatf::DiagnosticSeverity;
use proofhouse_subjects::discover::{
    DiscoveredProject, PORTS, Spoken, detect, probe_ports, probe_url,
};
use proofhouse_subjects::without_credentials;

use crate::exit_code::Exit;
use crate::init::ask::Prompter;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::report::plural;
use crate::written_files::create_with_schema;

/// Write a proofhouse.yaml for the project in this directory
///
/// Looks for agent manifests, MCP configurations, hints at a command and agents that run on this machine, and
/// asks what it cannot know. What it finds is not run. At a port that nobody named, it asks for an A2A card and
/// for MCP's initialize, nothing else.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse init\n  \
    proofhouse init --yes --command 'python agent.py --mcp {mcp_url} {prompt}'\n  \
    proofhouse init --endpoint http://127.0.0.1:8000/\n  \
    proofhouse init --print --no-probe\n\n\
    Exit codes: 0 written, 3 there is a proofhouse.yaml already or it cannot be written, 64 usage,\n\
    130 the input ended before all was answered.")]
pub(crate) struct Init {
    /// The agent is started with this command, which may have {mcp_url}, {prompt} and other placeholders
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,

    /// The agent runs already, here; it is asked what it speaks. May be given again
    #[arg(long = "endpoint", value_name = "URL")]
    endpoints: Vec<String>,

    /// Do not look for agents at ports of this machine
    #[arg(long)]
    no_probe: bool,

    /// Ask nothing and take what was found
    #[arg(long)]
    yes: bool,

    /// Replace the file if it is there
    #[arg(long)]
    force: bool,

    /// Print the file instead of writing it
    #[arg(long)]
    print: bool,
}

impl Init {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let path = Path::new(FILE);
        if path.exists() && !self.force && !self.print {
            return Err(CommandError::cannot_run(format!(
                "{FILE} is there already; --force replaces it, --print shows what would be written"
            )));
        }
        if let Some(command) = &self.command {
            is_command(command).map_err(|why| CommandError::usage(format!("--command: {why}")))?;
        }
        let mut found = detect(Path::new("."));
        let endpoints = self.probe()?;
        tell(&found, &endpoints);
        let asks = !self.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
        let agents = std::mem::take(&mut found.agents);
        let everything = Draft::of_all(self.command.clone(), agents, endpoints);
        let draft = if asks {
            let input = io::stdin().lock();
            let output = anstream::stderr();
            let draft = ask(&mut Prompter { input, output }, everything, &found);
            draft.ok_or_else(|| CommandError {
                message: "the input ended; nothing was written".to_owned(),
                exit: Exit::Interrupted,
            })?
        } else if self.endpoints.is_empty() {
            everything.without_strangers()
        } else {
            everything
        };
        let text = config::text(&draft, &found);
        let (_, findings) = config::read(&text, Path::new(""), ConfigVariables::Unread, &|_| true);
        let wrong = findings
            .iter()
            .find(|finding| finding.severity == DiagnosticSeverity::Error);
        if let Some(finding) = wrong {
            return Err(CommandError::cannot_run(printable_line(&format!(
                "what would be written cannot be used: {finding}"
            ))));
        }
        if self.print {
            let mut data = StdoutData::new();
            data.write(&text)?;
            data.finish()?;
            return Ok(Exit::Success);
        }
        create_with_schema(path, &text, FormatKind::Config, self.force)?;
        talk(&format!(
            "wrote {FILE}; read its comments, then: proofhouse run"
        ));
        Ok(Exit::Success)
    }

    /// Asks the agents that were named, or looks for some.
    fn probe(&self) -> Result<Vec<Spoken>, CommandError> {
        if self.no_probe && self.endpoints.is_empty() {
            return Ok(Vec::new());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::cannot_run(format!("cannot start: {error}")))?;
        runtime.block_on(async {
            if self.endpoints.is_empty() {
                return Ok(probe_ports(&PORTS).await);
            }
            let mut found = Vec::new();
            for url in &self.endpoints {
                let fail = |why: &str| {
                    let shown = without_credentials(url);
                    let why = why.replace(url.as_str(), &shown);
                    CommandError::usage(printable_line(&format!("--endpoint {shown}: {why}")))
                };
                let spoken = probe_url(url).await;
                let spoken = spoken.map_err(|why| fail(&why.to_string()))?;
                if spoken.is_empty() {
                    return Err(fail("it speaks neither AG-UI nor A2A nor MCP"));
                }
                found.push(spoken);
            }
            Ok(found)
        })
    }
}

/// A text that is no program with its arguments.
#[derive(Debug, thiserror::Error)]
#[error("write a command; quotes and backslashes must be closed")]
struct NotACommand;

/// Whether a text can be split into a program and its arguments.
fn is_command(text: &str) -> Result<(), NotACommand> {
    let words = shlex::split(text).unwrap_or_default();
    if words.first().is_some_and(|word| !word.is_empty()) && !text.contains('\0') {
        Ok(())
    } else {
        Err(NotACommand)
    }
}

fn tell(found: &DiscoveredProject, endpoints: &[Spoken]) {
    for agent in &found.agents {
        talk(&printable_line(&format!(
            "found the agent {} in {}",
            agent.agent, agent.file
        )));
    }
    for config in &found.mcp_configs {
        let servers = plural(config.servers, "MCP server");
        talk(&printable_line(&format!(
            "found {servers} in {}",
            config.file
        )));
    }
    for endpoint in endpoints {
        let line = format!(
            "found an agent at {} that speaks {}",
            without_credentials(endpoint.place()),
            endpoint.protocols()
        );
        talk(&printable_line(&line));
    }
    for hint in &found.commands {
        talk(&printable_line(&format!(
            "{} hints at: {}",
            hint.file, hint.command
        )));
    }
    for directory in &found.documents {
        talk(&printable_line(&format!(
            "found threat documents in {directory}"
        )));
    }
}

/// Lets somebody choose among what was found. `None` when the input ends before all is answered.
fn ask<R: io::BufRead, W: io::Write>(
    asked: &mut Prompter<R, W>,
    all: Draft,
    found: &DiscoveredProject,
) -> Option<Draft> {
    let mut draft = Draft {
        command: all.command,
        ..Draft::default()
    };
    if draft.command.is_none() {
        let mut choices: Vec<String> = Vec::new();
        for agent in &all.agents {
            choices.push(printable_line(&format!(
                "the agent {} in {}",
                agent.agent, agent.file
            )));
        }
        for endpoint in &all.endpoints {
            choices.push(printable_line(&format!(
                "the agent at {}",
                without_credentials(endpoint.place())
            )));
        }
        let (agents, known) = (all.agents.len(), choices.len());
        choices.push("a command that starts it".to_owned());
        choices.push("nobody yet: a simulation, to see how it works".to_owned());
        let chosen = asked.choice("Who is to be tested?", &choices)?;
        if chosen < agents {
            draft.agents.extend(all.agents.into_iter().nth(chosen));
        } else if chosen < known {
            draft
                .endpoints
                .extend(all.endpoints.into_iter().nth(chosen - agents));
        } else if chosen == known {
            let hint = found.commands.first();
            let default = hint.map_or("python agent.py --mcp {mcp_url} {prompt}", |hint| {
                &hint.command
            });
            let question = "How is it started? {mcp_url}, {a2a_url} and {prompt} are filled in:";
            draft.command = Some(asked.text(question, default, is_command)?);
        }
    }
    let repeats = asked.text("How often is each attack tried?", "1", |text| {
        match text.parse::<u32>() {
            Ok(1..=10_000) => Ok(()),
            _ => Err("write a number from 1 to 10000".to_owned()),
        }
    })?;
    draft.repeats = repeats.parse().unwrap_or(1);
    Some(draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_subjects::discover::{AgentFile, Hint};

    fn all() -> Draft {
        let agent = AgentFile {
            file: "a.yaml".to_owned(),
            agent: "clerk".to_owned(),
            model: None,
        };
        let running = Spoken {
            mcp: Some("http://127.0.0.1:1/mcp".to_owned()),
            ..Spoken::default()
        };
        Draft::of_all(None, vec![agent], vec![running])
    }

    #[test]
    fn answers_decide_what_is_written() {
        let found = DiscoveredProject {
            commands: vec![Hint {
                file: "package.json".to_owned(),
                command: "npm start".to_owned(),
            }],
            ..DiscoveredProject::default()
        };
        let after = |input: &str| {
            let mut asked = Prompter {
                input: input.as_bytes(),
                output: Vec::new(),
            };
            let draft = ask(&mut asked, all(), &found)?;
            let (agents, endpoints) = (draft.agents.len(), draft.endpoints.len());
            Some((agents, endpoints, draft.command, draft.repeats))
        };
        assert_eq!(after("\n\n"), Some((1, 0, None, 1)));
        assert_eq!(after("2\n5\n"), Some((0, 1, None, 5)));
        assert_eq!(
            after("3\n\n0\n3\n"),
            Some((0, 0, Some("npm start".to_owned()), 3))
        );
        assert_eq!(
            after("3\n'x\nx y\n\n"),
            Some((0, 0, Some("x y".to_owned()), 1))
        );
        assert_eq!(after("4\n\n"), Some((0, 0, None, 1)));
        for cut in ["", "4\n", "3\n", "3\n\n", "9\n"] {
            assert_eq!(after(cut), None, "{cut:?} ends before the last answer");
        }
    }
}
