//! Reads a policy: everything that is wrong is found in one pass, with its place.

use std::collections::BTreeSet;
use std::time::Duration;

use proofhouse_expr::re2::Re2Pattern;
use proofhouse_expr::{Compiler, ExprLimits, Program};
use proofhouse_source::format::{DurationError, Durations, FileFormat, FormatReader, Wording};
use proofhouse_source::{Diagnostic, DocumentWalk, NodeRef, YamlScalar, did_you_mean};

use super::{
    ALLOW_LIST, EnforcedIndicator, IndicatorPolicy, LIMITS, PinPolicy, Policy, PolicyRule,
    ToolLabel, fields,
};
use crate::finding::GuardDecision;
use crate::taint::{TaintLabel, TaintLimits};

/// What expressions may name.
const CALL_VARIABLES: &[&str] = &["call", "taint", "history", ALLOW_LIST];
const RESULT_VARIABLES: &[&str] = &["call", "taint", "history", ALLOW_LIST, "result"];

/// Whether a text is meant to be a policy: it says so at the top level.
#[must_use]
pub fn is_meant_by(text: &str) -> bool {
    text.lines().any(|line| {
        let rest = line.trim_start_matches('\u{feff}').strip_prefix("policy");
        rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
    })
}

/// Reads a policy. What has an error is left out; who finds an error among the findings should not use it.
///
/// ```
/// use proofhouse_guard::policy;
///
/// let text = "policy: 1\nrules:\n  - {id: no-mail, when: call.tool == 'send', decision: blokc, on_error: block}\n";
/// let (_, findings) = policy::read(text);
/// assert_eq!(findings[0].code, "GP-005");
/// assert_eq!(findings[0].help.as_deref(), Some("did you mean `block`?"));
/// ```
#[must_use]
pub fn read(text: &str) -> (Policy, Vec<Diagnostic>) {
    let format = FileFormat {
        limits: &LIMITS,
        unreadable: "GP-001",
        may_be_empty: false,
    };
    let (policy, findings) = format.read(text, |source| {
        let mut reader = PolicyReader(DocumentWalk::new(source));
        let policy = reader.root(source.root());
        (policy, reader.0.into_findings())
    });
    (policy.unwrap_or_default(), findings)
}

struct PolicyReader<'s>(DocumentWalk<'s>);

impl<'s> FormatReader<'s> for PolicyReader<'s> {
    const WORDING: Wording = Wording {
        whole: "the policy",
        text: "a text",
        list: "a list",
        mismatch: "GP-002",
        unknown_key: "GP-003",
        empty: "GP-006",
        refused: "GP-005",
        shows_values: true,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.0
    }
}

impl<'s> PolicyReader<'s> {
    fn root(&mut self, node: NodeRef<'s>) -> Option<Policy> {
        let mut fields = self.fields(node, &fields::POLICY)?;
        fields.whole::<u64>("policy");
        let name = fields.text("name");
        let pins = fields.read("pins", Self::pins).unwrap_or_default();
        let tools = fields.list("tools", Self::tool).unwrap_or_default();
        let taint = fields.read("taint", Self::taint).unwrap_or_default();
        let mut ids = BTreeSet::new();
        let rules = fields.list("rules", |reader, node| {
            let rule = reader.rule(node)?;
            if !ids.insert(rule.id.clone()) {
                let message = format!("another rule is called `{}`", rule.id);
                reader.0.error(
                    "GP-009",
                    message,
                    Some("give it a name of its own".to_owned()),
                );
            }
            Some(rule)
        });
        let ask_timeout = fields.read("asks", Self::asks);
        let indicators = fields
            .read("indicators", Self::indicators)
            .unwrap_or_default();
        Some(Policy {
            name,
            pins,
            tools,
            taint,
            rules: rules.unwrap_or_default(),
            ask_timeout: ask_timeout.unwrap_or(Policy::default().ask_timeout),
            indicators,
        })
    }

    fn pins(&mut self, node: NodeRef<'s>) -> Option<PinPolicy> {
        let default = PinPolicy::default();
        let mut fields = self.fields(node, &fields::PINS)?;
        let first_use = fields.word("first_use");
        let mut decision = |key, default| fields.word(key).and_then(decision_of).unwrap_or(default);
        Some(PinPolicy {
            records_first_use: first_use != Some("block"),
            on_change: decision("on_change", default.on_change),
            on_hidden: decision("on_hidden", default.on_hidden),
            on_lookalike: decision("on_lookalike", default.on_lookalike),
            on_shadow: decision("on_shadow", default.on_shadow),
        })
    }

    fn tool(&mut self, node: NodeRef<'s>) -> Option<ToolLabel> {
        let mut fields = self.fields(node, &fields::TOOL)?;
        let tools = fields.read("tool", |reader, node| {
            Some(reader.one_or_more(node, Self::text))
        });
        let server = fields.text("server");
        let returns = fields.word("returns").and_then(|word| {
            let mut labels = TaintLabel::ALL.iter().copied();
            labels.find(|label| label.as_str() == word)
        });
        let free_text = fields.texts("free_text");
        let effects = fields.texts("effects").unwrap_or_default();
        let decides = fields.texts("decides").unwrap_or_default();
        Some(ToolLabel {
            tools: tools?,
            server,
            returns,
            free_text,
            effects,
            decides,
        })
    }

    fn taint(&mut self, node: NodeRef<'s>) -> Option<TaintLimits> {
        let default = TaintLimits::default();
        let mut fields = self.fields(node, &fields::TAINT)?;
        let mut number = |key, default| fields.whole(key).unwrap_or(default);
        Some(TaintLimits {
            budget: number("budget", default.budget),
            min_value: number("min_value", default.min_value),
            min_part: number("min_part", default.min_part),
        })
    }

    fn rule(&mut self, node: NodeRef<'s>) -> Option<PolicyRule> {
        let mut fields = self.fields(node, &fields::RULE)?;
        let id = fields.text("id");
        let scope = fields.word("on");
        let is_about_results = scope == Some("result");
        let (has_when, has_pattern) = (fields.has("when"), fields.has("pattern"));
        let when = fields.read("when", |reader, node| {
            reader.expression(node, is_about_results)
        });
        let pattern = fields.read("pattern", Self::pattern);
        let decision = fields.word("decision").and_then(decision_of);
        let message = fields.text("message");
        let on_error = fields.word("on_error");
        let wrong = if !has_when && !has_pattern {
            Some((
                "the rule has neither `when` nor `pattern`, so it would match everything",
                "write `when: true` if it should",
            ))
        } else if is_about_results && decision == Some(GuardDecision::Ask) {
            Some((
                "nobody can be asked about a result",
                "ask about calls, and block or redact results",
            ))
        } else if is_about_results && decision == Some(GuardDecision::Redact) && !has_pattern {
            Some((
                "`redact` needs a `pattern` that says what is taken out of a result",
                "add `pattern`",
            ))
        } else {
            None
        };
        if let Some((message, help)) = wrong {
            self.0
                .error("GP-008", message.to_owned(), Some(help.to_owned()));
            return None;
        }
        // One that cannot be compiled was told.
        if (has_when && when.is_none()) || (has_pattern && pattern.is_none()) {
            return None;
        }
        Some(PolicyRule {
            id: id?,
            is_about_results,
            when,
            pattern,
            decision: decision?,
            message,
            fails_open: on_error? == "allow",
        })
    }

    fn expression(&mut self, node: NodeRef<'s>, is_about_results: bool) -> Option<Program> {
        let text = match node.scalar() {
            // `when: true` is an expression, too.
            Some(YamlScalar::Bool(value)) => value.to_string(),
            _ => self.text(node)?,
        };
        let compiler = Compiler::new(ExprLimits::default()).extended();
        let program = match compiler.compile(&text) {
            Ok(program) => program,
            Err(error) => {
                let message = format!("the expression cannot be compiled: {error}");
                self.0.error("GP-007", message, None);
                return None;
            }
        };
        let known = if is_about_results {
            RESULT_VARIABLES
        } else {
            CALL_VARIABLES
        };
        let unknown = program.variables().find(|name| !known.contains(name));
        let function = program.unsupported_functions().next();
        let (what, name, words) = match (unknown, function) {
            (Some(name), _) => ("variable", name, known),
            (None, Some(name)) => ("function", name, &[][..]),
            (None, None) => {
                if let Some(error) = program.pattern_errors().first() {
                    self.0.error("GP-007", error.to_string(), None);
                    return None;
                }
                return Some(program);
            }
        };
        let message = format!("there is no {what} `{name}` here");
        let near = did_you_mean(name, words.iter().copied());
        let help = match near {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if words.is_empty() => None,
            None => Some(format!("use one of: {}", words.join(", "))),
        };
        self.0.error("GP-007", message, help);
        None
    }

    fn pattern(&mut self, node: NodeRef<'s>) -> Option<Re2Pattern> {
        let text = self.text(node)?;
        match Re2Pattern::compile(&text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let message = format!("the pattern cannot be compiled: {error}");
                self.0.error("GP-007", message, None);
                None
            }
        }
    }

    fn asks(&mut self, node: NodeRef<'s>) -> Option<Duration> {
        let mut fields = self.fields(node, &fields::ASKS)?;
        fields.read("timeout", |reader, node| {
            let text = reader.text(node)?;
            let problem = match Durations::POSITIVE.parse(&text) {
                Ok(duration) => return Some(duration),
                Err(DurationError::Malformed) => "is no duration",
                Err(DurationError::Zero) => "must be greater than zero",
            };
            let message = format!("{} {problem}", reader.place());
            reader.0.error(
                "GP-005",
                message,
                Some("write for example `30s` or `2m`".to_owned()),
            );
            None
        })
    }

    fn indicators(&mut self, node: NodeRef<'s>) -> Option<IndicatorPolicy> {
        let mut fields = self.fields(node, &fields::INDICATORS)?;
        let is_without_pack = fields.flag("pack") == Some(false);
        let documents = fields.texts("documents");
        let enforce = fields.list("enforce", |reader, node| {
            let mut fields = reader.fields(node, &fields::ENFORCE)?;
            let indicator = fields.text("indicator");
            let document = fields.text("document");
            let control = fields.text("control");
            Some(EnforcedIndicator {
                indicator: indicator?,
                document,
                control: control?,
            })
        });
        Some(IndicatorPolicy {
            is_without_pack,
            documents: documents.unwrap_or_default(),
            enforce: enforce.unwrap_or_default(),
        })
    }
}

fn decision_of(word: &str) -> Option<GuardDecision> {
    let mut all = GuardDecision::ALL.iter().copied();
    all.find(|decision| decision.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            ("a: [\n", "GP-001"),
            ("policy: 2\n", "GP-005 1:9"),
            ("name: x\n", "GP-004 1:1"),
            ("policy: 1\nrulez: []\n", "GP-003 2:1"),
            ("policy: 1\nrules: 3\n", "GP-002 2:8"),
            (
                "policy: 1\nrules:\n  - {id: a, decision: block, on_error: block}\n",
                "GP-008 3:6",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, when: 'call.tool ==', decision: block, on_error: block}\n",
                "GP-007 3:19",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, when: 'cal.tool == \"x\"', decision: block, on_error: block}\n",
                "GP-007 3:19",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, when: 'result.text == \"x\"', decision: block, on_error: block}\n",
                "GP-007 3:19",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, pattern: '(', decision: block, on_error: block}\n",
                "GP-007 3:22",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, when: true, decision: block}\n",
                "GP-004 3:6",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, on: result, when: true, decision: ask, on_error: block}\n",
                "GP-008 3:6",
            ),
            (
                "policy: 1\nrules:\n  - {id: a, when: true, decision: log, on_error: allow}\n  - {id: a, when: true, decision: log, on_error: allow}\n",
                "GP-009 4:6",
            ),
            ("policy: 1\nasks: {timeout: 0s}\n", "GP-005 2:17"),
            ("policy: 1\npins: {on_change: aks}\n", "GP-005 2:19"),
            ("policy: 1\ntaint: {budget: 3}\n", "GP-005 2:17"),
        ] {
            let (_, findings) = read(text);
            let first = findings.first().unwrap_or_else(|| panic!("{text}"));
            let place = first.span.unwrap();
            let told = format!("{} {}:{}", first.code, place.line, place.column);
            assert!(told.starts_with(expected), "{text}\n{told}: {first}");
        }
    }

    #[test]
    fn policies_are_told_by_their_first_key() {
        assert!(is_meant_by("# x\npolicy: 1\n") && is_meant_by("name: a\npolicy : 1"));
        assert!(!is_meant_by("oatf: '0.1'\nattack:\n  policy: 1\n"));
    }
}
