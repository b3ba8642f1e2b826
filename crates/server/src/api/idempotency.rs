//! Requests that may be repeated: what an `Idempotency-Key` says, and which task it names.

use data_encoding::HEXLOWER;
use http::HeaderMap;
use ring::{digest, hmac};
use serde_json::json;

use super::Caller;
use crate::engine::{Idempotency, TaskRequest};
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
/// the caller's own key, or of the key that it replaced, so that nobody takes the id of another's task.
pub(super) fn task(caller: &Caller, key: &str, request: &TaskRequest) -> Idempotency {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, caller.repeats().as_bytes());
    let tag = hmac::sign(&secret, format!("task\n{key}").as_bytes());
    let id: Vec<u8> = tag.as_ref().iter().copied().take(ID_BYTES).collect();
    Idempotency {
        task: format!("task-{}", HEXLOWER.encode(&id)),
        fingerprint: fingerprint(request),
    }
}

/// Tells two requests apart, however their JSON is arranged.
fn fingerprint(request: &TaskRequest) -> String {
    let mut said = json!({
        "namespace": request.namespace, "agent": request.agent, "message": request.message,
        "parameters": request.parameters, "user": request.user.id, "email": request.user.email,
    });
    said.sort_all_objects();
    let hash = digest::digest(&digest::SHA256, said.to_string().as_bytes());
    format!("sha256:{}", HEXLOWER.encode(hash.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(parameters: &str) -> TaskRequest {
        TaskRequest {
            agent: "clerk".to_owned(),
            parameters: serde_json::from_str(parameters).unwrap(),
            ..TaskRequest::default()
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
        let one = request(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#);
        let same = request(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#);
        assert_eq!(fingerprint(&one), fingerprint(&same));
        assert_ne!(
            fingerprint(&one),
            fingerprint(&request(r#"{"a": 1, "b": {"c": 2, "d": 4}}"#))
        );
    }
}
