//! What can go wrong: compiling, evaluating, and inside a registered function.

/// Longest message of an [`EvaluateError`], in bytes: messages quote values,
/// and values can be as large as the bytes budget.
const MAX_MESSAGE: usize = 400;

/// Why a source text is not a program.
///
/// ```
/// use proofhouse_expr::{CompileErrorKind, Program};
///
/// let error = Program::compile("a +\n  * b").unwrap_err();
/// assert_eq!(error.kind, CompileErrorKind::Syntax);
/// assert_eq!((error.line, error.column), (Some(2), Some(3)));
/// assert_eq!(error.offset, Some(6));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// The class of the problem.
    pub kind: CompileErrorKind,
    /// One sentence for people.
    pub message: String,
    /// Byte offset in the source, where known.
    pub offset: Option<usize>,
    /// Line, counted from 1, where known.
    pub line: Option<usize>,
    /// Column in bytes, counted from 1, where known.
    pub column: Option<usize>,
}

impl CompileError {
    pub(crate) fn new(kind: CompileErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            offset: None,
            line: None,
            column: None,
        }
    }

    /// Places the error at a byte offset of `source`.
    pub(crate) fn at(mut self, source: &str, offset: usize) -> Self {
        let offset = offset.min(source.len());
        let before = &source.as_bytes()[..offset];
        let line_start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        self.offset = Some(offset);
        self.line = Some(1 + before.iter().filter(|byte| **byte == b'\n').count());
        self.column = Some(offset - line_start + 1);
        self
    }
}

/// The classes of [`CompileError`].
///
/// ```
/// use proofhouse_expr::{CompileErrorKind, Program};
///
/// let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
/// assert_eq!(Program::compile(&deep).unwrap_err().kind, CompileErrorKind::TooDeep);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompileErrorKind {
    /// The text is not CEL.
    Syntax,
    /// The text, or the expression it spells, has too many parts.
    TooLarge,
    /// The expression is nested too deeply.
    TooDeep,
    /// The text is CEL, with something in it that is not supported.
    Unsupported,
}

/// Why an evaluation gave no value.
///
/// ```
/// use proofhouse_expr::{EvaluateErrorKind, Program, Variables};
///
/// let error = Program::compile("1 / 0")?.evaluate(&Variables::new()).unwrap_err();
/// assert_eq!(error.kind, EvaluateErrorKind::Arithmetic);
/// # Ok::<(), proofhouse_expr::CompileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvaluateError {
    /// The class of the problem.
    pub kind: EvaluateErrorKind,
    /// One sentence for people.
    pub message: String,
}

/// The classes of [`EvaluateError`].
///
/// ```
/// use proofhouse_expr::{EvaluateErrorKind, Program, Variables};
///
/// let kind = |source: &str| {
///     Program::compile(source).unwrap().evaluate(&Variables::new()).unwrap_err().kind
/// };
/// assert_eq!(kind("nothing"), EvaluateErrorKind::UnknownVariable);
/// assert_eq!(kind("{'a': 1}.b"), EvaluateErrorKind::MissingField);
/// assert_eq!(kind("shout('a')"), EvaluateErrorKind::UnsupportedFunction);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EvaluateErrorKind {
    /// A limit was reached: steps, bytes built, time, or the cost of a regex.
    Budget,
    /// An operator or function does not take values of these types, or the
    /// result has the wrong type.
    Type,
    /// A map has no such key, or a list no such position.
    MissingField,
    /// No variable of that name is bound.
    UnknownVariable,
    /// No function of that name exists.
    UnsupportedFunction,
    /// Integer overflow, division by zero, a time out of range.
    Arithmetic,
    /// A regular expression does not compile, or compiles to something too big.
    Regex,
    /// A function refused its arguments.
    Function,
    /// A set that is named has no values, see [`Sets`](crate::Sets).
    EmptySet,
    /// Anything else.
    Runtime,
}

/// An error on its way through the evaluator; boxed, because results are moved
/// at every step and errors are rare.
pub(crate) type BoxedError = Box<EvaluateError>;

/// Makes a [`Fault`], its message cut to a bounded length.
pub(crate) fn fault(kind: EvaluateErrorKind, message: impl Into<String>) -> BoxedError {
    let mut message = message.into();
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push('…');
    }
    Box::new(EvaluateError { kind, message })
}

/// What a registered function returns when it refuses its arguments.
///
/// ```
/// use proofhouse_expr::FunctionError;
///
/// assert_eq!(FunctionError::new("not a colour").to_string(), "not a colour");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FunctionError {
    /// One sentence for people.
    pub message: String,
}

impl FunctionError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
