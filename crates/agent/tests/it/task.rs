//! Tasks: bindings, steps, guardrails, limits, reviews, delegation, and what models do wrong.

use std::time::Duration;

use proofhouse_agent::model::{Arguments, ChatMessage, ModelError, ModelErrorKind, ToolCall};
use proofhouse_agent::task::{
    CallStatus, Decision, EndReason, TaskEvent, TaskInput, TaskOptions, Turn,
};
use serde_json::{Value, json};

use crate::tasks::*;

/// The statuses and results of the calls of a task.
fn calls(task: &proofhouse_agent::task::Task) -> Vec<(String, CallStatus, Value)> {
    let history = task.history();
    let calls = history.into_iter().filter_map(|turn| match turn {
        Turn::Capability {
            function,
            status,
            result,
            ..
        } => Some((function, status, result)),
        _ => None,
    });
    calls.collect()
}

#[tokio::test]
async fn a_task_calls_answers_and_waits_for_more() {
    let model = Puppet::calling(vec![("notes_read", json!({"path": "a"}))]);
    let task = start(&agent("capabilities: {notes: '*'}\n"), model.clone());
    let mut events = task.events();
    let output = task.send(TaskInput::message("read a")).await;
    assert_eq!((output.message.as_str(), output.ended), ("done", None));
    let output = task.send(TaskInput::message("again")).await;
    assert_eq!(output.message, "done");
    let context = task.context();
    assert_eq!(
        context["_history"]["turns"],
        json!([
            "input",
            "llm",
            "capability",
            "llm",
            "input",
            "llm",
            "capability",
            "llm"
        ])
    );
    assert_eq!(context["capabilities"]["notes_read"]["count_successful"], 2);
    assert_eq!(
        context["capabilities"]["notes_write"]["count_successful"],
        0
    );
    assert_eq!(
        context["llm"]["tokens"],
        json!({"total": 60, "prompt": 40, "completion": 20})
    );
    assert_eq!(context["input"][1]["message"][0]["text"], "again");
    assert_eq!(context["user"]["email"], "u1@example.com");
    let asked = model.asked.lock().unwrap().clone();
    let names: Vec<&str> = asked[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["notes_read", "notes_write", "notes_fail"]);
    assert_eq!(asked[3].messages.len(), 7);
    assert_eq!(task.allowed().values("notes", "path"), [json!("a")]);
    task.end().await;
    assert_eq!(task.ended().unwrap().reason, EndReason::Closed);
    let output = task.send(TaskInput::message("still there?")).await;
    assert_eq!(output.ended.unwrap().reason, EndReason::Closed);
    let mut seen = Vec::new();
    while let Ok(event) = events.recv().await {
        seen.push(event);
        if matches!(seen.last(), Some(TaskEvent::Ended(_))) {
            break;
        }
    }
    assert!(
        seen.iter()
            .any(|event| matches!(event, TaskEvent::CallEnd { .. }))
    );
}

#[tokio::test]
async fn bound_parameters_are_hidden_and_cannot_be_overridden() {
    let attempt = json!({"path": "a", "owner": "mallory"});
    let model = Puppet::calling(vec![("notes_read", attempt)]);
    let rest = "capabilities: {notes: {bindings: {owner: context.user.id}}}\n";
    let task = start(&agent(rest), model.clone());
    task.send(TaskInput::message("read a")).await;
    assert_eq!(calls(&task)[0].2, json!({"owner": "u1", "path": "a"}));
    let schema = model.asked.lock().unwrap()[0].tools[0].parameters.clone();
    assert!(schema["properties"].get("owner").is_none(), "{schema}");
    assert_eq!(task.allowed().values("notes", "owner"), [json!("u1")]);
}

#[tokio::test]
async fn include_hides_the_rest() {
    let model = Puppet::calling(vec![("notes_write", json!({"path": "a"}))]);
    let task = start(
        &agent("capabilities: {notes: {include: [read]}}\n"),
        model.clone(),
    );
    task.send(TaskInput::message("write a")).await;
    let told = &calls(&task)[0];
    assert_eq!(told.1, CallStatus::Errored);
    assert!(
        told.2["message"].as_str().unwrap().contains("notes_write"),
        "{told:?}"
    );
    assert_eq!(model.asked.lock().unwrap()[0].tools.len(), 1);
}

#[tokio::test]
async fn steps_block_change_and_count() {
    let rest = r#"capabilities:
  notes:
    before_first: [{invoke: "audit-log:record", bindings: {what: "'first ' + input.path"}}]
    before:
      - {assert: "c.cap.notes_read.count_successful < 2", error_message: "enough of {input.path}"}
      - {assert: "false", match: write}
    after: [{transform: "output.put('seen', now)"}]
"#;
    let wanted = vec![
        ("notes_read", json!({"path": "a"})),
        ("notes_write", json!({"path": "w"})),
        ("notes_read", json!({"path": "b"})),
        ("notes_read", json!({"path": "c"})),
    ];
    let task = start(&agent(rest), Puppet::calling(wanted));
    task.send(TaskInput::message("go")).await;
    let told = calls(&task);
    let statuses: Vec<CallStatus> = told.iter().map(|call| call.1).collect();
    use CallStatus::{Restricted, Successful};
    assert_eq!(statuses, [Successful, Restricted, Successful, Restricted]);
    assert_eq!(told[0].2["seen"], "2026-01-02T03:04:05.000Z");
    assert_eq!(told[3].2["message"], "enough of c");
    let context = task.context();
    // The original result is kept, and steps are no turns.
    assert!(
        context["capabilities"]["notes_read"]["outputs"][0]
            .get("seen")
            .is_none()
    );
    assert_eq!(
        context["capabilities"]["audit_log"]["outputs"],
        json!(["first a", "first w"])
    );
    assert_eq!(context["_history"]["turn_count"], 7);
}

#[tokio::test]
async fn a_step_that_cannot_be_evaluated_has_failed() {
    for (step, reason) in [
        ("{assert: \"input.missing == 1\"}", None),
        // It would hold, after a hundred million steps that nobody pays for.
        (
            "{assert: \"[1,2,3,4,5,6,7,8,9,0].all(a, [1,2,3,4,5,6,7,8,9,0].all(b, [1,2,3,4,5,6,7,8,9,0].all(c, \
             [1,2,3,4,5,6,7,8,9,0].all(d, [1,2,3,4,5,6,7,8,9,0].all(e, [1,2,3,4,5,6,7,8,9,0].all(f, \
             [1,2,3,4,5,6,7,8,9,0].all(g, [1,2,3,4,5,6,7,8,9,0].all(h, true))))))))\"}",
            None,
        ),
        (
            "{transform: \"output.no\", on_fail: lock_task}",
            Some(EndReason::Locked),
        ),
        (
            "{invoke: \"notes:fail\", on_fail: lock_task}",
            Some(EndReason::Locked),
        ),
    ] {
        let list = if step.contains("transform") {
            "after"
        } else {
            "before"
        };
        let rest = format!("capabilities:\n  notes:\n    {list}: [{step}]\n");
        let model = Puppet::calling(vec![("notes_read", json!({"path": "a"}))]);
        let task = start(&agent(&rest), model);
        let output = task.send(TaskInput::message("go")).await;
        assert_eq!(output.ended.map(|end| end.reason), reason, "{step}");
        assert_eq!(calls(&task)[0].1, CallStatus::Restricted, "{step}");
    }
}

#[tokio::test]
async fn guardrails_stand_at_both_ends() {
    let rest = r#"guardrails:
  before: [{assert: "size(input[size(input) - 1].message[0].text) < 10", error_message: "too long"}]
  after: [{transform: "{'message': 'redacted'}", condition: "output[0].message[0].text.contains('secret')"}]
"#;
    let model = Puppet::new(|_| Ok(say("a secret")));
    let task = start(&agent(rest), model.clone());
    assert_eq!(
        task.send(TaskInput::message("short")).await.message,
        "redacted"
    );
    let output = task.send(TaskInput::message("much too long a text")).await;
    let end = output.ended.unwrap();
    assert_eq!(
        (end.reason, end.message.as_str()),
        (EndReason::Locked, "too long")
    );
    assert_eq!(model.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn limits_end_the_task() {
    let endless = || Puppet::new(|_| Ok(call(&[("notes_read", json!({"path": "a"}))])));
    for (limits, word) in [
        ("{max_turns: 2}", "max_turns"),
        ("{max_tool_calls: 2}", "max_tool_calls"),
        ("{max_prompt_tokens: 15}", "max_prompt_tokens"),
        ("{max_completion_tokens: 15}", "max_completion_tokens"),
        ("{max_age: 1ms}", "max_age"),
    ] {
        let rest = format!("limits: {limits}\ncapabilities: {{notes: '*'}}\n");
        let task = start(&agent(&rest), endless());
        tokio::time::sleep(Duration::from_millis(2)).await;
        let end = task.send(TaskInput::message("go")).await.ended.expect(word);
        assert_eq!(end.reason, EndReason::LimitExceeded, "{word}");
        assert!(end.message.contains(word), "{}", end.message);
    }
    let task = start(&agent("capabilities: {notes: '*'}\n"), endless());
    let end = task.send(TaskInput::message("go")).await.ended.unwrap();
    assert_eq!(end.reason, EndReason::LimitExceeded);
}

#[tokio::test]
async fn a_review_suspends_until_it_is_decided() {
    let rest =
        "capabilities: {notes: {before: [{assert: review(context.user.id), match: write}]}}\n";
    for (decision, status) in [
        (Decision::Approve, CallStatus::Successful),
        (Decision::Deny, CallStatus::Restricted),
    ] {
        let model = Puppet::calling(vec![("notes_write", json!({"path": "a"}))]);
        let task = start(&agent(rest), model);
        let mut events = task.events();
        let deciding = task.clone();
        let decided = tokio::spawn(async move {
            loop {
                if let TaskEvent::Review(review) = events.recv().await.unwrap() {
                    assert_eq!(
                        (review.reviewer.as_str(), review.function.as_str()),
                        ("u1", "notes_write")
                    );
                    assert!(!deciding.decide(review.id + 1, decision));
                    return deciding.decide(review.id, decision);
                }
            }
        });
        assert_eq!(task.send(TaskInput::message("write")).await.message, "done");
        assert!(decided.await.unwrap());
        assert_eq!(calls(&task)[0].1, status);
    }
    // Nobody decides: the input can still be cancelled, and the task goes on.
    let model = Puppet::calling(vec![("notes_write", json!({"path": "a"}))]);
    let task = start(&agent(rest), model);
    let input = TaskInput::message("write");
    let cancel = input.cancel.clone();
    let waiting = task.clone();
    tokio::spawn(async move {
        while waiting.reviews().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancel.cancel();
    });
    let output = task.send(input).await;
    assert!(
        output.failed.is_some() && output.ended.is_none(),
        "{output:?}"
    );
    assert!(task.reviews().is_empty());
}

#[tokio::test]
async fn another_agent_is_asked_in_a_task_of_its_own() {
    let manifests = format!(
        "{}capabilities: {{helper: {{bindings: {{tone: \"'kind'\"}}}}}}\n---\n\
         kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: helper\ndescription: Helps out.\n\
         prompt: You are the helper.\nparameters: {{properties: {{tone: {{type: string}}}}}}\n\
         exposes: {{tone: \"context.input[0].tone\"}}\n",
        agent("")
    );
    let model = Puppet::new(|request| {
        let helper = request
            .system
            .as_deref()
            .is_some_and(|text| text.contains("helper"));
        let answered = matches!(request.messages.last(), Some(ChatMessage::Tool { .. }));
        Ok(match (helper, answered) {
            (true, _) => say("42"),
            (false, true) => say("the helper knows"),
            (false, false) => call(&[("helper", json!({"message": "what?", "tone": "rude"}))]),
        })
    });
    let task = start(&manifests, model);
    assert_eq!(
        task.send(TaskInput::message("go")).await.message,
        "the helper knows"
    );
    assert_eq!(calls(&task)[0].2, json!({"tone": "kind", "message": "42"}));
    let context = task.context();
    assert_eq!(context["capabilities"]["_meta"]["delegation_count"], 1);
    assert_eq!(
        context["capabilities"]["helper"]["task_ids"],
        json!(["task-1-1"])
    );
}

#[tokio::test]
async fn agents_that_ask_each_other_for_ever_are_stopped() {
    let manifests = format!("{}capabilities: {{clerk: '*'}}\n", agent(""));
    let model = Puppet::calling(vec![("clerk", json!({"message": "you do it"}))]);
    let task = start(&manifests, model);
    assert_eq!(task.send(TaskInput::message("go")).await.message, "done");
}

#[tokio::test]
async fn what_models_do_wrong_is_told_to_them() {
    let malformed = ToolCall {
        arguments: Arguments::parse("{\"path\": "),
        ..ToolCall::new("m", "notes_read", serde_json::Map::new())
    };
    let model = Puppet::new(move |request| {
        let answered = matches!(request.messages.last(), Some(ChatMessage::Tool { .. }));
        if answered {
            return Ok(say("sorry"));
        }
        let mut reply = call(&[
            ("notes_raed", json!({})),
            ("notes_read", json!({})),
            ("notes_read", json!({"path": 7})),
            ("notes_fail", json!({})),
        ]);
        reply.calls.push(malformed.clone());
        Ok(reply)
    });
    let task = start(&agent("capabilities: {notes: '*'}\n"), model);
    assert_eq!(task.send(TaskInput::message("go")).await.message, "sorry");
    let told = calls(&task);
    assert!(
        told.iter().all(|call| call.1 == CallStatus::Errored),
        "{told:?}"
    );
    let words: Vec<&str> = told
        .iter()
        .filter_map(|call| call.2["error"].as_str())
        .collect();
    assert_eq!(
        words,
        [
            "unknown_function",
            "bad_arguments",
            "bad_arguments",
            "cel_error",
            "bad_arguments"
        ]
    );
    assert!(
        told[0].2["message"]
            .as_str()
            .unwrap()
            .contains("did you mean `notes_read`?")
    );
}

#[tokio::test]
async fn ten_thousand_calls_in_one_turn_are_not_made() {
    let wanted = vec![("notes_read", json!({"path": "a"})); 10_000];
    let model = Puppet::calling(wanted);
    let task = start(&agent("capabilities: {notes: '*'}\n"), model.clone());
    assert_eq!(task.send(TaskInput::message("go")).await.message, "done");
    assert_eq!(calls(&task).len(), 64);
    // Every call has a result, as providers want it.
    let asked = model.asked.lock().unwrap();
    let results = asked[1].messages.iter();
    let results = results.filter(|message| matches!(message, ChatMessage::Tool { .. }));
    assert_eq!(results.count(), 10_000);
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_task_as_it_was() {
    let times = std::sync::atomic::AtomicUsize::new(0);
    let model =
        Puppet::new(
            move |_| match times.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Err(ModelError::new(ModelErrorKind::RateLimited, "try later")
                    .with_partial(say("I was"))),
                1 => Ok(say("back")),
                _ => Err(ModelError::new(ModelErrorKind::Unauthorized, "no such key")),
            },
        );
    let task = start(&agent(""), model.clone());
    let output = task.send(TaskInput::message("one")).await;
    assert!(output.failed.unwrap().contains("try later"));
    assert_eq!(task.send(TaskInput::message("two")).await.message, "back");
    let asked = model.asked.lock().unwrap()[1].messages.clone();
    assert_eq!(asked.len(), 3, "{asked:?}");
    let output = task.send(TaskInput::message("three")).await;
    assert_eq!(output.ended.unwrap().reason, EndReason::ModelError);
    assert_eq!(task.history().len(), 6);
}

#[tokio::test]
async fn an_unusable_tool_ends_the_task_and_tears_down() {
    let tool = "---\nkind: commonagents.info/v1/tool\nnamespace: demo\nname: gone\ndescription: d\nactions:\n\
        \x20 - {name: get, description: d, execute: {stateless_http: {method: GET, url: 'http://10.1.2.3/'}}}\n";
    let manifests = format!("{}capabilities: {{gone: '*'}}\n{tool}", agent(""));
    let task = start(&manifests, Puppet::calling(vec![("gone", json!({}))]));
    let end = task.send(TaskInput::message("go")).await.ended.unwrap();
    assert_eq!(end.reason, EndReason::UnrecoverableError);
    assert!(end.message.contains("egress"), "{}", end.message);
    assert_eq!(calls(&task).len(), 1);
}

#[tokio::test]
async fn parameters_are_checked_and_read_by_bindings() {
    let rest = "parameters: {properties: {ticket: {type: integer}, message: {type: string, default: hi}}}\n\
        capabilities: {notes: {bindings: {owner: 'string(context.input[0].ticket)'}}}\n";
    let model = Puppet::calling(vec![("notes_read", json!({"path": "a"}))]);
    let task = start(&agent(rest), model);
    let output = task.send(TaskInput::default()).await;
    assert!(output.failed.unwrap().contains("ticket"));
    let mut input = TaskInput::default();
    input.parameters.insert("ticket".to_owned(), json!(7));
    assert_eq!(task.send(input).await.message, "done");
    assert_eq!(calls(&task)[0].2["owner"], "7");
    assert_eq!(task.context()["input"][0]["message"][0]["text"], "hi");
}

/// Whoever writes again need not repeat what the task is for, nor need a notice.
#[tokio::test]
async fn required_parameters_hold_on_for_what_is_said_later() {
    let manifests =
        agent("parameters: {properties: {customer: {type: string}}}\ncapabilities: {notes: '*'}\n");
    let task = start(&manifests, Puppet::calling(vec![]));
    let refused = task.send(TaskInput::message("hello")).await;
    assert!(refused.failed.unwrap().contains("customer"));
    for (given, expected) in [
        (json!({"customer": "c-1"}), "c-1"),
        (json!({}), "c-1"),
        (json!({"customer": "c-2"}), "c-2"),
        (json!({}), "c-2"),
    ] {
        let input = TaskInput {
            parameters: given.as_object().cloned().unwrap(),
            ..TaskInput::message("and now?")
        };
        let output = task.send(input).await;
        assert_eq!(output.failed, None);
        let inputs = task.context()["input"].clone();
        assert_eq!(
            inputs.as_array().unwrap().last().unwrap()["customer"],
            expected
        );
    }
}

#[tokio::test]
async fn a_failing_binding_blocks_only_the_actions_that_use_it() {
    let manifests = agent("capabilities: {notes: {bindings: {text: context.nothing.here}}}\n");
    let model = Puppet::calling(vec![
        ("notes_read", json!({"path": "a"})),
        ("notes_write", json!({"path": "a"})),
    ]);
    let task = start(&manifests, model);
    task.send(TaskInput::message("go")).await;
    let made: Vec<(String, CallStatus)> = calls(&task)
        .into_iter()
        .map(|(function, status, _)| (function, status))
        .collect();
    assert_eq!(made[0], ("notes_read".to_owned(), CallStatus::Successful));
    assert_eq!(made[1].0, "notes_write");
    assert_ne!(made[1].1, CallStatus::Successful);
}

#[tokio::test]
async fn what_the_provider_offers_is_asked_for_or_refused() {
    let model = Puppet::new(|_| Ok(say("found")));
    let task = start(&agent("model_capabilities: [web-search]\n"), model.clone());
    assert_eq!(
        task.send(TaskInput::message("search")).await.message,
        "found"
    );
    let asked = model.asked.lock().unwrap().clone();
    assert_eq!(asked[0].options.built_in, ["web-search"]);
    let other = agent("mount: task\nmodel_capabilities: [image-generation]\n");
    let refused = host(&other, model).start("demo", "clerk", TaskOptions::default());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("image-generation")
    );
}

#[tokio::test]
async fn parameters_of_the_host_win_over_those_of_an_input() {
    let rest = "parameters: {properties: {ticket: {type: string}}}\n\
        capabilities: {notes: {bindings: {owner: 'context.input[0].ticket'}}}\n";
    let model = Puppet::calling(vec![("notes_read", json!({"path": "a"}))]);
    let fixed = json!({"ticket": "mine"}).as_object().cloned().unwrap();
    let host = host(&agent(rest), model).with_parameters(fixed);
    let task = host.start("demo", "clerk", TaskOptions::default()).unwrap();
    let mut input = TaskInput::message("go");
    input
        .parameters
        .insert("ticket".to_owned(), json!("someone else's"));
    assert_eq!(task.send(input).await.message, "done");
    assert_eq!(calls(&task)[0].2["owner"], "mine");
}
