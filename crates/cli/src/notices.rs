//! Shows what a user should know of subjects, manifests and documents, on stderr.

use proofhouse_agent::task::StartError;
use proofhouse_campaign::file_kind::WrongFileKind;
use proofhouse_campaign::load::LoadError;
use proofhouse_subjects::agent_setup::{InputError, SetupError};
use proofhouse_subjects::call_trace::TraceError;
use proofhouse_subjects::{Notice, SubjectOpenError};
use proofhouse_wire::run_files::TraceFileError;
use proofhouse_wire::write_files::WriteError;

use crate::output::{CommandError, complain, printable_line, shown_path, talk};
use crate::tools::manifests;

/// Shows one notice.
pub(crate) fn show(notice: Notice) {
    match notice {
        Notice::Unreadable { name, error } => {
            complain(&format!("{}: {error}", printable_line(&name)));
        }
        Notice::Findings {
            name,
            text,
            findings,
        } => manifests::show(name, text, findings),
        Notice::Unusable { name, reason } => {
            complain(&printable_line(&format!("{name}: {reason}")));
        }
        Notice::UncleanControl { name, why } => talk(&printable_line(&format!(
            "warning: {name}: its control still has the payload, so nothing can be resisted: {why}"
        ))),
        Notice::MountWithoutFiles => {
            talk("warning: the agent has a mount, but no files; give it a directory with --files");
        }
        Notice::ListensForOthers(address) => talk(&format!(
            "warning: attacks listen on {address}, where others may reach them"
        )),
        Notice::CopiedConfig(file) => talk(&format!(
            "note: the command finds a copy of {} that names the attack's servers in its directory, and in \
             PROOFHOUSE_MCP_CONFIG; write {{mcp_config}} where it takes the name of the file, or \
             --mcp-config-in-place to rewrite the file itself",
            shown_path(&file)
        )),
        Notice::RestoredConfig(file) => talk(&format!(
            "{}: put back as it was; an earlier campaign was cut off before it could",
            shown_path(&file)
        )),
    }
}

impl From<SubjectOpenError> for CommandError {
    fn from(error: SubjectOpenError) -> Self {
        Self::of(&error, error.is_usage())
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        Self::of(&error, error.is_usage())
    }
}

impl From<WrongFileKind> for CommandError {
    fn from(error: WrongFileKind) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        Self::of(&error, false)
    }
}

impl From<TraceFileError> for CommandError {
    fn from(error: TraceFileError) -> Self {
        Self::of(&error, false)
    }
}

impl From<WriteError> for CommandError {
    fn from(error: WriteError) -> Self {
        Self::of(&error, false)
    }
}

impl From<SetupError> for CommandError {
    fn from(error: SetupError) -> Self {
        Self::of(&error, error.is_usage())
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        Self::of(&error, false)
    }
}

impl From<InputError> for CommandError {
    fn from(error: InputError) -> Self {
        Self::of(&error, true)
    }
}
