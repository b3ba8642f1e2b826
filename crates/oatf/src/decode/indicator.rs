//! Decodes indicators, their three ways of detection, and conditions.

use indexmap::IndexMap;
use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};

use super::{DocumentDecoder, DocumentFields};
use crate::fields;
use crate::model::{
    CelExpression, Condition, ExpressionMatch, Indicator, MatchCondition, MatchPredicate,
    PatternMatch, RegexPattern, SemanticExamples, SemanticMatch,
};

impl<'s> DocumentDecoder<'s> {
    pub(crate) fn indicator(&mut self, node: NodeRef<'s>) -> Option<Indicator> {
        let mut fields = self.fields(node, &fields::INDICATOR)?;
        Some(Indicator {
            id: fields.text("id"),
            protocol: fields.open("protocol"),
            surface: fields.open("surface"),
            target: fields.text("target").unwrap_or_default(),
            actor: fields.text("actor"),
            direction: fields.choice("direction"),
            method: fields.choice("method"),
            description: fields.text("description"),
            pattern: fields.read("pattern", Self::pattern),
            expression: fields.read("expression", Self::expression),
            semantic: fields.read("semantic", Self::semantic),
            confidence: fields.integer("confidence"),
            tier: fields.choice("tier"),
            severity: fields.choice("severity"),
            false_positives: fields.texts("false_positives"),
            extensions: fields.kept_extensions(),
        })
    }

    pub(crate) fn pattern(&mut self, node: NodeRef<'s>) -> Option<PatternMatch> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let mut pattern = PatternMatch::default();
        let mut operators = MatchCondition::default();
        let mut standard = None;
        for (key, value) in entries {
            match key {
                "target" if !value.is_null() => {
                    pattern.target =
                        self.within(PathSegment::Key("target"), |decoder| decoder.text(value));
                }
                "target" => {}
                "condition" => {
                    standard = self.within(PathSegment::Key("condition"), |decoder| {
                        decoder.condition(value)
                    });
                }
                _ if MatchCondition::OPERATORS.contains(&key) => {
                    pattern.shorthand = true;
                    self.within(PathSegment::Key(key), |decoder| {
                        decoder.operator(key, value, &mut operators);
                    });
                }
                _ => {
                    let known = ["target", "condition"];
                    let known = known.iter().chain(MatchCondition::OPERATORS).copied();
                    self.unknown_key(key, known);
                }
            }
        }
        if standard.is_some() && pattern.shorthand {
            self.error(
                "PH-015",
                "a pattern has either `condition` or operators of its own, not both".to_owned(),
                Some("move the operators into `condition`".to_owned()),
            );
        }
        pattern.condition = if pattern.shorthand {
            Some(Condition::Operators(Box::new(operators)))
        } else {
            standard
        };
        Some(pattern)
    }

    /// A condition: a mapping that holds an operator is a set of operators, anything else is a
    /// value to be equal to.
    pub(crate) fn condition(&mut self, node: NodeRef<'s>) -> Option<Condition> {
        let keys: Vec<&str> = node
            .entries()
            .map(|entries| entries.map(|(key, _)| key).collect())
            .unwrap_or_default();
        if !keys
            .iter()
            .any(|key| MatchCondition::OPERATORS.contains(key))
        {
            for key in keys {
                if let Some(near) = self
                    .walk
                    .near(key, MatchCondition::OPERATORS.iter().copied())
                {
                    self.within(PathSegment::Key(key), |decoder| {
                        decoder.note(
                            "PH-204",
                            format!("`{key}` is not an operator, so this mapping is compared for equality"),
                            Some(format!("did you mean `{near}`?")),
                        );
                    });
                }
            }
            return Some(Condition::Equals(self.value(node)));
        }
        let mut operators = MatchCondition::default();
        for (key, value) in node.entries()? {
            if MatchCondition::OPERATORS.contains(&key) {
                self.within(PathSegment::Key(key), |decoder| {
                    decoder.operator(key, value, &mut operators);
                });
            } else {
                self.unknown_key(key, MatchCondition::OPERATORS.iter().copied());
            }
        }
        Some(Condition::Operators(Box::new(operators)))
    }

    /// Operators only; anything else is an error.
    pub(crate) fn operators(&mut self, node: NodeRef<'s>) -> Option<MatchCondition> {
        match self.condition(node)? {
            Condition::Operators(operators) => Some(*operators),
            Condition::Equals(_) => {
                self.mismatch(node, "a mapping of operators");
                None
            }
        }
    }

    fn operator(&mut self, key: &str, node: NodeRef<'s>, operators: &mut MatchCondition) {
        match key {
            "contains" => operators.contains = self.text(node),
            "starts_with" => operators.starts_with = self.text(node),
            "ends_with" => operators.ends_with = self.text(node),
            "regex" => operators.regex = self.text(node).map(RegexPattern::new),
            "any_of" => {
                operators.any_of = self.list(node, |decoder, node| Some(decoder.value(node)));
            }
            "gt" => operators.gt = self.number(node),
            "lt" => operators.lt = self.number(node),
            "gte" => operators.gte = self.number(node),
            "lte" => operators.lte = self.number(node),
            _ => operators.exists = self.flag(node),
        }
    }

    pub(crate) fn predicate(&mut self, node: NodeRef<'s>) -> Option<MatchPredicate> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let mut predicate = MatchPredicate::default();
        for (path, value) in entries {
            let entry = self.within(PathSegment::Key(path), |decoder| decoder.condition(value));
            predicate.extend(entry.map(|entry| (path.to_owned(), entry)));
        }
        Some(predicate)
    }

    pub(crate) fn expression(&mut self, node: NodeRef<'s>) -> Option<ExpressionMatch> {
        let mut fields = self.fields(node, &fields::EXPRESSION)?;
        let cel = fields.text("cel");
        let variables = fields.read("variables", |decoder, node| {
            let Some(entries) = node.entries() else {
                decoder.mismatch(node, "a mapping");
                return None;
            };
            let mut variables = IndexMap::new();
            for (name, value) in entries {
                let path = decoder.within(PathSegment::Key(name), |decoder| decoder.text(value));
                variables.extend(path.map(|path| (name.to_owned(), path)));
            }
            Some(variables)
        });
        Some(ExpressionMatch {
            cel: CelExpression::new(cel?),
            variables,
        })
    }

    pub(crate) fn semantic(&mut self, node: NodeRef<'s>) -> Option<SemanticMatch> {
        let mut fields = self.fields(node, &fields::SEMANTIC)?;
        Some(SemanticMatch {
            target: fields.text("target"),
            intent: fields.text("intent").unwrap_or_default(),
            intent_class: fields.choice("intent_class"),
            threshold: fields.read("threshold", Self::number),
            examples: fields.read("examples", Self::examples),
        })
    }

    pub(crate) fn examples(&mut self, node: NodeRef<'s>) -> Option<SemanticExamples> {
        let mut fields = self.fields(node, &fields::EXAMPLES)?;
        Some(SemanticExamples {
            positive: fields.texts("positive"),
            negative: fields.texts("negative"),
        })
    }
}
