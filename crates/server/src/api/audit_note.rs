//! What is noted about a request while it is answered, and becomes an entry of the audit log afterwards.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use proofhouse_store::model::NewAuditEntry;
use proofhouse_store::with_audit_entry;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};

/// The longest text of somebody else's in an entry.
const MAX_TEXT: usize = 300;

/// What each request that changes something is called, and how one that is done is answered: one row each. Others are called by
/// their method and route.
const ACTIONS: [(&str, &str, &str, u16); 20] = [
    ("POST", "/v1/tasks", "task.begin", 201),
    ("DELETE", "/v1/tasks/{task}", "task.delete", 204),
    ("POST", "/v1/tasks/{task}/messages", "task.message", 202),
    (
        "POST",
        "/v1/tasks/{task}/reviews/{review}",
        "task.review",
        204,
    ),
    ("POST", "/v1/tasks/{task}/interrupt", "task.interrupt", 204),
    ("POST", "/v1/tasks/{task}/cancel", "task.cancel", 204),
    ("POST", "/v1/events/{event}/replay", "event.replay", 202),
    ("POST", "/v1/campaigns", "campaign.start", 201),
    (
        "POST",
        "/v1/campaigns/{campaign}/cancel",
        "campaign.cancel",
        204,
    ),
    ("GET", "/v1/audit", "audit.read", 200),
    ("POST", "/dashboard/sign-in", "session.begin", 303),
    ("GET", "/dashboard/oidc/callback", "session.begin", 200),
    ("POST", "/dashboard/sign-out", "session.end", 303),
    (
        "POST",
        "/dashboard/tasks/{task}/reviews/{review}",
        "task.review",
        303,
    ),
    ("POST", "/dashboard/tasks/{task}/cancel", "task.cancel", 303),
    (
        "POST",
        "/dashboard/tasks/{task}/interrupt",
        "task.interrupt",
        303,
    ),
    (
        "POST",
        "/dashboard/tasks/{task}/messages",
        "task.message",
        303,
    ),
    (
        "POST",
        "/dashboard/campaigns/{campaign}/again",
        "campaign.start",
        303,
    ),
    (
        "POST",
        "/dashboard/campaigns/{campaign}/cancel",
        "campaign.cancel",
        303,
    ),
    (
        "POST",
        "/dashboard/events/{event}/replay",
        "event.replay",
        303,
    ),
];

/// What is known about a request so far; all who answer it share one.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditNote(Arc<AuditPaper>);

#[derive(Debug, Default)]
struct AuditPaper {
    /// Nothing outside of requests.
    request: Option<AuditedRequest>,
    draft: Mutex<AuditDraft>,
}

#[derive(Debug, Clone, Default)]
struct AuditDraft {
    actor: Option<Value>,
    namespace: Option<String>,
    object: Option<Value>,
    detail: Map<String, Value>,
    /// It is worth an entry though it changes nothing, or though nobody is known to have asked.
    is_due: bool,
    /// The entry is there, in the transaction of what it is about.
    is_written: bool,
}

impl AuditNote {
    /// The paper of a request.
    pub(super) fn of(request: AuditedRequest) -> Self {
        Self(Arc::new(AuditPaper {
            request: Some(request),
            draft: Mutex::default(),
        }))
    }

    /// Notes who asks.
    pub(crate) fn actor(&self, actor: Value) {
        self.draft().actor = Some(actor);
    }

    /// Notes the namespace of what is asked for.
    pub(crate) fn namespace(&self, namespace: &str) {
        self.draft().namespace = Some(namespace.to_owned());
    }

    /// Notes what is made.
    pub(crate) fn object(&self, kind: &str, id: &str) {
        self.draft().object = Some(json!({"kind": kind, "id": cut(id)}));
    }

    /// Notes something else.
    pub(crate) fn detail(&self, name: &str, value: Value) {
        self.draft().detail.insert(name.to_owned(), value);
    }

    /// Sees to it that there will be an entry.
    pub(crate) fn is_due(&self) {
        self.draft().is_due = true;
    }

    /// Does what was asked for, together with its entry: both are one transaction, so that nothing is done that is not in the
    /// log. Whatever belongs into the entry is noted before.
    pub(crate) async fn done_by<T>(&self, work: impl Future<Output = T>) -> T {
        let request = self.0.request.as_ref();
        let entry = request.and_then(|request| {
            let status = request.row().map_or(200, |(.., status)| *status);
            request.entry(self.draft().clone(), status)
        });
        let Some(entry) = entry else {
            return work.await;
        };
        let (output, is_written) = with_audit_entry(entry, work).await;
        self.draft().is_written |= is_written;
        output
    }

    /// The entry about a request that was answered, if it is worth one and has none: somebody who is known asked for a change, or
    /// whoever answered said so.
    pub(super) fn entry(&self, status: u16) -> Option<NewAuditEntry> {
        let draft = std::mem::take(&mut *self.draft());
        // What went wrong after all is told as well.
        let is_told = draft.is_written && status < 400;
        let request = self.0.request.as_ref().filter(|_| !is_told)?;
        request.entry(draft, status)
    }

    fn draft(&self) -> MutexGuard<'_, AuditDraft> {
        lock(&self.0.draft)
    }
}

/// What there is to know about a request before it is answered.
#[derive(Debug)]
pub(super) struct AuditedRequest {
    method: Method,
    route: String,
    path: String,
    from: Option<RequestOrigin>,
    forwarded: Option<String>,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestOrigin {
    /// The client, as far as it is known.
    pub(super) client: IpAddr,
    /// Who is at the other end of the connection: the client, or a proxy that speaks for it.
    pub(super) peer: IpAddr,
}

impl AuditedRequest {
    pub(super) fn new(
        method: Method,
        route: String,
        path: String,
        from: Option<RequestOrigin>,
        headers: &HeaderMap,
    ) -> Self {
        let forwarded = headers.get("x-forwarded-for");
        let forwarded = forwarded.and_then(|value| value.to_str().ok()).map(cut);
        Self {
            method,
            route,
            path,
            from,
            forwarded,
        }
    }

    fn row(&self) -> Option<&'static (&'static str, &'static str, &'static str, u16)> {
        let (method, route) = (self.method.as_str(), self.route.as_str());
        ACTIONS
            .iter()
            .find(|(known, path, ..)| (method, route) == (*known, *path))
    }

    fn entry(&self, draft: AuditDraft, status: u16) -> Option<NewAuditEntry> {
        let changes = self.method != Method::GET && self.method != Method::HEAD;
        if !(draft.is_due || changes && draft.actor.is_some()) {
            return None;
        }
        let action = self.row().map_or_else(
            || format!("{} {}", self.method, self.route),
            |(_, _, action, _)| (*action).to_owned(),
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
            "from": self.from.map(|from| from.client.to_string()),
            "outcome": outcome,
            "status": status,
        });
        if let Some(from) = self.from.filter(|from| from.client != from.peer) {
            entry["proxy"] = from.peer.to_string().into();
        }
        if let Some(forwarded) = &self.forwarded {
            // Whoever asks says so; what of it is true is in `from`.
            entry["forwarded_for"] = forwarded.as_str().into();
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
    use proofhouse_store::model::AuditFilter;
    use proofhouse_store::{SqliteOptions, Store};

    use super::*;

    fn paper(method: Method, route: &str, path: &str) -> AuditNote {
        AuditNote::of(AuditedRequest::new(
            method,
            route.to_owned(),
            path.to_owned(),
            None,
            &HeaderMap::new(),
        ))
    }

    #[test]
    fn what_changes_something_is_noted_once_somebody_is_known() {
        let (route, path) = ("/v1/tasks/{task}/cancel", "/v1/tasks/t%201/cancel");
        assert_eq!(paper(Method::POST, route, path).entry(204), None);
        let note = paper(Method::GET, route, path);
        note.actor(json!({"kind": "key"}));
        assert_eq!(note.entry(204), None);
        let note = paper(Method::POST, route, path);
        note.actor(json!({"kind": "key"}));
        let said = note.entry(204).unwrap().entry;
        assert_eq!(said["action"], "task.cancel");
        assert_eq!(said["object"], json!({"kind": "task", "id": "t 1"}));
        assert_eq!(said["outcome"], "done");
    }

    #[test]
    fn a_route_without_a_name_of_its_own_is_noted_all_the_same() {
        let note = paper(Method::PUT, "/v1/new", "/v1/new");
        note.actor(json!({}));
        let said = note.entry(200).unwrap();
        assert_eq!(said.entry["action"], "PUT /v1/new");
    }

    #[tokio::test]
    async fn what_is_written_with_the_deed_is_not_written_again() {
        let store = Store::open_sqlite(SqliteOptions::memory()).await.unwrap();
        let note = paper(Method::DELETE, "/v1/tasks/{task}", "/v1/tasks/a");
        note.actor(json!({"kind": "key"}));
        note.done_by(async { store.now().await }).await.unwrap();
        assert!(!note.draft().is_written, "nothing was changed");
        note.done_by(store.health()).await.unwrap();
        assert_eq!(note.entry(204), None);
        let listed = store.audit(AuditFilter {
            limit: 10,
            ..AuditFilter::default()
        });
        let listed = listed.await.unwrap();
        assert_eq!(listed.len(), 1);
        let entry: Value = serde_json::from_str(&listed[0].entry).unwrap();
        assert_eq!(
            (&entry["outcome"], &entry["status"]),
            (&json!("done"), &json!(204))
        );
        // What went wrong afterwards is told as well.
        note.actor(json!({"kind": "key"}));
        note.draft().is_written = true;
        assert_eq!(note.entry(503).unwrap().entry["outcome"], "failed");
    }
}
