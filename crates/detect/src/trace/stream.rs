//! What the readers of all formats share: lines in, items out, counting on the way, an end that stays.

use std::io::Read;

use super::item::{MessageSource, ReadSummary, TraceItem, TraceReadError};
use super::lines::LineSplitter;

/// How the lines of one format become items.
pub trait LineFormat {
    /// The next item; `None` when the lines are used up.
    #[doc(hidden)]
    fn step<R: Read>(
        &mut self,
        lines: &mut LineSplitter<R>,
        summary: &mut ReadSummary,
    ) -> Result<Option<TraceItem>, TraceReadError>;
}

/// Reads messages from lines of the format `F`, in flat memory. For our own traces it is called
/// [`TraceReader`](crate::TraceReader); [`open`](crate::open) makes one for any format.
///
/// A bad line is yielded as a [problem](TraceItem::Problem), counted and skipped. An error of the input
/// or the decompressor ends the reading, after everything that came before it.
pub struct MessageReader<R: Read, F> {
    lines: LineSplitter<R>,
    summary: ReadSummary,
    pub(crate) format: F,
    done: bool,
}

impl<R: Read, F> MessageReader<R, F> {
    pub(crate) fn over(lines: LineSplitter<R>, format: F) -> Self {
        Self {
            lines,
            summary: ReadSummary::default(),
            format,
            done: false,
        }
    }
}

impl<R: Read, F: LineFormat> Iterator for MessageReader<R, F> {
    type Item = Result<TraceItem, TraceReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self
            .format
            .step(&mut self.lines, &mut self.summary)
            .transpose();
        self.summary.lines = self.lines.number();
        self.summary.bytes = self.lines.bytes();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

impl<R: Read, F: LineFormat> MessageSource for MessageReader<R, F> {
    fn summary(&self) -> &ReadSummary {
        &self.summary
    }
}
