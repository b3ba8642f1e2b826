//! The `proofhouse` binary: reads the command line, runs one command, exits with its code.

mod commands;
mod conformance;
mod endpoints;
mod exit_code;
mod generation_options;
mod input;
mod live;
mod output;
mod progress;
mod report;
mod rules;
mod semantic_options;
mod traces;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use commands::Cli;
use exit_code::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is the reader's choice and no reason to complain.
            let _ = error.print();
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
