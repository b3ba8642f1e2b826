//! The fields of triggers and schedules, for the reader, the JSON Schema and the reference.

use proofhouse_source::format::{FieldKind as Kind, TypeSpec};

use crate::agent::fields::STEP;
use crate::fields::{NAME, TEMPLATE, field, needed};
use crate::schema::inputs;

/// A text that is not blank.
const SHORT_TEXT: Kind = Kind::Matching(r"\S");
/// What a task is given.
const INPUTS: Kind = Kind::Written("mapping", inputs);

pub(crate) static TRIGGER: TypeSpec = TypeSpec {
    name: "Trigger",
    doc: "Starts a task of an agent for each event of a source that passes its assertions.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed(
            "kind",
            Kind::Text,
            "What the document is: commonagents.info/v1beta2/trigger.",
        ),
        field(
            "namespace",
            NAME,
            "The namespace it belongs to; `default` when absent.",
        ),
        needed("name", NAME, "Its name, unique in the namespace."),
        needed("agent", NAME, "The agent, in the same namespace."),
        needed(
            "owner",
            SHORT_TEXT,
            "Whose identity and tokens the tasks have.",
        ),
        needed("source", Kind::Type(&SOURCE), "What it listens to."),
        field(
            "message",
            TEMPLATE,
            "What the task is told; {event.payload…} is filled in.",
        ),
        field("inputs", INPUTS, "The rest of the task's input."),
        needed("enabled", Kind::Flag, "Whether it is active."),
    ],
};

pub(super) static SOURCE: TypeSpec = TypeSpec {
    name: "Source",
    doc: "What a trigger listens to.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed(
            "type",
            SHORT_TEXT,
            "The name in the address that events are posted to.",
        ),
        field(
            "before",
            Kind::list(&Kind::Type(&STEP)),
            "Assertions over event; all must hold for a task to start.",
        ),
    ],
};

pub(crate) static SCHEDULE: TypeSpec = TypeSpec {
    name: "Schedule",
    doc: "Starts tasks of an agent by the clock.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed(
            "kind",
            Kind::Text,
            "What the document is: commonagents.info/v1/schedule.",
        ),
        field(
            "namespace",
            NAME,
            "The namespace it belongs to; `default` when absent.",
        ),
        needed("name", NAME, "Its name, unique in the namespace."),
        needed("agent", NAME, "The agent, in the same namespace."),
        needed(
            "cron",
            Kind::Text,
            "Five fields: minute, hour, day of month, month, day of week.",
        ),
        field(
            "timezone",
            Kind::Text,
            "The IANA name of a time zone; UTC when absent.",
        ),
        needed(
            "owner",
            SHORT_TEXT,
            "Whose identity and tokens the tasks have.",
        ),
        field(
            "inputs",
            INPUTS,
            "The input of each task; message is what it is told.",
        ),
        needed("enabled", Kind::Flag, "Whether it is active."),
    ],
};

/// The blocks below a trigger, for the schema.
pub(crate) static OF_TRIGGER: [&TypeSpec; 2] = [&SOURCE, &STEP];
