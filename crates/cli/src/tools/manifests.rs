//! Where tools come from: manifests that are read and checked, with what is wrong shown in its place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_manifest::{Action, Bundle, BundleLimits, Tool};
use proofhouse_oatf::DiagnosticSeverity;
use proofhouse_tools::functions::{Functions, Reference};
use proofhouse_tools::runtime::ToolTask;

use crate::input::{DOCUMENTS, Input, collect};
use crate::output::{CommandError, complain, printable_line, talk, talk_styled};
use crate::report::{self, Checked, plural};

/// A tool, and the directory of its manifest, in which the files are that the manifest names.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub(crate) tool: Arc<Tool>,
    pub(crate) directory: Arc<Path>,
}

/// Reads the tools of files and directories. What is wrong is shown on stderr, all of it; one file that
/// cannot be used ends the command, because a missing tool would be missed later.
pub(crate) fn tools(paths: &[PathBuf]) -> Result<Vec<Located>, CommandError> {
    let mut inputs = collect(paths, DOCUMENTS)?;
    let mut seen = std::collections::HashSet::new();
    inputs.retain(|input| seen.insert(input.name()));
    let mut tools = Vec::new();
    let mut unusable = 0;
    for input in &inputs {
        match read(input) {
            Some(found) => tools.extend(found),
            None => unusable += 1,
        }
    }
    if unusable > 0 {
        return Err(CommandError::cannot_run(format!(
            "{unusable} of {} cannot be used",
            plural(inputs.len(), "file"),
        )));
    }
    if tools.is_empty() {
        return Err(CommandError::cannot_run("there is no tool manifest"));
    }
    Ok(tools)
}

fn read(input: &Input) -> Option<Vec<Located>> {
    let text = match input.read(BundleLimits::default().max_bytes) {
        Ok(text) => text,
        Err(error) => {
            complain(&format!("{}: {error}", input.shown()));
            return None;
        }
    };
    let (bundle, findings) = Bundle::read(&text);
    let errors = findings
        .iter()
        .any(|finding| finding.severity == DiagnosticSeverity::Error);
    show(input.name(), text, findings);
    let directory: Arc<Path> = match input {
        // What is piped in has the files where the command is run.
        Input::Stdin => Path::new(".").into(),
        Input::File(path) => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
            _ => Path::new(".").into(),
        },
    };
    let located = |tool: &Tool| Located {
        tool: Arc::new(tool.clone()),
        directory: Arc::clone(&directory),
    };
    (!errors).then(|| bundle.tools().map(located).collect())
}

/// Shows findings on stderr, each in its place.
pub(crate) fn show(name: String, text: String, findings: Vec<proofhouse_oatf::Diagnostic>) {
    let checked = Checked {
        name,
        text,
        findings,
    };
    for shown in report::human::findings(&checked) {
        talk_styled(&format!("{shown}\n"));
    }
}

/// The tools alone.
pub(crate) fn of_located(tools: &[Located]) -> Vec<Arc<Tool>> {
    tools
        .iter()
        .map(|located| Arc::clone(&located.tool))
        .collect()
}

/// The functions of tools with these of their actions, in the same order.
pub(crate) fn functions(tools: &[Arc<Tool>], actions: &[Vec<Arc<Action>>]) -> Functions {
    let references: Vec<Reference<'_>> = tools
        .iter()
        .zip(actions)
        .map(|(tool, actions)| Reference::to_tool(tool, actions))
        .collect();
    Functions::new(&references)
}

/// Ends a task. What went wrong is told, and is no reason to fail: the result is there.
pub(crate) async fn tear_down(task: &ToolTask) {
    for error in task.teardown().await {
        let name = printable_line(&task.tool().name);
        talk(&format!("warning: {name}: while it was ended: {error}"));
    }
}
