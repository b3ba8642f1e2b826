//! A PostgreSQL for the tests of one process: the one that PROOFHOUSE_POSTGRES_URL names, or a private one.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A private server. It stops when this process ends, in whatever way: then its standard input is closed.
#[derive(Debug)]
pub(crate) struct Cluster {
    url: String,
    _server: Option<Child>,
}

static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();

/// The address of a server, if there is one; says loudly when there is none.
pub(crate) fn postgres(test: &str) -> Option<String> {
    match CLUSTER.get_or_init(find) {
        Ok(cluster) => Some(cluster.url.clone()),
        Err(reason) => {
            // Not with `println!`, which is only heard when a test fails.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {test} on PostgreSQL: {reason}");
            None
        }
    }
}

fn find() -> Result<Cluster, String> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
    let given = std::env::var("PROOFHOUSE_POSTGRES_URL").ok();
    if let Some(url) = given.filter(|url| !url.is_empty()) {
        return Ok(Cluster { url, _server: None });
    }
    Cluster::start(&[])
}

impl Cluster {
    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Starts a private server, with more arguments for the script; an error says why there is none.
    pub(crate) fn start(more: &[&Path]) -> Result<Self, String> {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
        // The script removes the directory.
        let directory = tempfile::tempdir()
            .map_err(|error| error.to_string())?
            .keep();
        let mut server = Command::new(script)
            .arg(directory)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("scripts/postgres cannot be started: {error}"))?;
        let mut url = String::new();
        if let Some(output) = server.stdout.take() {
            BufReader::new(output)
                .read_line(&mut url)
                .map_err(|error| error.to_string())?;
        }
        if url.is_empty() {
            let output = server
                .wait_with_output()
                .map_err(|error| error.to_string())?;
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            // A server that is installed and does not start is no reason to skip.
            assert_eq!(
                output.status.code(),
                Some(3),
                "PostgreSQL does not start: {complaint}"
            );
            return Err(complaint);
        }
        Ok(Self {
            url: url.trim().to_owned(),
            _server: Some(server),
        })
    }
}
