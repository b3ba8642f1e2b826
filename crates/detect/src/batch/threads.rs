//! The threads of a scan: one reads, several judge, and the caller's puts together.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use super::budget::ByteBudget;
use super::piece::{self, JudgedPiece, PieceItems, RawLines, TracePiece};
use super::{ScanEvent, ScanOptions, Scanned};
use crate::import::{Format, ImportOptions, source};
use crate::scanner::{Scanner, Worker};
use crate::trace::lines::LineSplitter;
use crate::trace::reader::TraceOrder;
use crate::trace::{ReadSummary, TraceReadError};

/// More threads than this are of no use on any machine there is.
const MAX_JOBS: usize = 256;

/// How many pieces per worker may be under way.
const AHEAD: usize = 3;

/// A piece on its way to a worker.
struct WorkerTask {
    number: u64,
    piece: TracePiece,
}

/// What the thread that puts together hears.
enum News {
    /// A piece was judged; so much of the budget comes back.
    Judged(u64, usize, Box<JudgedPiece>),
    /// There are this many pieces, and this is why there are no more.
    End(u64, ReadSummary, Option<TraceReadError>),
    /// A worker panicked; nothing will come of its piece.
    Lost,
}

/// Scans with threads. Where the system has none to give, the lines come back untouched.
pub(super) fn scan<'s, R: Read + Send>(
    scanner: &'s Scanner,
    format: Format,
    lines: LineSplitter<R>,
    options: &ScanOptions,
    on_event: &mut dyn FnMut(ScanEvent<'_>),
) -> Result<Scanned<'s>, Box<LineSplitter<R>>> {
    let jobs = options.jobs.get().min(MAX_JOBS);
    let piece_bytes = options.piece_bytes.max(1);
    let budget = ByteBudget::new(piece_bytes.saturating_mul(jobs).saturating_mul(AHEAD));
    let (tasks, queue) = channel::<WorkerTask>();
    let queue = Mutex::new(queue);
    let (news, heard) = channel::<News>();
    // The reader gets the lines last, when it is certain that they will be judged.
    let (hand_over, lines_come) = channel::<LineSplitter<R>>();
    std::thread::scope(|scope| {
        // Whatever ends this closure, the reader must not wait for room that never comes.
        let _closing = Closing(&budget);
        let mut workers = 0;
        for _ in 0..jobs {
            let news = news.clone();
            let worker = Builder::new().spawn_scoped(scope, || work(scanner, &queue, news));
            if worker.is_err() {
                // Fewer will do.
                break;
            }
            workers += 1;
        }
        let budget = &budget;
        let import = &options.import;
        let reader = Builder::new().spawn_scoped(scope, move || {
            let Ok(lines) = lines_come.recv() else {
                return;
            };
            let mut feeder = Feeder {
                tasks,
                budget,
                next: 0,
            };
            // Only the lines of our own format never depend on each other.
            let (summary, error) = if format == Format::Trace {
                feeder.feed_lines(lines, piece_bytes)
            } else {
                feeder.feed_items(lines, format, import, piece_bytes)
            };
            let _ = news.send(News::End(feeder.next, summary, error));
        });
        let hand_over = hand_over;
        if workers == 0 || reader.is_err() {
            return Err(Box::new(lines));
        }
        hand_over
            .send(lines)
            .map_err(|SendError(lines)| Box::new(lines))?;
        Ok(put_together(scanner, format, &heard, budget, on_event))
    })
}

struct Closing<'a>(&'a ByteBudget);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Cuts the input into pieces and hands them out.
struct Feeder<'a> {
    tasks: Sender<WorkerTask>,
    budget: &'a ByteBudget,
    next: u64,
}

impl Feeder<'_> {
    /// Hands out a piece; `false` when nobody wants more.
    fn hand_out(&mut self, piece: TracePiece) -> bool {
        if !self.budget.take(piece.weight()) {
            return false;
        }
        let number = self.next;
        self.next += 1;
        self.tasks.send(WorkerTask { number, piece }).is_ok()
    }

    fn feed_lines<R: Read>(
        &mut self,
        mut lines: LineSplitter<R>,
        piece_bytes: usize,
    ) -> (ReadSummary, Option<TraceReadError>) {
        let mut piece = RawLines::new(0);
        let error = loop {
            match lines.next_line() {
                Ok(Some(line)) => piece.push(line),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
            piece.ended_at(lines.bytes());
            if piece.is_full(piece_bytes) {
                let full = std::mem::replace(&mut piece, RawLines::new(lines.bytes()));
                if !self.hand_out(TracePiece::Lines(full)) {
                    return (ReadSummary::default(), None);
                }
            }
        };
        if !piece.is_empty() {
            self.hand_out(TracePiece::Lines(piece));
        }
        (ReadSummary::default(), error)
    }

    fn feed_items<R: Read + Send>(
        &mut self,
        lines: LineSplitter<R>,
        format: Format,
        import: &ImportOptions,
        piece_bytes: usize,
    ) -> (ReadSummary, Option<TraceReadError>) {
        let mut messages = source(lines, format, import);
        let mut piece = PieceItems::default();
        let error = loop {
            match messages.next() {
                Some(Ok(item)) => piece.push(item),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
            if piece.is_full(piece_bytes) {
                piece.so_far = messages.summary().clone();
                if !self.hand_out(TracePiece::Items(std::mem::take(&mut piece))) {
                    return (messages.summary().clone(), None);
                }
            }
        };
        if !piece.is_empty() {
            piece.so_far = messages.summary().clone();
            self.hand_out(TracePiece::Items(piece));
        }
        (messages.summary().clone(), error)
    }
}

/// Judges pieces until there are no more.
fn work(scanner: &Scanner, queue: &Mutex<Receiver<WorkerTask>>, news: Sender<News>) {
    let news = Voice(news);
    let mut worker = Worker::new(scanner);
    loop {
        let task = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(WorkerTask { number, piece }) = task else {
            return;
        };
        let weight = piece.weight();
        let judged = Box::new(piece.judge(&mut worker));
        if news.0.send(News::Judged(number, weight, judged)).is_err() {
            return;
        }
    }
}

/// Says so when its worker panics, so that nobody waits for it.
struct Voice(Sender<News>);

impl Drop for Voice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(News::Lost);
        }
    }
}

/// Puts together what the workers found, in the order of the pieces.
fn put_together<'s>(
    scanner: &'s Scanner,
    format: Format,
    heard: &Receiver<News>,
    budget: &ByteBudget,
    on_event: &mut dyn FnMut(ScanEvent<'_>),
) -> Scanned<'s> {
    let mut scanned = Scanned {
        format,
        session: scanner.session(),
        summary: ReadSummary::default(),
        error: None,
    };
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    let mut previous = TraceOrder::default();
    let mut in_parts = 0;
    let mut end: Option<(u64, ReadSummary, Option<TraceReadError>)> = None;
    while end.as_ref().is_none_or(|(pieces, ..)| next < *pieces) {
        match heard.recv() {
            Ok(News::Judged(number, weight, judged)) => {
                waiting.insert(number, (weight, judged));
            }
            Ok(News::End(pieces, summary, error)) => end = Some((pieces, summary, error)),
            // The scope hands the panic on.
            Ok(News::Lost) | Err(_) => return scanned,
        }
        while let Some((weight, mut judged)) = waiting.remove(&next) {
            next += 1;
            judged.follow(&mut previous);
            let JudgedPiece {
                part,
                read,
                mut problems,
                error,
                ..
            } = *judged;
            scanned.session.append(part);
            for problem in scanned.session.take_in_parts() {
                in_parts += 1;
                let after = problems.partition_point(|earlier| earlier.line <= problem.line);
                problems.insert(after, problem);
            }
            match read {
                piece::PieceRead::Here(here) => scanned.summary.add(&here),
                piece::PieceRead::SoFar(so_far) => scanned.summary = so_far,
            }
            for problem in problems {
                on_event(ScanEvent::Problem(problem));
            }
            on_event(ScanEvent::Progress(&scanned.summary));
            budget.give_back(weight);
            if error.is_some() {
                // What comes after cannot be judged rightly, even where it was judged already.
                scanned.error = error;
                scanned.summary.count_in_parts(in_parts);
                return scanned;
            }
        }
    }
    if let Some((_, summary, error)) = end {
        if format != Format::Trace {
            scanned.summary = summary;
        }
        scanned.error = error;
    }
    scanned.summary.count_in_parts(in_parts);
    scanned
}
