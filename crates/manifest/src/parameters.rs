//! Parameter schemas: which values an action takes, and how they are completed and checked.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::json_schema;

/// Why properties do not make a schema.
#[derive(Debug, thiserror::Error)]
pub enum InvalidParameters {
    /// The schema leads out of itself, or is too much with all references followed.
    #[error("its references lead out of it, or are too many when they are all followed")]
    References,
    /// It breaks the rules of JSON Schema.
    #[error(transparent)]
    Schema(Box<jsonschema::ValidationError<'static>>),
}

/// The parameters of a tool, an action or an event, or the settings of a tool.
///
/// A property without a `default` is required.
#[derive(Debug, Clone, Default)]
pub struct ParameterSchema {
    properties: Map<String, Value>,
    /// The whole schema, where a server gave one and the properties are only a part of it.
    given: Option<Arc<Value>>,
    validator: Arc<OnceLock<Option<Validator>>>,
}

impl ParameterSchema {
    /// Compiles a schema from its properties.
    ///
    /// ```
    /// use proofhouse_manifest::ParameterSchema;
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
    pub fn new(properties: Map<String, Value>) -> Result<Self, InvalidParameters> {
        let schema = object_schema(&properties);
        if !json_schema::is_bearable(&schema) {
            return Err(InvalidParameters::References);
        }
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| InvalidParameters::Schema(Box::new(error)))?;
        Ok(Self {
            properties,
            given: None,
            validator: Arc::new(OnceLock::from(Some(validator))),
        })
    }

    /// A JSON Schema that a server or a description gave, kept as it is. It is compiled at the first
    /// call; one that cannot be compiled, or that is made to be costly, is not checked, since it is not
    /// the manifest that is wrong.
    ///
    /// ```
    /// use proofhouse_manifest::ParameterSchema;
    /// use serde_json::json;
    ///
    /// let schema = ParameterSchema::given(json!({
    ///     "type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"],
    /// }));
    /// assert!(schema.complete(Default::default()).is_err());
    /// ```
    #[must_use]
    pub fn given(schema: Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        Self {
            properties: properties.cloned().unwrap_or_default(),
            given: Some(Arc::new(schema)),
            validator: Arc::default(),
        }
    }

    /// Whether values are checked at all; schemas of servers may not allow it.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.validator().is_some()
    }

    fn validator(&self) -> Option<&Validator> {
        let compiled = || json_schema::validator(&self.json_schema());
        self.validator.get_or_init(compiled).as_ref()
    }

    /// The properties, as written.
    #[must_use]
    pub fn properties(&self) -> &Map<String, Value> {
        &self.properties
    }

    /// The JSON Schema of the whole, as a model is told it.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        match &self.given {
            Some(given) => Value::clone(given),
            None => object_schema(&self.properties),
        }
    }

    /// These parameters and others; a name in both is the other's.
    pub(super) fn and(&self, other: &Self) -> Result<Self, InvalidParameters> {
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
        // Whoever gave a schema fills in its defaults itself.
        let own = self.properties.iter().filter(|_| self.given.is_none());
        for (name, property) in own {
            if let (false, Some(default)) = (given.contains_key(name), property.get("default")) {
                given.insert(name.clone(), default.clone());
            }
        }
        let validator = self.validator();
        let whole = Value::Object(given);
        // Most calls are right, and that is cheaper to find out than what is wrong.
        let wrong = validator.filter(|validator| !validator.is_valid(&whole));
        let errors: Vec<String> = wrong
            .into_iter()
            .flat_map(|validator| validator.iter_errors(&whole))
            .take(20)
            .map(|error| {
                let path = error.instance_path().to_string();
                // The masked form names the rule, not the value.
                if path.is_empty() {
                    error.to_string()
                } else {
                    format!("{}: {}", path.trim_start_matches('/'), error.masked())
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
