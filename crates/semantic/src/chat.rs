//! One question to a chat model, and the words of its one answer.

use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use crate::failure::Failure;

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

/// What the model says; nothing when it says nothing.
pub(crate) fn ask(client: &Client, question: &Value) -> Result<String, Failure> {
    let answer: Answer = client.ask("/chat/completions", question)?;
    let mut choices = answer.choices;
    match (choices.pop(), choices.len()) {
        (Some(choice), 0) => Ok(choice.message.content.unwrap_or_default()),
        (None, _) => Err(Failure::bad_answer("0 choices")),
        (Some(_), others) => Err(Failure::bad_answer(format!("{} choices", others + 1))),
    }
}
