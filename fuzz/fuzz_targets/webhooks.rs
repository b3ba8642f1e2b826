//! Webhooks: headers with `|` between them, `||`, and a body. Nothing panics, no payload is deeper than it may be,
//! and no delivery is genuine that was not signed with the secret.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_tools::operator::OperatorConfig;
use proofhouse_tools::receive::webhook::{
    DedupeChoice, Delivery, PayloadLimits, SCHEMES, Verification, WebhookKeys, channels, greet, greet_signed,
    identify, read_payload, shown_headers,
};
use proofhouse_wire::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

const CONFIG: &str = "webhooks:
  a: {scheme: github, secret: c2VjcmV0LWtleQ==}
  b: {scheme: standard, secret: c2VjcmV0LWtleQ==}
  c: {scheme: slack, secret: c2VjcmV0LWtleQ==}
  e: {scheme: stripe, secret: c2VjcmV0LWtleQ==}
  f: {scheme: twilio, secret: c2VjcmV0LWtleQ==, url: 'https://hooks.example/f'}
  g: {scheme: gitlab, secret: c2VjcmV0LWtleQ==}
  d: {scheme: hmac, secret: c2VjcmV0LWtleQ==, header: x-signature, encoding: base64}
";

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fuzz_target!(|input: &[u8]| {
    let at = input.windows(2).position(|pair| pair == b"||");
    let (head, body) = match at {
        Some(at) => (&input[..at], &input[at + 2..]),
        None => (&input[..0], input),
    };
    let mut headers = HeaderMap::new();
    let mut query = None;
    for line in head.split(|byte| *byte == b'|').take(32) {
        if let Some(text) = line.strip_prefix(b"?") {
            query = std::str::from_utf8(text).ok();
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let Ok(received_at) = "2026-01-01T00:00:00Z".parse() else {
        return;
    };
    let delivery = Delivery {
        headers: &headers,
        query,
        body,
        received_at,
    };
    let (config, findings) = OperatorConfig::read(CONFIG, &|_| None);
    assert!(findings.is_empty());
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        let Some(source) = config.webhooks.source(name) else {
            continue;
        };
        let verdict = WebhookKeys::of_source(source).verify(&delivery);
        if let Verification::Verified { .. } = verdict.whole() {
            // Only who knows the secret gets here; the seeds hold such deliveries.
            let header = headers.get(&*source.scheme.header);
            assert!(header.is_some(), "{name} is genuine without a signature");
        }
    }
    assert_eq!(SCHEMES.len(), 11);
    let _ = greet(&delivery);
    let limits = PayloadLimits {
        max_bytes: 65_536,
        max_depth: 8,
        max_fields: 16,
    };
    match read_payload(&delivery, &limits) {
        Ok(payload) => {
            assert!(depth(&payload) <= 9, "a payload is too deep");
            assert!(identify(&delivery, &payload, SCHEMES.get(1), DedupeChoice::default())
                    .is_none_or(|found| found.key.len() <= 320));
            let _ = channels(&delivery, Some(&payload));
            let _ = greet_signed(&payload, &Verification::Unsigned, false);
            let _ = shown_headers(&delivery);
        }
        Err(error) => assert!((400..500).contains(&error.status())),
    }
});
