//! The functions that expressions use on the files of a task: their names and forms, for those who check an expression
//! and those who run it.

use proofhouse_expr::{Compiler, Form, FunctionError};
use serde_json::Value;

/// A compiler that knows `mount.read` and `mount.write`.
pub fn mount_functions(
    read: impl Fn(&[Value]) -> Result<Value, FunctionError> + Send + Sync + 'static,
    write: impl Fn(&[Value]) -> Result<Value, FunctionError> + Send + Sync + 'static,
) -> Compiler {
    crate::compiler()
        .function("mount.read", Form::Global, read)
        .function("mount.write", Form::Global, write)
}
