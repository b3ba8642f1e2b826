//! The manifests of tools: read, with what is wrong shown in its place.

use std::path::PathBuf;

use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity};
use proofhouse_report::findings::{Checked, human};
use proofhouse_subjects::tool_manifests::{Located, read_tools};
use proofhouse_tools::runtime::ToolTask;

use crate::notices;
use crate::output::{CommandError, complain_styled, is_quiet, printable_line, talk};

/// Reads the tools of files and directories, and shows what is wrong with them.
pub(crate) fn tools(paths: &[PathBuf]) -> Result<Vec<Located>, CommandError> {
    WantedFiles::Manifests.check(paths)?;
    read_tools(paths, &notices::show).map_err(|error| CommandError::of(&error, error.is_usage()))
}

/// Shows findings on stderr, each in its place; when only errors are wanted, without the warnings.
pub(crate) fn show(name: String, text: String, mut findings: Vec<Diagnostic>) {
    findings.retain(|finding| finding.severity == DiagnosticSeverity::Error || !is_quiet());
    let checked = Checked {
        name,
        text,
        findings,
    };
    for shown in human::findings(&checked) {
        complain_styled(&format!("{shown}\n"));
    }
}

/// Ends a task. What went wrong is told, and is no reason to fail: the result is there.
pub(crate) async fn tear_down(task: &ToolTask) {
    for error in task.teardown().await {
        let name = printable_line(&task.tool().name);
        talk(&format!("warning: {name}: while it was ended: {error}"));
    }
}
