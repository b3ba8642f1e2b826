//! Reads the steps of middleware and guardrails.

use proofhouse_expr::{Form, FunctionError, Program};
use proofhouse_source::NodeRef;
use proofhouse_source::format::FormatReader;

use super::fields;
use super::model::{MiddlewareStep, OnFail, StepAction};
use crate::decode::{ManifestDecoder, ManifestFields};

/// Where a step stands: what it can read, and what it may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepPosition {
    Before,
    After,
    GuardrailBefore,
    GuardrailAfter,
    /// Before a task starts.
    Trigger,
}

impl StepPosition {
    fn is_guardrail(self) -> bool {
        matches!(self, Self::GuardrailBefore | Self::GuardrailAfter)
    }

    /// Whether a person may be asked: there is a task that can wait.
    fn can_ask(self) -> bool {
        matches!(self, Self::Before | Self::After)
    }

    fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Before => &["context", "c", "input", "i", "now", "runtime", "event"],
            Self::After => &[
                "context", "c", "input", "i", "output", "o", "now", "runtime", "event",
            ],
            Self::Trigger => &["event", "now"],
            Self::GuardrailBefore => &["context", "c", "input", "i", "now", "runtime"],
            Self::GuardrailAfter => &[
                "context", "c", "input", "i", "output", "o", "now", "runtime",
            ],
        }
    }
}

impl<'s> ManifestDecoder<'s> {
    pub(crate) fn step(
        &mut self,
        node: NodeRef<'s>,
        place: StepPosition,
    ) -> Option<MiddlewareStep> {
        let span = self.here();
        let mut fields = self.fields(node, &fields::STEP)?;
        let action = step_action(&mut fields, place);
        let matches = fields.text("match");
        let condition = fields.read("condition", |decoder, node| {
            decoder.step_cel(node, place, false)
        });
        let error_message = fields.read("error_message", |decoder, node| {
            decoder.text_with(node, place.variables())
        });
        let on_fail = match fields.read("on_fail", |decoder, node| {
            let word = decoder.word(node, fields::ON_FAIL)?;
            if word == "block" && place.is_guardrail() {
                let help = Some("use `lock_task` or `continue`".to_owned());
                decoder.error("TM-023", "a guardrail may not `block`".to_owned(), help);
            }
            Some(word)
        }) {
            Some("continue") => OnFail::Continue,
            Some("lock_task") => OnFail::LockTask,
            None if place.is_guardrail() => OnFail::LockTask,
            _ => OnFail::Block,
        };
        Some(MiddlewareStep {
            action: action?,
            matches,
            condition,
            error_message,
            on_fail,
            span,
        })
    }

    /// An expression of a step, which may also call `put`, and `review` where a person may be asked.
    fn step_cel(
        &mut self,
        node: NodeRef<'s>,
        place: StepPosition,
        reviews: bool,
    ) -> Option<Program> {
        let nothing = |_: &[serde_json::Value]| Err(FunctionError::new("only in a task"));
        let mut compiler = crate::compiler().function("put", Form::Member, nothing);
        if reviews {
            compiler = compiler.function("review", Form::Global, nothing);
        }
        self.cel_with(node, place.variables(), &compiler)
    }
}

fn step_action(fields: &mut ManifestFields<'_, '_>, place: StepPosition) -> Option<StepAction> {
    let found: Vec<&str> = ["assert", "invoke", "transform"]
        .into_iter()
        .filter(|key| fields.has(key))
        .collect();
    let action = match found.as_slice() {
        ["assert"] => fields
            .read("assert", |decoder, node| {
                decoder.step_cel(node, place, place.can_ask())
            })
            .map(StepAction::Assert),
        ["transform"] => fields
            .read("transform", |decoder, node| {
                decoder.step_cel(node, place, false)
            })
            .map(StepAction::Transform),
        ["invoke"] => {
            let bindings = fields
                .read("bindings", |decoder, node| {
                    decoder.bindings(node, place.variables())
                })
                .unwrap_or_default();
            fields.text("invoke").map(|text| {
                let (tool, action) = match text.split_once(':') {
                    Some((tool, action)) => (tool.to_owned(), Some(action.to_owned())),
                    None => (text, None),
                };
                StepAction::Invoke {
                    tool,
                    action,
                    bindings,
                }
            })
        }
        several => {
            let message = match several {
                [] => "a step needs `assert`, `invoke` or `transform`".to_owned(),
                _ => format!(
                    "a step has {}; only one may be there",
                    several.join(" and ")
                ),
            };
            fields.reader.error("TM-024", message, None);
            None
        }
    };
    if found != ["invoke"] && fields.has("bindings") {
        let message = "only `invoke` has `bindings`".to_owned();
        fields.reader.error("TM-024", message, None);
    }
    action
}
