//! Where tools come from: manifests that are read and checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_manifest::{Bundle, BundleLimits, Tool, ToolAction};
use proofhouse_source::DiagnosticSeverity;
use proofhouse_tools::functions::{Functions, ToolReference};
use proofhouse_wire::files::{CollectError, DOCUMENTS, FileInput, collect};

use crate::Notice;

/// Why the tools of manifests cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// The files cannot be found.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// Files cannot be used; what is wrong with them was told before.
    #[error("{unusable} of {files} file{} cannot be used", if *.files == 1 { "" } else { "s" })]
    Unusable {
        /// How many.
        unusable: usize,
        /// Of how many.
        files: usize,
    },
    /// No manifest is of a tool.
    #[error("there is no tool manifest")]
    NoTool,
}

impl ToolsError {
    /// Whether other files have to be named, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Collect(_) => true,
            Self::Unusable { .. } | Self::NoTool => false,
        }
    }
}

/// A tool, and the directory of its manifest, in which the files are that the manifest names.
#[derive(Debug, Clone)]
pub struct Located {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The directory.
    pub directory: Arc<Path>,
}

/// Reads the tools of files and directories. What is wrong is told, all of it; one file that cannot be used
/// is an error, because a missing tool would be missed later.
///
/// # Errors
///
/// Returns an error when files are not there or cannot be used.
pub fn read_tools(paths: &[PathBuf], notify: &dyn Fn(Notice)) -> Result<Vec<Located>, ToolsError> {
    let mut inputs = collect(paths, DOCUMENTS)?;
    let mut seen = std::collections::HashSet::new();
    inputs.retain(|input| seen.insert(input.name()));
    let mut tools = Vec::new();
    let mut unusable = 0;
    for input in &inputs {
        match read(input, notify) {
            Some(found) => tools.extend(found),
            None => unusable += 1,
        }
    }
    if unusable > 0 {
        return Err(ToolsError::Unusable {
            unusable,
            files: inputs.len(),
        });
    }
    if tools.is_empty() {
        return Err(ToolsError::NoTool);
    }
    Ok(tools)
}

fn read(input: &FileInput, notify: &dyn Fn(Notice)) -> Option<Vec<Located>> {
    let text = match input.read(BundleLimits::default().max_bytes) {
        Ok(text) => text,
        Err(error) => {
            notify(Notice::Unreadable {
                name: input.name(),
                error,
            });
            return None;
        }
    };
    let (bundle, findings) = Bundle::read(&text);
    let errors = findings
        .iter()
        .any(|finding| finding.severity == DiagnosticSeverity::Error)
        || !bundle.unset_variables.is_empty();
    notify(Notice::Findings {
        name: input.name(),
        text,
        findings,
    });
    let directory: Arc<Path> = match input {
        // What is piped in has the files where the command is run.
        FileInput::Stdin => Path::new(".").into(),
        FileInput::File(path) => match path.parent() {
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

/// The tools alone.
#[must_use]
pub fn of_located(tools: &[Located]) -> Vec<Arc<Tool>> {
    tools
        .iter()
        .map(|located| Arc::clone(&located.tool))
        .collect()
}

/// The functions of tools with these of their actions, in the same order.
#[must_use]
pub fn functions(tools: &[Arc<Tool>], actions: &[Vec<Arc<ToolAction>>]) -> Functions {
    let references: Vec<ToolReference<'_>> = tools
        .iter()
        .zip(actions)
        .map(|(tool, actions)| ToolReference::to_tool(tool, actions))
        .collect();
    Functions::new(&references)
}
