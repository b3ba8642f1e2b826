//! CEL with limits: compile once, evaluate many times, JSON in, JSON out; and the regular expressions of
//! RE2 within a budget of time ([`re2`]), which can be had without CEL.
//!
//! This is the only user of the CEL library in the house. It adds what that
//! library does not have: a budget that no expression gets around, JSON that is
//! read where it lies, and errors with kinds. Which functions exist, what the
//! limits are and what each error means is in `docs/reference/expressions.md`.
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

#[cfg(feature = "cel")]
pub mod allow_list;
#[cfg(feature = "cel")]
mod budget;
#[cfg(feature = "cel")]
mod compile;
#[cfg(feature = "cel")]
mod error;
#[cfg(feature = "cel")]
mod evaluate;
#[cfg(feature = "cel")]
mod functions;
#[cfg(feature = "cel")]
mod json;
#[cfg(feature = "cel")]
mod library;
#[cfg(feature = "cel")]
mod limits;
#[cfg(feature = "cel")]
mod lower;
#[cfg(feature = "cel")]
mod node;
#[cfg(feature = "cel")]
mod ops;
#[cfg(feature = "cel")]
mod patterns;
pub mod re2;
#[cfg(feature = "cel")]
mod scan;
#[cfg(feature = "cel")]
mod sets;
#[cfg(feature = "cel")]
mod value;
#[cfg(feature = "cel")]
mod variables;

#[cfg(feature = "cel")]
pub use compile::{Compiler, Program};
#[cfg(feature = "cel")]
pub use error::{CompileError, CompileErrorKind, EvaluateError, EvaluateErrorKind, FunctionError};
#[cfg(feature = "cel")]
pub use functions::Form;
#[cfg(feature = "cel")]
pub use limits::ExprLimits;
#[cfg(feature = "cel")]
pub use sets::{SetKind, Sets};
#[cfg(feature = "cel")]
pub use variables::Variables;
