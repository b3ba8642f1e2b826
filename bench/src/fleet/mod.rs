//! Campaigns of many machines: handing out runs, more workers, and 200,000 runs.
//!
//! The parts are `claim` (what a claim costs on PostgreSQL), `scale` (four workers beside one) and `size` (memory and time of a campaign of
//! 200,000 runs). Without PostgreSQL, `claim` is left out and `scale` is measured on SQLite.

mod claim;
mod scale;
mod size;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::campaign::{self, CampaignOptions};
use crate::figure;
use crate::work::{PrivatePostgres, told};

/// What a measurement of campaigns of many machines takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetOptions {
    #[command(flatten)]
    campaign: CampaignOptions,

    /// Measure only this part; can be repeated
    #[arg(long, value_enum)]
    part: Vec<Part>,
}

/// A part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Claims per second on PostgreSQL, beside bare statements
    Claim,
    /// Runs per minute of four workers, beside one
    Scale,
    /// Memory and time of planning and reporting 200,000 runs
    Size,
}

pub(crate) fn run(options: &FleetOptions) -> Result<(), String> {
    let wants = |part: Part| options.part.is_empty() || options.part.contains(&part);
    let quick = options.campaign.options.quick;
    let directory = tempfile::tempdir().map_err(told)?;
    let postgres = if wants(Part::Claim) || wants(Part::Scale) {
        PrivatePostgres::start(directory.path())?
    } else {
        None
    };
    if wants(Part::Claim) {
        match &postgres {
            Some(server) => claim::run(&server.url, quick)?,
            None => figure::say("there is no PostgreSQL, so claim is not measured"),
        }
    }
    if !wants(Part::Scale) && !wants(Part::Size) {
        return Ok(());
    }
    let program = Program {
        binary: campaign::binary(options.campaign.proofhouse.as_deref())?,
        directory: directory.path().to_owned(),
    };
    if wants(Part::Scale) {
        let url = postgres.as_ref().map(|server| server.url.as_str());
        scale::run(&program, url.unwrap_or("scale.db"), quick)?;
    }
    if wants(Part::Size) {
        size::run(&program, quick)?;
    }
    Ok(())
}

/// The program that is measured, and where it works.
struct Program {
    binary: PathBuf,
    directory: PathBuf,
}

/// What a command took.
struct Took {
    seconds: f64,
    /// Bytes at most.
    peak: u64,
}

impl Program {
    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        std::fs::write(self.directory.join(name), text).map_err(told)
    }

    /// A command of the program, in its directory, that says nothing.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .current_dir(&self.directory)
            .args(arguments)
            .env("PROOFHOUSE_MODEL_KEY", "sk-bench")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs a command, which must end with 0 or, for what reports attacks that got through, with 1.
    fn watched(&self, arguments: &[&str]) -> Result<Took, String> {
        let started = Instant::now();
        let child = self.command(arguments).spawn().map_err(told)?;
        let (peak, code) = campaign::watch(child, started)?;
        if matches!(code, Some(0 | 1)) {
            Ok(Took {
                seconds: started.elapsed().as_secs_f64(),
                peak,
            })
        } else {
            Err(format!("`{}` ended with {code:?}", arguments.join(" ")))
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(&self.directory, name)
    }
}

#[expect(clippy::cast_precision_loss, reason = "megabytes for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
