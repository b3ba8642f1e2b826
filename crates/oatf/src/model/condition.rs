//! Conditions on values, and predicates: conditions on fields.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::RegexPattern;
use crate::primitives::shallow_copy;

/// A test of one value: equal to something, or satisfying operators.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// Deep equality.
    Equals(Value),
    /// Every operator present must hold.
    Operators(Box<MatchCondition>),
}

/// The condition of one predicate entry.
pub type MatchEntry = Condition;

/// Operators on a value; all that are present must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchCondition {
    /// Substring.
    pub contains: Option<String>,
    /// Prefix.
    pub starts_with: Option<String>,
    /// Suffix.
    pub ends_with: Option<String>,
    /// RE2 regular expression, found anywhere.
    pub regex: Option<RegexPattern>,
    /// Equal to one of these.
    pub any_of: Option<Vec<Value>>,
    /// Greater than.
    pub gt: Option<f64>,
    /// Less than.
    pub lt: Option<f64>,
    /// Greater or equal.
    pub gte: Option<f64>,
    /// Less or equal.
    pub lte: Option<f64>,
    /// Whether the field is there at all.
    pub exists: Option<bool>,
}

impl MatchCondition {
    /// The operators a condition may hold, in the order of the specification.
    pub const OPERATORS: &'static [&'static str] = &[
        "contains",
        "starts_with",
        "ends_with",
        "regex",
        "any_of",
        "gt",
        "lt",
        "gte",
        "lte",
        "exists",
    ];

    /// A condition on a substring; more operators can be set on it.
    ///
    /// ```
    /// use proofhouse_oatf::MatchCondition;
    /// let condition = MatchCondition { gt: Some(3.0), ..MatchCondition::contains("x") };
    /// assert_eq!(condition.contains.as_deref(), Some("x"));
    /// ```
    #[must_use]
    pub fn contains(part: impl Into<String>) -> Self {
        Self {
            contains: Some(part.into()),
            ..Self::default()
        }
    }

    /// A condition on a regular expression in RE2 syntax.
    #[must_use]
    pub fn regex(pattern: &str) -> Self {
        Self {
            regex: Some(RegexPattern::new(pattern)),
            ..Self::default()
        }
    }

    /// A condition on whether the field is there.
    #[must_use]
    pub fn exists(there: bool) -> Self {
        Self {
            exists: Some(there),
            ..Self::default()
        }
    }

    /// Whether `exists` is the only operator.
    #[must_use]
    pub fn only_exists(&self) -> bool {
        self.exists.is_some() && !self.inspects_value()
    }

    /// Whether no operator is present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exists.is_none() && !self.inspects_value()
    }

    /// Whether an operator other than `exists` is present.
    #[must_use]
    pub fn inspects_value(&self) -> bool {
        self.contains.is_some()
            || self.starts_with.is_some()
            || self.ends_with.is_some()
            || self.regex.is_some()
            || self.any_of.is_some()
            || self.gt.is_some()
            || self.lt.is_some()
            || self.gte.is_some()
            || self.lte.is_some()
    }
}

/// Conditions on fields, combined with AND: simple dot-paths and what must hold there, in the order written.
///
/// ```
/// use proofhouse_oatf::{Condition, MatchCondition, MatchPredicate};
/// let predicate = MatchPredicate::from_iter([
///     ("name".to_owned(), Condition::from("calc")),
///     ("arguments.path".to_owned(), MatchCondition::contains("passwd").into()),
/// ]);
/// assert_eq!(predicate["name"], Condition::from("calc"));
/// ```
pub type MatchPredicate = IndexMap<String, MatchEntry>;

impl Condition {
    /// The condition as it is written in a document. What is nested deeper than 512 levels is null.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Equals(value) => shallow_copy(value),
            Self::Operators(operators) => Value::Object(operators.to_map()),
        }
    }
}

impl MatchCondition {
    /// The operators as they are written in a document.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        put("contains", self.contains.clone().map(Value::from));
        put("starts_with", self.starts_with.clone().map(Value::from));
        put("ends_with", self.ends_with.clone().map(Value::from));
        put(
            "regex",
            self.regex.as_ref().map(|r| Value::from(r.as_str())),
        );
        let any_of = self.any_of.as_ref();
        put(
            "any_of",
            any_of.map(|values| values.iter().map(shallow_copy).collect()),
        );
        put("gt", self.gt.map(number));
        put("lt", self.lt.map(number));
        put("gte", self.gte.map(number));
        put("lte", self.lte.map(number));
        put("exists", self.exists.map(Value::from));
        map
    }
}

macro_rules! equals {
    ($($type:ty),+) => {
        $(
            /// Equality with a value.
            impl From<$type> for Condition {
                fn from(value: $type) -> Self {
                    Self::Equals(value.into())
                }
            }
        )+
    };
}

equals!(&str, String, bool, i32, i64, u64, f64, Value);

impl From<MatchCondition> for Condition {
    fn from(operators: MatchCondition) -> Self {
        Self::Operators(Box::new(operators))
    }
}

/// A predicate as it is written in a document.
pub(crate) fn predicate_value(predicate: &MatchPredicate) -> Value {
    let entries = predicate.iter();
    Value::Object(
        entries
            .map(|(path, entry)| (path.clone(), entry.to_value()))
            .collect(),
    )
}

/// Whole numbers are written without a fraction, as their author most likely did.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        let whole = value as i64;
        Value::from(whole)
    } else {
        Value::from(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn knows_when_exists_stands_alone() {
        let mut condition = MatchCondition {
            exists: Some(true),
            ..MatchCondition::default()
        };
        assert!(condition.only_exists() && !condition.is_empty());
        condition.lte = Some(1.0);
        assert!(!condition.only_exists());
        assert!(MatchCondition::default().is_empty());
        assert!(!MatchCondition::default().only_exists());
    }

    #[test]
    fn writes_operators_in_order_and_whole_numbers_whole() {
        let condition = MatchCondition {
            lte: Some(2.5),
            gt: Some(10.0),
            contains: Some("x".into()),
            ..MatchCondition::default()
        };
        assert_eq!(
            Value::Object(condition.to_map()).to_string(),
            json!({"contains": "x", "gt": 10, "lte": 2.5}).to_string()
        );
        assert_eq!(number(1e300), json!(1e300));
    }
}
