//! What every code means: those of threat documents, of manifests, of what operators configure, of
//! `proofhouse.yaml`, of labelled cases and of our keys in threat documents.

use proofhouse_campaign::{cases, config, document};
use proofhouse_manifest as manifest;
use proofhouse_oatf::{CodeExplanation, ExplanationKind};
use proofhouse_tools::operator;

/// The codes about what operators configure that are never errors.
const OPERATOR_WARNINGS: &[&str] = &["OC-008", "OC-009", "OC-010", "OC-011"];

/// Explains a code, whatever its case; `None` when there is no such code.
pub(crate) fn explain(code: &str) -> Option<CodeExplanation> {
    explanations().find(|explanation| explanation.code.eq_ignore_ascii_case(code.trim()))
}

/// Every code with its explanation.
pub(crate) fn explanations() -> impl Iterator<Item = CodeExplanation> {
    let tools = manifest::CODES.iter().chain(operator::CODES);
    let tools = tools
        .chain(config::CODES)
        .chain(cases::CODES)
        .chain(document::CODES);
    let warnings = [
        manifest::WARNING_CODES,
        OPERATOR_WARNINGS,
        config::WARNING_CODES,
        cases::WARNING_CODES,
    ];
    let is_warning = move |code: &str| warnings.iter().any(|codes| codes.contains(&code));
    let tools = tools.map(move |(code, text)| CodeExplanation {
        spec_ref: "own",
        code,
        kind: if is_warning(code) {
            ExplanationKind::Warning
        } else {
            ExplanationKind::Error
        },
        title: (*text).to_owned(),
        text: (*text).to_owned(),
    });
    proofhouse_oatf::explanations().chain(tools)
}
