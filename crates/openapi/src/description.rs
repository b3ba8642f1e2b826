//! A description: the operations of an API, found once, and the references within it.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use proofhouse_source::did_you_mean;
use url::Url;

use crate::bundle::as_written;
use crate::error::{DescriptionError, PathError, ReferenceError};
use crate::names::{FunctionNames, name_of};
use crate::tree::{Id, Tree};

/// How many operations a description may have: four times as many as the largest that are known.
pub(crate) const MAX_OPERATIONS: usize = 5000;

/// How many references may lead to one another before something that is none.
pub(crate) const MAX_REF_STEPS: usize = 32;

/// How long a path may be, and what a reference says.
pub(crate) const MAX_PATH: usize = 2000;

/// The methods of a path item, as keys of the description.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

/// The keys of methods that OpenAPI 3.2 adds.
const NEW_METHODS: [&str; 2] = ["query", "additionalOperations"];

/// What an API can do, and how.
#[derive(Debug)]
pub struct OpenApiDescription {
    pub(crate) tree: Tree,
    /// Where it was fetched from; nothing for a file.
    pub url: Option<Url>,
    /// Whether it is written in OpenAPI 3.0, whose schemas are not quite JSON Schema.
    pub(crate) is_3_0: bool,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// Why the first of the paths that cannot be used cannot be.
    left_out: Option<PathError>,
    by_name: HashMap<String, usize>,
}

/// One operation.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its name for models.
    pub name: String,
    /// GET, POST and so on.
    pub method: String,
    /// The path with its `{parameters}`.
    pub path: String,
    /// Where the path item is, with what its operations share.
    pub(crate) item: Id,
    /// Where the operation is.
    pub(crate) node: Id,
}

impl OpenApiDescription {
    /// Finds the operations.
    pub fn new(tree: Tree, url: Option<Url>) -> Result<Self, DescriptionError> {
        let root = tree.root().ok_or(DescriptionError::Empty)?;
        let version = tree.get(root, "openapi");
        let is_3_0 = match version.and_then(|version| tree.text(version)) {
            Some(version) if version == "3.0" || version.starts_with("3.0.") => true,
            Some(version) if version == "3.1" || version.starts_with("3.1.") => false,
            // As 3.1; what is new is left out.
            Some(version) if version == "3.2" || version.starts_with("3.2.") => false,
            Some(version) => {
                let version: String = version.chars().take(20).collect();
                return Err(DescriptionError::UnknownVersion(version));
            }
            None if tree.get(root, "swagger").is_some() => {
                return Err(DescriptionError::Swagger2);
            }
            None => return Err(DescriptionError::NoVersion),
        };
        let mut description = Self {
            tree,
            url,
            is_3_0,
            operations: Vec::new(),
            left_out: None,
            by_name: HashMap::new(),
        };
        description.find_operations(root)?;
        Ok(description)
    }

    fn find_operations(&mut self, root: Id) -> Result<(), DescriptionError> {
        let Some(paths) = self.tree.get(root, "paths") else {
            return Ok(());
        };
        let mut names = FunctionNames::default();
        let mut operations = Vec::new();
        let mut left_out = None;
        let mut ids: HashMap<String, usize> = HashMap::new();
        for (path, item) in self.tree.entries(paths) {
            if !path.starts_with('/') {
                continue;
            }
            if path.len() > MAX_PATH {
                left_out.get_or_insert(PathError::TooLong);
                continue;
            }
            let item = match self.resolve(item) {
                Ok(item) => item,
                Err(reason) => {
                    left_out.get_or_insert(reason.into());
                    continue;
                }
            };
            if NEW_METHODS
                .iter()
                .any(|key| self.tree.get(item, key).is_some())
            {
                left_out.get_or_insert(PathError::New);
            }
            for method in METHODS {
                let Some(node) = self.tree.get(item, method) else {
                    continue;
                };
                if !self.tree.is_map(node) {
                    continue;
                }
                if self.takes_query_string(item) || self.takes_query_string(node) {
                    left_out.get_or_insert(PathError::New);
                    continue;
                }
                if operations.len() >= MAX_OPERATIONS {
                    return Err(DescriptionError::TooManyOperations);
                }
                let id = self.tree.text_at(node, "operationId").unwrap_or_default();
                let mut wanted = name_of(id);
                if wanted.is_empty() {
                    wanted = name_of(&format!("{method}{path}"));
                }
                if !id.is_empty() {
                    ids.entry(id.to_owned()).or_insert(operations.len());
                }
                operations.push(Operation {
                    name: names.unique(&wanted),
                    method: method.to_uppercase(),
                    path: path.to_owned(),
                    item,
                    node,
                });
            }
        }
        // A made name wins over the id of another operation: it is what models were told.
        let made = operations.iter().enumerate();
        ids.extend(made.map(|(number, operation)| (operation.name.clone(), number)));
        self.by_name = ids;
        self.operations = operations;
        self.left_out = left_out;
        Ok(())
    }

    /// Whether a parameter is the whole query string.
    fn takes_query_string(&self, node: Id) -> bool {
        let list = self.tree.get(node, "parameters");
        let mut list = list.into_iter().flat_map(|list| self.tree.items(list));
        list.any(|parameter| {
            let parameter = self.resolve(parameter);
            parameter
                .is_ok_and(|parameter| self.tree.text_at(parameter, "in") == Some("querystring"))
        })
    }

    /// The operation of a name: the one models are told, or its `operationId`.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.get(*self.by_name.get(name)?)
    }

    /// What to say when there is no operation of a name.
    pub fn unknown(&self, name: &str) -> String {
        let mut message = format!("the description has no operation `{name}`");
        let known = self.operations.iter();
        match did_you_mean(name, known.map(|operation| operation.name.as_str())) {
            Some(near) => message.push_str(&format!("; did you mean `{near}`?")),
            None if self.operations.is_empty() => message.push_str("; it has none at all"),
            None => {}
        }
        if let Some(reason) = &self.left_out {
            message.push_str(&format!("; some of its paths cannot be used: {reason}"));
        }
        message
    }

    /// Why some of its paths cannot be used, if so.
    #[must_use]
    pub fn left_out(&self) -> Option<&PathError> {
        self.left_out.as_ref()
    }

    /// The value itself, or the one that it refers to.
    pub(crate) fn resolve(&self, id: Id) -> Result<Id, ReferenceError> {
        let mut at = id;
        for _ in 0..MAX_REF_STEPS {
            match self.tree.text_at(at, "$ref") {
                None => return Ok(at),
                Some(reference) => at = self.target(reference)?,
            }
        }
        Err(ReferenceError::TooManySteps)
    }

    /// What a reference names.
    pub(crate) fn target(&self, reference: &str) -> Result<Id, ReferenceError> {
        if reference.len() > MAX_PATH {
            return Err(ReferenceError::TooLong);
        }
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(ReferenceError::LeadsOut(reference.to_owned()));
        };
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        let found = self.tree.pointer(&pointer);
        found.ok_or_else(|| ReferenceError::LeadsNowhere(as_written(&self.tree, reference)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn describe(value: &Value) -> Result<OpenApiDescription, DescriptionError> {
        OpenApiDescription::new(Tree::from_value(value), None)
    }

    fn names(value: &Value) -> Vec<String> {
        let description = describe(value).unwrap();
        let operations = description.operations.iter();
        operations.map(|operation| operation.name.clone()).collect()
    }

    #[test]
    fn operations_get_names() {
        let description = json!({"openapi": "3.1.0", "paths": {
            "/a/{b}": {"get": {"operationId": "a.get"}, "post": {}, "parameters": [], "summary": "x"},
            "/c": {"get": {"operationId": "a.get"}, "delete": {"operationId": 7}, "patch": "no"},
            "x-other": {"get": {}},
        }});
        assert_eq!(
            names(&description),
            ["a_get", "post_a_b", "a_get_2", "delete_c"]
        );
        let description = describe(&description).unwrap();
        assert_eq!(description.operation("a.get").unwrap().path, "/a/{b}");
        assert_eq!(description.operation("a_get_2").unwrap().path, "/c");
        assert!(description.operation("nothing").is_none());
        assert!(
            description
                .unknown("post_ab")
                .ends_with("did you mean `post_a_b`?")
        );
    }

    #[test]
    fn path_items_may_be_references() {
        let description = json!({"openapi": "3.0.3",
            "paths": {"/a": {"$ref": "#/components/pathItems/shared"}},
            "components": {"pathItems": {"shared": {"get": {}}}},
        });
        assert_eq!(names(&description), ["get_a"]);
    }

    #[test]
    fn what_is_new_in_3_2_is_left_out() {
        let description = json!({"openapi": "3.2.0", "$self": "https://a.test/api.json", "paths": {
            "/a": {"get": {}, "query": {}, "additionalOperations": {"COPY": {}}},
            "/b": {"get": {"parameters": [{"name": "q", "in": "querystring", "content": {}}]}, "put": {}},
        }});
        assert_eq!(names(&description), ["get_a", "put_b"]);
        let left_out = describe(&description).unwrap().left_out().cloned();
        assert_eq!(left_out, Some(PathError::New));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        for (value, message) in [
            (json!(null), "it has no `openapi:"),
            (json!([]), "it has no `openapi:"),
            (json!({"openapi": 3.1}), "it has no `openapi:"),
            (json!({"openapi": "4.0.0"}), "it says `openapi: 4.0.0`"),
            (json!({"swagger": "2.0"}), "it is written in Swagger 2.0"),
        ] {
            let error = describe(&value).unwrap_err().to_string();
            assert!(error.starts_with(message), "{value}: {error}");
        }
        let paths = (0..=MAX_OPERATIONS).map(|number| (format!("/{number}"), json!({"get": {}})));
        let paths: serde_json::Map<String, Value> = paths.collect();
        let error = describe(&json!({"openapi": "3.0.0", "paths": paths})).unwrap_err();
        let error = error.to_string();
        assert_eq!(error, "it has more than 5000 operations");
    }

    #[test]
    fn paths_that_lead_nowhere_are_left_out() {
        for (item, message) in [
            (
                "other.yaml#/a",
                "`$ref: other.yaml#/a` leads out of the description",
            ),
            ("#/nowhere", "`$ref: #/nowhere` leads nowhere"),
            ("#/paths/~1a", "more than 32 references"),
        ] {
            let description = json!({"openapi": "3.0.0", "paths": {
                "/a": {"$ref": item}, "/b": {"get": {}},
            }});
            let description = describe(&description).unwrap();
            assert_eq!(description.operations.len(), 1);
            let unknown = description.unknown("get_a");
            assert!(unknown.contains(message), "{unknown}");
        }
    }

    #[test]
    fn paths_that_share_a_huge_item_stay_cheap() {
        let many: Vec<Value> = (0..50_000)
            .map(|_| json!({"name": "a", "in": "query"}))
            .collect();
        let paths = (0..2000).map(|number| {
            (
                format!("/{number}"),
                json!({"$ref": "#/components/pathItems/a"}),
            )
        });
        let paths: serde_json::Map<String, Value> = paths.collect();
        let value = json!({"openapi": "3.1.0", "paths": paths, "components": {"pathItems": {"a": {
            "get": {"parameters": many},
        }}}});
        let description = describe(&value).unwrap();
        for operation in &description.operations {
            let input = crate::input::OperationInput::new(&description, operation);
            let error = input.unwrap_err().to_string();
            assert!(error.ends_with("has more than 300 parameters"));
        }
    }

    #[test]
    fn a_description_without_paths_has_no_operations() {
        for value in [
            json!({"openapi": "3.1.0"}),
            json!({"openapi": "3.0", "paths": []}),
        ] {
            assert!(describe(&value).unwrap().operations.is_empty());
        }
    }
}
