//! What the tests of simulations share: tools in a few words, and a loop that plays the agent.

use proofhouse_agent::model::{
    Arguments, ChatMessage, Model, ModelOptions, ModelReply, ModelRequest, ToolCall, ToolSpec,
};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

/// More turns than any task here needs.
const MAX_TURNS: usize = 40;

/// A tool whose parameters are `name:type`, with `?` at the end for an optional one.
pub(crate) fn tool(name: &str, description: &str, parameters: &[&str]) -> ToolSpec {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        let (name, kind) = parameter.split_once(':').unwrap_or((parameter, "string"));
        let plain = kind.trim_end_matches('?');
        properties.insert(name.to_owned(), json!({"type": plain}));
        if !kind.ends_with('?') {
            required.push(name.to_owned());
        }
    }
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "properties": properties, "required": required}),
    }
}

/// What a run of the loop did.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) calls: Vec<(String, Map<String, Value>)>,
    pub(crate) text: String,
    pub(crate) turns: usize,
}

impl Played {
    /// The calls of one tool.
    pub(crate) fn of<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p Map<String, Value>> {
        self.calls
            .iter()
            .filter(move |(called, _)| called == name)
            .map(|(_, arguments)| arguments)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.calls.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// Plays an agent: asks, answers the calls, asks again.
pub(crate) async fn play(
    model: &dyn Model,
    system: Option<&str>,
    tools: Vec<ToolSpec>,
    user: &str,
    answer: &dyn Fn(&str, &Map<String, Value>) -> String,
) -> Played {
    let mut request = ModelRequest {
        system: system.map(str::to_owned),
        messages: vec![ChatMessage::user(user)],
        tools,
        options: ModelOptions {
            seed: Some(7),
            ..ModelOptions::default()
        },
    };
    let mut played = Played {
        calls: Vec::new(),
        text: String::new(),
        turns: 0,
    };
    for _ in 0..MAX_TURNS {
        played.turns += 1;
        let reply = ask(model, &request).await;
        request.messages.push(ChatMessage::Assistant {
            text: reply.text.clone(),
            calls: reply.calls.clone(),
        });
        if reply.calls.is_empty() {
            played.text = reply.text;
            return played;
        }
        for call in &reply.calls {
            let arguments = object(call);
            let content = answer(&call.name, &arguments);
            request
                .messages
                .push(ChatMessage::tool(call, content, false));
            played.calls.push((call.name.clone(), arguments));
        }
    }
    panic!("no end after {MAX_TURNS} turns: {played:?}");
}

pub(crate) async fn ask(model: &dyn Model, request: &ModelRequest) -> ModelReply {
    let mut events = Vec::new();
    let reply = model
        .complete(request, &mut events, &CancellationToken::new())
        .await
        .expect("simulations always answer");
    let again = model
        .complete(request, &mut Vec::new(), &CancellationToken::new())
        .await;
    assert_eq!(
        again.as_ref(),
        Ok(&reply),
        "the same request has the same reply"
    );
    reply
}

fn object(call: &ToolCall) -> Map<String, Value> {
    match &call.arguments {
        Arguments::Object(object) => object.clone(),
        Arguments::Malformed { .. } => panic!("{call:?}"),
    }
}
