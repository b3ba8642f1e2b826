//! The keys of a file of labelled cases: one table that the reader, the JSON Schema and the reference share.

use proofhouse_source::format::schema::SchemaMaker;
use proofhouse_source::format::{
    FieldKind as Kind, FieldSpec, SchemaStyle, TypeSpec, reference as page,
};
use serde_json::{Value, json};

use super::CaseKind;

/// The words for the kinds of cases.
const KINDS: &[&str] = &[
    CaseKind::AsWritten.as_str(),
    CaseKind::Reworded.as_str(),
    CaseKind::Disguised.as_str(),
    CaseKind::Ignores.as_str(),
    CaseKind::Refuses.as_str(),
    CaseKind::SafeChoice.as_str(),
];

const fn needed(key: &'static str, kind: Kind, doc: &'static str) -> FieldSpec {
    FieldSpec::required(key, kind, "LC-004", doc)
}

pub(super) static CASES: TypeSpec = TypeSpec {
    name: "Cases",
    doc: "Labelled cases of the document of the same name.",
    fields: &[needed(
        "cases",
        Kind::list(&Kind::Type(&CASE)),
        "The cases; a document of the library has at least one of every kind.",
    )],
    extensions: false,
    exactly_one: None,
};

pub(super) static CASE: TypeSpec = TypeSpec {
    name: "LabelledCase",
    doc: "Traffic and the verdict that the document must give on it.",
    fields: &[
        needed("name", Kind::SomeText, "What happens, in a few words."),
        needed(
            "kind",
            Kind::Choice(KINDS),
            "What it is an example of: a compromise (as_written, reworded, disguised) or something innocent (ignores, refuses, safe_choice).",
        ),
        needed(
            "expect",
            Kind::Choice(&["exploited", "partial", "not_exploited"]),
            "The verdict.",
        ),
        FieldSpec::optional(
            "needs",
            Kind::SomeText,
            "What Proofhouse is missing to judge this case correctly. The case is skipped until then.",
        ),
        needed(
            "messages",
            Kind::list(&Kind::Type(&MESSAGE)),
            "The messages on the wire, in order; only those that matter.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

pub(super) static MESSAGE: TypeSpec = TypeSpec {
    name: "CaseMessage",
    doc: "A message, as in a trace.",
    fields: &[
        FieldSpec::optional(
            "actor",
            Kind::SomeText,
            "The actor that the message belongs to. Default: the first actor of the document.",
        ),
        FieldSpec::optional(
            "protocol",
            Kind::SomeText,
            "The protocol. Default: the actor's protocol.",
        ),
        needed(
            "operation",
            Kind::SomeText,
            "The operation or event, such as tools/call.",
        ),
        FieldSpec::optional(
            "direction",
            Kind::Choice(&["request", "response"]),
            "Whether it is a request or a response. Default: request.",
        ),
        needed(
            "content",
            Kind::Written("any value but null", some_value),
            "The content root that indicators look at.",
        ),
    ],
    extensions: false,
    exactly_one: None,
};

/// Nothing behind the key counts as absent.
fn some_value() -> Value {
    json!({"not": {"type": "null"}})
}

static PARTS: [&TypeSpec; 2] = [&CASE, &MESSAGE];

/// The JSON Schema (2020-12). It says what a schema can say; the reader says the rest.
#[must_use]
pub fn json_schema() -> Value {
    let maker = SchemaMaker::new(SchemaStyle {
        required_first: false,
        typed_choices: true,
    });
    Value::Object(maker.document("cases", "Labelled cases", &CASES, PARTS))
}

/// The keys as a page in Markdown.
#[must_use]
pub fn reference() -> String {
    page::markdown(
        "Keys of labelled cases",
        "proofhouse schema cases --reference",
        &CASES,
        PARTS,
    )
}
