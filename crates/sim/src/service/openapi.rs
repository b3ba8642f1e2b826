//! The service's description of itself.

use serde_json::{Value, json};

/// An OpenAPI 3.1 description of the weather and the notes.
pub(super) fn description(origin: &str) -> Value {
    let note = json!({"$ref": "#/components/schemas/Note"});
    let answer = |description: &str, schema: &Value| json!({"description": description, "content": {"application/json": {"schema": schema}}});
    let id = json!({
        "name": "id", "in": "path", "required": true, "description": "The number of the note.",
        "schema": {"type": "integer"},
    });
    json!({
        "openapi": "3.1.0",
        "info": {"title": "proofhouse demo-service", "version": env!("CARGO_PKG_VERSION")},
        "servers": [{"url": origin}],
        "paths": {
            "/notes": {
                "get": {
                    "operationId": "listNotes",
                    "summary": "Lists notes.",
                    "parameters": [{
                        "name": "word", "in": "query", "description": "Only notes that hold this word.",
                        "schema": {"type": "string"},
                    }],
                    "responses": {"200": answer("The notes.", &json!({
                        "type": "object",
                        "properties": {"notes": {"type": "array", "items": note}},
                    }))},
                },
                "post": {
                    "operationId": "addNote",
                    "summary": "Adds a note.",
                    "requestBody": {"required": true, "content": {"application/json": {"schema": {
                        "type": "object",
                        "properties": {"text": {"type": "string", "description": "What it says."}},
                        "required": ["text"],
                    }}}},
                    "responses": {"201": answer("The note.", &note)},
                },
            },
            "/notes/{id}": {
                "parameters": [id],
                "get": {
                    "operationId": "getNote",
                    "summary": "Gives one note.",
                    "responses": {"200": answer("The note.", &note), "404": {"description": "None."}},
                },
                "delete": {
                    "operationId": "deleteNote",
                    "summary": "Deletes a note.",
                    "responses": {"204": {"description": "It is gone."}},
                },
            },
        },
        "components": {"schemas": {"Note": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "text": {"type": "string"}},
            "required": ["id", "text"],
        }}},
    })
}
