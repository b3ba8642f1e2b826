//! CEL with limits: compile once, evaluate many times, JSON in, JSON out.
//!
//! This is the only user of the CEL library in the house. It adds what that
//! library does not have: a budget that no expression gets around, JSON that is
//! read where it lies, and errors with kinds. Which functions exist, what the
//! limits are and what each error means is in `docs/expressions.md`.
//!
//! ```
//! use proofhouse_expr::{Program, Variables};
//! use serde_json::json;
//!
//! let program = Program::compile("message.name.startsWith('evil') && message.size > 10")?;
//! let message = json!({"name": "evil-tool", "size": 11});
//! let mut variables = Variables::new();
//! variables.bind("message", &message);
//! assert!(program.evaluate_bool(&variables)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod compile;
mod error;
mod evaluate;
mod functions;
mod json;
mod library;
mod limits;
mod lower;
mod node;
mod ops;
mod patterns;
mod scan;
mod sets;
mod value;
mod variables;

pub use compile::{Compiler, Program};
pub use error::{CompileError, CompileErrorKind, EvaluateError, EvaluateErrorKind, FunctionError};
pub use functions::Form;
pub use limits::ExprLimits;
pub use sets::{SetKind, Sets};
pub use variables::Variables;
