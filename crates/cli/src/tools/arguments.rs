//! Arguments of a call: `--arg k=v` as the schema has them, and `--json`.

use std::path::PathBuf;

use clap::Args;
use proofhouse_subjects::agent_setup::typed;
use serde_json::{Map, Value};

use crate::input::{FileInput, ShownName};
use crate::output::CommandError;

/// How much JSON is read from a file: as much as a request may carry.
const MAX_JSON: usize = 10 << 20;

/// What an action is called with.
#[derive(Debug, Args)]
pub(crate) struct ArgumentFlags {
    /// An argument of the action; can be repeated. The value is text, or JSON where the schema of the action wants
    /// a number, a boolean, a list or an object
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    args: Vec<(String, String)>,

    /// All arguments as one JSON object, or `@FILE` to read them from a file (`@-` for stdin); --arg adds to them
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
}

/// Arguments that were read, and have no types yet.
pub(crate) struct RawArguments<'a> {
    object: Map<String, Value>,
    args: &'a [(String, String)],
}

impl ArgumentFlags {
    /// Whether they come from stdin.
    pub(crate) fn read_stdin(&self) -> bool {
        self.json.as_deref() == Some("@-")
    }

    /// Reads what was given.
    pub(crate) fn read(&self) -> Result<RawArguments<'_>, CommandError> {
        let object = match &self.json {
            None => Map::new(),
            Some(given) => object(given)?,
        };
        Ok(RawArguments {
            object,
            args: &self.args,
        })
    }
}

impl RawArguments<'_> {
    /// The arguments for an action with these properties.
    pub(crate) fn for_properties(self, properties: &Map<String, Value>) -> Map<String, Value> {
        let mut arguments = self.object;
        for (name, text) in self.args {
            let value = typed(text, properties.get(name));
            arguments.insert(name.clone(), value);
        }
        arguments
    }
}

fn object(given: &str) -> Result<Map<String, Value>, CommandError> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some(path) => {
            let input = match path {
                "-" => FileInput::Stdin,
                path => FileInput::File(PathBuf::from(path)),
            };
            input
                .read(MAX_JSON)
                .map_err(|error| CommandError::usage(format!("{}: {error}", input.shown())))?
        }
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(CommandError::usage(
            "--json: write an object, such as {\"city\": \"Oslo\"}",
        )),
        Err(error) => Err(CommandError::usage(format!("--json: not JSON: {error}"))),
    }
}

/// A text that is no name with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write NAME=VALUE")]
pub(crate) struct NotAPair;

/// `NAME=VALUE`, at the first equals sign.
pub(crate) fn pair(text: &str) -> Result<(String, String), NotAPair> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(NotAPair),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_the_type_of_the_schema() {
        for (text, schema, expected) in [
            ("3", json!({"type": "integer"}), json!(3)),
            ("3", json!({"type": "string"}), json!("3")),
            ("3", json!({}), json!("3")),
            ("true", json!({"type": "boolean"}), json!(true)),
            ("[1]", json!({"type": "array"}), json!([1])),
            ("{\"a\": 1}", json!({"type": "object"}), json!({"a": 1})),
            ("null", json!({"type": ["integer", "null"]}), json!(null)),
            ("3", json!({"type": ["string", "integer"]}), json!("3")),
            ("three", json!({"type": "integer"}), json!("three")),
        ] {
            assert_eq!(typed(text, Some(&schema)), expected, "{text} as {schema}");
        }
        assert_eq!(typed("3", None), json!("3"));
    }

    #[test]
    fn arguments_are_split_at_the_first_equals_sign() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("a").is_err() && pair("=b").is_err());
    }

    #[test]
    fn arguments_add_to_json() {
        let arguments = ArgumentFlags {
            args: vec![("days".to_owned(), "2".to_owned())],
            json: Some(r#"{"city": "Oslo", "days": 1}"#.to_owned()),
        };
        let properties = json!({"days": {"type": "integer"}});
        let given = arguments.read().unwrap();
        let collected = given.for_properties(properties.as_object().unwrap());
        assert_eq!(Value::Object(collected), json!({"city": "Oslo", "days": 2}));
        for wrong in ["[1]", "{", "@no/such/file"] {
            let arguments = ArgumentFlags {
                args: Vec::new(),
                json: Some(wrong.to_owned()),
            };
            assert!(arguments.read().is_err(), "{wrong}");
        }
    }
}
