//! Grants without a person, and how clients show who they are.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proofhouse_mcp_auth::{
    AuthorizationConfig, AuthorizationGrant, CrossAppAccess, SecretText, SigningKey,
};
use serde_json::{Value, json};

use crate::support::{Behaviour, World, basic};

fn world(method: &str) -> World {
    World::start(Behaviour {
        auth_methods: json!([method]),
        registers: false,
        refresh_tokens: false,
        ..Behaviour::default()
    })
}

fn secret() -> AuthorizationConfig {
    AuthorizationConfig {
        client_id: Some("me: and you".to_owned()),
        client_secret: Some(SecretText::new("s/e%cret")),
        grant: AuthorizationGrant::ClientCredentials,
        ..AuthorizationConfig::default()
    }
}

#[tokio::test]
async fn client_credentials_with_a_secret() {
    let world_basic = world("client_secret_basic");
    let authorizer = world_basic.authorizer(secret());
    assert_eq!(world_basic.call(&authorizer).await, Ok(200));
    let form = &world_basic.forms("/one/token")[0];
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(form["scope"], "basic");
    assert_eq!(form["resource"], world_basic.mcp().to_string());
    assert!(!form.contains_key("client_id"));
    let requests = world_basic.server.requests();
    let asked = requests
        .iter()
        .find(|seen| seen.path == "/one/token")
        .unwrap();
    let header = asked.header("authorization").unwrap();
    assert_eq!(basic(header), "me%3A+and+you:s%2Fe%25cret");

    let world_post = world("client_secret_post");
    let authorizer = world_post.authorizer(secret());
    assert_eq!(world_post.call(&authorizer).await, Ok(200));
    let form = &world_post.forms("/one/token")[0];
    assert_eq!(form["client_id"], "me: and you");
    assert_eq!(form["client_secret"], "s/e%cret");
}

#[tokio::test]
async fn client_credentials_with_a_key() {
    let world = world("private_key_jwt");
    let made = rcgen::KeyPair::generate().unwrap();
    let authorizer = world.authorizer(AuthorizationConfig {
        client_secret: None,
        key: Some(SigningKey::from_pem(&made.serialize_pem()).unwrap()),
        ..secret()
    });
    assert_eq!(world.call(&authorizer).await, Ok(200));
    let form = &world.forms("/one/token")[0];
    assert_eq!(
        form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let mut parts = form["client_assertion"].split('.');
    let mut part = || -> Value {
        let bytes = URL_SAFE_NO_PAD.decode(parts.next().unwrap()).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    assert_eq!(part()["alg"], "ES256");
    let claims = part();
    // For this authorization server, and for nobody that it might be told to name.
    assert_eq!(
        claims["aud"],
        format!("http://{}/one", world.server.address())
    );
    assert_eq!(claims["iss"], "me: and you");
    assert_eq!(claims["exp"], 1_000_300);
    assert!(claims["jti"].as_str().unwrap().len() > 20);
}

#[tokio::test]
async fn a_way_that_is_not_configured_is_named() {
    let world = world("private_key_jwt");
    let error = world.call(&world.authorizer(secret())).await.unwrap_err();
    assert!(error.contains("private_key_jwt"), "{error}");
    assert!(world.forms("/one/token").is_empty());
}

#[tokio::test]
async fn the_identity_provider_of_a_company_agrees_for_its_people() {
    let world = world("client_secret_basic");
    let idp = format!("http://{}/idp/token", world.server.address());
    let authorizer = world.authorizer(AuthorizationConfig {
        grant: AuthorizationGrant::CrossApp(CrossAppAccess {
            token_endpoint: idp.parse().unwrap(),
            client_id: "idp-client".to_owned(),
            id_token: SecretText::new("id-token"),
        }),
        ..secret()
    });
    assert_eq!(world.call(&authorizer).await, Ok(200));
    let exchanged = &world.forms("/idp/token")[0];
    assert_eq!(exchanged["subject_token"], "id-token");
    assert_eq!(
        exchanged["audience"],
        format!("http://{}/one", world.server.address())
    );
    assert_eq!(exchanged["resource"], world.mcp().to_string());
    assert_eq!(
        exchanged["requested_token_type"],
        "urn:ietf:params:oauth:token-type:id-jag"
    );
    let form = &world.forms("/one/token")[0];
    assert_eq!(
        form["grant_type"],
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    assert_eq!(form["assertion"], "id-jag");
}
