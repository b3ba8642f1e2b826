//! The `proofhouse` binary: reads the command line, runs one command, exits with its code.

mod agents;
mod campaign;
mod commands;
mod config_options;
mod endpoints;
mod environment;
mod exit_code;
mod fleet_options;
mod generation_options;
mod input;
mod interrupt;
mod kubernetes_options;
mod live;
mod notices;
mod output;
mod progress;
mod proxies;
mod report;
mod retention_options;
mod rules;
mod runtime;
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
        Err(mut error) => {
            suggest_command(&mut error);
            // A closed pipe is the reader's choice and no reason to complain.
            let _ = error.print();
            if misses_traces(&error) {
                output::talk(
                    "tip: put the traces before --rules, which takes all paths up to the next flag",
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

/// What other tools call our commands.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("test", "run"),
    ("report", "open"),
    ("check", "validate"),
    ("lint", "validate"),
];

/// Names the command that was most likely meant, in place of what the parser would guess.
fn suggest_command(error: &mut clap::Error) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let given = given.clone();
    // A command of a command is looked for elsewhere.
    let mut words = std::env::args_os().skip(1);
    let first = words.find(|word| !word.to_string_lossy().starts_with('-'));
    if first.is_none_or(|first| first.to_string_lossy() != given) {
        return;
    }
    let command = Cli::command();
    let names = || command.get_subcommands().map(clap::Command::get_name);
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == given);
    let near = other
        .map(|(_, name)| *name)
        .or_else(|| names().find(|name| given.len() > 2 && name.starts_with(&given)))
        .or_else(|| proofhouse_source::did_you_mean(&given, names()));
    if let Some(near) = near {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
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
