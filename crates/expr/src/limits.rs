//! What an expression may cost, from its source text to its result.

use std::time::Duration;

/// Bounds on one expression: the first four hold when it is compiled, the rest
/// each time it is evaluated.
///
/// ```
/// use proofhouse_expr::ExprLimits;
///
/// let limits = ExprLimits { max_steps: 10_000, ..ExprLimits::default() };
/// assert_eq!(limits.max_source_bytes, 16 * 1024);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprLimits {
    /// Longest source text, in bytes.
    pub max_source_bytes: usize,
    /// Deepest nesting of the parsed expression. The default is safe on a
    /// thread with 1 MiB of stack.
    pub max_depth: usize,
    /// Most nodes in the parsed expression.
    pub max_nodes: usize,
    /// Largest compiled regular expression, in bytes.
    pub max_regex_bytes: usize,
    /// Most steps of one evaluation: every node evaluated is a step, and work
    /// that grows with its input (comparing texts, matching) pays more.
    pub max_steps: u64,
    /// Most bytes of texts, lists, maps and results built by one evaluation.
    /// What is given back early still counts, so this also bounds memory.
    pub max_bytes_built: usize,
    /// Longest wall time of one evaluation, looked at every few hundred steps.
    pub max_time: Duration,
}

impl Default for ExprLimits {
    fn default() -> Self {
        Self {
            max_source_bytes: 16 * 1024,
            max_depth: 64,
            max_nodes: 8 * 1024,
            max_regex_bytes: 2 * 1024 * 1024,
            max_steps: 1_000_000,
            max_bytes_built: 8 * 1024 * 1024,
            max_time: Duration::from_millis(100),
        }
    }
}
