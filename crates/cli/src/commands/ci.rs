//! `proofhouse ci`: puts campaigns where changes are checked.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::ci::{CiHost, CiProject, file};
use proofhouse_campaign::config;
use proofhouse_wire::write_files::create;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, shown_path, talk};

/// Put campaigns where changes are checked
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse ci init\n  \
    proofhouse ci init github --print")]
pub(crate) struct Ci {
    #[command(subcommand)]
    command: CiCommand,
}

#[derive(Debug, Subcommand)]
enum CiCommand {
    Init(CiInit),
}

impl Ci {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        match self.command {
            CiCommand::Init(command) => command.run(),
        }
    }
}

/// Write a workflow that runs proofhouse on every change
///
/// It installs proofhouse, runs it with the proofhouse.yaml of this directory, compares with the default branch,
/// and keeps the reports. Without a host, what is in the repository says which one it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse ci init\n  \
    proofhouse ci init github\n  \
    proofhouse ci init --all --force\n  \
    proofhouse ci init gitlab --print\n\n\
    Exit codes: 0 written, 3 the file is there already or cannot be written, 64 usage.")]
struct CiInit {
    /// Who runs the checks
    #[arg(value_enum)]
    host: Option<CiHostName>,

    /// For all of them
    #[arg(long, conflicts_with = "host")]
    all: bool,

    /// Replace files that are there
    #[arg(long)]
    force: bool,

    /// Print instead of writing
    #[arg(long)]
    print: bool,
}

/// Who runs the checks.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CiHostName {
    /// GitHub Actions
    Github,
    /// GitLab CI/CD
    Gitlab,
}

impl CiInit {
    fn run(self) -> Result<Exit, CommandError> {
        let project = CiProject::look(Path::new("."));
        let hosts = match (self.host, self.all) {
            (Some(CiHostName::Github), _) => vec![CiHost::Github],
            (Some(CiHostName::Gitlab), _) => vec![CiHost::Gitlab],
            (None, true) => CiHost::ALL.to_vec(),
            (None, false) => project.hosts().to_vec(),
        };
        if hosts.is_empty() {
            return Err(CommandError::usage(
                "nothing here says who runs the checks; say it: proofhouse ci init github, or gitlab",
            ));
        }
        let files: Vec<_> = hosts.into_iter().map(|host| file(host, &project)).collect();
        if self.print {
            let mut data = StdoutData::new();
            for (place, file) in files.iter().enumerate() {
                if files.len() > 1 {
                    let before = if place == 0 { "" } else { "---\n" };
                    data.line(&format!("{before}# {}", file.path))?;
                }
                data.write(&file.text)?;
            }
            data.finish()?;
            return Ok(Exit::Success);
        }
        // Nothing is written when one of them cannot be.
        for file in &files {
            if !self.force && project.root.join(file.path).exists() {
                return Err(CommandError::cannot_run(format!(
                    "{} is there already; --force replaces it, --print shows what would be written",
                    file.path
                )));
            }
        }
        for file in &files {
            let path = project.root.join(file.path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|error| {
                    CommandError::cannot_run(format!(
                        "{}: cannot be made: {error}",
                        shown_path(parent)
                    ))
                })?;
            }
            create(&path, &file.text, self.force)?;
            talk(&format!("wrote {}", file.path));
            if let Some(next) = &file.next {
                talk(next);
            }
        }
        if !project.has_config {
            talk(&format!(
                "there is no {} here, so simulations would be attacked; proofhouse init writes one",
                config::FILE
            ));
        }
        Ok(Exit::Success)
    }
}
