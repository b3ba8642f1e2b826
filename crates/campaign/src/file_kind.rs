//! What a file is, by its first keys, so that a file of another kind is told with the command that takes it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use proofhouse_detect::Format;
use proofhouse_manifest::Bundle;
use proofhouse_source::printable_line;
use proofhouse_subjects::discover::start_command;

use crate::cases::is_cases_file;
use crate::config;

/// How much of a file is looked at.
const MAX_BYTES: u64 = 4 << 20;

/// How much of a JSON file is looked at: what it is, its first keys say.
const MAX_JSON: usize = 4 << 10;

/// The keys with which the result of a campaign begins.
const RESULT_KEYS: [&str; 3] = ["\"version\"", "\"proofhouse\"", "\"started_at\""];

/// A kind of file that people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecognizedFile {
    /// A threat document.
    ThreatDocument,
    /// Labelled cases of one.
    LabelledCases,
    /// A manifest of an agent.
    AgentManifest,
    /// A manifest of tools.
    ToolManifest,
    /// A `proofhouse.yaml`.
    Configuration,
    /// The `result.json` of a campaign.
    CampaignResult,
    /// A recorded trace.
    Trace,
    /// A policy of the guard.
    Policy,
    /// Code, most likely of the agent.
    Program,
}

/// How the names of programs end.
const PROGRAM_ENDINGS: [&str; 5] = ["py", "js", "mjs", "cjs", "ts"];

impl RecognizedFile {
    /// The kind of a file, if it is of one.
    fn of(path: &Path, text: &str) -> Option<Self> {
        if is_cases_file(path) {
            return Some(Self::LabelledCases);
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| PROGRAM_ENDINGS.contains(&ending)) {
            return Some(Self::Program);
        }
        if text.trim_start().starts_with('{') {
            let start: String = text.chars().take(MAX_JSON).collect();
            if RESULT_KEYS.iter().all(|key| start.contains(key)) {
                return Some(Self::CampaignResult);
            }
            if Format::detect(text.as_bytes()).is_some() {
                return Some(Self::Trace);
            }
        }
        if text.lines().any(|line| line.starts_with("policy:")) {
            return Some(Self::Policy);
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
            Self::CampaignResult => "the result of a campaign",
            Self::Trace => "a trace",
            Self::Policy => "a guard policy",
            Self::Program => "a program",
        }
    }

    /// The command that takes such a file, where another kind was wanted.
    fn command(self, file: &str, wanted: WantedFiles) -> String {
        match self {
            Self::ThreatDocument => match wanted {
                WantedFiles::Subjects => format!("proofhouse run {file} --command '…'"),
                WantedFiles::Traces => format!("proofhouse scan TRACE --rules {file}"),
                WantedFiles::Configuration
                | WantedFiles::ThreatDocuments
                | WantedFiles::Manifests
                | WantedFiles::Policy
                | WantedFiles::Validated
                | WantedFiles::Report => {
                    format!("proofhouse attack {file}, or proofhouse run {file}")
                }
            },
            Self::LabelledCases => format!("proofhouse validate {file}"),
            Self::AgentManifest => {
                format!("proofhouse agent run {file}, or proofhouse run --subject {file}")
            }
            Self::ToolManifest => format!("proofhouse tool list {file}"),
            Self::Configuration => format!("proofhouse run --config {file}"),
            Self::CampaignResult => {
                let directory = Path::new(file).parent().map(Path::to_string_lossy);
                let directory = directory.filter(|directory| !directory.is_empty());
                let directory = directory.as_deref().unwrap_or(".");
                format!("proofhouse open {directory}, or proofhouse replay {directory}")
            }
            Self::Trace => format!("proofhouse scan {file}"),
            Self::Policy => {
                format!("proofhouse guard check {file}, or proofhouse run --guard {file}")
            }
            Self::Program => {
                let command = start_command(Path::new(file));
                format!("proofhouse run --command '{command}'")
            }
        }
    }
}

/// What a command wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedFiles {
    /// Threat documents.
    ThreatDocuments,
    /// Manifests of agents and tools.
    Manifests,
    /// Manifests of agents to attack.
    Subjects,
    /// Recorded traces.
    Traces,
    /// A `proofhouse.yaml`.
    Configuration,
    /// A policy of the guard.
    Policy,
    /// Anything that can be checked.
    Validated,
    /// The report of a campaign.
    Report,
}

/// A file of another kind than a command takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} is {}, not {}; use: {}", kind.name(), wanted.name(), kind.command(file, *wanted))]
pub struct WrongFileKind {
    /// The file.
    pub file: String,
    /// What it is.
    pub kind: RecognizedFile,
    /// What it should be.
    pub wanted: WantedFiles,
}

impl WantedFiles {
    fn takes(self, kind: RecognizedFile) -> bool {
        match kind {
            _ if self == Self::Report => kind != RecognizedFile::CampaignResult,
            _ if self == Self::Validated => !matches!(
                kind,
                RecognizedFile::CampaignResult | RecognizedFile::Trace | RecognizedFile::Program
            ),
            RecognizedFile::ThreatDocument => self == Self::ThreatDocuments,
            RecognizedFile::AgentManifest => matches!(self, Self::Manifests | Self::Subjects),
            RecognizedFile::ToolManifest => self == Self::Manifests,
            RecognizedFile::Configuration => self == Self::Configuration,
            RecognizedFile::Trace => self == Self::Traces,
            RecognizedFile::Policy => self == Self::Policy,
            RecognizedFile::LabelledCases
            | RecognizedFile::CampaignResult
            | RecognizedFile::Program => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ThreatDocuments => "a threat document",
            Self::Manifests => "a manifest",
            Self::Subjects => "an agent",
            Self::Traces => "a trace",
            Self::Configuration => "a configuration",
            Self::Policy => "a guard policy",
            Self::Validated => "a document, manifest, policy or configuration",
            Self::Report => "a report",
        }
    }

    /// Refuses files of another kind. Whatever else is wrong with a file is told by who reads it.
    ///
    /// # Errors
    ///
    /// Returns the first file of another kind, with the command that takes it.
    pub fn check(self, paths: &[PathBuf]) -> Result<(), WrongFileKind> {
        for path in paths.iter().filter(|path| path.is_file()) {
            let mut start = Vec::new();
            let Ok(file) = File::open(path) else {
                continue;
            };
            #[expect(clippy::disallowed_methods, reason = "capped by take")]
            let read = file.take(MAX_BYTES).read_to_end(&mut start);
            if read.is_err() {
                continue;
            }
            let text = String::from_utf8_lossy(&start);
            if let Some(kind) = RecognizedFile::of(path, &text)
                && !self.takes(kind)
            {
                return Err(WrongFileKind {
                    file: printable_line(&path.display().to_string()),
                    kind,
                    wanted: self,
                });
            }
        }
        Ok(())
    }
}
