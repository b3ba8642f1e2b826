//! `proofhouse lsp` with a client that has no window: what it shows is what `validate` says, and it helps while one types.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::sources::root;
use crate::support::{command, json as parse, run};

/// A client.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    /// What came while something else was waited for.
    notices: Vec<Value>,
}

impl Client {
    fn start() -> Self {
        let mut child = command(&["lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 0,
            notices: Vec::new(),
        };
        let answer = client.ask("initialize", &json!({"capabilities": {}}));
        assert_eq!(
            answer["result"]["capabilities"]["textDocumentSync"]["change"],
            2
        );
        client.tell("initialized", &json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// The diagnostics of a version of a document.
    fn diagnostics(&mut self, uri: &str, version: u64) -> Vec<Value> {
        loop {
            let message = if self.notices.is_empty() {
                self.read()
            } else {
                self.notices.remove(0)
            };
            let params = &message["params"];
            if message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params["version"] == version
            {
                return params["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
        self.diagnostics(uri, 1)
    }

    fn at(&mut self, method: &str, uri: &str, line: usize, character: usize) -> Value {
        let params = json!({
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": character},
        });
        self.ask(&format!("textDocument/{method}"), &params)["result"].clone()
    }

    fn labels(&mut self, uri: &str, line: usize, character: usize) -> Vec<String> {
        let items = self.at("completion", uri, line, character);
        let items = items.as_array().unwrap().iter();
        items
            .map(|item| item["label"].as_str().unwrap().to_owned())
            .collect()
    }

    fn end(mut self) {
        assert_eq!(self.ask("shutdown", &Value::Null)["result"], Value::Null);
        self.tell("exit", &Value::Null);
        drop(self.input.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.canonicalize().unwrap().display())
}

fn text(path: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "a file of this repository")]
    let text = std::fs::read_to_string(path);
    text.unwrap()
}

/// Code, severity, line, column and message of each finding, as `validate` and as the server say it.
type Shown = (String, u64, u64, u64, String);

fn of_validate(path: &Path) -> Vec<Shown> {
    let ran = run(&["validate", "--format", "json", &path.display().to_string()]);
    let report = parse(&ran.stdout);
    let findings = report["files"][0]["diagnostics"]
        .as_array()
        .unwrap()
        .clone();
    let mut shown: Vec<Shown> = findings
        .iter()
        .map(|finding| {
            let span = &finding["span"];
            let number = |key: &str| span[key].as_u64().map_or(0, |number| number - 1);
            let severity = if finding["severity"] == "error" { 1 } else { 2 };
            let word = |key: &str| finding[key].as_str().unwrap().to_owned();
            (
                word("code"),
                severity,
                number("line"),
                number("column"),
                word("message"),
            )
        })
        .collect();
    shown.sort();
    shown
}

fn of_server(diagnostics: &[Value]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = diagnostics
        .iter()
        .map(|one| {
            let start = &one["range"]["start"];
            (
                one["code"].as_str().unwrap().to_owned(),
                one["severity"].as_u64().unwrap(),
                start["line"].as_u64().unwrap(),
                start["character"].as_u64().unwrap(),
                one["data"]["message"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    shown.sort();
    shown
}

#[test]
fn diagnostics_are_those_of_validate() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = [
        root().join("examples/documents/broken.yaml"),
        root().join("examples/documents/poisoned-tool.yaml"),
        root().join("scenarios/capability_poisoning/weather-key-theft.yaml"),
        root().join("scenarios/capability_poisoning/weather-key-theft.cases.yaml"),
        root().join("examples/tools/weather.yaml"),
        root().join("examples/agents/delegation.yaml"),
        root().join("examples/action/proofhouse.yaml"),
        put(
            "tool.yaml",
            "kind: commonagents.info/v1beta2/tool\nnamespace: a\nnam: b\nactions: 3\n",
        ),
        put(
            "agent.yaml",
            "kind: commonagents.info/v1beta2/agent\nnamespace: a\nname: b\ndescription: d\nprompt: p\ncapabilities: {nobody: '*'}\n",
        ),
        put(
            "proofhouse.yaml",
            "proofhouse: 1\nsubjects: [sim:carefull]\nrepeats: many\nfail_onn: [x]\n",
        ),
        put(
            "severity.yaml",
            "oatf: \"0.1\"\nattack:\n  severity: hihg\n  execution: {mode: mcp_server, state: {}}\n",
        ),
        put(
            "cut.yaml",
            "oatf: \"0.1\"\nattack:\n  name: \"never closed\n",
        ),
        put("empty.twin.yaml", ""),
    ];
    let mut client = Client::start();
    let mut broken = 0;
    for path in files {
        let expected = of_validate(&path);
        let shown = client.open(&uri(&path), &text(&path));
        assert_eq!(of_server(&shown), expected, "{}", path.display());
        broken += usize::from(!expected.is_empty());
    }
    assert!(broken >= 6, "only {broken} files are broken");
    client.end();
}

#[test]
fn edits_are_followed_and_the_last_version_is_judged() {
    let mut client = Client::start();
    let uri = "file:///nowhere/attack.yaml";
    let before = "oatf: \"0.1\"\nattack:\n  severity: high\n  execution: {mode: mcp_server, state: {tools: []}}\n";
    let first = client.open(uri, before);
    assert!(!first.iter().any(|one| one["severity"] == 1), "{first:?}");
    // Letter by letter, in one line, with a place that counts UTF-16 units.
    let edits = [(12, 16, "h"), (13, 13, "i"), (14, 14, "h"), (15, 15, "g")];
    for (number, (from, to, typed)) in (2..).zip(edits) {
        let at = |character: u64| json!({"line": 2, "character": character});
        let change = json!({"range": {"start": at(from), "end": at(to)}, "text": typed});
        let params = json!({
            "textDocument": {"uri": uri, "version": number},
            "contentChanges": [change],
        });
        client.tell("textDocument/didChange", &params);
    }
    let last = client.diagnostics(uri, 5);
    let wrong = last
        .iter()
        .find(|one| one["severity"] == 1)
        .expect("hihg is no severity");
    assert_eq!(wrong["range"]["start"]["line"], 2, "{wrong}");

    // What was probably meant is one action away.
    let range = wrong["range"].clone();
    let params =
        json!({"textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": []}});
    let actions = client.ask("textDocument/codeAction", &params)["result"].clone();
    let edit = &actions[0]["edit"]["changes"][uri][0];
    assert_eq!(edit["newText"], "high", "{actions}");
    assert_eq!(edit["range"]["start"], json!({"line": 2, "character": 12}));
    assert_eq!(edit["range"]["end"], json!({"line": 2, "character": 16}));
    let closing = json!({"textDocument": {"uri": uri}});
    client.tell("textDocument/didClose", &closing);
    client.end();
}

#[test]
fn completion_hover_definition_and_folding() {
    let mut client = Client::start();
    let uri = "file:///nowhere/attack.yaml";
    let document = "\
oatf: \"0.1\"
attack:
  id: ACME-001
  severty: high
  x-proofhouse: {twin: attack.twin.yaml}
  execution:
    phases:
      - name: one
        mode: mcp_server
        state: {tools: []}
        
      - name: two
        mode: mcp_server
        state: {tools: []}
  severity: 
";
    client.open(uri, document);
    // Keys that are not there yet, where the cursor is.
    let keys = client.labels(uri, 10, 8);
    assert!(keys.contains(&"trigger".to_owned()), "{keys:?}");
    assert!(
        !keys.contains(&"name".to_owned()) && !keys.contains(&"attack".to_owned()),
        "{keys:?}"
    );
    let levels = client.labels(uri, 14, 12);
    assert!(levels.contains(&"critical".to_owned()), "{levels:?}");
    // A wrong key has the page of its rule, and a right one what it is for.
    let page = client.at("hover", uri, 3, 4);
    let page = page["contents"]["value"].as_str().unwrap().to_owned();
    let code = page.split("**").nth(1).unwrap().to_owned();
    let explained = run(&["explain", &code]).stdout;
    let sentence = explained.lines().nth(2).unwrap_or_default();
    assert!(page.contains(sentence.trim()), "{page}\n{explained}");
    let page = client.at("hover", uri, 5, 4).to_string();
    assert!(page.contains("What the attacking side does."), "{page}");
    let control = client.at("definition", uri, 4, 30);
    assert_eq!(control["uri"], "file:///nowhere/attack.twin.yaml");
    let params = json!({"textDocument": {"uri": uri}});
    let folds = client.ask("textDocument/foldingRange", &params)["result"].clone();
    let lines: Vec<(u64, u64)> = folds
        .as_array()
        .unwrap()
        .iter()
        .map(|fold| {
            (
                fold["startLine"].as_u64().unwrap(),
                fold["endLine"].as_u64().unwrap(),
            )
        })
        .collect();
    assert!(
        lines.contains(&(7, 9)) && lines.contains(&(11, 13)),
        "{lines:?}"
    );

    let config = "file:///nowhere/proofhouse.yaml";
    client.open(config, "proofhouse: 1\nsub");
    let keys = client.labels(config, 1, 3);
    assert!(keys.contains(&"subjects".to_owned()), "{keys:?}");
    let tool = "file:///nowhere/agent.yaml";
    client.open(tool, "kind: commonagents.info/v1beta2/agent\nname: a\ncap");
    let keys = client.labels(tool, 2, 3);
    assert!(keys.contains(&"capabilities".to_owned()), "{keys:?}");
    client.end();
}

#[test]
fn hostile_clients_are_answered_and_never_break_it() {
    let mut client = Client::start();
    let uri = "file:///nowhere/a.yaml";
    client.open(uri, "a: [");
    for (method, params) in [
        ("textDocument/hover", json!({})),
        (
            "textDocument/hover",
            json!({"textDocument": {"uri": uri}, "position": {"line": -1}}),
        ),
        (
            "textDocument/hover",
            json!({"textDocument": {"uri": "file:///other"}, "position": {"line": 0, "character": 0}}),
        ),
        (
            "textDocument/codeAction",
            json!({"textDocument": {"uri": uri}, "range": 3}),
        ),
        ("no/such", json!([1, 2])),
        ("initialize", json!({})),
    ] {
        let answer = client.ask(method, &params);
        assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
    }
    let far = json!({"line": 4_000_000_000_u64, "character": 4_000_000_000_u64});
    let params = json!({"textDocument": {"uri": uri}, "position": far});
    assert!(client.ask("textDocument/completion", &params)["result"].is_array());
    client.tell(
        "textDocument/didChange",
        &json!({"textDocument": 7, "contentChanges": "x"}),
    );
    client.tell("textDocument/didOpen", &json!(null));
    // A document that is too large is told so, and not read.
    let large = "file:///nowhere/large.yaml";
    let shown = client.open(
        large,
        &format!("oatf: \"0.1\"\n{}", "# x\n".repeat(1_200_000)),
    );
    assert_eq!(shown[0]["code"], "PH-002");
    client.end();

    // A message that is no JSON is refused; one without an end ends the session.
    let mut client = Client::start();
    let input = client.input.as_mut().unwrap();
    input.write_all(b"Content-Length: 3\r\n\r\n{x}").unwrap();
    input.flush().unwrap();
    assert_eq!(client.read()["error"]["code"], -32700);
    let input = client.input.as_mut().unwrap();
    input
        .write_all(b"Content-Length: 99999999999\r\n\r\n")
        .unwrap();
    drop(client.input.take());
    assert_eq!(client.child.wait().unwrap().code(), Some(3));
}
