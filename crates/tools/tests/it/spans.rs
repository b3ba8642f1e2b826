//! Every phase of a call is a span, and whoever listens to everything that is traced hears no secret of ours.
//!
//! In a process of its own, because a subscriber that hears all threads is there for the whole of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stand outside of them"
)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_test_support::alone::is_alone;
use proofhouse_wire::CancellationToken;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::contract_support::{Does, ROWS, SECRET};
use crate::kubernetes_support;

/// Whose messages are theirs: the SDK writes whole messages of the protocol to its log, secrets included, at its
/// finer levels. The guide says how to keep them out.
const NOT_OURS: &str = "rmcp";

#[derive(Clone, Debug)]
struct Span {
    id: u64,
    parent: Option<u64>,
    name: &'static str,
    fields: String,
}

/// Keeps everything.
#[derive(Clone, Default)]
struct Heard(Arc<Inner>);

#[derive(Default)]
struct Inner {
    count: AtomicU64,
    spans: Mutex<Vec<Span>>,
    /// Where it came from, and what was said.
    said: Mutex<Vec<(String, String)>>,
}

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Heard {
    fn say(&self, metadata: &Metadata<'_>, text: &str) {
        let mut said = self.0.said.lock().unwrap();
        said.push((metadata.target().to_owned(), text.to_owned()));
    }

    fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.0.spans.lock().unwrap())
    }
}

impl Subscriber for Heard {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Text(String::new());
        span.record(&mut fields);
        self.say(span.metadata(), &fields.0);
        let id = self.0.count.fetch_add(1, Ordering::SeqCst) + 1;
        let parent = match span.parent() {
            Some(parent) => Some(parent.into_u64()),
            None => ENTERED.with_borrow(|entered| entered.last().copied()),
        };
        if span.metadata().target().starts_with("proofhouse") {
            self.0.spans.lock().unwrap().push(Span {
                id,
                parent,
                name: span.metadata().name(),
                fields: fields.0,
            });
        }
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Text(String::new());
        values.record(&mut fields);
        let mut said = self.0.said.lock().unwrap();
        said.push(("a span".to_owned(), fields.0));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Text(String::new());
        event.record(&mut fields);
        self.say(event.metadata(), &fields.0);
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(at);
            }
        });
    }
}

#[test]
fn phases_are_spans_and_nothing_traced_is_secret() {
    if !is_alone(
        module_path!(),
        "phases_are_spans_and_nothing_traced_is_secret",
    ) {
        return;
    }
    let heard = Heard::default();
    tracing::subscriber::set_global_default(heard.clone()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for (key, start) in ROWS {
            let peer = start().await;
            let task = peer.task();
            heard.take();
            for does in [Does::Work, Does::Fail] {
                let (action, arguments) = peer.call(does, SECRET).unwrap();
                let arguments = arguments.as_object().cloned().unwrap();
                let context = json!({"agent": {"name": "a"}});
                let called = task.invoke(action, arguments, context, CancellationToken::new());
                assert_eq!(called.await.is_ok(), does == Does::Work, "{key}");
            }
            assert_eq!(task.teardown().await, []);
            check(key, &heard.take());
            // What goes wrong for good is traced, too.
            let (broken, _) = peer.broken();
            let (action, arguments) = peer.call(Does::Work, SECRET).unwrap();
            let arguments = arguments.as_object().cloned().unwrap();
            let called = broken.invoke(action, arguments, json!({}), CancellationToken::new());
            called.await.unwrap_err();
            broken.teardown().await;
        }
    });
    let said = heard.0.said.lock().unwrap();
    let secrets = [SECRET, "tok-en-1", kubernetes_support::TOKEN];
    let mut leaking = BTreeSet::new();
    for (target, text) in said.iter() {
        if secrets.iter().any(|secret| text.contains(secret)) {
            assert!(!target.starts_with("proofhouse"), "{target}: {text}");
            leaking.insert(target.split("::").next().unwrap_or_default());
        }
    }
    assert!(
        leaking.iter().all(|target| *target == NOT_OURS),
        "{leaking:?}"
    );
    assert!(said.len() > 100, "everything was heard");
}

/// One call is one span with its phases below it; the end of the task is one of its own.
fn check(key: &str, spans: &[Span]) {
    let named = |name: &str| -> Vec<&Span> {
        let spans = spans.iter();
        spans.filter(|span| span.name == name).collect()
    };
    let calls = named("tool.call");
    assert_eq!(calls.len(), 2, "{key}: {spans:?}");
    assert!(calls[0].fields.contains("tool=t action="), "{calls:?}");
    for (name, count) in [
        ("tool.initialize", 1),
        ("tool.invoke", 2),
        ("tool.teardown", 1),
    ] {
        let found = named(name);
        assert_eq!(found.len(), count, "{key}: {name}: {spans:?}");
        for span in found {
            let runtime = format!("runtime=\"{key}\"");
            assert!(span.fields.contains(&runtime), "{span:?}");
            let of_call = calls.iter().any(|call| Some(call.id) == span.parent);
            assert_eq!(of_call, name != "tool.teardown", "{key}: {span:?}");
        }
    }
}
