//! Agent manifests: what is read, what is refused, and where it is said.

use proofhouse_manifest::{
    Agent, Binding, Bundle, Catalog, MountScope, OnFail, Referent, StepAction, agent_json_schema,
};
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use std::time::Duration;

const HEAD: &str =
    "kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\ndescription: d\n";

const TOOL: &str = r#"---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: notes
description: d
parameters: {properties: {owner: {type: string, require_binding: true}}}
actions:
  - name: read
    description: d
    parameters: {properties: {path: {type: string}}}
    execute: {cel: {expression: input.path}}
  - name: write
    description: d
    parameters: {properties: {path: {type: string}, text: {type: string}}}
    execute: {cel: {expression: input.path}}
"#;

fn read(rest: &str) -> (Bundle, Vec<Diagnostic>) {
    Bundle::read(&format!("{HEAD}{rest}"))
}

fn agent(rest: &str) -> Agent {
    let (bundle, findings) = read(rest);
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity != DiagnosticSeverity::Error),
        "{findings:#?}"
    );
    bundle.agents().next().expect("there is an agent").clone()
}

/// The codes and lines of what is wrong with an agent, by itself and with the tool above.
fn wrong(rest: &str) -> Vec<(&'static str, usize)> {
    let (bundle, mut findings) = Bundle::read(&format!("{HEAD}{rest}{TOOL}"));
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    for agent in bundle.agents() {
        findings.extend(catalog.check(agent));
    }
    let place = |finding: Diagnostic| (finding.code, finding.span.map_or(0, |span| span.line));
    findings.into_iter().map(place).collect()
}

#[test]
fn every_field_is_read() {
    let agent = agent(
        r#"prompt: "You help {context.user.email}; it is {now}."
model: openai:gpt-4o
priority: 3
mount: task
limits: {max_turns: 5, max_prompt_tokens: 100, max_completion_tokens: 50, max_age: 2h, max_tool_calls: 9}
parameters: {properties: {ticket: {type: string}}}
capabilities:
  other: "*"
  notes:
    include: [read]
    bindings: {owner: context.user.id, limit: 50, path: "'a'"}
    event_timeout: 24h
    before_first: [{assert: "context.user.id != ''"}]
    before:
      - {assert: "review(context.user.id)", match: read, on_fail: lock_task}
      - {invoke: "audit:record", bindings: {what: "input.path"}, condition: "!has(event)"}
    after: [{transform: "output.put('note', 'x')", on_fail: continue, error_message: "no {output.id}"}]
model_capabilities: [web-search, image-generation]
guardrails:
  before: [{assert: "size(input[0].message) < 50000"}]
  after: [{assert: "output != null", on_fail: continue}]
exposes: {ticket: "context.input[0].ticket"}
"#,
    );
    assert_eq!(agent.mount, [MountScope::Task]);
    assert_eq!(agent.limits.max_age, Some(Duration::from_secs(7200)));
    assert_eq!(
        (agent.limits.max_turns, agent.limits.max_tool_calls),
        (Some(5), Some(9))
    );
    assert!(agent.capabilities[0].1.capability.is_none());
    let notes = agent.capabilities[1].1.capability.as_ref().unwrap();
    assert_eq!(notes.include.as_deref(), Some(&["read".to_owned()][..]));
    assert_eq!(notes.bindings.len(), 3);
    assert!(
        notes
            .bindings
            .iter()
            .all(|(_, binding)| matches!(binding, Binding::Cel(_)))
    );
    assert_eq!(notes.before[0].on_fail, OnFail::LockTask);
    let StepAction::Invoke {
        tool,
        action,
        bindings,
    } = &notes.before[1].action
    else {
        panic!("not an invoke");
    };
    assert_eq!(
        (tool.as_str(), action.as_deref(), bindings.len()),
        ("audit", Some("record"), 1)
    );
    assert_eq!(agent.guardrails.before[0].on_fail, OnFail::LockTask);
    assert_eq!(agent.guardrails.after[0].on_fail, OnFail::Continue);
    assert_eq!(agent.exposes[0].0, "ticket");
}

#[test]
fn a_binding_that_names_nothing_is_text_with_a_warning() {
    let (bundle, findings) =
        read("prompt: p\ncapabilities: {notes: {bindings: {owner: buoyant-systems}}}\n");
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(
        (findings[0].code, findings[0].severity),
        ("TM-025", DiagnosticSeverity::Warning)
    );
    let agent = bundle.agents().next().unwrap();
    let bindings = &agent.capabilities[0]
        .1
        .capability
        .as_ref()
        .unwrap()
        .bindings;
    assert!(matches!(&bindings[0].1, Binding::Literal(text) if text == "buoyant-systems"));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (rest, expected) in [
        ("prompt: p\n", vec![]),
        (
            "prompt: p\ncapabilities: {notes: {}}\n",
            vec![("TM-027", 6)],
        ),
        (
            "prompt: p\ncapabilities: {notes: all}\n",
            vec![("TM-027", 6)],
        ),
        (
            "prompt: p\ncapabilities: {nodes: '*'}\n",
            vec![("TM-020", 6)],
        ),
        (
            "prompt: p\ncapabilities:\n  notes: '*'\n",
            vec![("TM-022", 7)],
        ),
        (
            "prompt: p\ncapabilities: {notes: {bindings: {owner: \"'o'\", pat: \"'x'\"}}}\n",
            vec![("TM-021", 6)],
        ),
        (
            "prompt: p\ncapabilities: {notes: {include: [raed], bindings: {owner: \"'o'\"}}}\n",
            vec![("TM-026", 6)],
        ),
        (
            "prompt: p\ncapabilities: {notes: {bindings: {owner: \"'o'\"}, before: [{assert: 'true', match: rite}]}}\n",
            vec![("TM-026", 6)],
        ),
        (
            "prompt: p\nguardrails:\n  before:\n    - assert: 'true'\n      on_fail: block\n",
            vec![("TM-023", 9)],
        ),
        (
            "prompt: p\nguardrails: {before: [{on_fail: continue}]}\n",
            vec![("TM-024", 6)],
        ),
        (
            "prompt: p\nguardrails: {before: [{assert: 'true', transform: 'true'}]}\n",
            vec![("TM-024", 6)],
        ),
        (
            "prompt: p\nguardrails: {before: [{assert: 'true', bindings: {a: \"'b'\"}}]}\n",
            vec![("TM-024", 6)],
        ),
        (
            "prompt: p\nguardrails: {before: [{assert: 'output'}]}\n",
            vec![("TM-009", 6)],
        ),
        (
            "prompt: p\nguardrails: {before: [{assert: 'review(1)'}]}\n",
            vec![("TM-009", 6)],
        ),
        (
            "prompt: p\nguardrails: {before: [{invoke: 'audit:x'}]}\n",
            vec![("TM-020", 6)],
        ),
        (
            "prompt: p\nguardrails: {before: [{invoke: 'notes:x', bindings: {owner: \"'o'\"}}]}\n",
            vec![("TM-026", 6)],
        ),
        ("prompt: 'It is {nwo}.'\n", vec![("TM-012", 5)]),
        ("prompt: 'It is {settings.key}.'\n", vec![("TM-012", 5)]),
        ("prompt: p\nmount: everything\n", vec![("TM-008", 6)]),
        (
            "prompt: p\nmount: [task, everything]\n",
            vec![("TM-008", 6)],
        ),
        ("prompt: p\nmount: [none]\n", vec![("TM-008", 6)]),
        (
            "prompt: p\nmount: [task, agent, task]\n",
            vec![("TM-015", 6)],
        ),
        ("prompt: p\nmount: {task: true}\n", vec![("TM-003", 6)]),
        ("prompt: p\nmount: [workspace, agent]\n", vec![]),
        ("prompt: p\nmount: []\n", vec![]),
        ("mount: task\n", vec![("TM-037", 1)]),
        ("prompt: p\nlimits: {max_turns: -1}\n", vec![("TM-003", 6)]),
        ("prompt: p\nlimits: {max_age: soon}\n", vec![("TM-016", 6)]),
        (
            "prompt: p\nmodel_capabilities: [image-generation]\n",
            vec![("TM-028", 6)],
        ),
        (
            "prompt: p\nexposes: {message: \"'x'\"}\n",
            vec![("TM-015", 6)],
        ),
        ("promt: p\n", vec![("TM-004", 5)]),
    ] {
        assert_eq!(wrong(rest), expected, "{rest}");
    }
}

#[test]
fn references_prefer_the_own_namespace() {
    let other = TOOL.replace("namespace: demo", "namespace: other");
    let (bundle, _) = Bundle::read(&format!("{TOOL}{other}"));
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    for (namespace, reference, expected) in [
        ("demo", "notes", Some("demo")),
        ("other", "notes", Some("other")),
        ("third", "notes", Some("demo")),
        ("demo", "other/notes", Some("other")),
        ("demo", "third/notes", None),
        ("demo", "note", None),
    ] {
        let found = match catalog.find(namespace, reference) {
            Some(Referent::Tool(tool)) => Some(tool.namespace.clone()),
            _ => None,
        };
        assert_eq!(found.as_deref(), expected, "{namespace} {reference}");
    }
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    let schema = agent_json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good = serde_json::json!({
        "kind": "commonagents.info/v1beta2/agent", "namespace": "a", "name": "b", "description": "c",
        "prompt": "p", "capabilities": {"x": "*", "y": {"include": []}},
    });
    assert!(validator.is_valid(&good));
    for (pointer, value) in [
        ("/capabilities/x", serde_json::json!({})),
        ("/capabilities/x", serde_json::json!("all")),
        ("/prompt", serde_json::json!([])),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.is_valid(&bad), "{pointer}");
    }
}

/// An event's parameter that needs a binding needs one of every agent that hears the event.
#[test]
fn a_parameter_of_an_event_may_need_a_binding() {
    let tool = "---\nkind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: hub\ndescription: d\n\
        events:\n  - name: pushed\n    message: m\n    receive: {webhook: {filter: \"event.payload.repo == parameters.repo\"}}\n    \
        parameters: {properties: {repo: {type: string, require_binding: true}}}\n\
        \x20 - {name: other, message: m, receive: {webhook: {}}}\n";
    for (capability, expected) in [
        ("'*'", vec!["TM-022"]),
        ("{include: [pushed]}", vec!["TM-022"]),
        ("{include: [other]}", vec![]),
        ("{bindings: {repo: \"'acme/site'\"}}", vec![]),
    ] {
        let text = format!("{HEAD}prompt: p\ncapabilities: {{hub: {capability}}}\n{tool}");
        let (bundle, _) = Bundle::read(&text);
        let mut catalog = Catalog::default();
        catalog.add(&bundle);
        let agent = bundle.agents().next().expect("there is an agent");
        let found = catalog.check(agent).into_iter();
        let found = found.filter(|finding| finding.severity == DiagnosticSeverity::Error);
        let codes: Vec<_> = found.map(|finding| finding.code).collect();
        assert_eq!(codes, expected, "{capability}");
    }
}
