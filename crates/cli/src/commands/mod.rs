//! The command line: one file per command, one line per command in each of the two tables below.

mod agent;
mod attack;
mod ci;
mod completions;
mod conformance;
mod demo_service;
mod explain;
mod explain_verdict;
mod fmt;
mod init;
mod keys;
mod man;
mod model;
mod new;
pub(crate) mod replay;
mod run;
mod scan;
mod scenarios;
mod schema;
mod serve;
mod tool;
mod validate;

use clap::{Parser, Subcommand};

use crate::exit_code::{self, Exit};
use crate::output::CommandError;

/// Proofs AI agents before and after they ship: runs them, attacks them, watches the traffic and
/// reports what held. For testing systems you own or may test.
#[derive(Debug, Parser)]
#[command(name = "proofhouse", version, after_help = exit_code::HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Run>),
    Replay(replay::Replay),
    Init(init::Init),
    Ci(ci::Ci),
    Attack(Box<attack::Attack>),
    Scan(scan::Scan),
    Scenarios(scenarios::Scenarios),
    ExplainVerdict(explain_verdict::ExplainVerdict),
    Tool(tool::Tool),
    Agent(agent::Agent),
    Serve(Box<serve::Serve>),
    Keys(keys::Keys),
    Model(model::Model),
    DemoService(demo_service::DemoService),
    Validate(validate::Validate),
    Fmt(fmt::Fmt),
    Explain(explain::Explain),
    New(new::New),
    Schema(schema::Schema),
    Conformance(conformance::Conformance),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Cli {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        match self.command {
            Command::Run(command) => command.run(),
            Command::Replay(command) => command.run(),
            Command::Init(command) => command.run(),
            Command::Ci(command) => command.run(),
            Command::Attack(command) => command.run(),
            Command::Scan(command) => command.run(),
            Command::Scenarios(command) => command.run(),
            Command::ExplainVerdict(command) => command.run(),
            Command::Tool(command) => command.run(),
            Command::Agent(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Keys(command) => command.run(),
            Command::Model(command) => command.run(),
            Command::DemoService(command) => command.run(),
            Command::Validate(command) => command.run(),
            Command::Fmt(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::New(command) => command.run(),
            Command::Schema(command) => command.run(),
            Command::Conformance(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}
