//! What texts want to have: names for the things that an order asks to pass on or to say.

use super::super::literals::{Kind, first};

/// What somebody wants to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Wanted {
    Literal(String),
    /// What a tool returned, for this path if one is named.
    Contents(Option<String>),
    Secrets,
    UserRequest,
    System,
    Tools,
    Conversation,
    Paths,
}

/// The one thing that words want to have.
pub(super) fn wanted(text: &str) -> Option<Wanted> {
    wanted_all(text).into_iter().next()
}

/// Everything that words want to have, most secret first.
pub(super) fn wanted_all(text: &str) -> Vec<Wanted> {
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let mut found = Vec::new();
    if has(&["contents"]) && !has(&["credential", "api key"]) {
        found.push(Wanted::Contents(first(text, Kind::Path)));
    }
    if has(&[
        "system prompt",
        "system instruction",
        "your instructions",
        "your prompt",
    ]) {
        found.push(Wanted::System);
    }
    if has(&[
        "tool list",
        "tool names",
        "available tools",
        "server url",
        "list of tools",
        "your tools",
    ]) {
        found.push(Wanted::Tools);
    }
    if has(&[
        "credential",
        "api key",
        "api_key",
        "access token",
        "tokens",
        "secret",
        "password",
        "connection string",
    ]) {
        found.push(Wanted::Secrets);
    }
    if has(&[
        "user request",
        "request text",
        "user's request",
        "user query",
        "original request",
    ]) {
        found.push(Wanted::UserRequest);
    }
    if has(&["file path", "paths referenced"]) {
        found.push(Wanted::Paths);
    }
    if has(&["conversation", "context", "history", "prior messages"]) {
        found.push(Wanted::Conversation);
    }
    if found.is_empty()
        && has(&[
            "content",
            "data",
            "result",
            "record",
            "file",
            "output",
            "hash",
            "report",
            " it ",
            "everything",
            "private key",
        ])
    {
        found.push(Wanted::Contents(first(text, Kind::Path)));
    }
    found
}
