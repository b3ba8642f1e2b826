//! Manifests as the pages write them, and every finding with its place.

use proofhouse_manifest::{
    Bundle, CODES, EventParameters, Execute, Manifest, Receive, Tool, json_schema,
};
use proofhouse_source::DiagnosticSeverity;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const HEAD: &str =
    "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: t\ndescription: d\n";

/// A tool with one action whose execute block is `execute`.
fn action(execute: &str) -> String {
    let block = execute.replace('\n', "\n      ");
    format!(
        "{HEAD}settings:\n  properties:\n    api.key: {{}}\nparameters:\n  properties:\n    city: {{type: string}}\n\
         actions:\n  - name: a\n    description: d\n    execute:\n      {block}\n"
    )
}

fn tool(text: &str) -> Tool {
    let (bundle, findings) = Bundle::read(text);
    assert!(findings.is_empty(), "{findings:#?}");
    bundle.tools().next().expect("a tool").clone()
}

/// Reads a text with `»` before each place where a finding must start, and compares the codes.
fn check(text: &str, codes: &[&str]) {
    let mut plain = String::new();
    let mut places = Vec::new();
    for piece in text.split('»') {
        plain.push_str(piece);
        places.push(plain.len());
    }
    places.pop();
    let (_, findings) = Bundle::read(&plain);
    let found: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(found, codes, "{findings:#?}\n{plain}");
    if !places.is_empty() {
        let starts: Vec<usize> = findings
            .iter()
            .map(|finding| finding.span.expect("a place").offset)
            .collect();
        assert_eq!(starts, places, "{findings:#?}\n{plain}");
        for finding in &findings {
            let span = finding.span.expect("a place");
            let line = plain[..span.offset].matches('\n').count() + 1;
            assert_eq!(span.line, line, "{finding:?}");
        }
    }
    for code in found {
        assert!(
            CODES.iter().any(|(known, _)| *known == code),
            "{code} is not listed"
        );
    }
}

#[test]
fn the_six_backends_are_read() {
    for (key, execute) in [
        (
            "cel",
            "cel: {expression: \"{'date': now, 'n': context.agent.namespace}\"}",
        ),
        (
            "stateless_http",
            "stateless_http:\n  method: POST\n  url: \"https://api.example.com/v1/{parameters.city}\"\n  headers:\n    Authorization: \"Bearer {settings.api.key}\"\n  json: {text: \"{city}\"}\n  response_path: $.items[0]",
        ),
        (
            "stateful_session",
            "stateful_session:\n  create: {method: POST, url: \"https://h.test/s\", headers: {A: b}}\n  extract: {id: $.id}\n  execute: {method: POST, url: \"https://h.test/s/{session.id}\"}\n  teardown: {method: DELETE, url: \"https://h.test/s/{session.id}\"}",
        ),
        ("openapi", "openapi: {url: \"https://h.test/openapi.json\"}"),
        (
            "mcp",
            "mcp: {transport: stdio, command: server, args: [\"--x\"], env: {TOKEN: \"{settings.api.key}\"}}",
        ),
        ("mcp", "mcp: {transport: sse, url: \"https://h.test/mcp\"}"),
        (
            "mcp",
            "mcp: {transport: streamable_http, url: \"https://h.test/mcp\"}",
        ),
        (
            "kubernetes_job",
            "kubernetes_job: {namespace: jobs, spec: {template: {spec: {args: [\"{city}\"]}}}}",
        ),
    ] {
        let tool = tool(&action(execute));
        assert_eq!(tool.actions[0].execute.key(), key);
    }
}

#[test]
fn the_three_receive_blocks_are_read() {
    let text = format!(
        r#"{HEAD}parameters:
  properties:
    owner: {{type: string, require_binding: true}}
settings: {{properties: {{secret: {{}}}}}}
events:
  - name: comment
    message: "{{event.author}} commented: {{event.payload.comment.body}}"
    timeout: 72h
    max_timeout: 168h
    receive:
      webhook:
        secret: "{{settings.secret}}"
        filter: >
          event.payload.action == 'created'
          && event.payload.owner == parameters.owner
    parameters:
      author: "event.payload.comment.user.login"
  - name: edit
    message: edited
    parameters:
      properties:
        document_id: {{type: string}}
    receive:
      subscription:
        filter: "event.payload.document_id == parameters.document_id"
        subscribe:
          method: POST
          url: "https://h.test/watch"
          headers: {{Authorization: "Bearer {{auth.google()}}"}}
          json: {{id: "{{subscription.id}}", to: "{{runtime.api_root}}/x", doc: "{{parameters.document_id}}"}}
        unsubscribe:
          method: POST
          url: "https://h.test/stop"
          json: {{resourceId: "{{subscribe.resource_id}}"}}
  - name: new_item
    message: "{{event.title}}"
    receive:
      poll:
        method: GET
        url: "https://example.com/feed/{{parameters.owner}}"
        detect: "response.items.filter(i, i.published_at > poll.last_fetched_at)"
    parameters: {{title: item.title}}
"#
    );
    let tool = tool(&text);
    assert_eq!(tool.events.len(), 3);
    assert!(
        matches!(&tool.events[0].parameters, EventParameters::Aliases(aliases) if aliases.len() == 1)
    );
    assert!(matches!(
        tool.events[1].parameters,
        EventParameters::Schema(_)
    ));
    assert!(
        matches!(&tool.events[2].receive, Receive::Poll(poll) if poll.interval.as_secs() == 60)
    );
}

#[test]
fn actions_inherit_shared_blocks() {
    let text = format!(
        r#"{HEAD}stateless_http:
  method: GET
  headers: {{Accept: a/b, X-Id: "{{parameters.id}}"}}
actions:
  - name: one
    description: d
    parameters: {{properties: {{id: {{type: string}}}}}}
    execute:
      stateless_http: {{url: "https://h.test/", headers: {{accept: c/d}}}}
"#
    );
    let tool = tool(&text);
    let Execute::StatelessHttp(call) = &tool.actions[0].execute else {
        panic!("an HTTP action");
    };
    assert_eq!(call.method.as_ref().unwrap().source(), "GET");
    let headers: Vec<(&str, &str)> = call
        .headers
        .iter()
        .map(|header| (header.name.as_str(), header.value.source()))
        .collect();
    assert_eq!(headers, [("accept", "c/d"), ("x-id", "{parameters.id}")]);
    // Without the parameter, what is inherited cannot be filled.
    check(
        &text.replace("    parameters: {properties: {id: {type: string}}}\n", ""),
        &["TM-012"],
    );
}

#[test]
fn every_mistake_is_found_where_it_is() {
    let http = |fields: &str| action(&format!("stateless_http: {{method: GET, {fields}}}"));
    for (text, codes) in [
        (
            action("»stateles_http: {}").replace("    execute", "    »execute"),
            &["TM-007", "TM-004"][..],
        ),
        (
            action("cel: {expression: \"»1 +\"}").replace("»1 +", "1 +"),
            &["TM-009"],
        ),
        (action("cel: {expression: »nope}"), &["TM-009"]),
        (action("cel: {expression: nope(now)}"), &["TM-009"]),
        (action("cel: {expression: »5}"), &["TM-003"]),
        (
            action("»cel: {expresion: now}")
                .replace("»cel", "cel")
                .replace("expres", "»expres"),
            &["TM-004"],
        ),
        (action("»cel: {}"), &["TM-005"]),
        (
            action("cel: {expression: now}\nopenapi: {url: \"https://h.test\"}"),
            &["TM-007"],
        ),
        (http("url: »\"https://{city}.test/\""), &["TM-013"]),
        (http("url: »/relative"), &["TM-013"]),
        (
            http("url: \"https://h.test/»{parameters.cty}\""),
            &["TM-012"],
        ),
        (http("url: \"https://h.test/»{cty}\""), &["TM-012"]),
        (http("url: \"https://h.test/»{session.id}\""), &["TM-012"]),
        (
            http("url: \"https://h.test/»{settings.api.kee}\""),
            &["TM-017"],
        ),
        (
            http("url: \"https://h.test/»{ parameters.city }\""),
            &["TM-012"],
        ),
        (http("url: \"https://h.test/»{runtime.x}\""), &["TM-012"]),
        (
            http("url: \"https://h.test/\", headers: {Host: a}"),
            &["TM-014"],
        ),
        (
            http("url: \"https://h.test/\", headers: {\"a b\": a}"),
            &["TM-014"],
        ),
        (
            http("url: \"https://h.test/\", headers: {A: x, a: y}"),
            &["TM-014"],
        ),
        (
            http("url: \"https://h.test/\", body: {a: [\"»{x}\"]}"),
            &["TM-012"],
        ),
        (
            http("url: \"https://h.test/\", body: 1, »json: 2").replace("»json: 2", "json: »2"),
            &["TM-006"],
        ),
        (
            http("url: \"https://h.test/\", response_path: »items"),
            &["TM-010"],
        ),
        (
            action("stateless_http: {method: »get, url: \"https://h.test/\"}"),
            &["TM-008"],
        ),
        (
            action("»stateless_http: {url: \"https://h.test/\"}"),
            &["TM-005"],
        ),
        (
            action("mcp: {transport: »pigeon, url: \"https://h.test/\"}"),
            &["TM-008"],
        ),
        (action("»mcp: {transport: stdio}"), &["TM-005"]),
        (
            action(
                "stateful_session:\n  create: {method: POST, url: \"https://h.test/»{session.id}\"}\n  extract: {id: $.id}\n  execute: {method: GET, url: \"https://h.test/»{session.it}\"}",
            ),
            &["TM-012", "TM-012"],
        ),
        (
            format!("{HEAD}»actions: 5").replace("»actions: ", "actions: »"),
            &["TM-003"],
        ),
        (HEAD.to_owned(), &["TM-037"]),
        (
            format!(
                "{HEAD}parameters: {{properties: {{a: {{type: integer, default: »x}}}}}}\nactions: []"
            ),
            &["TM-011"],
        ),
        (
            format!("{HEAD}parameters: {{properties: {{»a: {{type: strin}}}}}}\nactions: []"),
            &["TM-011"],
        ),
        (
            format!(
                "{HEAD}parameters: {{properties: {{»a: {{$ref: \"https://h.test/s.json\"}}}}}}\nactions: []"
            ),
            &["TM-011"],
        ),
        (
            format!("{HEAD}parameters: {{a: »x}}\nactions: []"),
            &["TM-004"],
        ),
        (
            format!("{HEAD}synchronous: »maybe\nactions: []"),
            &["TM-003"],
        ),
        (format!("{HEAD}»synchronous:\nactions: []"), &["TM-018"]),
        (
            "»kind: commonagents.info/v1/tol".replace("»kind: ", "kind: »"),
            &["TM-002"],
        ),
        ("kind: »example.com/v1/tool".to_owned(), &["TM-002"]),
        ("name: x".to_owned(), &["TM-005"]),
        (String::new(), &["TM-001"]),
        ("a: [".to_owned(), &["TM-001"]),
        ("# only a comment\n---\n".to_owned(), &["TM-001"]),
    ] {
        check(&text, codes);
    }
}

#[test]
fn names_are_unique_and_events_are_checked() {
    let one = "  - {name: a, description: d, execute: {cel: {expression: now}}}\n";
    check(
        &format!(
            "{HEAD}actions:\n{one}{}",
            one.replace("name: a", "name: »a")
        ),
        &["TM-015"],
    );
    for (event, codes) in [
        (
            "message: \"»{event.x}\", receive: {webhook: {filter: \"true\"}}",
            &["TM-012"][..],
        ),
        (
            "message: m, timeout: »5, receive: {webhook: {filter: \"true\"}}",
            &["TM-003"],
        ),
        (
            "message: m, timeout: »\"5 days\", receive: {webhook: {filter: \"true\"}}",
            &["TM-016"],
        ),
        (
            "message: m, timeout: 5h, max_timeout: »1h, receive: {webhook: {filter: \"true\"}}",
            &["TM-016"],
        ),
        (
            "message: m, receive: {webhook: {filter: »response}}",
            &["TM-009"],
        ),
        (
            "message: m, receive: {poll: {method: GET, url: \"https://h.test/\", detect: »event}}",
            &["TM-009"],
        ),
        (
            "message: m, receive: {subscription: {subscribe: {method: POST, url: \"https://h.test/»{subscribe.id}\"}}}",
            &["TM-012"],
        ),
        ("message: m, »receive: {}", &["TM-007"]),
    ] {
        check(&format!("{HEAD}events:\n  - {{name: e, {event}}}\n"), codes);
    }
}

#[test]
fn an_undeclared_setting_is_only_a_warning_where_none_is_declared() {
    let text = format!(
        "{HEAD}events:\n  - {{name: e, message: m, receive: {{webhook: {{secret: \"{{settings.x}}\"}}}}}}\n"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert_eq!(bundle.tools().count(), 1);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, DiagnosticSeverity::Warning);
}

#[test]
fn bundles_hold_several_documents_and_survive_a_bad_one() {
    let tool = action("cel: {expression: now}");
    let text = format!(
        "# a bundle\n{tool}---\nkind: commonagents.info/v1/bundledescription\nname: x\n---\nkind: example.com/thing\n---\r\n{}\n",
        action("cel: {expression: »nope}")
    );
    check(
        &text.replace("kind: example", "kind: »example"),
        &["TM-002", "TM-009"],
    );
    let (bundle, _) = Bundle::read(&text.replace('»', ""));
    assert_eq!(bundle.manifests.len(), 2);
    assert!(
        matches!(&bundle.manifests[1], Manifest::Other(other) if other.kind == "bundledescription" && other.version == "v1")
    );
    for version in ["v1", "v1beta1", "v1beta2"] {
        let (bundle, _) = Bundle::read(&tool.replace("v1beta2", version));
        assert_eq!(bundle.tools().count(), 1, "{version}");
    }
}

#[test]
fn directives_and_markers_are_no_documents() {
    let text = format!(
        "%YAML 1.2\n---\n{}...\n---\n# end\n",
        action("cel: {expression: now}")
    );
    check(&text, &[]);
    assert_eq!(Bundle::read(&text).0.manifests.len(), 1);
}

#[test]
fn files_have_limits() {
    let comment = "# ".to_owned() + &"x".repeat(2_000_000);
    check(&comment, &["TM-001"]);
    let large = format!("{HEAD}x-big: {}\nactions: []\n", "x".repeat(512_000));
    check(&large, &["TM-001"]);
    let many = "kind: commonagents.info/v1/bundledescription\n---\n".repeat(201);
    check(&many, &["TM-001"]);
}

#[test]
fn parameters_are_completed_and_checked() {
    let tool = tool(&action("cel: {expression: now}").replace(
        "    city: {type: string}",
        "    city: {type: string, require_binding: true}\n    days: {type: integer, default: 3}",
    ));
    let parameters = &tool.actions[0].parameters;
    let complete =
        |value: Value| parameters.complete(value.as_object().cloned().unwrap_or_else(Map::new));
    assert_eq!(
        Value::from(complete(json!({"city": "Oslo"})).unwrap()),
        json!({"city": "Oslo", "days": 3})
    );
    assert_eq!(
        complete(json!({})).unwrap_err(),
        ["\"city\" is a required property"]
    );
    assert_eq!(complete(json!({"city": 1})).unwrap_err().len(), 1);
    assert_eq!(
        complete(json!({"city": "x", "town": "y"}))
            .unwrap_err()
            .len(),
        1
    );
}

#[test]
fn the_schema_agrees_with_the_reader() {
    let schema = jsonschema::validator_for(&json_schema()).expect("a schema");
    let to_value = |text: &str| {
        let source =
            proofhouse_source::Source::read(text, &proofhouse_source::ReadLimits::default())
                .unwrap();
        source.root().to_value(&mut |_| {})
    };
    for example in [
        include_str!("../../../../examples/tools/clock.yaml"),
        include_str!("../../../../examples/tools/echo.yaml"),
        include_str!("../../../../examples/tools/job.yaml"),
        include_str!("../../../../examples/tools/notes.yaml"),
        include_str!("../../../../examples/tools/sums.yaml"),
        include_str!("../../../../examples/tools/weather.yaml"),
    ] {
        let value = to_value(example);
        let error = schema.validate(&value).err();
        assert!(error.is_none(), "{error:?}: {example}");
    }
    for (execute, valid) in [
        ("cel: {expression: now}", true),
        (
            "cel: {expression: now}\nopenapi: {url: \"https://h.test\"}",
            false,
        ),
        ("cel: {expression: 5}", false),
        ("mcp: {transport: pigeon}", false),
        (
            "stateless_http: {method: GET, url: \"https://h.test/\", body: 1, json: 2}",
            false,
        ),
        (
            "stateless_http: {method: GET, url: \"https://h.test/\", json: 2}",
            true,
        ),
        ("nope: {}", false),
    ] {
        let text = action(execute);
        assert_eq!(schema.is_valid(&to_value(&text)), valid, "{execute}");
        assert_eq!(Bundle::read(&text).1.is_empty(), valid, "{execute}");
    }
}

#[test]
fn the_guide_lists_every_code() {
    let guide = include_str!("../../../../docs/reference/tools.md");
    for (code, meaning) in CODES {
        assert!(guide.contains(&format!("| {code} | {meaning} |")), "{code}");
    }
    for (_, _, word) in proofhouse_tools::runtime::ERROR_TABLE {
        assert!(guide.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn the_example_of_the_guide_is_valid() {
    let guide = include_str!("../../../../docs/reference/tools.md");
    let example = guide
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let tool = tool(example.expect("an example"));
    assert_eq!(tool.actions[0].parameters.properties().len(), 2);
}

proptest! {
    #[test]
    fn any_text_is_read_and_findings_lie_inside_it(at in 0usize..600, length in 0usize..40, with in "[{}:\\[\\]\"a\\n ».-]{0,6}") {
        let mut text = action("stateless_http: {method: GET, url: \"https://h.test/{city}\", body: {a: [\"{x}\"]}}");
        text.push_str("---\nkind: commonagents.info/v1/tool\n");
        let (from, to) = (at.min(text.len()), (at + length).min(text.len()));
        text.replace_range(from..to, &with);
        let (_, findings) = Bundle::read(&text);
        let mut last = 0;
        for finding in findings {
            let span = finding.span.expect("a place");
            prop_assert!(text.get(span.range()).is_some());
            prop_assert!(last <= span.offset);
            last = span.offset;
        }
    }
}
