//! Declarative agent tools: what a manifest's references mean and how their values are put in.

pub mod interpolate;
