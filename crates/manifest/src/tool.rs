//! Reads a tool: its parameters first, so that every reference can be checked where it stands.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};
use serde_json::{Map, Value};

use super::decode::ManifestDecoder;
use super::execute::{Execute, SharedBlocks};
use super::fields;
use super::model::{Tool, ToolAction};
use super::parameters::ParameterSchema;

impl<'s> ManifestDecoder<'s> {
    pub(super) fn tool(&mut self, node: NodeRef<'s>) -> Option<Tool> {
        let mut fields = self.fields(node, &fields::TOOL)?;
        fields.text("kind");
        let namespace = fields.read("namespace", Self::name);
        let name = fields.read("name", Self::name);
        let description = fields.text("description");
        let synchronous = fields.flag("synchronous").unwrap_or(false);
        let is_never_evicted = fields.word("idle_eviction").map(|word| word == "never");
        let settings = fields.read("settings", Self::parameters);
        let parameters = fields
            .read("parameters", Self::parameters)
            .unwrap_or_default();
        fields.reader.names.settings = settings
            .as_ref()
            .map(|schema| schema.properties().keys().cloned().collect());

        // A shared block may name the parameters of any action; each action checks what it inherits.
        let shared = Self::shared_blocks(&mut fields);

        fields.reader.names.parameters = Some(parameters.properties().keys().cloned().collect());
        let actions = fields
            .read("actions", |decoder, node| {
                decoder.unique_names(node);
                let mut first_blocks: Vec<Execute> = Vec::new();
                decoder.list(node, |decoder, node| {
                    let action = decoder.action(node, &parameters, &shared)?;
                    let execute = &action.execute;
                    let mut earlier = first_blocks.iter();
                    match earlier.find(|first| first.kind() == execute.kind()) {
                        Some(first) => decoder.agree(first, execute),
                        None => first_blocks.push(execute.clone()),
                    }
                    Some(Arc::new(action))
                })
            })
            .unwrap_or_default();
        // What a description or a server derives has parameters that only they know.
        let derived = |action: &Arc<ToolAction>| action.execute.kind().is_described_by_backend();
        let derives = (shared.blocks()).any(|block| block.kind().is_described_by_backend());
        let all_known = !derives && !actions.iter().any(derived);
        fields.reader.names.called = all_known.then(|| {
            let of_actions = actions.iter().map(|action| &action.parameters);
            let schemas = of_actions.chain([&parameters]);
            let names = schemas.flat_map(|schema| schema.properties().keys().cloned());
            names.collect()
        });
        let events = fields
            .read("events", |decoder, node| {
                decoder.unique_names(node);
                decoder.list(node, Self::event)
            })
            .unwrap_or_default();

        if node.get("actions").is_none() && node.get("events").is_none() && !derives {
            fields
                .reader
                .say_too_little("the tool has neither actions nor events", "actions");
        }
        Some(Tool {
            namespace: namespace.unwrap_or_else(|| fields::DEFAULT_NAMESPACE.to_owned()),
            name: name?,
            description: description?,
            synchronous,
            is_never_evicted: is_never_evicted.unwrap_or(false),
            settings,
            parameters,
            actions,
            events,
            shared,
        })
    }

    fn action(
        &mut self,
        node: NodeRef<'s>,
        tool: &ParameterSchema,
        shared: &SharedBlocks,
    ) -> Option<ToolAction> {
        let mut fields = self.fields(node, &fields::ACTION)?;
        let name = fields.read("name", Self::name);
        let description = fields.text("description");
        let own = fields
            .read("parameters", Self::parameters)
            .unwrap_or_default();
        let parameters = match tool.and(&own) {
            Ok(parameters) => parameters,
            Err(error) => {
                fields.reader.error("TM-011", error.to_string(), None);
                return None;
            }
        };
        let names: BTreeSet<String> = parameters.properties().keys().cloned().collect();
        let outer = fields.reader.names.parameters.replace(names);
        let execute = fields.read("execute", |decoder, node| decoder.execute(node, shared));
        fields.reader.names.parameters = outer;
        Some(ToolAction {
            name: name?,
            description: description?,
            parameters,
            execute: execute?,
        })
    }

    /// Reports an action that cannot be in one tool with an earlier one.
    fn agree(&mut self, first: &Execute, own: &Execute) {
        if let Some(conflict) = own.conflict_with(first) {
            self.within(PathSegment::Key("execute"), |decoder| {
                let (message, help) = (conflict.message.to_owned(), conflict.help.to_owned());
                decoder.error(conflict.code, message, Some(help));
            });
        }
    }

    pub(super) fn name(&mut self, node: NodeRef<'s>) -> Option<String> {
        let name = self.text(node)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > 128 || !name.chars().all(fits) {
            let help = Some("use letters, digits, `_`, `-` and `.`, at most 128".to_owned());
            self.error("TM-015", "this cannot be a name".to_owned(), help);
            return None;
        }
        Some(name)
    }

    fn unique_names(&mut self, list: NodeRef<'s>) {
        let mut seen = BTreeSet::new();
        for (index, item) in list.items().into_iter().flatten().enumerate() {
            if let Some(name) = item.get("name").and_then(NodeRef::raw_text)
                && !seen.insert(name)
            {
                self.within(PathSegment::Index(index), |decoder| {
                    decoder.within(PathSegment::Key("name"), |decoder| {
                        let shown: String = name.chars().take(60).collect();
                        decoder.error("TM-015", format!("`{shown}` is there twice"), None);
                    });
                });
            }
        }
    }

    /// Reads `properties` and checks each of them.
    pub(super) fn parameters(&mut self, node: NodeRef<'s>) -> Option<ParameterSchema> {
        let known = [
            "properties",
            "type",
            "required",
            "title",
            "description",
            "additionalProperties",
            "$schema",
        ];
        for (key, _) in node.entries().into_iter().flatten() {
            if !known.contains(&key) && !key.starts_with("x-") {
                let near = proofhouse_source::did_you_mean(key, known);
                let help = near.map_or_else(
                    || "parameters stand below `properties`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                self.within(PathSegment::Key(key), |decoder| {
                    let shown: String = key.chars().take(60).collect();
                    decoder.error("TM-004", format!("unknown key `{shown}`"), Some(help));
                });
            }
        }
        let properties = match node.get("properties") {
            Some(properties) if !properties.is_null() => properties,
            _ if node.entries().is_some() => return Some(ParameterSchema::default()),
            _ => {
                self.error(
                    "TM-003",
                    "a parameter schema must be a mapping with `properties`".to_owned(),
                    None,
                );
                return None;
            }
        };
        self.within(PathSegment::Key("properties"), |decoder| {
            let Some(entries) = properties.entries() else {
                decoder.error("TM-003", "`properties` must be a mapping".to_owned(), None);
                return None;
            };
            let mut map = Map::new();
            for (key, value) in entries {
                let property =
                    decoder.within(PathSegment::Key(key), |decoder| decoder.property(value));
                map.extend(property.map(|property| (key.to_owned(), property)));
            }
            ParameterSchema::new(map)
                .map_err(|error| decoder.error("TM-011", error.to_string(), None))
                .ok()
        })
    }

    fn property(&mut self, node: NodeRef<'s>) -> Option<Value> {
        if node.entries().is_none() {
            self.error(
                "TM-003",
                format!("a parameter must be a mapping, not {}", node.describe()),
                None,
            );
            return None;
        }
        let property = self.value(node);
        if let Some(binding) = property.get("require_binding")
            && !binding.is_boolean()
        {
            self.within(PathSegment::Key("require_binding"), |decoder| {
                decoder.error(
                    "TM-003",
                    "`require_binding` must be true or false".to_owned(),
                    None,
                );
            });
        }
        if let Some(problem) = ParameterSchema::property_error(&property) {
            self.error("TM-011", format!("not a JSON Schema: {problem}"), None);
            return None;
        }
        if let Some(problem) = ParameterSchema::default_error(&property) {
            self.within(PathSegment::Key("default"), |decoder| {
                decoder.error(
                    "TM-011",
                    format!("the default does not fit: {problem}"),
                    None,
                );
            });
        }
        Some(property)
    }
}
