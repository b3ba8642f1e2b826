//! Configurations of clients, there and back.

use std::path::{Path, PathBuf};

use proofhouse_guard::install::{
    GuardCommandLine, InstallError, Uninstalled, install, uninstall, wrapped,
};
use serde_json::Value;

/// With a byte order mark, comments, a trailing comma, odd spaces and two ends of lines.
const VSCODE: &str = "\u{feff}{\r\n  // my servers\n  \"servers\": {\n    \"files\": { \"type\": \"stdio\", \"command\":\"npx\",\n      \"args\": [\"-y\", \"@x/files\", /* here */ \"a b\"], \"env\": {\"TOKEN\": \"s3cret\"} },\n    \"web\": {\"url\": \"https://x.example/mcp\"},\n    \"bare\": {\"command\": \"./bare\"},\n  },\n}\n";

fn guard() -> GuardCommandLine {
    GuardCommandLine {
        program: "/opt/proofhouse".to_owned(),
        flags: vec!["--policy".to_owned(), "/etc/policy.yaml".to_owned()],
    }
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

#[expect(clippy::disallowed_methods, reason = "our own files")]
fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn names(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn there_and_back_is_byte_for_byte() {
    let (directory, path) = file(VSCODE);
    let rewritten = install(&path, &guard()).unwrap();
    assert_eq!(rewritten.changed, ["files", "bare"]);
    assert_eq!(
        rewritten.left,
        [("web".to_owned(), "it is reached over HTTP")]
    );
    let now = text(&path);
    assert!(
        now.contains("// my servers") && now.contains("\"TOKEN\": \"s3cret\""),
        "{now}"
    );
    assert!(now.contains(r#"["guard","--server","files","--policy","/etc/policy.yaml","--","npx","-y","@x/files","a b"]"#), "{now}");
    assert!(
        now.contains(r#""command": "/opt/proofhouse", "args": ["guard","--server","bare","#),
        "{now}"
    );
    // Again, it stays as it is.
    install(&path, &guard()).unwrap();
    assert_eq!(text(&path), now);
    assert_eq!(uninstall(&path).unwrap(), Uninstalled::Restored);
    assert_eq!(text(&path), VSCODE);
    assert_eq!(names(directory.path()), 1, "nothing is left");
    assert_eq!(uninstall(&path).unwrap(), Uninstalled::Nothing);
    assert_eq!(text(&path), VSCODE);
}

#[cfg(unix)]
#[test]
fn the_original_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, path) = file(VSCODE);
    install(&path, &guard()).unwrap();
    let backup = path.with_file_name("mcp.json.proofhouse-guard");
    assert_eq!(
        backup.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn edits_made_since_stay() {
    let (directory, path) = file(VSCODE);
    install(&path, &guard()).unwrap();
    let edited = text(&path)
        .replace("// my servers", "// all my servers")
        .replace("s3cret", "other");
    std::fs::write(&path, &edited).unwrap();
    assert_eq!(
        uninstall(&path).unwrap(),
        Uninstalled::Merged(vec!["files".to_owned(), "bare".to_owned()])
    );
    let now = text(&path);
    assert!(
        now.contains("// all my servers") && now.contains("other"),
        "{now}"
    );
    assert!(
        now.contains(r#""command":"npx","#) && now.contains(r#""args": ["-y","@x/files","a b"]"#),
        "{now}"
    );
    assert!(!now.contains("guard"), "{now}");
    assert_eq!(names(directory.path()), 1);
}

#[test]
fn servers_that_came_since_are_guarded_by_the_next_install() {
    let (_directory, path) = file(VSCODE);
    install(&path, &guard()).unwrap();
    let edited = text(&path).replace("\"web\": {", "\"new\": {\"command\": \"new\"}, \"web\": {");
    std::fs::write(&path, &edited).unwrap();
    let rewritten = install(&path, &guard()).unwrap();
    assert_eq!(rewritten.changed, ["files", "new", "bare"]);
    assert_eq!(uninstall(&path).unwrap(), Uninstalled::Restored);
    assert!(text(&path).contains("\"new\": {\"command\": \"new\"}"));
}

#[test]
fn every_client_keeps_its_servers_where_we_look() {
    for config in [
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
        r#"{"projects": {"/home/me": {"mcpServers": {"a": {"command": "x"}}}}, "mcpServers": {}}"#,
        r#"{"servers": {"a": {"command": "x"}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x", "args": []}}}}"#,
    ] {
        let rewritten = wrapped(config, &guard()).unwrap();
        assert_eq!(rewritten.changed, ["a"], "{config}");
        let value: Value = serde_json::from_str(&rewritten.text).unwrap();
        assert!(value.is_object());
    }
}

#[test]
fn what_cannot_be_changed_is_left_alone() {
    for config in [
        "{",
        "[1, 2",
        "{\"servers\": {\"a\": }}",
        "{} x",
        "/* ",
        "\"\\",
        &"[".repeat(100_000),
    ] {
        let (directory, path) = file(config);
        assert!(
            matches!(install(&path, &guard()), Err(InstallError::Syntax { .. })),
            "{config:.20}"
        );
        assert_eq!((text(&path).as_str(), names(directory.path())), (config, 1));
    }
    let (_directory, path) = file("{\"theme\": \"dark\"}");
    assert!(matches!(
        install(&path, &guard()),
        Err(InstallError::NoServers(_))
    ));
    let (_directory, path) = file(VSCODE);
    std::fs::write(path.with_file_name("mcp.json.proofhouse-guard"), "{}").unwrap();
    assert!(matches!(
        install(&path, &guard()),
        Err(InstallError::BadBackup(_))
    ));
    assert!(install(Path::new("/nowhere/mcp.json"), &guard()).is_err());
}
