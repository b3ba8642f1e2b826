//! `stateless_http`: one HTTP request per call.

use proofhouse_source::NodeRef;
use proofhouse_source::format::TypeSpec;

use super::BackendBlock;
use super::http::{HTTP, HttpCall};
use crate::decode::ManifestDecoder;
use crate::interpolate::TemplateReference;
use crate::names::ReferenceSite;

impl BackendBlock for HttpCall {
    const KEY: &'static str = "stateless_http";
    const SPEC: &'static TypeSpec = &HTTP;
    const DOC: &'static str = "One HTTP request.";
    const SHARED_DOC: Option<&'static str> = Some("What actions with this backend inherit.");

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        _common: Option<&Self>,
    ) -> Option<Self> {
        decoder.http(node, ReferenceSite::Execute, &HTTP)
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
