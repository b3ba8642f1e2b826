//! JUnit and SARIF against the schemas that others publish. They come with packages in tests/peers.

use std::io::Write as _;
use std::process::Command;

use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_test_support::peers;
use serde_json::Value;

use crate::support::Sample;

/// What the schemas come with.
const INSTALLED: &str = "report-schemas/node_modules";

#[test]
fn sarif_fits_the_official_schema() {
    let Some(peers) = peers::installed("sarif", INSTALLED) else {
        return;
    };
    let path = peers
        .join(INSTALLED)
        .join("@microsoft/sarif-multitool-linux/sarif-2.1.0.json");
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
    let mut log: Value = serde_json::from_str(&Sample::new().render(ReportFormat::Sarif)).unwrap();
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
    let Some(peers) = peers::installed("junit", INSTALLED) else {
        return;
    };
    let program = peers::placed(&peers, "report-schemas", "junit.mjs");
    let report = Sample::new().render(ReportFormat::Junit);
    let broken = report
        .replace("<skipped>", "<skpped>")
        .replace("</skipped>", "</skpped>");
    for (report, valid) in [(&report, true), (&broken, false)] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(report.as_bytes()).unwrap();
        let output = Command::new(peers::node(&peers))
            .arg(&program)
            .arg(file.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.trim() == "valid", valid, "{said} {complained}");
    }
}
