//! Scopes: what the references of a template can name, and how each is found.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use super::secret::{Sealed, Secrets};
use super::template::{Root, Template, TemplatePiece, TemplateReference};
use super::token_hosts::TokenHosts;

/// How long a text or a body may become.
pub(super) const MAX_BYTES: usize = 10 << 20;

/// Why a reference has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The operator has not configured it.
    #[error("the setting `{0}` is not configured")]
    MissingSetting(String),
    /// No provider of that name gave a token.
    #[error("there is no token for `{0}`")]
    MissingToken(String),
    /// The operator does not let a token go there.
    #[error(
        "the token of `{provider}` may not be sent to {place}; the operator's file lists its hosts: auth.{provider}.hosts"
    )]
    TokenHost {
        /// The provider.
        provider: String,
        /// Where it would go.
        place: String,
    },
    /// Nothing is there.
    #[error("`{0}` has no value")]
    Missing(String),
    /// A manifest that names a long value often enough would fill the memory.
    #[error("what the references make is longer than {MAX_BYTES} bytes")]
    TooLarge,
}

/// Values by root, and the secrets among them.
///
/// ```
/// use proofhouse_manifest::interpolate::{Root, TemplateScope, Template};
/// use serde_json::json;
///
/// let mut scope = TemplateScope::default();
/// scope.set(Root::Parameters, json!({"count": 3}));
/// let whole = scope.value(&Template::parse("{parameters.count}")).unwrap();
/// assert_eq!(*whole.expose(), json!(3));
/// let text = scope.text(&Template::parse("{count} files")).unwrap();
/// assert_eq!(text.expose(), "3 files");
/// ```
#[derive(Debug, Clone, Default)]
pub struct TemplateScope {
    values: BTreeMap<Root, Sealed<Value>>,
    tokens: BTreeMap<String, Sealed<String>>,
    /// Where those tokens may go that may not go everywhere.
    bound: BTreeMap<String, TokenHosts>,
    secrets: Secrets,
}

impl TemplateScope {
    /// Sets what a root names. Values that must not be shown are added with [`TemplateScope::hide`].
    pub fn set(&mut self, root: Root, value: Value) {
        self.values.insert(root, Sealed::new(value));
    }

    /// Sets the token of a provider, which is a secret.
    pub fn set_token(&mut self, provider: &str, token: String) {
        self.secrets.add(&token);
        self.tokens.insert(provider.to_owned(), Sealed::new(token));
    }

    /// Says where the token of a provider may be sent.
    pub fn bind_token(&mut self, provider: &str, hosts: TokenHosts) {
        self.bound.insert(provider.to_owned(), hosts);
    }

    /// Refuses an address that a token of this scope may not be sent to. To be asked before anything
    /// that was rendered with it is sent.
    ///
    /// # Errors
    ///
    /// Returns the provider whose token may not go there.
    pub fn check_hosts(&self, url: &Url) -> Result<(), ResolveError> {
        let host = url.host_str().unwrap_or("that address");
        self.check_bound(host, |hosts| hosts.allows(url))
    }

    /// Refuses to hand a token to something that may send it anywhere, such as a command, unless it may go
    /// everywhere.
    ///
    /// # Errors
    ///
    /// Returns the provider whose token may not go there.
    pub fn check_handed_to(&self, what: &str) -> Result<(), ResolveError> {
        self.check_bound(what, TokenHosts::is_any)
    }

    fn check_bound(
        &self,
        place: &str,
        allows: impl Fn(&TokenHosts) -> bool,
    ) -> Result<(), ResolveError> {
        match self.bound.iter().find(|(_, hosts)| !allows(hosts)) {
            None => Ok(()),
            Some((provider, _)) => Err(ResolveError::TokenHost {
                provider: provider.clone(),
                place: place.to_owned(),
            }),
        }
    }

    /// Takes a value for a secret.
    pub fn hide(&mut self, value: &Value) {
        self.secrets.add_value(value);
    }

    /// Takes more for secrets.
    pub fn hide_all(&mut self, secrets: &Secrets) {
        self.secrets.extend(secrets);
    }

    /// The token of a provider, if it was set.
    pub fn token(&self, provider: &str) -> Option<&str> {
        self.tokens
            .get(provider)
            .map(|token| token.expose().as_str())
    }

    /// Whether the tokens are those of another scope.
    pub fn has_tokens_of(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }

    /// The secrets, for cleaning what is shown.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The value of one reference.
    ///
    /// # Errors
    ///
    /// Returns an error when there is none.
    pub fn resolve(&self, reference: &TemplateReference) -> Result<Value, ResolveError> {
        match reference.root {
            Root::Auth => Ok(Value::from(self.token_of(reference)?)),
            Root::Parameters
            | Root::Settings
            | Root::Session
            | Root::Runtime
            | Root::Agent
            | Root::Context
            | Root::Mount
            | Root::Subscription
            | Root::Subscribe
            | Root::Event => self.find(reference).cloned(),
        }
    }

    /// The value of one reference as it reads within a text.
    pub(super) fn text_of(
        &self,
        reference: &TemplateReference,
    ) -> Result<Cow<'_, str>, ResolveError> {
        match reference.root {
            Root::Auth => self.token_of(reference).map(Cow::Borrowed),
            Root::Parameters
            | Root::Settings
            | Root::Session
            | Root::Runtime
            | Root::Agent
            | Root::Context
            | Root::Mount
            | Root::Subscription
            | Root::Subscribe
            | Root::Event => self.find(reference).map(as_text),
        }
    }

    fn token_of(&self, reference: &TemplateReference) -> Result<&str, ResolveError> {
        let provider = reference.path.join(".");
        self.token(&provider)
            .ok_or(ResolveError::MissingToken(provider))
    }

    fn find(&self, reference: &TemplateReference) -> Result<&Value, ResolveError> {
        let found = self.values.get(&reference.root).and_then(|value| {
            let value = value.expose();
            match reference.root {
                Root::Settings => find_dotted(value, &reference.path),
                Root::Subscribe => find(value, &reference.path, true),
                Root::Parameters
                | Root::Session
                | Root::Runtime
                | Root::Agent
                | Root::Context
                | Root::Mount
                | Root::Auth
                | Root::Subscription
                | Root::Event => find(value, &reference.path, false),
            }
        });
        match (found, reference.root) {
            (Some(value), _) => Ok(value),
            (None, Root::Settings) => Err(ResolveError::MissingSetting(reference.path.join("."))),
            (None, _) => Err(ResolveError::Missing(reference.to_string())),
        }
    }

    /// The value of a template: the JSON value if it is exactly one reference, text otherwise.
    ///
    /// # Errors
    ///
    /// Returns an error when a reference has no value.
    pub fn value(&self, template: &Template) -> Result<Sealed<Value>, ResolveError> {
        match template.whole() {
            Some(reference) => self.resolve(reference).map(Sealed::new),
            None => {
                let text = self.text(template)?;
                Ok(Sealed::new(Value::String(text.into_exposed())))
            }
        }
    }

    /// The text of a template. Numbers and truth values are written as in JSON, lists and objects as
    /// compact JSON, null as nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when a reference has no value, or the text becomes too long.
    pub fn text(&self, template: &Template) -> Result<Sealed<String>, ResolveError> {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                TemplatePiece::Text(literal) => text.push_str(literal),
                TemplatePiece::Value(reference) => text.push_str(&self.text_of(reference)?),
            }
            if text.len() > MAX_BYTES {
                return Err(ResolveError::TooLarge);
            }
        }
        Ok(Sealed::new(text))
    }
}

/// How a value reads within a text.
pub(super) fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

fn find<'v>(value: &'v Value, path: &[String], camel: bool) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Object(map) => match map.get(step) {
            None if camel => map.get(&camel_case(step)),
            found => found,
        },
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Keys with dots in them: the longest flat key first, then nested ones.
pub fn find_dotted<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    let map = value.as_object()?;
    (1..=path.len()).rev().find_map(|length| {
        let inner = map.get(&path[..length].join("."))?;
        find_dotted(inner, &path[length..])
    })
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scope() -> TemplateScope {
        let mut scope = TemplateScope::default();
        scope.set(
            Root::Parameters,
            json!({"n": 3, "b": true, "s": "x", "l": [1, {"k": "v"}], "z": null}),
        );
        scope.set(
            Root::Settings,
            json!({"github.token": "flat", "github": {"token": "nested", "owner": "acme"}, "a.b": {"c.d": 1}}),
        );
        scope.set(Root::Subscribe, json!({"resourceId": "r-1"}));
        scope.set_token("google", "g-token".into());
        scope
    }

    #[test]
    fn every_reference_finds_its_value() {
        for (template, expected) in [
            ("{parameters.n}", json!(3)),
            ("{n}", json!(3)),
            ("{b}", json!(true)),
            ("{z}", json!(null)),
            ("{l}", json!([1, {"k": "v"}])),
            ("{l.1.k}", json!("v")),
            ("{n}{b}{s}{z}", json!("3truex")),
            ("{l}!", json!("[1,{\"k\":\"v\"}]!")),
            ("{settings.github.token}", json!("flat")),
            ("{settings.github.owner}", json!("acme")),
            ("{settings.a.b.c.d}", json!(1)),
            ("{subscribe.resource_id}", json!("r-1")),
            ("{auth.google()}", json!("g-token")),
            ("{auth.google}", json!("g-token")),
        ] {
            let value = scope().value(&Template::parse(template)).unwrap();
            assert_eq!(*value.expose(), expected, "{template}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (template, message) in [
            ("{q}", "`parameters.q` has no value"),
            ("{l.7}", "`parameters.l.7` has no value"),
            (
                "{settings.github.x}",
                "the setting `github.x` is not configured",
            ),
            ("{auth.github()}", "there is no token for `github`"),
            ("{session.id}", "`session.id` has no value"),
        ] {
            let error = scope().value(&Template::parse(template)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn tokens_are_secrets_and_values_are_sealed() {
        let scope = scope();
        assert_eq!(scope.secrets().redact("is g-token"), "is [redacted]");
        let shown = format!("{scope:?}");
        assert!(
            !shown.contains("g-token") && !shown.contains("nested"),
            "{shown}"
        );
    }
}
