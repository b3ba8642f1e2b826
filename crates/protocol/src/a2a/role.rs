//! Who says a message.

use super::A2aVersion;

/// Who says a message.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aRole, A2aVersion};
///
/// assert_eq!(A2aRole::parse("ROLE_AGENT"), A2aRole::parse("agent"));
/// assert_eq!(A2aRole::User.as_str(A2aVersion::V1_0), "ROLE_USER");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum A2aRole {
    /// The client.
    User,
    /// The agent that answers it.
    Agent,
}

impl A2aRole {
    /// The role of this name, of either generation; `None` for a name that neither has.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "user" | "ROLE_USER" => Self::User,
            "agent" | "ROLE_AGENT" => Self::Agent,
            _ => return None,
        })
    }

    /// Its name in a generation.
    #[must_use]
    pub const fn as_str(self, version: A2aVersion) -> &'static str {
        match (self, version) {
            (Self::User, A2aVersion::V0_3) => "user",
            (Self::Agent, A2aVersion::V0_3) => "agent",
            (Self::User, A2aVersion::V1_0) => "ROLE_USER",
            (Self::Agent, A2aVersion::V1_0) => "ROLE_AGENT",
        }
    }
}
