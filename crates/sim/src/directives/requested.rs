//! What texts want to have: names for the things that an order asks to pass on or to say.

use super::super::literals::{LiteralKind, first};

/// What somebody wants to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Requested {
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
pub(super) fn requested(text: &str) -> Option<Requested> {
    all_requested(text).into_iter().next()
}

/// Everything that words want to have, most secret first.
pub(super) fn all_requested(text: &str) -> Vec<Requested> {
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let mut found = Vec::new();
    if has(&["contents"]) && !has(&["credential", "api key"]) {
        found.push(Requested::Contents(first(text, LiteralKind::Path)));
    }
    if has(&[
        "system prompt",
        "system instruction",
        "your instructions",
        "your prompt",
    ]) {
        found.push(Requested::System);
    }
    if has(&[
        "tool list",
        "tool names",
        "available tools",
        "server url",
        "list of tools",
        "your tools",
    ]) {
        found.push(Requested::Tools);
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
        found.push(Requested::Secrets);
    }
    if has(&[
        "user request",
        "request text",
        "user's request",
        "user query",
        "original request",
    ]) {
        found.push(Requested::UserRequest);
    }
    if has(&["file path", "paths referenced"]) {
        found.push(Requested::Paths);
    }
    if has(&["conversation", "context", "history", "prior messages"]) {
        found.push(Requested::Conversation);
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
        found.push(Requested::Contents(first(text, LiteralKind::Path)));
    }
    found
}
