//! Descriptions in several documents: which others a description refers to, and all of them as one. Fetches nothing: the
//! caller does, under its rules.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use url::Url;

use crate::error::DescriptionError;
use crate::read::{MAX_BYTES, read};
use crate::tree::Tree;

/// How many documents a description may have.
pub const MAX_DOCUMENTS: usize = 200;

/// Where the other documents are put.
const OTHERS: &str = "x-proofhouse-documents";
/// Where it stands what they are called, as seen from the description.
const NAMES: &str = "x-proofhouse-document-names";

/// Keys whose values are data, in which `$ref` means nothing.
const DATA: [&str; 5] = ["example", "examples", "default", "enum", "const"];

/// The documents of a description, as they come.
#[derive(Debug)]
pub struct DocumentBundle {
    /// Each with its place; the description itself is the first.
    documents: Vec<(Url, Value)>,
    wanted: VecDeque<Url>,
    bytes: usize,
}

impl DocumentBundle {
    /// Begins with the description itself. `home` is where it was found, and what it refers to is relative to that.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be read.
    pub fn new(bytes: &[u8], home: &Url) -> Result<Self, DescriptionError> {
        let mut bundle = Self {
            documents: Vec::new(),
            wanted: VecDeque::new(),
            bytes: 0,
        };
        bundle.add(home.clone(), bytes)?;
        Ok(bundle)
    }

    /// A document that is referred to and was not added yet.
    pub fn next_wanted(&mut self) -> Option<Url> {
        self.wanted.pop_front()
    }

    /// Adds a document that was wanted.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be read, or there are too many.
    pub fn add(&mut self, place: Url, bytes: &[u8]) -> Result<(), DescriptionError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_BYTES {
            return Err(DescriptionError::TooLarge);
        }
        let tree = read(bytes)?;
        let mut left = usize::MAX;
        let value = tree.root().and_then(|root| tree.value(root, &mut left));
        let value = value.ok_or(DescriptionError::Empty)?;
        let mut found = Vec::new();
        references(&value, &place, &mut |place| {
            if !found.contains(&place) {
                found.push(place);
            }
        });
        self.documents.push((place, value));
        for place in found {
            let is_known = self.documents.iter().any(|(known, _)| *known == place)
                || self.wanted.contains(&place);
            if is_known {
                continue;
            }
            if self.documents.len() + self.wanted.len() >= MAX_DOCUMENTS {
                return Err(DescriptionError::TooManyDocuments);
            }
            self.wanted.push_back(place);
        }
        Ok(())
    }

    /// All documents as one, whose references stay within it.
    ///
    /// # Errors
    ///
    /// Returns an error when it is nested too deeply, or has too many values.
    pub fn finish(mut self) -> Result<Tree, DescriptionError> {
        let places: Vec<Url> = self
            .documents
            .iter()
            .map(|(place, _)| place.clone())
            .collect();
        for (number, (place, value)) in self.documents.iter_mut().enumerate() {
            rewrite(value, place, number, &places);
        }
        let mut documents = self.documents.into_iter().map(|(_, value)| value);
        let mut root = documents.next().ok_or(DescriptionError::Empty)?;
        let others: Map<String, Value> = (1..)
            .map(|number: usize| number.to_string())
            .zip(documents)
            .collect();
        if let (Value::Object(root), false) = (&mut root, others.is_empty()) {
            let home = places.first();
            let name = |place: &Url| {
                let relative = home.and_then(|home| home.make_relative(place));
                Value::from(relative.unwrap_or_else(|| place.to_string()))
            };
            let names: Map<String, Value> = places
                .iter()
                .enumerate()
                .skip(1)
                .map(|(number, place)| (number.to_string(), name(place)))
                .collect();
            root.insert(OTHERS.to_owned(), others.into());
            root.insert(NAMES.to_owned(), names.into());
        }
        Tree::from_json(root.to_string().as_bytes()).map_err(DescriptionError::NotJson)
    }
}

/// Whether a description refers to other documents at all.
#[must_use]
pub fn refers_out(tree: &Tree) -> bool {
    tree.root()
        .is_some_and(|root| tree.any_text_of("$ref", root, &|text| !text.starts_with('#')))
}

/// A reference as the author of the documents would write it in the description, where it names a place in another document.
pub(crate) fn as_written(tree: &Tree, reference: &str) -> String {
    let written = || {
        let rest = reference.strip_prefix("#/")?.strip_prefix(OTHERS)?;
        let rest = rest.strip_prefix('/')?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (number, pointer) = rest.split_at(end);
        let names = tree.pointer(&format!("/{NAMES}"))?;
        Some(format!("{}#{pointer}", tree.text_at(names, number)?))
    };
    written().unwrap_or_else(|| reference.to_owned())
}

/// Tells which other documents a value refers to.
fn references(value: &Value, place: &Url, tell: &mut impl FnMut(Url)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "$ref" => {
                        let document = target(place, text).map(|(document, _)| document);
                        if let Some(document) = document.filter(|document| document != place) {
                            tell(document);
                        }
                    }
                    value if !DATA.contains(&key.as_str()) => references(value, place, tell),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, place, tell)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The document that a reference names, and the place in it.
fn target(place: &Url, reference: &str) -> Option<(Url, String)> {
    let mut document = place.join(reference).ok()?;
    let fragment = document.fragment().unwrap_or_default().to_owned();
    document.set_fragment(None);
    Some((document, fragment))
}

/// Has the references of a document name places in the whole.
fn rewrite(value: &mut Value, place: &Url, own: usize, places: &[Url]) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "$ref" => {
                        let Some((document, fragment)) = target(place, text) else {
                            continue;
                        };
                        let number = if text.starts_with('#') {
                            Some(own)
                        } else {
                            places.iter().position(|known| *known == document)
                        };
                        match number {
                            Some(0) => *text = format!("#{fragment}"),
                            Some(number) => *text = format!("#/{OTHERS}/{number}{fragment}"),
                            None => {}
                        }
                    }
                    value if !DATA.contains(&key.as_str()) => rewrite(value, place, own, places),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                rewrite(item, place, own, places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::OpenApiDescription;
    use crate::input::OperationInput;
    use proptest::prelude::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// The description that these documents make, by their places below `https://h.test/api/`.
    fn bundled(documents: &[(&str, &str)]) -> Result<OpenApiDescription, String> {
        let home = url("https://h.test/api/openapi.yaml");
        let mut bundle = DocumentBundle::new(documents[0].1.as_bytes(), &home)
            .map_err(|error| error.to_string())?;
        while let Some(place) = bundle.next_wanted() {
            let found = documents
                .iter()
                .find(|(name, _)| home.join(name).unwrap() == place);
            let (_, text) = found.ok_or_else(|| format!("there is no {place}"))?;
            bundle
                .add(place, text.as_bytes())
                .map_err(|error| error.to_string())?;
        }
        let tree = bundle.finish().map_err(|error| error.to_string())?;
        OpenApiDescription::new(tree, Some(home)).map_err(|error| error.to_string())
    }

    #[test]
    fn documents_refer_to_one_another() {
        let description = bundled(&[
            (
                "openapi.yaml",
                "openapi: 3.1.0\npaths:\n  /pets: {$ref: 'paths/pets.yaml'}\n  /own: {get: {operationId: own, \
                 parameters: [{name: a, in: query, schema: {$ref: '#/components/schemas/A'}}]}}\n\
                 components: {schemas: {A: {type: integer}}}\n",
            ),
            (
                "paths/pets.yaml",
                "get:\n  operationId: pets\n  parameters:\n    - $ref: '../common.json#/parameters/limit'\n    \
                 - {name: kind, in: query, schema: {$ref: '#/x-kind'}}\n  \
                 description: 'example: {$ref: nowhere}'\nx-kind: {enum: [cat]}\n",
            ),
            (
                "common.json",
                r##"{"parameters": {"limit": {"name": "limit", "in": "query",
                    "schema": {"$ref": "openapi.yaml#/components/schemas/A"}, "example": {"$ref": "no/such.yaml"}}}}"##,
            ),
        ])
        .unwrap();
        let schema = |name: &str| {
            let operation = description.operation(name).unwrap();
            let input = OperationInput::new(&description, operation).unwrap();
            input.schema(&description, 10_000)
        };
        let pets = schema("pets");
        assert_eq!(pets["properties"]["limit"]["type"], "integer", "{pets}");
        assert_eq!(pets["properties"]["kind"]["enum"][0], "cat", "{pets}");
        assert_eq!(schema("own")["properties"]["a"]["type"], "integer");
    }

    #[test]
    fn a_dead_reference_is_told_as_it_was_written() {
        for (reference, shown) in [
            (
                "common.yaml#/parameters/nope",
                "common.yaml#/parameters/nope",
            ),
            ("other/pets.yaml", "other/pets.yaml#/x-none"),
            ("#/components/nope", "#/components/nope"),
        ] {
            let root = format!(
                "openapi: 3.1.0\npaths: {{/a: {{get: {{operationId: a, parameters: [{{$ref: '{reference}'}}]}}}}}}\n"
            );
            let description = bundled(&[
                ("openapi.yaml", root.as_str()),
                ("common.yaml", "parameters: {}\n"),
                ("other/pets.yaml", "$ref: '#/x-none'\n"),
            ])
            .unwrap();
            let operation = description.operation("a").unwrap();
            let error = OperationInput::new(&description, operation).unwrap_err();
            let error = error.to_string();
            assert!(
                error.contains(&format!("`$ref: {shown}` leads nowhere")),
                "{error}"
            );
            assert!(!error.contains("x-proofhouse"), "{error}");
        }
    }

    #[test]
    fn there_is_an_end_to_documents() {
        let root = "openapi: 3.1.0\npaths: {/a: {$ref: a0.yaml}}\n";
        let texts: Vec<(String, String)> = (0..300)
            .map(|n| {
                (
                    format!("a{n}.yaml"),
                    format!("x: {{$ref: a{}.yaml}}\n", n + 1),
                )
            })
            .collect();
        let mut documents = vec![("openapi.yaml", root)];
        documents.extend(texts.iter().map(|(name, text)| (&**name, &**text)));
        let error = bundled(&documents).unwrap_err();
        assert!(error.contains("200 documents"), "{error}");
        // Those that name one another in a circle are read once.
        let circle = [
            (
                "openapi.yaml",
                "openapi: 3.1.0\npaths: {/a: {$ref: b.yaml}}\n",
            ),
            ("b.yaml", "$ref: openapi.yaml#/paths/~1a\n"),
        ];
        assert_eq!(bundled(&circle).unwrap().operations.len(), 0);
        assert_eq!(
            bundled(&circle[..1]).unwrap_err(),
            "there is no https://h.test/api/b.yaml"
        );
    }

    proptest! {
        #[test]
        fn any_document_is_bundled_or_refused(value in crate::arbitrary::json(), other in crate::arbitrary::json()) {
            let home = url("manifest:///api.json");
            if let Ok(mut bundle) = DocumentBundle::new(value.to_string().as_bytes(), &home) {
                while let Some(place) = bundle.next_wanted() {
                    if bundle.add(place, other.to_string().as_bytes()).is_err() {
                        return Ok(());
                    }
                }
                let _ = bundle.finish();
            }
        }
    }
}
