//! Judges labelled cases by the indicators of their document.

use proofhouse_detect::{BuildError, TraceMessage};
use proofhouse_oatf::{AttackResult, Document};

use super::LabelledCase;

/// Why cases cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The document cannot judge.
    #[error(transparent)]
    Document(#[from] BuildError),
    /// A message is of an actor that the document has not.
    #[error("line {line}: the document has no actor `{actor}`")]
    UnknownActor {
        /// The line of the case.
        line: usize,
        /// The actor.
        actor: String,
    },
}

/// A case and the verdict on it.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedCase<'c> {
    /// The case.
    pub case: &'c LabelledCase,
    /// The verdict.
    pub result: AttackResult,
    /// The indicators that matched, by id.
    pub matched: Vec<String>,
}

impl JudgedCase<'_> {
    /// Whether the verdict is the one that was expected.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.result == self.case.expect
    }
}

/// Judges cases as a live run of the document is judged.
///
/// # Errors
///
/// Returns an error when the document cannot judge, and when a case has an actor that it has not.
pub fn judge<'c>(
    document: &Document,
    cases: &'c [LabelledCase],
) -> Result<Vec<JudgedCase<'c>>, CaseError> {
    let scanner = proofhouse_range::scanner(document, None)?;
    let actors = document.attack.execution.actors();
    let mut judged = Vec::with_capacity(cases.len());
    for case in cases {
        let mut session = scanner.session();
        for (sequence, message) in (1..).zip(&case.messages) {
            let mut known = actors.iter();
            let actor = match &message.actor {
                Some(name) => known.find(|actor| actor.name == *name),
                None => known.next(),
            };
            let actor = actor.ok_or_else(|| CaseError::UnknownActor {
                line: case.line,
                actor: message.actor.clone().unwrap_or_default(),
            })?;
            let protocol = match &message.protocol {
                Some(protocol) => protocol.as_str().into(),
                None => actor.mode.protocol(),
            };
            session.feed(&TraceMessage {
                sequence,
                actor: Some(actor.name.clone()),
                direction: Some(message.direction),
                ..TraceMessage::new(
                    protocol,
                    message.operation.as_str(),
                    message.content.clone(),
                )
            });
        }
        let verdicts = session.verdicts();
        let verdict = verdicts.first();
        let indicators = verdict.map(|verdict| verdict.indicators.as_slice());
        let matched = indicators.unwrap_or_default().iter();
        judged.push(JudgedCase {
            case,
            result: verdict.map_or(AttackResult::Error, |verdict| verdict.attack.result),
            matched: matched
                .filter(|report| report.matches > 0)
                .map(|report| report.id.clone())
                .collect(),
        });
    }
    Ok(judged)
}
