//! Security schemes: which credentials an operation wants, and where the operator has put them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofhouse_wire::HeaderName;

use super::description::{OpenApiDescription, Operation};
use super::server::SettingLookup;
use super::style::text_of;
use super::tree::Id;
use crate::runtime::{ActionError, ActionFailure};
use proofhouse_manifest::interpolate::Sealed;

/// How many alternatives, and schemes in one of them, are looked at.
const MAX_ALTERNATIVES: usize = 20;

/// How long the name of a scheme may be.
const MAX_NAME: usize = 200;

/// Where a credential goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CredentialLocation {
    Header(HeaderName),
    Query(String),
    Cookie(String),
}

/// Where a credential comes from.
#[derive(Debug, Clone)]
pub(super) enum CredentialOrigin {
    /// The token of a provider.
    Provider(String),
    /// A setting.
    Value(Sealed<String>),
}

/// A credential that goes with the requests of an operation.
#[derive(Debug, Clone)]
pub(super) struct OperationCredential {
    pub(super) place: CredentialLocation,
    /// What stands before it, such as `Bearer `.
    pub(super) prefix: &'static str,
    pub(super) origin: CredentialOrigin,
    /// What it was made from, where that is a secret of its own.
    pub(super) made_from: Option<Sealed<String>>,
}

/// What the operator offers.
pub(super) struct Offered<'o> {
    pub(super) settings: &'o SettingLookup<'o>,
    /// Whether there is a provider of tokens of that name.
    pub(super) provides: &'o (dyn Fn(&str) -> bool + Send + Sync),
    /// Headers that the manifest sends anyway.
    pub(super) headers: &'o [HeaderName],
}

/// What the operator has to configure before a scheme has its credential.
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
    #[error("the settings `{0}_username` and `{0}_password`")]
    UserAndPassword(String),
    #[error("the setting `{0}` or an auth provider of that name")]
    SettingOrProvider(String),
}

/// The credentials of an operation: those of the first alternative that the operator's settings satisfy.
pub(super) fn credentials(
    description: &OpenApiDescription,
    operation: &Operation,
    offered: &Offered<'_>,
) -> Result<Vec<OperationCredential>, ActionError> {
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
    Err(ActionError::new(
        ActionFailure::Setting,
        format!(
            "`{}` needs credentials; configure {}",
            operation.name,
            wanted.join("; or ")
        ),
    ))
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
        "http" if http.eq_ignore_ascii_case("basic") => (authorization(), "Basic "),
        _ => (authorization(), "?"),
    };
    if let CredentialLocation::Header(header) = &place
        && offered.headers.contains(header)
    {
        return Ok(None);
    }
    let setting = |suffix: &str| {
        let value = (offered.settings)(&format!("{name}{suffix}"))?;
        Some(text_of(&value)).filter(|text| !text.is_empty())
    };
    let mut made_from = None;
    let origin = match prefix {
        "?" => {
            return Err(MissingCredential::UnsupportedScheme(name.to_owned()));
        }
        "Basic " => {
            let pair = setting("_username").map(|user| {
                let password = setting("_password").unwrap_or_default();
                made_from = Some(Sealed::new(password.clone()));
                format!("{user}:{password}")
            });
            let pair = pair.or_else(|| setting("").filter(|pair| pair.contains(':')));
            let encoded =
                pair.map(|pair| CredentialOrigin::Value(Sealed::new(STANDARD.encode(pair))));
            encoded.ok_or_else(|| MissingCredential::UserAndPassword(name.to_owned()))?
        }
        _ if (offered.provides)(name) => CredentialOrigin::Provider(name.to_owned()),
        _ => {
            let token = setting("").or_else(|| setting("_token"));
            let token = token.map(|token| CredentialOrigin::Value(Sealed::new(token)));
            token.ok_or_else(|| MissingCredential::SettingOrProvider(name.to_owned()))?
        }
    };
    Ok(Some(OperationCredential {
        place,
        prefix,
        origin,
        made_from,
    }))
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
pub(super) fn is_cookie_name(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;
    use serde_json::{Value, json};

    fn found(
        security: &Value,
        settings: &Value,
        providers: &[&str],
    ) -> Result<Vec<String>, String> {
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
        let find = |name: &str| settings.get(name).cloned();
        let provides = |name: &str| providers.contains(&name);
        let offered = Offered {
            settings: &find,
            provides: &provides,
            headers: &[HeaderName::from_static("x-sent")],
        };
        let operation = description.operation("get_a").unwrap();
        let found = credentials(&description, operation, &offered);
        found.map_err(|error| error.message).map(|found| {
            let shown = found.iter().map(|credential| {
                let value = match &credential.origin {
                    CredentialOrigin::Provider(name) => format!("<{name}>"),
                    CredentialOrigin::Value(value) => value.expose().clone(),
                };
                format!("{:?} {}{value}", credential.place, credential.prefix)
            });
            shown.collect()
        })
    }

    #[test]
    fn each_scheme_has_its_place() {
        let settings = json!({
            "key": "K", "query_token": "Q", "cookie": "C", "basic_username": "u", "basic_password": "p",
            "bearer": "B", "oauth": "O",
        });
        for (scheme, expected) in [
            ("key", "Header(\"x-key\") K"),
            ("query", "Query(\"k\") Q"),
            ("cookie", "Cookie(\"c\") C"),
            ("basic", "Header(\"authorization\") Basic dTpw"),
            ("bearer", "Header(\"authorization\") Bearer B"),
            ("oauth", "Header(\"authorization\") Bearer <oauth>"),
            ("oidc", "Header(\"authorization\") Bearer <oidc>"),
        ] {
            let made = found(&json!([{scheme: []}]), &settings, &["oauth", "oidc"]);
            assert_eq!(made, Ok(vec![expected.to_owned()]), "{scheme}");
        }
        assert_eq!(found(&json!([{"sent": []}]), &settings, &[]), Ok(vec![]));
        let pair = found(&json!([{"basic": []}]), &json!({"basic": "u:p"}), &[]);
        assert_eq!(pair.unwrap(), ["Header(\"authorization\") Basic dTpw"]);
    }

    #[test]
    fn the_first_alternative_that_can_be_satisfied_is_used() {
        let settings = json!({"key": "K", "bearer": "B"});
        let both = json!([{"tls": []}, {"key": [], "query": []}, {"key": [], "bearer": []}]);
        assert_eq!(found(&both, &settings, &[]).unwrap().len(), 2);
        let optional = json!([{}, {"query": []}]);
        assert_eq!(found(&optional, &settings, &[]), Ok(vec![]));
        let offered = json!([{}, {"key": []}]);
        assert_eq!(found(&offered, &settings, &[]).unwrap().len(), 1);
        assert_eq!(found(&json!([]), &settings, &[]), Ok(vec![]));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (security, message) in [
            (
                json!([{"key": []}, {"basic": [], "bearer": []}]),
                "`get_a` needs credentials; configure the setting `key` or an auth provider of that name; \
                 or the settings `basic_username` and `basic_password` and the setting `bearer` or an \
                 auth provider of that name",
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
            assert_eq!(found(&security, &json!({}), &[]), Err(message.to_owned()));
        }
        assert_eq!(found(&json!("x"), &json!({}), &[]), Ok(vec![]));
    }
}
