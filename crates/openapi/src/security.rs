//! Security schemes: which credentials an operation wants, and where the operator has put them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofhouse_wire::HeaderName;

use crate::description::{OpenApiDescription, Operation};
use crate::error::CallError;
use crate::tree::Id;
use proofhouse_manifest::interpolate::{Sealed, Secrets, Template, TemplateScope};

/// How many alternatives, and schemes in one of them, are looked at.
const MAX_ALTERNATIVES: usize = 20;

/// How long the name of a scheme may be.
const MAX_NAME: usize = 200;

/// Where a credential goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialLocation {
    /// A header.
    Header(HeaderName),
    /// A parameter of the query.
    Query(String),
    /// A cookie.
    Cookie(String),
}

/// A credential that goes with the requests of an operation.
#[derive(Debug, Clone)]
pub struct OperationCredential {
    /// Where it goes.
    pub place: CredentialLocation,
    /// What stands before it, such as `Bearer `.
    pub(crate) prefix: &'static str,
    /// What the manifest grants.
    pub value: Template,
}

impl OperationCredential {
    /// What is sent, and notes what must not be shown of it.
    ///
    /// # Errors
    ///
    /// Returns an error when what the manifest grants has no value.
    pub fn render(
        &self,
        scope: &TemplateScope,
        secrets: &mut Secrets,
    ) -> Result<Sealed<String>, CallError> {
        let mut value = scope.text(&self.value)?.into_exposed();
        secrets.add(&value);
        if self.prefix == BASIC {
            if let Some((_, password)) = value.split_once(':') {
                secrets.add(password);
            }
            value = STANDARD.encode(&value);
            secrets.add(&value);
        }
        Ok(Sealed::new(format!("{}{value}", self.prefix)))
    }
}

const BASIC: &str = "Basic ";

/// What the manifest offers.
#[derive(Debug)]
pub struct Offered<'o> {
    /// What satisfies schemes, by their names. A description gets nothing else.
    pub credentials: &'o [(String, Template)],
    /// Headers that the manifest sends anyway.
    pub headers: &'o [HeaderName],
}

/// What has to be configured before a scheme has its credential.
#[derive(Debug, thiserror::Error)]
enum MissingCredential {
    #[error("nothing: the name of a scheme is too long")]
    LongName,
    #[error("nothing: the description does not define the scheme `{0}`")]
    UndefinedScheme(String),
    #[error("nothing: a scheme of the description does not say where its key goes")]
    NoKeyPlace,
    #[error("a header of the manifest: the scheme `{0}` is of a kind that is not supported")]
    UnsupportedScheme(String),
    #[error(
        "`openapi.credentials.{0}` in the manifest, such as \"{{settings.name}}\" or \"{{auth.name()}}\""
    )]
    NotGranted(String),
}

/// The credentials of an operation: those of the first alternative that the manifest's grants satisfy.
///
/// # Errors
///
/// Returns an error that says what has to be granted.
pub fn credentials(
    description: &OpenApiDescription,
    operation: &Operation,
    offered: &Offered<'_>,
) -> Result<Vec<OperationCredential>, CallError> {
    let tree = &description.tree;
    let own = tree.get(operation.node, "security");
    let whole = tree.root().and_then(|root| tree.get(root, "security"));
    let Some(alternatives) = own.or(whole) else {
        return Ok(Vec::new());
    };
    let mut optional = tree.items(alternatives).len() == 0;
    let mut wanted: Vec<String> = Vec::new();
    for alternative in tree.items(alternatives).take(MAX_ALTERNATIVES) {
        let schemes = tree.entries(alternative).map(|(name, _)| name);
        let schemes: Vec<&str> = schemes.take(MAX_ALTERNATIVES).collect();
        if schemes.is_empty() {
            optional = true;
            continue;
        }
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for scheme in schemes {
            match credential(description, scheme, offered) {
                Ok(credential) => found.extend(credential),
                Err(error) => missing.push(error.to_string()),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        wanted.push(missing.join(" and "));
    }
    if optional {
        return Ok(Vec::new());
    }
    Err(CallError::Setting(format!(
        "`{}` needs credentials; configure {}",
        operation.name,
        wanted.join("; or ")
    )))
}

/// The credential of one scheme, nothing if a header of the manifest is it, or what to configure.
fn credential(
    description: &OpenApiDescription,
    name: &str,
    offered: &Offered<'_>,
) -> Result<Option<OperationCredential>, MissingCredential> {
    if name.len() > MAX_NAME {
        return Err(MissingCredential::LongName);
    }
    let tree = &description.tree;
    let schemes = tree
        .root()
        .and_then(|root| tree.at(root, &["components", "securitySchemes"]));
    let scheme = schemes.and_then(|schemes| tree.get(schemes, name));
    let Some(scheme) = scheme.and_then(|scheme| description.resolve(scheme).ok()) else {
        return Err(MissingCredential::UndefinedScheme(name.to_owned()));
    };
    let authorization = || CredentialLocation::Header(HeaderName::from_static("authorization"));
    let http = tree.text_at(scheme, "scheme").unwrap_or_default();
    let (place, prefix) = match tree.text_at(scheme, "type").unwrap_or_default() {
        "apiKey" => (key_place(description, scheme)?, ""),
        "oauth2" | "openIdConnect" => (authorization(), "Bearer "),
        "http" if http.eq_ignore_ascii_case("bearer") => (authorization(), "Bearer "),
        "http" if http.eq_ignore_ascii_case("basic") => (authorization(), BASIC),
        _ => (authorization(), "?"),
    };
    if let CredentialLocation::Header(header) = &place
        && offered.headers.contains(header)
    {
        return Ok(None);
    }
    if prefix == "?" {
        return Err(MissingCredential::UnsupportedScheme(name.to_owned()));
    }
    let mut granted = offered.credentials.iter();
    match granted.find(|(scheme, _)| scheme == name) {
        None => Err(MissingCredential::NotGranted(name.to_owned())),
        Some((_, value)) => Ok(Some(OperationCredential {
            place,
            prefix,
            value: value.clone(),
        })),
    }
}

fn key_place(
    description: &OpenApiDescription,
    scheme: Id,
) -> Result<CredentialLocation, MissingCredential> {
    let tree = &description.tree;
    let name = tree.text_at(scheme, "name").unwrap_or_default();
    match tree.text_at(scheme, "in") {
        Some("header") => HeaderName::from_bytes(name.as_bytes())
            .map(CredentialLocation::Header)
            .map_err(|_| MissingCredential::NoKeyPlace),
        Some("query") if !name.is_empty() => Ok(CredentialLocation::Query(name.to_owned())),
        Some("cookie") if is_cookie_name(name) => Ok(CredentialLocation::Cookie(name.to_owned())),
        _ => Err(MissingCredential::NoKeyPlace),
    }
}

/// Whether a cookie can have this name: a token of HTTP, which is what a header's name is too.
pub(crate) fn is_cookie_name(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use serde_json::{Value, json};

    fn found(security: &Value, granted: &Value) -> Result<Vec<String>, String> {
        let value = json!({
            "openapi": "3.1.0",
            "paths": {"/a": {"get": {"security": security}}},
            "security": [{"never": []}],
            "components": {"securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "query": {"type": "apiKey", "in": "query", "name": "k"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "c"},
                "basic": {"type": "http", "scheme": "Basic"},
                "bearer": {"$ref": "#/components/securitySchemes/bearer2"},
                "bearer2": {"type": "http", "scheme": "bearer"},
                "oauth": {"type": "oauth2", "flows": {}},
                "oidc": {"type": "openIdConnect"},
                "tls": {"type": "mutualTLS"},
                "sent": {"type": "apiKey", "in": "header", "name": "X-Sent"},
                "broken": {"type": "apiKey", "in": "header", "name": "a b"},
            }},
        });
        let description = OpenApiDescription::new(Tree::from_value(&value), None).unwrap();
        let granted = granted.as_object().unwrap().iter();
        let granted: Vec<(String, Template)> = granted
            .map(|(scheme, text)| (scheme.clone(), Template::parse(text.as_str().unwrap())))
            .collect();
        let offered = Offered {
            credentials: &granted,
            headers: &[HeaderName::from_static("x-sent")],
        };
        let operation = description.operation("get_a").unwrap();
        let found = credentials(&description, operation, &offered);
        found.map_err(|error| error.to_string()).map(|found| {
            let mut scope = TemplateScope::default();
            scope.set_token("hub", "T".to_owned());
            let shown = found.iter().map(|credential| {
                let value = credential.render(&scope, &mut Secrets::default()).unwrap();
                format!("{:?} {}", credential.place, value.expose())
            });
            shown.collect()
        })
    }

    #[test]
    fn each_scheme_has_its_place() {
        let granted = json!({
            "key": "K", "query": "Q", "cookie": "C", "basic": "u:p", "bearer": "B", "oauth": "{auth.hub()}",
            "oidc": "x{auth.hub()}",
        });
        for (scheme, expected) in [
            ("key", "Header(\"x-key\") K"),
            ("query", "Query(\"k\") Q"),
            ("cookie", "Cookie(\"c\") C"),
            ("basic", "Header(\"authorization\") Basic dTpw"),
            ("bearer", "Header(\"authorization\") Bearer B"),
            ("oauth", "Header(\"authorization\") Bearer T"),
            ("oidc", "Header(\"authorization\") Bearer xT"),
        ] {
            let made = found(&json!([{scheme: []}]), &granted);
            assert_eq!(made, Ok(vec![expected.to_owned()]), "{scheme}");
        }
        assert_eq!(found(&json!([{"sent": []}]), &granted), Ok(vec![]));
    }

    #[test]
    fn the_first_alternative_that_can_be_satisfied_is_used() {
        let settings = json!({"key": "K", "bearer": "B"});
        let both = json!([{"tls": []}, {"key": [], "query": []}, {"key": [], "bearer": []}]);
        assert_eq!(found(&both, &settings).unwrap().len(), 2);
        let optional = json!([{}, {"query": []}]);
        assert_eq!(found(&optional, &settings), Ok(vec![]));
        let offered = json!([{}, {"key": []}]);
        assert_eq!(found(&offered, &settings).unwrap().len(), 1);
        assert_eq!(found(&json!([]), &settings), Ok(vec![]));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (security, message) in [
            (
                json!([{"key": []}, {"basic": [], "bearer": []}]),
                "`get_a` needs credentials; configure `openapi.credentials.key` in the manifest, such as \
                 \"{settings.name}\" or \"{auth.name()}\"; or `openapi.credentials.basic` in the manifest, such as \
                 \"{settings.name}\" or \"{auth.name()}\" and `openapi.credentials.bearer` in the manifest, such as \
                 \"{settings.name}\" or \"{auth.name()}\"",
            ),
            (
                json!([{"tls": []}]),
                "`get_a` needs credentials; configure a header of the manifest: the scheme `tls` is of a \
                 kind that is not supported",
            ),
            (
                json!([{"nobody": []}]),
                "`get_a` needs credentials; configure nothing: the description does not define the \
                 scheme `nobody`",
            ),
            (
                json!([{"broken": []}]),
                "`get_a` needs credentials; configure nothing: a scheme of the description does not say \
                 where its key goes",
            ),
        ] {
            assert_eq!(found(&security, &json!({})), Err(message.to_owned()));
        }
        assert_eq!(found(&json!("x"), &json!({})), Ok(vec![]));
    }
}
