//! Events: what a watch tells, line by line.

use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

use super::objects::ClusterJob;

/// The largest event: the cluster's store takes objects of 1.5 MB.
const MAX_EVENT_BYTES: usize = 4 << 20;

/// One change that a watch told of.
#[derive(Debug)]
pub(super) enum WatchChange {
    /// The Job as it is now.
    Job(Box<ClusterJob>),
    /// The Job as it was when it was deleted.
    Deleted(Box<ClusterJob>),
    /// Nothing happened up to this version.
    Version(String),
    /// The version is too old, or what came is no event. The watch is over.
    Broken,
}

/// The events of a watch: a line of JSON each.
pub(super) struct WatchEvents {
    body: Body,
    buffer: Vec<u8>,
    /// How much of the buffer holds no line break.
    looked: usize,
}

impl WatchEvents {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            buffer: Vec::new(),
            looked: 0,
        }
    }

    /// The next one; none when the cluster ends the watch.
    pub(super) async fn next(&mut self) -> Option<WatchChange> {
        loop {
            if let Some(at) = self.buffer[self.looked..].iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(self.looked + at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.looked = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Some(change(&line));
            }
            self.looked = self.buffer.len();
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                if self.buffer.len() + data.len() > MAX_EVENT_BYTES {
                    return Some(WatchChange::Broken);
                }
                self.buffer.extend_from_slice(data);
            }
        }
    }
}

fn change(line: &[u8]) -> WatchChange {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
        return WatchChange::Broken;
    };
    let object = take(&mut event, "object").unwrap_or_default();
    match event["type"].as_str() {
        Some("BOOKMARK") => match object["metadata"]["resourceVersion"].as_str() {
            Some(version) => WatchChange::Version(version.to_owned()),
            None => WatchChange::Broken,
        },
        Some(kind @ ("ADDED" | "MODIFIED" | "DELETED")) => match ClusterJob::read(object) {
            Some(job) if kind == "DELETED" => WatchChange::Deleted(Box::new(job)),
            Some(job) => WatchChange::Job(Box::new(job)),
            None => WatchChange::Broken,
        },
        // An error, such as that the version is too old.
        _ => WatchChange::Broken,
    }
}

/// Takes a value out of an object. Indexing would panic where there is none.
pub(super) fn take(value: &mut Value, key: &str) -> Option<Value> {
    value.get_mut(key).map(Value::take)
}
