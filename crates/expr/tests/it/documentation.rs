//! Holds `docs/reference/expressions.md` to the truth.

use std::time::Duration;

use proofhouse_expr::{ExprLimits, Program, Variables};

const PAGE: &str = include_str!("../../../../docs/reference/expressions.md");

/// The rows of the table under a heading, cell by cell.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let (_, section) = PAGE
        .split_once(&format!("## {heading}\n"))
        .expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<Vec<_>> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            // `||` in an example would end a cell, so there is none.
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(!rows.is_empty(), "{heading}");
    rows
}

#[test]
fn every_function_does_what_the_table_says() {
    for row in rows("Functions") {
        let [name, _, example] = &row[..] else {
            unreachable!("three columns: {row:?}");
        };
        let (name, example) = (name.trim_matches('`'), example.trim_matches('`'));
        let program = Program::compile(example).expect(example);
        assert_eq!(
            program.evaluate_bool(&Variables::new()),
            Ok(true),
            "{example}"
        );
        assert!(
            program.functions().any(|called| called == name),
            "{name}: {example}"
        );
    }
}

#[test]
fn the_limits_are_the_defaults() {
    // Every field is named here, so that a new one is missed on the page.
    let ExprLimits {
        max_source_bytes,
        max_depth,
        max_nodes,
        max_regex_bytes,
        max_steps,
        max_bytes_built,
        max_time,
    } = ExprLimits::default();
    let kib = |bytes: usize| format!("{} KiB", bytes / 1024);
    let mib = |bytes: usize| format!("{} MiB", bytes / 1024 / 1024);
    assert_eq!(max_steps, 1_000_000);
    assert!(max_time >= Duration::from_millis(1));
    let expected = [
        ("max_source_bytes", kib(max_source_bytes)),
        ("max_depth", max_depth.to_string()),
        ("max_nodes", max_nodes.to_string()),
        ("max_regex_bytes", mib(max_regex_bytes)),
        ("max_steps", "1,000,000".to_owned()),
        ("max_bytes_built", mib(max_bytes_built)),
        ("max_time", format!("{} ms", max_time.as_millis())),
    ];
    let rows = rows("Limits");
    assert_eq!(rows.len(), expected.len());
    for (name, default) in expected {
        let row = rows.iter().find(|row| row[0].trim_matches('`') == name);
        let row = row.expect(name);
        assert!(
            row[1].starts_with(&default),
            "{name}: {} not {default}",
            row[1]
        );
    }
}

#[test]
fn every_kind_of_error_is_explained() {
    use proofhouse_expr::{CompileErrorKind as Compile, EvaluateErrorKind as Evaluate};
    let kinds = [
        format!("{:?}", Compile::Syntax),
        format!("{:?}", Compile::TooLarge),
        format!("{:?}", Compile::TooDeep),
        format!("{:?}", Compile::Unsupported),
        format!("{:?}", Evaluate::Budget),
        format!("{:?}", Evaluate::Type),
        format!("{:?}", Evaluate::MissingField),
        format!("{:?}", Evaluate::UnknownVariable),
        format!("{:?}", Evaluate::UnsupportedFunction),
        format!("{:?}", Evaluate::Arithmetic),
        format!("{:?}", Evaluate::Regex),
        format!("{:?}", Evaluate::Function),
        format!("{:?}", Evaluate::EmptySet),
        format!("{:?}", Evaluate::Runtime),
    ];
    let explained: String = rows("Errors")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    for kind in kinds {
        assert!(explained.contains(&format!("`{kind}`")), "{kind}");
    }
}
