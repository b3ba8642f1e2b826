//! What is noted about a request while it is answered, and becomes an entry of the audit log afterwards.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use proofhouse_store::model::NewAuditEntry;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};

/// The longest text of somebody else's in an entry.
const MAX_TEXT: usize = 300;

/// What each request that changes something is called: one row each. Others are called by their method and route.
const ACTIONS: [(&str, &str, &str); 16] = [
    ("POST", "/v1/tasks", "task.begin"),
    ("DELETE", "/v1/tasks/{task}", "task.delete"),
    ("POST", "/v1/tasks/{task}/messages", "task.message"),
    ("POST", "/v1/tasks/{task}/reviews/{review}", "task.review"),
    ("POST", "/v1/tasks/{task}/interrupt", "task.interrupt"),
    ("POST", "/v1/tasks/{task}/cancel", "task.cancel"),
    ("POST", "/v1/events/{event}/replay", "event.replay"),
    ("GET", "/v1/audit", "audit.read"),
    ("POST", "/dashboard/sign-in", "session.begin"),
    ("GET", "/dashboard/oidc/callback", "session.begin"),
    ("POST", "/dashboard/sign-out", "session.end"),
    (
        "POST",
        "/dashboard/tasks/{task}/reviews/{review}",
        "task.review",
    ),
    ("POST", "/dashboard/tasks/{task}/cancel", "task.cancel"),
    (
        "POST",
        "/dashboard/tasks/{task}/interrupt",
        "task.interrupt",
    ),
    ("POST", "/dashboard/tasks/{task}/messages", "task.message"),
    ("POST", "/dashboard/events/{event}/replay", "event.replay"),
];

/// What is known about a request so far; all who answer it share one.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditNote(Arc<Mutex<AuditDraft>>);

#[derive(Debug, Default)]
struct AuditDraft {
    actor: Option<Value>,
    namespace: Option<String>,
    object: Option<Value>,
    detail: Map<String, Value>,
    /// It is worth an entry though it changes nothing, or though nobody is known to have asked.
    is_due: bool,
}

impl AuditNote {
    /// Notes who asks.
    pub(crate) fn actor(&self, actor: Value) {
        lock(&self.0).actor = Some(actor);
    }

    /// Notes the namespace of what is asked for.
    pub(crate) fn namespace(&self, namespace: &str) {
        lock(&self.0).namespace = Some(namespace.to_owned());
    }

    /// Notes what was made.
    pub(crate) fn object(&self, kind: &str, id: &str) {
        lock(&self.0).object = Some(json!({"kind": kind, "id": cut(id)}));
    }

    /// Notes something else.
    pub(crate) fn detail(&self, name: &str, value: Value) {
        lock(&self.0).detail.insert(name.to_owned(), value);
    }

    /// Sees to it that there will be an entry.
    pub(crate) fn is_due(&self) {
        lock(&self.0).is_due = true;
    }
}

/// What there is to know about a request before it is answered.
pub(super) struct AuditedRequest {
    note: AuditNote,
    method: Method,
    route: String,
    path: String,
    from: Option<IpAddr>,
    forwarded: Option<String>,
}

impl AuditedRequest {
    pub(super) fn new(
        note: AuditNote,
        method: Method,
        route: String,
        path: String,
        from: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Self {
        let forwarded = headers.get("x-forwarded-for");
        let forwarded = forwarded.and_then(|value| value.to_str().ok()).map(cut);
        Self {
            note,
            method,
            route,
            path,
            from,
            forwarded,
        }
    }

    /// The entry, if the request is worth one: somebody who is known asked for a change, or whoever answered said so.
    pub(super) fn entry(self, status: u16) -> Option<NewAuditEntry> {
        let draft = std::mem::take(&mut *lock(&self.note.0));
        let changes = self.method != Method::GET && self.method != Method::HEAD;
        if !(draft.is_due || changes && draft.actor.is_some()) {
            return None;
        }
        let row = ACTIONS
            .iter()
            .find(|(method, route, _)| self.method.as_str() == *method && self.route == *route);
        let action = row.map_or_else(
            || format!("{} {}", self.method, self.route),
            |(_, _, action)| (*action).to_owned(),
        );
        let outcome = match status {
            0..400 => "done",
            400..500 => "refused",
            _ => "failed",
        };
        let object = draft.object.or_else(|| object(&self.route, &self.path));
        let mut entry = json!({
            "action": action,
            "actor": draft.actor.unwrap_or_else(|| json!({"kind": "unknown"})),
            "object": object,
            "from": self.from.map(|from| from.to_string()),
            "outcome": outcome,
            "status": status,
        });
        if let Some(forwarded) = self.forwarded {
            // Whoever asks says so; only a proxy before the server makes it true.
            entry["forwarded_for"] = forwarded.into();
        }
        if !draft.detail.is_empty() {
            entry["detail"] = Value::Object(draft.detail);
        }
        Some(NewAuditEntry {
            namespace: draft.namespace,
            entry,
        })
    }
}

/// The first thing that a path names where its route has a name in braces.
fn object(route: &str, path: &str) -> Option<Value> {
    let pieces = route.split('/').zip(path.split('/'));
    let mut named = pieces.filter_map(|(route, piece)| {
        let kind = route.strip_prefix('{')?.strip_suffix('}')?;
        let id = percent_decode_str(piece).decode_utf8_lossy();
        Some(json!({"kind": kind, "id": cut(&id)}))
    });
    named.next()
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(note: &AuditNote, method: Method, route: &str, path: &str) -> Option<NewAuditEntry> {
        let request = AuditedRequest::new(
            note.clone(),
            method,
            route.to_owned(),
            path.to_owned(),
            None,
            &HeaderMap::new(),
        );
        request.entry(204)
    }

    #[test]
    fn what_changes_something_is_noted_once_somebody_is_known() {
        let note = AuditNote::default();
        let (route, path) = ("/v1/tasks/{task}/cancel", "/v1/tasks/t%201/cancel");
        assert_eq!(entry(&note, Method::POST, route, path), None);
        note.actor(json!({"kind": "key"}));
        assert_eq!(entry(&note, Method::GET, route, path), None);
        note.actor(json!({"kind": "key"}));
        let said = entry(&note, Method::POST, route, path).unwrap().entry;
        assert_eq!(said["action"], "task.cancel");
        assert_eq!(said["object"], json!({"kind": "task", "id": "t 1"}));
        assert_eq!(said["outcome"], "done");
    }

    #[test]
    fn a_route_without_a_name_of_its_own_is_noted_all_the_same() {
        let note = AuditNote::default();
        note.actor(json!({}));
        let said = entry(&note, Method::PUT, "/v1/new", "/v1/new").unwrap();
        assert_eq!(said.entry["action"], "PUT /v1/new");
    }
}
