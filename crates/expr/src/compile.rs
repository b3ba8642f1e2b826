//! From source text to a [`Program`].

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::parser::{ParseErrors, PrattParser};
use serde_json::Value;

use crate::budget::StepBudget;
use crate::error::{CompileError, CompileErrorKind, EvaluateError, EvaluateErrorKind, fault};
use crate::evaluate::Machine;
use crate::functions::{Form, OwnFunction, OwnFunctions};
use crate::json::to_json;
use crate::lower::Lowering;
use crate::node::ExprNode;
use crate::patterns::PatternCache;
use crate::re2::Re2Error;
use crate::value::Val;
use crate::{ExprLimits, FunctionError, Variables, scan};

/// Makes programs: holds the limits and the functions they share.
///
/// ```
/// use proofhouse_expr::{Compiler, Form, FunctionError, ExprLimits, Variables};
/// use serde_json::{Value, json};
///
/// let compiler = Compiler::new(ExprLimits::default()).function("upper", Form::Member, |args| {
///     match args {
///         [Value::String(text)] => Ok(json!(text.to_uppercase())),
///         _ => Err(FunctionError::new("takes a text")),
///     }
/// });
/// let program = compiler.compile("'abc'.upper() + '!'").unwrap();
/// assert_eq!(program.evaluate(&Variables::new()).unwrap(), "ABC!");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Compiler {
    limits: Arc<ExprLimits>,
    functions: OwnFunctions,
    extended: bool,
    /// A field of a variable, and what looks at what it is compared with.
    compared: Option<(&'static str, &'static str, Arc<OwnFunction>)>,
}

/// The compiler behind [`Program::compile`].
static DEFAULT: LazyLock<Compiler> = LazyLock::new(Compiler::default);

impl Compiler {
    /// A compiler with these limits and the standard functions.
    ///
    /// ```
    /// use proofhouse_expr::{Compiler, CompileErrorKind, ExprLimits};
    ///
    /// let compiler = Compiler::new(ExprLimits { max_source_bytes: 3, ..ExprLimits::default() });
    /// assert!(compiler.compile("1+1").is_ok());
    /// assert_eq!(compiler.compile("1 + 1").unwrap_err().kind, CompileErrorKind::TooLarge);
    /// ```
    #[must_use]
    pub fn new(limits: ExprLimits) -> Self {
        Self {
            limits: Arc::new(limits),
            functions: OwnFunctions::default(),
            extended: false,
            compared: None,
        }
    }

    /// Also takes what people write though it is not CEL: `has(name)` of a variable, and `` a.`odd key` ``. Without
    /// this, what another implementation of CEL refuses to parse is refused here.
    ///
    /// ```
    /// use proofhouse_expr::{Compiler, ExprLimits};
    ///
    /// let plain = Compiler::new(ExprLimits::default());
    /// assert!(plain.compile("!has(event)").is_err());
    /// assert!(plain.extended().compile("!has(event)").is_ok());
    /// ```
    #[must_use]
    pub fn extended(mut self) -> Self {
        self.extended = true;
        self
    }

    /// Has a function look at whatever is compared with a field of a variable by `<`, `<=`, `>` and `>=`, so that it
    /// can be written in more than one way.
    ///
    /// ```
    /// use proofhouse_expr::{Compiler, ExprLimits, Variables};
    /// use serde_json::{Value, json};
    ///
    /// let compiler = Compiler::new(ExprLimits::default()).comparing("poll", "last", |value| match value {
    ///     Value::String(text) => json!(text.len()),
    ///     other => other.clone(),
    /// });
    /// let program = compiler.compile("['a', 'abc'].filter(t, t > poll.last)").unwrap();
    /// let poll = json!({"last": 2});
    /// let mut variables = Variables::new();
    /// variables.bind("poll", &poll);
    /// assert_eq!(program.evaluate(&variables).unwrap(), json!(["abc"]));
    /// ```
    #[must_use]
    pub fn comparing<F>(mut self, variable: &'static str, field: &'static str, body: F) -> Self
    where
        F: Fn(&Value) -> Value + Send + Sync + 'static,
    {
        let mut functions = OwnFunctions::default();
        let body = move |args: &[Value]| Ok(args.first().map_or(Value::Null, &body));
        functions.add(String::new(), Form::Global, Box::new(body));
        let function = functions.global("");
        self.compared = function.map(|function| (variable, field, function));
        self
    }

    /// Registers a function, in place of a standard one of the same name.
    ///
    /// It gets its arguments as JSON and must have no side effects: how often
    /// it is called, and whether at all, is up to the evaluator. Its own run
    /// time counts, but cannot be cut short. A name with a dot, `math.max`, is
    /// called as it is written.
    ///
    /// ```
    /// use proofhouse_expr::{Compiler, Form, ExprLimits, Variables};
    /// use serde_json::json;
    ///
    /// let compiler = Compiler::new(ExprLimits::default())
    ///     .function("list.len", Form::Global, |args| Ok(json!(args.len())));
    /// let program = compiler.compile("list.len('a', 'b') == 2").unwrap();
    /// assert!(program.evaluate_bool(&Variables::new()).unwrap());
    /// ```
    #[must_use]
    pub fn function<F>(mut self, name: impl Into<String>, form: Form, body: F) -> Self
    where
        F: Fn(&[Value]) -> Result<Value, FunctionError> + Send + Sync + 'static,
    {
        self.functions.add(name.into(), form, Box::new(body));
        self
    }

    /// The limits of the programs this compiler makes.
    ///
    /// ```
    /// use proofhouse_expr::{Compiler, ExprLimits};
    ///
    /// assert_eq!(Compiler::new(ExprLimits::default()).limits(), &ExprLimits::default());
    /// ```
    #[must_use]
    pub fn limits(&self) -> &ExprLimits {
        &self.limits
    }

    /// Compiles a source text.
    ///
    /// ```
    /// use proofhouse_expr::{Compiler, ExprLimits};
    ///
    /// assert!(Compiler::new(ExprLimits::default()).compile("a.b == 1").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// When the text is not CEL, or is over a limit.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        let scanned = scan::check(source, &self.limits, self.extended)?;
        let expr = PrattParser::new()
            // The scan bounded the recursion already, in the same terms.
            .max_recursion_depth(u16::MAX)
            .enable_ident_escape_syntax(self.extended)
            .parse(&scanned)
            .map_err(|errors| syntax_error(source, &errors))?;
        let mut lowering = Lowering::new(&self.limits, &self.functions, self.extended);
        let mut root = lowering.lower(expr)?;
        if let Some((variable, field, function)) = &self.compared
            && let Some(name) = lowering.names.iter().position(|name| name == variable)
        {
            root.compare_by(&|node| node.is_at(name, &[field]), function);
        }
        Ok(Program(Arc::new(CompiledProgram {
            source: source.to_owned(),
            limits: Arc::clone(&self.limits),
            root,
            variables: lowering.names,
            functions: lowering.functions,
            unsupported: lowering.unsupported,
            namespaced: lowering.namespaced,
            pattern_errors: lowering.pattern_errors,
            patterns: PatternCache::default(),
        })))
    }
}

fn syntax_error(source: &str, errors: &ParseErrors) -> CompileError {
    let Some(first) = errors.errors.first() else {
        return CompileError::new(CompileErrorKind::Syntax, "not an expression");
    };
    let message = first.msg.trim_start_matches("Syntax error: ");
    let error = CompileError::new(CompileErrorKind::Syntax, message);
    let (Ok(line), Ok(column)) = (
        usize::try_from(first.pos.0 - 1),
        usize::try_from(first.pos.1 - 1),
    ) else {
        return error;
    };
    let line_start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    error.at(source, line_start + column)
}

/// A compiled expression. Cheap to clone, and shared between threads freely.
///
/// ```
/// use proofhouse_expr::{Program, Variables};
/// use serde_json::json;
///
/// let program = Program::compile("message.tools.exists(t, t.name == 'admin')").unwrap();
/// let message = json!({"tools": [{"name": "search"}, {"name": "admin"}]});
/// let mut variables = Variables::new();
/// variables.bind("message", &message);
/// assert!(program.evaluate_bool(&variables).unwrap());
/// ```
#[derive(Clone)]
pub struct Program(Arc<CompiledProgram>);

struct CompiledProgram {
    source: String,
    limits: Arc<ExprLimits>,
    root: ExprNode,
    variables: Vec<String>,
    functions: BTreeSet<String>,
    unsupported: BTreeSet<String>,
    namespaced: Vec<(usize, String)>,
    pattern_errors: Vec<Re2Error>,
    patterns: PatternCache,
}

impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Program")
            .field(&self.0.source)
            .finish()
    }
}

impl Program {
    /// Compiles with the default limits and the standard functions.
    ///
    /// ```
    /// use proofhouse_expr::Program;
    ///
    /// assert!(Program::compile("size(message.name) > 3").is_ok());
    /// assert!(Program::compile("size(").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// When the text is not CEL, or is over a limit.
    pub fn compile(source: &str) -> Result<Self, CompileError> {
        DEFAULT.compile(source)
    }

    /// The text the program was compiled from.
    ///
    /// ```
    /// # use proofhouse_expr::Program;
    /// assert_eq!(Program::compile("1 + 1").unwrap().source(), "1 + 1");
    /// ```
    #[must_use]
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The variables it reads, in the order they first appear. Loop variables
    /// are not among them.
    ///
    /// ```
    /// # use proofhouse_expr::Program;
    /// let program = Program::compile("message.tags.exists(t, t == prefix)").unwrap();
    /// assert_eq!(program.variables().collect::<Vec<_>>(), ["message", "prefix"]);
    /// ```
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.variables.iter().map(String::as_str)
    }

    /// The functions and macros it calls, sorted by name.
    ///
    /// ```
    /// # use proofhouse_expr::Program;
    /// let program = Program::compile("a.exists(t, size(t) > 1) && has(a.b)").unwrap();
    /// assert_eq!(program.functions().collect::<Vec<_>>(), ["exists", "has", "size"]);
    /// ```
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.0.functions.iter().map(String::as_str)
    }

    /// The functions it calls that do not exist. Evaluating it is an error
    /// where there is one, even if the call would not be reached.
    ///
    /// ```
    /// # use proofhouse_expr::Program;
    /// let program = Program::compile("true || shout('a')").unwrap();
    /// assert_eq!(program.unsupported_functions().collect::<Vec<_>>(), ["shout"]);
    /// ```
    pub fn unsupported_functions(&self) -> impl Iterator<Item = &str> {
        self.0.unsupported.iter().map(String::as_str)
    }

    /// What is wrong with the constant patterns of `matches`; where they are reached, evaluation is an error.
    ///
    /// ```
    /// # use proofhouse_expr::Program;
    /// let program = Program::compile("a.matches('(?=look)') || a.matches('ok')").unwrap();
    /// assert_eq!(program.pattern_errors().len(), 1);
    /// ```
    #[must_use]
    pub fn pattern_errors(&self) -> &[Re2Error] {
        &self.0.pattern_errors
    }

    /// The fields of a variable that it names, sorted: `a` and `b` for `x.a == 1 || x['b'] == 2`. A field that
    /// is only asked after with `has` is not among them.
    ///
    /// ```
    /// # use proofhouse_expr::Program;
    /// let program = Program::compile("x.a == 1 && has(x.c) || [y].exists(e, e == x['b'])").unwrap();
    /// assert_eq!(program.fields_of("x").into_iter().collect::<Vec<_>>(), ["a", "b"]);
    /// ```
    #[must_use]
    pub fn fields_of(&self, variable: &str) -> BTreeSet<&str> {
        self.fields_at(variable, &[])
    }

    /// The fields that are read of a field of a variable, and so on.
    ///
    /// ```
    /// use proofhouse_expr::Program;
    ///
    /// let program = Program::compile("c.calls['a'].count > 1 && c.calls.b.count > 2 && c.other.d").unwrap();
    /// assert_eq!(program.fields_at("c", &["calls"]).into_iter().collect::<Vec<_>>(), ["a", "b"]);
    /// ```
    #[must_use]
    pub fn fields_at(&self, variable: &str, path: &[&str]) -> BTreeSet<&str> {
        let mut fields = BTreeSet::new();
        if let Some(name) = self.0.variables.iter().position(|name| name == variable) {
            let is_it = |node: &ExprNode| node.is_at(name, path);
            self.0.root.fields_of(&is_it, &mut fields);
        }
        fields
    }

    /// Evaluates to JSON.
    ///
    /// ```
    /// # use proofhouse_expr::{Program, Variables};
    /// let program = Program::compile("[1, 2, 3].filter(n, n > 1).map(n, n * 10)").unwrap();
    /// assert_eq!(program.evaluate(&Variables::new()).unwrap(), serde_json::json!([20, 30]));
    /// ```
    ///
    /// # Errors
    ///
    /// See [`EvaluateErrorKind`].
    pub fn evaluate(&self, variables: &Variables<'_>) -> Result<Value, EvaluateError> {
        let mut machine = self.machine(variables)?;
        let value = machine.evaluate(&self.0.root).map_err(|error| *error)?;
        let json = to_json(&value, &mut machine.budget, 0).map_err(|error| *error)?;
        machine.budget.verdict().map_err(|error| *error)?;
        Ok(json)
    }

    /// Evaluates to a boolean.
    ///
    /// ```
    /// # use proofhouse_expr::{EvaluateErrorKind, Program, Variables};
    /// let evaluate = |source| Program::compile(source).unwrap().evaluate_bool(&Variables::new());
    /// assert_eq!(evaluate("1 < 2"), Ok(true));
    /// assert_eq!(evaluate("1 + 2").unwrap_err().kind, EvaluateErrorKind::Type);
    /// ```
    ///
    /// # Errors
    ///
    /// See [`EvaluateErrorKind`]; a result of another type is
    /// [`EvaluateErrorKind::Type`].
    pub fn evaluate_bool(&self, variables: &Variables<'_>) -> Result<bool, EvaluateError> {
        let mut machine = self.machine(variables)?;
        let value = machine.evaluate(&self.0.root).map_err(|error| *error)?;
        machine.budget.verdict().map_err(|error| *error)?;
        match value {
            Val::Bool(bool) => Ok(bool),
            other => Err(*fault(
                EvaluateErrorKind::Type,
                format!("the result is a {}, not a bool", other.type_name()),
            )),
        }
    }

    fn machine<'a>(&'a self, variables: &'a Variables<'a>) -> Result<Machine<'a>, EvaluateError> {
        let namespaced = self.0.namespaced.iter().find(|(root, _)| {
            let root = &self.0.variables[*root];
            variables.bound(root).is_none()
        });
        let unsupported = self.0.unsupported.first();
        if let Some(name) = unsupported.or(namespaced.map(|(_, name)| name)) {
            return Err(*fault(
                EvaluateErrorKind::UnsupportedFunction,
                format!("unsupported function: {name}"),
            ));
        }
        Ok(Machine {
            names: &self.0.variables,
            limits: &self.0.limits,
            patterns: &self.0.patterns,
            variables,
            budget: StepBudget::new(&self.0.limits),
            slots: Vec::new(),
        })
    }
}
