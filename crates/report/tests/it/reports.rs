//! Every report over one result with hostile texts: as it is kept in a file, and what must hold in it.

use proofhouse_campaign::accepted::Acceptance;
use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::report_format::{FORMATS, ReportFormat};
use proofhouse_campaign::result::CampaignResult;
use proofhouse_report::json_schema;
use serde_json::Value;

use crate::support::Sample;

/// Compares a report with the one on disk; `INSTA_UPDATE=always` writes it anew.
fn golden(name: &str, report: &str) {
    insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, report);
    });
}

#[test]
fn reports_are_as_they_were() {
    let sample = Sample::new();
    for info in FORMATS {
        golden(info.name, &sample.render(info.format));
    }
    golden(
        "human-colour",
        &sample.render_with(ReportFormat::Human, true),
    );
}

#[test]
fn an_accepted_risk_fails_no_report_and_has_its_reason_in_each() {
    let mut sample = Sample::new();
    let accepted = sample.result.accepted.clone();
    let (risk, _, _) = sample
        .result
        .acceptances()
        .find(|(_, state, _)| *state == Acceptance::Accepted)
        .unwrap();
    let (reason, until) = (risk.reason.clone(), risk.until.clone());
    for info in FORMATS {
        let report = sample.render(info.format);
        let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&reason), "{}: {flat}", info.name);
        assert!(flat.contains(&until), "{}", info.name);
    }
    let failures = |sample: &Sample| {
        let report = sample.render(ReportFormat::Junit);
        (
            report.matches("<failure").count(),
            report.matches("<skipped").count(),
        )
    };
    let (failed, skipped) = failures(&sample);
    sample.result.accepted.clear();
    assert_eq!(failures(&sample), (failed + 1, skipped - 1));
    sample.result.accepted = accepted;
    let junit = sample.render(ReportFormat::Junit);
    assert!(
        junit.contains(&format!("accepted until {until}: ")),
        "{junit}"
    );
}

#[test]
fn nothing_hidden_gets_into_a_report() {
    let sample = Sample::new();
    for info in FORMATS {
        let report = sample.render(info.format);
        let hidden = report.chars().find(|c| {
            (c.is_control() && *c != '\n' && *c != '\t')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}' | '\u{fffe}' | '\u{e0041}')
        });
        assert_eq!(hidden, None, "{}", info.name);
    }
}

#[test]
fn the_report_fits_its_terminal_and_uses_it() {
    let sample = Sample::new();
    let mut widest = Vec::new();
    // Who has fewer columns than 60 gets 60, and nobody gets more than 160.
    for (columns, most) in [(20, 60), (60, 60), (80, 80), (160, 160), (400, 160)] {
        let report = sample.render_in(ReportFormat::Human, false, columns);
        let widths = report.lines().map(|line| {
            let width = unicode_width::UnicodeWidthStr::width(line);
            assert!(width <= most, "{columns}: {line}");
            width
        });
        widest.push(widths.max().unwrap());
        let coloured = sample.render_in(ReportFormat::Human, true, columns);
        assert_eq!(coloured.lines().count(), report.lines().count());
    }
    assert_eq!((widest[0], widest[3]), (widest[1], widest[4]));
    assert!(
        widest[1] < widest[2] && widest[2] < widest[3],
        "{widest:?}: wide terminals are used"
    );
}

#[test]
fn json_is_read_back_and_fits_its_schema() {
    let sample = Sample::new();
    let report = sample.render(ReportFormat::Json);
    let value: Value = serde_json::from_str(&report).unwrap();
    let read: CampaignResult = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(read, sample.result);
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    let mut wrong = value;
    wrong["summary"]["cells"][0]["outcome"] = Value::from("won");
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_schema_on_disk_is_that_of_the_types() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schema/result.schema.json"
    );
    let schema = format!("{:#}\n", json_schema());
    #[expect(clippy::disallowed_methods, reason = "our own file")]
    let on_disk = std::fs::read_to_string(path).unwrap();
    assert!(
        on_disk == schema,
        "docs/schema/result.schema.json differs; update it: cargo run -- schema result"
    );
}

#[test]
fn annotations_are_one_command_a_line() {
    let report = Sample::new().render(ReportFormat::Github);
    assert!(report.lines().count() > 3);
    for line in report.lines() {
        let rest = ["::error ", "::warning ", "::notice "]
            .iter()
            .find_map(|start| line.strip_prefix(start));
        let (properties, message) = rest.unwrap().split_once("::").unwrap();
        for property in properties.split(',') {
            let name = property.split('=').next().unwrap();
            assert!(["file", "line", "title"].contains(&name), "{line}");
        }
        assert!(!message.is_empty());
    }
    assert!(report.contains("file=scenarios/a b%2Cc%3Ad%25.yaml,line=1"));
}

#[test]
fn markdown_has_no_markup_from_outside() {
    let report = Sample::new().render(ReportFormat::Markdown);
    for wrong in [
        "<script",
        "<img",
        "](",
        "@someone",
        "**bold",
        "`",
        "www.example",
        "https://",
        "\n# ",
    ] {
        assert!(!report.contains(wrong), "{wrong}");
    }
}

#[test]
fn markdown_fits_into_a_comment() {
    let mut sample = Sample::new();
    let (documents, runs) = (sample.result.documents.clone(), sample.result.runs.clone());
    for number in 0..50 {
        let renamed = |id: &str| format!("{number} {id}");
        sample
            .result
            .documents
            .extend(documents.iter().cloned().map(|mut document| {
                document.id = renamed(&document.id);
                document
            }));
        sample
            .result
            .runs
            .extend(runs.iter().cloned().map(|mut run| {
                run.document = renamed(&run.document);
                run
            }));
    }
    let report = sample.render(ReportFormat::Markdown);
    assert!(
        (48 << 10..60 << 10).contains(&report.len()),
        "{}",
        report.len()
    );
    assert!(report.contains("more are left out."));
    assert_eq!(
        report.matches("<details>").count(),
        report.matches("</details>").count()
    );
}

#[test]
fn html_has_no_markup_from_outside_and_asks_for_nothing() {
    let report = Sample::new().render(ReportFormat::Html);
    for wrong in [
        "<script",
        "<img",
        "onerror=alert(1)>",
        "src=\"",
        "url(",
        "@import",
        "href=\"http",
        "javascript:alert(3)\"",
    ] {
        assert!(!report.contains(wrong), "{wrong}");
    }
    // Every link stays in the file and leads somewhere.
    for link in report.split("href=\"").skip(1) {
        let target = link.split('"').next().unwrap();
        if target == "data:," {
            continue;
        }
        let anchor = target.strip_prefix('#').unwrap();
        assert!(report.contains(&format!("id=\"{anchor}\"")), "{target}");
    }
    assert!(report.contains("<mark>CANARY-0badcafe</mark>"));
    // Findings show what matters of a message; the runs have all of it.
    let (findings, rest) = report.split_once("id=\"subjects\"").unwrap();
    assert!(!findings.contains("progressToken") && rest.contains("progressToken"));
    assert!(report.contains("characters cut]"));
}

#[test]
fn an_empty_result_is_no_problem() {
    let mut sample = Sample::new();
    sample.result.subjects.clear();
    for documents in [sample.result.documents.clone(), Vec::new()] {
        sample.result.documents = documents;
        for info in FORMATS {
            assert!(!sample.render(info.format).is_empty(), "{}", info.name);
        }
    }
}

#[test]
fn what_to_do_depends_on_what_happened() {
    let mut sample = Sample::new();
    for run in sample.result.runs.iter_mut().filter(|run| !run.twin) {
        run.outcome = RunOutcome::Inconclusive;
        run.reason = Some(InconclusiveReason::TimedOut);
        run.broken = Some("what the command had started still ran 10 s after its end".to_owned());
    }
    for format in [
        ReportFormat::Human,
        ReportFormat::Markdown,
        ReportFormat::Html,
    ] {
        let shown = sample.render(format);
        let words: Vec<&str> = shown.split_whitespace().collect();
        let shown = words.join(" ");
        assert!(
            shown.contains("End the background process") && !shown.contains("Allow more time with"),
            "{shown}"
        );
    }
}

#[test]
fn a_broken_off_campaign_has_no_rate_of_all_repeats() {
    let mut sample = Sample::new();
    for (complete, told) in [
        (true, "were exploited at least once"),
        (false, "runs are missing"),
    ] {
        sample.result.complete = complete;
        for format in [ReportFormat::Human, ReportFormat::Markdown] {
            let report = sample.render(format);
            let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(told), "{flat}");
        }
    }
}

#[test]
fn many_long_runs_stay_within_a_size_a_browser_opens() {
    let mut sample = Sample::new();
    let long = "word ".repeat(10_000);
    let mut run = sample.result.runs[0].clone();
    let mut message = sample.traces[&run.id][4].clone();
    message.content["arguments"]["note"] = Value::from(long.clone());
    run.answer = Some(long);
    let messages: Vec<_> = (1..=300)
        .map(|sequence| proofhouse_detect::TraceMessage {
            sequence,
            ..message.clone()
        })
        .collect();
    sample.result.runs.clear();
    for number in 1..400 {
        run.id = format!("run {number}");
        run.repeat = number;
        sample.result.runs.push(run.clone());
        let shown = if number <= 10 { &messages[..] } else { &[] };
        sample.traces.insert(run.id.clone(), shown.to_vec());
    }
    let report = sample.render(ReportFormat::Html);
    assert!(report.len() < 2 << 20, "{}", report.len());
    assert!(report.contains("more runs are left out"));
    assert!(report.contains("messages left out"));
    assert!(report.contains("The messages are left out"));
}
