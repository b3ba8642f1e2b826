//! `proofhouse init`: writes the `proofhouse.yaml` of a project for an agent that could be started.

use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;
use proofhouse_campaign::config::{self, ConfigVariables, Draft, FILE};
use proofhouse_campaign::setup::{
    Candidates, Prompter, found_lines, is_command, nobody_found, wrote,
};
use proofhouse_lsp::formats::FormatKind;
use proofhouse_oatf::DiagnosticSeverity;
use proofhouse_subjects::discover::{
    DiscoveredProject, PORTS, ProjectPrograms, Spoken, Startable, detect, probe_ports, probe_url,
};
use proofhouse_subjects::{SIMULATIONS, without_credentials};
use proofhouse_wire::write_files::create;

use crate::environment::environment;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::written_files::create_with_schema;

/// Set up Proofhouse for the agent in this directory
///
/// Finds your agent and writes proofhouse.yaml, so that `proofhouse run` needs no flags. It recognises LangGraph,
/// the OpenAI Agents SDK, Pydantic AI, CrewAI, Google ADK, smolagents, Strands, AutoGen, Microsoft Agent Framework,
/// AI SDK and Mastra; the MCP configurations of Claude Code, Cursor and VS Code; agent manifests; and agents that
/// are running on this machine. For a framework, it also writes a small adapter, which it shows to you first. If no
/// agent can be started, it writes nothing. It reads your code but does not run it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse init\n  \
    proofhouse init --yes --command 'python agent.py --mcp {mcp_url} {prompt}'\n  \
    proofhouse init --endpoint http://127.0.0.1:8000/\n  \
    proofhouse init --simulation sim:careful\n  \
    proofhouse init --print --no-discover\n\n\
    Exit codes:\n  \
    0   written\n  \
    3   no agent was found that could be started, proofhouse.yaml exists, or it cannot be written\n  \
    64  invalid arguments\n  \
    130 the input ended before all questions were answered")]
pub(crate) struct Init {
    /// Start the agent with this command, which can contain {mcp_url}, {prompt} and other placeholders
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,

    /// The URL of a running agent; its protocol is detected. Can be repeated
    #[arg(long = "endpoint", value_name = "URL")]
    endpoints: Vec<String>,

    /// Use a simulated agent instead of your own: sim:careful or sim:gullible
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "endpoints"])]
    simulation: Option<String>,

    /// The model to use for agents from manifests, such as openai:MODEL
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// Do not look for running agents on the ports of this machine
    #[arg(long, alias = "no-probe")]
    no_discover: bool,

    /// Ask no questions and use what was found
    #[arg(long)]
    yes: bool,

    /// Overwrite existing files
    #[arg(long)]
    force: bool,

    /// Print the files instead of writing them
    #[arg(long)]
    print: bool,
}

impl Init {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let path = Path::new(FILE);
        if path.exists() && !self.force && !self.print {
            return Err(CommandError::cannot_run(format!(
                "{FILE} already exists; overwrite it with --force, or preview the new one with --print"
            )));
        }
        let programs = ProjectPrograms {
            project: Path::new("."),
            path: environment()("PATH"),
        };
        self.check(&programs)?;
        let mut found = detect(Path::new("."));
        let endpoints = self.probe()?;
        for line in found_lines(&found, &endpoints, self.command.is_none()) {
            talk(&line);
        }
        let (draft, start) = self.choose(&mut found, endpoints, &programs)?;
        let text = config::text(&draft, &found);
        let (_, findings) = config::read(&text, Path::new(""), ConfigVariables::Unread, &|_| true);
        let wrong = findings
            .iter()
            .find(|finding| finding.severity == DiagnosticSeverity::Error)
            // The adapter is named before it is written.
            .filter(|finding| finding.code != "PC-011" || start.is_none());
        if let Some(finding) = wrong {
            return Err(CommandError::cannot_run(printable_line(&format!(
                "the new proofhouse.yaml would be invalid: {finding}"
            ))));
        }
        let adapter = start.as_ref().and_then(|start| start.adapter.as_ref());
        if let Some((file, text)) = adapter {
            talk(&format!("The adapter {file}:\n"));
            for line in text.lines() {
                talk(format!("    {line}").trim_end());
            }
            talk("");
        }
        for note in start.iter().flat_map(|start| &start.notes) {
            talk(&printable_line(&format!("warning: {note}")));
        }
        if self.print {
            let mut data = StdoutData::new();
            data.write(&text)?;
            data.finish()?;
            return Ok(Exit::Success);
        }
        if let Some((file, text)) = adapter {
            create(Path::new(file), text, self.force)?;
            talk(&format!("Wrote {file}."));
        }
        create_with_schema(path, &text, FormatKind::Config, self.force)?;
        talk(&wrote(&draft));
        Ok(Exit::Success)
    }

    /// Whether what flags name could be started.
    fn check(&self, programs: &ProjectPrograms<'_>) -> Result<(), CommandError> {
        if let Some(command) = &self.command {
            is_command(command).map_err(|why| CommandError::usage(format!("--command: {why}")))?;
            let words = shlex::split(command).unwrap_or_default();
            let program = words.first().map(String::as_str).unwrap_or_default();
            if programs.find(program).is_none() && !Path::new(program).is_absolute() {
                return Err(CommandError::cannot_run(printable_line(&format!(
                    "--command: `{program}` is not installed or not in PATH, so the agent could not be started"
                ))));
            }
        }
        if let Some(simulation) = &self.simulation
            && !SIMULATIONS.iter().any(|(name, _)| name == simulation)
        {
            let names = SIMULATIONS.map(|(name, _)| name).join(", ");
            return Err(CommandError::usage(printable_line(&format!(
                "--simulation {simulation}: no such simulation; choose one of {names}"
            ))));
        }
        Ok(())
    }

    /// Who is tested: what flags name, what somebody chooses, or what was found and could be started.
    fn choose(
        &self,
        found: &mut DiscoveredProject,
        endpoints: Vec<Spoken>,
        programs: &ProjectPrograms<'_>,
    ) -> Result<(Draft, Option<Startable>), CommandError> {
        let mut draft = Draft {
            command: self.command.clone(),
            simulation: self.simulation.clone(),
            model: self.model.clone(),
            repeats: 1,
            ..Draft::default()
        };
        let is_named = !self.endpoints.is_empty();
        if is_named {
            draft.endpoints = endpoints;
            return Ok((draft, None));
        }
        if !draft.is_empty() {
            draft.suggested = endpoints;
            let reads_config = self
                .command
                .as_ref()
                .is_some_and(|command| command.contains("{mcp_config}"));
            let config = found.mcp_configs.first().filter(|_| reads_config);
            draft.mcp_config = config.map(|config| config.file.clone());
            return Ok((draft, None));
        }
        let candidates = Candidates::new(found, endpoints, programs, self.model.as_deref());
        for unfit in &candidates.unfit {
            talk(&printable_line(unfit));
        }
        let hint = found.commands.first().map(|hint| hint.command.clone());
        let asks = !self.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
        let (mut draft, start) = if asks {
            let input = io::stdin().lock();
            let output = anstream::stderr();
            let chosen = candidates.ask(&mut Prompter { input, output }, hint.as_deref());
            chosen.ok_or_else(|| CommandError {
                message: "the input ended before all questions were answered; nothing was written"
                    .to_owned(),
                exit: Exit::Interrupted,
            })?
        } else {
            candidates.without_asking()
        };
        draft.model.clone_from(&self.model);
        if draft.is_empty() {
            return Err(CommandError::cannot_run(nobody_found(found)));
        }
        Ok((draft, start))
    }

    /// Asks the agents that were named, or looks for some.
    fn probe(&self) -> Result<Vec<Spoken>, CommandError> {
        if self.no_discover && self.endpoints.is_empty() {
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
