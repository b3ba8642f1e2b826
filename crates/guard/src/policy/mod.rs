//! The policy: what a person wrote down about tools, flows and rules, read with places and compiled once.

mod fields;
mod read;
mod rule;

use std::time::Duration;

use proofhouse_source::ReadLimits;

pub use fields::{json_schema, reference};
pub use read::{is_meant_by, read};
pub use rule::{PolicyRule, RuleFailure};

use crate::finding::GuardDecision;
use crate::taint::{TaintLabel, TaintLimits};

/// The policy that counts where none is named.
pub const STOCK: &str = include_str!("stock.yaml");

/// How large a policy may be.
pub const LIMITS: ReadLimits = ReadLimits {
    max_bytes: 1 << 20,
    max_depth: 32,
    max_nodes: 50_000,
};

/// What expressions call the values that arguments had before.
pub const ALLOW_LIST: &str = "allow_list";

const FIRST_USE: &[&str] = &["record", "block"];
const ON_CHANGE: &[&str] = &["block", "ask", "log"];
const ON_ERROR: &[&str] = &["block", "allow"];
const RULE_SCOPES: &[&str] = &["call", "result"];
const LABELS: &[&str] = &["untrusted", "secret", "trusted"];
const RULE_DECISIONS: &[&str] = &["allow", "log", "redact", "ask", "block"];

/// The codes of findings about a policy, and what each means.
pub const CODES: &[(&str, &str)] = &[
    (
        "GP-001",
        "The text is not YAML that can be read, or is larger than it may be.",
    ),
    ("GP-002", "A value has the wrong type."),
    ("GP-003", "A key is unknown."),
    ("GP-004", "A key that is needed is missing."),
    (
        "GP-005",
        "A value is not one of those that are known, or out of range.",
    ),
    (
        "GP-006",
        "A key has nothing behind it and counts as absent.",
    ),
    (
        "GP-007",
        "An expression or a pattern cannot be compiled, or names what does not exist.",
    ),
    (
        "GP-008",
        "A rule cannot do what it says: it has neither `when` nor `pattern`, asks about a result, or redacts a result without a pattern.",
    ),
    ("GP-009", "Two rules have one id."),
];

/// The codes that are never errors.
pub const WARNING_CODES: &[&str] = &["GP-006"];

/// What is allowed.
#[derive(Debug)]
pub struct Policy {
    /// What it is called.
    pub name: Option<String>,
    /// What happens when definitions change.
    pub pins: PinPolicy,
    /// What tools return and do.
    pub tools: Vec<ToolLabel>,
    /// How values are followed.
    pub taint: TaintLimits,
    /// The rules, in order.
    pub rules: Vec<PolicyRule>,
    /// How long an answer is waited for.
    pub ask_timeout: Duration,
    /// Threat documents that watch.
    pub indicators: IndicatorPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            name: None,
            pins: PinPolicy::default(),
            tools: Vec::new(),
            taint: TaintLimits::default(),
            rules: Vec::new(),
            ask_timeout: Duration::from_secs(120),
            indicators: IndicatorPolicy::default(),
        }
    }
}

impl Policy {
    /// The policy that counts where none is named.
    #[must_use]
    pub fn stock() -> Self {
        read(STOCK).0
    }

    /// Whether an expression of a rule names a variable.
    #[must_use]
    pub fn sees(&self, variable: &str) -> bool {
        let mut programs = self.rules.iter().filter_map(|rule| rule.when.as_ref());
        programs.any(|program| program.variables().any(|name| name == variable))
    }

    /// What is known of a tool.
    #[must_use]
    pub fn label(&self, server: &str, tool: &str) -> Option<&ToolLabel> {
        self.tools.iter().find(|label| label.fits(server, tool))
    }
}

/// What happens to definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinPolicy {
    /// Whether servers that the lock does not have are recorded, not withheld.
    pub records_first_use: bool,
    /// Definitions that differ.
    pub on_change: GuardDecision,
    /// Definitions with hidden text.
    pub on_hidden: GuardDecision,
    /// Names that look like others.
    pub on_lookalike: GuardDecision,
    /// Names that another server has.
    pub on_shadow: GuardDecision,
}

impl PinPolicy {
    /// Whether it asks about anything.
    #[must_use]
    pub fn asks(&self) -> bool {
        let all = [
            self.on_change,
            self.on_hidden,
            self.on_lookalike,
            self.on_shadow,
        ];
        all.contains(&GuardDecision::Ask)
    }
}

impl Default for PinPolicy {
    fn default() -> Self {
        Self {
            records_first_use: true,
            on_change: GuardDecision::Block,
            on_hidden: GuardDecision::Block,
            on_lookalike: GuardDecision::Block,
            on_shadow: GuardDecision::Log,
        }
    }
}

/// What some tools return and do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolLabel {
    /// Names of tools.
    pub tools: Vec<String>,
    /// The server.
    pub server: Option<String>,
    /// What its results are.
    pub returns: Option<TaintLabel>,
    /// The fields of its structured results that are free text; without it, every field is.
    pub free_text: Option<Vec<String>>,
    /// What calling it does.
    pub effects: Vec<String>,
    /// The arguments that decide about the effect; all of them where there are none.
    pub decides: Vec<String>,
}

impl ToolLabel {
    fn fits(&self, server: &str, tool: &str) -> bool {
        let of_server = self.server.as_ref();
        of_server.is_none_or(|pattern| fits(pattern, server))
            && self.tools.iter().any(|pattern| fits(pattern, tool))
    }

    /// Whether an argument decides about the effect, by its path.
    #[must_use]
    pub fn is_decided_by(&self, path: &str) -> bool {
        let first = path.split(['.', '[']).next().unwrap_or(path);
        self.decides.is_empty()
            || (self.decides.iter()).any(|pattern| fits(pattern, first) || fits(pattern, path))
    }
}

/// Threat documents that watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndicatorPolicy {
    /// Whether the guard's own documents do not watch.
    pub is_without_pack: bool,
    /// Files and directories.
    pub documents: Vec<String>,
    /// Indicators that may block.
    pub enforce: Vec<EnforcedIndicator>,
}

/// An indicator that may block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcedIndicator {
    /// Its id.
    pub indicator: String,
    /// The document's file name.
    pub document: Option<String>,
    /// The trace of a control.
    pub control: String,
}

/// Whether a name fits a pattern in which `*` stands for any letters.
///
/// ```
/// use proofhouse_guard::policy::fits;
///
/// assert!(fits("get_*_by_*", "get_user_by_id") && fits("*", "") && fits("a", "a"));
/// assert!(!fits("get_*", "forget_x") && !fits("a*b", "ab_c"));
/// ```
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (between, last) = match rest.rsplit_once('*') {
        Some((between, last)) => (Some(between), last),
        None => (None, rest),
    };
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    for part in between.into_iter().flat_map(|between| between.split('*')) {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stock_policy_is_valid() {
        let (policy, findings) = read(STOCK);
        assert_eq!(findings, []);
        assert!(!policy.rules.is_empty());
    }

    #[test]
    fn every_code_is_listed() {
        for code in WARNING_CODES {
            assert!(CODES.iter().any(|(known, _)| known == code));
        }
    }
}
