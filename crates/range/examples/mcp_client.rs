//! Runs a document with one `mcp_client` actor against a URL, for the conformance suite of MCP.
//!
//! `mcp_client DIRECTORY URL`: the document is `DIRECTORY/<scenario>.yaml`, where the suite names
//! the scenario in `MCP_CONFORMANCE_SCENARIO`; all that begin with `auth/` have one. What the client knows of itself
//! is in `MCP_CONFORMANCE_CONTEXT`.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_mcp_auth::{
    AuthorizationConfig, AuthorizationGrant, AutomaticConsent, CrossAppAccess, SecretText,
    SigningKey,
};
use proofhouse_range::{ActorEndpoint, ClientAuthorization, RunHandle, RunOptions, run};
use proofhouse_wire::client::Client;
use proofhouse_wire::{Url, WireLimits};
use serde_json::Value;

#[tokio::main]
async fn main() -> ExitCode {
    match play().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            #[expect(clippy::print_stderr, reason = "a program that people run")]
            {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn play() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: mcp_client DIRECTORY URL".to_owned());
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "this is how the suite names the scenario"
    )]
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").map_err(|error| error.to_string())?;
    let of_auth = scenario.starts_with("auth/");
    let name = if of_auth { "auth" } else { &scenario };
    let path = format!("{directory}/{name}.yaml");
    #[expect(
        clippy::disallowed_methods,
        reason = "our own documents, of a few lines"
    )]
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let document = proofhouse_oatf::load(&text)
        .map_err(|errors| format!("{path}: {errors:?}"))?
        .document;
    let authorization = if of_auth {
        Some(authorization(&scenario)?)
    } else {
        None
    };
    let options = RunOptions {
        authorization,
        endpoints: HashMap::from([("default".to_owned(), ActorEndpoint::Url(url))]),
        grace: Duration::ZERO,
        max_session: Duration::from_secs(20),
        ..RunOptions::default()
    };
    let report = run(&document, options, &RunHandle::default())
        .await
        .map_err(|error| error.to_string())?;
    #[expect(clippy::print_stderr, reason = "a program that people run")]
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    match report.errors.first() {
        Some(error) => Err(error.to_string()),
        None => Ok(()),
    }
}

/// Who the client is, as the scenario has it. The authorization servers of the suite ask nobody.
fn authorization(scenario: &str) -> Result<ClientAuthorization, String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is how the suite tells what the client knows"
    )]
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context).map_err(|error| error.to_string())?;
    let text = |key: &str| context[key].as_str();
    let secret = |key: &str| text(key).map(SecretText::new);
    let needed = |key: &str| secret(key).ok_or_else(|| format!("the context has no `{key}`"));
    let url = |text: &str| Url::parse(text).map_err(|error| error.to_string());
    let grant = match scenario {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => {
            AuthorizationGrant::ClientCredentials
        }
        "auth/wif-jwt-bearer" => AuthorizationGrant::JwtBearer {
            assertion: needed("valid_jwt")?,
        },
        "auth/enterprise-managed-authorization" => AuthorizationGrant::CrossApp(CrossAppAccess {
            token_endpoint: url(text("idp_token_endpoint").unwrap_or_default())?,
            client_id: text("idp_client_id").unwrap_or_default().to_owned(),
            id_token: needed("idp_id_token")?,
        }),
        _ => AuthorizationGrant::AuthorizationCode,
    };
    let key = text("private_key_pem").map(SigningKey::from_pem);
    let client = Client::new(WireLimits::default()).map_err(|error| error.to_string())?;
    Ok(ClientAuthorization {
        config: AuthorizationConfig {
            client_id: text("client_id").map(str::to_owned),
            client_secret: secret("client_secret"),
            key: key.transpose().map_err(|error| error.to_string())?,
            client_metadata_url: Some(url(CLIENT_METADATA)?),
            grant,
            ..AuthorizationConfig::default()
        },
        consent: Arc::new(AutomaticConsent::new(client)),
    })
}

/// The document that the suite takes for the id of a client.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
