//! `proofhouse ci`: puts campaigns where changes are checked.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::ci::{CiHost, CiProject, file};
use proofhouse_campaign::config;
use proofhouse_wire::write_files::create;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, shown_path, talk};

/// Set up CI
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

/// Write a CI workflow that runs Proofhouse on every change
///
/// The workflow installs Proofhouse, runs it with the proofhouse.yaml of this directory, compares the result with
/// the default branch, and keeps the reports. If you name no CI system, it is detected from the repository.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse ci init\n  \
    proofhouse ci init github\n  \
    proofhouse ci init --all --force\n  \
    proofhouse ci init gitlab --print\n\n\
    Exit codes:\n  \
    0   written\n  \
    3   the file exists or cannot be written\n  \
    64  invalid arguments")]
struct CiInit {
    /// The CI system [default: detected from the repository]
    #[arg(value_enum)]
    host: Option<CiHostName>,

    /// Write workflows for all supported CI systems
    #[arg(long, conflicts_with = "host")]
    all: bool,

    /// Overwrite existing files
    #[arg(long)]
    force: bool,

    /// Print the workflow instead of writing it
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
                "no CI system was detected; name one: proofhouse ci init github, or proofhouse ci init gitlab",
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
                    "{} already exists; overwrite it with --force, or preview the new one with --print",
                    file.path
                )));
            }
        }
        for file in &files {
            let path = project.root.join(file.path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|error| {
                    CommandError::cannot_run(format!(
                        "{}: cannot create the directory: {error}; change its permissions, or preview the workflow with --print",
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
                "there is no {} here, so the workflow would only attack simulations; create one with: proofhouse init",
                config::FILE
            ));
        }
        Ok(Exit::Success)
    }
}
