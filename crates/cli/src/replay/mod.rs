//! Replaying recorded runs: which ones, judged by which document, from which recording, and how that is told.

pub(crate) mod conversation;
pub(crate) mod find;
pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod recording;
pub(crate) mod replayed;
pub(crate) mod sources;
