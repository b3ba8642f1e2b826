//! `stateless_http`: one HTTP request per call.

use proofhouse_source::NodeRef;
use proofhouse_source::format::TypeSpec;

use super::BackendBlock;
use super::http::{HTTP_FIELDS, HttpCall};
use crate::decode::ManifestDecoder;
use crate::fields::{TEMPLATE, field};
use crate::interpolate::TemplateReference;
use crate::names::ReferenceSite;

static STATELESS_HTTP: TypeSpec = TypeSpec {
    name: "StatelessHttp",
    doc: "One HTTP request. In an action, what is absent comes from the tool's block of the same name.",
    extensions: true,
    exactly_one: None,
    fields: &[
        HTTP_FIELDS[0],
        HTTP_FIELDS[1],
        field(
            "base_url",
            TEMPLATE,
            "In the tool's block: what stands before the `url` of an action that is only a path.",
        ),
        HTTP_FIELDS[2],
        HTTP_FIELDS[3],
        HTTP_FIELDS[4],
    ],
};

impl BackendBlock for HttpCall {
    const KEY: &'static str = "stateless_http";
    const SPEC: &'static TypeSpec = &STATELESS_HTTP;
    const DOC: &'static str = "One HTTP request.";
    const SHARED_DOC: Option<&'static str> = Some("What actions with this backend inherit.");

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        common: Option<&Self>,
    ) -> Option<Self> {
        let base = common.and_then(|common| common.base_url.as_ref());
        let site = ReferenceSite::Execute;
        decoder.http_below(node, site, &STATELESS_HTTP, base)
    }

    fn inherit(&mut self, common: &Self) -> Vec<TemplateReference> {
        self.inherit_call(common)
    }

    fn is_complete(&self, decoder: &mut ManifestDecoder<'_>, before: usize) -> bool {
        decoder.complete(self, before)
    }

    fn may_be_repeated(&self) -> bool {
        let method = self.method.as_ref();
        method.is_some_and(|method| matches!(method.source(), "GET" | "PUT" | "DELETE"))
    }
}
