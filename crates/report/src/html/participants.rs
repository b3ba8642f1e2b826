//! Who speaks to whom: the participants of a sequence diagram, and the arrow of each message.

use proofhouse_detect::TraceMessage;

use proofhouse_campaign::message_origin::is_by_subject;
use proofhouse_campaign::result::DocumentInfo;

/// How many participants there are; what further actors say is said by the last.
const MOST_PARTICIPANTS: usize = 6;

/// What an actor is called that the trace does not name.
const UNNAMED: &str = "attacker";

/// The subject, then the actors in the order in which they first speak.
pub(super) struct Participants<'a> {
    pub(super) names: Vec<&'a str>,
    document: &'a DocumentInfo,
}

/// From one participant to another; without a direction nobody knows who spoke.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) directed: bool,
}

impl<'a> Participants<'a> {
    pub(super) fn new(
        subject: &'a str,
        document: &'a DocumentInfo,
        messages: &'a [TraceMessage],
    ) -> Self {
        let mut names = vec![subject];
        for message in messages {
            let actor = message.actor.as_deref().unwrap_or(UNNAMED);
            if !names.iter().skip(1).any(|name| *name == actor) {
                names.push(actor);
            }
        }
        if names.len() > MOST_PARTICIPANTS {
            names.truncate(MOST_PARTICIPANTS - 1);
            names.push("others");
        }
        Self { names, document }
    }

    pub(super) fn arrow(&self, message: &TraceMessage) -> Arrow {
        let actor = message.actor.as_deref().unwrap_or(UNNAMED);
        let actors = self.names.iter().skip(1);
        let found = actors.enumerate().find(|(_, name)| **name == actor);
        let number = found.map_or(self.names.len() - 1, |(index, _)| index + 1);
        let by_subject = is_by_subject(self.document, message);
        let by_actor = by_subject != Some(true);
        let (from, to) = if by_actor { (number, 0) } else { (0, number) };
        Arrow {
            from,
            to,
            directed: message.direction.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_campaign::result::ActorInfo;
    use proofhouse_oatf::{Direction, Mode};
    use serde_json::Value;

    #[test]
    fn arrows_follow_the_mode_of_the_actor() {
        let document = DocumentInfo {
            actors: vec![
                ActorInfo {
                    name: "server".to_owned(),
                    mode: Mode::McpServer,
                },
                ActorInfo {
                    name: "user".to_owned(),
                    mode: Mode::AgUiClient,
                },
            ],
            ..DocumentInfo::default()
        };
        let message = |actor: &str, direction| TraceMessage {
            actor: Some(actor.to_owned()),
            direction,
            ..TraceMessage::new("mcp", "x", Value::Null)
        };
        let messages = [
            message("user", Some(Direction::Request)),
            message("server", Some(Direction::Request)),
            message("server", Some(Direction::Response)),
            message("user", Some(Direction::Response)),
            message("server", None),
        ];
        let participants = Participants::new("subject", &document, &messages);
        assert_eq!(participants.names, ["subject", "user", "server"]);
        let arrows: Vec<_> = messages
            .iter()
            .map(|message| {
                let arrow = participants.arrow(message);
                (arrow.from, arrow.to, arrow.directed)
            })
            .collect();
        assert_eq!(
            arrows,
            [
                (1, 0, true),
                (0, 2, true),
                (2, 0, true),
                (0, 1, true),
                (2, 0, false)
            ]
        );
    }

    #[test]
    fn an_actor_named_like_the_subject_is_a_participant_of_its_own() {
        let document = DocumentInfo::default();
        let messages = [TraceMessage {
            actor: Some("subject".to_owned()),
            direction: Some(Direction::Response),
            ..TraceMessage::new("mcp", "x", Value::Null)
        }];
        let participants = Participants::new("subject", &document, &messages);
        assert_eq!(participants.names.len(), 2);
        assert_eq!(participants.arrow(&messages[0]).from, 1);
    }
}
