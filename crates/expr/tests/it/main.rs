//! The tests of CEL expressions and their limits.

mod documentation;
mod hostile;
mod properties;
mod sets;
mod table;
