//! The methods of both generations, in one table: 0.3 gives the names of events.

/// A generation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Generation {
    /// 0.3.
    Legacy,
    /// 1.0.
    Modern,
}

/// What a peer can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Operation {
    Send,
    Stream,
    GetTask,
    CancelTask,
    ListTasks,
    Resubscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

/// The operation, its name in 0.3 and its name in 1.0. 0.3 has no `tasks/list` for JSON-RPC; the
/// name is that of the event.
const METHODS: &[(Operation, &str, &str)] = &[
    (Operation::Send, "message/send", "SendMessage"),
    (Operation::Stream, "message/stream", "SendStreamingMessage"),
    (Operation::GetTask, "tasks/get", "GetTask"),
    (Operation::CancelTask, "tasks/cancel", "CancelTask"),
    (Operation::ListTasks, "tasks/list", "ListTasks"),
    (
        Operation::Resubscribe,
        "tasks/resubscribe",
        "SubscribeToTask",
    ),
    (
        Operation::SetPush,
        "tasks/pushNotificationConfig/set",
        "CreateTaskPushNotificationConfig",
    ),
    (
        Operation::GetPush,
        "tasks/pushNotificationConfig/get",
        "GetTaskPushNotificationConfig",
    ),
    (
        Operation::ListPush,
        "tasks/pushNotificationConfig/list",
        "ListTaskPushNotificationConfigs",
    ),
    (
        Operation::DeletePush,
        "tasks/pushNotificationConfig/delete",
        "DeleteTaskPushNotificationConfig",
    ),
    (
        Operation::ExtendedCard,
        "agent/getAuthenticatedExtendedCard",
        "GetExtendedAgentCard",
    ),
];

impl Operation {
    /// What a method asks for, and the generation that has it.
    pub(in crate::drivers) fn of(method: &str) -> Option<(Self, Generation)> {
        METHODS
            .iter()
            .find_map(|(operation, legacy, modern)| match method {
                method if method == *legacy => Some((*operation, Generation::Legacy)),
                method if method == *modern => Some((*operation, Generation::Modern)),
                _ => None,
            })
    }

    /// Its method in a generation.
    pub(in crate::drivers) fn method(self, generation: Generation) -> &'static str {
        let row = METHODS.iter().find(|(operation, ..)| *operation == self);
        row.map_or("", |(_, legacy, modern)| match generation {
            Generation::Legacy => legacy,
            Generation::Modern => modern,
        })
    }

    /// Its event, which is its method in 0.3.
    pub(in crate::drivers) fn event(self) -> &'static str {
        self.method(Generation::Legacy)
    }

    /// Whether it is answered by a stream.
    pub(in crate::drivers) fn is_streamed(self) -> bool {
        matches!(self, Self::Stream | Self::Resubscribe)
    }
}

/// The event of a method of either generation; other names are their own.
pub(in crate::drivers) fn event_of(method: &str) -> &str {
    Operation::of(method).map_or(method, |(operation, _)| operation.event())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alias_both_ways() {
        for (operation, legacy, modern) in METHODS {
            assert_eq!(
                Operation::of(legacy),
                Some((*operation, Generation::Legacy))
            );
            assert_eq!(
                Operation::of(modern),
                Some((*operation, Generation::Modern))
            );
            assert_eq!(operation.method(Generation::Modern), *modern);
            assert_eq!((event_of(legacy), event_of(modern)), (*legacy, *legacy));
        }
        assert_eq!(Operation::of("sendmessage"), None);
        assert_eq!(event_of("agent_card/get"), "agent_card/get");
    }
}
