//! Recordings: what was said is said again byte for byte, and what was not asked before is an error.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use proofhouse_agent::model::{
    ChatMessage, Model, ModelConfig, ModelErrorKind, ModelRequest, RecordedModel, Recorder,
    RedactText, open,
};
use proofhouse_wire::CancellationToken;
use serde_json::json;

use crate::players::{End, KEY, Play, Provider, config, events, request};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn user(text: &str) -> ModelRequest {
    ModelRequest {
        messages: vec![ChatMessage::user(text)],
        ..request()
    }
}

fn stream(words: &[&str]) -> Play {
    let mut list: Vec<_> = words
        .iter()
        .map(|word| json!({"choices": [{"delta": {"content": word}}]}))
        .collect();
    list.push(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}));
    Play::Events(events(&list), End::Properly)
}

#[tokio::test]
async fn a_recording_says_the_same_again() {
    let broken = Play::Events(
        events(&[json!({"choices": [{"delta": {"content": "Ha"}}]})]),
        End::Cut,
    );
    let provider = Provider::start([
        stream(&["Hel", "lo."]),
        stream(&["Again", "."]),
        broken,
        Play::Json(400, json!({"error": "no"})),
    ])
    .await;
    let file = Shared::default();
    let model = open("openai:m", &config(&provider)).unwrap();
    let recorder = Recorder::new(model, Box::new(file.clone()), None).unwrap();
    let cancel = CancellationToken::new();
    let asked = [user("a"), user("a"), user("b"), user("c")];
    let mut live = Vec::new();
    for request in &asked {
        let mut heard = Vec::new();
        let outcome = recorder.complete(request, &mut heard, &cancel).await;
        live.push((outcome, heard));
    }
    assert_eq!(live[0].1.len(), 2);
    assert!(live[2].0.is_err() && live[3].0.is_err());
    assert!(recorder.failure().is_none());

    let text = file.text();
    assert_eq!(text.lines().count(), 5);
    assert!(!text.contains(KEY));
    // Whoever records the replay gets the same file: nothing was lost, not even how the text was cut.
    let again = Shared::default();
    let replay = Arc::new(RecordedModel::read(&text).unwrap());
    assert_eq!(
        (replay.name(), replay.is_simulation(), replay.left()),
        ("openai:m", false, 4)
    );
    let recorder = Recorder::new(
        Arc::clone(&replay) as Arc<dyn Model>,
        Box::new(again.clone()),
        None,
    )
    .unwrap();
    for (request, before) in asked.iter().zip(&live) {
        let mut heard = Vec::new();
        let outcome = recorder.complete(request, &mut heard, &cancel).await;
        assert_eq!((outcome, heard), *before);
    }
    assert_eq!(again.text(), text);
    assert_eq!(replay.left(), 0);

    let error = replay
        .complete(&user("a"), &mut Vec::new(), &cancel)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotRecorded);
    assert_eq!(
        error.message,
        "the recording has this request, but not as often as it is asked"
    );
}

#[tokio::test]
async fn what_was_not_recorded_is_told_by_its_first_difference() {
    let provider = Provider::start([stream(&["x"]), stream(&["y"])]).await;
    let file = Shared::default();
    let recorder = Recorder::new(
        open("openai:m", &config(&provider)).unwrap(),
        Box::new(file.clone()),
        None,
    )
    .unwrap();
    let cancel = CancellationToken::new();
    for request in [user("other"), request()] {
        recorder
            .complete(&request, &mut Vec::new(), &cancel)
            .await
            .unwrap();
    }
    let differs = |change: &dyn Fn(&mut ModelRequest)| {
        let mut asked = request();
        change(&mut asked);
        let replay = RecordedModel::read(&file.text()).unwrap();
        async move {
            let error = replay
                .complete(&asked, &mut Vec::new(), &CancellationToken::new())
                .await
                .unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::NotRecorded);
            error.message.split_once("nearest: ").unwrap().1.to_owned()
        }
    };
    assert_eq!(
        differs(&|asked| asked.messages[3] = ChatMessage::user("And in Oslo?")).await,
        "`messages[3].text` is \"And in Oslo?\", recorded was \"And in Rome?\""
    );
    assert_eq!(
        differs(&|asked| asked.options.seed = Some(7)).await,
        "`options.seed` is \"7\", recorded was \"42\""
    );
    assert_eq!(
        differs(&|asked| asked.system = None).await,
        "`system` is not asked any more"
    );
    assert_eq!(
        differs(&|asked| {
            asked.messages.truncate(3);
        })
        .await,
        "`messages` has 3 items, recorded were 4"
    );
    let empty = RecordedModel::read(file.text().lines().next().unwrap()).unwrap();
    let error = empty
        .complete(&request(), &mut Vec::new(), &cancel)
        .await
        .unwrap_err();
    assert!(error.message.contains("no exchange left"), "{error}");
}

#[tokio::test]
async fn secrets_are_redacted_also_across_pieces() {
    let provider = Provider::start([stream(&["the code is hunter", "2-canary", " indeed"])]).await;
    let file = Shared::default();
    let redactor: RedactText = Arc::new(|text: &str| text.replace("hunter2-canary", "[redacted]"));
    let model = open("openai:m", &config(&provider)).unwrap();
    let recorder =
        Recorder::new(model, Box::new(file.clone()), Some(Arc::clone(&redactor))).unwrap();
    let cancel = CancellationToken::new();
    let asked = user("my password is hunter2-canary");
    let reply = recorder
        .complete(&asked, &mut Vec::new(), &cancel)
        .await
        .unwrap();
    assert!(
        reply.text.contains("hunter2-canary"),
        "the task itself sees everything"
    );
    let text = file.text();
    assert!(
        !text.contains("canary") && text.contains("[redacted]"),
        "{text}"
    );

    let replay = RecordedModel::read(&text).unwrap().with_redactor(redactor);
    let again = replay
        .complete(&asked, &mut Vec::new(), &cancel)
        .await
        .unwrap();
    assert_eq!(again.text, "the code is [redacted] indeed");
}

#[tokio::test]
async fn files_are_made_once_and_read_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("task.jsonl");
    let simulation = open("sim:careful", &ModelConfig::default()).unwrap();
    let recorder = Recorder::create(Arc::clone(&simulation), &path, None).unwrap();
    let cancel = CancellationToken::new();
    let before = recorder
        .complete(&user("Hi"), &mut Vec::new(), &cancel)
        .await
        .unwrap();
    assert!(
        Recorder::create(simulation, &path, None).is_err(),
        "nothing is overwritten"
    );

    let config = ModelConfig {
        directory: folder.path().to_owned(),
        ..ModelConfig::default()
    };
    let replay = open("replay:task.jsonl", &config).unwrap();
    assert!(replay.is_simulation());
    let after = replay
        .complete(&user("Hi"), &mut Vec::new(), &cancel)
        .await
        .unwrap();
    assert_eq!(before, after);
    assert!(open("replay:missing.jsonl", &config).is_err());
}

#[test]
fn what_is_no_recording_is_refused() {
    let header = r#"{"proofhouse_model_record":1,"written_by":"0","model":"m","simulation":true}"#;
    for (text, message) in [
        ("".to_owned(), "line 1 of the recording: not the header"),
        (
            header.replace(":1,", ":9,"),
            "line 1 of the recording: version 9",
        ),
        (
            format!("{header}\n{{\"hash\": \"x\""),
            "line 2 of the recording: not an exchange",
        ),
        (
            format!(
                "{header}\n{}",
                r#"{"hash":"sha256:00","request":{"messages":[]},"events":[],"outcome":{"reply":{"text":"","calls":[],"usage":{"prompt":0,"completion":0},"stop":"end","model":""}}}"#
            ),
            "line 2 of the recording: the request is not the one that was hashed",
        ),
    ] {
        let error = RecordedModel::read(&text).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
