//! What a user should know while subjects are opened and documents are read.

use std::net::SocketAddr;
use std::path::PathBuf;

use proofhouse_source::Diagnostic;
use proofhouse_wire::files::Unreadable;

/// Something that a user should know.
#[derive(Debug)]
pub enum Notice {
    /// A manifest or a document cannot be read.
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        error: Unreadable,
    },
    /// What was found in a manifest or a document, in the order of its places; often nothing.
    Findings {
        /// The file.
        name: String,
        /// Its text.
        text: String,
        /// What was found in it.
        findings: Vec<Diagnostic>,
    },
    /// A document cannot be used.
    Unusable {
        /// The file.
        name: String,
        /// Why.
        reason: String,
    },
    /// The control of a document still has the payload, so that it is none.
    UncleanControl {
        /// The file of the document.
        name: String,
        /// What is left of the payload.
        why: String,
    },
    /// The agent has a mount, and no directory is given for it.
    MountWithoutFiles,
    /// An attack listens at an address that is not only this machine's.
    ListensForOthers(SocketAddr),
    /// A configuration of MCP servers is copied, and nothing says where the command looks for the copy. Who gives a
    /// configuration may expect the file itself to change.
    CopiedConfig(PathBuf),
    /// A configuration that an earlier campaign had rewritten was put back.
    RestoredConfig(PathBuf),
}
