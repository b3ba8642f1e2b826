//! The requests of a log that wait for their response, in bounded memory.

use std::collections::{BTreeMap, HashMap};

use proofhouse_oatf::Protocol;
use serde_json::Value;

/// Open requests with one id; a log of many connections repeats ids.
const MAX_PER_ID: usize = 16;

/// A request that was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenRequest {
    /// Who asked, where the log says it.
    pub(crate) asker: Option<String>,
    /// The protocol and the operation, which the response shares.
    pub(crate) protocol: Protocol,
    pub(crate) operation: String,
    /// Whether the wire spoke A2A 1.0.
    pub(crate) modern_a2a: bool,
    /// The parameters, where the response is enriched with them.
    pub(crate) params: Option<Value>,
    /// Whether several responses come.
    pub(crate) stream: bool,
}

/// Finds requests by id; the oldest is forgotten when there are too many.
#[derive(Debug)]
pub(crate) struct OpenRequests {
    by_id: HashMap<String, Vec<(u64, usize, OpenRequest)>>,
    by_age: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
    max_count: usize,
    max_bytes: usize,
    forgotten: u64,
}

impl OpenRequests {
    pub(crate) fn new(max_count: usize, max_bytes: usize) -> Self {
        Self {
            by_id: HashMap::new(),
            by_age: BTreeMap::new(),
            next: 0,
            bytes: 0,
            max_count,
            max_bytes,
            forgotten: 0,
        }
    }

    /// Requests that were forgotten before a response came.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Remembers a request of about `bytes` bytes.
    pub(crate) fn insert(&mut self, id: String, bytes: usize, request: OpenRequest) {
        // The same side asking again with the same id will get the answer to the later question.
        let same = |known: &OpenRequest| known.asker == request.asker;
        if let Some(age) = self.find(&id, same) {
            self.remove(age, &id);
        }
        if let Some(requests) = self.by_id.get(&id)
            && requests.len() >= MAX_PER_ID
            && let Some(&(age, ..)) = requests.first()
        {
            self.remove(age, &id);
            self.forgotten += 1;
        }
        let age = self.next;
        self.next += 1;
        self.bytes += bytes;
        self.by_age.insert(age, id.clone());
        self.by_id
            .entry(id)
            .or_default()
            .push((age, bytes, request));
        while self.by_age.len() > self.max_count || self.bytes > self.max_bytes {
            let Some((age, id)) = self.by_age.pop_first() else {
                break;
            };
            self.remove(age, &id);
            self.forgotten += 1;
        }
    }

    /// The latest request with this id that `fits`; it stays open when several responses come and
    /// this is not the `last`.
    pub(crate) fn answer(
        &mut self,
        id: &str,
        last: bool,
        fits: impl Fn(&OpenRequest) -> bool,
    ) -> Option<OpenRequest> {
        let age = self.find(id, fits)?;
        let requests = self.by_id.get(id)?;
        let (_, _, request) = requests.iter().find(|(known, ..)| *known == age)?;
        if request.stream && !last {
            return Some(request.clone());
        }
        self.remove(age, id)
    }

    /// The request that would be answered, which stays open.
    pub(crate) fn peek(
        &self,
        id: &str,
        fits: impl Fn(&OpenRequest) -> bool,
    ) -> Option<OpenRequest> {
        let age = self.find(id, fits)?;
        let requests = self.by_id.get(id)?;
        let found = requests.iter().find(|(known, ..)| *known == age);
        found.map(|(_, _, request)| request.clone())
    }

    fn find(&self, id: &str, fits: impl Fn(&OpenRequest) -> bool) -> Option<u64> {
        let requests = self.by_id.get(id)?;
        let found = requests.iter().rev().find(|(_, _, request)| fits(request));
        found.map(|(age, ..)| *age)
    }

    fn remove(&mut self, age: u64, id: &str) -> Option<OpenRequest> {
        self.by_age.remove(&age);
        let requests = self.by_id.get_mut(id)?;
        let index = requests.iter().position(|(known, ..)| *known == age)?;
        let (_, bytes, request) = requests.remove(index);
        if requests.is_empty() {
            self.by_id.remove(id);
        }
        self.bytes -= bytes;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(asker: Option<&str>, operation: &str) -> OpenRequest {
        OpenRequest {
            asker: asker.map(str::to_owned),
            protocol: Protocol::Mcp,
            operation: operation.into(),
            modern_a2a: false,
            params: None,
            stream: false,
        }
    }

    #[test]
    fn the_oldest_is_forgotten_by_count_and_by_size() {
        let mut open = OpenRequests::new(2, 100);
        for id in ["1", "2", "3"] {
            open.insert(id.into(), 10, request(None, id));
        }
        assert_eq!(open.forgotten(), 1);
        assert_eq!(open.answer("1", true, |_| true), None);
        assert_eq!(open.answer("3", true, |_| true).unwrap().operation, "3");
        open.insert("4".into(), 95, request(None, "4"));
        assert_eq!(open.forgotten(), 2);
        assert_eq!(open.answer("2", true, |_| true), None);
        open.insert("5".into(), 101, request(None, "5"));
        assert_eq!((open.forgotten(), open.bytes, open.by_id.len()), (4, 0, 0));
    }

    #[test]
    fn one_id_of_two_sides() {
        let mut open = OpenRequests::new(10, 100);
        open.insert("1".into(), 1, request(Some("a"), "tools/call"));
        open.insert("1".into(), 1, request(Some("b"), "roots/list"));
        let fits = |side: &'static str| {
            move |request: &OpenRequest| request.asker.as_deref() == Some(side)
        };
        assert_eq!(
            open.answer("1", true, fits("a")).unwrap().operation,
            "tools/call"
        );
        assert_eq!(open.answer("1", true, fits("a")), None);
        assert_eq!(
            open.answer("1", true, fits("b")).unwrap().operation,
            "roots/list"
        );
        for number in 0..100 {
            open.insert("1".into(), 0, request(Some(&number.to_string()), "ping"));
        }
        assert_eq!(open.forgotten(), 100 - 10);
        assert_eq!(open.by_age.len(), 10);
    }
}
