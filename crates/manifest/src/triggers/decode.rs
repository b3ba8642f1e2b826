//! Reads triggers and schedules: everything that can be checked without the agents they name.

use std::collections::BTreeSet;

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};
use serde_json::{Map, Value};

use super::fields;
use super::model::{EventTrigger, Schedule, TriggerSource};
use crate::agent::{MiddlewareStep, OnFail, StepAction, StepPosition};
use crate::decode::{ManifestDecoder, ManifestFields};
use crate::fields::DEFAULT_NAMESPACE;
use crate::names::ReferenceSite;
use crate::schedule::{Cadence, CadenceError};

/// The longest identity of an owner and name of a source.
const MAX_NAME: usize = 200;

impl<'s> ManifestDecoder<'s> {
    pub(crate) fn trigger(&mut self, node: NodeRef<'s>) -> Option<EventTrigger> {
        // A trigger sees the raw event: there are no aliases.
        self.names.aliases = Some(BTreeSet::new());
        let mut fields = self.fields(node, &fields::TRIGGER)?;
        fields.text("kind");
        let namespace = fields.read("namespace", Self::name);
        let name = fields.read("name", Self::name);
        let agent = fields.read("agent", Self::placed_name);
        let owner = fields.read("owner", Self::short_text);
        let source = fields.read("source", Self::trigger_source);
        let message = fields.read("message", |decoder, node| {
            decoder.template(node, ReferenceSite::Message)
        });
        let inputs = inputs(&mut fields);
        let enabled = fields.flag("enabled");
        let (agent, agent_span) = agent?;
        Some(EventTrigger {
            namespace: namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            name: name?,
            agent,
            owner: owner?,
            source: source?,
            message,
            inputs,
            enabled: enabled?,
            agent_span,
        })
    }

    fn trigger_source(&mut self, node: NodeRef<'s>) -> Option<TriggerSource> {
        let mut fields = self.fields(node, &fields::SOURCE)?;
        let kind = fields.read("type", Self::short_text);
        let before = fields.read("before", |decoder, node| {
            decoder.list(node, |decoder, node| {
                let step = decoder.step(node, StepPosition::Trigger)?;
                decoder.must_assert(&step);
                Some(step)
            })
        });
        Some(TriggerSource {
            kind: kind?,
            before: before.unwrap_or_default(),
        })
    }

    /// No task is there yet: nothing can be invoked, transformed or locked.
    fn must_assert(&mut self, step: &MiddlewareStep) {
        if !matches!(step.action, StepAction::Assert(_)) {
            let message = "a trigger only asserts".to_owned();
            let help = Some("put other steps into the agent's guardrails".to_owned());
            self.error("TM-024", message, help);
        }
        if step.on_fail == OnFail::LockTask {
            let message = "there is no task to lock".to_owned();
            let help = Some("leave `on_fail` out: no task starts then".to_owned());
            self.error("TM-023", message, help);
        }
    }

    pub(crate) fn schedule(&mut self, node: NodeRef<'s>) -> Option<Schedule> {
        let mut fields = self.fields(node, &fields::SCHEDULE)?;
        fields.text("kind");
        let namespace = fields.read("namespace", Self::name);
        let name = fields.read("name", Self::name);
        let agent = fields.read("agent", Self::placed_name);
        let cron = fields.text("cron");
        let timezone = fields.text("timezone");
        let owner = fields.read("owner", Self::short_text);
        let inputs = inputs(&mut fields);
        let enabled = fields.flag("enabled");
        let cron = cron?;
        let cadence = match Cadence::new(&cron, timezone.as_deref()) {
            Ok(cadence) => Some(cadence),
            Err(error) => {
                let (key, help) = match &error {
                    CadenceError::Cron(_) => ("cron", "write for example `0 9 * * 1-5`"),
                    CadenceError::Zone(_) => ("timezone", "write for example `Europe/Berlin`"),
                };
                fields.reader.within(PathSegment::Key(key), |decoder| {
                    decoder.error("TM-029", error.to_string(), Some(help.to_owned()));
                });
                None
            }
        };
        let (agent, agent_span) = agent?;
        Some(Schedule {
            namespace: namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            name: name?,
            agent,
            cadence: cadence?,
            cron,
            timezone,
            owner: owner?,
            inputs,
            enabled: enabled?,
            agent_span,
        })
    }

    fn placed_name(&mut self, node: NodeRef<'s>) -> Option<(String, proofhouse_source::Span)> {
        let name = self.name(node)?;
        Some((name, self.here()))
    }

    fn short_text(&mut self, node: NodeRef<'s>) -> Option<String> {
        let text = self.text(node)?;
        if text.trim().is_empty() || text.len() > MAX_NAME {
            let message = format!("this must have 1 to {MAX_NAME} bytes");
            self.error("TM-015", message, None);
            return None;
        }
        Some(text)
    }
}

/// The input of a task: a mapping whose `message` is a text or a list of content parts.
fn inputs(fields: &mut ManifestFields<'_, '_>) -> Map<String, Value> {
    let inputs = fields.read("inputs", |decoder, node| {
        if node.entries().is_none() {
            decoder.mismatch(node, "a mapping");
            return None;
        }
        if let Some(message) = node.get("message") {
            let value = decoder.value(message);
            if !(value.is_string() || value.is_array()) {
                decoder.within(PathSegment::Key("message"), |decoder| {
                    decoder.mismatch(message, "a text or a list of content parts");
                });
            }
        }
        match decoder.value(node) {
            Value::Object(map) => Some(map),
            _ => None,
        }
    });
    inputs.unwrap_or_default()
}
