//! What every code means: those of threat documents and those of tool manifests.

use proofhouse_oatf::{Explanation, ExplanationKind};
use proofhouse_tools::manifest::{CODES, WARNING_CODES};

/// Explains a code, whatever its case; `None` when there is no such code.
pub(crate) fn explain(code: &str) -> Option<Explanation> {
    explanations().find(|explanation| explanation.code.eq_ignore_ascii_case(code.trim()))
}

/// Every code with its explanation.
pub(crate) fn explanations() -> impl Iterator<Item = Explanation> {
    let tools = CODES.iter().map(|(code, text)| Explanation {
        code,
        kind: match WARNING_CODES.contains(code) {
            true => ExplanationKind::Warning,
            false => ExplanationKind::Error,
        },
        title: (*text).to_owned(),
        text: (*text).to_owned(),
    });
    proofhouse_oatf::explanations().chain(tools)
}
