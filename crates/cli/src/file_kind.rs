//! What a file is, by its first keys, so that a file of another kind is told with the command that takes it.

use std::path::{Path, PathBuf};

use proofhouse_campaign::cases::is_cases_file;
use proofhouse_campaign::config;
use proofhouse_manifest::Bundle;

use crate::input::FileInput;
use crate::output::{CommandError, shown_path};

/// How much of a file is looked at; a larger one is left to whoever reads it.
const MAX_BYTES: usize = 4 << 20;

/// A kind of file that people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    ThreatDocument,
    LabelledCases,
    AgentManifest,
    ToolManifest,
    Configuration,
}

impl FileKind {
    /// The kind of a file, if it is of one.
    fn of(path: &Path, text: &str) -> Option<Self> {
        if is_cases_file(path) {
            return Some(Self::LabelledCases);
        }
        if text.lines().any(|line| line.starts_with("oatf:")) {
            return Some(Self::ThreatDocument);
        }
        if Bundle::is_meant_by(text) {
            let (bundle, _) = Bundle::read(text);
            let has_agents = bundle.agents().next().is_some();
            return Some(if has_agents {
                Self::AgentManifest
            } else {
                Self::ToolManifest
            });
        }
        let name = path.to_string_lossy();
        config::is_meant_by(&name, text).then_some(Self::Configuration)
    }

    fn name(self) -> &'static str {
        match self {
            Self::ThreatDocument => "a threat document",
            Self::LabelledCases => "a file of labelled cases",
            Self::AgentManifest => "an agent manifest",
            Self::ToolManifest => "a tool manifest",
            Self::Configuration => "a configuration of proofhouse",
        }
    }

    /// The command that takes such a file.
    fn command(self, file: &str) -> String {
        match self {
            Self::ThreatDocument => format!("proofhouse attack {file}, or proofhouse run {file}"),
            Self::LabelledCases => format!("proofhouse validate {file}"),
            Self::AgentManifest => {
                format!("proofhouse agent run {file}, or proofhouse run --subject {file}")
            }
            Self::ToolManifest => format!("proofhouse tool list {file}"),
            Self::Configuration => format!("proofhouse run --config {file}"),
        }
    }
}

/// What a command wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedFiles {
    ThreatDocuments,
    Manifests,
}

impl WantedFiles {
    fn takes(self, kind: FileKind) -> bool {
        match kind {
            FileKind::ThreatDocument => self == Self::ThreatDocuments,
            FileKind::AgentManifest | FileKind::ToolManifest => self == Self::Manifests,
            FileKind::LabelledCases | FileKind::Configuration => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ThreatDocuments => "a threat document",
            Self::Manifests => "a manifest",
        }
    }

    /// Refuses files of another kind. Whatever else is wrong with a file is told by who reads it.
    pub(crate) fn check(self, paths: &[PathBuf]) -> Result<(), CommandError> {
        for path in paths.iter().filter(|path| path.is_file()) {
            let Ok(text) = FileInput::File(path.clone()).read(MAX_BYTES) else {
                continue;
            };
            if let Some(kind) = FileKind::of(path, &text)
                && !self.takes(kind)
            {
                let shown = shown_path(path);
                return Err(CommandError::usage(format!(
                    "{shown} is {}, not {}; use: {}",
                    kind.name(),
                    self.name(),
                    kind.command(&shown)
                )));
            }
        }
        Ok(())
    }
}
