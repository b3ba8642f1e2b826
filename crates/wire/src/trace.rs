//! Trace context: which request something is done for, as others say and are told it in `traceparent` (W3C Trace Context).
//!
//! Spans are those of `tracing`. What numbers they have is known to whoever exports them, which says so through a
//! [`TraceBridge`]; without one, what somebody handed in is passed on as it is.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use http::{HeaderMap, HeaderValue};
use tracing::Instrument as _;

pub use tracing::Span;

/// The header, and the key of `_meta` in MCP.
pub const TRACEPARENT: &str = "traceparent";

/// The characters of the version that is written.
const LENGTH: usize = 55;

/// A span of somebody's that something is done for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace; never 0.
    pub trace: u128,
    /// The span; never 0.
    pub span: u64,
    /// Flags; the lowest says that the trace is recorded.
    pub flags: u8,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no `traceparent`")]
pub struct NoTraceParent;

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        let head = text.as_bytes().get(..LENGTH).ok_or(NoTraceParent)?;
        if !head.iter().copied().all(is_plain) {
            return Err(NoTraceParent);
        }
        let part = |from: usize, to: usize| {
            let is_whole = to == LENGTH || head.get(to) == Some(&b'-');
            let part = text.get(from..to).filter(|part| !part.contains('-'));
            part.filter(|_| is_whole).ok_or(NoTraceParent)
        };
        let (version, trace, span, flags) =
            (part(0, 2)?, part(3, 35)?, part(36, 52)?, part(53, LENGTH)?);
        // Later versions may say more after this.
        let is_known = match version {
            "00" => text.len() == LENGTH,
            "ff" => false,
            _ => text.len() == LENGTH || text.as_bytes().get(LENGTH) == Some(&b'-'),
        };
        let parent = Self {
            trace: u128::from_str_radix(trace, 16).map_err(|_| NoTraceParent)?,
            span: u64::from_str_radix(span, 16).map_err(|_| NoTraceParent)?,
            flags: u8::from_str_radix(flags, 16).map_err(|_| NoTraceParent)?,
        };
        if is_known && parent.trace != 0 && parent.span != 0 {
            Ok(parent)
        } else {
            Err(NoTraceParent)
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

impl TraceParent {
    /// What a request says, if it says so once and well.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut said = headers.get_all(TRACEPARENT).iter();
        let (first, more) = (said.next()?, said.next());
        first.to_str().ok().filter(|_| more.is_none())?.parse().ok()
    }

    /// The span that is under way here, or else what was handed in.
    #[must_use]
    pub fn current() -> Option<Self> {
        let spans = BRIDGE.get();
        let own = spans.and_then(|bridge| bridge.context_of(&Span::current()));
        own.or_else(|| HANDED_IN.try_with(|handed_in| *handed_in).ok().flatten())
    }
}

/// Knows the numbers of spans.
pub trait TraceBridge: Send + Sync {
    /// A span as others are told of it; nothing if it is not exported.
    fn context_of(&self, span: &Span) -> Option<TraceParent>;

    /// Makes a span the child of somebody's.
    fn adopt(&self, span: &Span, parent: TraceParent);
}

static BRIDGE: OnceLock<Box<dyn TraceBridge>> = OnceLock::new();

tokio::task_local! {
    static HANDED_IN: Option<TraceParent>;
}

/// Has this bridge tell the numbers of spans, for the whole process, unless there is one already.
pub fn set_bridge(bridge: Box<dyn TraceBridge>) {
    let _ = BRIDGE.set(bridge);
}

/// Says in a request what it is sent for, unless it says so already.
pub fn inject(headers: &mut HeaderMap) {
    if headers.contains_key(TRACEPARENT) {
        return;
    }
    let current = TraceParent::current();
    if let Some(value) = current.and_then(|one| HeaderValue::from_str(&one.to_string()).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

/// What something is done for, to go on with in another place.
#[derive(Debug, Clone)]
pub struct TraceScope {
    span: Span,
    handed_in: Option<TraceParent>,
}

impl TraceScope {
    /// What is under way here.
    #[must_use]
    pub fn current() -> Self {
        Self {
            span: Span::current(),
            handed_in: TraceParent::current(),
        }
    }

    /// A span of ours, below somebody's if there is one.
    #[must_use]
    pub fn below(span: Span, parent: Option<TraceParent>) -> Self {
        if let (Some(bridge), Some(parent)) = (BRIDGE.get(), parent) {
            bridge.adopt(&span, parent);
        }
        Self {
            span,
            handed_in: parent,
        }
    }

    /// Does something as a part of it.
    pub async fn run<T>(self, work: impl Future<Output = T>) -> T {
        let work = HANDED_IN.scope(self.handed_in, work);
        work.instrument(self.span).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_what_is_well_formed_is_heard() {
        let read: TraceParent = SAID.parse().unwrap();
        assert_eq!(read.to_string(), SAID);
        assert_eq!(read.span, 0xb7ad_6b71_6920_3331);
        let later = SAID.replacen("00", "cc", 1);
        assert_eq!(later.parse(), Ok(read));
        assert_eq!(format!("{later}-more").parse(), Ok(read));
        for wrong in [
            "",
            "00",
            &SAID[..54],
            &format!("{SAID}-more"),
            &format!("{later}more"),
            &SAID.to_uppercase(),
            &SAID.replacen("00", "ff", 1),
            &SAID.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &SAID.replace("b7ad6b7169203331", &"0".repeat(16)),
            &SAID.replacen('-', "0", 1),
            &SAID.replace("b7ad", "b7-d"),
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-1",
        ] {
            assert_eq!(wrong.parse::<TraceParent>(), Err(NoTraceParent), "{wrong}");
        }
    }

    #[tokio::test]
    async fn what_was_handed_in_is_passed_on_once() {
        let mut headers = HeaderMap::new();
        inject(&mut headers);
        assert!(headers.is_empty(), "nobody handed anything in");
        headers.insert(TRACEPARENT, HeaderValue::from_static(SAID));
        let said = TraceParent::of_headers(&headers);
        headers.append(TRACEPARENT, HeaderValue::from_static(SAID));
        assert_eq!(TraceParent::of_headers(&headers), None, "it is there twice");
        let inside = async {
            let scope = TraceScope::current();
            let elsewhere = tokio::spawn(scope.run(async {
                let mut headers = HeaderMap::new();
                inject(&mut headers);
                headers
            }));
            elsewhere.await.unwrap()
        };
        let sent = TraceScope::below(Span::none(), said).run(inside).await;
        assert_eq!(TraceParent::of_headers(&sent), said);
        let mut own = HeaderMap::new();
        own.insert(TRACEPARENT, HeaderValue::from_static("mine"));
        inject(&mut own);
        assert_eq!(own.get(TRACEPARENT).unwrap(), "mine");
    }
}
