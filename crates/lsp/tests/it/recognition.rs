//! Which files of a project are ours: those of other programs get no findings, no completion and no hover.

use std::io::Cursor;

use proofhouse_lsp::rpc::{read_frame, write_frame};
use proofhouse_lsp::{LspSettings, serve};
use serde_json::{Value, json};

/// The findings of a file, and what completion and hover say at the end of its first line.
fn shown(name: &str, text: &str) -> (usize, usize, Value) {
    let uri = format!("file:///project/{name}");
    let end = text.lines().next().unwrap_or_default().chars().count();
    let at = json!({
        "textDocument": {"uri": uri},
        "position": {"line": 0, "character": end},
    });
    let start = json!({
        "textDocument": {"uri": uri},
        "position": {"line": 0, "character": 0},
    });
    let messages = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}),
        json!({
            "jsonrpc": "2.0", "method": "textDocument/didOpen",
            "params": {"textDocument": {"uri": uri, "version": 1, "text": text}},
        }),
        json!({"jsonrpc": "2.0", "id": 1, "method": "textDocument/completion", "params": at}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "textDocument/hover", "params": start}),
    ];
    let mut input = Vec::new();
    for message in messages {
        write_frame(&mut input, &message).unwrap();
    }
    let mut output = Vec::new();
    serve(Cursor::new(input), &mut output, LspSettings::default()).unwrap();
    let mut output = &output[..];
    let mut replies = Vec::new();
    while let Some(frame) = read_frame(&mut output).unwrap() {
        replies.push(serde_json::from_slice::<Value>(&frame).unwrap());
    }
    let published = replies
        .iter()
        .find(|one| one["method"] == "textDocument/publishDiagnostics");
    let result = |id: u64| {
        let reply = replies.iter().find(|one| one["id"] == id);
        reply.unwrap()["result"].clone()
    };
    (
        published.unwrap()["params"]["diagnostics"]
            .as_array()
            .unwrap()
            .len(),
        result(1).as_array().unwrap().len(),
        result(2),
    )
}

#[test]
fn files_of_other_programs_are_left_alone() {
    for (name, text) in [
        (
            "docker-compose.yaml",
            "services:\n  db:\n    image: postgres\n",
        ),
        ("broken.yaml", "a: [\n"),
        (
            "deployment.yaml",
            "kind: Deployment\nmetadata:\n  attack: none\n",
        ),
        ("values.json", "{\"image\": {\"tag\": \"1\"}}\n"),
        ("attacks/notes.yaml", "# oatf: later\ntitle: notes\n"),
        ("list.yaml", "- attack\n- oatf\n"),
    ] {
        assert_eq!(shown(name, text), (0, 0, Value::Null), "{name}");
    }
    // Nobody is told the limits of a program that is not meant.
    let large = format!("services:\n{}", "# x\n".repeat(5_000_000));
    assert_eq!(shown("large.yaml", &large).0, 0);
}

#[test]
fn files_that_say_what_they_are_are_checked() {
    for (name, text) in [
        ("a.yaml", "oatf: \"0.1\"\n"),
        ("a.yaml", "# Mine.\nattack:\n  name: x\n"),
        ("a.yaml", "\u{feff}---\noatf : \"0.1\"\n"),
        ("a.json", "{\"attack\": {}}\n"),
        ("a.json", "{\n  \"$schema\": \"x\", \"oatf\": \"0.1\"\n}\n"),
        ("a.twin.yaml", "services: {}\n"),
        ("a.cases.yaml", "services: {}\n"),
        ("proofhouse.yaml", "services: {}\n"),
        ("a.yaml", "policy: 2\n"),
        ("a.yaml", "kind: commonagents.info/v1beta2/tool\nnam: a\n"),
    ] {
        assert!(shown(name, text).0 > 0, "{name}: {text}");
    }
    let large = format!("oatf: \"0.1\"\n{}", "# x\n".repeat(5_000_000));
    assert_eq!(shown("large.yaml", &large).0, 1);
}

#[test]
fn a_file_that_is_just_begun_gets_help() {
    for (name, text) in [
        ("new.yaml", ""),
        ("new.yaml", "oat"),
        ("new.yaml", "# A new attack.\noat"),
    ] {
        let (findings, _, _) = shown(name, text);
        assert_eq!(findings, 0, "{name}: {text}");
    }
    assert!(shown("new.yaml", "oat").1 > 0);
    assert!(shown("proofhouse.yaml", "sub").1 > 0);
}
