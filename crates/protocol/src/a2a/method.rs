//! The methods of both generations of A2A, in one table: 0.3 gives the names of events.

use super::A2aVersion;

/// What a client of A2A can ask for, whatever its generation calls it.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aMethod, A2aVersion};
///
/// let (method, version) = A2aMethod::parse("tasks/resubscribe").unwrap();
/// assert_eq!((method, version), (A2aMethod::ResubscribeTask, A2aVersion::V0_3));
/// assert_eq!(method.as_str(A2aVersion::V1_0), "SubscribeToTask");
/// assert!(method.is_streamed());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum A2aMethod {
    /// Sends a message and waits for a task or a message.
    SendMessage,
    /// Sends a message and hears what happens.
    StreamMessage,
    /// A task as it is now.
    GetTask,
    /// Cancels a task.
    CancelTask,
    /// Hears what happens to a task that was begun before.
    ResubscribeTask,
    /// The tasks there are. 0.3 has no such method over JSON-RPC; the name is that of the event.
    ListTasks,
    /// Says where notifications of a task go.
    SetPushConfig,
    /// Where notifications of a task go.
    GetPushConfig,
    /// All places where notifications of a task go.
    ListPushConfigs,
    /// Ends notifications of a task.
    DeletePushConfig,
    /// The card for those who have authenticated.
    GetExtendedCard,
}

impl A2aMethod {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::SendMessage,
        Self::StreamMessage,
        Self::GetTask,
        Self::CancelTask,
        Self::ResubscribeTask,
        Self::ListTasks,
        Self::SetPushConfig,
        Self::GetPushConfig,
        Self::ListPushConfigs,
        Self::DeletePushConfig,
        Self::GetExtendedCard,
    ];

    /// The names in 0.3 and in 1.0.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::SendMessage => ("message/send", "SendMessage"),
            Self::StreamMessage => ("message/stream", "SendStreamingMessage"),
            Self::GetTask => ("tasks/get", "GetTask"),
            Self::CancelTask => ("tasks/cancel", "CancelTask"),
            Self::ResubscribeTask => ("tasks/resubscribe", "SubscribeToTask"),
            Self::ListTasks => ("tasks/list", "ListTasks"),
            Self::SetPushConfig => (
                "tasks/pushNotificationConfig/set",
                "CreateTaskPushNotificationConfig",
            ),
            Self::GetPushConfig => (
                "tasks/pushNotificationConfig/get",
                "GetTaskPushNotificationConfig",
            ),
            Self::ListPushConfigs => (
                "tasks/pushNotificationConfig/list",
                "ListTaskPushNotificationConfigs",
            ),
            Self::DeletePushConfig => (
                "tasks/pushNotificationConfig/delete",
                "DeleteTaskPushNotificationConfig",
            ),
            Self::GetExtendedCard => ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
        }
    }

    /// What a method asks for, and the generation that calls it so; `None` for a name that neither has.
    #[must_use]
    pub fn parse(name: &str) -> Option<(Self, A2aVersion)> {
        Self::ALL.iter().find_map(|method| {
            let (old, new) = method.names();
            if name == old {
                Some((*method, A2aVersion::V0_3))
            } else if name == new {
                Some((*method, A2aVersion::V1_0))
            } else {
                None
            }
        })
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

    /// Its event, as traces and threat documents call it: its name in 0.3.
    #[must_use]
    pub const fn event(self) -> &'static str {
        self.as_str(A2aVersion::V0_3)
    }

    /// Whether it is answered by a stream.
    #[must_use]
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::StreamMessage | Self::ResubscribeTask)
    }

    /// The event of a method of either generation; other names are their own.
    ///
    /// ```
    /// use proofhouse_protocol::a2a::A2aMethod;
    ///
    /// assert_eq!(A2aMethod::event_of("SendMessage"), "message/send");
    /// assert_eq!(A2aMethod::event_of("agent_card/get"), "agent_card/get");
    /// ```
    #[must_use]
    pub fn event_of(name: &str) -> &str {
        Self::parse(name).map_or(name, |(method, _)| method.event())
    }

    /// Whether a name can only be a method of A2A, by the family that it begins with.
    #[must_use]
    pub fn is_of_family(name: &str) -> bool {
        ["tasks/pushNotificationConfig/", "agent/"]
            .iter()
            .any(|family| name.starts_with(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alias_both_ways() {
        for method in A2aMethod::ALL {
            for version in A2aVersion::ALL {
                let name = method.as_str(*version);
                assert_eq!(A2aMethod::parse(name), Some((*method, *version)));
                assert_eq!(A2aMethod::event_of(name), method.event());
            }
        }
        assert_eq!(A2aMethod::parse("sendmessage"), None);
    }
}
