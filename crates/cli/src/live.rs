//! What happens in a run, as it happens: a view that is drawn again on a terminal, plain lines
//! elsewhere. Always on stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::{Document, LogLevel};
use proofhouse_range::{RunEvent, RunObserver};
use proofhouse_wire::sync::lock;

use crate::output::{printable_line, quoted, talk};

/// How often the view is drawn again.
const INTERVAL: Duration = Duration::from_millis(100);

/// How many lines say what happened before the rest is only counted.
const MAX_LINES: usize = 200;

/// How wide a line may be.
const WIDTH: usize = 79;

/// Follows a run. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Live(Arc<Mutex<LiveView>>);

struct LiveView {
    actors: Vec<LiveRow>,
    /// Lines of the view that stand on the screen.
    drawn: usize,
    /// Something has changed since they were drawn.
    stale: bool,
    told: usize,
    finished: bool,
}

struct LiveRow {
    name: String,
    mode: String,
    is_server: bool,
    address: String,
    phase: String,
    messages: u64,
}

impl Live {
    pub(crate) fn new(document: &Document) -> Self {
        let actors = document.attack.execution.actors().iter();
        let live = Self(Arc::new(Mutex::new(LiveView {
            actors: actors
                .map(|actor| LiveRow {
                    name: printable_line(&actor.name),
                    mode: printable_line(actor.mode.as_str()),
                    is_server: actor.mode.is_server(),
                    address: String::new(),
                    phase: String::new(),
                    messages: 0,
                })
                .collect(),
            drawn: 0,
            stale: true,
            told: 0,
            finished: false,
        })));
        if io::stderr().is_terminal() {
            live.keep_drawing();
        }
        live
    }

    /// Draws the view again while the run goes on, so that what comes in a burst is seen, too.
    fn keep_drawing(&self) {
        let view = Arc::downgrade(&self.0);
        std::thread::spawn(move || {
            while let Some(view) = view.upgrade() {
                {
                    let mut view = lock(&view);
                    if view.finished {
                        return;
                    }
                    if std::mem::take(&mut view.stale) {
                        view.draw();
                    }
                }
                drop(view);
                std::thread::sleep(INTERVAL);
            }
        });
    }

    /// What a run tells its news to.
    pub(crate) fn observer(&self) -> RunObserver {
        let live = self.clone();
        Arc::new(move |event: &RunEvent| live.lock().take(event))
    }

    /// Takes the view away, so that what follows stands alone.
    pub(crate) fn finish(&self) {
        let mut view = self.lock();
        view.erase();
        let untold = view.told.saturating_sub(MAX_LINES);
        if untold > 0 && !view.finished {
            talk(&format!("and {untold} more lines"));
        }
        view.finished = true;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LiveView> {
        lock(&self.0)
    }
}

impl LiveView {
    fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Ready { actor, address } => {
                let address = address.as_deref().map(printable_line).unwrap_or_default();
                let at = if address.is_empty() { "" } else { " at " };
                self.say(&format!("{actor}: ready{at}{address}"));
                self.row(actor, |row| row.address = address);
                self.say_where_to_connect(actor);
            }
            RunEvent::Phase { actor, phase, .. } => {
                let phase = printable_line(phase);
                self.say(&format!("{actor}: phase {phase}"));
                self.row(actor, |row| row.phase = phase);
            }
            RunEvent::Message { actor, .. } => self.row(actor, |row| row.messages += 1),
            RunEvent::Matched {
                indicator,
                evidence,
            } => {
                let path = if evidence.path.is_empty() {
                    "message"
                } else {
                    &evidence.path
                };
                let words = quoted(&evidence.text, 40);
                self.say(&format!(
                    "indicator {indicator} matched {} ({path}: {words})",
                    evidence.messages()
                ));
            }
            RunEvent::Warning { actor, message } => {
                let who = actor.as_ref().map(|actor| format!("{actor}: "));
                self.say(&format!("warning: {}{message}", who.unwrap_or_default()));
            }
            RunEvent::Log {
                actor,
                level,
                message,
            } => {
                let level = match level {
                    LogLevel::Info => "",
                    other => other.as_str(),
                };
                self.say(
                    format!("{actor}: {level} {message}")
                        .replace(":  ", ": ")
                        .as_str(),
                );
            }
            _ => {}
        }
        self.stale = true;
    }

    fn row(&mut self, actor: &str, change: impl FnOnce(&mut LiveRow)) {
        if let Some(row) = self.actors.iter_mut().find(|row| row.name == actor) {
            change(row);
        }
    }

    /// Says what is waited for, once the last of the servers is there.
    fn say_where_to_connect(&mut self, last: &str) {
        let servers = || self.actors.iter().filter(|row| row.is_server);
        let urls: Vec<&str> = servers()
            .map(|row| row.address.as_str())
            .filter(|address| address.starts_with("http"))
            .collect();
        let is_server = servers().any(|row| row.name == last);
        if is_server && !urls.is_empty() && urls.len() == servers().count() {
            let urls = urls.join(" and ");
            self.say(&format!(
                "Waiting for your agent. Connect it to {urls} (Ctrl-C stops)."
            ));
        }
    }

    /// A line that stays.
    fn say(&mut self, line: &str) {
        self.told += 1;
        if self.told <= MAX_LINES {
            self.erase();
            // A line feed from outside must not begin a line that looks like ours.
            talk(&printable_line(line));
        }
    }

    fn draw(&mut self) {
        self.erase();
        let mut text = String::new();
        for row in &self.actors {
            let line = format!(
                "  {:<12} {:<13} {:<28} {:<14} {:>6}",
                row.name, row.mode, row.address, row.phase, row.messages
            );
            text.extend(line.chars().take(WIDTH));
            text.push('\n');
        }
        let _ = io::stderr().write_all(text.as_bytes());
        self.drawn = self.actors.len();
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            let _ = write!(io::stderr(), "\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}
