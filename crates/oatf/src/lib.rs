//! The threat format.
