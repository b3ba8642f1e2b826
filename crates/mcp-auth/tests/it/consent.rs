//! A person in a browser: sent to the authorization server, and back to a port of this machine.

use std::sync::Arc;

use proofhouse_mcp_auth::{AuthorizationConfig, Authorizer, Consent as _, LoopbackConsent};
use proofhouse_wire::{Bytes, HeaderMap, Method};
use tokio::sync::mpsc;
use url::Url;

use crate::support::{Behaviour, World, client};

async fn get(url: &str) -> (u16, Option<String>) {
    let client = client();
    let sent = client.send(Method::GET, url, HeaderMap::new(), Bytes::new());
    let response = sent.await.unwrap();
    let location = response.header("location").map(str::to_owned);
    (response.status.as_u16(), location)
}

#[tokio::test]
async fn a_browser_comes_back_with_the_code() {
    let world = World::start(Behaviour::default());
    let (told, mut addresses) = mpsc::unbounded_channel();
    let consent = LoopbackConsent::listen(0, move |url: &Url| {
        let _ = told.send(url.clone());
    });
    let consent = Arc::new(consent.unwrap());
    let home = consent.redirect_uri();
    let config = AuthorizationConfig::default();
    let authorizer = Authorizer::new(client(), &world.mcp(), config, consent, world.clock());
    let browser = tokio::spawn(async move {
        let address = addresses.recv().await.unwrap();
        // Browsers ask for other things as well; those are not the way back.
        let icon = home.replace("/callback", "/favicon.ico");
        assert_eq!(get(&icon).await.0, 404);
        assert_eq!(get(&home).await.0, 404);
        let (status, back) = get(address.as_str()).await;
        assert_eq!(status, 302);
        let back = back.unwrap();
        assert!(back.starts_with(&home), "{back}");
        assert_eq!(get(&back).await.0, 200);
    });
    assert_eq!(world.call(&authorizer).await, Ok(200));
    browser.await.unwrap();
}

#[tokio::test]
async fn an_answer_that_was_not_asked_for_is_refused() {
    let world = World::start(Behaviour::default());
    let (told, mut addresses) = mpsc::unbounded_channel();
    let consent = LoopbackConsent::listen(0, move |url: &Url| {
        let _ = told.send(url.clone());
    });
    let consent = Arc::new(consent.unwrap());
    let home = consent.redirect_uri();
    let config = AuthorizationConfig::default();
    let authorizer = Authorizer::new(client(), &world.mcp(), config, consent, world.clock());
    let attacker = tokio::spawn(async move {
        addresses.recv().await.unwrap();
        get(&format!("{home}?code=code-of-the-attacker&state=guessed")).await
    });
    let error = world.call(&authorizer).await.unwrap_err();
    assert!(error.contains("`state`"), "{error}");
    assert_eq!(attacker.await.unwrap().0, 200);
    assert!(world.forms("/one/token").is_empty());
}
