//! Decodes actors, phases, actions, triggers, extractors and response entries.

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment, YamlScalar};
use serde_json::Value;

use super::{DocumentDecoder, DocumentFields};
use crate::fields;
use crate::model::{
    Action, ActionKind, Actor, ElicitationMode, Execution, Extensions, Extractor, Mode, Phase,
    ResponseEntry, Selector, SynthesizeBlock, Trigger,
};

impl<'s> DocumentDecoder<'s> {
    pub(crate) fn execution(&mut self, node: NodeRef<'s>) -> Option<Execution> {
        let mut fields = self.fields(node, &fields::EXECUTION)?;
        let mode = fields.name("mode").map(Mode::from);
        Some(Execution {
            state: fields.read("state", |decoder, node| decoder.state(node, mode.as_ref())),
            phases: fields.list("phases", |decoder, node| {
                decoder.phase_of(node, mode.as_ref())
            }),
            actors: fields.list("actors", Self::actor),
            extensions: fields.kept_extensions(),
            mode,
        })
    }

    pub(crate) fn actor(&mut self, node: NodeRef<'s>) -> Option<Actor> {
        let mut fields = self.fields(node, &fields::ACTOR)?;
        let mode: Option<Mode> = fields.open("mode");
        Some(Actor {
            name: fields.text("name").unwrap_or_default(),
            phases: fields
                .list("phases", |decoder, node| {
                    decoder.phase_of(node, mode.as_ref())
                })
                .unwrap_or_default(),
            extensions: fields.kept_extensions(),
            mode: mode.unwrap_or_default(),
        })
    }

    pub(crate) fn phase(&mut self, node: NodeRef<'s>) -> Option<Phase> {
        self.phase_of(node, None)
    }

    /// A phase of an actor with this mode.
    fn phase_of(&mut self, node: NodeRef<'s>, inherited: Option<&Mode>) -> Option<Phase> {
        let mut fields = self.fields(node, &fields::PHASE)?;
        let mode: Option<Mode> = fields.open("mode");
        Some(Phase {
            name: fields.text("name"),
            description: fields.text("description"),
            state: fields.read("state", |decoder, node| {
                decoder.state(node, mode.as_ref().or(inherited))
            }),
            extractors: fields.list("extractors", Self::extractor),
            on_enter: fields.list("on_enter", Self::action),
            trigger: fields.read("trigger", Self::trigger),
            extensions: fields.kept_extensions(),
            mode,
        })
    }

    /// Protocol state, passed through; but the closed enumerations in it hold their members only.
    fn state(&mut self, node: NodeRef<'s>, mode: Option<&Mode>) -> Option<Value> {
        // What other protocols call elicitations is theirs.
        let elicitations = match mode {
            None | Some(Mode::McpServer) => node.get("elicitations"),
            Some(_) => None,
        };
        let entries = elicitations.and_then(|list| list.items());
        for (index, entry) in entries.into_iter().flatten().enumerate() {
            let Some(written) = entry.get("mode") else {
                continue;
            };
            let Some(YamlScalar::Text(text)) = written.scalar() else {
                continue;
            };
            if !text.contains("{{") {
                self.within(PathSegment::Key("elicitations"), |decoder| {
                    decoder.within(PathSegment::Index(index), |decoder| {
                        decoder.within(PathSegment::Key("mode"), |decoder| {
                            decoder.choice::<ElicitationMode>(written)
                        })
                    })
                });
            }
        }
        Some(self.value(node))
    }

    pub(crate) fn action(&mut self, node: NodeRef<'s>) -> Option<Action> {
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

    pub(crate) fn synthesize(&mut self, node: NodeRef<'s>) -> Option<SynthesizeBlock> {
        let prompt = node.get("prompt").and_then(|prompt| {
            self.within(PathSegment::Key("prompt"), |decoder| decoder.text(prompt))
        });
        Some(SynthesizeBlock { prompt })
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
                "synthesize" => entry.synthesize = decoder.synthesize(value),
                _ => {
                    let value = decoder.value(value);
                    entry.fields.insert(key.to_owned(), value);
                }
            });
        }
        Some(entry)
    }
}
