//! A PostgreSQL for tests: the one that PROOFHOUSE_POSTGRES_URL names, or a private one.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use crate::workspace;

/// A server. A private one stops when this is dropped, or when the process ends, in whatever way: then its standard
/// input is closed.
#[derive(Debug)]
pub struct Postgres {
    url: String,
    server: Option<PrivateServer>,
}

/// A server that the script runs for us.
#[derive(Debug)]
struct PrivateServer {
    script: Child,
    says: BufReader<ChildStdout>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum NoPostgres {
    /// The script that starts one is not there or may not be run.
    #[error("scripts/postgres cannot be started: {0}")]
    Script(io::Error),
    /// PostgreSQL is not installed; this is what the script says.
    #[error("{0}")]
    NotInstalled(String),
}

impl Postgres {
    /// The address of the server that all tests of this process share; says loudly when there is none.
    pub fn shared(test: &str) -> Option<String> {
        static SHARED: OnceLock<Result<Postgres, NoPostgres>> = OnceLock::new();
        match SHARED.get_or_init(Self::find) {
            Ok(server) => Some(server.url.clone()),
            Err(error) => {
                skipped(test, &error.to_string());
                None
            }
        }
    }

    /// The one that is named, or a private one; says loudly when there is none.
    pub fn for_test(test: &str) -> Option<Self> {
        Self::find()
            .inspect_err(|error| skipped(test, &error.to_string()))
            .ok()
    }

    /// A private one, which can be stopped and started again; says loudly when there is none.
    pub fn private(test: &str) -> Option<Self> {
        Self::start(&[])
            .inspect_err(|error| skipped(test, &error.to_string()))
            .ok()
    }

    /// The one that is named, or a private one; an error says why there is none.
    fn find() -> Result<Self, NoPostgres> {
        workspace::setting("PROOFHOUSE_POSTGRES_URL")
            .map_or_else(|| Self::start(&[]), |url| Ok(Self { url, server: None }))
    }

    /// Starts a private server, with more arguments for the script; an error says why there is none.
    ///
    /// # Errors
    ///
    /// If PostgreSQL is not installed.
    ///
    /// # Panics
    ///
    /// If it is installed and does not start.
    pub fn start(more: &[&Path]) -> Result<Self, NoPostgres> {
        // The script removes the directory.
        let directory = tempfile::tempdir().unwrap().keep();
        let mut script = Command::new(workspace::root().join("scripts/postgres"))
            .arg(directory)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(NoPostgres::Script)?;
        let mut url = String::new();
        let mut says = BufReader::new(script.stdout.take().unwrap());
        says.read_line(&mut url).unwrap();
        if url.is_empty() {
            let output = script.wait_with_output().unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            // A server that is installed and does not start is no reason to skip.
            assert_eq!(
                output.status.code(),
                Some(3),
                "PostgreSQL does not start: {complaint}"
            );
            return Err(NoPostgres::NotInstalled(complaint));
        }
        Ok(Self {
            url: url.trim().to_owned(),
            server: Some(PrivateServer { script, says }),
        })
    }

    /// Stops a private server: every connection is cut, and there are no new ones.
    ///
    /// # Panics
    ///
    /// If it is not private, or does not stop.
    pub fn stop(&mut self) {
        self.order("stop", "stopped");
    }

    /// Starts it again at the same address, with everything that it had.
    ///
    /// # Panics
    ///
    /// If it is not private, or does not start.
    pub fn start_again(&mut self) {
        self.order("start", "started");
    }

    fn order(&mut self, order: &str, done: &str) {
        let server = self.server.as_mut().unwrap();
        writeln!(server.script.stdin.as_mut().unwrap(), "{order}").unwrap();
        let mut said = String::new();
        server.says.read_line(&mut said).unwrap();
        assert_eq!(said.trim(), done, "after {order}");
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.script.stdin.take());
            let _ = server.script.wait();
        }
    }
}

/// Says loudly that a test is not made on PostgreSQL.
pub fn skipped(test: &str, reason: &str) {
    workspace::skipped(&format!("{test} on PostgreSQL"), reason);
}
