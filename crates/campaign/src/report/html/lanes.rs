//! Who speaks to whom: the lanes of a sequence diagram, and the arrow of each message.

use proofhouse_detect::Message;

use crate::message_origin::is_by_subject;
use crate::result::DocumentInfo;

/// How many lanes there are; what further actors say is on the last.
pub(super) const MOST_LANES: usize = 6;

/// What an actor is called that the trace does not name.
const UNNAMED: &str = "attacker";

/// The subject, then the actors in the order in which they first speak.
pub(super) struct Lanes<'a> {
    pub(super) names: Vec<&'a str>,
    document: &'a DocumentInfo,
}

/// From one lane to another; without a direction nobody knows who spoke.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) directed: bool,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(
        subject: &'a str,
        document: &'a DocumentInfo,
        messages: &'a [Message],
    ) -> Self {
        let mut names = vec![subject];
        for message in messages {
            let actor = message.actor.as_deref().unwrap_or(UNNAMED);
            if !names.iter().skip(1).any(|name| *name == actor) {
                names.push(actor);
            }
        }
        if names.len() > MOST_LANES {
            names.truncate(MOST_LANES - 1);
            names.push("others");
        }
        Self { names, document }
    }

    pub(super) fn arrow(&self, message: &Message) -> Arrow {
        let actor = message.actor.as_deref().unwrap_or(UNNAMED);
        let lanes = self.names.iter().skip(1);
        let lane = lanes.enumerate().find(|(_, name)| **name == actor);
        let lane = lane.map_or(self.names.len() - 1, |(index, _)| index + 1);
        let by_subject = is_by_subject(self.document, message);
        let by_actor = by_subject != Some(true);
        let (from, to) = if by_actor { (lane, 0) } else { (0, lane) };
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
    use crate::result::ActorInfo;
    use proofhouse_oatf::Direction;
    use serde_json::Value;

    #[test]
    fn arrows_follow_the_mode_of_the_actor() {
        let document = DocumentInfo {
            actors: vec![
                ActorInfo {
                    name: "server".to_owned(),
                    mode: "mcp_server".to_owned(),
                },
                ActorInfo {
                    name: "user".to_owned(),
                    mode: "ag_ui_client".to_owned(),
                },
            ],
            ..DocumentInfo::default()
        };
        let message = |actor: &str, direction| Message {
            actor: Some(actor.to_owned()),
            direction,
            ..Message::new("mcp", "x", Value::Null)
        };
        let messages = [
            message("user", Some(Direction::Request)),
            message("server", Some(Direction::Request)),
            message("server", Some(Direction::Response)),
            message("user", Some(Direction::Response)),
            message("server", None),
        ];
        let lanes = Lanes::new("subject", &document, &messages);
        assert_eq!(lanes.names, ["subject", "user", "server"]);
        let arrows: Vec<_> = messages
            .iter()
            .map(|message| {
                let arrow = lanes.arrow(message);
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
    fn an_actor_named_like_the_subject_has_a_lane_of_its_own() {
        let document = DocumentInfo::default();
        let messages = [Message {
            actor: Some("subject".to_owned()),
            direction: Some(Direction::Response),
            ..Message::new("mcp", "x", Value::Null)
        }];
        let lanes = Lanes::new("subject", &document, &messages);
        assert_eq!(lanes.names.len(), 2);
        assert_eq!(lanes.arrow(&messages[0]).from, 1);
    }
}
