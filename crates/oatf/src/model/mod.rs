//! The abstract types of the format, as an author writes them.
//!
//! Field names follow the specification. A type holds what is syntactically there; whether it makes
//! sense is for [`validate`](crate::validate), and what is only implied is for
//! [`normalize`](crate::normalize).

mod attack;
mod condition;
mod enums;
mod execution;
mod indicator;
mod lazy;
mod open;
mod time;
mod values;
mod verdict;

pub use attack::{
    Attack, Classification, Correlation, Document, FrameworkMapping, Reference, Severity,
};
pub(crate) use condition::predicate_value;
pub use condition::{Condition, MatchCondition, MatchEntry, MatchPredicate};
pub(crate) use enums::closed_enum;
pub use enums::{
    AttackResult, Category, CorrelationLogic, Direction, ElicitationMode, ExtractorSource,
    ExtractorType, Impact, IndicatorMethod, IndicatorResult, LogLevel, Relationship,
    SemanticIntentClass, SeverityLevel, Status, Tier, UnknownVariant,
};
pub use execution::{
    Action, ActionKind, Actor, AdvanceReason, Execution, Extractor, Phase, ProtocolEvent,
    ResponseEntry, SynthesizeBlock, Trigger, TriggerResult, TriggerState,
};
pub use indicator::{
    CelExpression, ExpressionMatch, Indicator, PatternMatch, SemanticExamples, SemanticMatch,
};
pub use lazy::{JsonPathError, RegexPattern, Selector};
pub use open::{Framework, Mode, OtherName, Protocol, Surface};
pub use time::{DateError, DateOrDateTime, DurationText};
pub use verdict::{AttackVerdict, EvaluationSummary, IndicatorVerdict};

/// Extension fields: keys that start with `x-`, kept as they are in the order they were written.
pub type Extensions = serde_json::Map<String, serde_json::Value>;
