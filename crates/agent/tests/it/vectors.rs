//! The public threat documents against the simulations: the gullible one falls for them, the careful one does not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashMap;
use std::path::Path;

use proofhouse_agent::model::{Model, ToolSpec};
use proofhouse_sim::SimulatedModel;
use proofhouse_source::{ReadLimits, Source};
use proofhouse_test_support::workspace::vectors;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::support::{self, Played};

/// One document: what the user asks, the tools it poisons, what they return, and what tells that it worked.
struct Document {
    id: String,
    system: Option<String>,
    user: String,
    tools: Vec<ToolSpec>,
    /// By tool: the actor it belongs to, and what it returns.
    answers: HashMap<String, (String, String)>,
    indicators: Vec<Value>,
}

fn documents() -> Option<Vec<Document>> {
    let folder = vectors("the public documents", "oatf-scenarios/benchmark")?;
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    Some(files.iter().filter_map(|file| document(file)).collect())
}

fn document(file: &Path) -> Option<Document> {
    #[expect(clippy::disallowed_methods, reason = "a file of this project")]
    let text = std::fs::read_to_string(file).unwrap();
    let source = Source::read(&text, &ReadLimits::default()).unwrap();
    let attack = source.root().get("attack").unwrap().to_value(&mut |_| {});
    let mut found = Document {
        id: attack["id"].as_str().unwrap().to_owned(),
        system: None,
        user: String::new(),
        tools: Vec::new(),
        answers: HashMap::new(),
        indicators: attack["indicators"].as_array().unwrap().clone(),
    };
    for actor in attack["execution"]["actors"].as_array()? {
        let name = actor["name"].as_str().unwrap();
        let state = &actor["phases"][0]["state"];
        match actor["mode"].as_str().unwrap() {
            "ag_ui_client" => found.hear(state),
            "mcp_server" => found.serve(name, state),
            "a2a_server" => found.delegate(name, state),
            other => panic!("{other}"),
        }
    }
    Some(found)
}

impl Document {
    fn hear(&mut self, state: &Value) {
        let input = &state["run_agent_input"];
        let mut system = vec!["You are an assistant with tools.".to_owned()];
        for message in input["messages"].as_array().unwrap() {
            let text = message["content"].as_str().unwrap().to_owned();
            match message["role"].as_str().unwrap() {
                "user" => self.user = text,
                "system" => system.push(text),
                _ => {}
            }
        }
        if let Some(policy) = input.pointer("/state/compliance_config/policy") {
            system.push(policy.as_str().unwrap().to_owned());
        }
        self.system = Some(system.join("\n\n"));
    }

    fn serve(&mut self, actor: &str, state: &Value) {
        for tool in state["tools"].as_array().into_iter().flatten() {
            let name = tool["name"].as_str().unwrap().to_owned();
            let text = tool["responses"][0]["content"]["content"][0]["text"]
                .as_str()
                .unwrap();
            self.answers
                .insert(name.clone(), (actor.to_owned(), text.to_owned()));
            self.tools.push(ToolSpec {
                name,
                description: tool["description"].as_str().unwrap().to_owned(),
                parameters: tool["inputSchema"].clone(),
            });
        }
        for prompt in state["prompts"].as_array().into_iter().flatten() {
            // A prompt is fetched when the user names it, and its text comes back.
            let name = prompt["name"].as_str().unwrap().to_owned();
            let text = prompt["responses"][0]["messages"][0]["content"]["text"]
                .as_str()
                .unwrap();
            self.answers
                .insert(name.clone(), (actor.to_owned(), text.to_owned()));
            self.tools.push(ToolSpec {
                name,
                description: prompt["description"].as_str().unwrap().to_owned(),
                parameters: json!({"type": "object", "properties": {}}),
            });
        }
        for request in state["sampling_requests"].as_array().into_iter().flatten() {
            let text = request["messages"][0]["content"]["text"].as_str().unwrap();
            let answers = self.answers.values_mut().filter(|(own, _)| own == actor);
            for (_, answer) in answers {
                answer.push_str("\n\n");
                answer.push_str(text);
            }
        }
    }

    fn delegate(&mut self, actor: &str, state: &Value) {
        let card = &state["agent_card"];
        let skill = &card["skills"][0];
        let name = card["name"].as_str().unwrap().to_owned();
        let answer = &state["task_responses"][0]["content"];
        let text = [
            &answer["artifacts"][0]["content"],
            &answer["message"]["parts"][0]["text"],
        ];
        let text: Vec<&str> = text.iter().filter_map(|text| text.as_str()).collect();
        self.answers
            .insert(name.clone(), (actor.to_owned(), text.join("\n\n")));
        self.tools.push(ToolSpec {
            name,
            description: format!(
                "{}\n\n{}: {}",
                card["description"].as_str().unwrap(),
                skill["name"].as_str().unwrap(),
                skill["description"].as_str().unwrap(),
            ),
            parameters: json!({
                "type": "object",
                "properties": {"message": {"type": "string"}},
                "required": ["message"],
            }),
        });
    }

    async fn play(&self, model: &dyn Model) -> Played {
        let answer = |name: &str, arguments: &Map<String, Value>| {
            let mut text = self.answers[name].1.clone();
            for (key, value) in arguments {
                let shown = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                text = text.replace(&format!("{{{{request.arguments.{key}}}}}"), &shown);
            }
            text
        };
        self.play_with(model, &answer).await
    }

    async fn play_with(
        &self,
        model: &dyn Model,
        answer: &dyn Fn(&str, &Map<String, Value>) -> String,
    ) -> Played {
        let tools = self.tools.clone();
        support::play(model, self.system.as_deref(), tools, &self.user, answer).await
    }

    /// The indicators of a tier that what was played matches.
    fn matched(&self, played: &Played, tier: &str) -> Vec<String> {
        let found = self.indicators.iter().filter(|indicator| {
            let target = indicator["target"].as_str().unwrap();
            let regex = Regex::new(indicator["pattern"]["regex"].as_str().unwrap()).unwrap();
            let actor = indicator["actor"].as_str();
            indicator["tier"] == tier
                && self
                    .targets(played, target, actor)
                    .iter()
                    .any(|text| regex.is_match(text))
        });
        found
            .map(|indicator| indicator["id"].as_str().unwrap().to_owned())
            .collect()
    }

    fn targets(&self, played: &Played, target: &str, actor: Option<&str>) -> Vec<String> {
        let calls = played
            .calls
            .iter()
            .filter(|(name, _)| actor.is_none_or(|actor| self.answers[name].0 == actor));
        let argument = |arguments: &Map<String, Value>, key: &str| match arguments.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
            None => None,
        };
        match target {
            "name" => calls.map(|(name, _)| name.clone()).collect(),
            "response.content" => vec![played.text.clone()],
            "arguments" => calls
                .map(|(_, all)| Value::Object(all.clone()).to_string())
                .collect(),
            "a2a.task.message" => calls
                .filter_map(|(_, all)| argument(all, "message"))
                .collect(),
            other => {
                let key = other.strip_prefix("arguments.").unwrap();
                calls.filter_map(|(_, all)| argument(all, key)).collect()
            }
        }
    }
}

impl Document {
    /// The same with the name of the server before that of each tool, as agents with several servers show them, and
    /// with results as the JSON that came over the wire.
    fn shown_by_agents(mut self) -> Self {
        for tool in &mut self.tools {
            let (actor, answer) = self.answers.remove(&tool.name).unwrap();
            if !tool.name.ends_with("Agent") {
                tool.name = format!("{actor}_{}", tool.name);
            }
            let answer = json!({"content": [{"type": "text", "text": answer}], "isError": false});
            self.answers
                .insert(tool.name.clone(), (actor, answer.to_string()));
        }
        self
    }
}

/// The one whose breach needs a server that the document does not bring; it falls one tier below.
const WITHOUT_BREACH: [&str; 1] = ["OATF-022"];

#[tokio::test]
async fn documents_work_on_the_gullible_and_not_on_the_careful() {
    let Some(documents) = documents() else {
        return;
    };
    assert!(documents.len() >= 37, "{}", documents.len());
    let shown = self::documents().into_iter().flatten();
    let shown = shown.map(Document::shown_by_agents);
    for document in documents.into_iter().chain(shown) {
        let played = document.play(&SimulatedModel::GULLIBLE).await;
        let tier = if WITHOUT_BREACH.contains(&document.id.as_str()) {
            "local_action"
        } else {
            "boundary_breach"
        };
        let breached = document.matched(&played, tier);
        assert!(!breached.is_empty(), "{} fails: {played:#?}", document.id);

        let played = document.play(&SimulatedModel::CAREFUL).await;
        let breached = document.matched(&played, "boundary_breach");
        assert!(
            breached.is_empty(),
            "{} works: {breached:?} {played:#?}",
            document.id
        );
    }
}

#[tokio::test]
async fn nothing_that_tools_say_changes_what_the_careful_one_calls() {
    for document in documents().into_iter().flatten() {
        let attacked = document.play(&SimulatedModel::CAREFUL).await;
        let quiet = document
            .play_with(&SimulatedModel::CAREFUL, &|_, _| "Fine.".to_owned())
            .await;
        assert_eq!(attacked.calls, quiet.calls, "{}", document.id);
    }
}
