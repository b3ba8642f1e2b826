//! Learning: drafts a policy from sessions in which nothing bad happened, for a person to edit.
//!
//! It learns which tools there are, what their results and arguments look like, and guesses from names which of them
//! change something. It does not learn which values may flow where: what a clean session did with a text that others
//! wrote, an attack may do, too.

mod shape;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use proofhouse_detect::TraceMessage;
use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::McpMethod;
use serde_json::Value;

use crate::engine::structured;
use crate::taint::fields;
pub use shape::ArgumentShape;

/// How many tools are learned.
const MAX_TOOLS: usize = 2000;

/// How many arguments or fields of a tool are learned.
const MAX_NAMES: usize = 200;

/// What the sessions have shown.
#[derive(Debug, Default)]
pub struct LearnedSessions {
    tools: BTreeMap<String, LearnedTool>,
    calls: u64,
    left_out: u64,
}

/// What is known of one tool.
#[derive(Debug, Default)]
struct LearnedTool {
    /// Whether it says of itself that it only reads.
    read_only: Option<bool>,
    arguments: BTreeMap<String, ArgumentShape>,
    /// Which arguments calls gave together.
    given: BTreeSet<BTreeSet<String>>,
    calls: u64,
    results: u64,
    /// Whether a result was no JSON, and read like text.
    is_text: bool,
    /// Whether a result had anything.
    has_values: bool,
    free_text: BTreeSet<String>,
}

impl LearnedSessions {
    /// Nothing is learned yet.
    ///
    /// ```
    /// use proofhouse_detect::TraceMessage;
    /// use proofhouse_guard::learn::LearnedSessions;
    /// use proofhouse_oatf::Direction;
    /// use serde_json::json;
    ///
    /// let mut learned = LearnedSessions::default();
    /// let mut call = TraceMessage::new("mcp", "tools/call", json!({"name": "send", "arguments": {"to": "a@b.example"}}));
    /// call.direction = Some(Direction::Request);
    /// learned.add(&call);
    /// let text = learned.policy("draft");
    /// let (policy, findings) = proofhouse_guard::policy::read(&text);
    /// assert!(findings.is_empty());
    /// assert_eq!(policy.tools[0].decides, ["to"]);
    /// ```
    pub fn add(&mut self, message: &TraceMessage) {
        let content = &message.content;
        match (McpMethod::parse(&message.operation), message.direction) {
            (Some(McpMethod::ToolsList), Some(Direction::Response)) => {
                let tools = content.get("tools").and_then(Value::as_array);
                for tool in tools.into_iter().flatten() {
                    self.define(tool);
                }
            }
            (Some(McpMethod::ToolsCall), Some(direction)) => {
                let Some(name) = content.get("name").and_then(Value::as_str) else {
                    return;
                };
                match direction {
                    Direction::Request => {
                        self.calls += 1;
                        let arguments = content.get("arguments").cloned();
                        if let Some(tool) = self.tool(name) {
                            tool.called(&arguments.unwrap_or_default());
                        }
                    }
                    Direction::Response => {
                        let is_error = content.get("isError") == Some(&Value::Bool(true));
                        if let Some(tool) = self.tool(name).filter(|_| !is_error) {
                            tool.returned(content);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// How many calls were seen.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// How many tools were seen.
    #[must_use]
    pub fn tools(&self) -> usize {
        self.tools.len()
    }

    /// How many tools, arguments or fields are missing because there were too many.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The draft, as YAML with comments.
    #[must_use]
    pub fn policy(&self, name: &str) -> String {
        write::policy(self, name)
    }

    fn define(&mut self, tool: &Value) {
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            return;
        };
        let name = name.to_owned();
        if let Some(learned) = self.tool(&name) {
            learned.read_only = tool
                .pointer("/annotations/readOnlyHint")
                .and_then(Value::as_bool);
            let properties = tool.pointer("/inputSchema/properties");
            for key in properties
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|keys| keys.keys())
            {
                learned.argument(key);
            }
        }
    }

    fn tool(&mut self, name: &str) -> Option<&mut LearnedTool> {
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(name) {
            self.left_out += 1;
            return None;
        }
        Some(self.tools.entry(name.to_owned()).or_default())
    }
}

impl LearnedTool {
    fn argument(&mut self, key: &str) -> Option<&mut ArgumentShape> {
        if self.arguments.len() >= MAX_NAMES && !self.arguments.contains_key(key) {
            return None;
        }
        Some(self.arguments.entry(key.to_owned()).or_default())
    }

    /// The arguments that decide about its effect. Titles do where a call gave nothing else that does: an entry in a
    /// calendar without guests is about its title.
    fn deciding(&self) -> Vec<&String> {
        let of = |key: &String| self.arguments.get(key).copied().unwrap_or_default();
        let is_undecided =
            |given: &BTreeSet<String>| !given.iter().any(|key| of(key).may_decide(key));
        let titles_count = self.given.iter().any(is_undecided);
        let arguments = self.arguments.iter();
        let deciding = arguments
            .filter(|(key, shape)| shape.may_decide(key) || (titles_count && shape.is_title()));
        deciding.map(|(key, _)| key).collect()
    }

    fn called(&mut self, arguments: &Value) {
        self.calls += 1;
        if self.given.len() < MAX_NAMES {
            let given = arguments.as_object().into_iter().flatten();
            let given = given.filter(|(_, value)| !value.is_null()).take(MAX_NAMES);
            self.given
                .insert(given.map(|(key, _)| key.clone()).collect());
        }
        for (key, value) in arguments.as_object().into_iter().flatten() {
            if let Some(shape) = self.argument(key) {
                fields::each(value, &mut |_, text| shape.see(text));
            }
        }
    }

    fn returned(&mut self, result: &Value) {
        self.results += 1;
        match structured(result) {
            Some(value) => {
                let free_text = &mut self.free_text;
                let has_values = &mut self.has_values;
                fields::each(&value, &mut |key, text| {
                    *has_values |= !text.is_empty();
                    if let Some(key) = key.filter(|_| fields::is_prose(text))
                        && free_text.len() < MAX_NAMES
                    {
                        // Objects that are keyed by names have other keys the next time.
                        free_text.insert(if fields::is_field(key) { key } else { "*" }.to_owned());
                    }
                });
            }
            None => {
                fields::each(
                    result.get("content").unwrap_or(&Value::Null),
                    &mut |key, text| {
                        let is_said = key == Some("text") && !text.trim().is_empty();
                        self.has_values |= is_said;
                        self.is_text |= is_said;
                    },
                );
            }
        }
    }
}
