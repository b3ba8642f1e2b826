//! How long a task listens for an event, and to which events of a tool it listens at all.

use std::time::Duration;

use proofhouse_manifest::{Capability, ToolEvent};

/// How long a task stays subscribed after its last activity: what the agent says, else what the event says,
/// and never longer than the event's `max_timeout` or the operator's `most`. Nothing: without end.
///
/// ```
/// use std::time::Duration;
/// use proofhouse_tools::receive::timeout::effective;
///
/// let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
/// assert_eq!(effective(hours(48), hours(72), hours(168), None), hours(48));
/// assert_eq!(effective(hours(200), hours(72), hours(168), None), hours(168));
/// assert_eq!(effective(None, None, hours(168), None), hours(168));
/// assert_eq!(effective(None, None, None, None), None);
/// ```
#[must_use]
pub fn effective(
    agent: Option<Duration>,
    event: Option<Duration>,
    max: Option<Duration>,
    most: Option<Duration>,
) -> Option<Duration> {
    let asked = agent.or(event);
    [asked, max, most].into_iter().flatten().min()
}

/// [`effective`] for an event of a tool and the capability of an agent.
#[must_use]
pub fn effective_timeout(
    capability: Option<&Capability>,
    event: &ToolEvent,
    most: Option<Duration>,
) -> Option<Duration> {
    let agent = capability.and_then(|capability| capability.event_timeout);
    effective(agent, event.timeout, event.max_timeout, most)
}

/// Whether a capability lets an event through: its `include` names it, or names nothing.
#[must_use]
pub fn is_included(capability: Option<&Capability>, event: &str) -> bool {
    let include = capability.and_then(|capability| capability.include.as_ref());
    include.is_none_or(|names| names.iter().any(|name| name == event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_cap_wins() {
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        for (agent, event, max, most, expected) in [
            (None, None, None, None, None),
            (minutes(5), None, None, None, minutes(5)),
            (None, minutes(7), None, None, minutes(7)),
            (minutes(9), minutes(7), None, None, minutes(9)),
            (minutes(9), minutes(7), minutes(8), None, minutes(8)),
            (None, None, None, minutes(3), minutes(3)),
            (minutes(9), None, minutes(8), minutes(3), minutes(3)),
        ] {
            assert_eq!(effective(agent, event, max, most), expected);
        }
    }

    #[test]
    fn include_names_events_too() {
        let capability = Capability {
            include: Some(vec!["comment".to_owned()]),
            ..Capability::default()
        };
        assert!(is_included(Some(&capability), "comment"));
        assert!(!is_included(Some(&capability), "merged"));
        assert!(is_included(Some(&Capability::default()), "merged"));
        assert!(is_included(None, "merged"));
    }
}
