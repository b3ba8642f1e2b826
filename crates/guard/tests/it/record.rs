//! What the guard writes down: a trace that can be scanned, findings, events of OCSF.

use std::io::Write;
use std::sync::{Arc, Mutex};

use proofhouse_detect::{TraceItem, TraceReader};
use proofhouse_guard::engine::{AskRoute, GuardSession, GuardSetup, MessageFrom};
use proofhouse_guard::policy::Policy;
use proofhouse_guard::record::GuardRecorder;
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn everything_is_written_as_it_happens() {
    let (trace, findings, ocsf) = (Kept::default(), Kept::default(), Kept::default());
    let recorder = GuardRecorder::default()
        .with_clock(|| jiff::Timestamp::UNIX_EPOCH)
        .with_trace(Box::new(trace.clone()), "files")
        .with_findings(Box::new(findings.clone()))
        .with_ocsf(Box::new(ocsf.clone()));
    let setup = GuardSetup {
        asks: AskRoute::Nobody,
        server: "files".to_owned(),
        origin: None,
        policy: Arc::new(Policy::stock()),
        lock: None,
        watcher: None,
    };
    let mut session = GuardSession::new(setup, recorder.shared()).unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {"path": "a"}}});
    session.judge(MessageFrom::Client, call.to_string().as_bytes());
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
    session.judge(MessageFrom::Server, answer.to_string().as_bytes());
    let bad = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "post", "arguments": {"k": "AKIAIOSFODNN7EXAMPLE"}}});
    session.judge(MessageFrom::Client, bad.to_string().as_bytes());

    let bytes = trace.0.lock().unwrap().clone();
    let messages: Vec<_> = TraceReader::new(&bytes[..])
        .map(|item| match item.unwrap() {
            TraceItem::Message { message, .. } => message,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(messages.len(), 3);
    assert_eq!(
        messages[1].content,
        json!({"content": [], "name": "read", "arguments": {"path": "a"}})
    );
    assert_eq!(trace.lines()[0]["recorded_by"], "proofhouse guard");

    let found = findings.lines();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["code"], &found[0]["rule"], &found[0]["sequence"]),
        (
            &json!("rule_matched"),
            &json!("credential-in-call"),
            &json!(3)
        )
    );
    assert_eq!(found[0]["time"], "1970-01-01T00:00:00.000Z");
    let events = ocsf.lines();
    assert_eq!(
        (&events[0]["class_uid"], &events[0]["disposition_id"]),
        (&json!(2004), &json!(2))
    );
}
