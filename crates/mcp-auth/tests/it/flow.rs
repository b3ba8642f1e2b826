//! The way from a refusal to a token: discovery, registration, consent, and what is done about refusals after that.

use std::sync::Arc;

use proofhouse_mcp_auth::{
    AuthorizationConfig, AuthorizationError, Authorizer, AutomaticConsent, NoConsent,
};
use proofhouse_wire::client::Client;
use proofhouse_wire::{EgressPolicy, HeaderMap, HeaderValue, WireLimits};

use crate::support::{Behaviour, World, client, text};

#[tokio::test]
async fn a_refusal_leads_to_a_token_for_this_server() {
    let world = World::start(Behaviour::default());
    let authorizer = world.authorizer(AuthorizationConfig::default());
    assert_eq!(authorizer.token().await, Ok(None));
    assert_eq!(world.call(&authorizer).await, Ok(200));
    let asked = &world.forms("/one/authorize")[0];
    let mcp = world.mcp().to_string();
    assert_eq!(asked["resource"], mcp);
    assert_eq!(asked["scope"], "basic");
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["response_type"], "code");
    let exchanged = &world.forms("/one/token")[0];
    assert_eq!(exchanged["resource"], mcp);
    assert_eq!(exchanged["client_id"], "client-of-one");
    assert_eq!(exchanged["redirect_uri"], asked["redirect_uri"]);
    // The next call has its token already.
    assert_eq!(world.call(&authorizer).await, Ok(200));
    assert_eq!(world.forms("/one/authorize").len(), 1);
    assert_eq!(world.forms("/one/register").len(), 1);
}

#[tokio::test]
async fn many_calls_at_once_get_one_token() {
    let world = Arc::new(World::start(Behaviour::default()));
    let authorizer = world.authorizer(AuthorizationConfig::default());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (world, authorizer) = (Arc::clone(&world), authorizer.clone());
        calls.spawn(async move { world.call(&authorizer).await });
    }
    while let Some(called) = calls.join_next().await {
        assert_eq!(called.unwrap(), Ok(200));
    }
    assert_eq!(world.forms("/one/authorize").len(), 1);
}

#[tokio::test]
async fn more_scopes_are_asked_for_beside_those_that_were() {
    let world = World::start(Behaviour::default());
    let authorizer = world.authorizer(AuthorizationConfig::default());
    assert_eq!(world.call(&authorizer).await, Ok(200));
    world.set(|behaviour| behaviour.insufficient = Some("write"));
    // The server never has enough: it is asked once for what is new, and then believed.
    assert_eq!(world.call(&authorizer).await, Ok(403));
    let asked = world.forms("/one/authorize");
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1]["scope"], "basic write");
    assert_eq!(world.call(&authorizer).await, Ok(403));
    assert_eq!(world.forms("/one/authorize").len(), 2);
    world.set(|behaviour| behaviour.insufficient = None);
    assert_eq!(world.call(&authorizer).await, Ok(200));
}

#[tokio::test]
async fn a_server_that_takes_no_token_is_not_asked_for_ever() {
    let world = World::start(Behaviour {
        accepts: "nothing",
        refresh_tokens: false,
        ..Behaviour::default()
    });
    let authorizer = world.authorizer(AuthorizationConfig::default());
    for _ in 0..3 {
        assert_eq!(world.call(&authorizer).await, Ok(401));
    }
    assert_eq!(world.forms("/one/authorize").len(), 1);
    // Later it may have changed its mind.
    world.pass(61);
    assert_eq!(world.call(&authorizer).await, Ok(401));
    assert_eq!(world.forms("/one/authorize").len(), 2);
}

#[tokio::test]
async fn credentials_of_one_authorization_server_are_not_shown_to_another() {
    let world = World::start(Behaviour {
        refresh_tokens: false,
        ..Behaviour::default()
    });
    let authorizer = world.authorizer(AuthorizationConfig::default());
    assert_eq!(world.call(&authorizer).await, Ok(200));
    world.set(|behaviour| {
        behaviour.issuer = "two";
        behaviour.accepts = "two-";
    });
    assert_eq!(world.call(&authorizer).await, Ok(200));
    assert_eq!(world.forms("/two/register").len(), 1);
    let seen = world.server.requests();
    let of_two = seen.iter().filter(|seen| seen.path.starts_with("/two"));
    for request in of_two {
        let body = String::from_utf8_lossy(&request.body);
        assert!(!format!("{} {body}", request.path).contains("client-of-one"));
    }
    // Whoever insists on the first gets an error that says so.
    let insisting = world.authorizer(AuthorizationConfig {
        issuer: Some(format!("http://{}/one", world.server.address())),
        ..AuthorizationConfig::default()
    });
    let error = world.call(&insisting).await.unwrap_err();
    assert!(error.contains("configured `issuer`"), "{error}");
}

/// Whatever an MCP server names is under the egress policy: nothing is sent where tools may not go.
#[tokio::test]
async fn discovery_keeps_to_the_egress_policy() {
    let world = World::start(Behaviour::default());
    let guarded =
        Client::guarded(WireLimits::default(), Arc::new(EgressPolicy::default())).unwrap();
    let consent = Arc::new(AutomaticConsent::new(client()));
    let config = AuthorizationConfig::default();
    let authorizer = Authorizer::new(guarded, &world.mcp(), config, consent, world.clock());
    let mut headers = HeaderMap::new();
    let metadata = format!(
        "Bearer resource_metadata=\"http://{}/.well-known/oauth-protected-resource/mcp\"",
        world.server.address()
    );
    headers.insert(
        "www-authenticate",
        HeaderValue::from_str(&metadata).unwrap(),
    );
    let error = authorizer
        .challenged(401, &headers, None)
        .await
        .unwrap_err();
    assert!(
        matches!(error, AuthorizationError::EgressDenied { .. }),
        "{error:?}"
    );
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn without_a_person_nothing_is_registered() {
    let world = World::start(Behaviour::default());
    let config = AuthorizationConfig::default();
    let authorizer = Authorizer::new(
        client(),
        &world.mcp(),
        config,
        Arc::new(NoConsent),
        world.clock(),
    );
    let error = world.call(&authorizer).await.unwrap_err();
    assert!(error.contains("proofhouse tool login"), "{error}");
    assert!(world.forms("/one/register").is_empty());
}

#[tokio::test]
async fn what_a_server_says_is_told_without_secrets() {
    let world = World::start(Behaviour {
        auth_methods: serde_json::json!(["client_secret_post"]),
        refuses: Some(serde_json::json!({
            "error": "invalid_client", "error_description": "no client has\r\nthe secret hunter2-hunter2",
        })),
        registers: false,
        ..Behaviour::default()
    });
    let authorizer = world.authorizer(AuthorizationConfig {
        client_id: Some("me".to_owned()),
        client_secret: Some(proofhouse_mcp_auth::SecretText::new("hunter2-hunter2")),
        ..AuthorizationConfig::default()
    });
    let error = world.call(&authorizer).await.unwrap_err();
    assert!(error.contains("invalid_client, no client has"), "{error}");
    assert!(
        !error.contains("hunter2") && !error.contains('\n'),
        "{error}"
    );
    assert!(!format!("{authorizer:?}").contains("hunter2"));
    assert_eq!(text(authorizer.token().await.unwrap()), None);
}
