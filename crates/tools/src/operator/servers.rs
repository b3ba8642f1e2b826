//! The `mcp` block: what the operator adds to the environment of servers that are commands, and how tools are authorized
//! with those at URLs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proofhouse_manifest::interpolate::Sealed;
use proofhouse_mcp_auth::{
    AuthorizationConfig, AuthorizationGrant, CrossAppAccess, SecretText, SigningKey,
};
use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};

use super::fields::{MCP, MCP_OAUTH};
use super::provider::Block;
use super::reader::OperatorReader;
use super::variables::is_name;

/// How tools are authorized with their MCP servers.
#[derive(Debug, Clone, Default)]
pub struct McpOauthConfig {
    /// By namespace and name of the tool.
    pub tools: BTreeMap<String, McpOauthTool>,
    /// Where tokens are kept, sealed.
    pub tokens: Option<PathBuf>,
    /// The file with the key that they are sealed with.
    pub token_key_file: Option<PathBuf>,
}

/// How one tool is.
#[derive(Debug, Clone)]
pub struct McpOauthTool {
    /// Who it is, and how it gets tokens.
    pub authorization: AuthorizationConfig,
    /// The authorization server asks nobody.
    pub is_automatic: bool,
    /// The port that people are sent back to.
    pub redirect_port: u16,
}

/// Reads the block. The variables are handed on as they are and not treated as secrets: those come from settings.
pub(super) fn read<'s>(
    node: NodeRef<'s>,
    reader: &mut OperatorReader<'s, '_>,
) -> (Vec<(String, String)>, McpOauthConfig) {
    let mut variables = Vec::new();
    let mut oauth = McpOauthConfig::default();
    let Some(mut fields) = reader.fields(node, &MCP) else {
        return (variables, oauth);
    };
    fields.read("oauth", |reader, tools| {
        if !reader.is_mapping(tools) {
            return None;
        }
        for (tool, of) in tools.entries().into_iter().flatten() {
            reader.within(PathSegment::Key(tool), |reader| {
                let is_tool = tool
                    .split_once('/')
                    .is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
                if !is_tool {
                    let message = "this does not say which tool it is for".to_owned();
                    let help = "write `NAMESPACE/TOOL: {…}`".to_owned();
                    reader.error("OC-012", message, Some(help));
                } else if let Some(read) = read_tool(of, reader) {
                    oauth.tools.insert(tool.to_owned(), read);
                }
            });
        }
        Some(())
    });
    oauth.tokens = fields.read("tokens", |reader, node| {
        reader.text(node).map(PathBuf::from)
    });
    oauth.token_key_file = fields.read("token_key_file", |reader, node| {
        reader.text(node).map(PathBuf::from)
    });
    fields.read("environment", |reader, environment| {
        if !reader.is_mapping(environment) {
            return None;
        }
        for (name, value) in environment.entries().into_iter().flatten() {
            reader.within(PathSegment::Key(name), |reader| {
                if !is_name(name) {
                    let message = "this is no name of a variable".to_owned();
                    reader.error("OC-005", message, None);
                } else if let Some(value) = reader.text_or_number(value) {
                    if value.contains('\0') {
                        let message = "a variable cannot hold this character".to_owned();
                        reader.error("OC-005", message, None);
                    } else {
                        variables.push((name.to_owned(), value));
                    }
                }
            });
        }
        Some(())
    });
    (variables, oauth)
}

fn read_tool<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<McpOauthTool> {
    let before = reader.findings();
    let mut block = Block::new(reader.fields(node, &MCP_OAUTH)?);
    let mut config = AuthorizationConfig {
        client_id: block.text("client_id"),
        client_secret: block.secret("client_secret").map(hidden),
        key: block.key("private_key", SigningKey::from_pem),
        client_metadata_url: block.url("client_metadata_url"),
        issuer: block.text("issuer"),
        scopes: block.words("scope"),
        ..AuthorizationConfig::default()
    };
    if let Some(name) = block.text("client_name") {
        config.client_name = name;
    }
    let grant = block.word("grant");
    let consent = block.word("consent");
    let redirect_port = block.port("redirect_port");
    let assertion = block.secret("assertion").map(hidden);
    let exchange = block.url("idp_token_endpoint");
    let idp_client = block.text("idp_client_id");
    let id_token = block.secret("id_token").map(hidden);
    let lacks = |what: &str| format!("this grant needs {what}");
    let reader = block.into_reader();
    config.grant = match grant {
        None | Some("authorization_code") => AuthorizationGrant::AuthorizationCode,
        Some("client_credentials") => {
            if config.client_id.is_none() {
                reader.error("OC-004", lacks("a `client_id`"), None);
            } else if config.client_secret.is_none() && config.key.is_none() {
                reader.error(
                    "OC-004",
                    lacks("a `client_secret` or a `private_key`"),
                    None,
                );
            }
            AuthorizationGrant::ClientCredentials
        }
        Some("jwt_bearer") => match assertion {
            Some(assertion) => AuthorizationGrant::JwtBearer { assertion },
            None => {
                reader.error("OC-004", lacks("an `assertion`"), None);
                return None;
            }
        },
        Some(_) => match (exchange, idp_client, id_token) {
            (Some(token_endpoint), Some(client_id), Some(id_token)) => {
                AuthorizationGrant::CrossApp(CrossAppAccess {
                    token_endpoint,
                    client_id,
                    id_token,
                })
            }
            _ => {
                let what = "`idp_token_endpoint`, `idp_client_id` and `id_token`";
                reader.error("OC-004", lacks(what), None);
                return None;
            }
        },
    };
    // What is left out because of an error must not be replaced by a guess.
    (reader.findings() == before).then_some(McpOauthTool {
        authorization: config,
        is_automatic: consent == Some("automatic"),
        redirect_port: redirect_port.unwrap_or_default(),
    })
}

fn hidden(secret: Sealed<String>) -> SecretText {
    SecretText::new(secret.into_exposed())
}
