//! URLs: values are percent-encoded where they stand and never choose where the request goes.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::path_check::{PathCheck, PathRefusal, climbs};
use super::position::{RenderError, breaks_line};
use super::scope::TemplateScope;
use super::secret::Sealed;
use super::template::{Root, Template, TemplatePiece, TemplateReference};

/// Everything but the unreserved characters of RFC 3986.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A value as a part of a URL.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

/// Why a template cannot be a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlTemplateError {
    /// A value that is not the operator's would choose scheme or host.
    #[error("`{0}` may not supply the scheme or the host of a URL")]
    ChoosesHost(String),
    /// There is no scheme that can be used.
    #[error("a URL must start with `http://` or `https://`, or with a setting")]
    NoScheme,
    /// It is no URL.
    #[error("not a URL: {0}")]
    Malformed(String),
}

/// Where in a URL a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UrlPosition {
    /// Scheme and host, where values are put in as they are.
    Base,
    Path,
    /// Query and fragment.
    Query,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UrlPiece {
    Text(UrlPosition, String),
    Value(UrlPosition, TemplateReference),
}

/// The URL of a request, with references in it.
///
/// ```
/// use proofhouse_manifest::interpolate::{Root, TemplateScope, Template, UrlTemplate};
/// use serde_json::json;
///
/// let template = Template::parse("https://api.example.com/files/{path}?q={q}");
/// let url = UrlTemplate::new(&template).unwrap();
/// let mut scope = TemplateScope::default();
/// scope.set(Root::Parameters, json!({"path": "a/b c", "q": "x&y=1"}));
/// let rendered = url.render(&scope).unwrap();
/// assert_eq!(rendered.expose().as_str(), "https://api.example.com/files/a%2Fb%20c?q=x%26y%3D1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    template: Template,
    pieces: Vec<UrlPiece>,
    /// Scheme and host, where no value supplies them.
    base: Option<Url>,
}

impl UrlTemplate {
    /// Scheme and host, where no value supplies them.
    #[must_use]
    pub fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// Whether the host is whatever a session's service named.
    #[must_use]
    pub fn is_of_session(&self) -> bool {
        matches!(
            self.pieces.first(),
            Some(UrlPiece::Value(UrlPosition::Base, reference)) if reference.root == Root::Session
        )
    }

    /// Finds out where each reference stands.
    ///
    /// # Errors
    ///
    /// Returns an error when the template cannot be a URL, whatever is put in.
    pub fn new(template: &Template) -> Result<Self, UrlTemplateError> {
        let mut pieces = Vec::new();
        let mut place = UrlPosition::Base;
        // What is known of scheme and host: text, and whether a value is among it.
        let (mut base, mut operator) = (String::new(), false);
        for part in template.parts() {
            match part {
                TemplatePiece::Value(reference) => {
                    if place == UrlPosition::Base {
                        // What a session's service names is reached under the egress policy, as everything is. A
                        // whole URL is, a part of a host is not.
                        let is_session = reference.root == Root::Session && base.is_empty();
                        let is_whole = is_session && !operator;
                        if !(is_whole || matches!(reference.root, Root::Settings | Root::Runtime)) {
                            return Err(UrlTemplateError::ChoosesHost(reference.to_string()));
                        }
                        operator = true;
                    }
                    pieces.push(UrlPiece::Value(place, reference.clone()));
                }
                TemplatePiece::Text(text) => {
                    let mut rest = text.as_str();
                    if place == UrlPosition::Base {
                        let end = base_length(&base, rest, operator);
                        base.push_str(&rest[..end]);
                        pieces.push(UrlPiece::Text(UrlPosition::Base, rest[..end].to_owned()));
                        rest = &rest[end..];
                        // To a URL of http, a backslash is a slash.
                        if rest.starts_with(['/', '\\']) {
                            place = UrlPosition::Path;
                        } else if !rest.is_empty() {
                            place = UrlPosition::Query;
                        }
                    }
                    if place == UrlPosition::Path {
                        let end = rest.find(['?', '#']).unwrap_or(rest.len());
                        pieces.push(UrlPiece::Text(UrlPosition::Path, rest[..end].to_owned()));
                        rest = &rest[end..];
                        if !rest.is_empty() {
                            place = UrlPosition::Query;
                        }
                    }
                    if !rest.is_empty() {
                        pieces.push(UrlPiece::Text(UrlPosition::Query, rest.to_owned()));
                    }
                }
            }
        }
        let mut fixed = None;
        if !operator {
            let lower = base.to_ascii_lowercase();
            if !lower.starts_with("http://") && !lower.starts_with("https://") {
                return Err(UrlTemplateError::NoScheme);
            }
            let parsed = Url::parse(&base);
            fixed = Some(parsed.map_err(|error| UrlTemplateError::Malformed(error.to_string()))?);
        }
        Ok(Self {
            template: template.clone(),
            pieces,
            base: fixed,
        })
    }

    /// The template it was made from.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The URL with its values in place.
    ///
    /// # Errors
    ///
    /// Returns an error when a reference has no value, or when its value would change the path's
    /// shape: `..`, nothing at all, or a line break.
    pub fn render(&self, scope: &TemplateScope) -> Result<Sealed<Url>, RenderError> {
        let mut url = String::new();
        // How much of it is scheme and host.
        let mut base = 0;
        let mut path = PathCheck::default();
        let refused = |refusal: PathRefusal<&TemplateReference>| {
            RenderError::refused(refusal.value, refusal.reason)
        };
        for piece in &self.pieces {
            match piece {
                UrlPiece::Text(place, text) => {
                    url.push_str(text);
                    if *place == UrlPosition::Base {
                        base = url.len();
                    }
                    if *place == UrlPosition::Path {
                        path.text(text).map_err(refused)?;
                    }
                }
                UrlPiece::Value(place, reference) => {
                    let value = scope.text_of(reference)?;
                    if breaks_line(&value) {
                        return Err(RenderError::refused(
                            reference,
                            "it holds a line break or NUL",
                        ));
                    }
                    match place {
                        UrlPosition::Base => {
                            url.push_str(&value);
                            base = url.len();
                        }
                        UrlPosition::Query => url.push_str(&encode(&value)),
                        UrlPosition::Path => {
                            if climbs(&value) {
                                return Err(RenderError::refused(
                                    reference,
                                    "it holds a `..` segment",
                                ));
                            }
                            let encoded = encode(&value);
                            url.push_str(&encoded);
                            path.value(reference, &encoded);
                        }
                    }
                }
            }
        }
        path.end().map_err(refused)?;
        let parse =
            |text| Url::parse(text).map_err(|error| RenderError::NotAUrl(error.to_string()));
        // A setting that is empty would leave it to the path to name the host.
        let base = match &self.base {
            Some(fixed) => Cow::Borrowed(fixed),
            None => Cow::Owned(parse(&url[..base])?),
        };
        let url = parse(&url)?;
        if !goes_to_the_same(&base, &url) {
            return Err(RenderError::NotAUrl(
                "the host is not in the settings or the session".to_owned(),
            ));
        }
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(RenderError::NotAUrl(
                "only http and https can be used".to_owned(),
            ));
        }
        Ok(Sealed::new(url))
    }
}

/// How much of `text` still belongs to scheme and host.
fn base_length(base: &str, text: &str, operator: bool) -> usize {
    let start = if base.contains("://") {
        0
    } else if let Some(at) = text.find("://") {
        at + 3
    } else if operator {
        // A setting supplied the scheme and the host.
        0
    } else {
        return text.len();
    };
    text[start..]
        .find(['/', '?', '#', '\\'])
        .map_or(text.len(), |end| start + end)
}

/// Whether two URLs name the same server, and the same user of it.
fn goes_to_the_same(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port() == other.port()
        && one.username() == other.username()
        && one.password() == other.password()
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn render(template: &str, parameters: Value) -> Result<String, String> {
        let url =
            UrlTemplate::new(&Template::parse(template)).map_err(|error| error.to_string())?;
        let mut scope = TemplateScope::default();
        scope.set(Root::Parameters, parameters);
        scope.set(
            Root::Settings,
            json!({"base": "http://h.test:81/v1", "host": "h.test", "bad": "file:///etc/passwd", "empty": "", "half": "https://"}),
        );
        let rendered = url.render(&scope).map_err(|error| error.to_string())?;
        Ok(rendered.into_exposed().to_string())
    }

    #[test]
    fn values_are_encoded_where_they_stand() {
        for (template, value, expected) in [
            (
                "http://h.test/a/{x}",
                "b/c?d#e",
                "http://h.test/a/b%2Fc%3Fd%23e",
            ),
            (
                "http://h.test/{x}.json",
                "ä ",
                "http://h.test/%C3%A4%20.json",
            ),
            (
                "http://h.test/a?q={x}&r=1",
                "1&r=2 +",
                "http://h.test/a?q=1%26r%3D2%20%2B&r=1",
            ),
            ("http://h.test?q={x}", "a", "http://h.test/?q=a"),
            ("http://h.test/{x}", "%2e", "http://h.test/%252e"),
            (
                "http://h.test/{x}",
                "@evil.test",
                "http://h.test/%40evil.test",
            ),
            ("{settings.base}/{x}", "a", "http://h.test:81/v1/a"),
            ("https://{settings.host}/{x}", "a", "https://h.test/a"),
            (
                "https://api.{settings.host}:8443?x={x}",
                "a",
                "https://api.h.test:8443/?x=a",
            ),
        ] {
            assert_eq!(
                render(template, json!({"x": value})),
                Ok(expected.to_owned()),
                "{template}"
            );
        }
        assert_eq!(
            render("http://h.test/{x}/{y}", json!({"x": 1, "y": true})),
            Ok("http://h.test/1/true".to_owned())
        );
    }

    #[test]
    fn values_cannot_change_the_path() {
        for value in [
            "..",
            ".",
            "",
            "../x",
            "a/../b",
            "a\\..\\b",
            "%2e%2e",
            "%252e%252e/x",
            "a\r\nb",
            "a\nb",
            "\0",
        ] {
            let result = render("http://h.test/a/{x}/b", json!({"x": value}));
            assert!(
                result.unwrap_err().starts_with("`parameters.x` is refused"),
                "{value:?}"
            );
        }
        assert!(render("http://h.test/{x}{y}", json!({"x": ".", "y": "."})).is_err());
        assert!(render("http://h.test/.{x}", json!({"x": "."})).is_err());
        assert!(render("http://h.test\\a\\{x}", json!({"x": ".."})).is_err());
        assert!(render("http://h.test\\.{x}\\", json!({"x": "."})).is_err());
        // What the author wrote counts as a URL reads it.
        assert!(render("http://h.test/a/%2e{x}", json!({"x": "."})).is_err());
        assert!(render("http://h.test/a/{x}%2E/", json!({"x": "."})).is_err());
        assert!(render("http://h.test/a/.\t{x}", json!({"x": "."})).is_err());
        assert!(render("http://h.test/{x}", json!({"x": "..."})).is_ok());
        assert!(render("http://h.test/a?x={x}", json!({"x": "a\r\nHost: b"})).is_err());
        assert!(render("http://h.test/a?x={x}", json!({"x": ".."})).is_ok());
    }

    #[test]
    fn a_session_may_name_a_whole_url() {
        let rendered = |template: &str, url: &str| {
            let template = UrlTemplate::new(&Template::parse(template));
            let template = template.map_err(|error| error.to_string())?;
            let mut scope = TemplateScope::default();
            scope.set(Root::Session, json!({"url": url}));
            scope.set(Root::Parameters, json!({"x": "a/b"}));
            let url = template.render(&scope);
            url.map(|url| url.expose().to_string())
                .map_err(|error| error.to_string())
        };
        for (template, expected) in [
            ("{session.url}", "https://s.test/v1/s-1"),
            (
                "{session.url}/{x}?q={x}",
                "https://s.test/v1/s-1/a%2Fb?q=a%2Fb",
            ),
        ] {
            let url = rendered(template, "https://s.test/v1/s-1");
            assert_eq!(url, Ok(expected.to_owned()), "{template}");
        }
        for value in [
            "",
            "s.test",
            "/v1",
            "file:///etc/passwd",
            "https://",
            "https://a\nb",
        ] {
            assert!(rendered("{session.url}/{x}", value).is_err(), "{value}");
        }
        for template in [
            "https://{session.url}/",
            "https://a.{session.url}",
            "{settings.a}{session.url}",
        ] {
            let refused = rendered(template, "s.test").unwrap_err();
            assert!(refused.contains("may not supply"), "{template}: {refused}");
        }
    }

    #[test]
    fn only_the_operator_chooses_the_host() {
        for template in [
            "{x}",
            "{x}/a",
            "http://{x}/a",
            "http://{x}.h.test",
            "http://a{x}",
            "http://h.test:{x}/",
        ] {
            assert_eq!(
                render(template, json!({"x": "h"})),
                Err("`parameters.x` may not supply the scheme or the host of a URL".to_owned()),
                "{template}"
            );
        }
        for template in [
            "",
            "/a",
            "ftp://h.test/",
            "h.test/a",
            "{settings.bad}/a",
            "http://",
        ] {
            assert!(render(template, json!({})).is_err(), "{template}");
        }
        // Nor does a value choose it where a setting leaves it out.
        for template in [
            "https://{settings.empty}/{x}",
            "{settings.half}/{x}",
            "{settings.half}{settings.empty}/{x}/y",
        ] {
            assert!(
                render(template, json!({"x": "evil.test"})).is_err(),
                "{template}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_value_leaves_its_segment(value in "\\PC{0,20}") {
            if let Ok(url) = render("http://h.test/a/{x}/b?c=d", json!({"x": value.as_str()})) {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(url.host_str(), Some("h.test"));
                prop_assert_eq!(url.query(), Some("c=d"));
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 3);
                let decoded = percent_decode_str(segments[1]).decode_utf8_lossy().into_owned();
                prop_assert_eq!(decoded, value);
            }
        }
    }
}
