//! Headers and bodies: what a value may be in each position.

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::scope::{MAX_BYTES, ResolveError, TemplateScope, as_text};
use super::secret::Sealed;
use super::template::{Template, TemplateReference};

/// Why a template could not be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A reference has no value.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A value may not stand where the reference stands.
    #[error("`{reference}` is refused: {reason}")]
    Refused {
        /// The reference.
        reference: String,
        /// What is wrong with its value, without the value.
        reason: &'static str,
    },
    /// The values of the operator make no URL.
    #[error("the settings make no URL: {0}")]
    NotAUrl(String),
}

impl RenderError {
    pub(super) fn refused(reference: &TemplateReference, reason: &'static str) -> Self {
        Self::Refused {
            reference: reference.to_string(),
            reason,
        }
    }
}

/// Whether a text would break the line it is written to.
pub fn breaks_line(text: &str) -> bool {
    text.contains(['\r', '\n', '\0'])
}

/// A header whose value may hold references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderTemplate {
    /// The name, which holds none.
    pub name: HeaderName,
    /// The value.
    pub value: Template,
}

impl HeaderTemplate {
    /// The header's value, marked so that nothing shows it.
    ///
    /// # Errors
    ///
    /// Returns an error when a reference has no value, or one that no header can hold.
    pub fn render(&self, scope: &TemplateScope) -> Result<Sealed<HeaderValue>, RenderError> {
        let text = scope.text(&self.value)?;
        let reason = if breaks_line(text.expose()) {
            "it holds a line break or NUL"
        } else {
            "it holds a control character"
        };
        match HeaderValue::from_bytes(text.expose().as_bytes()) {
            Ok(mut value) => {
                value.set_sensitive(true);
                Ok(Sealed::new(value))
            }
            Err(_) => Err(RenderError::Refused {
                reference: format!("header {}", self.name),
                reason,
            }),
        }
    }
}

/// A JSON body whose texts may hold references.
#[derive(Debug, Clone, PartialEq)]
pub struct BodyTemplate {
    body: BodyShape,
}

/// The shape of a [`BodyTemplate`].
#[derive(Debug, Clone, PartialEq)]
pub enum BodyShape {
    /// A value without text.
    Literal(Value),
    /// Text, perhaps with references.
    Text(Template),
    /// A list.
    List(Vec<BodyShape>),
    /// An object; its keys hold no references.
    Object(Vec<(String, BodyShape)>),
}

impl BodyTemplate {
    /// Finds the references of a body.
    ///
    /// ```
    /// use proofhouse_manifest::interpolate::{BodyTemplate, Root, TemplateScope};
    /// use serde_json::json;
    ///
    /// let body = BodyTemplate::new(&json!({"limit": "{parameters.limit}", "q": "is {q}"}));
    /// let mut scope = TemplateScope::default();
    /// scope.set(Root::Parameters, json!({"limit": 5, "q": "it"}));
    /// assert_eq!(*body.render(&scope).unwrap().expose(), json!({"limit": 5, "q": "is it"}));
    /// ```
    #[must_use]
    pub fn new(value: &Value) -> Self {
        Self {
            body: BodyShape::of(value),
        }
    }

    /// Its shape.
    #[must_use]
    pub fn body(&self) -> &BodyShape {
        &self.body
    }

    /// Its templates, in order.
    #[must_use]
    pub fn templates(&self) -> Vec<&Template> {
        let mut found = Vec::new();
        self.body.templates(&mut found);
        found
    }

    /// The body with its values in place.
    ///
    /// # Errors
    ///
    /// Returns an error when a reference has no value, or the body becomes too long.
    pub fn render(&self, scope: &TemplateScope) -> Result<Sealed<Value>, RenderError> {
        let mut left = MAX_BYTES;
        Ok(Sealed::new(self.body.render(scope, &mut left)?))
    }
}

impl BodyShape {
    fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(Template::parse(text)),
            Value::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Object(map) => Self::Object(
                map.iter()
                    .map(|(key, item)| (key.clone(), Self::of(item)))
                    .collect(),
            ),
            other => Self::Literal(other.clone()),
        }
    }

    fn templates<'b>(&'b self, found: &mut Vec<&'b Template>) {
        match self {
            Self::Literal(_) => {}
            Self::Text(template) => found.push(template),
            Self::List(items) => items.iter().for_each(|item| item.templates(found)),
            Self::Object(entries) => entries.iter().for_each(|(_, item)| item.templates(found)),
        }
    }

    fn render(&self, scope: &TemplateScope, left: &mut usize) -> Result<Value, ResolveError> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Text(template) => {
                let value = scope.value(template)?.into_exposed();
                let length = as_text(&value).len();
                *left = left.checked_sub(length).ok_or(ResolveError::TooLarge)?;
                value
            }
            Self::List(items) => items
                .iter()
                .map(|item| item.render(scope, left))
                .collect::<Result<_, _>>()?,
            Self::Object(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, item) in entries {
                    map.insert(key.clone(), item.render(scope, left)?);
                }
                Value::Object(map)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpolate::Root;
    use serde_json::json;

    fn header(value: &Value) -> Result<Vec<u8>, String> {
        let mut scope = TemplateScope::default();
        scope.set(Root::Parameters, json!({"x": value}));
        let header = HeaderTemplate {
            name: HeaderName::from_static("x-test"),
            value: Template::parse("a {x}"),
        };
        let rendered = header.render(&scope).map_err(|error| error.to_string())?;
        assert!(rendered.expose().is_sensitive());
        Ok(rendered.expose().as_bytes().to_vec())
    }

    #[test]
    fn headers_hold_one_line() {
        assert_eq!(header(&json!("b")), Ok(b"a b".to_vec()));
        assert_eq!(header(&json!(1)), Ok(b"a 1".to_vec()));
        assert_eq!(header(&json!("ä\t")), Ok("a ä\t".as_bytes().to_vec()));
        for value in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "\0"] {
            let error = header(&json!(value)).unwrap_err();
            assert_eq!(
                error,
                "`header x-test` is refused: it holds a line break or NUL"
            );
        }
        assert!(
            header(&json!("\u{1b}"))
                .unwrap_err()
                .contains("control character")
        );
    }

    #[test]
    fn bodies_keep_types_and_line_breaks() {
        let body = BodyTemplate::new(&json!({
            "{x}": ["{x}", "<{x}>", 1, null, true, {"deep": "{{x}}"}],
            "lines": "{l}\n",
        }));
        let mut scope = TemplateScope::default();
        scope.set(Root::Parameters, json!({"x": [1, "a"], "l": "1\r\n2"}));
        assert_eq!(
            *body.render(&scope).unwrap().expose(),
            json!({
                "{x}": [[1, "a"], "<[1,\"a\"]>", 1, null, true, {"deep": "{x}"}],
                "lines": "1\r\n2\n",
            })
        );
        assert_eq!(body.templates().len(), 4);
    }

    #[test]
    fn bodies_do_not_grow_without_bound() {
        let mut scope = TemplateScope::default();
        scope.set(Root::Parameters, json!({"x": "y".repeat(1 << 20)}));
        let render = |texts: Vec<String>| BodyTemplate::new(&json!(texts)).render(&scope);
        assert!(render(vec!["{x}".to_owned(); 10]).is_ok());
        let error = render(vec!["{x}".to_owned(); 11]).unwrap_err();
        assert_eq!(error, RenderError::Resolve(ResolveError::TooLarge));
        assert!(render(vec!["{x}".repeat(11)]).is_err());
    }
}
