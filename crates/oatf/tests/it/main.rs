//! The tests of the threat format: its rules, what they let pass, and what they judge.

mod bad_input;
mod evaluation;
mod properties;
mod rules;
mod vectors;
