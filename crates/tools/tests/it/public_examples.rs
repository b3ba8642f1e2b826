//! Manifests in the forms of the examples on the public pages about bundles and mounts: each is accepted, with others and
//! by itself.

use proofhouse_manifest::{Bundle, Catalog, Manifest, MountScope};
use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use proptest::prelude::*;

/// A bundle with its description, whose tool has settings and nothing else.
const BUNDLE: &str = r##"kind: "commonagents.info/v1/bundledescription"
name: "Workshop"
description: |
  # Workshop
  What a repair shop needs.
author: "The shop"
version: "2.1.0"
url: "https://example.com/workshop"
requiredSettings:
  - "parts.token"
  - "parts.owner"
---
kind: "commonagents.info/v1/agent"
namespace: "shop"
name: "mender"
description: "Mends what is broken."
prompt: |
  You mend things...
capabilities:
  part-list: "*"
---
kind: "commonagents.info/v1/tool"
namespace: "shop"
name: "part-list"
description: "Looks up and orders parts."
settings:
  properties:
    parts.owner:
      title: "Owner of the account"
    parts.token:
      title: "Token"
      format: "password"
"##;

/// A bundle whose tool is where template variables say.
const TEMPLATE: &str = r##"kind: "commonagents.info/v1/bundledescription"
name: "Workshop"
author: "The shop"
templateVariables:
  - name: "owner"
    description: "Whose parts"
    required: true
  - name: "shelf"
    description: "Where they lie"
    default: "main"
---
kind: "commonagents.info/v1/agent"
name: "mender"
description: "Mends things for {template.owner}."
prompt: |
  You mend things...
capabilities:
  part_list: "*"
---
kind: "commonagents.info/v1/tool"
name: "part_list"
description: "Looks up parts."
stateless_http:
  base_url: "https://api.example.com/shops/{template.owner}/shelves/{template.shelf}"
"##;

/// Where the files of a workspace are, which has no kind.
const CONFIGURATION: &str = r#"name: default
path_prefixes:
  workspace: "/{namespace}/"
  agent: "/{namespace}/{agent}/"
  task: "/{namespace}/{agent}/{task}/"
gcs:
  bucket: shop-files
  sa: files@shop.example
"#;

/// An agent that says only what it may use, and hands its mount on.
const BOUND: &str = r#"kind: commonagents.info/v1beta2/agent
namespace: shop
name: mender
mount: task  # the files of the task

capabilities:
  finder:
    bindings:
      bucket: "{mount.bucket}"
      prefix: "{mount.prefix}"
---
kind: commonagents.info/v1beta2/tool
namespace: shop
name: finder
description: Finds files.
parameters: {properties: {bucket: {type: string}, prefix: {type: string}}}
actions:
  - {name: find, description: d, execute: {cel: {expression: "input.prefix"}}}
"#;

/// An agent with several scopes, in no namespace.
const SCOPES: &str = r#"kind: commonagents.info/v1beta2/agent
name: mender
mount: [workspace, agent]     # not the task's

capabilities:
  memory: "*"
---
"#;

/// A memory in files; `ROOT` is what references start with.
const MEMORY: &str = r#"kind: commonagents.info/v1beta2/tool
name: memory
description: Remembers values, in the files of the agent.

actions:
  - name: write
    description: Keeps a value under a key.
    parameters:
      type: object
      properties:
        key:
          type: string
        value:
          type: string
    execute:
      cel:
        expression: >
          mount.write("ROOT_memory/" + input.key, input.value)

  - name: read
    description: Reads the value of a key.
    parameters:
      type: object
      properties:
        key:
          type: string
    execute:
      cel:
        expression: >
          mount.read("ROOT_memory/" + input.key)
"#;

/// A bundle without an error, and the warnings about it.
fn accepted(text: &str) -> (Bundle, Vec<Diagnostic>) {
    assert!(Bundle::is_meant_by(text), "{text}");
    let (bundle, mut findings) = Bundle::read(text);
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    findings.extend(catalog.check_all(&bundle));
    let wrong = |finding: &&Diagnostic| finding.severity == DiagnosticSeverity::Error;
    let wrong: Vec<_> = findings.iter().filter(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{text}");
    (bundle, findings)
}

fn codes(findings: &[Diagnostic]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_bundle_with_its_description() {
    let (bundle, findings) = accepted(BUNDLE);
    assert_eq!(bundle.manifests.len(), 3);
    let Manifest::Other(description) = &bundle.manifests[0] else {
        panic!("{:?}", bundle.manifests[0]);
    };
    assert_eq!(description.kind, "bundledescription");
    assert_eq!(description.value["requiredSettings"][0], "parts.token");
    let tool = bundle.tools().next().unwrap();
    let settings = tool.settings.as_ref().unwrap().properties();
    assert!(settings.contains_key("parts.token"));
    // It can be read; that it does nothing is told.
    assert_eq!(codes(&findings), ["TM-037"]);
}

#[test]
fn the_configuration_of_a_mount() {
    let (bundle, findings) = accepted(CONFIGURATION);
    assert!(bundle.manifests.is_empty());
    assert_eq!(codes(&findings), ["TM-002"]);
    assert!(findings[0].message.contains("mount"), "{findings:?}");
    let (bundle, _) = accepted(&format!("{CONFIGURATION}---\n{BOUND}"));
    assert_eq!(bundle.manifests.len(), 2);
}

#[test]
fn an_agent_that_hands_its_mount_on() {
    let (bundle, findings) = accepted(BOUND);
    let agent = bundle.agents().next().unwrap();
    assert_eq!(agent.mount, [MountScope::Task]);
    assert!(codes(&findings).contains(&"TM-037"), "{findings:?}");
}

#[test]
fn an_agent_with_several_scopes_and_its_memory() {
    for root in ["", "agent://"] {
        let (bundle, findings) = accepted(&format!("{SCOPES}{}", MEMORY.replace("ROOT", root)));
        let agent = bundle.agents().next().unwrap();
        assert_eq!(agent.mount, [MountScope::Workspace, MountScope::Agent]);
        let tool = bundle.tools().next().unwrap();
        assert_eq!(
            (tool.namespace.as_str(), tool.actions.len()),
            ("default", 2)
        );
        assert_eq!(codes(&findings), ["TM-037"], "the agent has no prompt");
    }
}

#[test]
fn a_bundle_with_template_variables() {
    let (bundle, findings) = accepted(TEMPLATE);
    assert_eq!(bundle.unset_variables, ["owner"]);
    let places: Vec<_> = findings
        .iter()
        .map(|finding| (finding.code, finding.span.unwrap()))
        .map(|(code, span)| (code, span.line, span.column))
        .collect();
    let column = |line: usize| {
        let line = TEMPLATE.lines().nth(line - 1).unwrap();
        line.find("{template.owner}").unwrap() + 1
    };
    let expected = [
        ("TM-038", 14, column(14)),
        ("TM-037", 20, 1),
        ("TM-038", 24, column(24)),
    ];
    assert_eq!(places, expected, "{findings:#?}");
    // With a value it can be used.
    let text = TEMPLATE.replace("required: true", "default: acme");
    let (bundle, _) = accepted(&text);
    assert_eq!(bundle.unset_variables, Vec::<String>::new());
    let agent = bundle.agents().next().unwrap();
    assert_eq!(agent.description, "Mends things for acme.");
    // What is not declared is an error where it stands, and places behind a value stay right.
    let wrong = text.replace("{template.shelf}", "{template.shelve}/{odd}");
    let (_, findings) = Bundle::read(&wrong);
    let line = wrong.lines().nth(23).unwrap();
    let found: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == DiagnosticSeverity::Error)
        .map(|finding| finding.span.unwrap().column - 1)
        .collect();
    assert_eq!(
        found,
        [line.find("{template.shelve").unwrap()],
        "{findings:#?}"
    );
    let broken = text.replace("{template.shelf}\"", "{template.shelf}\" oops");
    let (_, findings) = Bundle::read(&broken);
    for finding in &findings {
        let span = finding.span.unwrap();
        assert!(broken.get(span.range()).is_some(), "{finding:?}");
    }
}

#[tokio::test]
async fn paths_stand_behind_the_base_of_the_tool() {
    let server =
        crate::support::Server::start(|_, _| crate::support::json_reply(&serde_json::json!({})))
            .await;
    let text = format!(
        "kind: commonagents.info/v1/tool\nname: t\ndescription: d\n\
         parameters: {{properties: {{id: {{type: string}}}}}}\n\
         stateless_http: {{base_url: 'http://127.0.0.1:{port}/v1/', headers: {{X-A: b}}}}\n\
         actions:\n  - {{name: one, description: d, execute: {{stateless_http: {{method: GET, url: '/parts/{{id}}'}}}}}}\n  \
         - {{name: two, description: d, execute: {{stateless_http: {{method: GET, url: 'http://127.0.0.1:{port}/two'}}}}}}\n",
        port = server.port
    );
    let (bundle, _) = accepted(&text);
    let tool = std::sync::Arc::new(bundle.tools().next().unwrap().clone());
    let task = crate::mcp_support::task(tool);
    for action in ["one", "two"] {
        let id = serde_json::json!({"id": "a/b"});
        crate::mcp_support::value(&task, action, id).await;
    }
    crate::mcp_support::end(task).await;
    let seen = server.seen();
    let lines: Vec<&str> = seen
        .iter()
        .filter_map(|request| request.lines().next())
        .collect();
    assert_eq!(lines, ["GET /v1/parts/a%2Fb HTTP/1.1", "GET /two HTTP/1.1"]);
    let without = text.replace("base_url: 'http", "x-base_url: 'http");
    let (_, findings) = Bundle::read(&without);
    assert_eq!(codes(&findings), ["TM-013"]);
}

proptest! {
    /// Whatever stands around the variables of a bundle, and whatever their values are, places are places of the file.
    #[test]
    fn places_around_template_variables_lie_in_the_file(
        value in "[a-zé😀{}: -]{0,9}", at in 0usize..700, length in 0usize..30,
        with in "[{}:\\[\\]\"aé\n .-]{0,6}|\\{template\\.[a-z]{0,6}\\}?",
    ) {
        let mut text = TEMPLATE.replace("required: true", &format!("default: '{value}'"));
        let at = text.floor_char_boundary(at);
        let end = text.floor_char_boundary(at + length);
        text.replace_range(at..end, &with);
        let (_, findings) = Bundle::read(&text);
        let mut last = 0;
        for finding in findings {
            let span = finding.span.expect("a place");
            prop_assert!(text.get(span.range()).is_some(), "{:?}", finding);
            prop_assert!(last <= span.offset);
            last = span.offset;
            let before = &text[..span.offset];
            let start = before.rfind('\n').map_or(0, |end| end + 1);
            prop_assert_eq!(span.line, before.matches('\n').count() + 1, "{:?}", finding);
            prop_assert!(span.column >= 1 && span.column <= text[start..].chars().count() + 1);
        }
    }
}
