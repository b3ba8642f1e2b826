//! Push notifications: posted to the subject's own webhook or to this machine, and nowhere else.

use proofhouse_oatf::Direction;
use proofhouse_protocol::a2a::{A2aVersion, NOTIFICATION_TOKEN_HEADER, translate_item};
use proofhouse_wire::client::Client;
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

use super::{is_verbatim, url};
use crate::actor::ActorContext;
use crate::exposure::CarrierKind;
use crate::phases::PhaseView;

/// The entry action, which is also the operation under which notifications are recorded.
pub(in crate::drivers) const ACTION: &str = "send_push_notification";

/// Webhooks that one action notifies: the subject registers them, and must not make us a flood.
const MAX_TARGETS: usize = 100;

/// Where the subject wants to be notified, and in which generation it said so.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::drivers) struct PushTarget {
    /// The settings, as 0.3 has them.
    pub(in crate::drivers) config: Value,
    pub(in crate::drivers) generation: A2aVersion,
}

impl PushTarget {
    /// The address.
    pub(in crate::drivers) fn url(&self) -> &str {
        self.config
            .get("url")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        if let Some(token) = self.config.get("token").and_then(Value::as_str) {
            add(NOTIFICATION_TOKEN_HEADER, token.to_owned());
        }
        if let Some(authentication) = self.config.get("authentication")
            && let Some(scheme) = authentication["schemes"][0].as_str()
            && let Some(credentials) = authentication["credentials"].as_str()
        {
            add("authorization", format!("{scheme} {credentials}"));
        }
        headers
    }
}

/// Does the entry action: `url` (or every webhook the subject registered) gets `payload`, in the
/// generation the webhook was registered in.
pub(in crate::drivers) async fn send(
    context: &ActorContext,
    phase: &std::sync::Arc<PhaseView>,
    action: &Value,
    registered: &[PushTarget],
    last_spoken: A2aVersion,
) {
    let client = match Client::new(context.limits().clone()) {
        Ok(client) => client,
        Err(error) => return context.warn(&format!("{ACTION}: {error}")),
    };
    let targets = match action.get("url").and_then(Value::as_str) {
        Some(wanted) => match registered.iter().find(|hook| hook.url() == wanted) {
            Some(hook) => vec![hook.clone()],
            None if url::parse(wanted).is_some_and(|parts| parts.is_loopback()) => {
                vec![PushTarget {
                    config: serde_json::json!({ "url": wanted }),
                    generation: last_spoken,
                }]
            }
            None => {
                return context.warn(&format!(
                    "{ACTION}: {wanted} is neither on this machine nor registered by the subject; nothing is sent"
                ));
            }
        },
        None => registered.iter().take(MAX_TARGETS).cloned().collect(),
    };
    if targets.is_empty() {
        return context.warn(&format!(
            "{ACTION}: no `url`, and the subject registered none; nothing is sent"
        ));
    }
    for target in targets {
        post(context, phase, &client, &target, action).await;
    }
}

async fn post(
    context: &ActorContext,
    phase: &std::sync::Arc<PhaseView>,
    client: &Client,
    target: &PushTarget,
    action: &Value,
) {
    let payload = &action.get("payload").cloned().unwrap_or_default();
    let branch = serde_json::json!({ ACTION: action });
    let body = if is_verbatim(action) {
        payload.clone()
    } else {
        translate_item(payload, target.generation)
    };
    let seen = translate_item(payload, A2aVersion::V0_3);
    let text = phase.delivery.shape(body.to_string());
    let raw = (body != seen).then_some(body);
    context.sent(phase, ACTION, Direction::Response, &seen, raw);
    let mut headers = target.headers();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let url = target.url();
    let sending = client.send(Method::POST, url, headers, Bytes::from(text));
    tokio::select! {
        () = context.over().cancelled() => {}
        sent = sending => match sent {
            Ok(response) if response.status.is_success() => {
                context.delivered_branch(phase, CarrierKind::Notification, ACTION, &branch);
            }
            Ok(response) => {
                // The subject has read it, and did not like it.
                context.delivered_branch(phase, CarrierKind::Notification, ACTION, &branch);
                context.warn(&format!("{ACTION}: {url} answered {}", response.status));
            }
            Err(error) => context.warn(&format!("{ACTION}: {error}")),
        },
    }
}
