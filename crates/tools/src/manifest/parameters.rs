//! Parameter schemas: which values an action takes, and how they are completed and checked.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The parameters of a tool, an action or an event, or the settings of a tool.
///
/// A property without a `default` is required.
#[derive(Debug, Clone)]
pub struct ParameterSchema {
    properties: Map<String, Value>,
    validator: Arc<Validator>,
}

impl ParameterSchema {
    /// Compiles a schema from its properties.
    ///
    /// ```
    /// use proofhouse_tools::manifest::ParameterSchema;
    /// use serde_json::json;
    ///
    /// let properties = json!({"city": {"type": "string"}, "days": {"type": "integer", "default": 3}});
    /// let schema = ParameterSchema::new(properties.as_object().unwrap().clone()).unwrap();
    /// let given = json!({"city": "Oslo"}).as_object().unwrap().clone();
    /// assert_eq!(schema.complete(given).unwrap()["days"], 3);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the schema.
    pub fn new(properties: Map<String, Value>) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&object_schema(&properties))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            properties,
            validator: Arc::new(validator),
        })
    }

    /// The properties, as written.
    #[must_use]
    pub fn properties(&self) -> &Map<String, Value> {
        &self.properties
    }

    /// The JSON Schema of the whole, as a model is told it.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        object_schema(&self.properties)
    }

    /// These parameters and others; a name in both is the other's.
    pub(super) fn and(&self, other: &Self) -> Result<Self, String> {
        let mut properties = self.properties.clone();
        properties.extend(other.properties.clone());
        Self::new(properties)
    }

    /// Adds the defaults and checks the whole.
    ///
    /// # Errors
    ///
    /// Returns one sentence for each value that is missing, unknown or wrong.
    pub fn complete(
        &self,
        mut given: Map<String, Value>,
    ) -> Result<Map<String, Value>, Vec<String>> {
        for (name, property) in &self.properties {
            if let (false, Some(default)) = (given.contains_key(name), property.get("default")) {
                given.insert(name.clone(), default.clone());
            }
        }
        let whole = Value::Object(given);
        let errors: Vec<String> = self
            .validator
            .iter_errors(&whole)
            .take(20)
            .map(|error| {
                let path = error.instance_path().to_string();
                // The masked form names the rule, not the value.
                match path.is_empty() {
                    true => error.to_string(),
                    false => format!("{}: {}", path.trim_start_matches('/'), error.masked()),
                }
            })
            .collect();
        match whole {
            Value::Object(complete) if errors.is_empty() => Ok(complete),
            _ => Err(errors),
        }
    }

    /// What is wrong with the default of a property, if there is one and it does not fit.
    pub(super) fn default_error(property: &Value) -> Option<String> {
        let default = property.get("default")?;
        let validator = jsonschema::validator_for(&plain(property)).ok()?;
        let error = validator.iter_errors(default).next()?;
        Some(error.to_string())
    }

    /// What is wrong with one property, if anything.
    pub(super) fn property_error(property: &Value) -> Option<String> {
        jsonschema::validator_for(&plain(property))
            .err()
            .map(|error| error.to_string())
    }
}

fn object_schema(properties: &Map<String, Value>) -> Value {
    let required: Vec<&str> = properties
        .iter()
        .filter(|(_, property)| property.get("default").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let plain: Map<String, Value> = properties
        .iter()
        .map(|(name, property)| (name.clone(), plain(property)))
        .collect();
    json!({
        "type": "object",
        "properties": plain,
        "required": required,
        "additionalProperties": false,
    })
}

/// A property without what JSON Schema does not know.
fn plain(property: &Value) -> Value {
    let mut property = property.clone();
    if let Some(map) = property.as_object_mut() {
        map.shift_remove("require_binding");
    }
    property
}

impl Default for ParameterSchema {
    fn default() -> Self {
        Self {
            properties: Map::new(),
            validator: Arc::new(
                jsonschema::validator_for(&object_schema(&Map::new()))
                    .expect("an object without properties is a schema"),
            ),
        }
    }
}
