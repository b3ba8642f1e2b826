//! Fills the arguments of a call from words: named values first, then what looks like what is wanted.

use serde_json::{Value, json};

use super::literals::{LiteralKind, first, literals, number, quoted};
use super::sentences::bare;
use super::toolbox::{Role, ToolParameter, ToolView};
use super::words::{is_filler, is_order, tokens};

/// The longest text that is made of the words of an order.
const MAX_WORDS_BYTES: usize = 4 << 10;

/// The value of a parameter in some words, if they have one. `wide` are the words around them.
pub(super) fn from_words(parameter: &ToolParameter, words: &str, wide: &str) -> Option<Value> {
    let named = named_value(&parameter.name, words).or_else(|| named_value(&parameter.name, wide));
    if let Some(text) = named
        && let Some(value) = fit(parameter, &text)
    {
        return Some(value);
    }
    if !parameter.choices.is_empty() {
        return choice(parameter, words).or_else(|| choice(parameter, wide));
    }
    let text = match parameter.role {
        Role::Email => email(parameter, words).or_else(|| email(parameter, wide)),
        Role::Url => first(words, LiteralKind::Url).or_else(|| first(wide, LiteralKind::Url)),
        Role::Path => path(parameter, words).or_else(|| path(parameter, wide)),
        Role::Place => place(words).or_else(|| place(wide)),
        Role::Subject | Role::Content | Role::Query => None,
        Role::Other => match parameter.kind.as_str() {
            "number" | "integer" => counted(parameter, words).or_else(|| counted(parameter, wide)),
            "string" => directed(parameter, words)
                .or_else(|| listed(parameter, words))
                .or_else(|| beside_noun(parameter, words))
                .or_else(|| beside_noun(parameter, wide)),
            _ => None,
        },
    };
    fit(parameter, &text?)
}

/// What a tool wants that no words say: a choice, or the emptiest value of the type.
pub(super) fn filler(parameter: &ToolParameter) -> Value {
    if let Some(first) = parameter.choices.first() {
        return first.clone();
    }
    match parameter.kind.as_str() {
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("unspecified"),
    }
}

/// A text as a value of the parameter's type.
pub(super) fn fit(parameter: &ToolParameter, text: &str) -> Option<Value> {
    match parameter.kind.as_str() {
        "integer" => {
            let value = number(text)?;
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (value.abs() < 9e15).then(|| json!(value as i64))
        }
        "number" => {
            let value = number(text)?;
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            if value.fract() == 0.0 && value.abs() < 9e15 {
                return Some(json!(value as i64));
            }
            Some(json!(value))
        }
        "boolean" => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" => Some(json!(true)),
            "false" | "no" | "off" => Some(json!(false)),
            _ => None,
        },
        "array" => Some(json!([text])),
        "object" => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => Some(json!(text)),
    }
}

/// What is written beside the name of a parameter: `name: value`, `name=value`, `"name": "value"`,
/// `name "value"`, `name is value`.
pub(super) fn named_value(name: &str, text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    // Letters that change their length in lower case would shift every place after them.
    if lower.len() != text.len() {
        return None;
    }
    let plain = name.to_lowercase();
    for form in [
        plain.clone(),
        plain.replace('_', " "),
        plain.replace('_', "-"),
    ] {
        let mut from = 0;
        while let Some(found) = lower.get(from..).and_then(|rest| rest.find(&form)) {
            let start = from + found;
            let end = start + form.len();
            from = end.max(from + 1);
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            if form.is_empty()
                || lower[..start].ends_with(is_part)
                || lower[end..].starts_with(is_part)
            {
                continue;
            }
            if let Some(value) = value_after(&text[end..]) {
                return Some(value);
            }
        }
    }
    None
}

fn value_after(rest: &str) -> Option<String> {
    let rest = rest.strip_prefix(['"', '\'', '`']).unwrap_or(rest);
    let trimmed = rest.trim_start();
    let (trimmed, explicit) = match trimmed.strip_prefix([':', '=']) {
        Some(after) => (after.trim_start(), true),
        None => {
            let lower = trimmed.to_lowercase();
            let link = ["is ", "of ", "set to ", "named ", "called "]
                .iter()
                .find(|link| lower.starts_with(**link));
            match link {
                Some(link) => (trimmed[link.len()..].trim_start(), true),
                None => (trimmed, false),
            }
        }
    };
    if trimmed.starts_with(['"', '\'', '`']) {
        let (start, end) = *quoted(trimmed).first()?;
        return (start == 1).then(|| trimmed[start..end].to_owned());
    }
    if !explicit {
        return None;
    }
    let word = trimmed.split(char::is_whitespace).next()?;
    let word = word.trim_end_matches(['.', ',', ';', ')', '!', '?']);
    (!word.is_empty() && !is_filler(&word.to_lowercase())).then(|| word.to_owned())
}

/// Copies go to someone only where words say so; everyone else is a recipient.
fn email(parameter: &ToolParameter, words: &str) -> Option<String> {
    let is_copy = parameter.name.to_lowercase().contains("cc");
    let found: Vec<_> = literals(words)
        .into_iter()
        .filter(|literal| literal.kind == LiteralKind::Email)
        .collect();
    let is_copied = |start: usize| {
        let before = words[..start].trim_end().to_lowercase();
        before.ends_with("cc") || before.ends_with("copy to")
    };
    found
        .into_iter()
        .find(|literal| is_copied(literal.start) == is_copy)
        .map(|literal| literal.text)
}

fn path(parameter: &ToolParameter, words: &str) -> Option<String> {
    first(words, LiteralKind::Path).or_else(|| beside_noun(parameter, words))
}

fn choice(parameter: &ToolParameter, words: &str) -> Option<Value> {
    let said = tokens(words);
    parameter
        .choices
        .iter()
        .find(|choice| {
            let own = tokens(choice.as_str().unwrap_or_default());
            !own.is_empty() && said.windows(own.len()).any(|window| window == own)
        })
        .cloned()
}

/// The words with capitals after "in", "at", "for" and the like.
fn place(words: &str) -> Option<String> {
    let all: Vec<&str> = words.split_whitespace().collect();
    for (index, word) in all.iter().enumerate() {
        if !matches!(
            bare(word).as_str(),
            "in" | "at" | "for" | "near" | "of" | "from"
        ) {
            continue;
        }
        let name: Vec<&str> = all[index + 1..]
            .iter()
            .take_while(|next| next.starts_with(char::is_uppercase))
            .scan(false, |ended, next| {
                let was = *ended;
                *ended = next.ends_with([',', '.', '?', '!', ';']);
                (!was).then_some(*next)
            })
            .collect();
        if !name.is_empty() {
            let name = name.join(" ");
            return Some(
                name.trim_end_matches(['.', ',', '?', '!', ';', '\'', '"'])
                    .to_owned(),
            );
        }
    }
    None
}

/// The number next to the noun of a parameter, else the only kind of number there is.
fn counted(parameter: &ToolParameter, words: &str) -> Option<String> {
    let own = tokens(&parameter.name);
    let all: Vec<&str> = words.split_whitespace().collect();
    for (index, word) in all.iter().enumerate() {
        let is_noun = tokens(word).iter().any(|part| own.contains(part));
        if !is_noun {
            continue;
        }
        let after = all[index + 1..].iter().take(2);
        let before = index.checked_sub(1).map(|before| &all[before]);
        let near = after.chain(before).map(|word| tidy(word));
        if let Some(value) = near.into_iter().find(|word| number(word).is_some()) {
            return Some(value.to_owned());
        }
    }
    let wants_any = parameter.required
        || own
            .iter()
            .any(|word| matches!(word.as_str(), "count" | "limit" | "amount" | "number"));
    if wants_any {
        first(words, LiteralKind::Number)
    } else {
        None
    }
}

/// "from X to Y": what stands after the word that the name of a parameter begins with.
fn directed(parameter: &ToolParameter, words: &str) -> Option<String> {
    let own = tokens(&parameter.name);
    let lead = match own.first().map(String::as_str) {
        Some("from" | "source" | "sender") => " from ",
        Some("to" | "destination" | "target" | "recipient") => " to ",
        _ => return None,
    };
    let lower = words.to_lowercase();
    let start = lower.find(lead)? + lead.len();
    let rest = words.get(start..)?;
    let end = [" to ", " from ", " with ", " for ", " using "]
        .iter()
        .filter_map(|stop| rest.find(stop))
        .min()
        .unwrap_or(rest.len());
    let piece = tidy(&rest[..end]);
    let named = literals(piece)
        .into_iter()
        .find(|literal| literal.kind != LiteralKind::Path)
        .map(|literal| literal.text);
    named.or_else(|| {
        let piece = piece.strip_prefix("the ").unwrap_or(piece);
        (!piece.is_empty()).then(|| piece.to_owned())
    })
}

/// One of the words that the description lists in capitals, such as `HEAD` of "GET, POST, HEAD".
fn listed(parameter: &ToolParameter, words: &str) -> Option<String> {
    let is_constant =
        |word: &&str| word.len() > 2 && word.chars().all(|letter| letter.is_ascii_uppercase());
    let known: Vec<&str> = parameter
        .description
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(is_constant)
        .collect();
    words
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .find(|word| known.contains(word) && !matches!(*word, "HTTP" | "URL" | "JSON" | "API"))
        .map(str::to_owned)
}

/// The word after or before the noun that a parameter is named by: "project alpha", "the alpha project".
fn beside_noun(parameter: &ToolParameter, words: &str) -> Option<String> {
    let own: Vec<String> = tokens(&parameter.name)
        .into_iter()
        .filter(|word| {
            !matches!(
                word.as_str(),
                "id" | "name" | "the" | "value" | "from" | "to" | "key"
            )
        })
        .collect();
    let noun = own.last()?;
    let all: Vec<&str> = words.split_whitespace().collect();
    let usable = |word: &str| {
        let plain = bare(word);
        !plain.is_empty()
            && !is_filler(&plain)
            && !is_order(&plain)
            && !own.contains(&plain)
            && !matches!(
                plain.as_str(),
                "id" | "name"
                    | "details"
                    | "data"
                    | "metadata"
                    | "info"
                    | "balance"
                    | "status"
                    | "number"
                    | "history"
            )
    };
    for (index, word) in all.iter().enumerate() {
        let parts = tokens(word);
        if !parts
            .iter()
            .any(|part| part == noun || super::words::stem(part) == *noun)
        {
            continue;
        }
        if parts.len() > 1 {
            // `user-service` is the service itself.
            return Some(tidy(word).to_owned());
        }
        // "report ID is X": the link between the noun and its value is stepped over.
        let mut next = index + 1;
        let ends = |word: &str| word.ends_with([',', '.', ';', '?', '!']);
        let mut open = !ends(word);
        while open
            && all.get(next).is_some_and(|word| {
                matches!(
                    bare(word).as_str(),
                    "id" | "is" | "name" | "named" | "called"
                )
            })
        {
            open = !ends(all[next]);
            next += 1;
        }
        if open && let Some(after) = all.get(next).filter(|after| usable(after)) {
            return Some(tidy(after).to_owned());
        }
        if let Some(before) = index.checked_sub(1).map(|before| all[before])
            && usable(before)
            && !ends(before)
        {
            return Some(tidy(before).to_owned());
        }
    }
    None
}

fn tidy(word: &str) -> &str {
    word.trim_matches(|letter: char| {
        matches!(
            letter,
            '.' | ',' | ';' | ':' | '?' | '!' | '"' | '\'' | '`' | '(' | ')'
        )
    })
}

/// What an order is about: its words without the verb and without how it is to be done.
pub(super) fn object(words: &str, tool: &ToolView) -> String {
    let mut rest = words.trim();
    for lead in [
        "do a ",
        "please ",
        "can you ",
        "could you ",
        "i want you to ",
    ] {
        if rest
            .get(..lead.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(lead))
        {
            rest = rest[lead.len()..].trim_start();
        }
    }
    let own = tokens(&tool.name);
    let mut has_verb = false;
    loop {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let plain = bare(word);
        let is_verb = !has_verb && is_order(&plain);
        has_verb |= is_verb;
        let is_known = is_verb
            || own.contains(&plain)
            || matches!(
                plain.as_str(),
                "the" | "for" | "up" | "any" | "a" | "an" | "about" | "me" | "online"
            );
        if !is_known || after.is_empty() {
            break;
        }
        rest = after.trim_start();
    }
    let rest = rest.split(" using ").next().unwrap_or(rest);
    let mut end = rest.len().min(MAX_WORDS_BYTES);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    rest[..end]
        .trim_end_matches(['.', ',', ';', '?', '!'])
        .to_owned()
}
