//! Filters: whether an event concerns a task, by the values its calls have had.

use std::collections::BTreeMap;

use proofhouse_expr::{EvaluateError, EvaluateErrorKind, Program, SetKind, Sets, Variables};
use serde_json::Value;

use super::Discard;
use crate::allow_list::AllowList;
use proofhouse_manifest::{EventParameters, ParameterSchema, Receive, Tool, ToolEvent};

/// The types that a tool declares for its parameters, over all of its actions and events.
#[derive(Debug, Clone, Default)]
pub struct ParameterTypes {
    kinds: BTreeMap<String, SetKind>,
}

impl ParameterTypes {
    /// The types of a tool. Where actions disagree about a name, no type is taken: values are then compared
    /// as they are.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        let mut types = Self::default();
        types.add(&tool.parameters);
        for action in &tool.actions {
            types.add(&action.parameters);
        }
        for event in &tool.events {
            if let EventParameters::Schema(schema) = &event.parameters {
                types.add(schema);
            }
        }
        types
    }

    fn add(&mut self, schema: &ParameterSchema) {
        for (name, property) in schema.properties() {
            let kind = match property.get("type").and_then(Value::as_str) {
                Some("string") => SetKind::Text,
                Some("integer") => SetKind::Integer,
                Some("number") => SetKind::Number,
                Some("boolean") => SetKind::Bool,
                _ => SetKind::Any,
            };
            let known = self.kinds.entry(name.clone()).or_insert(kind);
            if *known != kind {
                *known = SetKind::Any;
            }
        }
    }
}

/// An allow list that is ready to be compared with. Made once per task and change of its list, it serves
/// all events and filters.
#[derive(Debug, Clone, Default)]
pub struct AllowedValues {
    sets: Sets,
}

impl AllowedValues {
    /// Makes an allow list ready.
    #[must_use]
    pub fn new(list: &AllowList, types: &ParameterTypes) -> Self {
        let mut sets = Sets::default();
        for (name, entry) in list.entries() {
            let kind = types.kinds.get(name).copied().unwrap_or_default();
            sets.insert(name, kind, entry.values().iter().cloned());
        }
        Self { sets }
    }
}

/// The filter of an event: what must hold for the event to concern a task.
#[derive(Debug, Clone)]
pub struct CompiledFilter {
    program: Option<Program>,
    /// The parameters it names.
    names: Vec<String>,
}

impl CompiledFilter {
    /// The filter of an event; an event without one concerns every task that listens.
    #[must_use]
    pub fn of(event: &ToolEvent) -> Self {
        Self::new(match &event.receive {
            Receive::Webhook(webhook) => webhook.filter.as_ref(),
            Receive::Subscription(subscription) => subscription.filter.as_ref(),
            Receive::Poll(poll) => poll.filter.as_ref(),
        })
    }

    /// The filter of an expression over `event` and `parameters`.
    #[must_use]
    pub fn new(program: Option<&Program>) -> Self {
        let names = program.map(|program| program.fields_of("parameters"));
        let names = names.into_iter().flatten().map(str::to_owned).collect();
        Self {
            program: program.cloned(),
            names,
        }
    }

    /// Whether the event `{payload, headers}` concerns the task with this allow list. A parameter that the
    /// filter names and that has no values discards the event, wherever in the filter it stands.
    ///
    /// # Errors
    ///
    /// Returns why the event is discarded.
    pub fn admit(&self, event: &Value, allowed: &AllowedValues) -> Result<(), Discard> {
        let Some(program) = &self.program else {
            return Ok(());
        };
        if let Some(name) = self.names.iter().find(|name| allowed.sets.is_empty(name)) {
            return Err(Discard::EmptyParameter { name: name.clone() });
        }
        let mut variables = Variables::new();
        variables.bind("event", event);
        variables.bind_sets("parameters", &allowed.sets);
        match program.evaluate_bool(&variables) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Discard::Filter),
            Err(error) => Err(discard(error)),
        }
    }
}

/// The reason that an error of an expression is.
pub(super) fn discard(error: EvaluateError) -> Discard {
    match error.kind {
        EvaluateErrorKind::Budget => Discard::Budget {
            message: error.message,
        },
        _ => Discard::Failed {
            message: error.message,
        },
    }
}
