//! The documents and messages that are measured with.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

/// Reads every threat document below a directory that both sides can load.
pub(crate) fn documents(directory: &Path) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    collect(directory, &mut texts).map_err(|error| format!("{}: {error}", directory.display()))?;
    if texts.is_empty() {
        return Err(format!(
            "{}: no documents; name a directory with --documents",
            directory.display()
        ));
    }
    for (path, text) in &texts {
        if let Err(errors) = proofhouse_oatf::load(text) {
            return Err(format!("{path}: {}", errors[0]));
        }
        if oatf::load(text).is_err() {
            return Err(format!("{path}: the peer cannot load this document"));
        }
    }
    Ok(texts.into_iter().map(|(_, text)| text).collect())
}

fn collect(directory: &Path, texts: &mut Vec<(String, String)>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, texts)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let mut text = String::new();
            #[expect(clippy::disallowed_methods, reason = "capped by take")]
            File::open(&path)?.take(4 << 20).read_to_string(&mut text)?;
            texts.push((path.display().to_string(), text));
        }
    }
    Ok(())
}

/// Messages as agents send and receive them: a tool list, calls with small and larger arguments, a
/// result, and a message between agents.
pub(crate) fn messages() -> Vec<Value> {
    let tools: Vec<Value> = (0..10)
        .map(|n| {
            json!({
                "name": format!("tool_{n}"),
                "description": format!("Tool number {n} reads a record and answers with its fields. It needs an identifier and returns text."),
                "inputSchema": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}, "limit": {"type": "integer"}},
                    "required": ["id"],
                },
            })
        })
        .collect();
    let text =
        "The quarterly report lists revenue by region and names the open questions. ".repeat(12);
    vec![
        json!({"tools": tools}),
        json!({"name": "tool_3", "arguments": {"id": "record-42", "limit": 10}}),
        json!({"name": "send_email", "arguments": {"to": "team@example.com", "body": text}}),
        json!({"content": [{"type": "text", "text": text}], "isError": false}),
        json!({"message": {"role": "user", "parts": [{"kind": "text", "text": "Summarise the report."}]}}),
    ]
}
