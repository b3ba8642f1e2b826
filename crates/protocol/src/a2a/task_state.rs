//! How far a task is.

use super::A2aVersion;

/// What every state of 1.0 begins with.
const PREFIX: &str = "TASK_STATE_";

/// How far a task is.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aTaskState, A2aVersion};
///
/// let state = A2aTaskState::parse("TASK_STATE_INPUT_REQUIRED").unwrap();
/// assert_eq!(state, A2aTaskState::parse("input-required").unwrap());
/// assert_eq!(state.as_str(A2aVersion::V0_3), "input-required");
/// assert!(!state.is_terminal() && A2aTaskState::Rejected.is_terminal());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum A2aTaskState {
    /// It was taken in.
    Submitted,
    /// It is being worked on.
    Working,
    /// It waits for another message.
    InputRequired,
    /// It is done.
    Completed,
    /// It was cancelled.
    Canceled,
    /// It went wrong.
    Failed,
    /// The agent does not want it.
    Rejected,
    /// It waits until the client has authenticated.
    AuthRequired,
    /// Nobody knows.
    Unknown,
}

impl A2aTaskState {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
        Self::Rejected,
        Self::AuthRequired,
        Self::Unknown,
    ];

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Submitted => ("submitted", "TASK_STATE_SUBMITTED"),
            Self::Working => ("working", "TASK_STATE_WORKING"),
            Self::InputRequired => ("input-required", "TASK_STATE_INPUT_REQUIRED"),
            Self::Completed => ("completed", "TASK_STATE_COMPLETED"),
            Self::Canceled => ("canceled", "TASK_STATE_CANCELED"),
            Self::Failed => ("failed", "TASK_STATE_FAILED"),
            Self::Rejected => ("rejected", "TASK_STATE_REJECTED"),
            Self::AuthRequired => ("auth-required", "TASK_STATE_AUTH_REQUIRED"),
            Self::Unknown => ("unknown", "TASK_STATE_UNSPECIFIED"),
        }
    }

    /// The state of this name, of either generation; `None` for a name that neither has. Those of 1.0 are read in any
    /// case after their prefix.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        match name.strip_prefix(PREFIX) {
            None => all.find(|state| state.names().0 == name),
            Some(rest) => {
                let rest = rest.to_ascii_uppercase().replace('-', "_");
                all.find(|state| state.names().1.strip_prefix(PREFIX) == Some(&rest))
            }
        }
    }

    /// Its name in a generation.
    #[must_use]
    pub const fn as_str(self, version: A2aVersion) -> &'static str {
        let (old, new) = self.names();
        match version {
            A2aVersion::V0_3 => old,
            A2aVersion::V1_0 => new,
        }
    }

    /// The generation that writes names like this one, known or not.
    #[must_use]
    pub fn version_of(name: &str) -> A2aVersion {
        if name.starts_with(PREFIX) {
            A2aVersion::V1_0
        } else {
            A2aVersion::V0_3
        }
    }

    /// Whether nothing more comes after it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Canceled | Self::Failed | Self::Rejected => true,
            Self::Submitted
            | Self::Working
            | Self::InputRequired
            | Self::AuthRequired
            | Self::Unknown => false,
        }
    }

    /// Whether it goes on by itself, without another message.
    #[must_use]
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Submitted | Self::Working)
    }

    /// Whether it waits for another message.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// A name of 1.0 as 0.3 would write it, also for states that are not known: `TASK_STATE_ON_HOLD` is `on-hold`.
    /// Other names stay as they are.
    #[must_use]
    pub fn plain_name(name: &str) -> String {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        name.to_ascii_lowercase().replace('_', "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_name_in_both_generations() {
        for state in A2aTaskState::ALL {
            for version in A2aVersion::ALL {
                assert_eq!(A2aTaskState::parse(state.as_str(*version)), Some(*state));
            }
        }
        for wrong in [
            "",
            "TASK_STATE_",
            "COMPLETED",
            "TASK_STATE_RESTING",
            "Working",
        ] {
            assert_eq!(A2aTaskState::parse(wrong), None, "{wrong}");
        }
    }
}
