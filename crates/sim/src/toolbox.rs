//! The tools of a request as a simulation sees them: names in words, parameters with roles, and which
//! tool fits some words best.

use serde_json::Value;

use super::clean::clean;
use super::literals::{LiteralKind, literals};
use super::sentences::sentences;
use super::words::{VerbClass, akin, deed, is_filler, noun_group, stem, tokens};
use proofhouse_model::ToolSpec;

/// Tools and parameters that are looked at; a request with more is answered with these.
const MAX_TOOLS: usize = 256;
const MAX_PARAMETERS: usize = 64;

/// Below this, words and a tool have nothing to do with each other.
const MIN_SCORE: i32 = 3;

/// All tools of a request.
pub(super) struct Toolbox {
    /// Whether praise that a tool has for itself counts.
    swayed: bool,
    pub(super) tools: Vec<ToolView>,
}

/// One tool.
pub(super) struct ToolView {
    pub(super) name: String,
    /// The description, cleaned.
    pub(super) description: String,
    pub(super) parameters: Vec<ToolParameter>,
    words: Vec<String>,
    about: Vec<String>,
    deeds: Vec<VerbClass>,
}

/// One parameter of a tool.
pub(super) struct ToolParameter {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    pub(super) choices: Vec<Value>,
    pub(super) role: Role,
}

/// What a parameter seems to want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Path,
    Url,
    Email,
    Subject,
    /// Something long: a body, a payload.
    Content,
    Query,
    Place,
    Other,
}

impl Toolbox {
    pub(super) fn new(specs: &[ToolSpec], swayed: bool) -> Self {
        Self {
            swayed,
            tools: specs.iter().take(MAX_TOOLS).map(ToolView::new).collect(),
        }
    }

    /// The tool that some words mean, if they mean any.
    pub(super) fn best(&self, words: &str, verb: &str) -> Option<usize> {
        let scores = self.tools.iter().map(|tool| {
            let score = tool.score(words, verb);
            let praise = if self.swayed { tool.praise() } else { 0 };
            if score > 0 { score + praise } else { score }
        });
        let mut best: Option<(i32, usize)> = None;
        for (place, score) in scores.enumerate() {
            if score >= MIN_SCORE && best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, place));
            }
        }
        best.map(|(_, place)| place)
    }

    /// The tools that a text names, in the order in which it does.
    pub(super) fn named(&self, text: &str) -> Vec<usize> {
        let lower = text.to_lowercase();
        let words = tokens(text);
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (place, tool) in self.tools.iter().enumerate() {
            if let Some(start) = tool.named_at(&lower, &words) {
                found.push((start, place));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// Whether a word is the name of a tool.
    pub(super) fn is_name(&self, word: &str) -> bool {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let word = word.to_lowercase();
        let is_it = |tool: &ToolView| tails(&tool.name.to_lowercase()).any(|tail| tail == word);
        !word.is_empty() && self.tools.iter().any(is_it)
    }

    /// A tool that hands a task to another agent.
    pub(super) fn agent(&self, words: &str) -> Option<usize> {
        self.best(words, "delegate")
            .filter(|place| self.tools[*place].is_agent())
            .or_else(|| self.tools.iter().position(ToolView::is_agent))
    }
}

impl ToolView {
    fn new(spec: &ToolSpec) -> Self {
        let description = clean(&spec.description);
        let words = tokens(&spec.name);
        let first_word = tokens(&description).into_iter().next().unwrap_or_default();
        let mut deeds: Vec<VerbClass> = words.iter().filter_map(|word| deed(word)).collect();
        if deeds.is_empty() {
            deeds.extend(deed(&first_word));
        }
        // Only what describes counts here; the rest may be anything.
        let about = sentences(&description)
            .iter()
            .take(4)
            .flat_map(|sentence| tokens(&sentence.text))
            .map(|word| stem(&word))
            .filter(|word| !is_filler(word))
            .take(60)
            .collect();
        Self {
            parameters: parameters(&spec.parameters),
            words: words.iter().map(|word| stem(word)).collect(),
            name: spec.name.clone(),
            description,
            about,
            deeds,
        }
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&ToolParameter> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name.eq_ignore_ascii_case(name))
    }

    /// The parameter that takes whatever is to be told.
    pub(super) fn main_text(&self) -> Option<&ToolParameter> {
        let with = |role| {
            self.parameters
                .iter()
                .find(move |parameter| parameter.role == role)
        };
        with(Role::Content).or_else(|| with(Role::Query))
    }

    pub(super) fn is_agent(&self) -> bool {
        let only_message = self.parameters.len() == 1 && self.parameters[0].name == "message";
        only_message
            || self
                .words
                .iter()
                .any(|word| word == "agent" || word == "delegate")
    }

    /// Whether it brings something rather than doing something.
    pub(super) fn retrieves(&self) -> bool {
        self.deeds.contains(&VerbClass::Retrieve)
    }

    pub(super) fn deeds(&self) -> &[VerbClass] {
        &self.deeds
    }

    /// How often it praises itself, up to a point.
    fn praise(&self) -> i32 {
        const PRAISE: [&str; 9] = [
            "enhanced",
            "enterprise",
            "powered",
            "best",
            "superior",
            "recommended",
            "preferred",
            "official",
            "premium",
        ];
        let count = tokens(&self.description)
            .iter()
            .filter(|word| PRAISE.contains(&word.as_str()))
            .count();
        i32::try_from(count.min(3)).unwrap_or_default()
    }

    fn score(&self, text: &str, verb: &str) -> i32 {
        let wanted = deed(verb);
        if let Some(wanted) = wanted
            && !self.deeds.is_empty()
            && !self.deeds.contains(&wanted)
            && !self.words.iter().any(|word| akin(word, verb))
            && !(wanted == VerbClass::Delegate && self.is_agent())
        {
            // Who asks to see transactions does not ask to make one.
            return 0;
        }
        let mut score = 0;
        let mut counted: Vec<String> = Vec::new();
        for word in tokens(text) {
            let word = stem(&word);
            if is_filler(&word) || counted.contains(&word) || counted.len() > 200 {
                continue;
            }
            let group = noun_group(&word);
            score +=
                if self.words.iter().any(|own| akin(own, &word)) {
                    4
                } else if deed(&word).is_some_and(|deed| self.deeds.contains(&deed))
                    || group.is_some() && self.words.iter().any(|own| noun_group(own) == group)
                {
                    2
                } else if self.about.iter().any(|own| akin(own, &word)) {
                    1
                } else {
                    i32::from(self.parameters.iter().any(|parameter| {
                        tokens(&parameter.name).iter().any(|own| stem(own) == word)
                    }))
                };
            counted.push(word);
        }
        if score == 0 {
            return 0;
        }
        for literal in literals(text) {
            let role = match literal.kind {
                LiteralKind::Path => Role::Path,
                LiteralKind::Url => Role::Url,
                LiteralKind::Email => Role::Email,
                LiteralKind::Quoted | LiteralKind::Number | LiteralKind::Identifier => continue,
            };
            score += 2 * i32::from(
                self.parameters
                    .iter()
                    .any(|parameter| parameter.role == role),
            );
        }
        score
    }

    /// Where a text names the tool: by its name, or by the words of its name in a row.
    fn named_at(&self, lower: &str, words: &[String]) -> Option<usize> {
        let name = self.name.to_lowercase();
        let by_name = tails(&name).find_map(|tail| found_at(lower, tail));
        by_name.or_else(|| {
            let own = tokens(&self.name);
            let in_a_row = own.len() > 1 && words.windows(own.len()).any(|window| window == own);
            in_a_row.then(|| lower.find(own[0].as_str()))?
        })
    }
}

/// A name, and what is left of it without the words in front: servers put their own name there, which a text that
/// was written for one server does not know. A single word is too little to go by.
fn tails(name: &str) -> impl Iterator<Item = &str> {
    let cuts = name.match_indices('_').map(|(place, _)| &name[place + 1..]);
    let long = cuts.filter(|tail| tail.trim_matches('_').contains('_'));
    std::iter::once(name).chain(long)
}

/// Where a name stands in a text as a word of its own.
fn found_at(lower: &str, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let is_compound = tokens(name).len() > 1;
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut places = lower.match_indices(name).map(|(place, _)| place);
    places.find(|start| {
        let (before, after) = (&lower[..*start], &lower[start + name.len()..]);
        let whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        // A name that is an everyday word counts only where it is called a tool, or called.
        let unquoted = after.strip_prefix(['"', '`', '\'']).unwrap_or(after);
        let is_meant = is_compound
            || unquoted.starts_with(" tool")
            || after.starts_with('(')
            || before.ends_with('`')
            || ["call ", "invoke ", "use ", "using "]
                .iter()
                .any(|lead| before.ends_with(lead));
        whole && is_meant
    })
}

fn parameters(schema: &Value) -> Vec<ToolParameter> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut found: Vec<ToolParameter> = properties
        .iter()
        .take(MAX_PARAMETERS)
        .map(|(name, property)| {
            let text = |key: &str| {
                property
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let kind = match property.get("type") {
                Some(Value::String(kind)) => kind.clone(),
                Some(Value::Array(kinds)) => kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .find(|kind| *kind != "null")
                    .unwrap_or("string")
                    .to_owned(),
                _ => "string".to_owned(),
            };
            let description = clean(text("description"));
            ToolParameter {
                role: role(name, &description, text("format")),
                name: name.clone(),
                description,
                kind,
                required: required.contains(&name.as_str()),
                default: property.get("default").cloned(),
                choices: property
                    .get("enum")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default(),
            }
        })
        .collect();
    found.sort_by_key(|parameter| !parameter.required);
    found
}

fn role(name: &str, description: &str, format: &str) -> Role {
    let words = tokens(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let about: Vec<String> = tokens(description).into_iter().take(12).collect();
    let says = |word: &str| about.iter().any(|own| own == word);
    if format == "email"
        || has(&["email", "recipient", "recipients", "cc", "bcc", "mailto"])
        || has(&["to", "address"]) && (says("email") || says("recipient"))
        || words == ["to"]
    {
        Role::Email
    } else if format == "uri" || has(&["url", "uri", "link", "href"]) {
        Role::Url
    } else if has(&["path", "file", "filename", "filepath"]) && !has(&["content", "contents"]) {
        Role::Path
    } else if has(&["subject", "title"]) {
        Role::Subject
    } else if has(&["city", "location", "place", "country", "region", "town"]) {
        Role::Place
    } else if has(&[
        "body",
        "content",
        "contents",
        "payload",
        "data",
        "message",
        "text",
        "note",
        "notes",
        "comment",
        "attachment",
        "input",
        "task",
        "document",
        "code",
    ]) {
        Role::Content
    } else if has(&[
        "query", "q", "search", "question", "prompt", "term", "keyword", "keywords", "pattern",
        "topic",
    ]) {
        Role::Query
    } else {
        Role::Other
    }
}
