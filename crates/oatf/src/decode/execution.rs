//! Decodes actors, phases, actions, triggers, extractors and response entries.

use std::collections::HashSet;

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

    /// Protocol state, passed through; but what is read of it later is readable, and its closed enumerations hold their
    /// members only.
    pub(crate) fn state(&mut self, node: NodeRef<'s>, mode: Option<&Mode>) -> Option<Value> {
        let before = self.walk.findings().len();
        // What other modes call so is theirs.
        let modes = mode.map_or(Mode::KNOWN, std::slice::from_ref);
        for key in modes.iter().flat_map(Mode::dispatch_lists) {
            self.dispatch_list(node, key);
        }
        if matches!(mode, None | Some(Mode::McpServer)) {
            for owner in ["tools", "prompts"] {
                let items = node.get(owner).and_then(|items| items.items());
                for (index, item) in items.into_iter().flatten().enumerate() {
                    self.within(PathSegment::Key(owner), |decoder| {
                        decoder.within(PathSegment::Index(index), |decoder| {
                            decoder.dispatch_list(item, "responses");
                        });
                    });
                }
            }
        }
        let told = &self.walk.findings()[before..];
        let told = told.iter().filter_map(|finding| finding.span);
        let told: HashSet<usize> = told.map(|span| span.offset).collect();
        let mut odd = Vec::new();
        let state = node.to_value(&mut |node| odd.push(node));
        for number in odd {
            if !told.contains(&number.span().offset) {
                self.out_of_range(number);
            }
        }
        Some(state)
    }

    /// The list `key` of `owner`, if it is there: only what decides and asks is read, contents belong to the binding.
    fn dispatch_list(&mut self, owner: NodeRef<'s>, key: &'static str) {
        let Some(list) = owner.get(key).filter(|list| !list.is_null()) else {
            return;
        };
        self.within(PathSegment::Key(key), |decoder| {
            decoder.list(list, |decoder, entry| {
                if !decoder.is_mapping(entry) {
                    return None;
                }
                let mut read = |key, read: &mut dyn FnMut(&mut Self, NodeRef<'s>)| {
                    if let Some(value) = entry.get(key).filter(|value| !value.is_null()) {
                        decoder.within(PathSegment::Key(key), |decoder| read(decoder, value));
                    }
                };
                read("when", &mut |decoder, node| {
                    decoder.predicate(node);
                });
                read("synthesize", &mut |decoder, node| {
                    decoder.synthesize(node);
                });
                if key == "elicitations" {
                    read("mode", &mut |decoder, node| {
                        decoder.elicitation_mode(node);
                    });
                }
                Some(())
            })
        });
    }

    fn elicitation_mode(&mut self, node: NodeRef<'s>) -> Option<ElicitationMode> {
        match node.scalar() {
            Some(YamlScalar::Text(text)) if text.contains("{{") => None,
            _ => self.choice(node),
        }
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
                "synthesize" if value.is_null() => {}
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
