//! `serde` for the model, both ways: every part in the form that it has in a document.
//!
//! Reading goes through the decoder of documents, so that a part from JSON is held to what a part of a document is held
//! to, and its errors name the same codes and paths.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::model::{
    Action, Actor, Attack, CelExpression, Classification, Condition, Correlation, DateOrDateTime,
    Document, DurationText, Execution, ExpressionMatch, Extractor, FrameworkMapping, Indicator,
    MatchCondition, PatternMatch, Phase, Reference, RegexPattern, ResponseEntry, Selector,
    SemanticExamples, SemanticMatch, Severity, SynthesizeBlock, Trigger,
};
use crate::parse::Fragment;
use crate::serialize as form;

/// How many errors a message of `serde` tells.
const TOLD: usize = 5;

macro_rules! as_in_documents {
    ($($type:ty => $write:path),+ $(,)?) => {
        $(
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    $write(self).serialize(serializer)
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let value = Value::deserialize(deserializer)?;
                    Self::from_value(&value).map_err(|errors| {
                        let told: Vec<String> =
                            errors.iter().take(TOLD).map(ToString::to_string).collect();
                        D::Error::custom(told.join("; "))
                    })
                }
            }
        )+
    };
}

as_in_documents! {
    Document => form::document_value,
    Attack => form::attack_value,
    Correlation => form::correlation_value,
    Severity => form::severity_value,
    Classification => form::classification_value,
    FrameworkMapping => form::mapping_value,
    Reference => form::reference_value,
    Execution => form::execution_value,
    Actor => form::actor_value,
    Phase => form::phase_value,
    Action => form::action_value,
    Trigger => form::trigger_value,
    Extractor => form::extractor_value,
    ResponseEntry => form::response_entry_value,
    SynthesizeBlock => form::synthesize_value,
    Indicator => form::indicator_value,
    PatternMatch => form::pattern_value,
    ExpressionMatch => form::expression_value,
    SemanticMatch => form::semantic_value,
    SemanticExamples => form::examples_value,
    Condition => Condition::to_value,
    MatchCondition => MatchCondition::to_map,
}

macro_rules! as_text {
    ($($type:ty => $read:expr),+ $(,)?) => {
        $(
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.as_str())
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = String::deserialize(deserializer)?;
                    let read: fn(&str) -> Option<Self> = $read;
                    read(&text).ok_or_else(|| D::Error::custom("neither a date nor a date-time"))
                }
            }
        )+
    };
}

as_text! {
    RegexPattern => |text| Some(Self::new(text)),
    Selector => |text| Some(Self::new(text)),
    CelExpression => |text| Some(Self::new(text)),
    DurationText => |text| Some(Self::new(text)),
    DateOrDateTime => Self::parse,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AttackResult, AttackVerdict, MatchPredicate, Tier};
    use serde_json::json;

    #[test]
    fn a_document_goes_out_and_comes_back() {
        let text = include_str!("../examples/threat.yaml");
        let document = crate::parse(text).unwrap();
        let json = serde_json::to_string(&document).unwrap();
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document);
        let normal = crate::normalize(document);
        let json = serde_json::to_value(&normal).unwrap();
        assert_eq!(serde_json::from_value::<Document>(json).unwrap(), normal);
    }

    #[test]
    fn errors_name_codes_and_paths() {
        let error = serde_json::from_value::<Trigger>(json!({"evnt": "x"})).unwrap_err();
        assert_eq!(error.to_string(), "error[PH-009] evnt: unknown key `evnt`");
        assert!(serde_json::from_value::<Tier>(json!("huge")).is_err());
        assert!(serde_json::from_value::<DateOrDateTime>(json!("today")).is_err());
        assert!(serde_json::from_value::<MatchCondition>(json!("x")).is_err());
    }

    #[test]
    fn predicates_are_maps() {
        let json = json!({"name": "calc", "arguments.n": {"gt": 3, "lt": 9.5}});
        let predicate: MatchPredicate = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(predicate["name"], Condition::from("calc"));
        assert_eq!(serde_json::to_value(&predicate).unwrap(), json);
    }

    #[test]
    fn verdicts_come_back() {
        let verdict = crate::compute_verdict(&Attack::default(), &Default::default());
        let json = serde_json::to_string(&verdict).unwrap();
        let again: AttackVerdict = serde_json::from_str(&json).unwrap();
        assert_eq!(again, verdict);
        assert_eq!(again.result, AttackResult::Error);
    }
}
