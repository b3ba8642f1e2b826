//! `stateful_session`: requests in a remote session, which is made at the first call and closed when the task ends.

use std::collections::BTreeSet;

use proofhouse_source::format::{FieldKind as Kind, FormatReader, TypeSpec};
use proofhouse_source::{NodeRef, PathSegment};
use serde_json_path::JsonPath;

use super::http::{HTTP, HttpCall};
use super::{BackendBlock, BlockConflict};
use crate::decode::ManifestDecoder;
use crate::fields::{JSON_PATHS, alias, field};
use crate::interpolate::TemplateReference;
use crate::names::ReferenceSite;

/// A remote session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionSpec {
    /// The call that makes it.
    pub create: Option<HttpCall>,
    /// A call after that.
    pub initialize: Option<HttpCall>,
    /// What to keep of the answer.
    pub extract: Vec<(String, JsonPath)>,
    /// The call of each action.
    pub execute: Option<HttpCall>,
    /// The call that ends it.
    pub destroy: Option<HttpCall>,
}

impl SessionSpec {
    /// Whether both make, keep and end the session in the same way.
    fn is_same_session(&self, other: &Self) -> bool {
        self.create == other.create
            && self.initialize == other.initialize
            && self.extract == other.extract
            && self.destroy == other.destroy
    }
}

static SESSION: TypeSpec = TypeSpec {
    name: "Session",
    doc: "A remote session: made at the first call, closed when the task ends.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field(
            "create",
            Kind::Type(&HTTP),
            "The call that makes the session.",
        ),
        field(
            "initialize",
            Kind::Type(&HTTP),
            "A call after that; the call that makes it, if `create` is absent.",
        ),
        field(
            "extract",
            JSON_PATHS,
            "What to keep of the answer, as {session.key}.",
        ),
        field("execute", Kind::Type(&HTTP), "The call of each action."),
        alias(
            "destroy",
            "teardown",
            Kind::Type(&HTTP),
            "The call that ends the session.",
        ),
    ],
};

impl BackendBlock for SessionSpec {
    const KEY: &'static str = "stateful_session";
    const SPEC: &'static TypeSpec = &SESSION;
    const DOC: &'static str = "A request in a remote session.";
    const SHARED_DOC: Option<&'static str> = Some("What actions with this backend inherit.");

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        common: Option<&Self>,
    ) -> Option<Self> {
        let mut fields = decoder.fields(node, &SESSION)?;
        let extract = fields
            .read("extract", ManifestDecoder::json_paths)
            .unwrap_or_default();
        let call =
            |site| move |decoder: &mut ManifestDecoder<'s>, node| decoder.http(node, site, &HTTP);
        let create = fields.read("create", call(ReferenceSite::Execute));
        let inherited = common.map_or(&[][..], |common| &common.extract);
        let keys: BTreeSet<String> = extract
            .iter()
            .chain(inherited)
            .map(|(key, _): &(String, _)| key.clone())
            .collect();
        // Without `create`, `initialize` is the call that makes the session.
        let has_create = create.is_some() || common.is_some_and(|common| common.create.is_some());
        let site = if has_create {
            ReferenceSite::Session
        } else {
            ReferenceSite::Execute
        };
        fields.reader.names.session = Some(keys);
        let mut session = Self {
            create,
            initialize: fields.read("initialize", call(site)),
            extract,
            execute: fields.read("execute", call(ReferenceSite::Session)),
            destroy: fields.read("destroy", call(ReferenceSite::Session)),
        };
        fields.reader.names.session = None;
        if !has_create {
            session.create = session.initialize.take();
        }
        Some(session)
    }

    fn inherit(&mut self, common: &Self) -> Vec<TemplateReference> {
        let mut taken = Vec::new();
        let pairs = [
            (&mut self.create, &common.create),
            (&mut self.initialize, &common.initialize),
            (&mut self.execute, &common.execute),
            (&mut self.destroy, &common.destroy),
        ];
        for (own, common) in pairs {
            if let Some(common) = common {
                let own = own.get_or_insert_default();
                taken.extend(own.inherit_call(common));
            }
        }
        for (key, path) in &common.extract {
            if !self.extract.iter().any(|(own, _)| own == key) {
                self.extract.push((key.clone(), path.clone()));
            }
        }
        taken
    }

    fn is_complete(&self, decoder: &mut ManifestDecoder<'_>, before: usize) -> bool {
        if decoder
            .need(self.create.is_some(), "create", before)
            .is_none()
            || decoder
                .need(self.execute.is_some(), "execute", before)
                .is_none()
        {
            return false;
        }
        let calls = [&self.create, &self.initialize, &self.execute, &self.destroy];
        calls
            .into_iter()
            .flatten()
            .all(|call| decoder.complete(call, before))
    }

    /// A tool has one session per task, so its actions must agree on what it is.
    fn conflict_with(&self, first: &Self) -> Option<BlockConflict> {
        (!first.is_same_session(self)).then_some(BlockConflict {
            code: "TM-019",
            message: "this session differs from the one of an earlier action",
            help: "a tool has one session per task: define it once, in `stateful_session` at the top level",
        })
    }
}

impl<'s> ManifestDecoder<'s> {
    fn json_paths(&mut self, node: NodeRef<'s>) -> Option<Vec<(String, JsonPath)>> {
        let Some(entries) = node.entries() else {
            self.error(
                "TM-003",
                "`extract` must be a mapping of names to JSONPaths".to_owned(),
                None,
            );
            return None;
        };
        let mut paths = Vec::new();
        for (key, value) in entries {
            let path = self.within(PathSegment::Key(key), |decoder| decoder.json_path(value));
            paths.extend(path.map(|path| (key.to_owned(), path)));
        }
        Some(paths)
    }
}
