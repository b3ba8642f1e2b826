//! What stands in for the real thing: the demo service that the examples of tools run against.

pub mod service;
