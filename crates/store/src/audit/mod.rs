//! Whether the audit log is what was written, and the checkpoints that stand for what was removed of it.

mod checkpoint;
mod verify;

pub use checkpoint::{CheckpointError, CheckpointKey, verify_checkpoint};
pub use verify::{AuditFault, AuditReport, verify};
