//! The command line: one file per command, and one line per command in the table below.

/// Declares commands: one row is both the variant that a command line is parsed into and what runs it. The doc comment of the
/// type in the row is the command's help. It stands before the modules because some of them have commands of their own.
macro_rules! commands {
    (enum $name:ident { $( $command:ident($arguments:ty), )+ }) => {
        #[derive(Debug, clap::Subcommand)]
        enum $name {
            $( $command($arguments), )+
        }

        impl $name {
            fn run(self) -> Result<crate::exit_code::Exit, crate::output::CommandError> {
                match self {
                    $( Self::$command(command) => command.run(), )+
                }
            }
        }
    };
}

mod agent;
mod attack;
mod audit;
mod campaigns;
mod ci;
mod completions;
mod conformance;
mod demo_service;
mod drive;
mod explain;
mod explain_verdict;
mod fmt;
mod guard;
mod init;
mod install;
mod keys;
mod learn;
mod lsp;
mod man;
mod model;
mod new;
mod open;
#[cfg(test)]
mod reference_tests;
pub(crate) mod replay;
mod run;
mod scan;
mod scenarios;
mod schema;
mod serve;
mod tool;
mod validate;
mod worker;

use clap::Parser;

use crate::exit_code::{self, Exit};
use crate::output::{CommandError, be_quiet};

/// Stress-tests AI agents before and after release. Proofhouse attacks your agent over the protocols it speaks, and
/// reports with evidence which attacks got through. Test only systems that you own or have permission to test.
#[derive(Debug, Parser)]
#[command(name = "proofhouse", version, after_help = exit_code::HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print only results and errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = UseColor::Auto, global = true, help_heading = "Global options")]
    color: UseColor,
}

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UseColor {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

commands! {
    enum Command {
        Run(Box<run::RunCommand>),
        Worker(Box<worker::WorkerCommand>),
        Campaigns(campaigns::Campaigns),
        Open(open::Open),
        Replay(replay::ReplayCommand),
        Drive(drive::Drive),
        Init(init::Init),
        Install(install::Install),
        Ci(ci::Ci),
        Attack(Box<attack::AttackCommand>),
        Scan(scan::Scan),
        Guard(Box<guard::GuardCommand>),
        Learn(learn::Learn),
        Scenarios(scenarios::Scenarios),
        ExplainVerdict(explain_verdict::ExplainVerdict),
        Tool(tool::ToolCommands),
        Agent(agent::AgentCommands),
        Serve(Box<serve::Serve>),
        Keys(keys::Keys),
        Audit(audit::AuditCommand),
        Model(model::ModelCommands),
        DemoService(demo_service::DemoService),
        Validate(validate::Validate),
        Fmt(fmt::Fmt),
        Explain(explain::Explain),
        Lsp(lsp::Lsp),
        New(new::New),
        Schema(schema::Schema),
        Conformance(conformance::Conformance),
        Completions(completions::Completions),
        Man(man::Man),
    }
}

impl Cli {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let color = match self.color {
            UseColor::Auto => anstream::ColorChoice::Auto,
            UseColor::Always => anstream::ColorChoice::Always,
            UseColor::Never => anstream::ColorChoice::Never,
        };
        color.write_global();
        if self.quiet {
            be_quiet();
        }
        self.command.run()
    }
}
