//! Finds the configuration of a project for `proofhouse run`, and says that it is used.

use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_campaign::config::{ConfigVariables, FILE, LIMITS, ProjectConfig, read, shown};
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_oatf::DiagnosticSeverity;

use crate::environment::environment;
use crate::input::{FileInput, ShownName};
use crate::output::{CommandError, shown_path, talk};
use crate::tools::manifests::show;

/// Whether and where a configuration is read.
#[derive(Debug, Default, Args)]
pub(crate) struct ConfigOptions {
    /// Read settings from this file; flags override them [default: proofhouse.yaml in this directory, if there is one.
    /// It is not read if --command, a URL or --subject names an agent that is not in it]
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    config: Option<PathBuf>,

    /// Do not read proofhouse.yaml
    #[arg(long)]
    no_config: bool,

    /// The file that was read.
    #[arg(skip)]
    used: Option<PathBuf>,
}

/// Whether there is a configuration in this directory. One that leads nowhere is there, too: whoever put it
/// there wants it to be read.
fn is_here() -> bool {
    match Path::new(FILE).symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

impl ConfigOptions {
    /// The configuration, if there is one to be read. `by_default` says whether one is read that was not
    /// asked for; only subjects that somebody `wants` need their variables.
    pub(crate) fn load(
        &mut self,
        by_default: bool,
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<Option<ProjectConfig>, CommandError> {
        let path = match &self.config {
            Some(path) => path.as_path(),
            None if by_default && !self.no_config && is_here() => Path::new(FILE),
            None => return Ok(None),
        };
        WantedFiles::Configuration.check(&[path.to_owned()])?;
        let input = FileInput::File(path.to_owned());
        let text = input
            .read(LIMITS.max_bytes)
            .map_err(|error| CommandError::usage(format!("{}: {error}", input.shown())))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let set = environment();
        // A workflow hands over an empty text for a secret that it does not have.
        let lookup = |name: &str| set(name).filter(|value| !value.is_empty());
        let (config, findings) = read(&text, directory, ConfigVariables::From(&lookup), wants);
        let errors = findings
            .iter()
            .filter(|finding| finding.severity == DiagnosticSeverity::Error)
            .count();
        show(input.name(), shown(&text), findings);
        if errors > 0 {
            return Err(CommandError::usage(format!(
                "{} is invalid; fix it, or ignore it with --no-config",
                shown_path(path)
            )));
        }
        talk(&format!("using {}", shown_path(path)));
        self.used = Some(path.to_owned());
        Ok(Some(config))
    }

    /// The file that was read, if one was.
    pub(crate) fn used(&self) -> Option<&Path> {
        self.used.as_deref()
    }
}
