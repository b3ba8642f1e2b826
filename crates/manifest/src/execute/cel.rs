//! `cel`: an expression whose result is the result of the action.

use proofhouse_expr::{FunctionError, Program};
use proofhouse_source::NodeRef;
use proofhouse_source::format::{FormatReader, TypeSpec};

use super::BackendBlock;
use crate::decode::ManifestDecoder;
use crate::fields::{CEL_TEXT, needed};

/// An expression whose result is the result of the action.
#[derive(Debug, Clone)]
pub struct CelCall {
    /// The compiled expression.
    pub expression: Program,
}

static CEL: TypeSpec = TypeSpec {
    name: "Cel",
    doc: "An expression whose result is the result of the action.",
    extensions: true,
    exactly_one: None,
    fields: &[needed(
        "expression",
        CEL_TEXT,
        "CEL over context, input, now and runtime.",
    )],
};

impl BackendBlock for CelCall {
    const KEY: &'static str = "cel";
    const SPEC: &'static TypeSpec = &CEL;
    const DOC: &'static str = "An expression.";

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        _common: Option<&Self>,
    ) -> Option<Self> {
        let mut fields = decoder.fields(node, &CEL)?;
        let expression = fields.read("expression", |decoder, node| {
            let only = |_: &[serde_json::Value]| Err(FunctionError::new("only in a task"));
            let files = crate::mount::mount_functions(only, only);
            decoder.cel_with(node, &["context", "input", "now", "runtime"], &files)
        })?;
        Some(Self { expression })
    }

    fn may_be_repeated(&self) -> bool {
        true
    }
}
