//! The directory that keeps what a campaign finds: the one that is named, or `.proofhouse/results/<time>`.

use std::path::{Path, PathBuf};

use proofhouse_campaign::results_directory::{RESULTS, create, latest, set_latest};
use proofhouse_subjects::operator::now;

use crate::output::{CommandError, shown_path, talk};

/// Where the results of a campaign go.
#[derive(Debug, Default)]
pub(crate) struct ResultsPlace {
    /// The directory, if anything is kept.
    pub(crate) directory: Option<PathBuf>,
    /// Whether `latest` shall lead to it.
    is_ours: bool,
}

impl ResultsPlace {
    /// The place that flags and the configuration name, or a new one of our own. `resume` takes the latest.
    pub(crate) fn new(
        named: Option<PathBuf>,
        keeps: bool,
        resume: bool,
    ) -> Result<Self, CommandError> {
        if !keeps {
            return Ok(Self::default());
        }
        if named.is_some() {
            return Ok(Self {
                directory: named,
                is_ours: false,
            });
        }
        let project = Path::new("");
        if resume {
            let latest = latest(project).ok_or_else(|| {
                CommandError::usage(format!(
                    "--resume: there is no campaign in {RESULTS}; name its directory with --out"
                ))
            })?;
            return Ok(Self {
                directory: Some(latest),
                is_ours: true,
            });
        }
        match create(project, &now()) {
            Ok(directory) => Ok(Self {
                directory: Some(directory),
                is_ours: true,
            }),
            Err(error) => {
                talk(&format!(
                    "warning: nothing will be kept, because {RESULTS} cannot be written: {error}; name another \
                     directory with --out"
                ));
                Ok(Self::default())
            }
        }
    }

    /// The command that shows the report in it.
    pub(crate) fn open_command(&self) -> String {
        match &self.directory {
            Some(directory) if !self.is_ours => {
                format!("proofhouse open {}", shown_path(directory))
            }
            _ => "proofhouse open".to_owned(),
        }
    }

    /// Makes `proofhouse open` and `--resume` find it.
    pub(crate) fn begin(&self) {
        if let Some(directory) = self.directory.as_deref().filter(|_| self.is_ours)
            && let Err(error) = set_latest(directory)
        {
            let shown = shown_path(directory);
            talk(&format!(
                "warning: `latest` does not lead to {shown}: {error}"
            ));
        }
    }
}
