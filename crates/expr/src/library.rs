//! The part of the standard library that is the `cel` crate's own: conversions,
//! times and durations. They take and give scalars, so nothing here can loop or
//! grow; what they read and build is paid by the caller.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, Expr, IdedExpr};
use cel::common::traits::{Adder, Comparer, Subtractor};
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelString, CelTimestamp, CelUInt,
};
use cel::common::value::{CowVal, Val as CelVal};
use cel::{Context, Env, ExecutionError};

use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::ops::no_overload;
use crate::value::Val;

/// One environment for every program and thread: it takes 27 µs to make.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Calls the conversion `name`.
pub(crate) fn convert<'a>(name: &'static str, args: &[Val<'a>]) -> Result<Val<'a>, BoxedError> {
    let scalars: Option<Vec<CowVal<'_, '_>>> = args.iter().map(to_cel).collect();
    let found = scalars.and_then(|scalars| {
        let overload = ENV.find_overload(name, &scalars)?;
        Some(overload(scalars))
    });
    match found {
        Some(Ok(result)) => from_cel(name, result.as_ref()),
        Some(Err(error)) => Err(translate(name, &error)),
        None => Err(no_overload(name, args)),
    }
}

/// Calls `name` on a time or a duration, with a time zone perhaps.
pub(crate) fn part<'a>(name: &'static str, args: &[Val<'a>]) -> Result<Val<'a>, BoxedError> {
    let (Some(Val::Timestamp(_) | Val::Duration(_)), 1..=2) = (args.first(), args.len()) else {
        return Err(no_overload(name, args));
    };
    // Member overloads are only to be had by evaluating a call.
    let ident = |name: &str| IdedExpr {
        id: 0,
        expr: Expr::Ident(name.to_owned()),
    };
    let mut context = Context::with_env(Arc::clone(&ENV));
    let names = ["of", "zone"];
    for (name, arg) in names.iter().zip(args) {
        let Some(scalar) = to_cel(arg) else {
            return Err(no_overload(name, args));
        };
        context.add_variable_as_val(*name, scalar.into_owned());
    }
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: Some(Box::new(ident(names[0]))),
            args: names[1..args.len()]
                .iter()
                .map(|name| ident(name))
                .collect(),
        }),
    };
    match cel::Value::resolve_val(&call, &context) {
        Ok(result) => from_cel(name, result.as_ref()),
        Err(error) => Err(translate(name, &error)),
    }
}

/// Adds or subtracts times and durations.
pub(crate) fn time_arithmetic<'a>(
    operator: &'static str,
    left: &Val<'a>,
    right: &Val<'a>,
) -> Result<Val<'a>, BoxedError> {
    let add = operator == "+";
    let result = match (left, right) {
        (Val::Timestamp(left), Val::Duration(right)) if add => left.add(right),
        (Val::Timestamp(left), Val::Duration(right)) => left.sub(right),
        (Val::Timestamp(left), Val::Timestamp(right)) if !add => left.sub(right),
        (Val::Duration(left), Val::Timestamp(right)) if add => right.add(left),
        (Val::Duration(left), Val::Duration(right)) if add => left.add(right),
        (Val::Duration(left), Val::Duration(right)) => left.sub(right),
        _ => return Err(no_overload(operator, &[left.clone(), right.clone()])),
    };
    match result {
        Ok(result) => from_cel(operator, result.as_ref()),
        Err(error) => Err(translate(operator, &error)),
    }
}

/// Compares two times, or two durations.
pub(crate) fn compare_times(left: &Val<'_>, right: &Val<'_>) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Val::Timestamp(left), Val::Timestamp(right)) => left.compare(right).ok(),
        (Val::Duration(left), Val::Duration(right)) => left.compare(right).ok(),
        _ => None,
    }
}

/// The text of a time or a duration, as in JSON.
pub(crate) fn time_text(value: &Val<'_>) -> Option<Rc<str>> {
    match convert("string", std::slice::from_ref(value)) {
        Ok(Val::OwnText(text)) => Some(text),
        _ => None,
    }
}

fn to_cel<'b>(value: &'b Val<'_>) -> Option<CowVal<'b, 'b>> {
    Some(match value {
        Val::Bool(bool) => CowVal::owned(CelBool::from(*bool)),
        Val::Int(int) => CowVal::owned(CelInt::from(*int)),
        Val::UInt(uint) => CowVal::owned(CelUInt::from(*uint)),
        Val::Double(double) => CowVal::owned(CelDouble::from(*double)),
        Val::Text(text) => CowVal::owned(CelString::from(*text)),
        Val::OwnText(text) => CowVal::owned(CelString::from(&**text)),
        Val::Bytes(bytes) => CowVal::owned(CelBytes::from(&**bytes)),
        Val::Timestamp(time) => CowVal::Borrowed(time),
        Val::Duration(duration) => CowVal::Borrowed(duration),
        _ => return None,
    })
}

fn from_cel<'a>(name: &str, value: &dyn CelVal) -> Result<Val<'a>, BoxedError> {
    if let Some(int) = value.downcast_ref::<CelInt>() {
        Ok(Val::Int(*int.inner()))
    } else if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        Ok(Val::OwnText(text.inner().into()))
    } else if let Some(uint) = value.downcast_ref::<CelUInt>() {
        Ok(Val::UInt(*uint.inner()))
    } else if let Some(double) = value.downcast_ref::<CelDouble>() {
        Ok(Val::Double(*double.inner()))
    } else if let Some(bool) = value.downcast_ref::<CelBool>() {
        Ok(Val::Bool(*bool.inner()))
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        Ok(Val::Bytes(bytes.inner().into()))
    } else if let Some(time) = value.downcast_ref::<CelTimestamp>() {
        Ok(Val::Timestamp(time.clone()))
    } else if let Some(duration) = value.downcast_ref::<CelDuration>() {
        Ok(Val::Duration(*duration))
    } else {
        Err(fault(
            EvaluateErrorKind::Runtime,
            format!("{name} gave a {}", value.get_type().name()),
        ))
    }
}

fn translate(name: &str, error: &ExecutionError) -> BoxedError {
    use EvaluateErrorKind as Kind;
    let (kind, message) = match error {
        ExecutionError::Overflow(..) => (Kind::Arithmetic, format!("{name} is out of range")),
        ExecutionError::FunctionError { message, .. } => {
            (Kind::Function, format!("{name}: {message}"))
        }
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..) => (Kind::Type, error.to_string()),
        error => (Kind::Runtime, error.to_string()),
    };
    fault(kind, message)
}
