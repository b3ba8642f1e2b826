//! A large OpenAPI description: how long it takes until its operations can be called, and in how much memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_manifest::Bundle;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{ActionFailure, Environment, Runtimes, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

use crate::{Options, figure, memory};

/// What the description of a very large service has.
const OPERATIONS: usize = 2_000;
const SCHEMAS: usize = 1_000;
const BYTES: usize = 10_000_000;

/// What loading it may take.
const MAX_SECONDS: f64 = 1.0;
const MAX_MEGABYTES: f64 = 200.0;

pub(crate) async fn run(options: &Options) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let size = write(&directory.path().join("api.json")).map_err(|error| error.to_string())?;
    figure::say(&format!(
        "a description of {OPERATIONS} operations in {size} bytes"
    ));
    let rounds = if options.quick { 1 } else { 5 };
    let mut times = Vec::new();
    let mut grown: f64 = 0.0;
    let mut derived = Duration::ZERO;
    for _ in 0..rounds {
        let task = task(directory.path())?;
        memory::forget_peak();
        let before = memory::resident().unwrap_or(0);
        let started = Instant::now();
        // An operation that is not there is looked for among all that are, which loads the description.
        let missing = task
            .invoke("missing", Map::new(), json!({}), CancellationToken::new())
            .await;
        times.push(started.elapsed());
        let peak = memory::peak().unwrap_or(0).saturating_sub(before);
        grown = grown.max(peak as f64 / 1e6);
        match missing {
            Err(error) if error.failure == ActionFailure::Arguments => {}
            other => return Err(format!("loading ended with {other:?}")),
        }
        let started = Instant::now();
        let actions = task.actions(CancellationToken::new()).await;
        derived = started.elapsed();
        let actions = actions.map_err(|error| error.to_string())?;
        if actions.len() != OPERATIONS {
            return Err(format!("{} operations were found", actions.len()));
        }
        task.teardown().await;
    }
    figure::say(&format!(
        "the schemas of all operations take {derived:.2?} more"
    ));
    times.sort_unstable();
    let seconds = times[times.len() / 2].as_secs_f64();
    figure::print(
        "tools-openapi-load",
        seconds,
        MAX_SECONDS,
        seconds / MAX_SECONDS,
        "s, the limit beside it",
    );
    figure::print(
        "tools-openapi-memory",
        grown,
        MAX_MEGABYTES,
        grown / MAX_MEGABYTES,
        "MB, the limit beside it",
    );
    Ok(())
}

fn task(directory: &Path) -> Result<ToolTask, String> {
    let text = "kind: commonagents.info/v1beta2/tool\nnamespace: bench\nname: api\ndescription: d\n\
        openapi: {url: api.json}\n";
    let (bundle, findings) = Bundle::read(text);
    if let Some(finding) = findings.first() {
        return Err(finding.message.clone());
    }
    let tool = bundle.tools().next().ok_or("there is no tool")?.clone();
    // Every operation is a function, so that deriving all of them is measured.
    let limits = ToolLimits {
        max_functions: OPERATIONS,
        ..ToolLimits::default()
    };
    let runtimes =
        Runtimes::new(&limits, EgressPolicy::default()).map_err(|error| error.to_string())?;
    let environment = Environment::new(json!({}), || "2026-01-02T03:04:05.000Z".to_owned());
    let environment = environment.with_base(directory);
    Ok(ToolTask::new(Arc::new(tool), environment, runtimes, limits))
}

/// Writes the description piece by piece, so that making it leaves no memory behind that loading it could use.
fn write(path: &Path) -> std::io::Result<usize> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut size = 0;
    let mut put = |text: &str| {
        size += text.len();
        file.write_all(text.as_bytes()).map(|()| size)
    };
    put("{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Everything\",\"version\":\"1\"},")?;
    put("\"servers\":[{\"url\":\"https://api.example.com/v1\"}],\"paths\":{")?;
    for number in 0..OPERATIONS / 2 {
        let comma = if number == 0 { "" } else { "," };
        put(&format!(
            "{comma}\"/things{number}/{{id}}\":{}",
            path_item(number)
        ))?;
    }
    let filter = json!({
        "type": "object",
        "properties": {
            "field": {"type": "string"}, "is": {"type": "string"},
            "all": {"type": "array", "items": {"$ref": "#/components/schemas/Filter"}},
            "not": {"$ref": "#/components/schemas/Filter"},
        },
    });
    put(&format!(
        "}},\"components\":{{\"schemas\":{{\"Filter\":{filter}"
    ))?;
    let mut number = 0;
    loop {
        let written = put(&format!(",\"Thing{number}\":{}", schema(number)))?;
        number += 1;
        // Schemas that nothing refers to are in real descriptions, too.
        if number >= SCHEMAS && written >= BYTES {
            break;
        }
    }
    let written = put("}}}")?;
    file.flush()?;
    Ok(written)
}

fn to(number: usize) -> Value {
    json!({"$ref": format!("#/components/schemas/Thing{}", number % SCHEMAS)})
}

/// A path with two operations.
fn path_item(number: usize) -> Value {
    let answers = json!({
        "200": {"description": "The thing.", "content": {"application/json": {"schema": to(number)}}},
        "404": {"description": "There is none.", "content": {"application/json": {"schema": to(1)}}},
        "422": {"description": "It is wrong.", "content": {"application/json": {"schema": to(2)}}},
    });
    let parameter = |name: &str, schema: Value| {
        json!({
            "name": name, "in": "query", "schema": schema,
            "description": format!("Only things whose {name} is this one; several are separated by commas."),
        })
    };
    json!({
        "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "format": "uuid"}},
        ],
        "get": {
            "operationId": format!("things{number}/read"),
            "summary": format!("Read thing {number}"),
            "description": "Reads one thing. Whoever may not see it is told that there is none.",
            "parameters": [
                parameter("state", json!({"type": "string", "enum": ["open", "closed", "all"]})),
                parameter("page", json!({"type": "integer", "minimum": 1, "default": 1})),
                parameter("labels", json!({"type": "array", "items": {"type": "string"}})),
            ],
            "responses": answers,
        },
        "put": {
            "operationId": format!("things{number}/write"),
            "summary": format!("Write thing {number}"),
            "description": "Writes one thing, or makes it where there is none.",
            "requestBody": {"required": true, "content": {"application/json": {"schema": body(number)}}},
            "responses": answers,
        },
    })
}

/// What is sent: mostly some fields of its own and one shared part, which leads back to itself. Every twentieth
/// is a whole thing with all its family, as large as schemas for models may be.
fn body(number: usize) -> Value {
    if number.is_multiple_of(20) {
        return to(number);
    }
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What the thing is called.", "maxLength": 200},
            "text": {"type": ["string", "null"], "description": "What there is to say of it, in Markdown."},
            "state": {"type": "string", "enum": ["open", "closed"], "description": "Whether it is done."},
            "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
            "visible_if": {"$ref": "#/components/schemas/Filter"},
        },
        "required": ["title"],
    })
}

/// An object with texts, numbers, a nested object, and other things: of them, some lead back to it.
fn schema(number: usize) -> Value {
    let mut properties = serde_json::Map::new();
    for field in 0..12 {
        let description = format!(
            "The field {field} of thing {number}, as it was when the thing was last changed."
        );
        let mut value = match field % 4 {
            0 => {
                json!({"type": "string", "maxLength": 200, "examples": ["an example of some words"]})
            }
            1 => json!({"type": ["integer", "null"], "minimum": 0}),
            2 => json!({"type": "string", "enum": ["first", "second", "third", "fourth"]}),
            _ => {
                json!({"type": "array", "maxItems": 100, "items": {"type": "string", "format": "date-time"}})
            }
        };
        value["description"] = description.into();
        properties.insert(format!("field_{field}"), value);
    }
    let nested = json!({
        "type": "object",
        "properties": {"by": {"type": "string"}, "at": {"type": "string", "format": "date-time"}},
        "required": ["by"],
    });
    properties.insert("changed".to_owned(), nested);
    // Families of ten things each: a parent, a neighbour, and the first of the family, which is a cycle.
    let family = number / 10 * 10;
    properties.insert("parent".to_owned(), to(family));
    properties.insert("next".to_owned(), to(family + (number + 1) % 10));
    let others = json!({"type": "array", "items": {"anyOf": [to(family + 3), to(family + 7)]}});
    properties.insert("others".to_owned(), others);
    json!({
        "type": "object",
        "description": format!("Thing {number}."),
        "properties": properties,
        "required": ["field_0", "field_2"],
        "additionalProperties": false,
    })
}
