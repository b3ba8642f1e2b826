//! The variables of one evaluation.

use std::borrow::Cow;

use serde_json::Value;

use crate::sets::Sets;

/// Names bound to JSON values, borrowed or owned. Binding copies nothing.
///
/// ```
/// use proofhouse_expr::{Program, Variables};
/// use serde_json::json;
///
/// let message = json!({"name": "evil-tool"});
/// let mut variables = Variables::new();
/// variables.bind("message", &message);
/// variables.bind_owned("prefix", json!("evil"));
/// let program = Program::compile("message.name.startsWith(prefix)").unwrap();
/// assert!(program.evaluate_bool(&variables).unwrap());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Variables<'a> {
    /// A handful at most, so a list is faster than a map.
    bindings: Vec<(Cow<'a, str>, BoundValue<'a>)>,
}

#[derive(Debug, Clone)]
pub(crate) enum BoundValue<'a> {
    Json(Cow<'a, Value>),
    Sets(&'a Sets),
}

impl<'a> Variables<'a> {
    /// No variables.
    ///
    /// ```
    /// # use proofhouse_expr::{Program, Variables};
    /// assert_eq!(Program::compile("1 + 1").unwrap().evaluate(&Variables::new()).unwrap(), 2);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds `name` to a borrowed value; a later binding of a name wins.
    ///
    /// ```
    /// # use proofhouse_expr::{Program, Variables};
    /// let (one, two) = (serde_json::json!(1), serde_json::json!(2));
    /// let mut variables = Variables::new();
    /// variables.bind("x", &one).bind("x", &two);
    /// assert_eq!(Program::compile("x").unwrap().evaluate(&variables).unwrap(), 2);
    /// ```
    pub fn bind(&mut self, name: &'a str, value: &'a Value) -> &mut Self {
        self.bindings
            .push((Cow::Borrowed(name), BoundValue::Json(Cow::Borrowed(value))));
        self
    }

    /// Binds `name` to a value given away.
    ///
    /// ```
    /// # use proofhouse_expr::{Program, Variables};
    /// let mut variables = Variables::new();
    /// variables.bind_owned(format!("x{}", 1), serde_json::json!([1, 2]));
    /// assert_eq!(Program::compile("size(x1)").unwrap().evaluate(&variables).unwrap(), 2);
    /// ```
    pub fn bind_owned(&mut self, name: impl Into<String>, value: Value) -> &mut Self {
        self.bindings
            .push((Cow::Owned(name.into()), BoundValue::Json(Cow::Owned(value))));
        self
    }

    /// Binds `name` to sets: `name.x` stands for any one of the values of `x`, see [`Sets`].
    ///
    /// ```
    /// # use proofhouse_expr::{Program, SetKind, Sets, Variables};
    /// let mut sets = Sets::default();
    /// sets.insert("n", SetKind::Integer, [1.into(), 2.into()]);
    /// let mut variables = Variables::new();
    /// variables.bind_sets("known", &sets);
    /// assert!(Program::compile("2 == known.n && 3 != known.n").unwrap().evaluate_bool(&variables).unwrap());
    /// ```
    pub fn bind_sets(&mut self, name: &'a str, sets: &'a Sets) -> &mut Self {
        self.bindings
            .push((Cow::Borrowed(name), BoundValue::Sets(sets)));
        self
    }

    /// The value bound to `name`; nothing for sets.
    ///
    /// ```
    /// # use proofhouse_expr::Variables;
    /// let mut variables = Variables::new();
    /// variables.bind_owned("x", serde_json::json!(1));
    /// assert_eq!(variables.get("x"), Some(&serde_json::json!(1)));
    /// assert_eq!(variables.get("y"), None);
    /// ```
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self.bound(name)? {
            BoundValue::Json(value) => Some(value.as_ref()),
            BoundValue::Sets(_) => None,
        }
    }

    pub(crate) fn bound(&self, name: &str) -> Option<&BoundValue<'a>> {
        let mut newest_first = self.bindings.iter().rev();
        newest_first
            .find(|(bound, _)| bound == name)
            .map(|(_, value)| value)
    }
}

/// Collects borrowed bindings.
///
/// ```
/// # use proofhouse_expr::{Program, Variables};
/// let message = serde_json::json!({"n": 1});
/// let variables = Variables::from_iter([("message", &message)]);
/// assert_eq!(Program::compile("message.n + 1").unwrap().evaluate(&variables).unwrap(), 2);
/// ```
impl<'a> FromIterator<(&'a str, &'a Value)> for Variables<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a Value)>>(bindings: I) -> Self {
        let mut variables = Self::new();
        for (name, value) in bindings {
            variables.bind(name, value);
        }
        variables
    }
}
