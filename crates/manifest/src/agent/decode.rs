//! Reads an agent: everything that can be checked without the tools it names.

use std::collections::BTreeSet;

use proofhouse_expr::Program;
use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment, YamlScalar};

use super::fields;
use super::model::{Agent, Binding, Capability, Grant, Guardrails, MountScope, TaskLimits};
use crate::decode::{ManifestDecoder, ManifestFields};
use crate::fields::DEFAULT_NAMESPACE;
use crate::interpolate::{Root, Template};
use crate::names::ReferenceSite;

/// What bindings and prompts can read.
const BINDING_VARIABLES: &[&str] = &["context", "c", "runtime", "now", "mount"];
/// Generated files have to go somewhere.
const NEED_A_MOUNT: &[&str] = &["image-generation", "audio-generation", "video-generation"];

impl<'s> ManifestDecoder<'s> {
    pub(crate) fn agent(&mut self, node: NodeRef<'s>) -> Option<Agent> {
        let mut fields = self.fields(node, &fields::AGENT)?;
        fields.text("kind");
        let namespace = fields.read("namespace", Self::name);
        let name = fields.read("name", Self::name);
        let description = fields.text("description");
        let parameters = fields
            .read("parameters", Self::parameters)
            .unwrap_or_default();
        let prompt = fields.read("prompt", |decoder, node| decoder.text_with(node, &["now"]));
        let model = fields.text("model");
        let priority = fields.whole("priority");
        let mount = fields.read("mount", Self::mount).unwrap_or_default();
        let limits = fields.read("limits", Self::task_limits).unwrap_or_default();
        let capabilities = fields
            .read("capabilities", Self::capabilities)
            .unwrap_or_default();
        let model_capabilities = fields
            .read("model_capabilities", |decoder, node| {
                decoder.model_capabilities(node, &mount, &capabilities)
            })
            .unwrap_or_default();
        let guardrails = fields
            .read("guardrails", |decoder, node| {
                let mut fields = decoder.fields(node, &fields::GUARDRAILS)?;
                Some(Guardrails {
                    before: fields.steps("before", super::steps::StepPosition::GuardrailBefore),
                    after: fields.steps("after", super::steps::StepPosition::GuardrailAfter),
                })
            })
            .unwrap_or_default();
        let exposes = fields.read("exposes", Self::exposes).unwrap_or_default();
        if node.get("prompt").is_none() {
            fields
                .reader
                .say_too_little("the agent has no prompt", "prompt");
        }
        Some(Agent {
            namespace: namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            name: name?,
            description: description.unwrap_or_default(),
            prompt: prompt.unwrap_or_else(|| Template::parse("")),
            model,
            priority,
            mount,
            limits,
            parameters,
            capabilities,
            model_capabilities,
            guardrails,
            exposes,
        })
    }

    /// A text in which names without a root are these variables.
    pub(super) fn text_with(&mut self, node: NodeRef<'s>, variables: &[&str]) -> Option<Template> {
        let names: BTreeSet<String> = variables.iter().map(|&name| name.to_owned()).collect();
        let outer = self.names.parameters.replace(names);
        let template = self.template(node, ReferenceSite::Prompt);
        self.names.parameters = outer;
        template
    }

    /// The scopes of a mount: one word, or a list of words.
    fn mount(&mut self, node: NodeRef<'s>) -> Option<Vec<MountScope>> {
        if matches!(node.scalar(), Some(YamlScalar::Text(word)) if word == fields::NO_MOUNT) {
            return Some(Vec::new());
        }
        if node.items().is_none() {
            return self.mount_scope(node).map(|scope| vec![scope]);
        }
        let mut scopes = Vec::new();
        self.list(node, |decoder, node| {
            let scope = decoder.mount_scope(node)?;
            if scopes.contains(&scope) {
                let message = format!("`{}` is there twice", scope.name());
                decoder.error("TM-015", message, None);
            }
            scopes.push(scope);
            Some(())
        })?;
        Some(scopes)
    }

    fn mount_scope(&mut self, node: NodeRef<'s>) -> Option<MountScope> {
        let word = self.word(node, fields::MOUNT_SCOPES)?;
        MountScope::named(word)
    }

    fn task_limits(&mut self, node: NodeRef<'s>) -> Option<TaskLimits> {
        let mut fields = self.fields(node, &fields::LIMITS)?;
        Some(TaskLimits {
            max_turns: fields.whole("max_turns"),
            max_prompt_tokens: fields.whole("max_prompt_tokens"),
            max_completion_tokens: fields.whole("max_completion_tokens"),
            max_age: fields.read("max_age", Self::duration),
            max_tool_calls: fields.whole("max_tool_calls"),
        })
    }

    fn capabilities(&mut self, node: NodeRef<'s>) -> Option<Vec<(String, Grant)>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping of references to capabilities");
            return None;
        };
        let mut capabilities = Vec::new();
        for (key, value) in entries {
            let grant = self.within(PathSegment::Key(key), |decoder| decoder.grant(value));
            capabilities.extend(grant.map(|grant| (key.to_owned(), grant)));
        }
        Some(capabilities)
    }

    fn grant(&mut self, node: NodeRef<'s>) -> Option<Grant> {
        let span = self.here();
        if let Some(YamlScalar::Text("*")) = node.scalar() {
            let capability = None;
            return Some(Grant { capability, span });
        }
        let is_empty = node
            .entries()
            .is_some_and(|mut entries| entries.next().is_none());
        if is_empty || node.entries().is_none() {
            let message = "a capability is `\"*\"` or a mapping with at least one key".to_owned();
            let help = Some("write `\"*\"` to allow everything".to_owned());
            self.error("TM-027", message, help);
            return None;
        }
        let mut fields = self.fields(node, &fields::CAPABILITY)?;
        let capability = Capability {
            include: fields.read("include", Self::names),
            bindings: fields
                .read("bindings", |decoder, node| {
                    decoder.bindings(node, BINDING_VARIABLES)
                })
                .unwrap_or_default(),
            event_timeout: fields.read("event_timeout", Self::duration),
            before_first: fields.steps("before_first", super::steps::StepPosition::Before),
            before: fields.steps("before", super::steps::StepPosition::Before),
            after: fields.steps("after", super::steps::StepPosition::After),
        };
        Some(Grant {
            capability: Some(capability),
            span,
        })
    }

    fn names(&mut self, node: NodeRef<'s>) -> Option<Vec<String>> {
        self.list(node, Self::text)
    }

    /// Parameters by name, each an expression over these variables.
    pub(super) fn bindings(
        &mut self,
        node: NodeRef<'s>,
        variables: &[&str],
    ) -> Option<Vec<(String, Binding)>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping of parameters to expressions");
            return None;
        };
        let mut bindings = Vec::new();
        for (key, value) in entries {
            let binding = self.within(PathSegment::Key(key), |decoder| {
                decoder.binding(value, variables)
            });
            bindings.extend(binding.map(|binding| (key.to_owned(), binding)));
        }
        Some(bindings)
    }

    fn binding(&mut self, node: NodeRef<'s>, variables: &[&str]) -> Option<Binding> {
        // `max_results: 50` is as good as `"50"`.
        let text = match node.scalar() {
            Some(YamlScalar::Text(text)) => text.to_owned(),
            Some(YamlScalar::Null) | None => {
                self.mismatch(node, "an expression");
                return None;
            }
            Some(_) => node.raw_text()?.to_owned(),
        };
        let template = Template::parse(&text);
        if template
            .whole()
            .is_some_and(|reference| reference.root == Root::Mount)
        {
            return Some(Binding::Template(template));
        }
        if let Ok(program) = crate::compiler().compile(&text)
            && is_plain_text(&program, variables)
        {
            let message = format!(
                "`{}` names nothing of the task, so it is taken as text",
                text.chars().take(60).collect::<String>()
            );
            let help = Some(format!("write `\"'{text}'\"` to say so"));
            self.warn("TM-025", message, help);
            return Some(Binding::Literal(text));
        }
        if matches!(node.scalar(), Some(YamlScalar::Text(_))) {
            return self.cel(node, variables).map(Binding::Cel);
        }
        let program = crate::compiler().compile(&text).ok();
        program.map(Binding::Cel)
    }

    fn model_capabilities(
        &mut self,
        node: NodeRef<'s>,
        mount: &[MountScope],
        capabilities: &[(String, Grant)],
    ) -> Option<Vec<String>> {
        self.list(node, |decoder, node| {
            let name = decoder.text(node)?;
            if capabilities.iter().any(|(key, _)| *key == name) {
                let message = format!("`{name}` is a capability already");
                decoder.error("TM-028", message, None);
            }
            if mount.is_empty() && NEED_A_MOUNT.contains(&name.as_str()) {
                let message = format!("`{name}` writes files, and the agent has no mount");
                decoder.error("TM-028", message, Some("set `mount`".to_owned()));
            }
            Some(name)
        })
    }

    fn exposes(&mut self, node: NodeRef<'s>) -> Option<Vec<(String, Program)>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping of names to expressions");
            return None;
        };
        let mut exposes = Vec::new();
        for (key, value) in entries {
            let program = self.within(PathSegment::Key(key), |decoder| {
                if key == "message" {
                    let message = "`message` is the output itself".to_owned();
                    decoder.error("TM-015", message, None);
                }
                decoder.cel(
                    value,
                    &["context", "c", "input", "output", "now", "runtime"],
                )
            });
            exposes.extend(program.map(|program| (key.to_owned(), program)));
        }
        Some(exposes)
    }
}

/// Whether an expression reads nothing but names that are not there, and calls nothing: people write
/// `acme-corp` and mean the text.
fn is_plain_text(program: &Program, variables: &[&str]) -> bool {
    let mut names = program.variables().peekable();
    names.peek().is_some()
        && names.all(|name| !variables.contains(&name))
        && program.functions().next().is_none()
        && program.unsupported_functions().next().is_none()
        && !program.source().contains(['\'', '"', '(', '['])
}

/// The lists of steps that blocks of an agent have.
trait StepLists {
    fn steps(
        &mut self,
        key: &'static str,
        place: super::steps::StepPosition,
    ) -> Vec<super::model::MiddlewareStep>;
}

impl StepLists for ManifestFields<'_, '_> {
    fn steps(
        &mut self,
        key: &'static str,
        place: super::steps::StepPosition,
    ) -> Vec<super::model::MiddlewareStep> {
        let steps = self.read(key, |decoder, node| {
            decoder.list(node, |decoder, node| decoder.step(node, place))
        });
        steps.unwrap_or_default()
    }
}
