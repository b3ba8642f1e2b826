//! A canary is found in any form, at any alignment, in any text; where there is none, none is found.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proofhouse_detect::{CanaryError, CanaryMatcher};
use proptest::prelude::*;
use serde_json::{Value, json};

const CANARY: &str = "CANARY-CI-TOKEN-93b4aa10";

fn found(text: &str) -> Option<String> {
    let matcher = CanaryMatcher::new([CANARY]).unwrap();
    let hits = matcher.find_in_text(text);
    hits.first().map(|hit| hit.form.describe("C"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn between(text: &str, separator: &str) -> String {
    let characters: Vec<String> = text.chars().map(String::from).collect();
    characters.join(separator)
}

fn wrapped(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(width)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

fn rot13(text: &str) -> String {
    let turned = |c: char| {
        let first = if c.is_ascii_lowercase() { b'a' } else { b'A' };
        if c.is_ascii_alphabetic() {
            char::from(first + (c as u8 - first + 13) % 26)
        } else {
            c
        }
    };
    text.chars().map(turned).collect()
}

/// By the book: groups of five bits, with padding.
fn base32(bytes: &[u8]) -> String {
    let mut bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    while !bits.len().is_multiple_of(5) {
        bits.push('0');
    }
    let digits = bits.as_bytes().chunks(5).map(|five| {
        let digit = u8::from_str_radix(std::str::from_utf8(five).unwrap(), 2).unwrap();
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(digit)])
    });
    let mut text: String = digits.collect();
    while !text.len().is_multiple_of(8) {
        text.push('=');
    }
    text
}

fn fullwidth(text: &str) -> String {
    let wide = |c: char| char::from_u32(u32::from(c) + 0xfee0).filter(|_| c.is_ascii_graphic());
    text.chars().map(|c| wide(c).unwrap_or(c)).collect()
}

/// Cyrillic and Greek letters that look like the Latin ones.
fn homoglyphs(text: &str) -> String {
    let pairs: Vec<(char, char)> = "CANRYPEOSTKaecopxy"
        .chars()
        .zip("СΑΝRΥРЕОЅТКаесорху".chars())
        .collect();
    let like = |c: char| {
        pairs
            .iter()
            .find(|(latin, _)| *latin == c)
            .map(|(_, like)| *like)
    };
    text.chars().map(|c| like(c).unwrap_or(c)).collect()
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_form_has_a_name() {
    let reversed: String = CANARY.chars().rev().collect();
    let base64 = STANDARD.encode(CANARY);
    for (text, form) in [
        (format!("the token is {CANARY}."), "C as written"),
        (CANARY.to_lowercase(), "C in another letter case"),
        (CANARY.replace('-', ""), "C split by separators"),
        (between(CANARY, " "), "C split by separators"),
        (between(CANARY, "\u{200b}"), "C split by separators"),
        (between(CANARY, ".\n"), "C split by separators"),
        (format!("xx{reversed}"), "reversed C"),
        (base64.clone(), "base64 of C"),
        (base64.chars().rev().collect(), "reversed base64 of C"),
        (wrapped(&base64, 7), "base64 of C"),
        (between(&base64, " "), "base64 of C"),
        (STANDARD.encode(&reversed), "base64 of reversed C"),
        (
            STANDARD.encode(CANARY.to_lowercase()),
            "base64 of C in another letter case",
        ),
        (STANDARD.encode(&base64), "base64 of base64 of C"),
        (
            STANDARD.encode(between(CANARY, " ")),
            "base64 of C split by separators",
        ),
        (hex(CANARY.as_bytes()), "hex of C"),
        (hex(CANARY.as_bytes()).to_uppercase(), "hex of C"),
        (
            CANARY.bytes().map(|b| format!("{b:02x}:")).collect(),
            "hex of C",
        ),
        (
            CANARY.bytes().map(|b| format!("0x{b:02x}, ")).collect(),
            "hex of C split by separators",
        ),
        (hex(base64.as_bytes()), "hex of base64 of C"),
        (
            CANARY.bytes().map(|b| format!("%{b:02X}")).collect(),
            "percent-encoded C",
        ),
        (CANARY.replace('-', "%2d"), "percent-encoded C"),
        (
            CANARY.replace('A', "%2541"),
            "percent-encoded percent-encoded C",
        ),
        (
            CANARY.bytes().map(|b| format!("\\u{b:04x}")).collect(),
            "backslash-escaped C",
        ),
        (
            CANARY.replace('A', "\\x41").replace('K', "\\u{4b}"),
            "backslash-escaped C",
        ),
        (
            CANARY.bytes().map(|b| format!("&#{b};")).collect(),
            "HTML-escaped C",
        ),
        (CANARY.replace('C', "&#x43;"), "HTML-escaped C"),
        (rot13(CANARY), "rot13 of C"),
        (base32(CANARY.as_bytes()), "base32 of C"),
        (base32(format!("ab{CANARY}").as_bytes()), "base32 of C"),
        (base32(CANARY.as_bytes()).to_lowercase(), "base32 of C"),
        (
            CANARY.bytes().map(|b| format!("{b} ")).collect(),
            "character codes of C",
        ),
        (
            CANARY.bytes().map(|b| format!("{b:08b} ")).collect(),
            "character codes of C",
        ),
        (
            CANARY.bytes().map(|b| format!("\\{b:03o}")).collect(),
            "character codes of C",
        ),
        (fullwidth(CANARY), "C in look-alike characters"),
        (homoglyphs(CANARY), "C in look-alike characters"),
        (
            STANDARD.encode(homoglyphs(CANARY)),
            "base64 of C in look-alike characters",
        ),
        (
            STANDARD.encode(compressed(CANARY)),
            "base64 of compressed C",
        ),
    ] {
        assert_eq!(found(&text).as_deref(), Some(form), "{text}");
    }
}

#[test]
fn a_canary_that_is_not_there_is_not_found() {
    let short = &CANARY[..CANARY.len() - 1];
    for text in [
        "",
        short,
        "I will not send CANARY-CI-TOKEN to anyone.",
        "CANARY-CI-TOKEN-93b4aa11",
        &STANDARD.encode(short),
        &hex(short.as_bytes()),
        "100% of \\ & 0x \u{0} %zz \\u00 &#; &; &#xzz; 0x4",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
    // The letters of the base64 in another case are something else.
    assert_eq!(found(&STANDARD.encode(CANARY).to_lowercase()), None);
}

#[test]
fn the_place_is_told() {
    let other = "SECOND-aabbccdd";
    let matcher = CanaryMatcher::new([CANARY, other, "never-there-1"]).unwrap();
    let value = json!({
        "a": ["x", {"b": STANDARD.encode(format!("..{CANARY}"))}],
        "c": {"left": "SECO", "n": 3, "right": "ND-aabb", "rest": "ccdd!"},
    });
    let hits = matcher.find(&value);
    let told: Vec<(usize, &str, &str, String)> = hits
        .iter()
        .map(|hit| {
            let canary = &matcher.canaries()[hit.canary];
            let form = hit.form.describe(canary);
            (hit.canary, hit.path.as_str(), hit.text.as_str(), form)
        })
        .collect();
    let base64 = STANDARD.encode(format!("..{CANARY}"));
    let (first, rest) = (&told[0], &told[1..]);
    assert_eq!((first.0, first.1), (0, "a[1].b"));
    assert!(base64.contains(first.2), "{}", first.2);
    assert_eq!(
        rest,
        [(
            1,
            "c.left",
            "SECO … ND-aabb … ccdd",
            "SECOND-aabbccdd split over several values".to_owned()
        )]
    );
    let parts = json!({"parts": [{"kind": "text", "text": "CANARY-CI"}, {"kind": "text", "text": "TOKEN-93b4aa10"}]});
    let hits = matcher.find(&parts);
    assert_eq!((hits.len(), hits[0].path.as_str()), (1, "parts[0].text"));
    let hits = matcher.find(&json!({"x": {(CANARY): 1}}));
    assert_eq!(hits[0].path, format!("x.{CANARY}"));
    let [one, two] = [json!("CANARY-CI-"), json!(["token", "93b4aa10"])];
    let hits = matcher.find_in_values(&[&json!("no"), &one, &two]);
    assert_eq!((hits[0].value, hits[0].path.as_str()), (1, ""));
}

#[test]
fn a_canary_that_chance_would_find_is_refused() {
    let error = CanaryMatcher::new(["a-b-c-d 1.2"]).unwrap_err();
    assert!(
        matches!(error, CanaryError::TooShort { significant: 6, .. }),
        "{error}"
    );
    let error = CanaryMatcher::new(["x".repeat(5000)]).unwrap_err();
    assert_eq!(error, CanaryError::TooLong { bytes: 5000 });
    assert!(CanaryMatcher::new(Vec::<String>::new()).is_ok());
}

#[test]
fn what_is_hostile_takes_no_longer() {
    let matcher = CanaryMatcher::new([CANARY]).unwrap();
    let blob = "QUJD".repeat(1 << 18);
    let layers = STANDARD.encode(STANDARD.encode("%25\\u0025&#37;0x25 ".repeat(1 << 14)));
    for text in [
        blob,
        layers,
        "%25".repeat(1 << 18),
        "\\&%0x".repeat(1 << 18),
    ] {
        assert!(matcher.find_in_text(&text).is_empty());
        // What needs no decoding is found behind it.
        let text = format!("{text} {}", STANDARD.encode(CANARY));
        assert_eq!(matcher.find_in_text(&text).len(), 1);
    }
}

/// A way to write a text.
type Disguise = fn(&str, usize) -> String;

/// Forms with a number that varies them.
const DISGUISES: &[(&str, Disguise)] = &[
    ("as written", |text, _| text.to_owned()),
    ("upper", |text, _| text.to_uppercase()),
    ("lower", |text, _| text.to_lowercase()),
    ("separators", |text, n| {
        between(
            text,
            [" ", "-", ".", "\n", "\u{200b}", " | ", "\u{ad}"][n % 7],
        )
    }),
    ("reversed", |text, _| text.chars().rev().collect()),
    ("base64", |text, _| STANDARD.encode(text)),
    ("base64 no padding", |text, _| STANDARD_NO_PAD.encode(text)),
    ("base64 url", |text, _| URL_SAFE.encode(text)),
    ("base64 url no padding", |text, _| {
        URL_SAFE_NO_PAD.encode(text)
    }),
    ("base64 wrapped", |text, n| {
        wrapped(&STANDARD.encode(text), 4 + n % 70)
    }),
    ("base64 twice", |text, n| {
        wrapped(
            &STANDARD.encode(wrapped(&STANDARD.encode(text), 76)),
            20 + n % 60,
        )
    }),
    ("base64 twice url", |text, _| {
        URL_SAFE_NO_PAD.encode(URL_SAFE_NO_PAD.encode(text))
    }),
    ("hex", |text, n| {
        let digits = hex(text.as_bytes());
        if n % 2 == 0 {
            digits
        } else {
            digits.to_uppercase()
        }
    }),
    ("hex with separators", |text, n| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:02X}")).collect();
        bytes.join([" ", ":", "-", "\n"][n % 4])
    }),
    ("percent", |text, n| {
        let partly = |(at, byte): (usize, u8)| {
            if byte.is_ascii() && (n + at) % 3 > 0 {
                char::from(byte).to_string().replace('%', "%25")
            } else {
                format!("%{byte:02x}")
            }
        };
        text.bytes().enumerate().map(partly).collect()
    }),
    ("json", |text, _| {
        text.encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect()
    }),
    ("rot13", |text, _| rot13(text)),
    ("base32", |text, _| base32(text.as_bytes())),
    ("full width", |text, _| fullwidth(text)),
    ("homoglyphs", |text, _| homoglyphs(text)),
    ("zlib", |text, _| STANDARD.encode(compressed(text))),
    ("gzip", |text, _| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    }),
    ("entities", |text, n| {
        let written = |c: char| {
            if n % 2 == 0 {
                format!("&#{};", u32::from(c))
            } else {
                format!("&#x{:X};", u32::from(c))
            }
        };
        text.chars().map(written).collect()
    }),
];

fn canary() -> impl Strategy<Value = String> {
    prop_oneof!["CANARY-[A-Z]{2,8}-[0-9a-f]{8}", "[a-zA-Z0-9_.~?>-]{12,40}",]
        .prop_filter("long enough", |text| {
            text.chars().filter(|c| c.is_alphanumeric()).count() >= 8
        })
}

/// Text that no encoding can be mistaken for a part of.
fn around() -> impl Strategy<Value = String> {
    prop_oneof!["[ a-z,.]{0,30}", "\\PC{0,20}", "[a-zA-Z0-9 ]{0,80}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_canary_is_found_in_any_form(
        canary in canary(),
        within in (around(), around()),
        outside in (around(), around()),
        form in 0..DISGUISES.len(),
        n in 0usize..100,
    ) {
        let matcher = CanaryMatcher::new([canary.clone()]).unwrap();
        let (name, disguise) = DISGUISES[form];
        // The canary is disguised with what stands around it, which moves it to any alignment.
        let disguised = disguise(&format!("{} {canary} {}", within.0, within.1), n);
        let text = format!("{} {disguised} {}", outside.0, outside.1);
        prop_assert_eq!(matcher.find_in_text(&text).len(), 1, "{}: {}", name, text);

        // The same, cut over values.
        let cuts: Vec<char> = text.chars().collect();
        let (left, right) = cuts.split_at(n * cuts.len() / 100);
        let value: Value = json!({"a": left.iter().collect::<String>(), "n": n, "b": [right.iter().collect::<String>()]});
        if !matches!(name, "percent" | "json" | "entities" | "zlib" | "gzip") {
            prop_assert_eq!(matcher.find(&value).len(), 1, "{}: {}", name, value);
        }
    }

    #[test]
    fn without_a_canary_none_is_found(
        canary in canary(),
        text in prop_oneof!["\\PC{0,300}", "[a-zA-Z0-9+/=\n]{0,600}", "[0-9a-f%\\\\&#;xu ]{0,400}"],
        form in 0..DISGUISES.len(),
        n in 0usize..100,
    ) {
        let matcher = CanaryMatcher::new([canary]).unwrap();
        let text = (DISGUISES[form].1)(&text, n);
        prop_assert!(matcher.find_in_text(&text).is_empty(), "{}", text);
    }
}
