//! Servers: where the requests of an operation go, which the description and the operator say and no model.

use url::Url;

use crate::description::{OpenApiDescription, Operation};
use crate::error::CallError;
use crate::style::text_of;
use crate::tree::Id;

/// The setting that stands in for the servers of a description.
pub(crate) const SERVER_SETTING: &str = "server_url";

/// How long the URL of a server may be.
const MAX_URL: usize = 2048;

/// Looks up a setting of the operator.
pub type SettingLookup<'s> = dyn Fn(&str) -> Option<serde_json::Value> + Send + Sync + 's;

/// The base URL of an operation: the operator's, or the first server of the operation, its path or the whole.
///
/// # Errors
///
/// Returns an error when there is none, or none that can be used.
pub fn base(
    description: &OpenApiDescription,
    operation: &Operation,
    settings: &SettingLookup<'_>,
) -> Result<Url, CallError> {
    if let Some(chosen) = settings(SERVER_SETTING) {
        let text = text_of(&chosen);
        return usable(Url::parse(&text))
            .map_err(|reason| setting(format!("the setting `{SERVER_SETTING}`: {reason}")));
    }
    let tree = &description.tree;
    let first = |place: Id| {
        let servers = tree.get(place, "servers")?;
        tree.items(servers).next()
    };
    let places = [Some(operation.node), Some(operation.item), tree.root()];
    let server = places.into_iter().flatten().find_map(first);
    // Without servers, the description's own server is meant.
    let text = match server {
        None => "/".to_owned(),
        Some(server) => filled(description, server, settings)?,
    };
    let absolute = match (Url::parse(&text), &description.url) {
        (Err(url::ParseError::RelativeUrlWithoutBase), Some(home)) => home.join(&text),
        (Err(url::ParseError::RelativeUrlWithoutBase), None) => {
            return Err(setting(format!(
                "the description names no server with a host, and it is a file; \
                 configure the setting `{SERVER_SETTING}`"
            )));
        }
        (parsed, _) => parsed,
    };
    usable(absolute).map_err(|reason| {
        let message = format!("the server of the description cannot be used: {reason}");
        CallError::Manifest(message)
    })
}

fn setting(message: String) -> CallError {
    CallError::Setting(message)
}

/// Why requests cannot be sent to a URL.
#[derive(Debug, thiserror::Error)]
enum UnusableUrl {
    #[error(transparent)]
    NotAUrl(#[from] url::ParseError),
    #[error("only http and https can be used")]
    Scheme,
    #[error("it holds a name or a password")]
    Credentials,
}

fn usable(url: Result<Url, url::ParseError>) -> Result<Url, UnusableUrl> {
    let url = url?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(UnusableUrl::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UnusableUrl::Credentials);
    }
    Ok(url)
}

/// The URL of a server with its variables in place: the operator's value, else the default.
fn filled(
    description: &OpenApiDescription,
    server: Id,
    settings: &SettingLookup<'_>,
) -> Result<String, CallError> {
    let tree = &description.tree;
    let broken = |reason: &str| {
        let message = format!("the server of the description cannot be used: {reason}");
        CallError::Manifest(message)
    };
    let template = tree
        .text_at(server, "url")
        .ok_or_else(|| broken("it has no `url`"))?;
    if template.len() > MAX_URL {
        return Err(broken("its URL is too long"));
    }
    let variables = tree.get(server, "variables");
    let mut url = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        let Some((name, after)) = from.split_once('}') else {
            return Err(broken("a `{` is not closed"));
        };
        let variable = variables.and_then(|variables| tree.get(variables, name));
        let key = format!("server_{name}");
        let chosen = settings(&key).map(|value| text_of(&value));
        if let (Some(chosen), Some(variable)) = (&chosen, variable)
            && let Some(values) = tree.get(variable, "enum")
            && !tree
                .items(values)
                .any(|value| tree.text(value) == Some(chosen.as_str()))
        {
            return Err(setting(format!(
                "the setting `{key}` is not one of the values that the description allows"
            )));
        }
        let default = variable.and_then(|variable| tree.text_at(variable, "default"));
        let Some(value) = chosen.as_deref().or(default) else {
            return Err(setting(format!(
                "the server of the description has a variable without a default; \
                 configure the setting `{key}`"
            )));
        };
        url.push_str(before);
        url.push_str(value);
        if url.len() > MAX_URL {
            return Err(broken("its URL is too long"));
        }
        rest = after;
    }
    url.push_str(rest);
    if url.len() > MAX_URL {
        return Err(broken("its URL is too long"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use serde_json::{Value, json};

    fn base_of(servers: &Value, home: Option<&str>, settings: &Value) -> Result<String, String> {
        let mut value = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {}}}});
        for (place, servers) in servers.as_object().unwrap() {
            value.pointer_mut(place).unwrap()["servers"] = servers.clone();
        }
        let home = home.map(|home| Url::parse(home).unwrap());
        let description = OpenApiDescription::new(Tree::from_value(&value), home).unwrap();
        let operation = description.operation("get_a").unwrap();
        let find = |name: &str| settings.get(name).cloned();
        base(&description, operation, &find)
            .map(String::from)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_nearest_server_is_used() {
        let all = json!({
            "": [{"url": "https://root.test/v1"}],
            "/paths/~1a": [{"url": "https://path.test"}, {"url": "https://second.test"}],
            "/paths/~1a/get": [{"url": "https://operation.test/x/"}],
        });
        let mut map = all.as_object().unwrap().clone();
        for expected in [
            "https://operation.test/x/",
            "https://path.test/",
            "https://root.test/v1",
        ] {
            assert_eq!(
                base_of(&json!(map), None, &json!({})),
                Ok(expected.to_owned())
            );
            map.shift_remove(&map.keys().next_back().cloned().unwrap());
        }
        let settings = json!({"server_url": "http://127.0.0.1:1/b"});
        assert_eq!(
            base_of(&all, None, &settings),
            Ok("http://127.0.0.1:1/b".to_owned())
        );
    }

    #[test]
    fn relative_servers_belong_to_the_description() {
        let home = Some("https://h.test/docs/api.yaml?x=1");
        for (servers, expected) in [
            (json!({}), "https://h.test/"),
            (json!({"": []}), "https://h.test/"),
            (json!({"": [{"url": "/v2"}]}), "https://h.test/v2"),
            (json!({"": [{"url": "v2"}]}), "https://h.test/docs/v2"),
            (
                json!({"": [{"url": "//other.test/v2"}]}),
                "https://other.test/v2",
            ),
        ] {
            assert_eq!(base_of(&servers, home, &json!({})), Ok(expected.to_owned()));
            let error = base_of(&servers, None, &json!({})).unwrap_err();
            assert!(error.contains("setting `server_url`"), "{error}");
        }
    }

    #[test]
    fn variables_come_from_settings_or_defaults() {
        let server = json!({"": [{"url": "https://{region}.h.test:{port}/{base}", "variables": {
            "region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": "8443"},
            "base": {"default": "v1"},
        }}]});
        for (settings, expected) in [
            (json!({}), Ok("https://eu.h.test:8443/v1")),
            (
                json!({"server_region": "us", "server_port": 99}),
                Ok("https://us.h.test:99/v1"),
            ),
            (
                json!({"server_region": "xx"}),
                Err(
                    "the setting `server_region` is not one of the values that the description allows",
                ),
            ),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(base_of(&server, None, &settings), expected);
        }
    }

    #[test]
    fn servers_that_cannot_be_used_are_refused() {
        for server in [
            json!({"url": "ftp://h.test"}),
            json!({"url": "file:///etc/passwd"}),
            json!({"url": "https://u:p@h.test"}),
            json!({"url": "https://{x}/"}),
            json!({"url": "https://{x"}),
            json!({"url": "https://"}),
            json!({"url": 3}),
            json!({"url": format!("https://h.test/{}", "a".repeat(4000))}),
            json!("no"),
        ] {
            let home = Some("https://h.test/");
            assert!(
                base_of(&json!({"": [server]}), home, &json!({})).is_err(),
                "{server}"
            );
        }
    }
}
