//! Opens a guard from files: the policy, the lock, the threat documents, and where it writes what it sees.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use proofhouse_wire::Url;
use proofhouse_wire::files::{FileInput, Unreadable};

use crate::engine::{AskRoute, GuardProtocol, GuardSession, GuardSetup, WatchError, Watcher};
use crate::pins::{LockFile, LockFileError};
use crate::policy::{self, Policy};
use crate::record::{FindingListener, GuardMetrics, GuardRecorder, SharedRecorder};

/// How many traces of one name there may be.
const MAX_TRACES: usize = 10_000;

/// Programs that start another one, which is the server.
const LAUNCHERS: &[&str] = &[
    "npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "bun", "deno", "node", "python", "python3", "uv",
    "docker", "podman", "sh", "bash", "env",
];

/// Words of launchers that are not what they start.
const LAUNCHER_WORDS: &[&str] = &["run", "exec", "dlx", "tool", "x"];

/// What a guard is opened with.
#[derive(Debug, Clone, Default)]
pub struct GuardFiles {
    /// The policy; without it, the stock policy counts.
    pub policy: Option<PathBuf>,
    /// The lock; without it, nothing is pinned.
    pub lock: Option<PathBuf>,
    /// Where the trace is written.
    pub trace: Option<PathBuf>,
    /// Where findings are appended as JSON Lines.
    pub findings: Option<PathBuf>,
    /// Where findings are appended as events of OCSF.
    pub ocsf: Option<PathBuf>,
}

/// Why a guard cannot be opened. It then guards nothing, and must not look as if it did.
#[derive(Debug, thiserror::Error)]
pub enum GuardOpenError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Unreadable,
    },
    /// The policy is not valid.
    #[error("{}: {}; `proofhouse validate` shows all that is wrong", path.display(), finding)]
    Policy {
        /// The file.
        path: PathBuf,
        /// The first thing that is wrong.
        finding: Box<Diagnostic>,
    },
    /// The threat documents cannot watch.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// A file cannot be written.
    #[error("{}: cannot write: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A policy that was read once, with the indicators that it names, for as many guards as there are.
#[derive(Debug, Clone)]
pub struct OpenedPolicy {
    policy: Arc<Policy>,
    watcher: Option<Arc<Watcher>>,
    text: Arc<str>,
}

impl OpenedPolicy {
    /// Opens a policy; without a path, the stock policy.
    ///
    /// # Errors
    ///
    /// Returns an error when it or something that it names cannot be used.
    pub fn open(path: Option<&Path>) -> Result<Self, GuardOpenError> {
        let (policy, text, directory) = match path {
            Some(path) => {
                let (policy, text) = policy_and_text(path)?;
                (policy, text, path.parent().unwrap_or(Path::new("")))
            }
            None => (Policy::stock(), policy::STOCK.to_owned(), Path::new("")),
        };
        let watcher = Watcher::load(&policy.indicators, directory)?;
        Ok(Self {
            policy: Arc::new(policy),
            watcher: watcher.map(Arc::new),
            text: text.into(),
        })
    }

    /// What it is called, if it says so.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.policy.name.as_deref()
    }

    /// How much there is in it, for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let watcher = self.watcher.as_deref();
        format!(
            "{}, {}, {} ({} can block)",
            count(self.policy.rules.len(), "rule"),
            count(self.policy.tools.len(), "tool"),
            count(watcher.map_or(0, Watcher::indicators), "indicator"),
            watcher.map_or(0, Watcher::enforced),
        )
    }

    /// What it says, as it was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A guard that sessions can be begun with.
pub struct OpenedGuard {
    server: String,
    origin: String,
    policy: OpenedPolicy,
    lock: Option<LockFile>,
    recorder: SharedRecorder,
    metrics: Option<Arc<GuardMetrics>>,
    protocol: GuardProtocol,
}

impl OpenedGuard {
    /// Opens everything. `server` is the name that the lock knows the server by, `origin` says how it is reached, and
    /// `listener` hears of every finding.
    ///
    /// # Errors
    ///
    /// Returns an error when something cannot be used.
    pub fn open(
        files: &GuardFiles,
        server: String,
        origin: String,
        listener: FindingListener,
    ) -> Result<Self, GuardOpenError> {
        let policy = OpenedPolicy::open(files.policy.as_deref())?;
        let metrics = Arc::new(GuardMetrics::default());
        let recorder = GuardRecorder::default().with_listener(listener);
        let mut recorder = recorder.with_metrics(metrics);
        if let Some(path) = &files.trace {
            recorder = recorder.with_trace(Box::new(new_file(path)?), &server);
        }
        if let Some(path) = &files.findings {
            recorder = recorder.with_findings(Box::new(appended(path)?));
        }
        if let Some(path) = &files.ocsf {
            recorder = recorder.with_ocsf(Box::new(appended(path)?));
        }
        let lock = files.lock.as_ref().map(LockFile::new);
        if let Some(lock) = &lock {
            lock.read()?;
        }
        Ok(Self::new(policy, server, origin, lock, recorder.shared()))
    }

    /// A guard with a policy that was opened before, which writes what it sees to a recorder.
    #[must_use]
    pub fn new(
        policy: OpenedPolicy,
        server: String,
        origin: String,
        lock: Option<LockFile>,
        recorder: SharedRecorder,
    ) -> Self {
        Self {
            server,
            origin,
            policy,
            lock,
            metrics: recorder.with(|recorder| recorder.metrics()),
            recorder,
            protocol: GuardProtocol::default(),
        }
    }

    /// The same for servers that speak another protocol than MCP.
    #[must_use]
    pub fn of_protocol(mut self, protocol: GuardProtocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// What it counts, if it does.
    #[must_use]
    pub fn metrics(&self) -> Option<&Arc<GuardMetrics>> {
        self.metrics.as_ref()
    }

    /// Begins a session.
    ///
    /// # Errors
    ///
    /// Returns an error when the lock cannot be used.
    pub fn session(&self, asks: AskRoute) -> Result<GuardSession, LockFileError> {
        let session = GuardSession::new(self.setup(asks), self.recorder.clone());
        session.map(|session| session.of_protocol(self.protocol))
    }

    /// A session that stands for others, and has no client of its own.
    pub(crate) fn hub(&self) -> Result<GuardSession, LockFileError> {
        GuardSession::uncounted(self.setup(AskRoute::Nobody), self.recorder.clone())
    }

    fn setup(&self, asks: AskRoute) -> GuardSetup {
        GuardSetup {
            server: self.server.clone(),
            origin: Some(self.origin.clone()),
            policy: Arc::clone(&self.policy.policy),
            lock: self.lock.clone(),
            watcher: self.policy.watcher.clone(),
            asks,
        }
    }

    /// What could not be written down, if anything.
    #[must_use]
    pub fn write_failure(&self) -> Option<io::Error> {
        self.recorder.with(GuardRecorder::take_failure)
    }
}

/// Reads a policy that must be valid.
///
/// # Errors
///
/// Returns an error when it cannot be read or has errors.
pub fn read_policy(path: &Path) -> Result<Policy, GuardOpenError> {
    policy_and_text(path).map(|(policy, _)| policy)
}

fn policy_and_text(path: &Path) -> Result<(Policy, String), GuardOpenError> {
    let text = FileInput::File(path.to_owned()).read(policy::LIMITS.max_bytes);
    let text = text.map_err(|error| GuardOpenError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let (policy, findings) = policy::read(&text);
    let mut errors = findings
        .into_iter()
        .filter(|finding| finding.severity == DiagnosticSeverity::Error);
    match errors.next() {
        Some(finding) => Err(GuardOpenError::Policy {
            path: path.to_owned(),
            finding: Box::new(finding),
        }),
        None => Ok((policy, text)),
    }
}

/// What a server that a command starts is called where nobody named it. Arguments may hold secrets and are left out.
///
/// ```
/// use proofhouse_guard::{command_name, url_name};
///
/// let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
/// assert_eq!(command_name(&words("npx -y @scope/server-files --token x /data")), "server-files");
/// assert_eq!(command_name(&words("/opt/bin/mail-server.py --key x")), "mail-server");
/// assert_eq!(command_name(&words("uv run weather.py")), "weather");
/// assert_eq!(url_name("https://me:secret@mcp.example:8443/mcp?key=x"), "mcp.example:8443/mcp");
/// ```
#[must_use]
pub fn command_name(command: &[String]) -> String {
    let stem = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        let end = [".py", ".js", ".mjs", ".cjs", ".ts", ".sh"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        end.unwrap_or(name).to_owned()
    };
    let Some((program, rest)) = command.split_first() else {
        return String::new();
    };
    let program = stem(program);
    if LAUNCHERS.contains(&program.as_str()) {
        let mut words = rest.iter().filter(|word| !word.starts_with('-'));
        if let Some(word) = words.find(|word| !LAUNCHER_WORDS.contains(&word.as_str()))
            && !word.contains([' ', '\n', '='])
        {
            return stem(word);
        }
    }
    program
}

/// What a server at an address is called where nobody named it, without what may be secret in the address.
#[must_use]
pub fn url_name(url: &str) -> String {
    let Ok(url) = Url::parse(url) else {
        return url.to_owned();
    };
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!("{}{port}{}", url.host_str().unwrap_or_default(), url.path())
}

/// A file for the user alone: it may hold what tools returned.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn appended(path: &Path) -> Result<File, GuardOpenError> {
    private()
        .append(true)
        .open(path)
        .map_err(|error| GuardOpenError::Write {
            path: path.to_owned(),
            error,
        })
}

/// A new file; where there is one of this name, a number is added to it, so that no session overwrites another.
fn new_file(path: &Path) -> Result<File, GuardOpenError> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let end = path
        .extension()
        .map(|end| format!(".{}", end.to_string_lossy()))
        .unwrap_or_default();
    let numbered = |number: usize| match number {
        1 => path.to_owned(),
        number => path.with_file_name(format!("{stem}-{number}{end}")),
    };
    for number in 1..=MAX_TRACES {
        let path = numbered(number);
        match private().create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(GuardOpenError::Write { path, error }),
            Ok(file) => return Ok(file),
        }
    }
    Err(GuardOpenError::Write {
        path: path.to_owned(),
        error: io::Error::other("there are too many traces of this name"),
    })
}
