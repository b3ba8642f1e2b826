//! Decodes actors, phases, actions, triggers, extractors and response entries.

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};

use super::{DocumentDecoder, DocumentFields};
use crate::fields;
use crate::model::{
    Action, ActionKind, Actor, Execution, Extensions, Extractor, Mode, Phase, ResponseEntry,
    Selector, SynthesizeBlock, Trigger,
};

impl<'s> DocumentDecoder<'s> {
    pub(super) fn execution(&mut self, node: NodeRef<'s>) -> Option<Execution> {
        let mut fields = self.fields(node, &fields::EXECUTION)?;
        Some(Execution {
            mode: fields.name("mode").map(Mode::from),
            state: fields.read("state", |decoder, node| Some(decoder.value(node))),
            phases: fields.list("phases", Self::phase),
            actors: fields.list("actors", Self::actor),
            extensions: fields.kept_extensions(),
        })
    }

    fn actor(&mut self, node: NodeRef<'s>) -> Option<Actor> {
        let mut fields = self.fields(node, &fields::ACTOR)?;
        Some(Actor {
            name: fields.text("name").unwrap_or_default(),
            mode: fields.open("mode").unwrap_or_default(),
            phases: fields.list("phases", Self::phase).unwrap_or_default(),
            extensions: fields.kept_extensions(),
        })
    }

    pub(crate) fn phase(&mut self, node: NodeRef<'s>) -> Option<Phase> {
        let mut fields = self.fields(node, &fields::PHASE)?;
        Some(Phase {
            name: fields.text("name"),
            description: fields.text("description"),
            mode: fields.open("mode"),
            state: fields.read("state", |decoder, node| Some(decoder.value(node))),
            extractors: fields.list("extractors", Self::extractor),
            on_enter: fields.list("on_enter", Self::action),
            trigger: fields.read("trigger", Self::trigger),
            extensions: fields.kept_extensions(),
        })
    }

    fn action(&mut self, node: NodeRef<'s>) -> Option<Action> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let mut action = Action {
            kinds: Vec::new(),
            extensions: Extensions::new(),
        };
        for (key, value) in entries {
            self.within(PathSegment::Key(key), |decoder| match key {
                "send" => action.kinds.extend(decoder.send(value)),
                "log" => action.kinds.extend(decoder.log(value)),
                _ if key.starts_with("x-") => {
                    let value = decoder.value(value);
                    action.extensions.insert(key.to_owned(), value);
                }
                _ => {
                    let value = decoder.value(value);
                    action.kinds.push(ActionKind::Binding {
                        name: key.to_owned(),
                        value,
                    });
                }
            });
        }
        Some(action)
    }

    fn send(&mut self, node: NodeRef<'s>) -> Option<ActionKind> {
        let mut fields = self.fields(node, &fields::SEND)?;
        Some(ActionKind::Send {
            method: fields.text("method").unwrap_or_default(),
            params: fields.read("params", |decoder, node| Some(decoder.value(node))),
        })
    }

    fn log(&mut self, node: NodeRef<'s>) -> Option<ActionKind> {
        let mut fields = self.fields(node, &fields::LOG)?;
        Some(ActionKind::Log {
            message: fields.text("message").unwrap_or_default(),
            level: fields.choice("level"),
        })
    }

    pub(crate) fn extractor(&mut self, node: NodeRef<'s>) -> Option<Extractor> {
        let mut fields = self.fields(node, &fields::EXTRACTOR)?;
        let name = fields.text("name");
        let source = fields.choice("source");
        let r#type = fields.choice("type");
        let selector = fields.text("selector");
        Some(Extractor {
            name: name?,
            source: source?,
            r#type: r#type?,
            selector: Selector::new(selector?),
        })
    }

    pub(crate) fn trigger(&mut self, node: NodeRef<'s>) -> Option<Trigger> {
        let mut fields = self.fields(node, &fields::TRIGGER)?;
        Some(Trigger {
            event: fields.text("event"),
            count: fields.integer("count"),
            r#match: fields.read("match", Self::predicate),
            after: fields.duration("after"),
        })
    }

    pub(crate) fn response_entry(&mut self, node: NodeRef<'s>) -> Option<ResponseEntry> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let mut entry = ResponseEntry::default();
        for (key, value) in entries {
            self.within(PathSegment::Key(key), |decoder| match key {
                "when" if !value.is_null() => entry.when = decoder.predicate(value),
                "when" => {}
                "content" => entry.content = Some(decoder.value(value)),
                "synthesize" => {
                    let prompt = value.get("prompt").and_then(|prompt| {
                        decoder.within(PathSegment::Key("prompt"), |decoder| decoder.text(prompt))
                    });
                    entry.synthesize = Some(SynthesizeBlock { prompt });
                }
                _ => {
                    let value = decoder.value(value);
                    entry.fields.insert(key.to_owned(), value);
                }
            });
        }
        Some(entry)
    }
}
