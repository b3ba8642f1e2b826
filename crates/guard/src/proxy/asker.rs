//! Asks a person at a terminal: one question at a time, and what was typed before a question is no answer to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Mutex;
use std::time::Duration;

use proofhouse_wire::sync::lock;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

/// The longest line that is read.
const MAX_LINE: u64 = 4096;

/// A person who answers with yes or no.
pub struct PersonAsker {
    lines: AsyncMutex<mpsc::Receiver<String>>,
    output: Mutex<Box<dyn Write + Send>>,
}

impl PersonAsker {
    /// The person at the terminal that controls this process.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no terminal.
    pub fn terminal() -> std::io::Result<Self> {
        let terminal = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/tty")?;
        let output = terminal.try_clone()?;
        Self::new(terminal, output)
    }

    /// The person behind an input and an output.
    ///
    /// # Errors
    ///
    /// Returns an error when no thread can be started.
    pub fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, lines) = mpsc::channel(16);
        // A terminal cannot be read without a thread that waits for it.
        std::thread::Builder::new().spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                let mut line = Vec::new();
                match (&mut input).take(MAX_LINE).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            lines: AsyncMutex::new(lines),
            output: Mutex::new(Box::new(output)),
        })
    }

    /// Asks. `None` means that nobody answered in time, or that nobody is there.
    pub async fn ask(&self, question: &str, time: Duration) -> Option<bool> {
        let asking = async {
            let mut lines = self.lines.lock().await;
            while lines.try_recv().is_ok() {}
            self.write(&format!("{question}\nAllow it? [y/N] ")).ok()?;
            let line = lines.recv().await?;
            Some(matches!(line.to_ascii_lowercase().as_str(), "y" | "yes"))
        };
        tokio::time::timeout(time, asking).await.ok().flatten()
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let mut output = lock(&self.output);
        output.write_all(text.as_bytes())?;
        output.flush()
    }
}
