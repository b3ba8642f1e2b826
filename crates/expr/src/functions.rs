//! The functions an expression can call: the standard ones by name, and those a
//! [`Compiler`](crate::Compiler) was given.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::FunctionError;

/// Declares the functions of the standard library: what each is called, and how it can be called.
macro_rules! standard {
    ($( $function:ident $name:literal $form:ident; )+) => {
        /// A function of the standard library.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Standard {
            $( $function, )+
            /// A conversion, `int(…)`: the `cel` crate's own overload of that name.
            Convert(&'static str),
            /// A part of a time or a duration, `t.getHours()`, likewise.
            Part(&'static str),
        }

        impl Standard {
            pub(crate) fn named(name: &str) -> Option<Self> {
                Some(match name {
                    $( $name => Self::$function, )+
                    _ => {
                        if let Some(name) = find(&CONVERSIONS, name) {
                            Self::Convert(name)
                        } else {
                            Self::Part(find(&PARTS, name)?)
                        }
                    }
                })
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $( Self::$function => $name, )+
                    Self::Convert(name) | Self::Part(name) => name,
                }
            }

            fn form(self) -> Form {
                match self {
                    $( Self::$function => Form::$form, )+
                    Self::Convert(_) => Form::Global,
                    Self::Part(_) => Form::Member,
                }
            }
        }
    };
}

standard! {
    Size "size" Both;
    Contains "contains" Member;
    StartsWith "startsWith" Member;
    EndsWith "endsWith" Member;
    Matches "matches" Both;
    Type "type" Global;
    Dyn "dyn" Global;
}

impl Standard {
    /// Whether `f(x)` is a way to call it.
    pub(crate) fn is_global(self) -> bool {
        self.form() != Form::Member
    }

    /// Whether `x.f(…)` may have so many arguments.
    pub(crate) fn takes(self, arguments: usize) -> bool {
        match self {
            Self::Size | Self::Type | Self::Dyn | Self::Convert(_) => arguments == 0,
            Self::Contains | Self::StartsWith | Self::EndsWith | Self::Matches => arguments == 1,
            Self::Part(_) => arguments <= 1,
        }
    }

    /// Whether `x.f()` is a way to call it.
    pub(crate) fn is_member(self) -> bool {
        self.form() != Form::Global
    }
}

const CONVERSIONS: [&str; 8] = [
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "bytes",
    "timestamp",
    "duration",
];

const PARTS: [&str; 10] = [
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
];

const TYPES: [&str; 12] = [
    "null_type",
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "type",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
];

fn find(names: &[&'static str], name: &str) -> Option<&'static str> {
    names.iter().find(|known| **known == name).copied()
}

/// The type of that name, for `type(x) == int`.
pub(crate) fn type_named(name: &str) -> Option<&'static str> {
    find(&TYPES, name)
}

/// How a registered function can be called.
///
/// ```
/// use proofhouse_expr::{Compiler, Form, ExprLimits, Variables};
///
/// let compiler = Compiler::new(ExprLimits::default())
///     .function("first", Form::Both, |args| Ok(args[0][0].clone()));
/// for source in ["first([1, 2])", "[1, 2].first()"] {
///     let program = compiler.compile(source).unwrap();
///     assert_eq!(program.evaluate(&Variables::new()).unwrap(), 1);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `f(x, y)`
    Global,
    /// `x.f(y)`, with `x` as the first argument.
    Member,
    /// Either.
    Both,
}

type FunctionBody = dyn Fn(&[Value]) -> Result<Value, FunctionError> + Send + Sync;

/// A registered function.
pub(crate) struct OwnFunction {
    pub(crate) name: String,
    form: Form,
    pub(crate) body: Box<FunctionBody>,
}

impl fmt::Debug for OwnFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnFunction")
            .field("name", &self.name)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// The registered functions; a later one of the same name and form wins.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnFunctions(Vec<Arc<OwnFunction>>);

impl OwnFunctions {
    pub(crate) fn add(&mut self, name: String, form: Form, body: Box<FunctionBody>) {
        self.0.push(Arc::new(OwnFunction { name, form, body }));
    }

    pub(crate) fn global(&self, name: &str) -> Option<Arc<OwnFunction>> {
        self.find(name, Form::Member)
    }

    pub(crate) fn member(&self, name: &str) -> Option<Arc<OwnFunction>> {
        self.find(name, Form::Global)
    }

    pub(crate) fn any_qualified(&self) -> bool {
        self.0.iter().any(|own| own.name.contains('.'))
    }

    fn find(&self, name: &str, but: Form) -> Option<Arc<OwnFunction>> {
        let mut newest_first = self.0.iter().rev();
        newest_first
            .find(|own| own.name == name && own.form != but)
            .cloned()
    }
}
