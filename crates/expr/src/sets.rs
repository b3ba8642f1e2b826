//! Sets: names that stand for any one of several values.
//!
//! A filter says `event.owner == parameters.owner`, and the parameter has had several values. Bound with
//! [`Variables::bind_sets`](crate::Variables::bind_sets), `==` with it is membership, `!=` is
//! non-membership, and a test such as `startsWith` or `<` holds if it holds for one of the values. Where one
//! value is needed, as in `size` or `+`, a set of one value is that value, and any other is an error.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::Value as Json;

use crate::budget::StepBudget;
use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::ops;
use crate::value::Val;

/// Sets by name.
///
/// ```
/// use proofhouse_expr::{Program, SetKind, Sets, Variables};
/// use serde_json::json;
///
/// let mut sets = Sets::default();
/// sets.insert("owner", SetKind::Text, [json!("acme"), json!("umbrella")]);
/// let event = json!({"owner": "umbrella"});
/// let mut variables = Variables::new();
/// variables.bind("event", &event).bind_sets("parameters", &sets);
/// let program = Program::compile("event.owner == parameters.owner").unwrap();
/// assert!(program.evaluate_bool(&variables).unwrap());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sets {
    entries: BTreeMap<String, Set>,
}

/// The type that values are turned into before they are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SetKind {
    /// None: `1` and `'1'` are different.
    #[default]
    Any,
    /// Texts: `1` is `'1'`.
    Text,
    /// Whole numbers: `'1'` is `1`.
    Integer,
    /// Numbers: `'1.5'` is `1.5`.
    Number,
    /// Truth values: `'true'` is `true`.
    Bool,
}

/// The values of one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Set {
    kind: SetKind,
    members: Vec<Json>,
    texts: HashSet<Box<str>>,
    numbers: HashSet<NumberKey>,
    truths: [bool; 2],
    null: bool,
    /// Lists and maps, which are compared one by one.
    composites: Vec<Json>,
}

/// A number by its value: a whole one, or the bits of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NumberKey {
    Whole(i128),
    Bits(u64),
}

enum SetScalar<'v> {
    Text(Cow<'v, str>),
    Number(NumberKey),
    Bool(bool),
    Null,
}

impl Sets {
    /// Sets the values of a name. Values that cannot be of the kind are members of nothing.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        kind: SetKind,
        values: impl IntoIterator<Item = Json>,
    ) {
        let mut set = Set {
            kind,
            ..Set::default()
        };
        for value in values {
            set.add(value);
        }
        self.entries.insert(name.into(), set);
    }

    /// Whether a name has no values.
    #[must_use]
    pub fn is_empty(&self, name: &str) -> bool {
        self.get(name).is_none()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Set> {
        let set = self.entries.get(name)?;
        (!set.members.is_empty()).then_some(set)
    }

    /// The set of a name. That there is none is no error that `||` may drop: an expression that names a set
    /// without values has no result.
    pub(crate) fn require(&self, name: &str) -> Result<&Set, BoxedError> {
        self.get(name).ok_or_else(|| {
            let message = format!("`{name}` has no values");
            fault(EvaluateErrorKind::EmptySet, message)
        })
    }
}

impl Set {
    fn add(&mut self, value: Json) {
        if matches!(value, Json::Array(_) | Json::Object(_)) {
            self.composites.push(value.clone());
        } else {
            match coerce(self.kind, &Val::from_json(&value)) {
                Some(SetScalar::Text(text)) => {
                    self.texts.insert(text.as_ref().into());
                }
                Some(SetScalar::Number(number)) => {
                    self.numbers.insert(number);
                }
                Some(SetScalar::Bool(bool)) => self.truths[usize::from(bool)] = true,
                Some(SetScalar::Null) => self.null = true,
                None => return,
            }
        }
        self.members.push(value);
    }

    /// Whether a value is one of these.
    pub(crate) fn has(
        &self,
        value: &Val<'_>,
        budget: &mut StepBudget<'_>,
    ) -> Result<bool, BoxedError> {
        if let Val::Set(other) = value {
            for member in &other.members {
                budget.steps(1)?;
                if self.has(&Val::from_json(member), budget)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if value.as_list().is_some() || matches!(value, Val::JsonMap(_) | Val::Map(_)) {
            for composite in &self.composites {
                budget.steps(1)?;
                if ops::equals(&Val::from_json(composite), value, budget, 0)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        budget.scan(value.as_text().map_or(8, str::len))?;
        Ok(match coerce(self.kind, value) {
            Some(SetScalar::Text(text)) => self.texts.contains(&*text),
            Some(SetScalar::Number(number)) => self.numbers.contains(&number),
            Some(SetScalar::Bool(bool)) => self.truths[usize::from(bool)],
            Some(SetScalar::Null) => self.null,
            None => false,
        })
    }

    /// Whether a value is one of these, or in one of these that is a list.
    pub(crate) fn holds(
        &self,
        value: &Val<'_>,
        budget: &mut StepBudget<'_>,
    ) -> Result<bool, BoxedError> {
        if self.has(value, budget)? {
            return Ok(true);
        }
        for composite in &self.composites {
            if let Json::Array(items) = composite {
                for item in items {
                    budget.steps(1)?;
                    if ops::equals(&Val::from_json(item), value, budget, 0)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Whether a test holds for one of the values. A test that cannot be made counts as one that does not
    /// hold, unless it can be made for none of them.
    pub(crate) fn any<'s>(
        &'s self,
        budget: &mut StepBudget<'_>,
        mut test: impl FnMut(&Val<'s>, &mut StepBudget<'_>) -> Result<bool, BoxedError>,
    ) -> Result<bool, BoxedError> {
        let (mut made, mut problem) = (false, None);
        for member in &self.members {
            budget.steps(1)?;
            match test(&Val::from_json(member), budget) {
                Ok(true) => return Ok(true),
                Ok(false) => made = true,
                Err(error) if error.kind == EvaluateErrorKind::Budget => return Err(error),
                Err(error) => problem = Some(error),
            }
        }
        match problem {
            Some(problem) if !made => Err(problem),
            _ => Ok(false),
        }
    }

    /// The value, where there is just one.
    pub(crate) fn single(&self) -> Result<Val<'_>, BoxedError> {
        match self.members.as_slice() {
            [one] => Ok(Val::from_json(one)),
            several => Err(fault(
                EvaluateErrorKind::Type,
                format!("one value is needed here, and there are {}", several.len()),
            )),
        }
    }
}

/// A scalar as the kind wants it; nothing where it cannot be.
fn coerce<'v>(kind: SetKind, value: &'v Val<'_>) -> Option<SetScalar<'v>> {
    let text = value.as_text();
    match kind {
        SetKind::Any => Some(match value {
            Val::Null => SetScalar::Null,
            Val::Bool(bool) => SetScalar::Bool(*bool),
            _ => match text {
                Some(text) => SetScalar::Text(Cow::Borrowed(text)),
                None => SetScalar::Number(number(value)?),
            },
        }),
        SetKind::Text => Some(SetScalar::Text(match (value, text) {
            (_, Some(text)) => Cow::Borrowed(text),
            (Val::Bool(bool), _) => Cow::Owned(bool.to_string()),
            _ => Cow::Owned(match number(value)? {
                NumberKey::Whole(whole) => whole.to_string(),
                NumberKey::Bits(bits) => f64::from_bits(bits).to_string(),
            }),
        })),
        SetKind::Integer => Some(SetScalar::Number(match text {
            Some(text) => NumberKey::Whole(text.parse().ok()?),
            None => number(value)?,
        })),
        SetKind::Number => Some(SetScalar::Number(match text {
            Some(text) => match text.parse() {
                Ok(whole) => NumberKey::Whole(whole),
                Err(_) => number(&Val::Double(text.parse().ok()?))?,
            },
            None => number(value)?,
        })),
        SetKind::Bool => match (value, text) {
            (Val::Bool(bool), _) => Some(SetScalar::Bool(*bool)),
            (_, Some("true")) => Some(SetScalar::Bool(true)),
            (_, Some("false")) => Some(SetScalar::Bool(false)),
            _ => None,
        },
    }
}

fn number(value: &Val<'_>) -> Option<NumberKey> {
    /// Beyond this, doubles leave out whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Val::Int(int) => Some(NumberKey::Whole(i128::from(*int))),
        Val::UInt(uint) => Some(NumberKey::Whole(i128::from(*uint))),
        Val::Double(double) if double.trunc() == *double && double.abs() <= EXACT => {
            Some(NumberKey::Whole(*double as i128))
        }
        Val::Double(double) if double.is_finite() => Some(NumberKey::Bits(double.to_bits())),
        _ => None,
    }
}
