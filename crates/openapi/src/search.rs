//! Large descriptions: two functions, `search` and `call`, instead of one for each of many operations.

use serde_json::{Map, Value, json};

use crate::description::{OpenApiDescription, Operation};
use crate::input;

/// The function that looks for operations.
pub const SEARCH: &str = "search";
/// The function that calls one.
pub const CALL: &str = "call";

/// How many operations a search tells.
const MAX_FOUND: usize = 8;

/// What each of the two takes, and what it is for. What stands before their names, as in `shop_call`, is up to the agent.
pub fn described(name: &str, count: usize) -> Option<(String, Value)> {
    let (about, properties, required) = match name {
        SEARCH => (
            format!(
                "Finds operations of the API among {count}, with their parameters. Call them with the function beside this \
                 one whose name ends in `{CALL}`."
            ),
            json!({"query": {"type": "string", "description": "Words of what is to be done."}}),
            json!(["query"]),
        ),
        CALL => (
            format!(
                "Calls an operation of the API that the function whose name ends in `{SEARCH}` found."
            ),
            json!({
                "operation": {"type": "string", "description": "The operation, as it was found."},
                "arguments": {"type": "object", "description": "Its parameters.", "default": {}},
            }),
            json!(["operation"]),
        ),
        _ => return None,
    };
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    Some((about, schema))
}

/// The operations that have most of the words, best first: those in the name count more than those in the path, the tags
/// and the description.
pub fn search<'d>(
    description: &'d OpenApiDescription,
    usable: &[String],
    query: &str,
) -> Vec<&'d Operation> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split(|c: char| !c.is_alphanumeric()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| word.len() > 1).collect();
    let operations = usable.iter().filter_map(|name| description.operation(name));
    let mut found: Vec<(usize, &Operation)> = operations
        .map(|operation| (score(description, operation, &words), operation))
        .filter(|(score, _)| *score > 0)
        .collect();
    found.sort_by_key(|(score, operation)| (std::cmp::Reverse(*score), operation.name.len()));
    found.truncate(MAX_FOUND);
    found.into_iter().map(|(_, operation)| operation).collect()
}

fn score(description: &OpenApiDescription, operation: &Operation, words: &[&str]) -> usize {
    let name = operation.name.to_lowercase();
    let method = operation.method.to_lowercase();
    let tags = tags(description, operation).join(" ");
    let place = format!("{} {tags}", operation.path).to_lowercase();
    let about = input::about(description, operation).to_lowercase();
    let of = |word: &&str| {
        // Plurals are found by their singular.
        let word = word
            .strip_suffix('s')
            .filter(|word| word.len() > 2)
            .unwrap_or(word);
        let hits = [(name.contains(word), 4), (place.contains(word), 3)];
        let more = [(about.contains(word), 2), (method == word, 1)];
        let points = hits.iter().chain(&more).filter(|(is_hit, _)| *is_hit);
        points.map(|(_, points)| points).sum::<usize>()
    };
    words.iter().map(of).sum()
}

/// The tags of an operation.
pub fn tags<'d>(description: &'d OpenApiDescription, operation: &Operation) -> Vec<&'d str> {
    let tree = &description.tree;
    let tags = tree.get(operation.node, "tags").into_iter();
    let tags = tags.flat_map(|tags| tree.items(tags));
    tags.filter_map(|tag| tree.text(tag)).collect()
}

/// What is told of an operation that was found.
pub fn told(operation: &Operation, about: &str, parameters: &Value) -> Value {
    let mut told = Map::new();
    told.insert("operation".to_owned(), operation.name.as_str().into());
    told.insert(
        "request".to_owned(),
        format!("{} {}", operation.method, operation.path).into(),
    );
    told.insert("description".to_owned(), about.into());
    told.insert("parameters".to_owned(), parameters.clone());
    Value::Object(told)
}
