//! GitHub Apps: keys in PEM, statements that verify, and the tokens of installations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proofhouse_tools::auth::{
    AuthConfig, GithubApp, KeyError, ProviderBinding, ProviderConfig, Providers, SigningKey,
};
use serde_json::{Value, json};

use crate::support::*;

const START: u64 = 1_800_000_000;

/// Providers with an app of the name `p`, and the clock they go by.
fn providers(app: GithubApp) -> (Providers, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(START));
    let tells = Arc::clone(&clock);
    let mut config = AuthConfig::default();
    config.insert(
        "p",
        ProviderConfig::GithubApp(app),
        ProviderBinding::everywhere(),
    );
    let now = move || tells.load(Ordering::SeqCst);
    let providers = Providers::new(&config, &limits(), loopback(), now);
    (providers.expect("the client is set up"), clock)
}

async fn token(providers: &Providers) -> String {
    let token = providers.get("p").await;
    token.expect("there is a token").into_exposed()
}

fn body(request: &str) -> &str {
    let (_, body) = request.split_once("\r\n\r\n").expect("a whole request");
    body
}

fn pem(name: &str) -> &'static str {
    match name {
        "pkcs1" => include_str!("keys/rsa_pkcs1.pem"),
        "pkcs8" => include_str!("keys/rsa_pkcs8.pem"),
        "1024" => include_str!("keys/rsa_1024.pem"),
        "sec1" => include_str!("keys/ec_sec1.pem"),
        _ => include_str!("keys/ec_pkcs8.pem"),
    }
}

fn decode(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("the test is set up"))
        .expect("the test is set up")
}

#[tokio::test]
async fn a_github_app_gets_the_token_of_its_installation() {
    let server = Server::start(|number, _| {
        let end = "2027-01-15T09:00:00Z"; // START and an hour
        let token = json!({"token": format!("ghs_{number}"), "expires_at": end});
        reply("201 Created", "", token.to_string())
    })
    .await;
    let folded = pem("pkcs8").trim().replace('\n', "\\n");
    for (number, text) in [pem("pkcs1"), pem("pkcs8"), &folded]
        .into_iter()
        .enumerate()
    {
        let (providers, clock) = providers(GithubApp {
            api_url: format!("http://127.0.0.1:{}/api/v3/", server.port)
                .parse()
                .unwrap(),
            app_id: "12345".to_owned(),
            installation_id: 678,
            key: SigningKey::rsa_from_pem(text).unwrap(),
            repositories: vec!["one".to_owned()],
            permissions: json!({"contents": "read"}).as_object().unwrap().clone(),
        });
        assert_eq!(token(&providers).await, format!("ghs_{}", 2 * number));
        clock.store(START + 3539, Ordering::SeqCst);
        token(&providers).await;
        clock.store(START + 3540, Ordering::SeqCst);
        assert_eq!(token(&providers).await, format!("ghs_{}", 2 * number + 1));

        let request = &server.seen()[2 * number];
        let path = "POST /api/v3/app/installations/678/access_tokens HTTP/1.1\r\n";
        assert!(request.starts_with(path), "{request}");
        assert_eq!(
            body(request),
            "{\"repositories\":[\"one\"],\"permissions\":{\"contents\":\"read\"}}"
        );
        let statement = request.split("authorization: Bearer ").nth(1).unwrap();
        let statement = statement.lines().next().unwrap();
        let (signed, signature) = statement.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        assert_eq!(decode(header), json!({"alg": "RS256", "typ": "JWT"}));
        assert_eq!(
            decode(claims),
            json!({"iat": START - 60, "exp": START + 540, "iss": "12345"})
        );
        let key = ring::signature::UnparsedPublicKey::new(
            &ring::signature::RSA_PKCS1_2048_8192_SHA256,
            include_bytes!("keys/rsa_public.der"),
        );
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(key.verify(signed.as_bytes(), &signature).is_ok());
        assert!(key.verify(b"something else", &signature).is_err());
    }
}

#[tokio::test]
async fn a_github_app_takes_no_for_an_answer() {
    for (status, answer, reason) in [
        (
            "401 Unauthorized",
            json!({"message": "A JSON web token could not be decoded"}),
            "HTTP 401: A JSON web token could not be decoded",
        ),
        (
            "201 Created",
            json!({"token": "t", "expires_at": "soon"}),
            "`expires_at`",
        ),
        (
            "201 Created",
            json!({"token": "t", "expires_at": 5}),
            "`expires_at`",
        ),
        (
            "201 Created",
            json!({"expires_at": "2027-01-15T09:00:00Z"}),
            "no token",
        ),
    ] {
        let server = Server::start(move |_, _| reply(status, "", answer.to_string())).await;
        let (providers, _) = providers(GithubApp {
            api_url: format!("http://127.0.0.1:{}", server.port).parse().unwrap(),
            app_id: "1".to_owned(),
            installation_id: 2,
            key: SigningKey::rsa_from_pem(pem("pkcs8")).unwrap(),
            repositories: Vec::new(),
            permissions: serde_json::Map::new(),
        });
        let error = providers.get("p").await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error} should hold {reason}");
    }
}

#[test]
fn what_is_no_rsa_key_is_refused() {
    let cut: String = pem("pkcs8").chars().take(400).collect();
    let swapped = pem("pkcs8").replacen("MII", "AAA", 1);
    let public = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n";
    let empty = "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n";
    let long = "x".repeat(1 << 20);
    for (text, not_pem) in [
        ("", true),
        ("ghp_not-a-key", true),
        (&*cut, true),
        (public, true),
        (&*long, true),
        (pem("sec1"), false),
        (pem("ec_pkcs8"), false),
        (pem("1024"), false),
        (&*swapped, false),
        (empty, false),
    ] {
        let error = SigningKey::rsa_from_pem(text).unwrap_err();
        assert_eq!(error == KeyError::NotPem, not_pem, "{error}");
        assert!(!error.to_string().contains("ghp_"));
    }
    assert_eq!(
        SigningKey::rsa_from_pem(pem("sec1")).unwrap_err(),
        KeyError::NotRsa
    );
    assert_eq!(
        SigningKey::rsa_from_pem(pem("ec_pkcs8")).unwrap_err(),
        KeyError::NotRsa
    );
    let key = SigningKey::rsa_from_pem(pem("pkcs1")).unwrap();
    assert_eq!(format!("{key:?}"), "SigningKey(2048 bits)");
}
