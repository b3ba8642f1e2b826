//! As `differential`, with wider changes: whole subtrees, also of other documents; random regular expressions; and the text of
//! documents as people and editors spoil it. Normal forms are compared, too.

use proofhouse_oatf::{parse, to_value};
use proofhouse_source::to_yaml;
use serde_json::{Value, json};

use super::differential::{About, Comparison, Random};
use super::differential_table::{OF_REGEXES, OF_SUBTREES, OF_TEXTS};

/// How many documents of each kind are compared: so many that all of them take some seconds.
const SUBTREES: u64 = 500;
const REGEXES: u64 = 1_500;
const TEXTS: u64 = 700;

fn documents() -> Vec<(String, Value)> {
    let texts = super::vectors::public_texts().into_iter();
    texts
        .map(|text| {
            let value = to_value(&parse(&text).unwrap());
            (text, value)
        })
        .collect()
}

/// Every place in a value but the whole, as JSON Pointers.
fn places(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        let below: Vec<(String, &Value)> = match value {
            Value::Object(map) => map
                .iter()
                .map(|(key, inner)| {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    (format!("{at}/{key}"), inner)
                })
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(number, inner)| (format!("{at}/{number}"), inner))
                .collect(),
            _ => Vec::new(),
        };
        found.extend(below.iter().map(|(at, _)| at.clone()));
        open.extend(below);
    }
    found
}

/// The last key of a pointer, and what it is in.
fn split(pointer: &str) -> (&str, String) {
    let (holder, key) = pointer.rsplit_once('/').unwrap();
    (holder, key.replace("~1", "/").replace("~0", "~"))
}

/// Changes a whole subtree of a document.
fn transplant(value: &mut Value, others: &[(String, Value)], random: &mut Random) {
    let all = places(value);
    if all.is_empty() {
        return;
    }
    let at = random.pick(&all).clone();
    let (holder, key) = split(&at);
    match random.below(5) {
        // Gone.
        0 => match value.pointer_mut(holder) {
            Some(Value::Object(map)) => drop(map.shift_remove(&key)),
            Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap())),
            _ => {}
        },
        // Twice, the second time under the name of a neighbour or a new one.
        1 => {
            let twice = value.pointer(&at).cloned().unwrap();
            match value.pointer_mut(holder) {
                Some(Value::Object(map)) => {
                    let names: Vec<String> =
                        map.keys().cloned().chain(["x-twice".to_owned()]).collect();
                    map.insert(random.pick(&names).clone(), twice);
                }
                Some(Value::Array(items)) => items.insert(random.below(items.len() + 1), twice),
                _ => {}
            }
        }
        // In each other's place.
        2 => {
            let other = random.pick(&all).clone();
            if other.starts_with(&at) || at.starts_with(&other) {
                return;
            }
            let one = value.pointer(&at).cloned().unwrap();
            let two = value.pointer(&other).cloned().unwrap();
            *value.pointer_mut(&at).unwrap() = two;
            *value.pointer_mut(&other).unwrap() = one;
        }
        // Of another document: what has the same name there, or anything.
        kind => {
            let (_, other) = random.pick(others);
            let of_other = places(other);
            let same: Vec<&String> = of_other
                .iter()
                .filter(|place| split(place).1 == key)
                .collect();
            let from = if kind == 3 && !same.is_empty() {
                (*random.pick(&same)).clone()
            } else {
                random.pick(&of_other).clone()
            };
            *value.pointer_mut(&at).unwrap() = other.pointer(&from).cloned().unwrap();
        }
    }
}

/// A document with its indicators judged as often as it has some; the first is about `message.text`.
fn with_regex(regex: &str, kind: usize) -> Value {
    let mut attack = json!({"execution": {"mode": "mcp_server", "state": {"tools": []}}});
    match kind {
        0 => {
            attack["indicators"] = json!([{"target": "text", "pattern": {"regex": regex}}]);
        }
        1 => {
            let cel = format!("message.text.matches({})", Value::String(regex.to_owned()));
            attack["indicators"] = json!([{"target": "", "expression": {"cel": cel}}]);
        }
        _ => {
            let extractor =
                json!({"name": "a", "source": "request", "type": "regex", "selector": regex});
            attack["execution"] =
                json!({"mode": "mcp_server", "phases": [{"state": {}, "extractors": [extractor]}]});
        }
    }
    json!({"oatf": "0.1", "attack": attack})
}

/// A regular expression, or what somebody might take for one.
fn regex(random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "ab",
        ".",
        "1",
        "_",
        "é",
        "ß",
        "-",
        "/",
        "#",
        "~",
        "\"",
        "'",
        " ",
        "\n",
        "\\d",
        "\\D",
        "\\w",
        "\\W",
        "\\s",
        "\\S",
        "\\b",
        "\\B",
        "\\pL",
        "\\p{Greek}",
        "\\p{^Lu}",
        "\\PL",
        "\\p{Alphabetic}",
        "[a-z]",
        "[^a]",
        "[[:alpha:]]",
        "[[:^digit:]]",
        "[]a]",
        "[^]a]",
        "[[]",
        "[a",
        "[z-a]",
        "[a-\\d]",
        "[a&&b]",
        "[a--b]",
        "[\\d\\w]",
        "(?i)",
        "(?i:a)",
        "(?s)",
        "(?m)",
        "(?U)",
        "(?x)",
        "(?u)",
        "(?-u)",
        "(?-i)",
        "(?:a|b)",
        "(a)",
        "(?P<n>a)",
        "(?<n>a)",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?>a)",
        "(?#c)",
        "\\1",
        "\\k<n>",
        "\\Q.*\\E",
        "\\Qa",
        "^",
        "$",
        "\\A",
        "\\z",
        "\\Z",
        "\\G",
        "\\x41",
        "\\x{61}",
        "\\x{110000}",
        "\\u0061",
        "\\C",
        "\\101",
        "\\07",
        "\\0",
        "\\cA",
        "\\e",
        "\\a",
        "\\f",
        "\\v",
        "\\K",
        "\\R",
        "\\h",
        "\\X",
        "\\/",
        "\\-",
        "\\#",
        "\\_",
        "\\é",
        "\\<",
        "\\>",
        "\\",
        "{",
        "}",
        "{2}",
        "{2,",
        "{,2}",
        "{2,3}",
        "{3,2}",
        "{0}",
        "{1001}",
        "*",
        "+",
        "?",
        "*?",
        "+?",
        "??",
        "++",
        "*+",
        "?+",
        "**",
        "|",
        "||",
        "()",
        "(",
        ")",
        "(|a)",
    ];
    let mut regex = String::new();
    for _ in 0..=random.below(3) {
        regex.push_str(random.pick::<&str>(PIECES));
    }
    regex
}

/// A text that such expressions may match.
fn subject(random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "a", "b", "A", "B", "1", "_", " ", "\n", "é", "É", "ß", "ſ", "K", "٣", "α", "-", ".", "*",
        "{2}", "]", "[", "/", "\u{1}", "\u{7}",
    ];
    let length = random.below(7);
    (0..length).map(|_| *random.pick(PIECES)).collect()
}

/// Spoils a text at one place, as people, editors and tools do.
fn spoil(text: &str, random: &mut Random) -> String {
    const TAGS: &[&str] = &[
        "!!str ",
        "!!int ",
        "!!float ",
        "!!bool ",
        "!!null ",
        "!!map ",
        "!!seq ",
        "!!binary ",
        "!!timestamp ",
        "!own ",
        "! ",
        "!<tag:yaml.org,2002:str> ",
        "!<!own> ",
        "&a ",
        "*a ",
        "*a",
    ];
    const SCALARS: &[&str] = &[
        "~",
        "null",
        "Null",
        "",
        "yes",
        "no",
        "on",
        "true",
        "TRUE",
        "True",
        "0o7",
        "07",
        "0x1F",
        "0b1",
        "1e3",
        "1E3",
        ".5",
        "5.",
        ".inf",
        "-.INF",
        ".nan",
        ".NaN",
        "1_000",
        "12:30",
        "2026-01-01",
        "=",
        "+1",
        "-0",
        "+0.0",
        "1e400",
        "-1",
        "'",
        "\"",
        "''",
        "\"\"",
        "'it''s'",
        "\"a\\tb\"",
        "\"\\x41\"",
        "\"\\u0041\"",
        "\"\\ud83d\\ude00\"",
        "\"\\U0001F600\"",
        "\"\\q\"",
        "\"\\/\"",
        "\"\\N\"",
        "\"a\n  b\"",
        "'a\n\n  b'",
        "[]",
        "{}",
        "[1, 2]",
        "[1, 2,]",
        "{a: 1}",
        "{a: 1, a: 2}",
        "{a}",
        "[a: 1]",
        "[",
        "}",
        "|",
        ">",
        "|2",
        "|-\n    x",
        ">+\n    x\n    y",
        "a: b",
        "a #b",
        "a#b",
        "- a",
        "? a",
        "@a",
        "`a`",
        "%a",
        "#a",
        "&a b",
        "*b",
        "!a b",
        "a\tb",
        "99999999999999999999",
        "0.1",
        "1.0",
        "<<",
    ];
    const CHARACTERS: &[&str] = &[
        "\u{feff}",
        "\u{a0}",
        "\u{200b}",
        "\u{1f600}",
        "\u{301}",
        "\u{202e}",
        "\u{85}",
        "\u{2028}",
        "\u{2029}",
        "\u{fffe}",
        "\t",
        "\0",
        "\u{7f}",
        "\u{80}",
        "\u{1b}",
        "\r",
        "\n",
        " ",
        "  ",
        "\n\n",
        ":",
        ": ",
        "- ",
        "#",
        " #",
        ",",
        "'",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        "&",
        "*",
        "!",
        "|",
        ">",
        "%",
        "@",
        "`",
        "?",
        "? ",
        "~",
        "{{",
        "}}",
        "\\{{",
        "\u{e000}",
        "\u{10ffff}",
    ];
    const LINES: &[&str] = &[
        "---",
        "...",
        "%YAML 1.2",
        "%YAML 1.1",
        "%TAG ! tag:x,2026:",
        "# comment",
        "",
        "   ",
        "\t",
        "<<: {a: 1}",
        "<<: *a",
        "? a",
        ": b",
        "- c",
        "x-a: 1",
        "x-a",
        "'x-a': 1",
        "1: 2",
        "null: 1",
        "true: 1",
        "~: 1",
        "[a]: 1",
        "{a: 1}: 1",
        "\"x-\\u0061\": 1",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = random.below(lines.len());
    let line = lines[at].clone();
    let indent = line.len() - line.trim_start_matches(' ').len();
    let (key, value) = match line.split_once(": ") {
        Some((key, value)) => (format!("{key}: "), value.to_owned()),
        None => (line.clone(), String::new()),
    };
    match random.below(14) {
        0 => lines[at] = format!("{}{line}", " ".repeat(1 + random.below(3))),
        1 => lines[at] = line[indent.min(1 + random.below(3))..].to_owned(),
        2 => lines[at] = format!("\t{}", line.trim_start()),
        3 => {
            let quote = random.pick(&["'", "\""]);
            lines[at] = format!("{key}{quote}{value}{quote}");
        }
        4 => lines[at] = line.replacen(*random.pick(&["\"", "'"]), "", 1),
        5 => lines[at] = format!("{key}{}{value}", random.pick(TAGS)),
        6 => lines[at] = format!("{key}{}", random.pick(SCALARS)),
        7 => {
            let end = random.pick(&["\r\n", "\r", "\n\r", "\u{85}", "\u{2028}", "\n\n"]);
            return lines.join(end) + end;
        }
        8 => {
            let mut characters: Vec<String> = line.chars().map(String::from).collect();
            characters.insert(
                random.below(characters.len() + 1),
                (*random.pick(CHARACTERS)).to_owned(),
            );
            lines[at] = characters.concat();
        }
        9 => {
            let line = format!("{}{}", " ".repeat(indent), random.pick(LINES));
            lines.insert(at, line);
        }
        10 => lines.insert(at, line),
        11 => drop(lines.remove(at)),
        12 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        _ => {
            let kept = random.below(text.chars().count());
            return text.chars().take(kept).collect();
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn every_difference_in_transplanted_documents_has_its_reason() {
    let documents = documents();
    if documents.is_empty() {
        return;
    }
    let mut comparison = Comparison::wide();
    for seed in 0..SUBTREES {
        let mut random = Random::of(seed);
        let mut value = random.pick(&documents).1.clone();
        for _ in 0..=random.below(2) {
            transplant(&mut value, &documents, &mut random);
        }
        comparison.compare(seed, &to_yaml(&value), &About::Read, &mut random);
    }
    comparison.judged_at_least(&[("pattern", "Matched", 5), ("pattern", "NotMatched", 50)]);
    comparison.expect(OF_SUBTREES);
}

#[test]
fn every_difference_in_random_regular_expressions_has_its_reason() {
    let mut comparison = Comparison::wide();
    for seed in 0..REGEXES {
        let mut random = Random::of(seed);
        let regex = regex(&mut random);
        let document = with_regex(&regex, random.below(3));
        let message = json!({"text": subject(&mut random)});
        comparison.compare(
            seed,
            &to_yaml(&document),
            &About::Message(&message),
            &mut random,
        );
    }
    comparison.judged_at_least(&[
        ("pattern", "Matched", 20),
        ("pattern", "NotMatched", 50),
        ("expression", "Matched", 20),
        ("expression", "NotMatched", 50),
        ("extractor", "false", 10),
    ]);
    comparison.expect(OF_REGEXES);
}

#[test]
fn every_difference_in_spoiled_texts_has_its_reason() {
    let documents = documents();
    if documents.is_empty() {
        return;
    }
    let mut comparison = Comparison::wide();
    for seed in 0..TEXTS {
        let mut random = Random::of(seed);
        let (text, _) = random.pick(&documents);
        let text = spoil(text, &mut random);
        comparison.compare(seed, &text, &About::Read, &mut random);
    }
    comparison.judged_at_least(&[("pattern", "Matched", 5), ("pattern", "NotMatched", 50)]);
    comparison.expect(OF_TEXTS);
}
