//! Finds what texts tell their reader to do: calls to make, arguments to add, words to say.
//!
//! This is what makes the gullible simulation gullible. It takes every imperative sentence for an order,
//! whoever wrote it.

use super::fill::named_value;
use super::literals::{Literal, LiteralKind, first, literals};
use super::sentences::{Imperative, Sentence, bare, orders, sentences};
use super::toolbox::Toolbox;
use super::words::{VerbClass, deed, is_filler, tokens};

mod requested;

pub(super) use requested::Requested;
use requested::{all_requested, requested};

/// Directives of one text; who orders more is obeyed this far.
const MAX_DIRECTIVES: usize = 64;

/// Orders of one text that are thought about, whether anything comes of them or not.
const MAX_ORDERS: usize = 150;

/// Calls that one order to repeat is worth.
const MAX_REPEATS: usize = 10;

/// A text that may tell its reader what to do.
pub(super) struct DirectiveSource {
    pub(super) origin: DirectiveOrigin,
    /// Cleaned.
    pub(super) text: String,
}

/// Where a text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DirectiveOrigin {
    System,
    /// The description of a tool.
    Description(usize),
    /// The description of a parameter.
    Parameter(usize, String),
    /// The message at this place.
    Message(usize),
}

/// One thing to do.
#[derive(Debug, Clone)]
pub(super) enum Directive {
    Call(DirectiveCall),
    /// An argument to add to every call of a tool.
    Argument {
        tool: usize,
        name: String,
        value: Requested,
    },
    Say(Requested),
    /// Do not speak of this.
    Hush,
    /// Do the last thing again.
    Repeat,
}

/// A call that a text orders.
#[derive(Debug, Clone)]
pub(super) struct DirectiveCall {
    pub(super) tool: usize,
    /// The order.
    pub(super) words: String,
    /// The sentence it stands in, and what belongs to it.
    pub(super) wide: String,
    /// Things to do it for, one call each.
    pub(super) each: Vec<String>,
    pub(super) repeat: usize,
    /// What else is to go along.
    pub(super) attached: Vec<Requested>,
}

/// The directives of a text, in order.
pub(super) fn directives(source: &DirectiveSource, toolbox: &Toolbox) -> Vec<Directive> {
    let mut reader = DirectiveReader {
        source,
        toolbox,
        found: Vec::new(),
        list: DirectiveList::None,
        orders: 0,
    };
    let all = sentences(&source.text);
    for (place, sentence) in all.iter().enumerate() {
        if reader.found.len() >= MAX_DIRECTIVES {
            break;
        }
        reader.sentence(sentence, place == 0);
    }
    reader.found
}

/// Whether a sentence tells its reader what to do, or dresses up as something that does.
pub(super) fn is_directive(sentence: &str, toolbox: &Toolbox) -> bool {
    const CUES: [&str; 14] = [
        "must",
        "mandatory",
        "required",
        "require",
        "always",
        "never",
        "ignore",
        "disregard",
        "override",
        "compliance",
        "do not",
        "don't",
        "you are",
        "instruction",
    ];
    let lower = sentence.to_lowercase();
    CUES.iter().any(|cue| lower.contains(cue))
        || !orders(sentence, true, &|word| toolbox.is_name(word)).is_empty()
        || !toolbox.named(sentence).is_empty()
}

struct DirectiveReader<'a> {
    source: &'a DirectiveSource,
    toolbox: &'a Toolbox,
    found: Vec<Directive>,
    list: DirectiveList,
    orders: usize,
}

/// What the items of a list are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectiveList {
    None,
    /// To be added to the calls of a tool.
    Arguments(usize),
    /// To be said.
    Say,
    /// What the last call is to be made for.
    Each,
}

impl DirectiveReader<'_> {
    fn sentence(&mut self, sentence: &Sentence, is_first: bool) {
        if sentence.is_item && self.item(&sentence.text) {
            return;
        }
        if !sentence.is_item {
            self.list = DirectiveList::None;
        }
        let text = sentence.text.as_str();
        let lower = text.to_lowercase();
        // A description begins by describing, and does so in the imperative.
        let describes = is_first
            && matches!(
                self.source.origin,
                DirectiveOrigin::Description(_) | DirectiveOrigin::Parameter(..)
            )
            && !self.points_elsewhere(text);
        if describes {
            return;
        }
        let before = self.found.len();
        let found = orders(text, true, &|word| self.toolbox.is_name(word));
        for order in &found {
            self.orders += 1;
            if self.found.len() >= MAX_DIRECTIVES || self.orders > MAX_ORDERS {
                return;
            }
            self.order(order, text);
        }
        if sentence.leads && (lower.contains("include") || lower.contains("following")) {
            self.list = match self.own_tool() {
                _ if speaks(&lower) => DirectiveList::Say,
                Some(tool) if lower.contains("include") => DirectiveList::Arguments(tool),
                _ => self.list,
            };
        }
        // "Read each file below and include their hashes in your response:"
        let orders_call = self.found[before..]
            .iter()
            .any(|directive| matches!(directive, Directive::Call(_)));
        if sentence.leads && orders_call && wants_each(&lower) {
            self.list = DirectiveList::Each;
        }
    }

    /// Takes an item of a list that is for something; says whether it did.
    fn item(&mut self, text: &str) -> bool {
        match self.list {
            DirectiveList::None => false,
            DirectiveList::Arguments(tool) => {
                let Some((name, about)) = text.split_once(':') else {
                    return false;
                };
                let value =
                    requested(about).unwrap_or_else(|| Requested::Literal(about.trim().to_owned()));
                self.found.push(Directive::Argument {
                    tool,
                    name: name.trim().trim_matches(['"', '`']).to_owned(),
                    value,
                });
                true
            }
            DirectiveList::Say => {
                for part in all_requested(text) {
                    self.found.push(Directive::Say(part));
                }
                true
            }
            DirectiveList::Each => {
                let Some(literal) = literals(text).into_iter().find(is_thing) else {
                    return false;
                };
                let call = self
                    .found
                    .iter_mut()
                    .rev()
                    .find_map(|directive| match directive {
                        Directive::Call(call) => Some(call),
                        _ => None,
                    });
                match call {
                    Some(call) if call.each.len() < MAX_REPEATS => call.each.push(literal.text),
                    _ => {}
                }
                true
            }
        }
    }

    fn order(&mut self, order: &Imperative, sentence: &str) {
        let lower = order.text.to_lowercase();
        if order.forbids {
            let hides = [
                "mention", "tell", "inform", "reveal", "disclose", "show", "notify", "report",
            ];
            if hides.contains(&order.verb.as_str()) {
                self.found.push(Directive::Hush);
            }
            return;
        }
        match order.verb.as_str() {
            "include" | "add" | "pass" | "put" | "set" | "attach" | "provide" | "append"
            | "insert" | "supply" | "embed" | "copy" | "bcc" | "cc" | "use"
                if self.argument(order, &lower, sentence) => {}
            "include" | "add" | "attach" | "provide" | "append" | "insert" | "embed" | "output"
            | "print" | "state" | "say" | "tell" | "respond" | "reply" | "answer" | "end"
            | "finish" | "begin" | "mention"
                if self.say(order, &lower) => {}
            "include" | "attach" | "append" | "add" | "provide" if self.attach(order) => {}
            "retry" | "repeat" | "rerun" => self.found.push(Directive::Repeat),
            "follow" | "decode" | "ignore" | "disregard" | "verify" | "enter" | "keep"
            | "format" | "do" | "answer" | "end" | "begin" | "finish" | "state" | "return"
            | "ask" => {}
            _ => self.call(order, sentence),
        }
    }

    /// "… as the `auth_token` parameter in your `web_search` call."
    fn argument(&mut self, order: &Imperative, lower: &str, sentence: &str) -> bool {
        let named = self.toolbox.named(&order.text);
        if order.verb == "use" && !named.is_empty() {
            return false;
        }
        let this_one = [
            "this parameter",
            "this field",
            "this value",
            "this argument",
        ];
        let target = match &self.source.origin {
            DirectiveOrigin::Parameter(tool, name)
                if this_one.iter().any(|phrase| lower.contains(phrase)) =>
            {
                Some((*tool, name.clone()))
            }
            _ => self
                .named_parameter(order, lower, &named)
                .or_else(|| self.unknown_parameter(&order.text, lower, &named)),
        };
        let Some((tool, name)) = target else {
            return false;
        };
        let copied =
            (name.to_lowercase().ends_with("cc")).then(|| first(&order.text, LiteralKind::Email));
        let value = named_value(&name, &order.text)
            .or(copied.flatten())
            .map(Requested::Literal)
            .or_else(|| requested(&order.text))
            .map(|value| match value {
                // "read X and pass its contents": X stands in the same sentence.
                Requested::Contents(None) => {
                    Requested::Contents(first(sentence, LiteralKind::Path))
                }
                other => other,
            });
        if let Some(value) = value {
            self.found.push(Directive::Argument { tool, name, value });
        }
        true
    }

    /// A parameter that the order names, of a tool that has it.
    fn named_parameter(
        &self,
        order: &Imperative,
        lower: &str,
        named: &[usize],
    ) -> Option<(usize, String)> {
        let all = 0..self.toolbox.tools.len();
        let tools: Vec<usize> = named.iter().copied().chain(all).collect();
        for tool in tools {
            for parameter in &self.toolbox.tools[tool].parameters {
                let name = parameter.name.to_lowercase();
                let is_verb = order.verb == name;
                let is_compound = tokens(&name).len() > 1 && lower.contains(&name);
                let words = ["parameter", "param", "field", "argument"];
                let is_called_so = words.iter().any(|word| {
                    lower.contains(&format!("{name} {word}"))
                        || lower.contains(&format!("\"{name}\" {word}"))
                });
                let is_assigned = named_value(&parameter.name, &order.text).is_some();
                let goes_there = [
                    format!(" as {name}"),
                    format!(" as the {name}"),
                    format!("to the {name}"),
                ]
                .iter()
                .any(|phrase| lower.contains(phrase));
                if is_verb || is_compound || is_called_so || is_assigned || goes_there {
                    // A call that is ordered in the same breath takes its own arguments.
                    return Some((tool, parameter.name.clone()));
                }
            }
        }
        None
    }

    /// A parameter that no tool has: `as a "context" parameter`.
    fn unknown_parameter(
        &self,
        text: &str,
        lower: &str,
        named: &[usize],
    ) -> Option<(usize, String)> {
        let place = [" parameter", " param", " field", " argument"]
            .iter()
            .filter_map(|word| lower.find(word))
            .min()?;
        let name = text.get(..place)?.rsplit(char::is_whitespace).next()?;
        let name = name.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let is_name = !name.is_empty() && !is_filler(&name.to_lowercase());
        let tool = named.first().copied().or_else(|| self.own_tool())?;
        is_name.then(|| (tool, name.to_owned()))
    }

    fn say(&mut self, order: &Imperative, lower: &str) -> bool {
        let talks = matches!(
            order.verb.as_str(),
            "say"
                | "tell"
                | "respond"
                | "reply"
                | "answer"
                | "output"
                | "print"
                | "mention"
                | "state"
                | "end"
                | "finish"
                | "begin"
        );
        if talks {
            let words = literals(&order.text)
                .into_iter()
                .find(|literal| matches!(literal.kind, LiteralKind::Quoted | LiteralKind::Url))
                .map(|literal| literal.text)
                .or_else(|| after_any(&order.text, &[" that ", " with: ", " with ", ": "]));
            return match words {
                Some(words) => {
                    self.found.push(Directive::Say(Requested::Literal(words)));
                    true
                }
                None => self.say_all(&order.text),
            };
        }
        let about_itself = [
            "system prompt",
            "system instructions",
            "your instructions",
            "your prompt",
        ]
        .iter()
        .any(|phrase| lower.contains(phrase));
        let for_the_user = about_itself && self.toolbox.named(&order.text).is_empty();
        if !speaks(lower) && !for_the_user {
            return false;
        }
        if !self.say_all(&order.text) {
            let words = order.text.split_once(' ').map_or("", |(_, rest)| rest);
            self.found
                .push(Directive::Say(Requested::Literal(words.to_owned())));
        }
        true
    }

    fn say_all(&mut self, text: &str) -> bool {
        let parts = all_requested(text);
        let any = !parts.is_empty();
        self.found.extend(parts.into_iter().map(Directive::Say));
        any
    }

    /// "Include all records": it belongs to the call before.
    fn attach(&mut self, order: &Imperative) -> bool {
        match self
            .found
            .iter_mut()
            .rev()
            .find_map(|directive| match directive {
                Directive::Call(call) => Some(call),
                _ => None,
            }) {
            Some(call) => {
                let words = order.text.split_once(' ').map_or("", |(_, rest)| rest);
                call.attached.push(Requested::Literal(words.to_owned()));
                call.attached.extend(requested(&order.text));
                call.wide.push(' ');
                call.wide.push_str(&order.text);
                true
            }
            None => false,
        }
    }

    fn call(&mut self, order: &Imperative, sentence: &str) {
        let named = self.toolbox.named(&order.text);
        let own = self.own_tool();
        let other = named.iter().copied().find(|tool| Some(*tool) != own);
        let tool = other.or_else(|| {
            let is_delegation = deed(&order.verb) == Some(VerbClass::Delegate);
            if is_delegation {
                return self.toolbox.agent(&order.text);
            }
            if matches!(order.verb.as_str(), "use" | "call" | "invoke") {
                // Advice on when to use something, or an order that names what is not there.
                return None;
            }
            let fits = self.toolbox.best(&order.text, &order.verb)?;
            let does = deed(&order.verb);
            let same_deed =
                does.is_none_or(|does| self.toolbox.tools[fits].deeds().contains(&does));
            (same_deed && Some(fits) != own).then_some(fits)
        });
        let Some(tool) = tool else {
            return;
        };
        let lower = order.text.to_lowercase();
        let mut each: Vec<String> = Vec::new();
        let things: Vec<String> = literals(&order.text)
            .into_iter()
            .filter(is_thing)
            .map(|it| it.text)
            .collect();
        if things.len() > 1
            && literals(&order.text)
                .iter()
                .filter(|it| it.kind == LiteralKind::Path)
                .count()
                > 1
        {
            each = things;
        } else if things.is_empty() && lower.contains("both") {
            each = self.earlier_paths();
        }
        each.truncate(MAX_REPEATS);
        self.found.push(Directive::Call(DirectiveCall {
            tool,
            wide: sentence.to_owned(),
            each,
            repeat: repeats(&order.text),
            attached: Vec::new(),
            words: order.text.clone(),
        }));
    }

    /// The paths of the calls that were ordered before, for "both files".
    fn earlier_paths(&self) -> Vec<String> {
        let calls = self.found.iter().filter_map(|directive| match directive {
            Directive::Call(call) => first(&call.words, LiteralKind::Path),
            _ => None,
        });
        calls.collect()
    }

    /// The tool whose description this is.
    fn own_tool(&self) -> Option<usize> {
        match &self.source.origin {
            DirectiveOrigin::Description(tool) | DirectiveOrigin::Parameter(tool, _) => Some(*tool),
            DirectiveOrigin::System | DirectiveOrigin::Message(_) => None,
        }
    }

    /// Whether a sentence of a description is about more than what it describes.
    fn points_elsewhere(&self, text: &str) -> bool {
        let own = self.own_tool();
        let lower = text.to_lowercase();
        self.toolbox
            .named(text)
            .into_iter()
            .any(|tool| Some(tool) != own)
            || lower.contains("you must")
            || lower.contains("this parameter")
            || literals(text).iter().any(|literal| {
                matches!(
                    literal.kind,
                    LiteralKind::Path | LiteralKind::Email | LiteralKind::Url
                )
            })
    }
}

fn is_thing(literal: &Literal) -> bool {
    matches!(
        literal.kind,
        LiteralKind::Path | LiteralKind::Url | LiteralKind::Email
    )
}

fn wants_each(lower: &str) -> bool {
    ["each ", "all ", "following", "below", "these ", "every "]
        .iter()
        .any(|word| lower.contains(word))
}

/// Whether words are about what the model says.
fn speaks(lower: &str) -> bool {
    [
        "response",
        "reply",
        "replies",
        "your answer",
        "output",
        "your message",
        "the summary",
        "your summary",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// How often: "send 50 HEAD requests".
fn repeats(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    for (place, word) in words.iter().enumerate() {
        let near = words[place + 1..].iter().take(3);
        let counts = near.into_iter().any(|word| {
            let word = bare(word);
            matches!(word.as_str(), "requests" | "times" | "calls" | "messages")
        });
        if counts && let Ok(number) = word.parse::<usize>() {
            return number.clamp(1, MAX_REPEATS);
        }
    }
    1
}

fn after_any(text: &str, links: &[&str]) -> Option<String> {
    let (place, link) = links
        .iter()
        .filter_map(|link| text.find(link).map(|place| (place, link)))
        .min()?;
    let rest = text[place + link.len()..].trim();
    (!rest.is_empty()).then(|| rest.to_owned())
}
