//! The reference page of a format, made from its table.

use std::fmt::Write as _;

use super::table::{FieldKind, FieldSpec, TypeSpec};

/// The keys of a format as a page in Markdown: a section for its outermost mapping and each of the others.
///
/// ```
/// use proofhouse_source::format::{FieldKind, FieldSpec, TypeSpec, reference};
///
/// static ROOT: TypeSpec = TypeSpec {
///     name: "Root",
///     doc: "A file.",
///     fields: &[FieldSpec::required("name", FieldKind::Text, "E-1", "Its name.")],
///     extensions: false,
///     exactly_one: None,
/// };
/// let page = reference::markdown("A file", "proofhouse schema file --reference", &ROOT, []);
/// assert!(page.contains("| `name` | yes | text | Its name. |"), "{page}");
/// ```
#[must_use]
pub fn markdown(
    title: &str,
    made_by: &str,
    root: &TypeSpec,
    parts: impl IntoIterator<Item = &'static TypeSpec>,
) -> String {
    let mut page =
        format!("# {title}\n\n<!-- Made by `{made_by}`. Change the table of keys instead. -->\n\n");
    section(&mut page, root);
    for part in parts {
        let _ = write!(page, "\n## {}\n\n", part.name);
        section(&mut page, part);
    }
    page
}

fn section(page: &mut String, spec: &TypeSpec) {
    let _ = write!(page, "{}\n\n", escaped(spec.doc));
    page.push_str("| key | needed | value | |\n|---|---|---|---|\n");
    for field in spec.fields {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            names(field),
            if field.required.is_some() { "yes" } else { "" },
            escaped(&words(&field.kind)),
            escaped(field.doc)
        );
    }
    if spec.extensions {
        page.push_str("\nKeys of your own start with `x-`.\n");
    }
}

fn names(field: &FieldSpec) -> String {
    match field.alias {
        Some(alias) => format!("`{}` or `{}`", field.key, alias.key),
        None => format!("`{}`", field.key),
    }
}

/// What a key may hold, for people.
fn words(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Any => "any value".to_owned(),
        FieldKind::Flag => "`true` or `false`".to_owned(),
        FieldKind::Text | FieldKind::SomeText | FieldKind::Matching(_) => "text".to_owned(),
        FieldKind::Scalar(types) => one_of(types.iter().map(|word| match *word {
            "string" => "text".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            other => other.to_owned(),
        })),
        FieldKind::Integer { min, max: None } => format!("whole number from {min}"),
        FieldKind::Integer {
            min,
            max: Some(max),
        } => format!("whole number from {min} to {max}"),
        FieldKind::Number { min, max } => format!("number from {min} to {max}"),
        FieldKind::Share => "number from 0 to 1".to_owned(),
        FieldKind::Exactly(number) => format!("`{number}`"),
        FieldKind::Duration(_) => "duration, such as `90s`".to_owned(),
        FieldKind::Date => "date, or date-time".to_owned(),
        FieldKind::Choice(choices) => one_of(choices.iter().map(|word| format!("`{word}`"))),
        FieldKind::Object => "mapping".to_owned(),
        FieldKind::Map { values, .. } => format!("mapping of names to: {}", words(values)),
        FieldKind::List { of, .. } => format!("list of: {}", words(of)),
        FieldKind::OneOrMore(of) => format!("one or a list of: {}", words(of)),
        FieldKind::AnyOf(kinds) => one_of(kinds.iter().map(words)),
        FieldKind::Type(spec) => link(spec.name),
        FieldKind::Called(word, _) | FieldKind::Written(word, _) => (*word).to_owned(),
        FieldKind::Shape(name) => (*name).to_owned(),
    }
}

fn one_of(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", or ")
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

/// A cell ends at a bar.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
