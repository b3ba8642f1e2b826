//! `openapi`: the operations of an API that has an OpenAPI description.

use proofhouse_source::format::{FieldKind as Kind, FormatReader, TypeSpec};
use proofhouse_source::{NodeRef, YamlScalar};

use super::{BackendBlock, inherit_headers, take};
use crate::decode::ManifestDecoder;
use crate::fields::{TEMPLATE, TEMPLATE_MAP, field};
use crate::interpolate::{HeaderTemplate, Template, TemplateReference, UrlTemplate};
use crate::names::ReferenceSite;

/// An OpenAPI specification.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenApi {
    /// Where it is.
    pub url: Option<DescriptionPlace>,
    /// Headers of every request.
    pub headers: Vec<HeaderTemplate>,
    /// What satisfies the security schemes of the description, by their names. It is given nothing else.
    pub credentials: Vec<(String, Template)>,
    /// The only operations that are derived; all, if there are none.
    pub include: Vec<OperationPattern>,
    /// Operations that are not derived.
    pub exclude: Vec<OperationPattern>,
}

/// Which operations are meant, where `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationPattern {
    /// Those with a tag.
    Tag(String),
    /// Those of a path.
    Path(String),
    /// Those of a name.
    Name(String),
}

impl OperationPattern {
    /// Reads `tag:NAME`, `/path`, or a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix("tag:") {
            Some(tag) => Self::Tag(tag.trim().to_owned()),
            None if text.starts_with('/') => Self::Path(text.to_owned()),
            None => Self::Name(text.to_owned()),
        }
    }

    /// Whether an operation is meant.
    #[must_use]
    pub fn matches(&self, name: &str, path: &str, tags: &[&str]) -> bool {
        match self {
            Self::Tag(pattern) => tags.iter().any(|tag| is_like(pattern, tag)),
            Self::Path(pattern) => is_like(pattern, path),
            Self::Name(pattern) => is_like(pattern, name),
        }
    }
}

/// Whether a text is as a pattern says, in which `*` stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Where an OpenAPI description is.
#[derive(Debug, Clone, PartialEq)]
pub enum DescriptionPlace {
    /// On a server.
    Url(UrlTemplate),
    /// In a file, by its path from the manifest's directory.
    File(String),
}

static OPENAPI: TypeSpec = TypeSpec {
    name: "OpenApi",
    doc: "An OpenAPI 3.x specification.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field(
            "url",
            TEMPLATE,
            "Where the specification is: a URL, or a file below the manifest's directory.",
        ),
        field("headers", TEMPLATE_MAP, "Headers of every request."),
        field(
            "include",
            Kind::list(&Kind::Text),
            "The only operations that are actions: tag:NAME, a path such as /repos/*, or a name such as issues_*.",
        ),
        field(
            "exclude",
            Kind::list(&Kind::Text),
            "Operations that are no actions, written as in include.",
        ),
        field(
            "credentials",
            TEMPLATE_MAP,
            "What the security schemes of the specification get, by their names: {settings.name} or {auth.name()}.",
        ),
    ],
};

impl BackendBlock for OpenApi {
    const KEY: &'static str = "openapi";
    const SPEC: &'static TypeSpec = &OPENAPI;
    const DOC: &'static str = "The operation of the action's name.";
    const SHARED_DOC: Option<&'static str> =
        Some("A specification whose operations are all actions.");
    const IS_DESCRIBED_BY_BACKEND: bool = true;

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        _common: Option<&Self>,
    ) -> Option<Self> {
        let mut fields = decoder.fields(node, &OPENAPI)?;
        Some(Self {
            url: fields.read("url", ManifestDecoder::description_place),
            headers: fields
                .read("headers", |decoder, node| {
                    decoder.headers(node, ReferenceSite::Execute)
                })
                .unwrap_or_default(),
            include: patterns(fields.texts("include")),
            exclude: patterns(fields.texts("exclude")),
            credentials: fields
                .read("credentials", |decoder, node| {
                    decoder.template_map(node, ReferenceSite::Execute)
                })
                .unwrap_or_default(),
        })
    }

    fn inherit(&mut self, common: &Self) -> Vec<TemplateReference> {
        let mut taken = Vec::new();
        take(&mut self.url, common.url.as_ref(), |place| {
            if let DescriptionPlace::Url(url) = place {
                taken.extend(url.template().references().cloned());
            }
        });
        inherit_headers(&mut self.headers, &common.headers, &mut taken);
        if self.include.is_empty() {
            self.include.clone_from(&common.include);
        }
        if self.exclude.is_empty() {
            self.exclude.clone_from(&common.exclude);
        }
        for (scheme, template) in &common.credentials {
            if self.credentials.iter().all(|(own, _)| own != scheme) {
                taken.extend(template.references().cloned());
                self.credentials.push((scheme.clone(), template.clone()));
            }
        }
        taken
    }

    fn is_complete(&self, decoder: &mut ManifestDecoder<'_>, before: usize) -> bool {
        decoder.need(self.url.is_some(), "url", before).is_some()
    }

    fn derives_actions(&self) -> bool {
        self.url.is_some()
    }

    fn shares_state(&self, other: &Self) -> bool {
        self == other
    }
}

fn patterns(texts: Option<Vec<String>>) -> Vec<OperationPattern> {
    let texts = texts.unwrap_or_default();
    texts
        .iter()
        .map(|text| OperationPattern::parse(text))
        .collect()
}

impl<'s> ManifestDecoder<'s> {
    /// A URL, or a file: `file:./api.yaml` or a path that begins with a name or a dot.
    fn description_place(&mut self, node: NodeRef<'s>) -> Option<DescriptionPlace> {
        if matches!(node.scalar(), Some(YamlScalar::Bool(_))) {
            // `true` is no file of that name.
            self.text(node)?;
        }
        let text = node.raw_text().unwrap_or_default();
        let path = text.strip_prefix("file:").unwrap_or(text);
        let is_file = path.len() < text.len()
            || !(text.is_empty() || text.contains([':', '{']) || text.starts_with('/'));
        if !is_file {
            return self
                .url(node, ReferenceSite::Execute)
                .map(DescriptionPlace::Url);
        }
        let inside = |part: &str| !matches!(part, "" | "..");
        if path.contains(['{', '\\', '\0']) || !path.split('/').all(inside) {
            let help =
                "write the path of a file below the manifest's directory, such as `./api.yaml`";
            let message = "this cannot be the path of a description".to_owned();
            self.error("TM-013", message, Some(help.to_owned()));
            return None;
        }
        Some(DescriptionPlace::File(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_tags_paths_and_names() {
        for (pattern, expected) in [
            ("tag:issues", true),
            ("tag:iss*", true),
            ("tag:pulls", false),
            ("/repos/*", true),
            ("/repos/*/issues", true),
            ("/repos", false),
            ("*_list", true),
            ("issues_*", true),
            ("issues*list", true),
            ("issues", false),
            ("*", true),
            ("", false),
        ] {
            let pattern_read = OperationPattern::parse(pattern);
            let found = pattern_read.matches("issues_list", "/repos/{owner}/issues", &["issues"]);
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
