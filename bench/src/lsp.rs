//! The language server: from a keystroke in a document of 10,000 lines to its diagnostics, beside the check itself.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{BufReader, PipeReader, PipeWriter};
use std::time::{Duration, Instant};

use proofhouse_lsp::formats::check_alone;
use proofhouse_lsp::rpc::{read_frame, write_frame};
use proofhouse_lsp::{LspSettings, serve};
use proofhouse_oatf::ReadLimits;
use serde_json::{Value, json};

use crate::{Options, figure};

/// Lines of the document.
const LINES: usize = 10_000;
/// How long diagnostics may take after a keystroke, as a rule; it is not looked at with `--quick`.
const MOST_MILLISECONDS: f64 = 100.0;
/// How the document begins.
const HEAD: &str = "oatf: \"0.1\"\nattack:\n  id: BENCH-001\n  severity: high\n  execution:\n    mode: mcp_server\n    state:\n      tools:\n        - {name: t, description: d}\n  indicators:\n";
/// Lines of each entry after that; the last of them is a regular expression.
const ENTRY_LINES: usize = 5;
const URI: &str = "file:///bench/attack.yaml";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let text = document();
    let keystrokes = if options.quick { 2 } else { 50 };
    let limits = ReadLimits::default();
    let mut checks: Vec<Duration> = (0..keystrokes)
        .map(|_| {
            let started = Instant::now();
            black_box(check_alone(None, black_box(&text), &limits).findings.len());
            started.elapsed()
        })
        .collect();
    let mut client = Client::open(&text)?;
    let mut waits = Vec::with_capacity(keystrokes);
    for number in 0..keystrokes {
        waits.push(client.type_letter(number as u64 + 2)?);
    }
    checks.sort();
    waits.sort();
    let middle = |times: &[Duration]| times[times.len() / 2].as_secs_f64() * 1e3;
    let worst = |times: &[Duration]| times.last().map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let (ours, peer) = (middle(&waits), middle(&checks));
    figure::say(&format!(
        "lsp: {LINES} lines, {:.2} MB; keystroke to diagnostics {ours:.1} ms, at worst {:.1} ms; the check alone {peer:.1} ms",
        text.len() as f64 / 1e6,
        worst(&waits),
    ));
    figure::print("lsp", ours, peer, peer / ours, "ms");
    if !options.quick && ours > MOST_MILLISECONDS {
        return Err(format!(
            "lsp: diagnostics take {ours:.1} ms after a keystroke, but at most {MOST_MILLISECONDS:.0} ms are promised"
        ));
    }
    Ok(())
}

/// A valid document with as many lines as it takes.
fn document() -> String {
    let mut text = HEAD.to_owned();
    let mut lines = text.lines().count();
    let mut number = 1;
    while lines < LINES {
        let _ = write!(
            text,
            "    - id: BENCH-001-{number:02}\n      surface: tools/call\n      target: arguments.note\n      pattern:\n        regex: 'secret-{number}-[0-9a-f]{{8,16}}'\n"
        );
        number += 1;
        lines += ENTRY_LINES;
    }
    text
}

struct Client {
    to: PipeWriter,
    from: BufReader<PipeReader>,
}

impl Client {
    fn open(text: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let (input, to) = std::io::pipe().map_err(failed)?;
        let (from, output) = std::io::pipe().map_err(failed)?;
        std::thread::spawn(move || {
            let served = serve(BufReader::new(input), output, LspSettings::default());
            black_box(served.is_ok());
        });
        let mut client = Self {
            to,
            from: BufReader::new(from),
        };
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}))?;
        let document = json!({"uri": URI, "languageId": "yaml", "version": 1, "text": text});
        client.tell("textDocument/didOpen", &json!({"textDocument": document}))?;
        client.published(1)?;
        Ok(client)
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        write_frame(&mut self.to, message).map_err(|error| error.to_string())
    }

    fn tell(&mut self, method: &str, params: &Value) -> Result<(), String> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Waits for the diagnostics of a version.
    fn published(&mut self, version: u64) -> Result<(), String> {
        loop {
            let frame = read_frame(&mut self.from).map_err(|error| error.to_string())?;
            let frame = frame.ok_or("the server ended")?;
            let message: Value =
                serde_json::from_slice(&frame).map_err(|error| error.to_string())?;
            if message["params"]["version"] == version {
                let findings = message["params"]["diagnostics"].as_array();
                let error = findings.and_then(|all| all.iter().find(|one| one["severity"] == 1));
                return match error {
                    Some(error) => Err(format!("the document is not valid any more: {error}")),
                    None => Ok(()),
                };
            }
        }
    }

    /// Types a letter into a regular expression in the middle of the document, which stays valid and so is checked to its
    /// end, and says how long its diagnostics took.
    fn type_letter(&mut self, version: u64) -> Result<Duration, String> {
        let line = HEAD.lines().count() + LINES / 2 / ENTRY_LINES * ENTRY_LINES - 1;
        let at = json!({"line": line, "character": "        regex: '".len()});
        let change = json!({"range": {"start": at, "end": at}, "text": "x"});
        let document = json!({"uri": URI, "version": version});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        let started = Instant::now();
        self.tell("textDocument/didChange", &params)?;
        self.published(version)?;
        Ok(started.elapsed())
    }
}
