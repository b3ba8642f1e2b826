//! The `proofhouse` binary: reads the command line, runs one command, exits with its code.

mod agents;
mod campaign;
mod collector;
mod commands;
mod config_options;
mod endpoints;
mod environment;
mod exit_code;
mod generation_options;
mod input;
mod interrupt;
mod listen_address;
mod live;
mod notices;
mod output;
mod progress;
mod proxies;
mod report;
mod retention_options;
mod rules;
mod semantic_options;
mod signals;
mod store_options;
mod subject_options;
mod telemetry;
mod tools;
mod traces;
mod written_files;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use commands::Cli;
use exit_code::Exit;

/// Everything here allocates a lot, on several threads, and gives back on others than it took from.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is the reader's choice and no reason to complain.
            let _ = error.print();
            if let Some(near) = near_command(&error) {
                output::talk(&format!("hint: did you mean `{near}`?"));
            }
            if misses_traces(&error) {
                output::talk(
                    "hint: name the traces before --rules, which takes all paths up to the next flag",
                );
            }
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
                _ => Exit::Usage,
            }
            .into();
        }
    };
    match cli.run() {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::complain(&error.to_string());
            error.exit.into()
        }
    }
}

/// The command that was most likely meant, where the parser does not say it itself.
fn near_command(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    proofhouse_source::did_you_mean(given, names).map(str::to_owned)
}

/// Whether the traces are missing, most likely because `--rules` took them.
fn misses_traces(error: &clap::Error) -> bool {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.as_slice(),
        _ => return false,
    };
    error.kind() == ErrorKind::MissingRequiredArgument
        && missing.iter().any(|argument| argument.contains("TRACE"))
        && std::env::args_os().any(|argument| argument == "--rules")
}
