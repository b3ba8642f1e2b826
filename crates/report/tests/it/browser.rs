//! The HTML report in a real browser: see tests/browser/report.mjs for what is checked.

use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_test_support::browser::{Browser, check};

use crate::support::Sample;

#[test]
fn a_browser_shows_the_report() {
    let Some(browser) = Browser::find("the HTML report in a browser") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.html");
    std::fs::write(&report, Sample::new().render(ReportFormat::Html)).unwrap();
    let output = browser.command("report.mjs", &report).output().unwrap();
    check("browser", &output);
}
