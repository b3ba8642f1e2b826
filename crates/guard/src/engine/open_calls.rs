//! Requests of the client that wait for an answer.

use std::collections::{BTreeMap, VecDeque};

use proofhouse_detect::UNPARSED;
use proofhouse_protocol::mcp::McpMethod;
use proofhouse_protocol::rpc;
use proofhouse_wire::trace::Span;
use serde_json::Value;

use crate::pins::PinKind;

/// How many may wait.
const MAX_OPEN: usize = 10_000;

/// How many are remembered whose exchange ended without an answer: a client may take up a broken stream again.
const MAX_DETACHED: usize = 100;

/// A request.
#[derive(Debug, Clone)]
pub(super) struct PendingCall {
    /// The exchange that it came in.
    pub(super) exchange: u64,
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    /// What it is called with.
    pub(super) arguments: Value,
    /// The end of what a stream said so far.
    pub(super) tail: String,
    /// Whether it is of a stateless revision.
    pub(super) is_modern: bool,
    /// It lasts until the request is answered.
    pub(super) span: Span,
}

impl PendingCall {
    /// What is answered where nobody asked for anything that is known.
    pub(super) fn unknown(exchange: u64) -> Self {
        Self {
            exchange,
            id: Value::Null,
            method: UNPARSED.to_owned(),
            params: Value::Null,
            arguments: Value::Null,
            tail: String::new(),
            is_modern: false,
            span: Span::none(),
        }
    }

    /// The tool, prompt or resource that it uses; the method where there is none.
    pub(super) fn item(&self) -> &str {
        let key = McpMethod::parse(&self.method).and_then(McpMethod::item_param);
        let item = key.and_then(|key| self.params.get(key)?.as_str());
        item.unwrap_or(&self.method)
    }

    /// What the policy calls it: the tool, or else the method.
    pub(super) fn labelled(&self) -> &str {
        if self.method == McpMethod::ToolsCall.as_str() {
            self.item()
        } else {
            &self.method
        }
    }
}

/// The requests by exchange and id.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    open: BTreeMap<(u64, String), PendingCall>,
    detached: VecDeque<PendingCall>,
}

/// What an id is looked up by; both ends may write long numbers in other words.
pub(super) fn key(id: &Value) -> String {
    rpc::plain_id(id).to_string()
}

impl OpenCalls {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.open.len() + self.detached.len()
    }

    /// Whether a request of this id may be sent.
    pub(super) fn check(&self, exchange: u64, id: &Value) -> Result<(), &'static str> {
        if self.open.contains_key(&(exchange, key(id))) {
            return Err("another request with this id waits for its answer");
        }
        if self.open.len() >= MAX_OPEN {
            return Err("too many requests wait for an answer");
        }
        Ok(())
    }

    pub(super) fn add(&mut self, call: PendingCall) {
        self.open.insert((call.exchange, key(&call.id)), call);
    }

    /// The request that an answer in this exchange is for.
    pub(super) fn take(&mut self, exchange: u64, id: &Value) -> Option<PendingCall> {
        let key = key(id);
        let detached = &mut self.detached;
        self.open.remove(&(exchange, key.clone())).or_else(|| {
            let at = detached
                .iter()
                .position(|call| self::key(&call.id) == key)?;
            detached.remove(at)
        })
    }

    /// The request that an answer in this exchange is for; it goes on waiting.
    pub(super) fn peek(&self, exchange: u64, id: &Value) -> Option<&PendingCall> {
        self.open.get(&(exchange, key(id)))
    }

    /// Keeps the end of what a stream said so far.
    pub(super) fn keep_tail(&mut self, exchange: u64, id: &Value, tail: &str) {
        if let Some(call) = self.open.get_mut(&(exchange, key(id))) {
            tail.clone_into(&mut call.tail);
        }
    }

    /// Whether a list of a kind is asked for.
    pub(super) fn lists(&self, kind: PinKind) -> bool {
        let mut calls = self.open.values();
        calls.any(|call| PinKind::listed_by(&call.method) == Some(kind))
    }

    /// Whether there are any of one exchange.
    pub(super) fn has_exchange(&self, exchange: u64) -> bool {
        let range = (exchange, String::new())..(exchange.saturating_add(1), String::new());
        self.open.range(range).next().is_some()
    }

    /// Those of one exchange.
    pub(super) fn of_exchange(&self, exchange: u64) -> Vec<PendingCall> {
        let range = (exchange, String::new())..(exchange.saturating_add(1), String::new());
        let calls = self.open.range(range);
        calls.map(|(_, call)| call.clone()).collect()
    }

    /// Those of one exchange, which waits no longer.
    pub(super) fn take_exchange(&mut self, exchange: u64) -> Vec<PendingCall> {
        let range = (exchange, String::new())..(exchange.saturating_add(1), String::new());
        let keys: Vec<(u64, String)> = self.open.range(range).map(|(key, _)| key.clone()).collect();
        keys.iter()
            .filter_map(|key| self.open.remove(key))
            .collect()
    }

    /// The client waits no longer for one; an answer may still come.
    pub(super) fn detach_one(&mut self, exchange: u64, id: &Value) {
        if let Some(call) = self.open.remove(&(exchange, key(id))) {
            self.keep_detached([call]);
        }
    }

    /// The exchange ended; answers may come in another one.
    pub(super) fn detach(&mut self, exchange: u64) {
        let ended = self.take_exchange(exchange);
        self.keep_detached(ended);
    }

    fn keep_detached(&mut self, calls: impl IntoIterator<Item = PendingCall>) {
        self.detached.extend(calls);
        while self.detached.len() > MAX_DETACHED {
            self.detached.pop_front();
        }
    }

    pub(super) fn take_all(&mut self) -> Vec<PendingCall> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}
