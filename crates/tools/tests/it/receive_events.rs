//! Filters with their allow lists, messages, triggers, and the manifests of triggers and schedules.

use proofhouse_manifest::{Bundle, Catalog, EventTrigger, Tool, ToolEvent};
use proofhouse_source::DiagnosticSeverity;
use proofhouse_tools::allow_list::AllowList;
use proofhouse_tools::receive::filter::{AllowedValues, CompiledFilter, ParameterTypes};
use proofhouse_tools::receive::message::{MAX_MESSAGE_BYTES, compose};
use proofhouse_tools::receive::{Discard, timeout, trigger};
use serde_json::{Value, json};

fn tool(filter: &str, rest: &str) -> Tool {
    let text = format!(
        r#"kind: commonagents.info/v1beta2/tool
namespace: demo
name: github-pr
description: d
parameters:
  properties:
    owner: {{type: string, require_binding: true}}
    number: {{type: integer, default: 1}}
actions:
  - name: create
    description: d
    parameters: {{properties: {{author: {{type: string}}, tags: {{type: array, default: []}}}}}}
    execute: {{cel: {{expression: "1"}}}}
events:
  - name: comment
    message: "{{event.payload.text}}"
    timeout: 72h
    max_timeout: 168h
    receive:
      webhook:
        filter: "{filter}"
{rest}"#
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}");
    bundle.tools().next().expect("the test is set up").clone()
}

fn admit(filter: &str, list: &AllowList, payload: &Value) -> Result<(), Discard> {
    let tool = tool(filter, "");
    let allowed = AllowedValues::new(list, &ParameterTypes::of(&tool));
    let event = json!({"payload": payload, "headers": {"x-github-event": "issue_comment"}});
    CompiledFilter::of(&tool.events[0]).admit(&event, &allowed)
}

fn list() -> AllowList {
    let mut list = AllowList::default();
    list.seal("owner", json!("acme"));
    for author in ["alice", "bob"] {
        list.add("owner", &json!("evil"));
        list.add("author", &json!(author));
        list.add("number", &json!(7));
    }
    list
}

#[test]
fn an_event_reaches_who_has_dealt_with_what_it_names() {
    let filter =
        "event.payload.owner == parameters.owner && event.payload.author == parameters.author";
    let check = |owner: &str, author: &str| {
        admit(filter, &list(), &json!({"owner": owner, "author": author}))
    };
    assert_eq!(check("acme", "alice"), Ok(()));
    assert_eq!(check("acme", "bob"), Ok(()));
    assert_eq!(check("acme", "mallory"), Err(Discard::Filter));
    // The binding sealed the owner; the model's own value does not count.
    assert_eq!(check("evil", "alice"), Err(Discard::Filter));
    let number = "event.payload.number == parameters.number";
    for value in [json!(7), json!("7"), json!(7.0)] {
        assert_eq!(admit(number, &list(), &json!({"number": value})), Ok(()));
    }
    let header = "event.headers['x-github-event'] == 'issue_comment'";
    assert_eq!(admit(header, &AllowList::default(), &json!({})), Ok(()));
}

#[test]
fn a_parameter_without_values_discards_wherever_it_stands() {
    for filter in [
        "event.payload.tag == parameters.tags",
        "event.payload.tag != parameters.tags",
        "true || event.payload.tag == parameters.tags",
        "event.payload.no ? event.payload.tag == parameters.tags : true",
        "!has(parameters.tags) || event.payload.tag == parameters.tags",
        "[1].exists(n, n == 1 || n == parameters.tags)",
    ] {
        let expected = Err(Discard::EmptyParameter {
            name: "tags".to_owned(),
        });
        assert_eq!(
            admit(filter, &list(), &json!({"no": false})),
            expected,
            "{filter}"
        );
    }
    // A name that is put together at run time has the last word, too.
    let found = admit(
        "true == (parameters[event.payload.name] == 1 || true)",
        &list(),
        &json!({"name": "x"}),
    );
    assert!(matches!(found, Err(Discard::Failed { .. })), "{found:?}");
}

#[test]
fn a_filter_that_names_nothing_is_warned_of() {
    let text = |filter: &str| {
        format!(
            "kind: commonagents.info/v1beta2/tool\nnamespace: d\nname: t\ndescription: d\n\
             parameters: {{properties: {{owner: {{}}}}}}\nactions:\n  - name: a\n    description: d\n    \
             parameters: {{properties: {{author: {{}}}}}}\n    execute: {{cel: {{expression: '1'}}}}\n\
             events:\n  - name: e\n    message: m\n    parameters: {{properties: {{own: {{}}}}}}\n    \
             receive: {{webhook: {{filter: \"{filter}\"}}}}\n"
        )
    };
    let all = "parameters.owner == 1 || parameters.author == 1 || parameters.own == 1";
    assert!(Bundle::read(&text(all)).1.is_empty());
    let (bundle, findings) = Bundle::read(&text("event.payload.o == parameters.ownr"));
    assert_eq!(bundle.tools().count(), 1);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(
        (findings[0].code, findings[0].severity),
        ("TM-031", DiagnosticSeverity::Warning)
    );
    assert_eq!(findings[0].help.as_deref(), Some("did you mean `own`?"));
}

#[test]
fn filters_that_fail_or_burn_their_budget_let_nothing_in() {
    let found = admit("event.payload.a.b == 1", &list(), &json!({}));
    assert!(
        matches!(&found, Err(Discard::Failed { message }) if message.contains("no such field: a"))
    );
    assert_eq!(found.unwrap_err().word(), "failed");
    let found = admit("event.payload.a", &list(), &json!({"a": "yes"}));
    assert!(matches!(found, Err(Discard::Failed { .. })));
    let heavy =
        "event.payload.n.all(a, event.payload.n.all(b, event.payload.n.all(c, true))) || true";
    let found = admit(heavy, &list(), &json!({"n": vec![1; 1_000]}));
    assert!(matches!(found, Err(Discard::Budget { .. })), "{found:?}");
    let reason = found.unwrap_err();
    let stored = serde_json::to_value(&reason).expect("the test is set up");
    assert_eq!(stored["because"], "budget");
    assert_eq!(
        serde_json::from_value::<Discard>(stored).expect("the test is set up"),
        reason
    );
}

#[test]
fn many_filters_share_one_event() {
    let tool = tool("event.payload.owner == parameters.owner", "");
    let filter = CompiledFilter::of(&tool.events[0]);
    let types = ParameterTypes::of(&tool);
    let tasks: Vec<AllowedValues> = (0..1_000)
        .map(|number| {
            let mut list = AllowList::default();
            list.seal("owner", json!(format!("owner-{number}")));
            AllowedValues::new(&list, &types)
        })
        .collect();
    let event = json!({"payload": {"owner": "owner-77", "rest": vec!["x"; 10_000]}});
    let reached: Vec<usize> = (0..tasks.len())
        .filter(|at| filter.admit(&event, &tasks[*at]).is_ok())
        .collect();
    assert_eq!(reached, [77]);
}

fn event(parameters: &str, message: &str) -> ToolEvent {
    let rest = format!(
        "  - name: second\n    message: {message}\n    parameters: {parameters}\n    receive: {{webhook: {{}}}}\n"
    );
    tool("true", &rest).events[1].clone()
}

#[test]
fn messages_have_aliases_and_parts_of_the_payload() {
    let event = event(
        "{author: event.payload.user.login, number: string(event.payload.n), gone: event.payload.nope}",
        "'{event.author} on #{event.number}: {event.payload.text}{event.gone}{event.payload.list.0}'",
    );
    let value =
        json!({"payload": {"user": {"login": "alice"}, "n": 7, "text": "hi", "list": [{"a": 1}]}});
    let composed = compose(&event, &value);
    assert_eq!(composed.message, "alice on #7: hi{\"a\":1}");
    assert_eq!(composed.event["author"], "alice");
    assert_eq!(composed.event["gone"], Value::Null);
    assert_eq!(composed.event["payload"], value["payload"]);
    assert_eq!(
        composed.problems,
        ["`event.gone` is empty: no such field: nope"]
    );
    // Nothing of it is there, and still the event is not lost.
    let composed = compose(&event, &json!({"payload": null}));
    assert_eq!(composed.message, " on #: ");
    assert_eq!(composed.problems.len(), 5);
}

#[test]
fn messages_hold_what_a_payload_says_and_no_more() {
    let plain = event("{}", "'<{event.payload.text}>'");
    let composed = compose(
        &plain,
        &json!({"payload": {"text": "{event.payload.secret} {{x}}"}}),
    );
    assert_eq!(composed.message, "<{event.payload.secret} {{x}}>");
    let long = json!({"payload": {"text": "ä".repeat(MAX_MESSAGE_BYTES)}});
    let composed = compose(&plain, &long);
    assert!(composed.truncated && composed.message.len() <= MAX_MESSAGE_BYTES);
    // An alias cannot stand in for the payload.
    let event = event("{payload: \"'mine'\"}", "'{event.payload.text}'");
    let composed = compose(&event, &json!({"payload": {"text": "theirs"}}));
    assert_eq!(composed.message, "theirs");
}

#[test]
fn items_of_polls_have_a_name_of_their_own() {
    let rest = "  - name: item\n    message: 'New: {event.title}'\n    parameters: {title: item.title}\n    \
                receive: {poll: {method: GET, url: 'https://example.com/', detect: response.items, key: item.id}}\n";
    let tool = tool("true", rest);
    let composed = compose(&tool.events[1], &json!({"payload": {"title": "Post"}}));
    assert_eq!(composed.message, "New: Post");
    assert!(composed.problems.is_empty());
}

#[test]
fn timeouts_are_clamped() {
    let event = &tool("true", "").events[0];
    let hours = |found: Option<std::time::Duration>| found.map(|found| found.as_secs() / 3600);
    assert_eq!(
        hours(timeout::effective_timeout(None, event, None)),
        Some(72)
    );
    let asking = |asked: u64| proofhouse_manifest::Capability {
        event_timeout: Some(std::time::Duration::from_secs(asked * 3600)),
        ..Default::default()
    };
    for (asked, effective) in [(48, 48), (100, 100), (1_000, 168)] {
        let found = timeout::effective_timeout(Some(&asking(asked)), event, None);
        assert_eq!(hours(found), Some(effective));
    }
}

const AGENT: &str = "kind: commonagents.info/v1beta2/agent\nnamespace: support\nname: triage\n\
                     description: d\nprompt: p\nparameters: {properties: {team: {type: string}, size: {default: 1}}}\n";

fn trigger_text(rest: &str) -> String {
    format!(
        "kind: commonagents.info/v1beta2/trigger\nnamespace: support\nname: inbound\nagent: triage\n\
         owner: user:a@example.com\n{rest}"
    )
}

/// The codes and places of what is wrong, alone and together with an agent.
fn findings(text: &str) -> Vec<String> {
    let whole = format!("{AGENT}---\n{}", text.replace('»', ""));
    let (bundle, mut findings) = Bundle::read(&whole);
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    findings.extend(catalog.check_all(&bundle));
    let start = AGENT.lines().count() + 1;
    findings
        .iter()
        .inspect(|finding| assert_eq!(finding.severity, DiagnosticSeverity::Error))
        .map(|finding| {
            let span = finding.span.expect("the test is set up");
            format!("{} {}:{}", finding.code, span.line - start, span.column)
        })
        .collect()
}

/// Where the marks are, as `line:column`.
fn marks(text: &str) -> Vec<String> {
    let mut marks = Vec::new();
    for (line, content) in text.lines().enumerate() {
        for (nth, (at, _)) in content.match_indices('»').enumerate() {
            marks.push(format!("{}:{}", line + 1, at - nth * '»'.len_utf8() + 1));
        }
    }
    marks
}

fn check(text: &str, codes: &[&str]) {
    let expected: Vec<String> = codes
        .iter()
        .zip(marks(text))
        .map(|(code, mark)| format!("{code} {mark}"))
        .collect();
    assert_eq!(findings(text), expected, "{text}");
    assert_eq!(expected.len(), codes.len(), "{text}");
}

#[test]
fn triggers_are_read_and_checked() {
    let good = "source: {type: email, before: [{assert: \"event.payload.to != ''\"}]}\n\
                message: 'From {event.payload.from}'\ninputs: {team: a}\nenabled: true\n";
    check(&trigger_text(good), &[]);
    let (bundle, _) = Bundle::read(&trigger_text(good));
    let trigger = bundle.triggers().next().expect("the test is set up");
    assert_eq!(
        (trigger.agent.as_str(), trigger.source.kind.as_str()),
        ("triage", "email")
    );
    let with = |from: &str, to: &str| trigger_text(good).replace(from, to);
    for (text, codes) in [
        (with("agent: triage", "agent: »triag"), &["TM-020"][..]),
        (
            with("agent: triage", "agent: »triage").replace("inputs: {team: a}\n", ""),
            &["TM-030"],
        ),
        (
            with("agent: triage", "agent: »triage").replace("team: a", "team: 5"),
            &["TM-030"],
        ),
        (
            with(
                "\nmessage: 'From {event.payload.from}'",
                "\nmessage: 'From »{event.from}'",
            ),
            &["TM-012"],
        ),
        (
            with(
                "\nmessage: 'From {event.payload.from}'",
                "\nmessage: '»{parameters.x}'",
            ),
            &["TM-012"],
        ),
        (
            with(
                "[{assert: \"event.payload.to != ''\"}]",
                "[{»transform: \"1\"}]",
            ),
            &["TM-024"],
        ),
        (
            with(
                "[{assert: \"event.payload.to != ''\"}]",
                "[{assert: »input.x}]",
            ),
            &["TM-009"],
        ),
        (
            with(
                "[{assert: \"event.payload.to != ''\"}]",
                "[{assert: »review('x')}]",
            ),
            &["TM-009"],
        ),
        (
            with("''\"}]", "''\", on_fail: lock_task}]").replace("[{assert", "[{»assert"),
            &["TM-023"],
        ),
        (with("enabled: true", "enabled: »yes please"), &["TM-003"]),
        (with("type: email", "type: »''"), &["TM-015"]),
        (with("inputs: {team: a}", "»inputs: [a]"), &["TM-003"]),
        (
            with("kind:", "»kind:").replace("enabled: true\n", ""),
            &["TM-005"],
        ),
    ] {
        check(&text, codes);
    }
}

#[test]
fn schedules_are_read_and_checked() {
    let good = "kind: commonagents.info/v1/schedule\nnamespace: support\nname: daily\nagent: triage\n\
                cron: 0 9 * * 1-5\ntimezone: Australia/Sydney\nowner: user:a@example.com\n\
                inputs: {team: a, message: [{mimeType: text/plain, text: Go.}]}\nenabled: true\n";
    check(good, &[]);
    let (bundle, _) = Bundle::read(good);
    let schedule = bundle.schedules().next().expect("the test is set up");
    let next = schedule
        .cadence
        .next_after("2026-01-01T00:00:00Z".parse().expect("the test is set up"));
    assert_eq!(
        next.expect("the test is set up").to_string(),
        "2026-01-01T22:00:00Z"
    );
    for (from, to, code) in [
        ("cron: 0 9 * * 1-5", "cron: »0 9 * *", "TM-029"),
        ("cron: 0 9 * * 1-5", "cron: »0 0 9 * * 1", "TM-029"),
        ("cron: 0 9 * * 1-5", "cron: »0 0 31 2 *", "TM-029"),
        ("timezone: Australia/Sydney", "timezone: »Sydney", "TM-029"),
        ("agent: triage", "agent: »other", "TM-020"),
        (
            "namespace: support\nname: daily\nagent: triage",
            "namespace: sales\nname: daily\nagent: »triage",
            "TM-020",
        ),
        (
            "message: [{mimeType: text/plain, text: Go.}]",
            "message: »5",
            "TM-003",
        ),
        ("enabled: true", "»crom: x\nenabled: true", "TM-004"),
    ] {
        check(&good.replace(from, to), &[code]);
    }
    // Somebody has to say what the task is told.
    let silent = good.replace(", message: [{mimeType: text/plain, text: Go.}]", "");
    check(
        &silent.replace("agent: triage", "agent: »triage"),
        &["TM-030"],
    );
    let missing = good
        .replace("team: a, ", "")
        .replace("agent: triage", "agent: »triage");
    check(&missing, &["TM-030"]);
}

#[test]
fn triggers_fire_on_what_their_assertions_allow() {
    let text = trigger_text(
        "source:\n  type: github\n  before:\n    - assert: event.payload.action == 'opened'\n    - assert: event.payload.private == false\n      \
         error_message: only public ones\n    - {assert: 'event.payload.n > 5', on_fail: continue}\n    \
         - {assert: 'false', condition: event.payload.action == 'closed'}\n\
         message: '#{event.payload.n}: {event.payload.title}'\ninputs: {team: a}\nenabled: true\n",
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}");
    let read: EventTrigger = bundle
        .triggers()
        .next()
        .expect("the test is set up")
        .clone();
    assert!(trigger::listens(&read, "github") && !trigger::listens(&read, "gitlab"));
    let fire = |payload: Value| {
        trigger::fire(
            &read,
            &json!({"payload": payload}),
            "2026-01-01T00:00:00.000Z",
        )
    };
    let start = fire(json!({"action": "opened", "private": false, "n": 3, "title": "It {x}"}))
        .expect("the test is set up");
    assert_eq!(start.message.as_deref(), Some("#3: It {x}"));
    assert_eq!(start.inputs["team"], "a");
    let found = fire(json!({"action": "closed", "private": false, "n": 3}));
    assert_eq!(
        found.unwrap_err(),
        Discard::Assertion {
            number: 0,
            message: None
        }
    );
    let found = fire(json!({"action": "opened", "private": true, "n": 3})).unwrap_err();
    assert_eq!(
        found.to_string(),
        "assertion 2 does not hold: only public ones"
    );
    assert!(matches!(fire(json!({})), Err(Discard::Failed { .. })));
    let start =
        fire(json!({"action": "opened", "private": false, "n": 9})).expect("the test is set up");
    assert_eq!(start.problems, ["`event.payload.title` has no value"]);
    let off = EventTrigger {
        enabled: false,
        ..read.clone()
    };
    assert!(!trigger::listens(&off, "github"));
    assert_eq!(
        trigger::fire(&off, &json!({}), "").unwrap_err(),
        Discard::Disabled
    );
}

#[test]
fn the_example_is_fit_for_use() {
    let (bundle, findings) =
        Bundle::read(include_str!("../../../../examples/events/github-pr.yaml"));
    assert!(findings.is_empty(), "{findings:#?}");
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    assert_eq!(catalog.check_all(&bundle), []);
    assert_eq!(
        (catalog.triggers().count(), catalog.schedules().count()),
        (1, 1)
    );
}
