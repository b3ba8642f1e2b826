//! One HTTP request: what `stateless_http`, `stateful_session`, push channels and polls are made of.

use proofhouse_source::NodeRef;
use proofhouse_source::format::{FieldSpec, FormatReader, TypeSpec};
use serde_json_path::JsonPath;

use super::{inherit_headers, take};
use crate::decode::ManifestDecoder;
use crate::fields::{BODY, JSON_PATH, METHOD, TEMPLATE, TEMPLATE_MAP, alias, field};
use crate::interpolate::{BodyTemplate, HeaderTemplate, Template, TemplateReference, UrlTemplate};
use crate::names::ReferenceSite;

/// One HTTP request. In a shared block anything may be absent; in an action `method` and `url` are there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpCall {
    /// The method.
    pub method: Option<Template>,
    /// Where to.
    pub url: Option<UrlTemplate>,
    /// In the shared block of a tool, what stands before the `url` of actions that is only a path.
    pub base_url: Option<UrlTemplate>,
    /// Headers.
    pub headers: Vec<HeaderTemplate>,
    /// What is sent.
    pub body: Option<BodyTemplate>,
    /// What to take from the response.
    pub response_path: Option<JsonPath>,
}

pub(crate) static HTTP: TypeSpec = TypeSpec {
    name: "Http",
    doc: "One HTTP request. In an action, what is absent comes from the tool's block of the same name.",
    extensions: true,
    exactly_one: None,
    fields: &HTTP_FIELDS,
};

/// The keys of every HTTP request.
pub(super) const HTTP_FIELDS: [FieldSpec; 5] = [
    field("method", METHOD, "GET, POST, PUT, PATCH or DELETE."),
    field(
        "url",
        TEMPLATE,
        "Where to; parameters are percent-encoded and never choose the host.",
    ),
    field("headers", TEMPLATE_MAP, "Headers by name."),
    alias("body", "json", BODY, "What is sent, as JSON."),
    field(
        "response_path",
        JSON_PATH,
        "What to take from the response.",
    ),
];

impl<'s> ManifestDecoder<'s> {
    /// Reads an HTTP call, complete or not.
    pub(crate) fn http(
        &mut self,
        node: NodeRef<'s>,
        site: ReferenceSite,
        spec: &'static TypeSpec,
    ) -> Option<HttpCall> {
        self.http_below(node, site, spec, None)
    }

    /// The same, where a `url` that is only a path stands behind a base.
    pub(super) fn http_below(
        &mut self,
        node: NodeRef<'s>,
        site: ReferenceSite,
        spec: &'static TypeSpec,
        base: Option<&UrlTemplate>,
    ) -> Option<HttpCall> {
        let has_base = spec.fields.iter().any(|field| field.key == "base_url");
        let mut fields = self.fields(node, spec)?;
        Some(HttpCall {
            method: fields.read("method", |decoder, node| decoder.method(node, site)),
            url: fields.read("url", |decoder, node| decoder.url_below(node, site, base)),
            base_url: if has_base {
                fields.read("base_url", |decoder, node| decoder.url(node, site))
            } else {
                None
            },
            headers: fields
                .read("headers", |decoder, node| decoder.headers(node, site))
                .unwrap_or_default(),
            body: fields.read("body", |decoder, node| decoder.body(node, site)),
            response_path: fields.read("response_path", ManifestDecoder::json_path),
        })
    }

    /// Whether a call has what it needs; reports what is missing.
    pub(crate) fn complete(&mut self, call: &HttpCall, before: usize) -> bool {
        self.need(call.method.is_some(), "method", before).is_some()
            & self.need(call.url.is_some(), "url", before).is_some()
    }
}

impl HttpCall {
    /// What its texts refer to.
    pub(crate) fn references(&self) -> Vec<TemplateReference> {
        let method = self.method.iter();
        let url = self.url.iter().chain(&self.base_url);
        let url = url.map(UrlTemplate::template);
        let headers = self.headers.iter().map(|header| &header.value);
        let body = self.body.iter().flat_map(|body| body.templates());
        let texts = method.chain(url).chain(headers).chain(body);
        texts.flat_map(|text| text.references().cloned()).collect()
    }

    pub(super) fn inherit_call(&mut self, common: &Self) -> Vec<TemplateReference> {
        let mut taken = Vec::new();
        take(&mut self.method, common.method.as_ref(), |method| {
            taken.extend(method.references().cloned());
        });
        take(&mut self.url, common.url.as_ref(), |url| {
            taken.extend(url.template().references().cloned());
        });
        let base = common.base_url.iter().map(UrlTemplate::template);
        taken.extend(base.flat_map(|base| base.references().cloned()));
        take(&mut self.body, common.body.as_ref(), |body| {
            taken.extend(
                body.templates()
                    .into_iter()
                    .flat_map(|text| text.references().cloned()),
            );
        });
        take(
            &mut self.response_path,
            common.response_path.as_ref(),
            |_| {},
        );
        inherit_headers(&mut self.headers, &common.headers, &mut taken);
        taken
    }
}
