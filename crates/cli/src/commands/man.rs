//! `proofhouse man`: manual pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use proofhouse_wire::write_files::WriteError;

use super::Cli;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, shown_path, talk};

/// Print the manual page, or write all pages to a directory
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  proofhouse man | man -l -\n  proofhouse man --dir share/man/man1"
)]
pub(crate) struct Man {
    /// Write one page per command to this directory, which is created if its parent directory exists
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let command = Cli::command();
        let Some(dir) = self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            let mut data = StdoutData::new();
            data.write(&String::from_utf8_lossy(&page))?;
            data.finish()?;
            return Ok(Exit::Success);
        };
        let failed = |error| WriteError {
            path: dir.clone(),
            error,
        };
        // A path with a typo in it should not become a tree of directories.
        if !dir.is_dir() {
            fs::create_dir(&dir).map_err(failed)?;
        }
        clap_mangen::generate_to(command, &dir).map_err(failed)?;
        talk(&format!("manual pages written to {}", shown_path(&dir)));
        Ok(Exit::Success)
    }
}
