//! Words and numbers by the table of a format.

use super::{FieldKind as Kind, FieldSpec, Fields, FormatReader, TypeSpec, Wording};
use crate::{DocumentWalk, ReadLimits, Source};

static SPEC: TypeSpec = TypeSpec {
    name: "File",
    doc: "A file.",
    fields: &[
        FieldSpec::optional("colour", Kind::Choice(&["red", "green"]), "A word."),
        FieldSpec::optional(
            "colours",
            Kind::OneOrMore(&Kind::Choice(&["red", "green"])),
            "Words.",
        ),
        FieldSpec::optional(
            "either",
            Kind::AnyOf(&[Kind::Choice(&["red", "green"]), Kind::Text]),
            "A word.",
        ),
        FieldSpec::optional("flag", Kind::Choice(&["true", "false"]), "A word."),
        FieldSpec::optional(
            "size",
            Kind::Integer {
                min: 2,
                max: Some(300),
            },
            "A number.",
        ),
        FieldSpec::optional("count", Kind::Integer { min: 1, max: None }, "A number."),
        FieldSpec::optional("version", Kind::Exactly(1), "A number."),
        FieldSpec::optional("share", Kind::Share, "A number."),
    ],
    extensions: false,
    exactly_one: None,
};

struct Open<'s, const SHOWS: bool>(DocumentWalk<'s>);

impl<'s, const SHOWS: bool> FormatReader<'s> for Open<'s, SHOWS> {
    const WORDING: Wording = Wording {
        whole: "the file",
        text: "a text",
        list: "a list",
        mismatch: "E-1",
        unknown_key: "E-2",
        empty: "E-3",
        refused: "E-4",
        shows_values: SHOWS,
    };
    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.0
    }
}

/// What is read of a text, and the first finding with its help.
fn read<T, const SHOWS: bool>(
    text: &str,
    read: impl for<'r, 's> FnOnce(&mut Fields<'r, 's, Open<'s, SHOWS>>) -> T,
) -> (T, Option<String>) {
    let source = Source::read(text, &ReadLimits::default()).unwrap();
    let mut reader = Open(DocumentWalk::new(&source));
    let value = read(&mut reader.fields(source.root(), &SPEC).unwrap());
    let findings = reader.0.into_findings();
    let told = findings.first().map(|finding| {
        let help = finding.help.as_deref().unwrap_or_default();
        format!("{} {} ({help})", finding.code, finding.message)
    });
    (value, told)
}

#[test]
fn words_are_those_of_the_table() {
    for (text, key, expected, told) in [
        ("colour: red", "colour", Some("red"), None),
        ("either: green", "either", Some("green"), None),
        (
            "colour: gren",
            "colour",
            None,
            Some("E-4 `gren` is not a value of `colour` (did you mean `green`?)"),
        ),
        (
            "colour: x",
            "colour",
            None,
            Some("E-4 `x` is not a value of `colour` (use one of: red, green)"),
        ),
        (
            "colour: 3",
            "colour",
            None,
            Some("E-1 `colour` must be a text, not the number 3 (quote it: `\"3\"`)"),
        ),
    ] {
        let found = read::<_, true>(text, |fields| fields.word(key));
        assert_eq!(found, (expected, told.map(str::to_owned)), "{text}");
    }
    let found = read::<_, false>("colour: hunter2", |fields| fields.word("colour"));
    let told = "E-4 `colour` cannot be used (use one of: red, green)";
    assert_eq!(found, (None, Some(told.to_owned())));
    let found = read::<_, true>("colours: [red, blue, green]", |fields| {
        fields.words("colours")
    });
    let told = "E-4 `blue` is not a value of an item of `colours` (use one of: red, green)";
    assert_eq!(found, (vec!["red", "green"], Some(told.to_owned())));
    let found = read::<_, true>("colours: red", |fields| fields.words("colours"));
    assert_eq!(found, (vec!["red"], None));
    let found = read::<_, true>("flag: 'true'", |fields| fields.choice::<bool>("flag"));
    assert_eq!(found, (Some(true), None));
}

#[test]
fn numbers_are_in_the_range_of_the_table() {
    for (text, key, expected, told) in [
        ("size: 2", "size", Some(2), None),
        ("size: 300", "size", Some(300), None),
        (
            "size: 301",
            "size",
            None,
            Some("E-4 `size` must be a whole number from 2 to 300 ()"),
        ),
        (
            "size: -1",
            "size",
            None,
            Some("E-4 `size` must be a whole number from 2 to 300 ()"),
        ),
        (
            "size: 2.5",
            "size",
            None,
            Some("E-4 `size` must be a whole number from 2 to 300 ()"),
        ),
        (
            "size: x",
            "size",
            None,
            Some("E-1 `size` must be a whole number, not the string \"x\" ()"),
        ),
        ("count: 18446744073709551615", "count", Some(u64::MAX), None),
        (
            "count: 0",
            "count",
            None,
            Some("E-4 `count` must be a whole number from 1 ()"),
        ),
        (
            "version: 2",
            "version",
            None,
            Some("E-4 `version` must be 1 ()"),
        ),
    ] {
        let found = read::<_, true>(text, |fields| fields.whole::<u64>(key));
        assert_eq!(found, (expected, told.map(str::to_owned)), "{text}");
    }
    for (text, expected) in [
        ("share: 0", Some(0.0)),
        ("share: 0.25", Some(0.25)),
        ("share: 1", Some(1.0)),
        ("share: 1.1", None),
        ("share: -1", None),
        ("share: .nan", None),
        ("share: 1e999", None),
    ] {
        let (found, told) = read::<_, true>(text, |fields| fields.share("share"));
        assert_eq!(found, expected, "{text}");
        let outside = "E-4 `share` must be a number from 0 to 1 ()".to_owned();
        assert_eq!(told, expected.is_none().then_some(outside), "{text}");
    }
}
