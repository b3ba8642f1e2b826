//! Recorded runs that were judged again, as people and programs are shown them.

pub(crate) mod human;
pub(crate) mod json;
