//! Signatures as the SDKs of platforms make them, and the schemes that have none.

use jiff::Timestamp;
use proofhouse_test_support::peers;
use proofhouse_tools::operator::OperatorConfig;
use proofhouse_tools::receive::webhook::{
    DedupeChoice, Delivery, REPLAY_WINDOW, Refusal, Verdict, Verification, WebhookKeys, identify,
};
use proofhouse_wire::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

const BODY: &str = r#"{"id":"evt_1","object":"event"}"#;
const SECONDS: i64 = 1_767_268_800;

fn verdict(block: &str, headers: &HeaderMap, query: Option<&str>, body: &[u8]) -> Verdict {
    let text = format!("webhooks:\n  demo: {block}\n");
    let (config, findings) = OperatorConfig::read(&text, &|_| None);
    assert!(findings.is_empty(), "{block}: {findings:?}");
    let source = config.webhooks.source("demo").expect("the test is set up");
    WebhookKeys::of_source(source).verify(&Delivery {
        headers,
        query,
        body,
        received_at: Timestamp::from_second(SECONDS).expect("the test is set up"),
    })
}

fn headers<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let pairs = pairs.into_iter().map(|(name, value)| {
        let name = HeaderName::try_from(name).expect("the test is set up");
        (
            name,
            HeaderValue::from_str(value).expect("the test is set up"),
        )
    });
    pairs.collect()
}

#[test]
fn what_the_sdks_of_platforms_sign_is_genuine() {
    let all = [
        "stripe", "stripe", "svix", "standard", "slack", "twilio", "twilio",
    ];
    check_peer("webhook-signers", "venv", &all);
}

#[test]
fn what_the_sdks_of_platforms_for_node_sign_is_genuine() {
    check_peer("webhook-signers-js", "node_modules", &["shopify", "github"]);
}

/// Verifies what a peer signs with SDKs, and refuses it with another secret or body.
fn check_peer(peer: &str, packages: &str, expected: &[&str]) {
    let Some(peers) = peers::installed("webhook signers", &format!("{peer}/{packages}")) else {
        return;
    };
    let [interpreter, program] = peers::words(&peers, peer, "sign");
    let signed = std::process::Command::new(interpreter)
        .args([&program, BODY, &SECONDS.to_string()])
        .output()
        .expect("it runs");
    assert!(signed.status.success(), "{signed:?}");
    let signed: Value = serde_json::from_slice(&signed.stdout).expect("it is JSON");
    let mut schemes = Vec::new();
    for one in signed["sent"].as_array().expect("a list") {
        let text = |key: &str| one[key].as_str().expect("a text");
        let (scheme, secret, body) = (text("scheme"), text("secret"), text("body"));
        let pairs = one["headers"].as_object().expect("a map").iter();
        let map =
            headers(pairs.map(|(name, value)| (name.as_str(), value.as_str().expect("a text"))));
        let url = match scheme {
            "twilio" => format!(", url: \"{}\"", signed["url"].as_str().expect("a text")),
            _ => String::new(),
        };
        let block = |secret: &str| format!("{{scheme: {scheme}, secret: \"{secret}\"{url}}}");
        let check = |secret: &str, query, body: &str| {
            let verdict = verdict(&block(secret), &map, query, body.as_bytes());
            verdict.whole().clone()
        };
        let query = one["query"].as_str();
        let genuine = Verification::Verified {
            scheme: scheme.to_owned(),
        };
        assert_eq!(check(secret, query, body), genuine, "{one}");
        let mismatch = Verification::Refused {
            reason: Refusal::Mismatch,
        };
        assert_eq!(
            check("whsec_b3RoZXItb3RoZXItb3RoZXI=", query, body),
            mismatch,
            "{one}"
        );
        assert_eq!(check(secret, query, &format!("{body}x")), mismatch, "{one}");
        if scheme == "twilio" {
            assert_eq!(
                check(secret, Some("foo=baz"), body),
                if query.is_some() {
                    Verification::Refused {
                        reason: Refusal::Missing,
                    }
                } else {
                    mismatch
                },
                "{one}"
            );
        }
        schemes.push(scheme.to_owned());
    }
    assert_eq!(schemes, expected);
}

#[test]
fn plain_tokens_are_compared_whole() {
    let gitlab = "{scheme: gitlab, secrets: [old-token, new-token]}";
    let bearer = "{scheme: token, header: Authorization, prefix: 'Bearer ', secret: new-token}";
    for (block, header, prefix) in [
        (gitlab, "x-gitlab-token", ""),
        (bearer, "authorization", "Bearer "),
    ] {
        let check = |token: &str| {
            let map = headers([(header, token)]);
            verdict(block, &map, None, BODY.as_bytes()).whole().clone()
        };
        assert!(matches!(
            check(&format!("{prefix}new-token")),
            Verification::Verified { .. }
        ));
        for wrong in ["", "new-toke", "new-token2", "NEW-TOKEN"] {
            let found = check(&format!("{prefix}{wrong}"));
            assert!(
                matches!(found, Verification::Refused { .. }),
                "{wrong}: {found:?}"
            );
        }
    }
}

#[test]
fn shopify_and_hmacs_with_times_of_their_own() {
    use base64::Engine as _;
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"key");
    let sign = |text: &str| ring::hmac::sign(&key, text.as_bytes());
    let base64 = base64::engine::general_purpose::STANDARD.encode(sign(BODY));
    let map = headers([
        ("x-shopify-hmac-sha256", base64.as_str()),
        ("x-shopify-webhook-id", "w"),
    ]);
    let found = verdict(
        "{scheme: shopify, secret: key}",
        &map,
        None,
        BODY.as_bytes(),
    );
    assert!(
        matches!(found.whole(), Verification::Verified { .. }),
        "{found:?}"
    );
    // The id is not signed, so the body identifies it.
    let delivery = Delivery {
        headers: &map,
        query: None,
        body: BODY.as_bytes(),
        received_at: Timestamp::UNIX_EPOCH,
    };
    let identity = identify(
        &delivery,
        &json!({}),
        found.scheme(),
        DedupeChoice::default(),
    );
    let identity = identity.expect("its body does");
    assert!(identity.key.starts_with("sha256:") && identity.window == REPLAY_WINDOW);

    let hex = |text: &str| -> String {
        sign(text)
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    for (format, near, far) in [
        ("seconds", "1767268740", "1767268739"),
        ("milliseconds", "1767268740000", "1767268739999"),
        (
            "rfc3339",
            "2026-01-01T13:59:00+02:00",
            "2026-01-01T13:58:59+02:00",
        ),
    ] {
        let block = format!(
            "{{scheme: hmac, header: X-Sig, separator: ';', prefix: s=, timestamp_key: 't=', timestamp_format: {format}, \
             tolerance: 1m, signed: '{{timestamp}}.{{body}}', secret: key}}"
        );
        for (time, expected) in [(near, None), (far, Some(Refusal::Stale))] {
            let header = format!("t={time};s=00;s={}", hex(&format!("{time}.{BODY}")));
            let map = headers([("x-sig", header.as_str())]);
            let found = verdict(&block, &map, None, BODY.as_bytes());
            let reason = match found.whole() {
                Verification::Refused { reason } => Some(*reason),
                _ => None,
            };
            assert_eq!(reason, expected, "{format} {time}");
        }
    }
}
