//! Messages of a trace as they are judged: those that came in pieces are whole.

use proofhouse_oatf::{Direction, Protocol};
use proofhouse_protocol::assembly::{
    AssembledMessage, Assembler, AssemblyLimits, StreamRole, WireMessage,
};
use serde::{Deserialize, Serialize};

use super::message::TraceMessage;

/// Puts together what came in pieces, and hands everything on as it is judged. Whoever judges messages that come from
/// here says what a [`ScanSession`](crate::ScanSession) says.
///
/// ```
/// use proofhouse_detect::{MessageAssembler, TraceMessage};
/// use serde_json::json;
///
/// let mut assembler = MessageAssembler::default();
/// let mut judged = Vec::new();
/// for delta in ["CANA", "RY"] {
///     let piece = json!({"messageId": "m", "delta": delta});
///     assembler.feed(None, &TraceMessage::new("ag_ui", "text_message_content", piece), &mut |whole| {
///         judged.push(whole.message.content.clone());
///     });
/// }
/// assert!(judged.is_empty(), "it may go on");
/// assembler.finish(&mut |whole| judged.push(whole.message.content.clone()));
/// assert_eq!(judged, [json!({"messageId": "m", "delta": "CANARY"})]);
/// ```
#[derive(Debug)]
pub struct MessageAssembler(Assembler<TraceLane, PiecePlace>);

/// A message as it is judged.
#[derive(Debug, Clone, Copy)]
pub struct WholeMessage<'m> {
    /// The message; of one that came in pieces, with the number and the time of the first.
    pub message: &'m TraceMessage,
    /// The line it stands on, or its first piece.
    pub line: Option<u64>,
    /// Its pieces, where there are several.
    pub pieces: Option<MessagePieces>,
    /// Whether it is only a part, because the whole is larger than what is held.
    pub is_part: bool,
}

impl<'m> WholeMessage<'m> {
    /// A message that is judged by itself.
    #[must_use]
    pub fn alone(line: Option<u64>, message: &'m TraceMessage) -> Self {
        Self {
            message,
            line,
            pieces: None,
            is_part: false,
        }
    }
}

/// Where the pieces of a message stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePieces {
    /// How many there are.
    pub count: u64,
    /// The number of the last one.
    pub last_sequence: u64,
    /// The line of the last one, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u64>,
}

/// Traffic whose ids mean the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TraceLane {
    protocol: Protocol,
    actor: Option<String>,
    direction: Option<Direction>,
}

/// Where a piece stands.
#[derive(Debug, Clone)]
struct PiecePlace {
    sequence: u64,
    line: Option<u64>,
    time: Option<String>,
}

impl Default for MessageAssembler {
    fn default() -> Self {
        Self::new(AssemblyLimits::default())
    }
}

/// How a message is judged.
pub(crate) enum JudgedAs {
    /// By itself, and it has nothing to do with others.
    Itself,
    /// By itself; the assembler wants to hear of it.
    ItselfAndMark,
    /// By itself, with this message in its place.
    Other(Box<TraceMessage>),
    /// As a piece of a longer one.
    Piece,
}

impl JudgedAs {
    pub(crate) fn of(message: &TraceMessage) -> Self {
        match StreamRole::of(&wire(message)) {
            None => Self::Itself,
            Some(StreamRole::Piece(_)) => Self::Piece,
            Some(StreamRole::Mark(_)) => Self::ItselfAndMark,
            Some(StreamRole::Joined(content)) => Self::Other(Box::new(TraceMessage {
                sequence: message.sequence,
                time: message.time.clone(),
                actor: message.actor.clone(),
                direction: message.direction,
                ..TraceMessage::new(
                    message.protocol.clone(),
                    message.operation.as_str(),
                    content,
                )
            })),
        }
    }
}

impl MessageAssembler {
    /// With other limits than the usual ones.
    #[must_use]
    pub fn new(limits: AssemblyLimits) -> Self {
        Self(Assembler::new(limits))
    }

    /// Takes the next message, and hands on what is judged now: messages that end with it, and itself unless it is
    /// a piece.
    pub fn feed(
        &mut self,
        line: Option<u64>,
        message: &TraceMessage,
        judge: &mut dyn FnMut(WholeMessage<'_>),
    ) {
        match JudgedAs::of(message) {
            JudgedAs::Itself => judge(WholeMessage::alone(line, message)),
            JudgedAs::Other(other) => judge(WholeMessage::alone(line, &other)),
            JudgedAs::Piece => self.follow(line, message, judge),
            JudgedAs::ItselfAndMark => {
                self.follow(line, message, judge);
                judge(WholeMessage::alone(line, message));
            }
        }
    }

    /// Takes a piece or a mark, and hands on only what ends with it.
    pub(crate) fn follow(
        &mut self,
        line: Option<u64>,
        message: &TraceMessage,
        judge: &mut dyn FnMut(WholeMessage<'_>),
    ) {
        let wire = wire(message);
        let Some(role) = StreamRole::of(&wire) else {
            return;
        };
        let lane = TraceLane {
            protocol: message.protocol.clone(),
            actor: message.actor.clone(),
            direction: message.direction,
        };
        let place = PiecePlace {
            sequence: message.sequence,
            line,
            time: message.time.clone(),
        };
        self.0.take(&lane, &wire, role, &place, &mut |whole| {
            hand_on(whole, judge);
        });
    }

    /// Hands on what has not ended, as it stands, and goes on with it.
    pub(crate) fn unfinished(&self, judge: &mut dyn FnMut(WholeMessage<'_>)) {
        for whole in self.0.unfinished() {
            hand_on(whole, judge);
        }
    }

    /// Whether there is nothing that has not ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Nothing more comes: hands on what was cut off.
    pub fn finish(&mut self, judge: &mut dyn FnMut(WholeMessage<'_>)) {
        self.0.finish(&mut |whole| hand_on(whole, judge));
    }
}

fn wire(message: &TraceMessage) -> WireMessage<'_> {
    WireMessage {
        protocol: message.protocol.as_str(),
        operation: &message.operation,
        is_request: message.direction == Some(Direction::Request),
        content: &message.content,
    }
}

fn hand_on(
    whole: AssembledMessage<TraceLane, PiecePlace>,
    judge: &mut dyn FnMut(WholeMessage<'_>),
) {
    let TraceLane {
        protocol,
        actor,
        direction,
    } = whole.lane;
    let message = TraceMessage {
        sequence: whole.first.sequence,
        time: whole.first.time,
        actor,
        direction,
        ..TraceMessage::new(protocol, whole.operation, whole.content)
    };
    let pieces = MessagePieces {
        count: whole.pieces,
        last_sequence: whole.last.sequence,
        last_line: whole.last.line,
    };
    judge(WholeMessage {
        message: &message,
        line: whole.first.line,
        pieces: (whole.pieces > 1).then_some(pieces),
        is_part: whole.is_part,
    });
}
