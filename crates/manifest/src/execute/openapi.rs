//! `openapi`: the operations of an API that has an OpenAPI description.

use proofhouse_source::NodeRef;
use proofhouse_source::format::{FormatReader, TypeSpec};

use super::{BackendBlock, inherit_headers, take};
use crate::decode::ManifestDecoder;
use crate::fields::{TEMPLATE, TEMPLATE_MAP, field};
use crate::interpolate::{HeaderTemplate, TemplateReference, UrlTemplate};
use crate::names::ReferenceSite;

/// An OpenAPI specification.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenApi {
    /// Where it is.
    pub url: Option<DescriptionPlace>,
    /// Headers of every request.
    pub headers: Vec<HeaderTemplate>,
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

impl<'s> ManifestDecoder<'s> {
    /// A URL, or a file: `file:./api.yaml` or a path that begins with a name or a dot.
    fn description_place(&mut self, node: NodeRef<'s>) -> Option<DescriptionPlace> {
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
