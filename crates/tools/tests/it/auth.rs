//! Auth providers against a real token endpoint on the loopback address, well-behaved and not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use proofhouse_manifest::interpolate::Sealed;
use proofhouse_test_support::loopback::Vacant;
use proofhouse_tools::auth::{
    AuthConfig, AuthError, ClientAuthentication, ClientCredentials, OauthClient, ProviderBinding,
    ProviderConfig, Providers, RefreshToken,
};
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{ActionFailure, Runtimes, TokenSource, ToolTask};
use serde_json::{Value, json};

use crate::support::*;

const START: u64 = 1_800_000_000;
const SECRET: &str = "client-secret/+1";

fn client(port: u16) -> OauthClient {
    OauthClient {
        token_url: format!("http://127.0.0.1:{port}/token")
            .parse()
            .expect("the test is set up"),
        id: "me: too".to_owned(),
        secret: Some(Sealed::new(SECRET.to_owned())),
        authentication: ClientAuthentication::Basic,
        scope: Some("read write".to_owned()),
        parameters: vec![(
            "audience".to_owned(),
            Sealed::new("https://a.test/".to_owned()),
        )],
    }
}

fn credentials(port: u16) -> ProviderConfig {
    ProviderConfig::ClientCredentials(ClientCredentials {
        client: client(port),
    })
}

fn refreshing(port: u16) -> ProviderConfig {
    ProviderConfig::RefreshToken(RefreshToken {
        client: client(port),
        refresh_token: Sealed::new("refresh-0".to_owned()),
    })
}

/// Providers with one of the name `p`, and the clock they go by.
fn providers(provider: ProviderConfig) -> (Arc<Providers>, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(START));
    let tells = Arc::clone(&clock);
    let mut config = AuthConfig::default();
    config.insert("p", provider, ProviderBinding::everywhere());
    let now = move || tells.load(Ordering::SeqCst);
    let providers =
        Providers::new(&config, &limits(), loopback(), now).expect("the test is set up");
    (Arc::new(providers), clock)
}

async fn token(providers: &Providers) -> String {
    providers
        .get("p")
        .await
        .expect("the test is set up")
        .into_exposed()
}

fn body(request: &str) -> &str {
    request
        .split_once("\r\n\r\n")
        .expect("the test is set up")
        .1
}

/// Answers the request of each number with a token of that number, good for so many seconds.
async fn numbered(seconds: u64) -> Server {
    Server::start(move |number, _| {
        json_reply(&json!({
            "access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": seconds
        }))
        .later(Duration::from_millis(50))
    })
    .await
}

#[tokio::test]
async fn the_request_is_that_of_the_standard() {
    let server = numbered(3600).await;
    assert_eq!(
        token(&providers(credentials(server.port)).0).await,
        "token-0"
    );
    let post = OauthClient {
        authentication: ClientAuthentication::Post,
        ..client(server.port)
    };
    let post = ProviderConfig::ClientCredentials(ClientCredentials { client: post });
    token(&providers(post).0).await;
    let public = OauthClient {
        secret: None,
        ..client(server.port)
    };
    let public = ProviderConfig::RefreshToken(RefreshToken {
        client: public,
        refresh_token: Sealed::new("refresh-0".to_owned()),
    });
    token(&providers(public).0).await;

    let seen = server.seen();
    assert!(
        seen[0].starts_with("POST /token HTTP/1.1\r\n"),
        "{}",
        seen[0]
    );
    assert!(seen[0].contains("\r\ncontent-type: application/x-www-form-urlencoded\r\n"));
    assert!(seen[0].contains("\r\naccept: application/json\r\n"));
    let basic = STANDARD.encode("me%3A+too:client-secret%2F%2B1");
    assert!(
        seen[0].contains(&format!("\r\nauthorization: Basic {basic}\r\n")),
        "{}",
        seen[0]
    );
    let rest = "&audience=https%3A%2F%2Fa.test%2F";
    let grant = "grant_type=client_credentials&scope=read+write";
    assert_eq!(body(&seen[0]), format!("{grant}{rest}"));
    assert!(!seen[1].contains("authorization:"));
    let who = "&client_id=me%3A+too&client_secret=client-secret%2F%2B1";
    assert_eq!(body(&seen[1]), format!("{grant}{who}{rest}"));
    assert!(!seen[2].contains("authorization:"));
    let grant = "grant_type=refresh_token&refresh_token=refresh-0&scope=read+write";
    assert_eq!(body(&seen[2]), format!("{grant}&client_id=me%3A+too{rest}"));
}

#[tokio::test]
async fn tokens_are_kept_until_shortly_before_their_end() {
    // Of an hour, the last minute; of forty seconds, the last ten; a token without a life, never.
    for (life, kept) in [(3600, 3539), (40, 29), (4, 2)] {
        let server = numbered(life).await;
        let (providers, clock) = providers(credentials(server.port));
        assert_eq!(token(&providers).await, "token-0", "{life}");
        clock.store(START + kept, Ordering::SeqCst);
        assert_eq!(token(&providers).await, "token-0", "{life}");
        clock.store(START + kept + 1, Ordering::SeqCst);
        assert_eq!(token(&providers).await, "token-1", "{life}");
        assert_eq!(server.seen().len(), 2);
    }
    let server = numbered(0).await;
    let (at_once, _) = providers(credentials(server.port));
    assert_eq!(token(&at_once).await, "token-0");
    assert_eq!(token(&at_once).await, "token-1");
    let server = Server::start(|_, _| json_reply(&json!({"access_token": "t"}))).await;
    let (endless, clock) = providers(credentials(server.port));
    token(&endless).await;
    clock.store(START * 2, Ordering::SeqCst);
    token(&endless).await;
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_callers_make_one_request() {
    let server = numbered(3600).await;
    let (providers, clock) = providers(credentials(server.port));
    let ask = || {
        let calls = (0..100).map(|_| {
            let providers = Arc::clone(&providers);
            tokio::spawn(async move { token(&providers).await })
        });
        join_all(calls)
    };
    for result in ask().await {
        assert_eq!(result.unwrap(), "token-0");
    }
    assert_eq!(server.seen().len(), 1);
    clock.store(START + 3600, Ordering::SeqCst);
    for result in ask().await {
        assert_eq!(result.unwrap(), "token-1");
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_callers_share_a_failure() {
    let server = Server::start(|_, _| {
        reply("400 Bad", "", json!({"error": "invalid_grant"}).to_string())
            .later(Duration::from_millis(200))
    })
    .await;
    let (providers, _) = providers(credentials(server.port));
    let calls = (0..100).map(|_| providers.get("p"));
    for result in join_all(calls).await {
        assert!(matches!(
            result,
            Err(AuthError::Refused { status: 400, .. })
        ));
    }
    assert_eq!(server.seen().len(), 1);
    // A failure is not kept.
    assert!(providers.get("p").await.is_err());
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_refused_with_the_same_token_make_one_request() {
    let server = numbered(3600).await;
    let (providers, clock) = providers(credentials(server.port));
    token(&providers).await;
    // Some are refused at once, others when the new token is there already.
    for _ in 0..2 {
        let calls = (0..100).map(|_| providers.get_instead_of("p", "token-0"));
        for result in join_all(calls).await {
            assert_eq!(result.unwrap().expose(), "token-1");
        }
    }
    assert_eq!(server.seen().len(), 2);
    let next = providers.get_instead_of("p", "token-1").await.unwrap();
    assert_eq!(next.expose(), "token-2");

    // Who cannot say which token was refused gets one that is a few seconds old at most.
    assert_eq!(providers.token("p", true).await.unwrap(), "token-2");
    clock.store(START + 5, Ordering::SeqCst);
    let calls = (0..100).map(|_| providers.token("p", true));
    for result in join_all(calls).await {
        assert_eq!(result.unwrap(), "token-3");
    }
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn a_refresh_token_is_replaced_and_survives_a_cancelled_caller() {
    let server = Server::start(|number, _| {
        let mut answer = json!({"access_token": format!("token-{number}"), "expires_in": 100});
        if number != 1 {
            answer["refresh_token"] = format!("refresh-{}", number + 1).into();
        }
        json_reply(&answer).later(Duration::from_millis(100))
    })
    .await;
    let (providers, clock) = providers(refreshing(server.port));
    let impatient = tokio::time::timeout(Duration::from_millis(20), providers.get("p")).await;
    assert!(impatient.is_err());
    assert_eq!(token(&providers).await, "token-0");
    for number in 1..4 {
        clock.fetch_add(100, Ordering::SeqCst);
        assert_eq!(token(&providers).await, format!("token-{number}"));
    }
    let sent: Vec<String> = server
        .seen()
        .iter()
        .map(|request| body(request).split('&').nth(1).unwrap().to_owned())
        .collect();
    let expected = ["refresh-0", "refresh-1", "refresh-1", "refresh-3"];
    assert_eq!(sent, expected.map(|token| format!("refresh_token={token}")));
    let secrets = providers.secrets("p");
    assert_eq!(
        secrets.redact("refresh-0 refresh-4"),
        "[redacted] [redacted]"
    );
    assert!(!format!("{providers:?}").contains("refresh"));
}

#[tokio::test]
async fn only_requests_that_use_nothing_up_are_repeated() {
    for (first, provider, seen) in [
        ("close", "credentials", 2),
        ("busy", "credentials", 2),
        ("close", "refresh", 1),
        ("busy", "refresh", 1),
    ] {
        let server = Server::start(move |number, _| match (number, first) {
            (0, "close") => Reply::Close,
            (0, _) => reply("503 Busy", "", ""),
            _ => json_reply(&json!({"access_token": "t"})),
        })
        .await;
        let (providers, _) = match provider {
            "refresh" => providers(refreshing(server.port)),
            _ => providers(credentials(server.port)),
        };
        assert_eq!(
            providers.get("p").await.is_ok(),
            seen == 2,
            "{first} {provider}"
        );
        assert_eq!(server.seen().len(), seen, "{first} {provider}");
    }
}

#[tokio::test]
async fn a_token_that_still_counts_outlives_a_failing_endpoint() {
    let server = Server::start(|number, _| match number {
        0 => json_reply(&json!({"access_token": "token-0", "expires_in": 3600})),
        _ => reply("500 Oops", "", ""),
    })
    .await;
    let (providers, clock) = providers(credentials(server.port));
    token(&providers).await;
    for (after, seen) in [(3540, 2), (3549, 2), (3550, 3)] {
        clock.store(START + after, Ordering::SeqCst);
        assert_eq!(token(&providers).await, "token-0");
        assert_eq!(server.seen().len(), seen, "{after}");
    }
    assert!(providers.get_instead_of("p", "token-0").await.is_err());
    clock.store(START + 3600, Ordering::SeqCst);
    assert!(providers.get("p").await.is_err());
}

#[tokio::test]
async fn refusals_are_told_without_secrets() {
    let server = Server::start(|_, request| {
        let joined = request.split("authorization: ").nth(1).unwrap();
        let joined = joined.lines().next().unwrap();
        let said = json!({
            "error": "invalid_client",
            "error_description": format!("no\r\n{SECRET} {joined} {}", "x".repeat(500)),
        });
        reply("401 Unauthorized", "", said.to_string())
    })
    .await;
    let (providers, _) = providers(credentials(server.port));
    let error = providers.get("p").await.unwrap_err();
    let AuthError::Refused {
        status: 401,
        error: Some(code),
        description: Some(description),
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(code, "invalid_client");
    assert!(
        description.starts_with("no  [redacted] Basic [redacted] xxx") && description.len() == 200
    );

    let tool = tool("stateless_http: {method: GET, url: \"http://127.0.0.1:1/{auth.p()}\"}");
    let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
    let environment = environment().with_tokens(providers);
    let error = act(
        &ToolTask::new(tool, environment, runtimes, limits()),
        json!({}),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::Token, false)
    );
    assert!(error.message.contains("invalid_client"), "{error}");
    assert!(!error.message.contains("client-secret"), "{error}");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn answers_that_are_no_tokens_are_refused() {
    let whole = |mut answer: Value, key: &str, value: Value| {
        answer[key] = value;
        answer.to_string()
    };
    let good = || json!({"access_token": "t", "token_type": "bearer", "expires_in": 60});
    for (answer, reason) in [
        ("<html>".to_owned(), "not JSON"),
        (String::new(), "not JSON"),
        ("[1]".to_owned(), "not a JSON object"),
        ("{}".to_owned(), "no token"),
        (whole(good(), "access_token", json!(7)), "no token"),
        (
            whole(good(), "access_token", json!("")),
            "no token may hold",
        ),
        (
            whole(good(), "access_token", json!("a\r\nb")),
            "no token may hold",
        ),
        (
            whole(good(), "access_token", json!("ü")),
            "no token may hold",
        ),
        (
            whole(good(), "access_token", json!("x".repeat(40_000))),
            "too long",
        ),
        (whole(good(), "token_type", json!("mac")), "not `bearer`"),
        (whole(good(), "expires_in", json!("soon")), "`expires_in`"),
        (whole(good(), "expires_in", json!(-1)), "`expires_in`"),
        (whole(good(), "expires_in", json!([])), "`expires_in`"),
        (
            json!({"error": "bad_verification_code"}).to_string(),
            "bad_verification_code",
        ),
    ] {
        let server = Server::start(move |_, _| reply("200 OK", "", &answer)).await;
        let (providers, _) = providers(credentials(server.port));
        let error = providers.get("p").await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error} should hold {reason}");
    }
    for good in [
        json!({"access_token": "t", "expires_in": "3600"}),
        json!({"access_token": "t", "expires_in": 1e300, "token_type": "BEARER"}),
        json!({"access_token": "t", "expires_in": null, "token_type": null}),
    ] {
        let server = Server::start(move |_, _| json_reply(&good)).await;
        assert_eq!(token(&providers(credentials(server.port)).0).await, "t");
    }
}

#[tokio::test]
async fn slow_huge_forbidden_and_absent_endpoints_end() {
    let closed = Vacant::new();
    let silent = Server::start(|_, _| Reply::Silence).await;
    let endless = Server::start(|_, _| Reply::Endless(&[b' '; 4096], Duration::ZERO)).await;
    let moved = Server::start(|_, _| reply("307 Go", "location: /elsewhere\r\n", "")).await;
    for (port, reason) in [
        (closed.address().port(), "cannot connect"),
        (silent.port, "no whole answer"),
        (endless.port, "more than 262144 bytes"),
        (moved.port, "HTTP 307"),
    ] {
        let (providers, _) = providers(credentials(port));
        let error = providers.get("p").await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error} should hold {reason}");
    }
    assert_eq!((silent.seen().len(), moved.seen().len()), (1, 1));

    let mut config = AuthConfig::default();
    config.insert("p", credentials(silent.port), ProviderBinding::everywhere());
    let providers = Providers::new(&config, &limits(), EgressPolicy::default(), || START).unwrap();
    let error = providers.get("p").await.unwrap_err().to_string();
    assert!(error.contains("egress.allow"), "{error}");
    assert_eq!(silent.seen().len(), 1);
    let error = providers.get("q").await.unwrap_err().to_string();
    assert!(error.ends_with("did you mean `p`?"), "{error}");
}

/// A tool that calls an API with the token of `p`.
fn api_task(port: u16, providers: &Arc<Providers>) -> ToolTask {
    let execute = format!(
        "stateless_http: {{method: POST, url: \"http://127.0.0.1:{port}/\", \
         headers: {{Authorization: \"Bearer {{auth.p()}}\"}}}}"
    );
    let tokens: Arc<dyn TokenSource> = Arc::clone(providers) as Arc<dyn TokenSource>;
    let environment = environment().with_tokens(tokens);
    let runtimes = Runtimes::new(&limits(), loopback()).expect("the test is set up");
    ToolTask::new(tool(&execute), environment, runtimes, limits())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_renewed_once_for_all_calls() {
    let server = numbered(3600).await;
    let api = Server::start(|_, request| {
        if request.contains("Bearer token-0") {
            reply("401 Unauthorized", "", "token-0 is old")
        } else {
            reply("200 OK", "", format!("token-1 token-0 {SECRET}"))
        }
    })
    .await;
    let (providers, _) = providers(credentials(server.port));
    let task = api_task(api.port, &providers);
    for result in join_all((0..50).map(|_| act(&task, json!({})))).await {
        let outcome = result.unwrap();
        assert_eq!(outcome.value, json!("[redacted] [redacted] [redacted]"));
    }
    assert_eq!((server.seen().len(), api.seen().len()), (2, 100));
    act(&task, json!({})).await.unwrap();
    assert_eq!((server.seen().len(), api.seen().len()), (2, 101));
}

#[tokio::test]
async fn a_call_is_repeated_once_and_only_with_another_token() {
    let server = numbered(3600).await;
    let api = Server::start(|_, request| reply("401 Unauthorized", "", request)).await;
    let (renewing, _) = providers(credentials(server.port));
    let error = act(&api_task(api.port, &renewing), json!({}))
        .await
        .unwrap_err();
    assert_eq!(
        (error.failure, &error.detail["status"]),
        (ActionFailure::HttpStatus, &json!(401))
    );
    assert!(
        error.detail["body"]
            .as_str()
            .unwrap()
            .contains("Bearer [redacted]")
    );
    assert_eq!((server.seen().len(), api.seen().len()), (2, 2));

    let (fixed, _) = providers(ProviderConfig::Fixed(Sealed::new("fixed-token".to_owned())));
    let error = act(&api_task(api.port, &fixed), json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.detail["status"], 401);
    assert!(!error.detail["body"].to_string().contains("fixed-token"));
    assert_eq!(api.seen().len(), 3);
}

/// What passes by itself is told to the model; only what an operator must mend ends the task.
#[tokio::test]
async fn a_token_endpoint_that_fails_for_a_while_ends_no_task() {
    let refusals: [(&str, ActionFailure, bool); 5] = [
        ("500 Oops", ActionFailure::HttpStatus, true),
        ("503 Busy", ActionFailure::HttpStatus, true),
        ("429 Slowly", ActionFailure::HttpStatus, true),
        ("400 Bad", ActionFailure::Token, false),
        ("401 No", ActionFailure::Token, false),
    ];
    for (status, failure, recoverable) in refusals {
        let server = Server::start(move |_, _| reply(status, "", "{}")).await;
        let (providers, _) = providers(credentials(server.port));
        let error = act(&api_task(1, &providers), json!({})).await.unwrap_err();
        let found = (error.failure, error.is_recoverable());
        assert_eq!(found, (failure, recoverable), "{status}");
        assert!(error.message.contains("no token for `p`"), "{error}");
    }
    let silent = Server::start(|_, _| Reply::Silence).await;
    let (slow, _) = providers(credentials(silent.port));
    let error = act(&api_task(1, &slow), json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::Timeout, "{error}");
    let nobody = Vacant::new();
    let (away, _) = providers(credentials(nobody.address().port()));
    let error = act(&api_task(1, &away), json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::Unreachable, "{error}");
}
