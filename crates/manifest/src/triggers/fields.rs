//! The fields of triggers and schedules, for the reader, the JSON Schema and the reference.

use proofhouse_source::format::{FieldKind as Kind, TypeSpec};

use crate::agent::fields::STEP;
use crate::fields::{BODY, TEMPLATE, field, needed};

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
            Kind::Text,
            "The namespace it belongs to; `default` when absent.",
        ),
        needed("name", Kind::Text, "Its name, unique in the namespace."),
        needed("agent", Kind::Text, "The agent, in the same namespace."),
        needed(
            "owner",
            Kind::Text,
            "Whose identity and tokens the tasks have.",
        ),
        needed("source", Kind::Type(&SOURCE), "What it listens to."),
        field(
            "message",
            TEMPLATE,
            "What the task is told; {event.payload…} is filled in.",
        ),
        field("inputs", BODY, "The rest of the task's input."),
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
            Kind::Text,
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
            Kind::Text,
            "The namespace it belongs to; `default` when absent.",
        ),
        needed("name", Kind::Text, "Its name, unique in the namespace."),
        needed("agent", Kind::Text, "The agent, in the same namespace."),
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
            Kind::Text,
            "Whose identity and tokens the tasks have.",
        ),
        field(
            "inputs",
            BODY,
            "The input of each task; message is what it is told.",
        ),
        needed("enabled", Kind::Flag, "Whether it is active."),
    ],
};

/// The blocks below a trigger, for the schema.
pub(crate) static OF_TRIGGER: [&TypeSpec; 2] = [&SOURCE, &STEP];
