//! The `mcp_client` driver against servers of the official SDKs, of both generations.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::time::Duration;

use proofhouse_range::{ActorEndpoint, RunReport};
use proofhouse_test_support::peers::{listening, peers, program};
use proofhouse_wire::WireLimits;
use serde_json::json;

use crate::client_support::{contents, operations, options, try_play, verdict};

const DOCUMENT: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    phases:
      - name: look
        state:
          actions:
            - {method: tools/list}
            - {method: prompts/get, params: {name: greet, arguments: {name: Bob}}}
            - {method: resources/read, params: {uri: "memo://one"}}
            - {method: tools/call, params: {name: transfer, arguments: {to: mallory}}}
        trigger: {event: tools/call, match: {name: transfer}}
      - name: answer
        state:
          actions: [{method: tools/call, params: {name: audit, arguments: {}}}]
          sampling_responses:
            - when: {maxTokens: 50}
              content: {role: assistant, content: {type: text, text: root}, model: m}
          elicitation_responses:
            - when: {message: {contains: Really}}
              content: {confirmed: true}
          roots: [{uri: "file:///etc", name: etc}]
  indicators:
    - id: instructions
      surface: initialize
      direction: response
      target: instructions
      pattern: {contains: Ask before}
    - id: transfer
      surface: tools/call
      direction: response
      target: content[*].text
      pattern: {contains: transferred to mallory}
    - id: audit
      surface: tools/call
      direction: response
      target: content[*].text
      pattern: {regex: "(?i)audit: file:///etc root true"}
    - id: prompt
      surface: prompts/get
      direction: response
      target: messages[*].content.text
      pattern: {contains: Greet Bob}
    - id: memo
      surface: resources/read
      direction: response
      target: contents[*].text
      pattern: {contains: the memo}
  correlation: {logic: all}
"#;

const PEERS: [(&str, bool); 4] = [
    ("mcp-python-1", false),
    ("mcp-python-2", true),
    ("mcp-js-1", false),
    ("mcp-js-2", true),
];

async fn play(endpoint: ActorEndpoint) -> RunReport {
    let mut options = options(endpoint);
    options.max_session = Duration::from_secs(90);
    options.limits = WireLimits {
        response_timeout: Duration::from_secs(30),
        ..WireLimits::default()
    };
    try_play(DOCUMENT, options).await.unwrap()
}

fn check(peer: &str, modern: bool, report: &RunReport) {
    let seen = operations(report);
    assert!(report.errors.is_empty(), "{peer}: {:?}", report.errors);
    assert_eq!(report.warnings, Vec::<String>::new(), "{peer}: {seen:?}");
    assert_eq!(verdict(report), "Exploited", "{peer}: {:#?}", report.trace);
    let is_modern = !seen.contains(&"> initialize".to_owned());
    assert_eq!(is_modern, modern, "{peer}: {seen:?}");
    let call = contents(report, "tools/call");
    assert!(
        call.iter().all(|content| content["name"].is_string()),
        "{peer}"
    );
    for asked in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        assert_eq!(
            contents(report, asked).len(),
            2,
            "{peer}: {asked}: {seen:?}"
        );
    }
    let elicited = contents(report, "elicitation/create")[1];
    assert_eq!(
        elicited,
        &json!({"action": "accept", "content": {"confirmed": true}})
    );
}

#[tokio::test]
async fn servers_as_processes_give_the_same_verdict() {
    let Some(directory) = peers("servers_as_processes_give_the_same_verdict") else {
        return;
    };
    for (peer, modern) in PEERS {
        let spawn = program(&directory, peer, &["stdio"]);
        let report = play(ActorEndpoint::Command(spawn)).await;
        check(peer, modern, &report);
    }
}

#[tokio::test]
async fn servers_over_http_give_the_same_verdict() {
    let Some(directory) = peers("servers_over_http_give_the_same_verdict") else {
        return;
    };
    for (peer, modern) in PEERS {
        let (url, child, stdin) = listening(&program(&directory, peer, &["http"])).await;
        let report = play(ActorEndpoint::Url(url)).await;
        check(peer, modern, &report);
        drop(stdin);
        drop(child);
    }
}
