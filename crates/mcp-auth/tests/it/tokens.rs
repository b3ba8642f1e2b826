//! Tokens over time: renewed, kept sealed, and forgotten.

use std::path::Path;
use std::sync::Arc;

use proofhouse_mcp_auth::{AuthorizationConfig, Authorizer, TokenVault, VaultError};

use crate::support::{Behaviour, World, text};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHgA=";

fn kept(world: &World, directory: &Path, key: &str, owner: &str) -> Authorizer {
    let vault = Arc::new(TokenVault::new(directory, key).unwrap());
    let authorizer = world.authorizer(AuthorizationConfig::default());
    authorizer.kept_in(vault, owner)
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let world = World::start(Behaviour {
        expires_in: 100,
        ..Behaviour::default()
    });
    let authorizer = world.authorizer(AuthorizationConfig::default());
    assert_eq!(world.call(&authorizer).await, Ok(200));
    world.pass(69);
    assert_eq!(
        text(authorizer.token().await.unwrap()).as_deref(),
        Some("one-token-1")
    );
    world.pass(1);
    assert_eq!(
        text(authorizer.token().await.unwrap()).as_deref(),
        Some("one-token-2")
    );
    let renewed = &world.forms("/one/token")[1];
    assert_eq!(renewed["grant_type"], "refresh_token");
    assert_eq!(renewed["refresh_token"], "one-refresh-1");
    assert_eq!(renewed["resource"], world.mcp().to_string());
    // The next refresh token is used from then on.
    world.pass(100);
    assert_eq!(
        text(authorizer.token().await.unwrap()).as_deref(),
        Some("one-token-3")
    );
    assert_eq!(
        world.forms("/one/token")[2]["refresh_token"],
        "one-refresh-2"
    );
    assert_eq!(world.forms("/one/authorize").len(), 1);
}

#[tokio::test]
async fn a_refresh_token_that_is_refused_leads_to_a_new_consent() {
    let world = World::start(Behaviour {
        expires_in: 100,
        ..Behaviour::default()
    });
    let authorizer = world.authorizer(AuthorizationConfig::default());
    assert_eq!(world.call(&authorizer).await, Ok(200));
    world.set(|behaviour| behaviour.refuses = Some(serde_json::json!({"error": "invalid_grant"})));
    world.pass(200);
    assert_eq!(text(authorizer.token().await.unwrap()), None);
    world.set(|behaviour| behaviour.refuses = None);
    assert_eq!(world.call(&authorizer).await, Ok(200));
    assert_eq!(world.forms("/one/authorize").len(), 2);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "files of the test")]
async fn tokens_outlive_the_process_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::start(Behaviour::default());
    let first = kept(&world, directory.path(), KEY, "demo/tracker");
    assert_eq!(world.call(&first).await, Ok(200));
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("one-token") && !text.contains("one-refresh"),
            "{text}"
        );
        assert!(!path.display().to_string().contains("tracker"));
    }
    let again = kept(&world, directory.path(), KEY, "demo/tracker");
    assert_eq!(
        text(again.token().await.unwrap()).as_deref(),
        Some("one-token-1")
    );
    assert_eq!(world.call(&again).await, Ok(200));
    assert_eq!(world.forms("/one/authorize").len(), 1);
    // Another tool has no part in it, and another key opens nothing.
    let other = kept(&world, directory.path(), KEY, "demo/other");
    assert_eq!(text(other.token().await.unwrap()), None);
    let locked = kept(&world, directory.path(), OTHER_KEY, "demo/tracker");
    let error = locked.token().await.unwrap_err();
    assert!(
        matches!(
            error,
            proofhouse_mcp_auth::AuthorizationError::Vault(VaultError::Sealed { .. })
        ),
        "{error:?}"
    );
    assert_eq!(again.log_out().await, Ok(true));
    let empty = kept(&world, directory.path(), KEY, "demo/tracker");
    assert_eq!(text(empty.token().await.unwrap()), None);
}

/// Nobody has to agree again because a server was busy once.
#[tokio::test]
async fn a_busy_token_endpoint_costs_no_consent() {
    for status in [429, 500, 503] {
        let world = World::start(Behaviour {
            expires_in: 100,
            ..Behaviour::default()
        });
        let authorizer = world.authorizer(AuthorizationConfig::default());
        assert_eq!(world.call(&authorizer).await, Ok(200));
        let busy = serde_json::json!({"error": "busy", "status": status});
        world.set(|behaviour| {
            behaviour.refuses = Some(busy);
            behaviour.accepts = "one-token-2";
        });
        world.pass(200);
        let said = world.call(&authorizer).await.unwrap_err();
        assert!(said.contains(&status.to_string()), "{said}");
        world.set(|behaviour| behaviour.refuses = None);
        assert_eq!(world.call(&authorizer).await, Ok(200));
        assert_eq!(world.forms("/one/authorize").len(), 1, "{status}");
    }
}
