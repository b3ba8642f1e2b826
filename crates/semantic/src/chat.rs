//! One question to a chat model, and the words of its one answer.

use serde::Deserialize;
use serde_json::Value;

use crate::client::ModelClient;
use crate::failure::SemanticFailure;

#[derive(Deserialize)]
struct ChatCompletion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: ChatReply,
}

#[derive(Deserialize)]
struct ChatReply {
    content: Option<String>,
}

/// What the model says; nothing when it says nothing.
pub(crate) fn ask(client: &ModelClient, question: &Value) -> Result<String, SemanticFailure> {
    let answer: ChatCompletion = client.ask("/chat/completions", question)?;
    let mut choices = answer.choices;
    match (choices.pop(), choices.len()) {
        (Some(choice), 0) => Ok(choice.message.content.unwrap_or_default()),
        (None, _) => Err(SemanticFailure::bad_answer("0 choices")),
        (Some(_), others) => Err(SemanticFailure::bad_answer(format!(
            "{} choices",
            others + 1
        ))),
    }
}
