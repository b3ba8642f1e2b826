//! A session with a policy, and what it found.

use std::path::Path;
use std::sync::{Arc, Mutex};

use proofhouse_guard::engine::{
    AskRoute, GuardAction, GuardSession, GuardSetup, MessageFrom, Passage, Watcher,
};
use proofhouse_guard::pins::LockFile;
use proofhouse_guard::policy::{self, Policy};
use proofhouse_guard::record::GuardRecorder;
use proofhouse_guard::{FindingCode, GuardFinding};
use serde_json::{Value, json};

/// A session whose findings are kept.
pub(crate) struct Tried {
    pub(crate) session: GuardSession,
    found: Arc<Mutex<Vec<GuardFinding>>>,
    next: u64,
}

/// The policy of a text, which must be valid.
pub(crate) fn policy(text: &str) -> Policy {
    let (policy, findings) = policy::read(text);
    assert_eq!(findings, [], "{text}");
    policy
}

impl Tried {
    pub(crate) fn new(policy: impl Into<Arc<Policy>>, lock: Option<&Path>) -> Self {
        Self::watched(policy, lock, None)
    }

    pub(crate) fn watched(
        policy: impl Into<Arc<Policy>>,
        lock: Option<&Path>,
        watcher: Option<Watcher>,
    ) -> Self {
        let (recorder, found) = recorder();
        let setup = GuardSetup {
            server: "files".to_owned(),
            origin: Some("npx files".to_owned()),
            policy: policy.into(),
            asks: AskRoute::Client,
            lock: lock.map(LockFile::new),
            watcher: watcher.map(Arc::new),
        };
        Self {
            session: GuardSession::new(setup, recorder.shared()).expect("the lock can be used"),
            found,
            next: 1,
        }
    }

    /// What was found since it was asked last.
    pub(crate) fn findings(&self) -> Vec<GuardFinding> {
        std::mem::take(&mut *self.found.lock().unwrap())
    }

    pub(crate) fn codes(&self) -> Vec<FindingCode> {
        self.findings().iter().map(|finding| finding.code).collect()
    }

    pub(crate) fn client_says(&mut self, message: &Value) -> Passage {
        self.session
            .judge(MessageFrom::Client, message.to_string().as_bytes())
    }

    pub(crate) fn server_says(&mut self, message: &Value) -> Passage {
        self.session
            .judge(MessageFrom::Server, message.to_string().as_bytes())
    }

    /// A request that passes, and what becomes of this result of it: what the client gets.
    pub(crate) fn exchange(&mut self, method: &str, params: &Value, result: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        assert_eq!(self.client_says(&request), Passage::Pass, "{request}");
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match self.server_says(&response) {
            Passage::Pass => response,
            Passage::Instead(actions) => only_to_client(&actions),
        }
    }

    /// Lists definitions, and says what the client gets to see.
    pub(crate) fn list_tools(&mut self, tools: &Value) -> Value {
        self.exchange("tools/list", &json!({}), &json!({"tools": tools}))["result"]["tools"].take()
    }

    /// A call of a tool that passes, and its result.
    pub(crate) fn called(&mut self, tool: &str, text: &str) -> Value {
        let params = json!({"name": tool, "arguments": {}});
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.exchange("tools/call", &params, &result)
    }

    /// What becomes of a call.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Passage {
        let id = self.next;
        self.next += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.client_says(
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
        )
    }
}

/// A recorder whose findings are kept.
pub(crate) fn recorder() -> (GuardRecorder, Arc<Mutex<Vec<GuardFinding>>>) {
    let found = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&found);
    let listener = move |finding: &GuardFinding| kept.lock().unwrap().push(finding.clone());
    (
        GuardRecorder::default().with_listener(Box::new(listener)),
        found,
    )
}

/// The one message that goes to the client.
pub(crate) fn only_to_client(actions: &[GuardAction]) -> Value {
    match actions {
        [GuardAction::ToClient(text)] => serde_json::from_str(text).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

/// What a model reads of a call that was blocked.
pub(crate) fn refusal(passage: &Passage) -> String {
    let Passage::Instead(actions) = passage else {
        panic!("it passed");
    };
    let answer = only_to_client(actions);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned()
}
