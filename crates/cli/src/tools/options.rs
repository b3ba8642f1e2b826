//! What the operator configures on the command line: settings, tokens, and where tools may connect.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};
use proofhouse_subjects::operator::Operator;
use proofhouse_subjects::spec::network;
use proofhouse_subjects::tool_manifests::Located;
use proofhouse_tools::operator::{KubernetesConfig, OperatorConfig};
use proofhouse_tools::runtime::ToolLimits;

use super::arguments::pair;
use crate::input::{FileInput, ShownName};
use crate::output::{CommandError, talk};

/// How large a file of settings may be; its reader has the same limit.
const MAX_SETTINGS: usize = 1 << 20;

/// What tools are told that no model says.
#[derive(Debug, Args)]
pub(crate) struct OperatorOptions {
    /// The operator's settings file, in YAML or JSON, with `settings`, `auth`, `egress`, `kubernetes`, `mcp` and
    /// `webhooks`. `${NAME}` is replaced by an environment variable
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// One setting: `name` for the one tool that declares it, or `namespace/tool.name`; can be repeated.
    /// Put secrets in a file instead: other users can see command lines
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = pair)]
    setting: Vec<(String, String)>,

    /// A private network that tools may connect to, such as 127.0.0.1; can be repeated
    #[arg(long, value_name = "CIDR", value_parser = network)]
    allow: Vec<IpNet>,
}

impl OperatorOptions {
    /// Whether the settings come from stdin.
    pub(crate) fn read_stdin(&self) -> bool {
        self.settings.as_deref() == Some(Path::new("-"))
    }

    /// The file of settings, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.settings.as_deref()
    }

    /// Reads the file and sets up what runs tools.
    pub(crate) fn operator(&self) -> Result<Operator, CommandError> {
        self.operator_within(ToolLimits::default())
    }

    /// The same for all of these tools. Each setting is for one of them.
    pub(crate) fn operator_of(&self, located: &[Located]) -> Result<Operator, CommandError> {
        let operator = self.operator()?;
        let checked = operator.check_settings(located.iter().map(|one| &one.tool));
        checked.map_err(|error| CommandError::usage(format!("--setting: {}", error.message)))?;
        Ok(operator)
    }

    /// The same for one call that somebody waits for: a host at which nobody answers is told at once.
    pub(crate) fn operator_of_one_call(&self) -> Result<Operator, CommandError> {
        self.operator_within(ToolLimits {
            outage: Duration::ZERO,
            ..ToolLimits::default()
        })
    }

    fn operator_within(&self, limits: ToolLimits) -> Result<Operator, CommandError> {
        let mut config = self.config()?;
        config.kubernetes = self.beside_file(config.kubernetes);
        Operator::new(config, &self.setting, &self.allow, limits, &variable)
            .map_err(|error| CommandError::cannot_run(error.to_string()))
    }

    /// A kubeconfig is looked for beside the file that names it.
    fn beside_file(&self, mut config: KubernetesConfig) -> KubernetesConfig {
        let directory = self.settings.as_deref().and_then(Path::parent);
        if let (Some(file), Some(directory), false) =
            (&mut config.kubeconfig, directory, self.read_stdin())
        {
            *file = directory.join(&file);
        }
        config
    }

    fn config(&self) -> Result<OperatorConfig, CommandError> {
        match &self.settings {
            None => Ok(OperatorConfig::default()),
            Some(path) => read_settings("--settings", path),
        }
    }
}

/// Reads an operator's file, or stdin for `-`, and tells what is wrong with it.
pub(crate) fn read_settings(flag: &str, path: &Path) -> Result<OperatorConfig, CommandError> {
    let input = FileInput::named(path);
    let text = input
        .read(MAX_SETTINGS)
        .map_err(|error| CommandError::usage(format!("{flag} {}: {error}", input.shown())))?;
    let lookup = |name: &str| variable(name)?.into_string().ok();
    let (config, findings) = OperatorConfig::read(&text, &lookup);
    for finding in &findings {
        talk(&shown(&input, finding));
    }
    if findings
        .iter()
        .any(|finding| finding.severity == DiagnosticSeverity::Error)
    {
        Err(CommandError::cannot_run("the settings cannot be used"))
    } else {
        Ok(config)
    }
}

fn variable(name: &str) -> Option<OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator names the variable, or means the cluster that kubectl would use"
    )]
    std::env::var_os(name)
}

/// A finding on one line. The line of the file is not shown: it may hold a secret.
fn shown(input: &FileInput, finding: &Diagnostic) -> String {
    let place = finding
        .span
        .map(|span| format!(":{}:{}", span.line, span.column));
    let help = finding.help.as_ref().map(|help| format!("; {help}"));
    format!(
        "{}{}: {}[{}]: {}{}",
        input.shown(),
        place.unwrap_or_default(),
        finding.severity,
        finding.code,
        finding.message,
        help.unwrap_or_default(),
    )
}
