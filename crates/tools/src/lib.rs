//! Declarative agent tools: manifests, and the references in them.

pub mod interpolate;
pub mod manifest;
