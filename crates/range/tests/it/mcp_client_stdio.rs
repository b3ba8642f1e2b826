//! The `mcp_client` driver against processes: shell scripts that play good and hostile servers.

use std::time::Duration;

use futures_util::future::join_all;
use proofhouse_range::{ActorEndpoint, ActorErrorKind, RunError, RunHandle, RunReport, run};
use proofhouse_test_support::process::is_running;
use proofhouse_test_support::wait::soon;
use proofhouse_wire::Spawn;

use crate::client_support::{
    contents, interrupting, operations, options, try_play, verdict, warned,
};

const DOCUMENT: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    state:
      actions: [{method: tools/call, params: {name: transfer}}]
      sampling_responses: [{content: sure}]
  indicators:
    - surface: tools/call
      target: content[*].text
      pattern: {contains: done}
"#;

/// Reads lines, with the id of each in `$id`.
const LOOP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case "$line" in
"#;

const LEGACY: &str = r#"
    *'"method":"server/discover"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}' ;;
"#;

const MODERN: &str = r#"
    *'"method":"server/discover"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}' ;;
"#;

const DONE: &str = r#"
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"done"}]}}' ;;
"#;

fn script(cases: &[&str]) -> String {
    format!("{LOOP}{}\n  esac\ndone\n", cases.concat())
}

async fn try_sh(script: &str) -> Result<RunReport, RunError> {
    let spawn = Spawn {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        ..Spawn::default()
    };
    try_play(DOCUMENT, options(ActorEndpoint::Command(spawn))).await
}

async fn sh(script: &str) -> RunReport {
    try_sh(script).await.unwrap()
}

#[tokio::test]
async fn both_eras_give_the_same_verdict() {
    let legacy_call = r#"
    *'"method":"tools/call"'*)
      call=$id
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}'
      echo '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}' ;;
    *'"id":"s"'*'"text":"sure"'*)
      id=$call
"#;
    let report = sh(&script(&[LEGACY, legacy_call, DONE])).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(
        operations(&report),
        [
            "> server/discover",
            "< server/discover",
            "> initialize",
            "< initialize",
            "> notifications/initialized",
            "> tools/call",
            "< notifications/message",
            "> sampling/createMessage",
            "< sampling/createMessage",
            "< tools/call"
        ]
    );
    let modern_call = r#"
    *'"inputResponses":{"k":'*'"text":"sure"'*'"requestState":"st"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"done"}]}}' ;;
    *'"method":"tools/call"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"input_required","requestState":"st","inputRequests":{"k":{"method":"sampling/createMessage","params":{}}}}}' ;;
"#;
    let report = sh(&script(&[MODERN, modern_call])).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
    assert_eq!(contents(&report, "sampling/createMessage").len(), 2);
}

#[tokio::test]
async fn a_server_that_dies_of_the_first_question_is_started_again() {
    let discover = r#"    *'"method":"server/discover"'*) exit 3 ;;
"#;
    let call = r#"    *'"method":"tools/call"'*)"#;
    let report = sh(&script(&[discover, LEGACY, call, DONE])).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
}

#[tokio::test]
async fn a_server_that_ignores_the_first_question_is_of_the_legacy_era() {
    let discover = r#"    *'"method":"server/discover"'*) ;;
"#;
    let call = r#"    *'"method":"tools/call"'*)"#;
    let report = sh(&script(&[discover, LEGACY, call, DONE])).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
}

#[tokio::test]
async fn a_modern_server_that_starts_slowly_is_met_as_one() {
    // It answers the first question only when the second has come.
    let slow = r#"
    *'"method":"server/discover"'*) first=$id ;;
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$first',"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
      echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32022,"message":"no handshake here"}}' ;;
    *'"io.modelcontextprotocol/protocolVersion":"2026-07-28"'*'"method":"tools/call"'*|*'"method":"tools/call"'*'"io.modelcontextprotocol/protocolVersion":"2026-07-28"'*)"#;
    let report = sh(&script(&[slow, DONE])).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(
        operations(&report).last().map(String::as_str),
        Some("< tools/call")
    );
}

#[tokio::test]
async fn a_legacy_server_that_starts_slowly_did_nothing_unusual() {
    let slow = r#"
    *'"method":"server/discover"'*) first=$id ;;
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$first',"error":{"code":-32601,"message":"what?"}}'
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"method":"tools/call"'*)"#;
    let report = sh(&script(&[slow, DONE])).await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
    assert_eq!(report.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn whatever_a_process_does_the_run_ends_in_time() {
    let call = |body: &str| {
        let case = format!("    *'\"method\":\"tools/call\"'*) {body} ;;\n");
        script(&[LEGACY, &case])
    };
    let cases = [
        ("it exits", call("echo oops >&2; exit 1"), "`tools/call`: "),
        ("it is silent", call("sleep 5"), "no answer in time"),
        (
            "half a line",
            call("printf '{\"jsonrpc\"'; exit 0"),
            "a line without an end",
        ),
        (
            "garbage",
            call("echo hello; echo '{]'; echo '[]'; exit 0"),
            "garbage",
        ),
        (
            "a wrong id",
            call("echo '{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}'; exit 0"),
            "never made, id 77",
        ),
        (
            "a flood",
            call("while echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}'; do :; done"),
            "too many messages",
        ),
        (
            "a line without end",
            call("cat /dev/zero | tr '\\0' x"),
            "no answer in time",
        ),
        (
            "it does not read",
            call("exec <&-; sleep 1"),
            "`tools/call`: ",
        ),
        ("noise on stderr", call("yes >&2"), "no answer in time"),
    ];
    let runs = cases.map(|(name, script, warning)| async move {
        let spawn = Spawn {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script],
            ..Spawn::default()
        };
        let mut options = options(ActorEndpoint::Command(spawn));
        if warning == "no answer in time" {
            options.limits.response_timeout = Duration::from_secs(2);
        }
        let report = try_play(DOCUMENT, options).await.unwrap();
        assert!(
            report.duration < Duration::from_secs(30),
            "{name}: {:?}",
            report.duration
        );
        assert!(report.errors.is_empty(), "{name}: {:?}", report.errors);
        assert_eq!(verdict(&report), "NotExploited", "{name}");
        assert!(warned(&report, warning), "{name}: {:?}", report.warnings);
    });
    join_all(runs).await;
}

#[tokio::test]
async fn deliveries_reach_the_process_as_asked() {
    const SKEWED: &str = r#"
oatf: "0.1"
attack:
  execution:
    actors:
      - name: default
        mode: mcp_client
        phases:
          - state: {actions: []}
            trigger: {event: initialize}
          - x-delivery: DELIVERY
            state: {actions: [{method: tools/call}]}
  indicators:
    - surface: notifications/seen
      protocol: mcp
      target: lines
      pattern: {condition: EXPECTED}
"#;
    // The server tells how many lines it has read when it answers the last of them.
    let call = r#"    *'"method":"tools/call"'*)
      calls=$((calls + 1))
      echo '{"jsonrpc":"2.0","method":"notifications/seen","params":{"lines":"'$calls $floods $((${#line} > 3000))'"}}'
      echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
    *'"progressToken":"flood"'*) floods=$((floods + 1)) ;;
"#;
    let script = format!("calls=0; floods=0\n{}", script(&[LEGACY, call]));
    for (delivery, expected) in [
        ("{delay: 20ms}", "1 0 0"),
        ("{slow_stream: 1ms}", "1 0 0"),
        ("{oversized: 4000, deep_nesting: 20}", "1 0 1"),
        ("{duplicate_ids: true}", "2 0 0"),
        ("{notification_flood: 5}", "1 5 0"),
    ] {
        let document = SKEWED.replace("DELIVERY", delivery);
        let document = document.replace("EXPECTED", expected);
        let spawn = Spawn {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.clone()],
            ..Spawn::default()
        };
        let report = try_play(&document, options(ActorEndpoint::Command(spawn)))
            .await
            .unwrap();
        assert_eq!(
            verdict(&report),
            "Exploited",
            "{delivery}: {:?}",
            report.trace
        );
        assert!(
            report.duration < Duration::from_secs(30),
            "{delivery}: {:?}",
            report.warnings
        );
    }
    let document = SKEWED.replace("DELIVERY", "{abrupt_close: true}");
    let spawn = Spawn {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), script],
        ..Spawn::default()
    };
    let document = document.replace("EXPECTED", "never");
    let report = try_play(&document, options(ActorEndpoint::Command(spawn)))
        .await
        .unwrap();
    assert!(
        warned(&report, "`tools/call`: the server ended"),
        "{:?}",
        report.warnings
    );
}

#[tokio::test]
async fn a_command_that_cannot_be_is_an_error_that_says_so() {
    let spawn = Spawn {
        program: "no-such-program-anywhere".to_owned(),
        ..Spawn::default()
    };
    match try_play(DOCUMENT, options(ActorEndpoint::Command(spawn))).await {
        Err(RunError::Actor(error)) => {
            assert_eq!(error.kind, ActorErrorKind::Command);
            let text = error.to_string();
            assert!(text.contains("`default`") && text.contains("no-such-program-anywhere"));
        }
        other => panic!("{other:?}"),
    }
    let report = sh("echo cannot load module >&2; exit 1").await;
    assert_eq!(report.errors[0].kind, ActorErrorKind::Command);
    assert!(
        report.errors[0].message.contains("cannot load module"),
        "{:?}",
        report.errors
    );
}

#[tokio::test]
async fn nothing_of_a_process_stays_behind() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let start = format!(
        "trap '' TERM\nsleep 300 &\necho $$ $! > '{}'\n",
        pids.display()
    );
    let call = r#"    *'"method":"tools/call"'*)"#;
    let report = sh(&format!(
        "{start}{}\nsleep 300\n",
        script(&[LEGACY, call, DONE])
    ))
    .await;
    assert_eq!(verdict(&report), "Exploited", "{:?}", report.warnings);
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of a few bytes that the test wrote"
    )]
    let pids = std::fs::read_to_string(&pids).unwrap();
    for pid in pids.split_whitespace() {
        ends(pid).await;
    }
}

/// Waits until a process is gone.
async fn ends(pid: &str) {
    soon(&format!("the end of {pid}"), || !is_running(pid)).await;
}

#[tokio::test]
async fn an_interrupted_run_stops_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let start = format!("echo $$ > '{}'\n", file.display());
    let call = r#"    *'"method":"tools/call"'*) sleep 300 ;;
"#;
    let spawn = Spawn {
        program: "sh".to_owned(),
        arguments: vec![
            "-c".to_owned(),
            format!("{start}{}", script(&[LEGACY, call])),
        ],
        ..Spawn::default()
    };
    let document = proofhouse_oatf::load(DOCUMENT).unwrap().document;
    let handle = RunHandle::default();
    let mut options = options(ActorEndpoint::Command(spawn));
    options.observer = Some(interrupting(&handle, "tools/call"));
    options.limits.response_timeout = Duration::from_secs(60);
    let report = run(&document, options, &handle).await.unwrap();
    assert!(
        report.duration < Duration::from_secs(30),
        "{:?}",
        report.duration
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of a few bytes that the test wrote"
    )]
    let pid = std::fs::read_to_string(&file).unwrap();
    ends(pid.trim()).await;
}
