//! Sessions with random documents, edits, places and bytes: nothing panics, and every request is answered.

use std::io::Cursor;

use proofhouse_lsp::rpc::{read_frame, write_frame};
use proofhouse_lsp::{LspEnd, LspSettings, serve};
use serde_json::{Value, json};

struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

const PIECES: &[&str] = &[
    "oatf: \"0.1\"\n",
    "attack:\n",
    "  severity: hihg\n",
    "  execution:\n",
    "    phases:\n",
    "      - name: a\n",
    "      - - - b: 1\n",
    "\t",
    "- ",
    ": ",
    "x-proofhouse: {twin: ../a}\n",
    "---\n",
    "kind: commonagents.info/v1beta2/tool\n",
    "proofhouse: 1\n",
    "\u{feff}",
    "🙂ä",
    "\r\n",
    "\r",
    "|\n",
    "\"",
    "'",
    "{",
    "[",
    "]",
    "}",
    "#",
    "&a *a",
    "\0",
    "\n\n",
    "        ",
];

fn document(chance: &mut Chance) -> String {
    let count = chance.below(30);
    (0..count).map(|_| *chance.of(PIECES)).collect()
}

fn place(chance: &mut Chance) -> Value {
    let far = chance.below(20) == 0;
    let most = if far { usize::MAX >> 1 } else { 12 };
    json!({"line": chance.below(most), "character": chance.below(most)})
}

fn message(chance: &mut Chance, id: u64) -> Value {
    let uri = *chance.of(&[
        "file:///a.yaml",
        "file:///proofhouse.yaml",
        "file:///a.cases.yaml",
        "file:///a.twin.yaml",
        "no uri",
        "",
    ]);
    let document_id = json!({"uri": uri, "version": id});
    let ask = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let tell =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let at = place(chance);
    let other = place(chance);
    let text = document(chance);
    let range = json!({"start": at, "end": other});
    match chance.below(8) {
        0 | 1 => tell(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri, "version": id, "text": text}}),
        ),
        2 => tell(
            "textDocument/didChange",
            json!({"textDocument": document_id, "contentChanges": [{"range": range, "text": text}]}),
        ),
        3 => ask(
            "textDocument/completion",
            json!({"textDocument": document_id, "position": at}),
        ),
        4 => ask(
            "textDocument/hover",
            json!({"textDocument": document_id, "position": at}),
        ),
        5 => ask(
            "textDocument/codeAction",
            json!({"textDocument": document_id, "range": range}),
        ),
        6 => ask(
            "textDocument/definition",
            json!({"textDocument": document_id, "position": at}),
        ),
        _ => ask(
            "textDocument/foldingRange",
            json!({"textDocument": document_id}),
        ),
    }
}

fn answers(mut output: &[u8]) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(frame) = read_frame(&mut output).unwrap() {
        all.push(serde_json::from_slice(&frame).unwrap());
    }
    all
}

#[test]
fn random_sessions_are_answered() {
    let mut chance = Chance(1);
    for _ in 0..60 {
        let mut input = Vec::new();
        let first = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
        write_frame(&mut input, &first).unwrap();
        let mut asked = 1;
        for id in 1..40 {
            let message = message(&mut chance, id);
            asked += usize::from(message.get("id").is_some());
            write_frame(&mut input, &message).unwrap();
        }
        let mut output = Vec::new();
        let end = serve(Cursor::new(input), &mut output, LspSettings::default());
        assert_eq!(end.unwrap(), LspEnd::Abandoned);
        let answers = answers(&output);
        let given = answers.iter().filter(|answer| answer.get("id").is_some());
        assert_eq!(given.count(), asked);
    }
}

#[test]
fn random_bytes_end_the_session_and_nothing_else() {
    let mut chance = Chance(2);
    let parts: &[&[u8]] = &[
        b"Content-Length: ",
        b"12",
        b"\r\n\r\n",
        b"\n",
        b"{\"jsonrpc\": \"2.0\", \"id\": 1}",
        b"{}",
        b"[[[[",
        b"\xff\xfe",
        b"99999999999999999999",
        b"null",
    ];
    for _ in 0..500 {
        let count = chance.below(12);
        let input: Vec<u8> = (0..count).flat_map(|_| chance.of(parts).to_vec()).collect();
        let mut output = Vec::new();
        let _ = serve(Cursor::new(input), &mut output, LspSettings::default());
        answers(&output);
    }
}
