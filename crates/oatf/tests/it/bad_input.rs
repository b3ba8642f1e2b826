//! Hostile and broken texts: a clear answer within a bounded time, on a small stack, without panics.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use proofhouse_oatf::{
    Diagnostic, DiagnosticSeverity, ReadLimits, check, compute_verdict, evaluate_indicator, load,
    normalize, parse, serialize,
};
use serde_json::{Value, json};

const FOUR_MIB: usize = 4 << 20;
const STACK: usize = 2 << 20;
const TIME: Duration = Duration::from_secs(20);

const HEAD: &str = "oatf: \"0.1\"\nattack:\n";
const EXECUTION: &str = "  execution: {mode: mcp_server, state: {}}\n";

/// One text at a time, so that tests do not take each other's time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `work` on a small stack and insists that it ends in time.
fn bounded<T: Send + 'static>(about: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (send, receive) = mpsc::channel();
    let started = Instant::now();
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let _ = send.send(work());
        })
        .unwrap();
    let result = receive
        .recv_timeout(TIME)
        .unwrap_or_else(|_| panic!("{about}: no answer within {TIME:?}"));
    thread.join().unwrap();
    assert!(started.elapsed() < TIME, "{about}: {:?}", started.elapsed());
    result
}

/// Everything a tool does with a text, ending in what is wrong with it.
fn everything(about: &str, text: String) -> Vec<Diagnostic> {
    bounded(about, move || {
        let findings = check(&text, &ReadLimits::default());
        for finding in &findings {
            assert!(finding.message.len() < 1_000, "{}", finding.code);
            assert!(finding.path.as_ref().is_none_or(|path| path.len() < 4_000));
            assert!(finding.help.as_ref().is_none_or(|help| help.len() < 1_000));
            let span = finding.span.unwrap();
            assert!(text.get(span.range()).is_some(), "{span:?}");
        }
        if let Ok(document) = parse(&text) {
            let document = normalize(document);
            assert!(serialize(&document).len() < 100 * text.len() + 1_000);
            if findings
                .iter()
                .any(|finding| finding.severity == DiagnosticSeverity::Error)
            {
                return findings;
            }
            let message = serde_json::json!({"a": "x"});
            let verdicts = document
                .attack
                .indicators()
                .iter()
                .map(|indicator| evaluate_indicator(indicator, &message, None, None))
                .map(|verdict| (verdict.indicator_id.clone(), verdict))
                .collect();
            let _ = compute_verdict(&document.attack, &verdicts);
        }
        findings
    })
}

/// As many numbered pieces as fit behind `head`.
fn numbered(head: &str, count: usize, piece: impl Fn(usize) -> String) -> String {
    let mut text = head.to_owned();
    for n in 0..count {
        let piece = piece(n);
        if text.len() + piece.len() > FOUR_MIB {
            break;
        }
        text.push_str(&piece);
    }
    text
}

#[test]
fn what_is_refused_is_refused_clearly() {
    let minimal = format!("{HEAD}{EXECUTION}");
    let attack = |fields: &str| format!("{minimal}  {fields}\n");
    for (about, text, code, line, column) in [
        ("empty", String::new(), "PH-003", 1, 1),
        ("blank", " \n\n".to_owned(), "PH-003", 1, 1),
        ("comment", "# x\n".to_owned(), "PH-003", 1, 1),
        ("document end only", "---\n...\n".to_owned(), "PH-007", 1, 4),
        ("binary", "\u{7f}ELF\0\0".to_owned(), "PH-001", 1, 5),
        ("NUL at the end", format!("{minimal}\0"), "PH-001", 4, 1),
        (
            "several documents",
            format!("{minimal}---\n{minimal}"),
            "PH-004",
            4,
            1,
        ),
        ("anchor", attack("name: &a x"), "V-020", 4, 9),
        ("alias", attack("name: *a"), "V-020", 4, 9),
        ("merge key", attack("x-a: {<<: {b: 1}}"), "V-020", 4, 9),
        ("custom tag", attack("name: !x y"), "V-020", 4, 9),
        (
            "tagged binary",
            attack("name: !python/object:os.system x"),
            "V-020",
            4,
            9,
        ),
        (
            "duplicate key",
            attack("name: x\n  name: y"),
            "PH-008",
            5,
            3,
        ),
        (
            "64-bit overflow",
            attack("version: 99999999999999999999"),
            "PH-012",
            4,
            12,
        ),
        ("NaN", attack("x-a: .nan"), "PH-012", 4, 8),
        ("infinity", attack("x-a: [-.inf]"), "PH-012", 4, 9),
        (
            "tab as indent",
            format!("{minimal}\tname: x\n"),
            "PH-005",
            4,
            2,
        ),
        ("a list", "- a\n".to_owned(), "PH-007", 1, 1),
        ("a JSON text", "\"x\"".to_owned(), "PH-007", 1, 1),
    ] {
        let findings = everything(about, text.clone());
        let first = findings
            .first()
            .unwrap_or_else(|| panic!("{about}: accepted"));
        let span = first.span.unwrap();
        assert_eq!(
            (first.code, span.line, span.column),
            (code, line, column),
            "{about}: {first}"
        );
        assert!(load(&text).is_err(), "{about}");
    }
}

#[test]
fn marks_and_line_ends_of_other_systems_are_fine() {
    let text = format!("{HEAD}{EXECUTION}  version: 0\n");
    for (about, text) in [
        ("BOM", format!("\u{feff}{text}")),
        ("CRLF", text.replace('\n', "\r\n")),
        (
            "BOM and CRLF",
            format!("\u{feff}{}", text.replace('\n', "\r\n")),
        ),
        ("no line end at the end", text.trim_end().to_owned()),
        (
            "document marks",
            format!("---\n{text}...\n").replacen("---\n", "--- \n", 1),
        ),
    ] {
        let findings = everything(about, text);
        assert_eq!(findings.len(), 1, "{about}: {findings:?}");
        let span = findings[0].span.unwrap();
        let line = if about == "document marks" { 5 } else { 4 };
        assert_eq!(
            (findings[0].code, span.line, span.column),
            ("V-035", line, 12),
            "{about}"
        );
    }
    let text = format!("{HEAD}{EXECUTION}  name: x\n").replace('\n', "\r\n");
    assert_eq!(
        load(&text).unwrap().document.attack.name.as_deref(),
        Some("x")
    );
}

#[test]
fn size_is_checked_before_anything_else() {
    let findings = everything("one byte too many", "x".repeat(FOUR_MIB + 1));
    assert_eq!(findings[0].code, "PH-002");
    let limits = ReadLimits {
        max_bytes: 10,
        ..ReadLimits::default()
    };
    assert_eq!(check("oatf: \"0.1\"\n", &limits)[0].code, "PH-002");
    assert_eq!(check("a: 1\n", &limits)[0].code, "PH-009");
    let larger = ReadLimits {
        max_bytes: FOUR_MIB * 2,
        ..ReadLimits::default()
    };
    let text = format!("{HEAD}{EXECUTION}  name: {}\n", "x".repeat(FOUR_MIB));
    assert_eq!(bounded("raised limit", move || check(&text, &larger)), []);
}

#[test]
fn depth_is_bounded_in_every_notation() {
    let levels = 10_000;
    let block: String = (0..2_500)
        .map(|n| format!("{}a:\n", " ".repeat(n)))
        .collect();
    for (about, text) in [
        (
            "flow sequences",
            format!("{}{}", "[".repeat(levels), "]".repeat(levels)),
        ),
        (
            "flow mappings",
            format!("{}1{}", "{a: ".repeat(levels), "}".repeat(levels)),
        ),
        ("block sequences", format!("{}x", "- ".repeat(levels))),
        ("block mappings", block),
        ("explicit keys", format!("{}x", "? ".repeat(levels))),
        (
            "block in flow in block",
            format!("{}{}{}", "- ".repeat(100), "[".repeat(100), "]".repeat(100)),
        ),
    ] {
        let findings = everything(about, text.clone());
        assert_eq!(findings[0].code, "PH-006", "{about}: {}", findings[0]);
        let findings = everything(
            about,
            format!(
                "{HEAD}{EXECUTION}  x-a:\n    {}",
                text.replace('\n', "\n    ")
            ),
        );
        assert_eq!(
            findings[0].code, "PH-006",
            "{about}, in a document: {}",
            findings[0]
        );
    }
}

#[test]
fn the_deepest_document_that_is_accepted_fits_a_small_stack() {
    let levels = 128 - 3;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let text = format!(
        "{HEAD}  execution: {{mode: mcp_server, state: {{}}}}\n  x-a: [{}]\n",
        &deep[1..deep.len() - 1]
    );
    assert_eq!(everything("in an extension", text), []);
    let levels = 128 - 5;
    let deep = format!("{}\"{{{{\"{}", "[".repeat(levels), "]".repeat(levels));
    let text = format!("{HEAD}  execution: {{mode: mcp_server, state: {{a: {deep}}}}}\n");
    let findings = everything("in state", text);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code, "V-016");
}

#[test]
fn nothing_is_ever_expanded() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for n in 1..50 {
        let before = format!("*a{}, ", n - 1).repeat(9);
        laughs.push_str(&format!("a{n}: &a{n} [{before}]\n"));
    }
    let findings = everything("billion laughs", laughs);
    assert!(findings.iter().any(|finding| finding.code == "V-020"));
    let cycle = everything("a cycle", "a: &a [*a]\n".to_owned());
    assert!(cycle.iter().any(|finding| finding.code == "V-020"));
}

/// The same few bytes over and over, alone and inside a document.
fn one_thing(piece: &str, size: usize) {
    for head in [String::new(), format!("{HEAD}{EXECUTION}  x-a: ")] {
        let mut text = head + &piece.repeat(size / piece.len());
        let mut end = text.len().min(FOUR_MIB);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        bounded(piece, move || check(&text, &ReadLimits::default()));
    }
}

#[test]
fn four_mebibytes_of_one_thing() {
    for piece in ["[", "- ", "a: ", "\"", "'", "{{", "&a "] {
        one_thing(piece, FOUR_MIB);
    }
}

#[test]
fn much_of_any_other_thing() {
    for piece in [
        "]", "{", "}", "-", "a:\n", "? ", ": ", "\"\" ", "}}", "*a ", "!a ", "!", "%", "%a\n", "#",
        "# a\n", "|\n", ">\n", "|", ",", "[,", "{a,", "\n", "\r", "\r\n", " ", "\t", "---\n",
        "...\n", "\\", "\"\\x41", "a", "é", "🙂", "\u{feff}", "\u{2028}", "\u{85}", "0", "[a: ",
        "<<: ", "'a': ", "a b\n", "- a\n", "a: b\n", "a: [\n", "- - a\n",
    ] {
        one_thing(piece, FOUR_MIB / 16);
    }
}

/// A scalar of about `size` bytes, written in every way.
fn scalars(size: usize) -> Vec<(&'static str, String)> {
    vec![
        ("plain", "x".repeat(size)),
        ("quoted", format!("\"{}\"", "x".repeat(size))),
        ("escaped", format!("\"{}\"", "\\n".repeat(size / 2))),
        ("digits", "9".repeat(size)),
        ("fraction", format!("0.{}", "9".repeat(size))),
        ("exponent", format!("1e{}", "9".repeat(size))),
        ("hexadecimal", format!("0x{}", "f".repeat(size))),
        ("words", "a ".repeat(size / 2)),
        ("folded", format!(">\n{}", "   a\n".repeat(size / 5))),
        ("literal", format!("|\n{}", "   a\n".repeat(size / 5))),
    ]
}

#[test]
fn one_large_scalar() {
    for (about, scalar) in scalars(FOUR_MIB - 200) {
        everything(about, format!("{HEAD}{EXECUTION}  name: {scalar}\n"));
    }
    for (about, scalar) in scalars(FOUR_MIB / 8) {
        let state = "  execution:\n    mode: mcp_server\n    state:\n";
        everything(about, format!("{HEAD}{state}      a: {scalar}\n"));
        everything(
            about,
            format!("{HEAD}{EXECUTION}  x-a:\n    ? {scalar}\n    : 1\n"),
        );
    }
}

#[test]
fn a_hundred_thousand_of_a_kind() {
    let many = 100_000;
    let some = 10_000;
    for (about, text) in [
        ("keys", numbered("", many, |n| format!("k{n}: {n}\n"))),
        (
            "duplicate keys",
            numbered("", many, |_| "key: 1\n".to_owned()),
        ),
        ("anchors", numbered("", many, |n| format!("k{n}: &a 1\n"))),
        (
            "unknown keys with suggestions",
            numbered(&format!("{HEAD}{EXECUTION}"), many, |n| {
                format!("  descriptio{n}: x\n")
            }),
        ),
        (
            "unknown keys on one line",
            numbered("{oatf: \"0.1\", attack: {", many, |n| {
                format!("execution{n}: x, ")
            }) + "}}",
        ),
        (
            "extensions",
            numbered(&format!("{HEAD}{EXECUTION}"), some, |n| {
                format!("  x-{n}: .nan\n")
            }),
        ),
        (
            "empty items",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), some, |_| {
                "  - {}\n".to_owned()
            }),
        ),
        (
            "invalid indicators",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), many, |_| {
                "  - {target: a..b, pattern: {}}\n".to_owned()
            }),
        ),
        (
            "indicators without ids",
            numbered(
                &format!("{HEAD}  id: A-001\n{EXECUTION}  indicators:\n"),
                some,
                |_| "  - {target: a, pattern: {gt: 1}}\n".to_owned(),
            ),
        ),
        (
            "indicators with the same id",
            numbered(
                &format!("{HEAD}  id: A-001\n{EXECUTION}  indicators:\n"),
                some,
                |_| "  - {id: a, target: a, pattern: {gt: 1}}\n".to_owned(),
            ),
        ),
        (
            "wrong surfaces",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), some, |n| {
                format!("  - {{surface: tools/cal{n}, target: a, pattern: {{gt: 1}}}}\n")
            }),
        ),
        (
            "wrong enum members",
            numbered(&format!("{HEAD}{EXECUTION}  impact:\n"), some, |n| {
                format!("  - data_tamperin{n}\n")
            }),
        ),
        (
            "wrong regexes",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), some, |_| {
                "  - {target: a, pattern: {regex: (?=a)}}\n".to_owned()
            }),
        ),
        (
            "large regexes",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), some, |_| {
                "  - {target: a, pattern: {regex: \"(a{100}){90}\"}}\n".to_owned()
            }),
        ),
        (
            "mistyped operators",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), some, |n| {
                format!(
                    "  - {{target: a, pattern: {{condition: {{contain{}: 1}}}}}}\n",
                    n % 10
                )
            }),
        ),
        (
            "phases",
            numbered(
                &format!("{HEAD}  execution:\n    mode: mcp_server\n    phases:\n"),
                some,
                |_| "    - {}\n".to_owned(),
            ),
        ),
        (
            "phases of another mode",
            numbered(&format!("{HEAD}  execution:\n    phases:\n"), some, |n| {
                format!("    - {{mode: mcp_serve{n}}}\n")
            }),
        ),
        (
            "actors",
            numbered(&format!("{HEAD}  execution:\n    actors:\n"), some, |n| {
                format!("    - {{name: a{n}, mode: mcp_sever, phases: []}}\n")
            }),
        ),
        (
            "entries without `when`",
            numbered(
                &format!(
                    "{HEAD}  execution:\n    mode: mcp_server\n    state:\n      tool_responses:\n"
                ),
                some,
                |_| "      - {}\n".to_owned(),
            ),
        ),
        (
            "wrong predicates",
            numbered(
                &format!(
                    "{HEAD}  execution:\n    mode: mcp_server\n    state:\n      tool_responses:\n"
                ),
                some,
                |n| format!("      - {{when: {{\"a[{n}]\": {{regex: (, any_of: []}}}}}}\n"),
            ),
        ),
        (
            "templates",
            format!(
                "{HEAD}  execution:\n    mode: mcp_server\n    state:\n      a: \"{}\"\n",
                "{{}}".repeat(1_000_000)
            ),
        ),
        (
            "escapes",
            format!(
                "{HEAD}  execution:\n    mode: mcp_server\n    state:\n      a: '{}'\n",
                "\\{{".repeat(1_000_000)
            ),
        ),
        (
            "open templates",
            numbered(
                &format!("{HEAD}  execution:\n    mode: mcp_server\n    state:\n"),
                many,
                |n| format!("      k{n}: \"{{{{\"\n"),
            ),
        ),
        (
            "open templates behind others",
            numbered(
                &(numbered(
                    &format!("{HEAD}  execution:\n    mode: mcp_server\n    state:\n"),
                    80_000,
                    |n| format!("      k{n}: 1\n"),
                )),
                many,
                |n| format!("      l{n}: \"{{{{\"\n"),
            ),
        ),
        (
            "expressions",
            numbered(&format!("{HEAD}{EXECUTION}  indicators:\n"), some, |n| {
                format!(
                    "  - {{target: a, expression: {{cel: \"message.a == {n} && size(message.b) > 1\"}}}}\n"
                )
            }),
        ),
        (
            "variables",
            numbered(
                &format!(
                    "{HEAD}{EXECUTION}  indicators:\n  - target: a\n    expression:\n      cel: \"true\"\n      variables:\n"
                ),
                some,
                |n| format!("        v{n}: \"a[\"\n"),
            ),
        ),
    ] {
        let findings = everything(about, text);
        assert!(findings.len() < 100_000, "{about}: {}", findings.len());
    }
}

#[test]
fn what_refers_to_many_things_many_times() {
    let references = "{{a.b}}".repeat(200_000);
    let extractors = |indent: &str| {
        (0..20_000)
            .map(|n| {
                format!(
                    "{indent}- {{name: e{n}, source: request, type: json_path, selector: $.a}}\n"
                )
            })
            .collect::<String>()
    };
    let text = format!(
        "{HEAD}  execution:\n    mode: mcp_server\n    phases:\n      - state: {{a: \"{references}\"}}\n        extractors:\n{}",
        extractors("          ")
    );
    everything("references and extractors", text);
    let text = format!(
        "{HEAD}  execution:\n    mode: mcp_server\n    phases:\n      - state: {{a: \"{}\"}}\n        extractors:\n{}",
        "{{e19999}}".repeat(100_000),
        extractors("          ")
    );
    assert!(everything("declared references", text).is_empty());
    let mut text = format!("{HEAD}  execution:\n    actors:\n");
    for n in 0..15_000 {
        text.push_str(&format!(
            "      - {{name: actor{n}, mode: mcp_server, phases: [{{state: {{}}}}]}}\n"
        ));
    }
    text.push_str("  indicators:\n");
    for n in 0..20_000 {
        text.push_str(&format!("    - {{target: a, actor: actr{n}, protocol: a2a, direction: request, pattern: {{gt: 1}}}}\n"));
    }
    everything("indicators and actors", text);
}

#[test]
fn long_names_are_not_repeated_at_length() {
    let long = "a".repeat(FOUR_MIB / 2);
    let upper = "A".repeat(FOUR_MIB / 2);
    let indicators: String = "  - {id: x, target: a, pattern: {gt: 1}}\n".repeat(10_000);
    everything(
        "attack id",
        format!("{HEAD}  id: {upper}-001\n{EXECUTION}  indicators:\n{indicators}"),
    );
    everything(
        "mode",
        format!(
            "{HEAD}  execution: {{mode: {long}_server, state: {{}}}}\n  indicators:\n{indicators}"
        ),
    );
    let phases: String = "{mode: b_server},".repeat(50_000);
    everything(
        "actor mode",
        format!(
            "{HEAD}  execution:\n    actors:\n    - name: a\n      mode: {long}_server\n      phases: [{phases}]\n"
        ),
    );
    let references = "{{x}}".repeat(100_000);
    everything(
        "actor name",
        format!(
            "{HEAD}  execution:\n    actors:\n    - name: {long}\n      mode: mcp_server\n      phases: [{{state: {{a: \"{references}\"}}}}]\n"
        ),
    );
    let items = "\"{{\", ".repeat(100_000);
    everything(
        "state key",
        format!(
            "{HEAD}  execution:\n    mode: mcp_server\n    state:\n      ? {long}\n      : [{items}]\n"
        ),
    );
    let dots = ".".repeat(FOUR_MIB / 2);
    everything(
        "key of dots",
        format!(
            "{HEAD}  execution:\n    mode: mcp_server\n    state:\n      ? \"{dots}\"\n      : [{items}]\n  version: x\n"
        ),
    );
}

/// What a JSONPath visits is estimated first, and refused where it is too much.
#[test]
fn json_paths_visit_a_bounded_number_of_nodes() {
    use proofhouse_oatf::{
        EvaluationErrorKind, Extractor, ExtractorSource, MatchBudget, evaluate_extractor_within,
    };
    let wide = json!({"a": vec![1; 100_000]});
    let mut chain = json!("end");
    for _ in 0..500 {
        chain = json!({ "a": chain });
    }
    let extract = |selector: &str, message: &Value| {
        let extractor = Extractor::json_path("x", ExtractorSource::Request, selector);
        let budget = &mut MatchBudget::default();
        evaluate_extractor_within(&extractor, message, ExtractorSource::Request, budget)
            .map_err(|error| error.kind)
    };
    for (selector, message) in [
        ("$..*[?count($..*) == 1]", &wide),
        ("$.a[?count($.a[*]) == 1]", &wide),
        ("$.a[?count($['a'] [ * ]) == 1]", &wide),
        ("$..*..*..*..*", &chain),
        ("$..*..*..a", &chain),
        ("$..[?count(@..*..*) == 1]", &chain),
        (&format!("${}", "[*,*]".repeat(40)), &chain),
        (&format!("$.a{}", "['a','a']".repeat(40)), &chain),
    ] {
        let found = extract(selector, message);
        assert_eq!(
            found,
            Err(EvaluationErrorKind::PathResolution),
            "{selector}"
        );
    }
    let tools: Vec<Value> = (0..20_000)
        .map(|n| json!({"name": format!("t{n}"), "schema": {"type": "object"}}))
        .collect();
    let tools = json!({ "tools": tools });
    for (selector, message, expected) in [
        ("$..a", &wide, true),
        ("$.a[*]", &wide, true),
        ("$..*", &chain, true),
        ("$..*..a", &chain, true),
        ("$..[?@..*]", &chain, true),
        ("$.a[?@ == $.a[0]]", &wide, true),
        ("$.tools[?@.name == 't19999'].schema.type", &tools, true),
        ("$..[?@.name == 't1']", &tools, true),
        ("$.tools[?@.name == $.tools[1].name]", &tools, true),
        ("$['..*']['[*,*]'][\"?..\"]", &wide, false),
        ("$.tools[?@.name == '$..*[*]..']", &tools, false),
    ] {
        let found = extract(selector, message);
        assert_eq!(
            found.map(|found| found.is_some()),
            Ok(expected),
            "{selector}"
        );
    }
}
