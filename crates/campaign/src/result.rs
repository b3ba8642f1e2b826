//! The results of a campaign, as they are kept in files and as reports read them.
//!
//! The form is versioned: fields may be added, and [`VERSION`] grows when one changes or goes away.

use proofhouse_oatf::{AttackResult, Framework, Mode, Protocol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::accepted::AcceptedRisk;
use crate::canaries::CanaryValues;
pub use crate::outcome::RunOutcome;
use crate::outcome::{Conditions, ControlState, Deeds, InconclusiveReason, settle};
use crate::probes::ProbeRecord;
pub use proofhouse_subjects::{GuardCounts, GuardInfo, SubjectInfo};

/// The version of the form.
pub const VERSION: u32 = 2;

/// Everything a campaign found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignResult {
    /// The version of the form.
    pub version: u32,
    /// The version of the program.
    pub proofhouse: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When it ended, RFC 3339; absent while it goes on.
    pub finished_at: Option<String>,
    /// Whether every planned run was made.
    pub complete: bool,
    /// Attack runs per document and subject that were planned.
    pub repeats: u32,
    /// The random seed.
    pub seed: u64,
    /// Who was attacked.
    pub subjects: Vec<SubjectInfo>,
    /// What they were attacked with.
    pub documents: Vec<DocumentInfo>,
    /// Which channels the models of the subjects read, as channel probes have shown.
    #[serde(default)]
    pub probes: Vec<ProbeRecord>,
    /// The runs, in the order of the plan.
    pub runs: Vec<RunRecord>,
    /// Planned runs that an earlier version left out once it had its answer. Rates of such a result are not compared.
    #[serde(default)]
    pub spared: u64,
    /// Findings that somebody accepted: they are reported and do not fail the campaign until their date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedRisk>,
}

impl CampaignResult {
    /// Why the first recording that could not be kept was lost, if one was.
    #[must_use]
    pub fn lost_trace(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.trace_lost.as_deref())
    }
}

/// A document of the campaign.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentInfo {
    /// The id of the attack.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The file, as given.
    pub path: String,
    /// The severity level, such as `high`.
    pub severity: Option<String>,
    /// The category, such as `capability_poisoning`.
    pub category: Option<String>,
    /// The modes of its actors, such as `mcp_server`.
    #[schemars(with = "Vec<String>")]
    pub modes: Vec<Mode>,
    /// Its actors, so that a report can say who spoke to whom.
    #[serde(default)]
    pub actors: Vec<ActorInfo>,
    /// The protocols of its actors, such as `mcp`.
    #[schemars(with = "Vec<String>")]
    pub protocols: Vec<Protocol>,
    /// The tags of its classification.
    pub tags: Vec<String>,
    /// Where lists of others have it.
    pub mappings: Vec<Mapping>,
    /// Its indicators.
    pub indicators: Vec<IndicatorInfo>,
    /// The prompt that starts the subject, where no actor does.
    pub prompt: Option<String>,
    /// Whether it has a benign twin.
    pub has_twin: bool,
    /// Tells one version of the document from another.
    #[serde(default)]
    pub digest: String,
    /// The document as it was run, relative to the result's directory; its twin is beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Whether it is one of the library that the program carries, so that the user has no such file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shipped: bool,
    /// What to change against the attack.
    #[serde(default, skip_serializing_if = "Mitigation::is_empty")]
    pub mitigation: Mitigation,
}

/// What to change against an attack, as its document says (`x-proofhouse.mitigation`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mitigation {
    /// In the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In the tool, server or peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// In what the agent may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

impl Mitigation {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Where to change something, and what.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let parts = [
            ("In the agent", &self.agent),
            ("In the tool", &self.tool),
            ("By policy", &self.policy),
        ];
        let parts = parts.into_iter();
        parts.filter_map(|(place, what)| Some((place, what.as_deref()?)))
    }
}

/// An actor of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActorInfo {
    /// Its name, as the trace has it.
    pub name: String,
    /// Its mode, such as `mcp_server`.
    #[schemars(with = "String")]
    pub mode: Mode,
}

/// An entry in a list of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Mapping {
    /// The list, such as `OWASP Agentic`.
    #[schemars(with = "String")]
    pub framework: Framework,
    /// The entry, such as `ASI01`.
    pub id: String,
    /// The entry's name.
    pub name: Option<String>,
}

/// An indicator of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndicatorInfo {
    /// Its id.
    pub id: String,
    /// What it looks for.
    pub description: Option<String>,
    /// How bad a match is, such as `boundary_breach`.
    pub tier: Option<String>,
    /// The line of the document, from 1.
    pub line: Option<usize>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Names the run in the campaign: document, subject, number, and `twin` for a twin.
    pub id: String,
    /// The id of the document.
    pub document: String,
    /// The name of the subject.
    pub subject: String,
    /// Which of the repeats, from 1.
    pub repeat: u32,
    /// Whether it was the benign twin.
    pub twin: bool,
    /// What came of it.
    pub outcome: RunOutcome,
    /// Why it is inconclusive, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<InconclusiveReason>,
    /// The verdict of the threat format: `exploited`, `partial`, `not_exploited` or `error`; absent when the run could not
    /// take place.
    #[serde(default)]
    pub verdict: Option<String>,
    /// What had to hold before it could be called resisted.
    #[serde(default)]
    pub conditions: Conditions,
    /// The highest tier that was reached.
    pub tier: Option<String>,
    /// Whether anything of the attack reached the subject.
    pub reached: bool,
    /// In how many places the payload was sent, and how many places it has.
    pub carriers: (u64, u64),
    /// What each indicator found.
    pub indicators: Vec<IndicatorOutcome>,
    /// Of a twin: whether the task was done all the same.
    pub task_done: Option<bool>,
    /// What the subject said in the end, the start of it.
    pub answer: Option<String>,
    /// What the subject did and said, where an outcome rests on comparing that with the control run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deeds: Option<Deeds>,
    /// Why there is no verdict.
    pub error: Option<String>,
    /// What broke the run off, also where there is a verdict all the same; with other indicators there
    /// might be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// As what that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_by: Option<InconclusiveReason>,
    /// What went wrong without spoiling the run.
    pub warnings: Vec<String>,
    /// How long it took.
    pub milliseconds: u64,
    /// Messages of the trace.
    pub messages: u64,
    /// Tokens of the subject's model, where they are known.
    pub tokens: Option<u64>,
    /// The recording, relative to the result's directory.
    pub trace: Option<String>,
    /// The SHA-256 of the recording as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_digest: Option<String>,
    /// Why there is no recording, though there should be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_lost: Option<String>,
    /// The end of the subject's error output, where the run did not go well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The values that the canaries of the document had in this run.
    #[serde(default, skip_serializing_if = "CanaryValues::is_empty")]
    pub canaries: CanaryValues,
    /// What the guard did, of a subject that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardCounts>,
}

impl RunRecord {
    /// Settles the outcome by what is known of the control run. Records of earlier versions have no verdict and no
    /// conditions to settle anything by: they stay as they are.
    pub fn settle(&mut self, control: &ControlState) {
        if self.verdict.is_none() && self.broken_by.is_none() {
            return;
        }
        self.conditions.settle_alive(control);
        // What a guard keeps from a subject, it cannot answer.
        let is_kept = self.guard.as_ref().is_some_and(|guard| guard.stopped() > 0);
        let deeds = self.deeds.as_ref().filter(|_| !self.twin && !is_kept);
        if let Some(deeds) = deeds {
            self.conditions.settle_exposed(deeds, control);
        }
        let verdict: Option<AttackResult> =
            self.verdict.as_deref().and_then(|text| text.parse().ok());
        (self.outcome, self.reason) = settle(verdict, self.broken_by, &self.conditions);
    }

    /// What an inconclusive run rests on, for people: its error, or what is said of the condition that does not hold.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        let reason = self.reason?;
        let failure = self.broken.as_deref().or(self.error.as_deref());
        if reason.is_failure() && failure.is_some() {
            return failure;
        }
        let conditions = self.conditions.each().into_iter();
        let mut told = conditions.filter(|(_, one)| one.reason == Some(reason));
        let why = told.next().map(|(_, one)| one.why.as_str());
        why.filter(|why| !why.is_empty())
    }

    /// What to do about it, by what happened in this run.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        Some(self.reason?.advice_for(self.why().unwrap_or_default()))
    }

    /// Whether only its control run can still decide it, and that has not ended.
    #[must_use]
    pub fn is_waiting_for_control(&self) -> bool {
        !self.twin && self.reason == Some(InconclusiveReason::ControlNotRun)
    }

    /// Whether the run itself failed: it could not take place, broke off, or could not be judged.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.outcome == RunOutcome::Inconclusive
            && match self.reason {
                Some(reason) => reason.is_failure(),
                // Earlier versions told no reason.
                None => self.error.is_some(),
            }
    }
}

/// What an indicator found in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndicatorOutcome {
    /// The indicator.
    pub id: String,
    /// `matched`, `not_matched`, `error` or `skipped`.
    pub result: String,
    /// Where it was found.
    pub evidence: Vec<RunEvidence>,
}

/// A place in the trace that shows something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvidence {
    /// The message; of one that came in pieces, the first of them.
    pub seq: u64,
    /// The last piece, if the message came in several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    /// The path in its content.
    pub path: Option<String>,
    /// What was found there, redacted and cut.
    pub text: Option<String>,
    /// More, as the detector told it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

impl RunEvidence {
    /// The message or its pieces, as people read it: `message 5`, `messages 5 to 31`.
    #[must_use]
    pub fn messages(&self) -> String {
        match self.last_seq {
            Some(last) => format!("messages {} to {last}", self.seq),
            None => format!("message {}", self.seq),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{result, run};

    #[test]
    fn a_lost_recording_is_known_whatever_warnings_say() {
        let mut one = run("A", "s", 1, RunOutcome::Resisted);
        one.warnings = vec!["traces/a.jsonl: cannot write: said the subject".to_owned()];
        let mut result = result(vec![one]);
        assert_eq!(result.lost_trace(), None);
        result.runs[0].trace_lost = Some("traces/a.jsonl: cannot write: no space".to_owned());
        result.runs[0].warnings.clear();
        assert!(result.lost_trace().is_some());
    }
}
