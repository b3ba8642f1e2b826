//! Requests that may be repeated: what an `Idempotency-Key` says, and which task it names.

use http::HeaderMap;
use ring::{digest, hmac};
use serde_json::json;

use super::Caller;
use super::desk::{Once, Order};
use crate::keys::hex;
use crate::problem::Problem;

/// The longest key of a repeated request.
const MAX_KEY: usize = 200;
/// The bytes of the id of a task.
const ID_BYTES: usize = 16;

/// The key of a request that may be repeated.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => return Ok(None),
        (Some(key), None) => key.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let key = key
        .filter(|key| (1..=MAX_KEY).contains(&key.len()))
        .filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    key.map(|key| Some(key.to_owned())).ok_or_else(|| {
        Problem::bad_request(format!(
            "`Idempotency-Key` is there once, with 1 to {MAX_KEY} plain characters and no spaces"
        ))
    })
}

/// The task that a caller means by this key, whichever process is asked. Its id can only be told by who knows what is kept of
/// the caller's own key, so that nobody takes the id of another's task.
pub(super) fn task(caller: &Caller, key: &str, order: &Order) -> Once {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, caller.hash().as_bytes());
    let tag = hmac::sign(&secret, format!("task\n{key}").as_bytes());
    let id: Vec<u8> = tag.as_ref().iter().copied().take(ID_BYTES).collect();
    Once {
        id: format!("task-{}", hex(&id)),
        request: fingerprint(order),
    }
}

/// Tells two orders apart, however their JSON is arranged.
fn fingerprint(order: &Order) -> String {
    let mut said = json!({
        "namespace": order.namespace, "agent": order.agent, "message": order.message,
        "parameters": order.parameters, "user": order.user, "email": order.email,
    });
    said.sort_all_objects();
    let hash = digest::digest(&digest::SHA256, said.to_string().as_bytes());
    format!("sha256:{}", hex(hash.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(parameters: &str) -> Order {
        Order {
            agent: "clerk".to_owned(),
            parameters: serde_json::from_str(parameters).unwrap(),
            ..Order::default()
        }
    }

    #[test]
    fn a_key_is_plain_and_there_once() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("idempotency-key", value.parse().unwrap());
            }
            key(&headers)
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["a-1"]), Ok(Some("a-1".to_owned())));
        for wrong in [&["a b"][..], &[""], &["a", "a"], &[&"x".repeat(201)]] {
            assert_eq!(read(wrong).unwrap_err().status, 400, "{wrong:?}");
        }
    }

    #[test]
    fn the_order_of_fields_makes_no_difference() {
        let one = order(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#);
        let same = order(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#);
        assert_eq!(fingerprint(&one), fingerprint(&same));
        assert_ne!(
            fingerprint(&one),
            fingerprint(&order(r#"{"a": 1, "b": {"c": 2, "d": 4}}"#))
        );
    }
}
