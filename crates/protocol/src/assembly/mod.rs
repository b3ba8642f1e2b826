//! Messages that come in pieces, put together: what an agent streams is one text, however it is cut.
//!
//! Pieces belong together by the id that the protocol gives them: texts, reasoning, arguments of calls and patches of
//! AG-UI; artifacts, status messages and messages of A2A streams; progress of MCP. The whole has the members of its
//! pieces, the newer where they differ, and the whole text where a piece has its own. It is handed out when it ends, and
//! asked for where it was cut off. A message that goes on after its end is handed out again, as a whole.
//!
//! All that a sender can make grow has a limit, and whatever does not fit is handed out before it is let go.

mod join;
mod role;

use std::collections::HashMap;
use std::hash::Hash;

use serde_json::Value;

use join::GrownText;
use role::PieceForm;
pub use role::{StreamMark, StreamPiece, StreamRole, WireMessage};

/// How much is held of messages that have not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssemblyLimits {
    /// Bytes of one message. A longer one is handed out in parts that overlap.
    pub max_message_bytes: usize,
    /// Bytes of all messages. The oldest are handed out as they stand.
    pub max_bytes: usize,
    /// Messages. The oldest are handed out as they stand.
    pub max_messages: usize,
    /// How much of a message that is too long stands in two of its parts.
    pub overlap_bytes: usize,
}

impl Default for AssemblyLimits {
    /// Messages of 8 MiB, 64 MiB and 4,096 messages in all, parts that overlap by 64 KiB.
    fn default() -> Self {
        Self {
            max_message_bytes: 8 << 20,
            max_bytes: 64 << 20,
            max_messages: 4_096,
            overlap_bytes: 64 << 10,
        }
    }
}

/// How often one message is handed out: because it goes on after its end, or says two things about itself. More would
/// let a few bytes have a long text judged again and again.
const MAX_HAND_OUTS: u32 = 8;

/// A message that was put together.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledMessage<L, P> {
    /// Whose traffic it is.
    pub lane: L,
    /// The operation of its pieces.
    pub operation: String,
    /// The content: that of a piece, with the whole text.
    pub content: Value,
    /// The first piece.
    pub first: P,
    /// The last one.
    pub last: P,
    /// How many there are.
    pub pieces: u64,
    /// Whether it is handed out because of a limit, before its end.
    pub is_part: bool,
}

/// Puts messages together. `L` keeps traffic apart that has nothing to do with each other, `P` is what is remembered of
/// a piece.
///
/// ```
/// use proofhouse_protocol::assembly::{Assembler, AssemblyLimits, StreamRole, WireMessage};
/// use serde_json::json;
///
/// let mut assembler = Assembler::new(AssemblyLimits::default());
/// let mut whole = Vec::new();
/// for (number, (operation, content)) in [
///     ("text_message_content", json!({"messageId": "m", "delta": "CANA"})),
///     ("text_message_content", json!({"messageId": "m", "delta": "RY"})),
///     ("text_message_end", json!({"messageId": "m"})),
/// ].iter().enumerate() {
///     let message = WireMessage { protocol: "ag_ui", operation, is_request: false, content };
///     if let Some(role) = StreamRole::of(&message) {
///         assembler.take(&(), &message, role, &number, &mut |message| whole.push(message));
///     }
/// }
/// assert_eq!(whole[0].content, json!({"messageId": "m", "delta": "CANARY"}));
/// assert_eq!((whole[0].first, whole[0].last), (0, 1));
/// ```
#[derive(Debug)]
pub struct Assembler<L, P> {
    limits: AssemblyLimits,
    open: HashMap<StreamKey<L>, OpenMessage<P>>,
    bytes: usize,
    /// Counts pieces; tells which message began or grew before another.
    clock: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StreamKey<L> {
    lane: L,
    stream: &'static str,
    group: String,
    id: String,
}

/// A message that grows, or that may go on.
#[derive(Debug)]
struct OpenMessage<P> {
    /// When it began; messages are handed out in this order.
    began: u64,
    grew_at: u64,
    operation: String,
    form: PieceForm,
    around: Value,
    text: GrownText,
    bytes: usize,
    first: P,
    last: P,
    pieces: u64,
    /// Whether it grew since it was handed out.
    grew: bool,
    hand_outs: u32,
}

/// Hears of every message that is handed out.
type HandOut<'h, L, P> = dyn FnMut(AssembledMessage<L, P>) + 'h;

impl<L: Clone + Eq + Hash, P: Clone> Assembler<L, P> {
    /// One that holds nothing.
    #[must_use]
    pub fn new(limits: AssemblyLimits) -> Self {
        Self {
            limits,
            open: HashMap::new(),
            bytes: 0,
            clock: 0,
        }
    }

    /// Takes a message with a role, and hands out what ends with it.
    pub fn take(
        &mut self,
        lane: &L,
        message: &WireMessage<'_>,
        role: StreamRole<'_>,
        piece: &P,
        hand_out: &mut HandOut<'_, L, P>,
    ) {
        match role {
            StreamRole::Piece(found) => self.add(lane, message, found, piece, hand_out),
            StreamRole::Mark(mark) => self.mark(lane, mark, hand_out),
            StreamRole::Joined(_) => {}
        }
    }

    fn add(
        &mut self,
        lane: &L,
        message: &WireMessage<'_>,
        found: StreamPiece<'_>,
        piece: &P,
        hand_out: &mut HandOut<'_, L, P>,
    ) {
        let (form, content) = (found.form, message.content);
        let id = match found.id {
            Some(id) => id,
            None => self.latest(lane, found.stream).unwrap_or_default(),
        };
        let key = StreamKey {
            lane: lane.clone(),
            stream: found.stream,
            group: found.group.to_owned(),
            id,
        };
        // Another kind of piece under the same id, a status and an artifact say, is of another message.
        let other_form = self.open.get(&key).is_some_and(|open| open.form != form);
        if found.begins || other_form {
            self.hand_out(&key, false, hand_out);
            self.forget(&key);
        }
        let contradicted = self.open.get(&key).is_some_and(|open| {
            open.grew
                && open.hand_outs < MAX_HAND_OUTS
                && join::contradicts(&open.around, content, form)
        });
        if contradicted {
            self.hand_out(&key, false, hand_out);
        }
        self.clock += 1;
        let clock = self.clock;
        let open = self.open.entry(key.clone()).or_insert_with(|| {
            let around = join::around(content, form);
            let bytes = join::weight(&around);
            self.bytes += bytes;
            OpenMessage {
                began: clock,
                grew_at: clock,
                operation: String::new(),
                form,
                around,
                text: GrownText::new(form),
                bytes,
                first: piece.clone(),
                last: piece.clone(),
                pieces: 0,
                grew: false,
                hand_outs: 0,
            }
        });
        self.bytes -= open.bytes;
        if open.pieces > 0 {
            let change = join::merge(&mut open.around, content, form);
            open.bytes = open.bytes.saturating_add_signed(change);
        }
        open.bytes += open.text.grow(form, content);
        self.bytes += open.bytes;
        if open.operation != message.operation {
            message.operation.clone_into(&mut open.operation);
        }
        open.last = piece.clone();
        open.pieces += 1;
        open.grew_at = clock;
        open.grew = true;
        if open.bytes > self.limits.max_message_bytes {
            self.shorten(&key, hand_out);
        }
        if found.ends {
            self.end(&key, hand_out);
        }
        if found.ends_group {
            self.end_where(|of| of.lane == *lane && of.group == found.group, hand_out);
        }
        self.make_room(hand_out);
    }

    fn mark(&mut self, lane: &L, mark: StreamMark<'_>, hand_out: &mut HandOut<'_, L, P>) {
        match mark {
            StreamMark::End { streams, id } => {
                for stream in streams {
                    if let Some(id) = id.clone().or_else(|| self.latest(lane, stream)) {
                        self.end(&StreamKey::plain(lane, stream, id), hand_out);
                    }
                }
            }
            StreamMark::Begin { streams, id } => {
                let [pieces, chunks] = streams;
                let id = id.unwrap_or_default();
                let key = StreamKey::plain(lane, pieces, id.clone());
                self.hand_out(&key, false, hand_out);
                self.forget(&key);
                let key = StreamKey::plain(lane, chunks, id);
                if self.open.get(&key).is_some_and(|open| !open.grew) {
                    self.forget(&key);
                }
            }
            StreamMark::EndGroup(group) => {
                self.end_where(|of| of.lane == *lane && of.group == group, hand_out);
            }
            StreamMark::EndAll => self.end_where(|of| of.lane == *lane, hand_out),
            StreamMark::BeginAll => {
                let is_over =
                    |of: &StreamKey<L>, open: &OpenMessage<P>| of.lane == *lane && !open.grew;
                self.forget_where(is_over);
            }
        }
    }

    /// What has not ended, as it stands, in the order in which it began.
    pub fn unfinished(&self) -> impl Iterator<Item = AssembledMessage<L, P>> {
        let mut open: Vec<_> = self.open.iter().filter(|(_, open)| open.grew).collect();
        open.sort_by_key(|(_, open)| open.began);
        open.into_iter().map(|(key, open)| open.whole(key, false))
    }

    /// Ends everything: what has not ended was cut off.
    pub fn finish(&mut self, hand_out: &mut HandOut<'_, L, P>) {
        self.end_where(|_| true, hand_out);
        self.open.clear();
        self.bytes = 0;
    }

    /// Whether there is nothing that has not ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !self.open.values().any(|open| open.grew)
    }

    /// The message of a stream that grew last.
    fn latest(&self, lane: &L, stream: &str) -> Option<String> {
        let open = self.open.iter();
        open.filter(|(key, _)| key.lane == *lane && key.stream == stream)
            .max_by_key(|(_, open)| open.grew_at)
            .map(|(key, _)| key.id.clone())
    }

    fn hand_out(&mut self, key: &StreamKey<L>, is_part: bool, hand_out: &mut HandOut<'_, L, P>) {
        if let Some(open) = self.open.get_mut(key)
            && open.grew
        {
            open.grew = false;
            open.hand_outs += 1;
            hand_out(open.whole(key, is_part));
        }
    }

    fn end(&mut self, key: &StreamKey<L>, hand_out: &mut HandOut<'_, L, P>) {
        self.hand_out(key, false, hand_out);
        let open = self.open.get(key);
        if open.is_some_and(|open| open.hand_outs >= MAX_HAND_OUTS) {
            self.forget(key);
        }
    }

    fn end_where(
        &mut self,
        ends: impl Fn(&StreamKey<L>) -> bool,
        hand_out: &mut HandOut<'_, L, P>,
    ) {
        let open = self
            .open
            .iter()
            .filter(|(key, open)| open.grew && ends(key));
        let mut keys: Vec<_> = open.map(|(key, open)| (open.began, key.clone())).collect();
        keys.sort_by_key(|(began, _)| *began);
        for (_, key) in keys {
            self.end(&key, hand_out);
        }
    }

    fn forget(&mut self, key: &StreamKey<L>) {
        if let Some(open) = self.open.remove(key) {
            self.bytes -= open.bytes;
        }
    }

    fn forget_where(&mut self, is_over: impl Fn(&StreamKey<L>, &OpenMessage<P>) -> bool) {
        let bytes = &mut self.bytes;
        self.open.retain(|key, open| {
            let stays = !is_over(key, open);
            if !stays {
                *bytes -= open.bytes;
            }
            stays
        });
    }

    /// Hands out a message that is too long, and keeps its end.
    fn shorten(&mut self, key: &StreamKey<L>, hand_out: &mut HandOut<'_, L, P>) {
        self.hand_out(key, true, hand_out);
        let limits = &self.limits;
        let overlap = limits.overlap_bytes.min(limits.max_message_bytes / 4);
        if let Some(open) = self.open.get_mut(key) {
            open.text.keep_end(overlap);
            self.bytes -= open.bytes;
            open.bytes = open.text.bytes() + join::weight(&open.around);
            self.bytes += open.bytes;
            open.first = open.last.clone();
            open.pieces = 1;
            open.hand_outs = 0;
        }
        // What is long by its other members would be handed out with every few pieces.
        let is_long = |open: &OpenMessage<P>| open.bytes > self.limits.max_message_bytes / 2;
        if self.open.get(key).is_some_and(is_long) {
            self.forget(key);
        }
    }

    /// Lets go of the oldest when there is too much: first of those that ended, then of others.
    fn make_room(&mut self, hand_out: &mut HandOut<'_, L, P>) {
        let limits = self.limits.clone();
        if self.bytes <= limits.max_bytes && self.open.len() <= limits.max_messages {
            return;
        }
        let open = self.open.iter();
        let mut keys: Vec<_> = open
            .map(|(key, open)| ((open.grew, open.began), key.clone()))
            .collect();
        keys.sort_by_key(|(age, _)| *age);
        // More than needed, so that the next one does not have to look again.
        let (bytes, messages) = (limits.max_bytes / 4 * 3, limits.max_messages / 4 * 3);
        for (_, key) in keys {
            if self.bytes <= bytes && self.open.len() <= messages {
                break;
            }
            self.hand_out(&key, true, hand_out);
            self.forget(&key);
        }
    }
}

impl<L: Clone> StreamKey<L> {
    /// Of a message that belongs to no group.
    fn plain(lane: &L, stream: &'static str, id: String) -> Self {
        Self {
            lane: lane.clone(),
            stream,
            group: String::new(),
            id,
        }
    }
}

impl<P: Clone> OpenMessage<P> {
    fn whole<L: Clone>(&self, key: &StreamKey<L>, is_part: bool) -> AssembledMessage<L, P> {
        AssembledMessage {
            lane: key.lane.clone(),
            operation: self.operation.clone(),
            content: self.text.within(&self.around, self.form),
            first: self.first.clone(),
            last: self.last.clone(),
            pieces: self.pieces,
            is_part,
        }
    }
}

#[cfg(test)]
mod tests;
