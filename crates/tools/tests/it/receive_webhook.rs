//! Webhooks: signatures, identities, handshakes and payloads, with the wrong, the missing and the replayed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proofhouse_manifest::{Bundle, Tool};
use proofhouse_tools::operator::{OperatorConfig, WebhookSource};
use proofhouse_tools::receive::webhook::{
    DedupeBy, DedupeChoice, Delivery, Handshake, ID_WINDOW, PayloadError, PayloadLimits,
    REPLAY_WINDOW, Refusal, Scheme, Verification, WebhookKeys, channels, greet, greet_signed,
    identify, read_payload, shown_headers,
};
use proofhouse_tools::runtime::Environment;
use proofhouse_wire::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};

const BODY: &[u8] = br#"{"action":"created"}"#;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("the test is set up")
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::try_from(*name).expect("the test is set up");
        map.append(
            name,
            HeaderValue::from_str(value).expect("the test is set up"),
        );
    }
    map
}

fn delivery<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> Delivery<'a> {
    Delivery {
        headers,
        query: None,
        body,
        received_at: now(),
    }
}

fn source(block: &str) -> WebhookSource {
    let text = format!("webhooks:\n  demo:\n{block}");
    let (config, findings) = OperatorConfig::read(&text, &|_| None);
    assert!(findings.is_empty(), "{findings:?}");
    config
        .webhooks
        .source("demo")
        .expect("the test is set up")
        .clone()
}

fn verify(source: &WebhookSource, pairs: &[(&str, &str)], body: &[u8]) -> Verification {
    let headers = headers(pairs);
    let verdict = WebhookKeys::of_source(source).verify(&delivery(&headers, body));
    verdict.whole().clone()
}

fn verified(scheme: &str) -> Verification {
    Verification::Verified {
        scheme: scheme.to_owned(),
    }
}

fn refused(reason: Refusal) -> Verification {
    Verification::Refused { reason }
}

#[test]
fn the_published_examples_hold() {
    // GitHub's documentation: "It's a Secret to Everybody" over "Hello, World!".
    let github = source("    scheme: github\n    secret: \"It's a Secret to Everybody\"\n");
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let found = verify(
        &github,
        &[("X-Hub-Signature-256", signature)],
        b"Hello, World!",
    );
    assert_eq!(found, verified("github"));

    // Standard Webhooks' reference vector, at its own time.
    let standard =
        source("    scheme: standard\n    secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    let body = br#"{"test": 2432232314}"#;
    let map = headers(&[
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        (
            "webhook-signature",
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        // A replay may add what it likes to what is signed.
        ("x-github-delivery", "another"),
    ]);
    let delivery = Delivery {
        received_at: Timestamp::from_second(1_614_265_330).expect("the test is set up"),
        ..delivery(&map, body)
    };
    let keys = WebhookKeys::of_source(&standard);
    let verdict = keys.verify(&delivery);
    assert_eq!(*verdict.whole(), verified("standard"));
    let found = identify(
        &delivery,
        &json!({}),
        verdict.scheme(),
        DedupeChoice::default(),
    );
    let found = found.expect("its id is signed");
    assert_eq!(found.key, "webhook-id:msg_p5jXN8AQM9LWM0D4loKWxJek");
    assert_eq!(found.window, ID_WINDOW);

    // Slack's documentation.
    let slack = source("    scheme: slack\n    secret: 8f742231b10e8888abcd99yyyzzz85a5\n");
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let map = headers(&[
        ("x-slack-request-timestamp", "1531420618"),
        (
            "x-slack-signature",
            "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        ),
    ]);
    let delivery = Delivery {
        headers: &map,
        query: None,
        body,
        received_at: Timestamp::from_second(1_531_420_618).expect("the test is set up"),
    };
    let keys = WebhookKeys::of_source(&slack);
    assert_eq!(*keys.verify(&delivery).whole(), verified("slack"));
}

#[test]
fn what_is_wrong_with_a_signature_is_told_and_no_more() {
    let github = source("    scheme: github\n    secrets: [old-secret, new-secret]\n");
    let scheme = Scheme::named("github").expect("the test is set up");
    let sign = |secret: &str| scheme.sign(secret.as_bytes(), BODY, "", "");
    // Any of several secrets will do.
    for secret in ["old-secret", "new-secret"] {
        let found = verify(&github, &[("x-hub-signature-256", &sign(secret))], BODY);
        assert_eq!(found, verified("github"));
    }
    let right = sign("new-secret");
    let upper = right.to_uppercase().replace("SHA256=", "sha256=");
    assert_eq!(
        verify(&github, &[("x-hub-signature-256", &upper)], BODY),
        verified("github")
    );
    for (pairs, body, expected) in [
        (vec![], BODY, Refusal::Missing),
        (vec![("x-hub-signature", "sha1=00")], BODY, Refusal::Missing),
        (vec![("x-hub-signature-256", "")], BODY, Refusal::Malformed),
        (
            vec![("x-hub-signature-256", "sha256=")],
            BODY,
            Refusal::Malformed,
        ),
        (
            vec![("x-hub-signature-256", "sha256=zz")],
            BODY,
            Refusal::Malformed,
        ),
        (
            vec![("x-hub-signature-256", &right[..40])],
            BODY,
            Refusal::Malformed,
        ),
        (
            vec![("x-hub-signature-256", &right[7..])],
            BODY,
            Refusal::Malformed,
        ),
        (
            vec![
                ("x-hub-signature-256", &right[..]),
                ("x-hub-signature-256", &right[..]),
            ],
            BODY,
            Refusal::Malformed,
        ),
        (
            vec![("x-hub-signature-256", &right[..])],
            &br#"{"action":"created"} "#[..],
            Refusal::Mismatch,
        ),
    ] {
        assert_eq!(
            verify(&github, &pairs, body),
            refused(expected),
            "{pairs:?}"
        );
    }
    let other = sign("other-secret");
    let found = verify(&github, &[("x-hub-signature-256", &other)], BODY);
    assert_eq!(found, refused(Refusal::Mismatch));
    let shown = format!("{found:?} {github:?} {:?}", WebhookKeys::of_source(&github));
    assert!(!shown.contains("secret-"), "{shown}");
    assert!(
        !shown.contains("new-secret") && !shown.contains(&right[7..]),
        "{shown}"
    );
}

#[test]
fn signed_times_are_near_ours() {
    let secret = "whsec_c2VjcmV0LWtleS1vZi10aGUtdGVzdA==";
    let standard = source(&format!("    scheme: standard\n    secret: {secret}\n"));
    let scheme = Scheme::named("standard").expect("the test is set up");
    let key = scheme.key(secret).expect("the test is set up");
    let check = |offset: i64, id: &str| {
        let time = (now().as_second() + offset).to_string();
        let signature = scheme.sign(&key, BODY, &time, id);
        let pairs = [
            ("webhook-id", id),
            ("webhook-timestamp", time.as_str()),
            ("webhook-signature", &format!("v1,AAAA v2,x {signature}")),
        ];
        verify(&standard, &pairs, BODY)
    };
    for offset in [0, 299, -299, 300, -300] {
        assert_eq!(check(offset, "msg_1"), verified("standard"), "{offset}");
    }
    for offset in [301, -301, 86_400] {
        assert_eq!(check(offset, "msg_1"), refused(Refusal::Stale), "{offset}");
    }
    // An id that could hold the start of something else is none.
    for id in ["a.b", "{\"a\"", ""] {
        assert_eq!(check(0, id), refused(Refusal::Malformed), "{id}");
    }
    let signature = scheme.sign(&key, BODY, "now", "msg_1");
    let with_time = |time: &str| {
        let pairs = [
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", time),
            ("webhook-signature", &signature),
        ];
        verify(&standard, &pairs, BODY)
    };
    for time in ["now", "-1", "1.5", " 1", "99999999999999999999"] {
        assert_eq!(with_time(time), refused(Refusal::Malformed), "{time}");
    }
    let pairs = [("webhook-id", "m"), ("webhook-signature", &signature[..])];
    assert_eq!(verify(&standard, &pairs, BODY), refused(Refusal::Missing));
}

#[test]
fn other_hmacs_are_configured() {
    let block = "    scheme: hmac\n    header: X-Sig\n    hash: sha512\n    encoding: base64\n    \
                 prefix: 'h='\n    signed: '{timestamp}|{body}|v1'\n    timestamp_header: X-Time\n    secret: k\n";
    let configured = source(block);
    let time = now().as_second().to_string();
    let signature = configured.scheme.sign(b"k", BODY, &time, "");
    let pairs = [("x-sig", signature.as_str()), ("x-time", time.as_str())];
    assert_eq!(verify(&configured, &pairs, BODY), verified("hmac"));
    assert_eq!(
        verify(&configured, &pairs[..1], BODY),
        refused(Refusal::Missing)
    );
    for hash in ["sha1", "sha256", "sha384", "sha512"] {
        let block =
            format!("    scheme: hmac\n    header: x-sig\n    hash: {hash}\n    secret: k\n");
        let configured = source(&block);
        let signature = configured.scheme.sign(b"k", BODY, "", "");
        let found = verify(&configured, &[("x-sig", &signature)], BODY);
        assert_eq!(found, verified("hmac"), "{hash}");
    }
}

fn tool(events: &str) -> Tool {
    let text = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: demo\ndescription: d\n\
         settings: {{properties: {{one: {{}}, two: {{}}, nothing: {{}}, blank: {{}}}}}}\nevents:\n{events}"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}");
    bundle.tools().next().expect("the test is set up").clone()
}

#[test]
fn events_may_have_secrets_of_their_own() {
    let tool = tool(
        "  - {name: a, message: m, receive: {webhook: {secret: '{settings.one}'}}}\n  \
           - {name: b, message: m, receive: {webhook: {secret: '{settings.two}'}}}\n  \
           - {name: open, message: m, receive: {webhook: {}}}\n  \
           - {name: lost, message: m, receive: {webhook: {secret: '{settings.nothing}'}}}\n  \
           - {name: blank, message: m, receive: {webhook: {secret: '{settings.blank}'}}}\n",
    );
    let settings = json!({"one": "secret-1", "two": "secret-2", "blank": ""});
    let environment = Environment::new(settings, String::new);
    let github = Scheme::named("github").expect("the test is set up");
    let signed =
        |secret: &[u8]| headers(&[("x-hub-signature-256", &github.sign(secret, BODY, "", ""))]);

    let keys = WebhookKeys::of_tool(&tool, None, &environment);
    assert!(keys.accepts_unsigned());
    let map = signed(b"secret-1");
    let verdict = keys.verify(&delivery(&map, BODY));
    assert_eq!(*verdict.whole(), verified("github"));
    assert_eq!(*verdict.of("a"), verified("github"));
    assert_eq!(*verdict.of("b"), refused(Refusal::Mismatch));
    assert_eq!(*verdict.of("open"), Verification::Unsigned);
    assert_eq!(*verdict.of("lost"), refused(Refusal::Unconfigured));
    // Anyone could sign with an empty secret.
    let map = signed(b"");
    let verdict = keys.verify(&delivery(&map, BODY));
    assert_eq!(*verdict.of("blank"), refused(Refusal::Unconfigured));
    assert_eq!(*verdict.whole(), Verification::Unsigned);
    assert!(verdict.whole().is_accepted(false) && !verdict.whole().is_accepted(true));

    // The operator's secret is as good as the manifest's.
    let operator = source("    scheme: github\n    secret: secret-0\n");
    let keys = WebhookKeys::of_tool(&tool, Some(&operator), &environment);
    assert!(!keys.accepts_unsigned());
    let map = signed(b"secret-0");
    let verdict = keys.verify(&delivery(&map, BODY));
    for event in ["a", "b", "open", "lost", "blank"] {
        assert_eq!(*verdict.of(event), verified("github"), "{event}");
    }
    let map = signed(b"secret-2");
    let verdict = keys.verify(&delivery(&map, BODY));
    assert_eq!(*verdict.of("b"), verified("github"));
    assert_eq!(*verdict.of("open"), refused(Refusal::Mismatch));
    let map = headers(&[]);
    let verdict = keys.verify(&delivery(&map, BODY));
    assert_eq!(*verdict.of("open"), refused(Refusal::Missing));
}

#[test]
fn deliveries_are_told_apart_as_platforms_do() {
    let identity = |pairs: &[(&str, &str)], payload: Value| {
        let headers = headers(pairs);
        let by_id = DedupeChoice {
            by: Some(DedupeBy::Id),
            window: None,
        };
        let delivery = delivery(&headers, BODY);
        // Nobody signed it, so it identifies nothing unless the operator says so.
        assert_eq!(
            identify(&delivery, &payload, None, DedupeChoice::default()),
            None
        );
        identify(&delivery, &payload, None, by_id).expect("it is told from others")
    };
    for (pairs, payload, expected) in [
        (
            vec![("X-GitHub-Delivery", "guid-1")],
            json!({}),
            "x-github-delivery:guid-1",
        ),
        (vec![("webhook-id", "msg_1")], json!({}), "webhook-id:msg_1"),
        (
            vec![("x-goog-channel-id", "c"), ("x-goog-message-number", "7")],
            json!({}),
            "google:c:7",
        ),
        (vec![], json!({"event_id": "Ev1"}), "event_id:Ev1"),
        (
            vec![],
            json!({"value": [{"subscriptionId": "s", "id": "1"}, {"subscriptionId": "s", "id": "2"}]}),
            "graph:s:1:s:2",
        ),
    ] {
        let found = identity(&pairs, payload);
        assert_eq!(found.key, expected);
        assert_eq!(found.window, ID_WINDOW);
    }
    for payload in [
        json!({}),
        json!({"event_id": ""}),
        json!({"event_id": 7}),
        json!({"value": []}),
        json!({"value": [{"subscriptionId": "s", "id": "1"}, {"subscriptionId": "s"}]}),
    ] {
        let found = identity(&[], payload);
        assert!(
            found.key.starts_with("sha256:") && found.window == REPLAY_WINDOW,
            "{found:?}"
        );
    }
    // What the platform sends becomes a key of a store, whatever it is.
    for id in ["x".repeat(5_000), "a b".to_owned()] {
        let found = identity(&[("webhook-id", &id)], json!({}));
        assert!(found.key.starts_with("sha256-of-id:") && found.key.len() < 100);
    }
    let by_body = DedupeChoice {
        by: Some(DedupeBy::Body),
        window: Some(Duration::from_secs(7)),
    };
    let of_body = |body: &[u8]| {
        let map = headers(&[("webhook-id", "same")]);
        identify(&delivery(&map, body), &json!({}), None, by_body).expect("it is told from others")
    };
    assert_ne!(of_body(b"{}").key, of_body(b"{} ").key);
    assert_eq!(of_body(b"{}").window, Duration::from_secs(7));
    let nothing = DedupeChoice {
        by: Some(DedupeBy::Nothing),
        window: None,
    };
    let standard = Scheme::named("standard");
    let map = headers(&[("webhook-id", "m")]);
    assert_eq!(
        identify(&delivery(&map, BODY), &json!({}), standard, nothing),
        None
    );
}

/// Two equal bodies that nobody signed are two events; a token says nothing about a body.
#[test]
fn a_token_signs_nothing_that_could_be_a_repeat() {
    let map = headers(&[("x-gitlab-event-uuid", "e-1")]);
    let of = |name: &str| {
        let scheme = Scheme::named(name);
        assert!(scheme.is_some(), "{name}");
        identify(
            &delivery(&map, BODY),
            &json!({}),
            scheme,
            DedupeChoice::default(),
        )
    };
    for name in ["gitlab", "token"] {
        assert_eq!(of(name), None, "{name}");
    }
    assert!(of("github").is_some());
}

#[test]
fn channels_are_named_by_headers_or_notifications() {
    let map = headers(&[("x-goog-channel-id", "c1"), ("x-goog-channel-token", "t1")]);
    let found = channels(&delivery(&map, b""), None);
    assert_eq!(
        (found[0].id.as_str(), found[0].token.as_deref()),
        ("c1", Some("t1"))
    );
    let payload = json!({"value": [{"subscriptionId": "s", "clientState": "x"}, {}]});
    let found = channels(&delivery(&HeaderMap::new(), b""), Some(&payload));
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].id.as_str(), found[0].token.as_deref()),
        ("s", Some("x"))
    );
}

#[test]
fn events_show_headers_without_credentials() {
    let map = headers(&[
        ("X-GitHub-Event", "push"),
        ("Authorization", "Bearer x"),
        ("X-Hub-Signature-256", "sha256=00"),
        ("Cookie", "a=b"),
        ("X-Api-Key", "s"),
        ("X-Auth-Token", "s"),
        ("X-Telegram-Bot-Api-Secret-Token", "s"),
        ("X-Sig", "s"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
    ]);
    let shown: Vec<_> = shown_headers(&delivery(&map, b"{}")).collect();
    assert_eq!(shown, [("x-github-event", "push")]);
}

#[test]
fn handshakes_are_answered_safely() {
    let empty = HeaderMap::new();
    let ask = |query: &'static str, body: &'static [u8]| {
        greet(&Delivery {
            query: Some(query),
            ..delivery(&empty, body)
        })
    };
    let echo = |body: &str| {
        Some(Handshake::Echo {
            content_type: "text/plain; charset=utf-8",
            body: body.to_owned(),
        })
    };
    assert_eq!(
        ask("validationToken=Validation%3A+Testing%20x", b""),
        echo("Validation: Testing x")
    );
    assert_eq!(ask("a=b&validationToken=<script>", b" "), echo("<script>"));
    assert_eq!(ask("validationToken=x", b"{}"), None);
    assert_eq!(ask("validationToken=", b""), None);
    assert_eq!(ask("validationToken=a%0d%0ab", b""), None);
    assert_eq!(ask("other=x", b""), None);
    let long = format!("validationToken={}", "x".repeat(3_000));
    assert_eq!(ask(long.leak(), b""), None);
    assert_eq!(greet(&delivery(&empty, b"")), None);

    let sync = headers(&[("X-Goog-Resource-State", "sync")]);
    assert_eq!(greet(&delivery(&sync, b"")), Some(Handshake::Empty));
    let changed = headers(&[("X-Goog-Resource-State", "change")]);
    assert_eq!(greet(&delivery(&changed, b"")), None);

    let challenge = json!({"type": "url_verification", "challenge": "3eZb"});
    let signed = verified("slack");
    assert_eq!(greet_signed(&challenge, &signed, true), echo("3eZb"));
    assert_eq!(
        greet_signed(&challenge, &Verification::Unsigned, false),
        echo("3eZb")
    );
    assert_eq!(
        greet_signed(&challenge, &Verification::Unsigned, true),
        None
    );
    assert_eq!(
        greet_signed(&challenge, &refused(Refusal::Mismatch), false),
        None
    );
    for other in [
        json!({"type": "event_callback", "challenge": "x"}),
        json!({"type": "url_verification"}),
        json!({"type": "url_verification", "challenge": "x".repeat(5_000)}),
        json!([]),
    ] {
        assert_eq!(greet_signed(&other, &signed, false), None);
    }
}

fn read(kind: &str, body: &[u8]) -> Result<Value, PayloadError> {
    let map = headers(&[("content-type", kind)]);
    read_payload(&delivery(&map, body), &PayloadLimits::default())
}

#[test]
fn payloads_are_json_or_forms() {
    let form = "application/x-www-form-urlencoded";
    for (kind, body, expected) in [
        ("application/json", r#"{"a": 1}"#, json!({"a": 1})),
        ("application/json; charset=utf-8", "[1]", json!([1])),
        ("application/cloudevents+json", "{}", json!({})),
        ("", r#"{"a": 1}"#, json!({"a": 1})),
        ("application/json", "", json!({})),
        ("text/plain", " \n", json!({})),
        (form, "payload=%7B%22a%22%3A+1%7D", json!({"a": 1})),
        (form, "a=1&b=x+y&a=2", json!({"a": ["1", "2"], "b": "x y"})),
    ] {
        assert_eq!(read(kind, body.as_bytes()), Ok(expected), "{kind} {body}");
    }
    for (kind, body, status) in [
        ("application/json", "{", 400),
        ("application/json", "{} {}", 400),
        ("application/json", "\u{feff}{}", 400),
        ("application/json", "payload={}", 400),
        (form, "payload=%7B", 400),
        (form, "payload=1&payload=2", 400),
        ("text/html", "<p>", 415),
        ("multipart/form-data; boundary=x", "--x", 415),
    ] {
        let error = read(kind, body.as_bytes()).unwrap_err();
        assert_eq!(error.status(), status, "{kind} {body}: {error}");
    }
    assert!(matches!(
        read("", b"\xff\xfe"),
        Err(PayloadError::Json { .. })
    ));
    let map = headers(&[("content-encoding", "gzip")]);
    let found = read_payload(&delivery(&map, b"{}"), &PayloadLimits::default());
    assert_eq!(found, Err(PayloadError::Compressed));
}

#[test]
fn payloads_are_bounded() {
    let limits = PayloadLimits {
        max_bytes: 1_000,
        max_depth: 3,
        max_fields: 2,
    };
    let check = |kind: &str, body: &str| {
        let map = headers(&[("content-type", kind)]);
        read_payload(&delivery(&map, body.as_bytes()), &limits)
    };
    assert!(check("", "[[[1]]]").is_ok());
    assert_eq!(
        check("", "[[[[1]]]]"),
        Err(PayloadError::TooDeep { limit: 3 })
    );
    assert!(check("", r#"["[[[[[\"[[[["]"#).is_ok());
    let deep = format!("{}1", "[".repeat(900));
    assert_eq!(check("", &deep), Err(PayloadError::TooDeep { limit: 3 }));
    let long = format!("[{}]", "1,".repeat(600));
    assert_eq!(check("", &long).unwrap_err().status(), 413);
    let form = "application/x-www-form-urlencoded";
    assert!(check(form, "a=1&b=2").is_ok());
    assert!(matches!(
        check(form, "a=1&b=2&c=3"),
        Err(PayloadError::Form { .. })
    ));
    assert_eq!(
        check(form, "payload=%5B%5B%5B%5B1%5D%5D%5D%5D"),
        Err(PayloadError::TooDeep { limit: 3 })
    );
    // Nothing of a body is told to who may not see it.
    let error = check("", r#"{"password": "hunter2" x}"#)
        .unwrap_err()
        .to_string();
    assert!(
        !error.contains("hunter2") && error.contains("column 24"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_signature_but_the_right_one_is_accepted(
        text in r"[ -~]{0,120}", id in r"[ -~]{0,20}", time in r"[ -~]{0,12}", body: Vec<u8>,
    ) {
        for name in ["github", "standard", "slack"] {
            let block = format!("    scheme: {name}\n    secret: whsec_c2VjcmV0LWtleS1vZi10aGUtdGVzdA==\n");
            let keys = WebhookKeys::of_source(&source(&block));
            let scheme = Scheme::named(name).expect("the test is set up");
            let mut map = headers(&[("webhook-id", id.trim()), ("webhook-timestamp", time.trim())]);
            map.insert("x-slack-request-timestamp", HeaderValue::from_str(time.trim()).expect("the test is set up"));
            let header = HeaderName::try_from(&*scheme.header).expect("the test is set up");
            map.insert(header, HeaderValue::from_str(&format!("{}{}", scheme.prefix, text.trim())).expect("the test is set up"));
            let verdict = keys.verify(&delivery(&map, &body));
            let is_refused = matches!(verdict.whole(), Verification::Refused { .. });
            prop_assert!(is_refused);
        }
    }

    #[test]
    fn what_is_signed_is_accepted_until_a_byte_changes(body: Vec<u8>, at: usize, id in "[a-z0-9_]{1,20}") {
        let secret = "whsec_c2VjcmV0LWtleS1vZi10aGUtdGVzdA==";
        let time = now().as_second().to_string();
        for name in ["github", "standard", "slack"] {
            let keys = WebhookKeys::of_source(&source(&format!("    scheme: {name}\n    secret: {secret}\n")));
            let scheme = Scheme::named(name).expect("the test is set up");
            let signature = scheme.sign(&scheme.key(secret).expect("the test is set up"), &body, &time, &id);
            let map = headers(&[
                ("webhook-id", &id), ("webhook-timestamp", &time), ("x-slack-request-timestamp", &time),
                (&scheme.header, &signature),
            ]);
            let verdict = keys.verify(&delivery(&map, &body));
            prop_assert_eq!(verdict.whole(), &verified(name));
            let mut other = body.clone();
            if other.is_empty() {other.push(0)} else { let at = at % other.len(); other[at] ^= 1; }
            let verdict = keys.verify(&delivery(&map, &other));
            prop_assert_eq!(verdict.whole(), &refused(Refusal::Mismatch));
        }
    }

    #[test]
    fn any_body_is_a_payload_or_an_error(body: Vec<u8>, form: bool) {
        let kind = if form { "application/x-www-form-urlencoded" } else { "application/json" };
        let _ = read(kind, &body);
    }

    #[test]
    fn json_comes_through_as_it_is(text in r#"[ -~ä"\\\[\]{}]{0,40}"#, number: i64) {
        let value = json!({"text": text, "list": [number, null, true]});
        prop_assert_eq!(read("application/json", value.to_string().as_bytes()), Ok(value.clone()));
        let form: String = url_encoded(&value.to_string());
        prop_assert_eq!(read("application/x-www-form-urlencoded", form.as_bytes()), Ok(value));
    }
}

/// The value as the field `payload` of a form.
fn url_encoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| format!("%{byte:02X}"));
    format!("payload={}", bytes.collect::<String>())
}

#[test]
fn tolerance_is_five_minutes() {
    assert_eq!(
        proofhouse_tools::receive::webhook::TOLERANCE,
        SignedDuration::from_secs(300)
    );
}
