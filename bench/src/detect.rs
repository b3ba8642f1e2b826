//! Detecting: a library of documents over a stream of messages, beside evaluating one by one.

use std::hint::black_box;
use std::io::Read;
use std::time::{Duration, Instant};

use proofhouse_detect::{ScanOptions, Scanner, TraceMessage, dropped_by};

use crate::{Options, corpus, figure, memory, traffic};

/// The size of the message that an inline guard is measured with.
const INLINE_BYTES: usize = 10_000;

/// What a scan of a million messages may hold, in megabytes.
const MAX_RESIDENT: f64 = 128.0;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let texts = corpus::documents(&options.documents)?;
    let library = Library::load(&texts)?;
    let messages = traffic::messages();
    let matches = library.check_agreement(&messages)?;
    figure::say(&format!(
        "detect: {} documents, {} indicators, {} messages with {matches} matches",
        texts.len(),
        library.scanner.len(),
        messages.len(),
    ));
    let pair = library.measure(options, "detect", &messages);
    share_of_parsing(options, &library.scanner, &messages, pair);
    scaling(options, &library.scanner, &messages);
    for (name, message) in traffic::large(INLINE_BYTES) {
        library.measure(options, name, &[message]);
    }
    flat_memory(options, &library.scanner, &messages)
}

/// The same indicators on both sides, in the same order.
struct Library {
    scanner: Scanner,
    ours: Vec<proofhouse_oatf::Indicator>,
    peers: Vec<oatf::Indicator>,
}

/// Seconds per message on each side.
#[derive(Clone, Copy)]
struct Cost {
    ours: f64,
}

impl Library {
    fn load(texts: &[String]) -> Result<Self, String> {
        let mut builder = Scanner::builder();
        let (mut ours, mut peers) = (Vec::new(), Vec::new());
        for (number, text) in texts.iter().enumerate() {
            let document = proofhouse_oatf::load(text)
                .map_err(|errors| errors[0].to_string())?
                .document;
            let indicators = document.attack.indicators().to_vec();
            if indicators.is_empty() {
                continue;
            }
            ours.extend(indicators);
            builder = builder.add(number.to_string(), document);
            let loaded =
                oatf::load(text).map_err(|_| "the peer cannot load a document".to_owned())?;
            peers.extend(loaded.document.attack.indicators.unwrap_or_default());
        }
        if ours.len() != peers.len() {
            return Err(format!(
                "{} indicators here, {} there",
                ours.len(),
                peers.len()
            ));
        }
        let scanner = builder.build().map_err(|error| error.to_string())?;
        Ok(Self {
            scanner,
            ours,
            peers,
        })
    }

    /// How many indicators match, one by one. Both sides apply the same filters, so that the peer
    /// does no more than it must.
    fn one_by_one(&self, message: &TraceMessage) -> usize {
        let cel = oatf::evaluate::DefaultCelEvaluator;
        let kept = self
            .ours
            .iter()
            .zip(&self.peers)
            .filter(|(ours, _)| dropped_by(ours, message).is_none());
        kept.filter(|(_, indicator)| {
            let content = &message.content;
            let verdict = oatf::evaluate::evaluate_indicator(indicator, content, Some(&cel), None);
            matches!(verdict.result, oatf::enums::IndicatorResult::Matched)
        })
        .count()
    }

    /// A comparison only means something when both find the same.
    fn check_agreement(&self, messages: &[TraceMessage]) -> Result<usize, String> {
        let mut matches = 0;
        for message in messages {
            let (ours, peer) = (self.scanner.scan(message).len(), self.one_by_one(message));
            if ours != peer {
                return Err(format!(
                    "message {}: {ours} matches here, {peer} there",
                    message.sequence
                ));
            }
            matches += ours;
        }
        Ok(matches)
    }

    fn measure(&self, options: &Options, name: &str, messages: &[TraceMessage]) -> Cost {
        let passes = if options.quick { 10 } else { 2_000 };
        let mut session = self.scanner.session();
        let pair = figure::side_by_side(
            options.quick,
            || {
                for _ in 0..passes {
                    messages.iter().for_each(|message| session.feed(message));
                }
            },
            || {
                for message in messages {
                    black_box(self.one_by_one(message));
                }
            },
        );
        black_box(session.verdicts());
        let count = messages.len() as f64;
        let ours = pair.ours.as_secs_f64() / (count * f64::from(passes));
        let peer = pair.peer.as_secs_f64() / count;
        if messages.len() == 1 {
            let (ours, peer) = (ours * 1e6, peer * 1e6);
            figure::print(name, ours, peer, peer / ours, "us/message");
        } else {
            figure::print(name, 1.0 / ours, 1.0 / peer, peer / ours, "messages/s");
        }
        Cost { ours }
    }
}

/// The yardstick: nothing can judge a message faster than it can be read.
fn share_of_parsing(options: &Options, scanner: &Scanner, messages: &[TraceMessage], cost: Cost) {
    let lines: Vec<String> = messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap_or_default())
        .collect();
    let bytes: usize = lines.iter().map(String::len).sum();
    let passes = if options.quick { 10 } else { 500 };
    let parse = || {
        for line in lines.iter().cycle().take(lines.len() * passes) {
            let _ = black_box(serde_json::from_str::<serde_json::Value>(black_box(line)));
        }
    };
    let mut session = scanner.session();
    let scan = || {
        for message in messages.iter().cycle().take(messages.len() * passes) {
            session.feed(message);
        }
    };
    let pair = figure::side_by_side(options.quick, scan, parse);
    let count = (lines.len() * passes) as f64;
    let parse = pair.peer.as_secs_f64() / count;
    let rate = |seconds: f64| bytes as f64 / lines.len() as f64 / seconds / 1e6;
    figure::say(&format!(
        "detect: scanning takes {:.0} % of the time of parsing the same {bytes} bytes of JSON",
        100.0 * pair.ours.as_secs_f64() / pair.peer.as_secs_f64(),
    ));
    figure::print(
        "detect-parse",
        rate(cost.ours),
        rate(parse),
        parse / cost.ours,
        "MB/s",
    );
}

/// The same messages on one thread and on two.
fn scaling(options: &Options, scanner: &Scanner, messages: &[TraceMessage]) {
    let passes = if options.quick { 10 } else { 4_000 };
    let work = |passes: usize| {
        let mut session = scanner.session();
        for _ in 0..passes {
            messages.iter().for_each(|message| session.feed(message));
        }
        black_box(session.messages());
    };
    let timed = |work: &dyn Fn()| -> Duration {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let mut ratios: Vec<(f64, f64)> = Vec::new();
    for _ in 0..if options.quick { 1 } else { 5 } {
        let one = timed(&|| work(passes));
        let two = timed(&|| {
            std::thread::scope(|scope| {
                scope.spawn(|| work(passes / 2));
                scope.spawn(|| work(passes / 2));
            });
        });
        let count = (passes * messages.len()) as f64;
        ratios.push((count / two.as_secs_f64(), count / one.as_secs_f64()));
    }
    ratios.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (two, one) = ratios[ratios.len() / 2];
    figure::print("detect-two-cores", two, one, two / one, "messages/s");
}

/// A long trace, scanned on all cores as it is made, so that only the scanner holds memory.
fn flat_memory(
    options: &Options,
    scanner: &Scanner,
    messages: &[TraceMessage],
) -> Result<(), String> {
    let count = if options.quick { 20_000 } else { 1_000_000 };
    let lines = messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap_or_default() + "\n");
    let source = Repeated {
        block: lines.collect::<String>().into_bytes(),
        at: 0,
        left: count / messages.len(),
    };
    memory::forget_peak();
    let scan = ScanOptions {
        jobs: std::thread::available_parallelism().map_err(|error| error.to_string())?,
        ..ScanOptions::default()
    };
    let started = Instant::now();
    let scanned = scanner.scan_input(source, &scan, |_| {});
    let took = started.elapsed().as_secs_f64();
    let read = scanned.summary.messages;
    figure::say(&format!(
        "detect-memory: a trace of {read} messages and {} MB in {took:.1} s on {} threads, {:.0} messages/s",
        scanned.summary.bytes / 1_000_000,
        scan.jobs,
        read as f64 / took,
    ));
    let peak = memory::peak().unwrap_or(0) as f64 / 1e6;
    figure::print(
        "detect-memory",
        peak,
        MAX_RESIDENT,
        MAX_RESIDENT / peak,
        "MB",
    );
    Ok(())
}

/// The same lines again and again, without holding more than one round of them.
struct Repeated {
    block: Vec<u8>,
    at: usize,
    left: usize,
}

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let count = buffer.len().min(self.block.len() - self.at);
        buffer[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        if self.at == self.block.len() {
            self.at = 0;
            self.left -= 1;
        }
        Ok(count)
    }
}
