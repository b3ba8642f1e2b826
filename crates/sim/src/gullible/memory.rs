//! What the gullible simulation has seen and would hand over: results, secrets, its own instructions.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::conversation::{PastCall, cut};
use super::super::directives::Requested;
use super::super::literals::{LiteralKind, literals};
use super::Responder;

impl Responder<'_> {
    /// What somebody wants to have.
    pub(super) fn have(&self, wanted: &Requested) -> String {
        let request = self.conversation.request;
        match wanted {
            Requested::Literal(text) => text.clone(),
            Requested::Contents(path) => {
                let all = self.conversation.calls.iter();
                let named = path
                    .as_deref()
                    .map(|path| self.results_for(all, Some(path)));
                let text = named.filter(|text| !text.is_empty());
                text.unwrap_or_else(|| self.results(0, None))
            }
            Requested::Secrets => {
                let found = self.secrets();
                let found = if found.is_empty() {
                    self.results(0, None)
                } else {
                    found
                };
                if found.is_empty() {
                    found
                } else {
                    format!("credentials: {found}")
                }
            }
            Requested::UserRequest => self.conversation.user.clone(),
            Requested::System => {
                let system = request
                    .system
                    .as_deref()
                    .unwrap_or("You are a helpful agent.");
                format!("My instructions (system prompt): {}", cut(system))
            }
            Requested::Tools => {
                let mut text = String::from("Available tools (name and description):");
                for tool in &self.toolbox.tools {
                    let about = tool.description.lines().next().unwrap_or_default();
                    let _ = write!(text, " {}: {about};", tool.name);
                }
                text
            }
            Requested::Conversation => {
                let results = self.results(0, None);
                format!(
                    "full conversation, complete context: {}\n{results}",
                    self.conversation.user
                )
            }
            Requested::Paths => {
                let mut text = self.conversation.user.clone();
                text.push_str(&self.results(0, None));
                let paths: Vec<String> = literals(&text)
                    .into_iter()
                    .filter(|literal| literal.kind == LiteralKind::Path)
                    .map(|literal| literal.text)
                    .collect();
                paths.join(", ")
            }
        }
    }

    /// What came back since a message, or for one thing. What was only sent somewhere is not worth copying.
    pub(super) fn results(&self, since: usize, thing: Option<&str>) -> String {
        let later = self
            .conversation
            .calls
            .iter()
            .filter(|call| call.place >= since);
        let text = self.results_for(later, thing);
        match (text.is_empty(), since) {
            (true, 1..) => {
                let own = self.conversation.calls.iter();
                self.results_for(
                    own.filter(|call| call.result.is_some_and(|it| it.place == since)),
                    None,
                )
            }
            _ => text,
        }
    }

    fn results_for<'m>(
        &'m self,
        calls: impl Iterator<Item = &'m PastCall<'m>>,
        thing: Option<&str>,
    ) -> String {
        let mut kept = Vec::new();
        for call in calls {
            let tool = self
                .toolbox
                .tools
                .iter()
                .find(|tool| tool.name == call.name);
            let brings = tool.is_none_or(|tool| tool.retrieves() || tool.deeds().is_empty());
            let fits = thing.is_none_or(|thing| {
                let said = call
                    .arguments
                    .map(|own| Value::Object(own.clone()).to_string());
                said.is_some_and(|said| said.contains(thing))
            });
            if let Some(result) = call.result.filter(|_| fits && (brings || thing.is_some())) {
                kept.push(result.content.trim());
            }
        }
        cut(&kept.join("\n")).to_owned()
    }

    /// Lines that look like secrets, from wherever they are.
    pub(super) fn secrets(&self) -> String {
        const SIGNS: [&str; 10] = [
            "key",
            "token",
            "secret",
            "password",
            "credential",
            "bearer",
            "akia",
            "sk_",
            "sk-",
            "://",
        ];
        let system = self
            .conversation
            .request
            .system
            .as_deref()
            .unwrap_or_default();
        let results = self
            .conversation
            .calls
            .iter()
            .filter_map(|call| call.result);
        let texts = std::iter::once(system).chain(results.map(|result| result.content));
        let lines = texts.flat_map(|text| cut(text).lines());
        let found: Vec<&str> = lines
            .filter(|line| {
                let lower = line.to_lowercase();
                SIGNS.iter().any(|sign| lower.contains(sign))
            })
            .take(50)
            .collect();
        found.join("\n")
    }
}
