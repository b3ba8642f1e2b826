//! The tests of scanners and of the traces that they read.

mod batch;
mod equivalence;
mod evidence;
mod hiding;
mod traces;
