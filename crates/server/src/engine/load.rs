//! Loading manifests from a directory, again whenever something changes there. A file with errors keeps its
//! last good version.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};
use proofhouse_manifest::{Bundle, Catalog, Receive, Tool, ToolEvent};
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use proofhouse_wire::sync::lock;
use tokio::sync::mpsc;

use super::manifests::{LoadedFile, ManifestProblem, ManifestSnapshot};
use super::options::EngineOptions;
use super::{EngineError, EngineShared};
use crate::metrics::engine::EngineLoop;

/// The largest file of manifests.
const MAX_FILE_BYTES: u64 = 2 << 20;
/// Files of one directory, and how deep they may lie.
const MAX_FILES: usize = 2_000;
const MAX_DEPTH: usize = 8;
/// Problems that are kept for people.
const MAX_PROBLEMS: usize = 1_000;
/// How long to wait for more changes after one: editors write in several steps.
const SETTLE: Duration = Duration::from_millis(150);
/// How often to look though nobody told of a change: not every file system tells.
const RESCAN: Duration = Duration::from_secs(15);

/// Where manifests come from.
#[derive(Debug, Clone)]
pub enum ManifestSource {
    /// The files `*.yaml`, `*.yml` and `*.json` in this directory and below.
    Directory(PathBuf),
    /// These, for programs that have their own.
    Fixed(Catalog),
}

/// Stands for the whole directory in a problem.
const ALL: &str = ".";

/// What was read so far: the text of each file, and its last good version.
#[derive(Default)]
pub(super) struct Loader {
    files: BTreeMap<String, File>,
    /// What could not be read the last time.
    unread: Vec<ManifestProblem>,
    /// How often the operator's configuration had changed then.
    setup: u64,
    version: u64,
}

#[derive(Default)]
struct File {
    text: String,
    good: Option<Bundle>,
    is_stale: bool,
    problems: Vec<ManifestProblem>,
}

impl Loader {
    /// Reads the manifests; nothing if nothing has changed.
    pub(super) fn load(
        &mut self,
        source: &ManifestSource,
        options: &EngineOptions,
    ) -> Option<ManifestSnapshot> {
        let directory = match source {
            ManifestSource::Fixed(catalog) if self.version == 0 => {
                self.version = 1;
                let catalog = catalog.clone();
                return Some(ManifestSnapshot::new(1, catalog, Vec::new(), options));
            }
            ManifestSource::Fixed(_) => return None,
            ManifestSource::Directory(directory) => directory,
        };
        let (texts, problems) = read(directory);
        let before = self.files.len();
        // What cannot be read for a moment is not gone.
        let is_unread = |name: &str| {
            problems.iter().any(|problem| {
                let below = name.strip_prefix(problem.file.as_str());
                problem.file == ALL
                    || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        self.files
            .retain(|name, _| texts.contains_key(name) || is_unread(name));
        let mut changed =
            self.version == 0 || self.files.len() != before || self.unread != problems;
        let setup = options.setup_version();
        changed |= setup != std::mem::replace(&mut self.setup, setup);
        self.unread.clone_from(&problems);
        for (name, text) in texts {
            let file = self.files.entry(name.clone()).or_default();
            if file.text == text && (file.good.is_some() || !file.problems.is_empty()) {
                continue;
            }
            changed = true;
            let (bundle, findings) = Bundle::read(&text);
            let is_wrong = |finding: &Diagnostic| finding.severity == DiagnosticSeverity::Error;
            file.is_stale = findings.iter().any(is_wrong) || !bundle.unset_variables.is_empty();
            file.problems = findings
                .iter()
                .map(|finding| problem(&name, finding))
                .collect();
            file.text = text;
            if !file.is_stale {
                file.good = Some(bundle);
            }
        }
        if !changed {
            return None;
        }
        self.version += 1;
        let mut catalog = Catalog::default();
        let good = |file: &File| file.good.clone();
        for bundle in self.files.values().filter_map(good) {
            catalog.add(&bundle);
        }
        let mut files: Vec<LoadedFile> = Vec::new();
        let mut left = MAX_PROBLEMS;
        for (name, file) in &self.files {
            let between = file
                .good
                .iter()
                .flat_map(|bundle| catalog.check_all(bundle));
            let between = between.map(|finding| problem(name, &finding));
            let unsigned = file.good.iter().flat_map(Bundle::tools);
            let unsigned = unsigned.filter_map(|tool| takes(name, tool, &catalog, options));
            let unread = problems.iter().filter(|problem| problem.file == *name);
            let of_file = file.problems.iter().chain(unread).cloned().chain(between);
            let of_file = of_file.chain(unsigned);
            let of_file: Vec<ManifestProblem> = of_file.take(left).collect();
            left -= of_file.len();
            files.push(LoadedFile {
                path: name.clone(),
                stale: (file.is_stale || is_unread(name)) && file.good.is_some(),
                holds: file.good.as_ref().map(holds).unwrap_or_default(),
                problems: of_file,
            });
        }
        for problem in &problems {
            if self.files.contains_key(&problem.file) {
                continue;
            }
            files.push(LoadedFile {
                path: problem.file.clone(),
                problems: vec![problem.clone()],
                ..LoadedFile::default()
            });
        }
        Some(ManifestSnapshot::new(self.version, catalog, files, options))
    }
}

/// What is in a file: kind, namespace and name.
fn holds(bundle: &Bundle) -> Vec<(String, String, String)> {
    let row = |kind: &str, namespace: &str, name: &str| {
        (kind.to_owned(), namespace.to_owned(), name.to_owned())
    };
    let tools = bundle
        .tools()
        .map(|one| row("tool", &one.namespace, &one.name));
    let agents = bundle
        .agents()
        .map(|one| row("agent", &one.namespace, &one.name));
    let triggers = bundle
        .triggers()
        .map(|one| row("trigger", &one.namespace, &one.name));
    let schedules = bundle
        .schedules()
        .map(|one| row("schedule", &one.namespace, &one.name));
    tools
        .chain(agents)
        .chain(triggers)
        .chain(schedules)
        .collect()
}

/// Warns of a tool whose webhooks anybody can send, or nobody.
fn takes(
    file: &str,
    tool: &Tool,
    catalog: &Catalog,
    options: &EngineOptions,
) -> Option<ManifestProblem> {
    let is_webhook = |event: &ToolEvent| matches!(event.receive, Receive::Webhook(_));
    if !tool.events.iter().any(is_webhook) {
        return None;
    }
    let keys = match options.webhook_keys(tool, catalog) {
        Ok(keys) => keys,
        Err(error) => return Some(of_webhooks(file, "error", error.to_string())),
    };
    let is_open = !options.strict && keys.accepts_unsigned();
    is_open.then(|| {
        let message = format!(
            "whoever reaches the address of `{}/{}` can send it events: no secret is configured",
            tool.namespace, tool.name
        );
        of_webhooks(file, "warning", message)
    })
}

fn of_webhooks(file: &str, severity: &str, message: String) -> ManifestProblem {
    let help = "give the event a `secret`, or the server `webhooks` in its settings";
    ManifestProblem {
        file: file.to_owned(),
        line: 0,
        column: 0,
        severity: severity.to_owned(),
        code: "TM-033".to_owned(),
        message,
        help: Some(help.to_owned()),
    }
}

fn problem(file: &str, finding: &Diagnostic) -> ManifestProblem {
    ManifestProblem {
        file: file.to_owned(),
        line: finding.span.map_or(0, |span| span.line),
        column: finding.span.map_or(0, |span| span.column),
        severity: finding.severity.to_string(),
        code: finding.code.to_owned(),
        message: finding.message.clone(),
        help: finding.help.clone(),
    }
}

/// The texts of the files below a directory, by their names in it, and what could not be read.
fn read(directory: &Path) -> (BTreeMap<String, String>, Vec<ManifestProblem>) {
    let mut texts = BTreeMap::new();
    let mut problems = Vec::new();
    let mut open: Vec<(PathBuf, usize)> = vec![(directory.to_owned(), 0)];
    while let Some((path, depth)) = open.pop() {
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(unreadable(&shown(directory, &path), &error.to_string()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            // Mounted configuration is made of links to files; links to directories could lead in circles.
            let is_file = kind.is_file() || kind.is_symlink() && path.is_file();
            let name = shown(directory, &path);
            if kind.is_dir() && depth < MAX_DEPTH && !is_hidden(&path) {
                open.push((path, depth + 1));
            } else if is_file && is_manifest(&path) {
                if texts.len() >= MAX_FILES {
                    let message = format!("more than {MAX_FILES} files; `{name}` is not read");
                    problems.push(unreadable(ALL, &message));
                    return (texts, problems);
                }
                match text(&path) {
                    Ok(text) => {
                        texts.insert(name, text);
                    }
                    Err(error) => problems.push(unreadable(&name, &error.to_string())),
                }
            }
        }
    }
    (texts, problems)
}

fn is_manifest(path: &Path) -> bool {
    let ends = |end: &str| path.extension().is_some_and(|extension| extension == end);
    ["yaml", "yml", "json"].into_iter().any(ends) && !is_hidden(path)
}

/// Whether the name begins with a dot, or cannot be read.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_none_or(|name| name.starts_with('.'))
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
enum ManifestReadError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the file has more than {limit} bytes", limit = MAX_FILE_BYTES)]
    TooLarge,
}

fn text(path: &Path) -> Result<String, ManifestReadError> {
    let file = fs::File::open(path)?;
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "`take` caps it")]
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(ManifestReadError::TooLarge);
    }
    Ok(text)
}

fn shown(directory: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(directory).unwrap_or(path);
    if relative.as_os_str().is_empty() {
        ALL.to_owned()
    } else {
        relative.display().to_string()
    }
}

fn unreadable(file: &str, message: &str) -> ManifestProblem {
    ManifestProblem {
        file: file.to_owned(),
        line: 0,
        column: 0,
        severity: "error".to_owned(),
        code: "TM-001".to_owned(),
        message: message.to_owned(),
        help: None,
    }
}

/// Notes what the manifests are like.
pub(super) fn count(inner: &EngineShared, snapshot: &ManifestSnapshot) {
    for problem in snapshot.files.iter().flat_map(|file| &file.problems) {
        let ManifestProblem {
            file,
            line,
            code,
            message,
            ..
        } = problem;
        tracing::warn!(file, line, code, "{message}");
    }
    let problems = snapshot.files.iter().map(|file| file.problems.len()).sum();
    let is_known = |name: &str| {
        let mut tools = snapshot.catalog().tools();
        tools.any(|tool| format!("{}/{}", tool.namespace, tool.name) == name)
    };
    inner.counts().manifests(problems, is_known);
}

/// Reads the manifests for the first time.
pub(super) async fn first(
    source: &ManifestSource,
    options: &EngineOptions,
) -> Result<(Loader, Option<ManifestSnapshot>), EngineError> {
    let load = |source: &ManifestSource, options: &EngineOptions| {
        let mut loader = Loader::default();
        let snapshot = loader.load(source, options);
        (loader, snapshot)
    };
    match source {
        // There is nothing to wait for.
        ManifestSource::Fixed(_) => Ok(load(source, options)),
        ManifestSource::Directory(_) => {
            let (source, options) = (source.clone(), options.clone());
            let loaded = tokio::task::spawn_blocking(move || load(&source, &options));
            loaded
                .await
                .map_err(|error| EngineError::Unavailable(error.to_string()))
        }
    }
}

/// Reads again whenever something changes, until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>, loader: Arc<Mutex<Loader>>) {
    let ManifestSource::Directory(directory) = &inner.source else {
        return;
    };
    let (told, mut changes) = mpsc::channel::<()>(1);
    let watcher = notify::recommended_watcher(move |_| {
        // One that waits is enough.
        let _ = told.try_send(());
    });
    let watcher = watcher.and_then(|mut watcher| {
        watcher.watch(directory, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    if let Err(error) = &watcher {
        tracing::warn!(%error, "changes of manifests are noticed late");
    }
    loop {
        // First without waiting: something may have changed before anybody watched.
        let (shared, loader) = (Arc::clone(&inner), Arc::clone(&loader));
        let loaded = tokio::task::spawn_blocking(move || {
            lock(&loader).load(&shared.source, &shared.options)
        });
        let loaded = loaded.await.unwrap_or_else(|error| {
            tracing::error!(%error, "manifests cannot be read");
            inner.counts().restarts.one(EngineLoop::Manifests);
            None
        });
        if let Some(snapshot) = loaded {
            let version = snapshot.version;
            let problems: usize = snapshot.files.iter().map(|file| file.problems.len()).sum();
            tracing::info!(version, problems, "manifests are read again");
            inner.manifests.swap(snapshot);
            inner.counts().manifest_reloads.inc();
            count(&inner, &inner.manifests.current());
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            _ = changes.recv(), if watcher.is_ok() => tokio::time::sleep(SETTLE).await,
            () = inner.options.reconfigured() => {}
            () = tokio::time::sleep(RESCAN) => {}
        }
    }
}
