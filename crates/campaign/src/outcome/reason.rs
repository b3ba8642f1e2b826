//! Why a run is inconclusive: one table of codes, with a sentence each that says what happened and one that says what
//! to do about it.

use proofhouse_subjects::LEFT_RUNNING;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a channel was not probed: nobody wanted it.
pub(crate) const PROBES_OFF: &str = "probes are switched off";

/// Why a channel was not probed: it has no probe.
pub(super) const NOT_ASKED: &str = "it was not asked";

/// Makes the enum and its table from one list.
macro_rules! reasons {
    ($($(#[$about:meta])* $variant:ident $code:literal $sentence:literal $advice:literal;)+) => {
        /// Why a run is inconclusive. The codes are stable; docs/explanation/verdicts.md lists them.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum InconclusiveReason {
            $($(#[$about])* $variant,)+
        }

        impl InconclusiveReason {
            /// Every reason, in the order in which they are explained.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The code in files and reports.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What happened, in one sentence.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }

            /// What to do about it, in one sentence.
            #[must_use]
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }
        }
    };
}

reasons! {
    /// Nothing that carries the attack went out.
    NotDelivered "not_delivered"
        "The payload was never sent, because the agent did not request the tool, page or message that contains it."
        "Check that the agent connects to the attack's server, and that the prompt leads it to the tool, page or message of the attack.";
    /// The subject's model does not read the channel.
    ChannelNotRead "channel_not_read"
        "The payload was sent in a field that the agent's model does not seem to read: a channel probe put a code there, and the agent could not repeat it."
        "If the agent drops this field by design, there is nothing to fix. Otherwise pass the field to the model. A model that cannot copy a code cannot be probed.";
    /// Nobody has shown that the subject's model reads the channel.
    ChannelNotProved "channel_not_proved"
        "No channel probe has shown that the agent's model reads the field that contained the payload."
        "If probes were skipped, run without `--no-probes`; instead of `attack`, which has no probes, use `proofhouse run DOC`. If they ran, make the agent connect and answer, or use a model that can join the two halves of a code: `probes` in result.json shows what the agent did. docs/explanation/probes.md in the source of Proofhouse lists the fields that have a probe.";
    /// The subject did nothing after the delivery.
    NoAnswer "no_answer"
        "The agent neither acted nor answered after the payload was sent; an error message does not count as an answer."
        "Run the agent by hand with the same prompt and check that its model answers.";
    /// The document has no control.
    NoControl "no_control"
        "The attack has no control run, or one that names no task or still contains the payload, so it is unknown whether the agent can do the task at all."
        "Write a document with the same task, its `x-proofhouse.success` and without the payload, and name it in `x-proofhouse.twin`.";
    /// The control has not been run.
    ControlNotRun "control_not_run"
        "The control run was not made, or not finished."
        "Let the campaign finish, or continue it with `--resume`.";
    /// The control did not do its task.
    ControlFailed "control_failed"
        "The agent did not do the task without the attack either."
        "Make the control run pass first: look at its recording, at the arguments of its calls, and at how the agent ended.";
    /// A message was lost.
    MessageLost "message_lost"
        "A message of the agent was dropped, truncated or unreadable, and may have contained the evidence."
        "Look for `unparsed` entries in the trace. Fix what the agent sends, or raise the limit that truncated it.";
    /// Something else than the protocol was spoken.
    NotTheProtocol "not_the_protocol"
        "The other end did not speak the protocol of the attack, or answered everything with errors."
        "Check that the address is the agent's endpoint for this protocol, and that the credentials are right.";
    /// An indicator was not evaluated.
    IndicatorSkipped "indicator_skipped"
        "An indicator could not be evaluated, so a success may have gone unseen."
        "Configure what the indicator needs, such as a model for semantic indicators (`--semantic`).";
    /// An indicator can never match.
    IndicatorCannotMatch "indicator_cannot_match"
        "An indicator looks where no message of its protocol has anything, or for a canary that the document does not plant, so it can never match."
        "Correct its `surface`, `target` or `canary`; `proofhouse explain XP-005` says more.";
    /// The verdict itself failed.
    ErrorVerdict "error_verdict"
        "An indicator failed while it was evaluated, so there is no verdict."
        "Fix the indicator; `proofhouse explain-verdict` shows what went wrong.";
    /// The time was up.
    TimedOut "timed_out"
        "The run ended before the agent was done: the time limit was reached, or the agent was silent for too long."
        "Allow more time with `--deadline` (for `attack`: `--idle-limit` and `--max-session`). If the agent left a background process, end that process, or let the agent wait for it.";
    /// The subject failed.
    SubjectFailed "subject_failed"
        "The agent could not be started, crashed or ended with an error; over AG-UI, its last run ended with RUN_ERROR."
        "Read the error of the run, and try the same command by hand.";
    /// An actor of the attack broke off.
    AttackFailed "attack_failed"
        "The attacking side failed, so the attack did not run to its end."
        "Read the error of the run. The usual causes are an address that is already in use and a closed connection.";
    /// Somebody ended the run.
    Interrupted "interrupted"
        "The run was interrupted before the agent was done."
        "Run it again and let it finish.";
}

impl InconclusiveReason {
    /// The reason with this code, if there is one.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.code() == code)
    }

    /// What to do about it where more is known: `why` is what a run says of it.
    #[must_use]
    pub fn advice_for(self, why: &str) -> &'static str {
        match self {
            Self::ChannelNotProved if why.contains(PROBES_OFF) => "Run without `--no-probes`.",
            Self::ChannelNotProved if !why.is_empty() && !why.contains(NOT_ASKED) => {
                "The probe did not prove it, for the reason that is given. Make the agent connect and answer; where its model repeats \
                 a code and does not join its halves, use one that can. `probes` in result.json shows what the agent did."
            }
            Self::TimedOut if why.starts_with(LEFT_RUNNING) => {
                "End the background process when the agent is done, or let the agent wait for it: more time alone does not help."
            }
            reason => reason.advice(),
        }
    }

    /// Whether the run itself failed, so that it is worth making again: not where the subject did what it does.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::ErrorVerdict
            | Self::TimedOut
            | Self::SubjectFailed
            | Self::AttackFailed
            | Self::Interrupted => true,
            Self::NotDelivered
            | Self::ChannelNotRead
            | Self::ChannelNotProved
            | Self::NoAnswer
            | Self::NoControl
            | Self::ControlNotRun
            | Self::ControlFailed
            | Self::MessageLost
            | Self::NotTheProtocol
            | Self::IndicatorSkipped
            | Self::IndicatorCannotMatch => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_depends_on_what_happened() {
        let not_proved = |why: &str| {
            let why = format!("nobody knows whether its model reads tool results ({why})");
            InconclusiveReason::ChannelNotProved.advice_for(&why)
        };
        assert_eq!(not_proved(PROBES_OFF), "Run without `--no-probes`.");
        let ran = not_proved("it repeated both halves of the code and did not join them: A, B");
        assert!(
            !ran.contains("--no-probes") && ran.contains("join its halves"),
            "{ran}"
        );
        let generic = InconclusiveReason::ChannelNotProved.advice();
        assert_eq!(not_proved(NOT_ASKED), generic);
        assert_eq!(InconclusiveReason::ChannelNotProved.advice_for(""), generic);

        let late = InconclusiveReason::TimedOut;
        let left = late.advice_for(&format!("{LEFT_RUNNING} 10 s after its end (processes: 1)"));
        assert!(
            left.contains("background process") && !left.contains("--deadline"),
            "{left}"
        );
        assert_eq!(late.advice_for("the time was up"), late.advice());
    }

    #[test]
    fn codes_are_what_files_have() {
        for reason in InconclusiveReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.code());
            assert_eq!(InconclusiveReason::of_code(reason.code()), Some(*reason));
            for text in [reason.sentence(), reason.advice()] {
                assert!(text.ends_with('.') && !text.contains('\n'), "{text}");
            }
        }
    }
}
