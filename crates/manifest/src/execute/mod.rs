//! Reads the execute blocks of actions and the blocks they inherit from.

use std::collections::BTreeSet;

use proofhouse_source::format::{FormatReader, TypeSpec};
use proofhouse_source::{NodeRef, Scalar, Segment};
use serde_json_path::JsonPath;

use super::decode::Decoder;
use super::fields;
use super::model::{
    BackendKind, CelCall, DescriptionPlace, Execute, HttpCall, KubernetesJob, Mcp, McpTransport,
    OpenApi, Session, Shared,
};
use super::names::Site;
use crate::interpolate::{HeaderTemplate, Reference};

impl<'s> Decoder<'s> {
    /// Reads an execute block and completes it from the tool's shared blocks.
    pub(super) fn execute(&mut self, node: NodeRef<'s>, shared: &Shared) -> Option<Execute> {
        let mut block = self.fields(node, &fields::EXECUTE)?;
        let key = block.only()?;
        let before = block.reader.walk.findings().len();
        let Some(kind) = BackendKind::from_key(key) else {
            let message = format!("`{key}` has no runtime");
            block.reader.error("TM-008", message, None);
            return None;
        };
        match kind {
            BackendKind::Cel => block.read(key, |decoder, node| {
                let mut fields = decoder.fields(node, &fields::CEL)?;
                let expression = fields.read("expression", |decoder, node| {
                    let only = |_: &[serde_json::Value]| Err("only in a task".to_owned());
                    let files = crate::mount::mount_functions(only, only);
                    decoder.cel_with(node, &["context", "input", "now", "runtime"], &files)
                })?;
                Some(Execute::Cel(CelCall { expression }))
            }),
            BackendKind::StatelessHttp => block.read(key, |decoder, node| {
                let mut call = decoder.http(node, Site::Execute, &fields::HTTP)?;
                decoder.inherit(shared.stateless_http.as_ref(), |common| {
                    call.inherit(common)
                });
                decoder
                    .complete(&call, before)
                    .then_some(Execute::StatelessHttp(call))
            }),
            BackendKind::StatefulSession => block.read(key, |decoder, node| {
                let mut session = decoder.session(node, shared.stateful_session.as_ref())?;
                decoder.inherit(shared.stateful_session.as_ref(), |common| {
                    session.inherit(common)
                });
                decoder
                    .complete_session(&session, before)
                    .then_some(Execute::StatefulSession(session))
            }),
            BackendKind::OpenApi => block.read(key, |decoder, node| {
                let mut api = decoder.openapi(node)?;
                decoder.inherit(shared.openapi.as_ref(), |common| api.inherit(common));
                decoder.need(api.url.is_some(), "url", before)?;
                Some(Execute::OpenApi(api))
            }),
            BackendKind::Mcp => block.read(key, |decoder, node| {
                let mut mcp = decoder.mcp(node)?;
                decoder.inherit(shared.mcp.as_ref(), |common| mcp.inherit(common));
                decoder
                    .complete_mcp(&mcp, before)
                    .then_some(Execute::Mcp(mcp))
            }),
            BackendKind::KubernetesJob => block.read(key, |decoder, node| {
                let mut fields = decoder.fields(node, &fields::KUBERNETES_JOB)?;
                let namespace = fields.read("namespace", |decoder, node| {
                    decoder.template(node, Site::Execute)
                });
                let spec = fields.read("spec", |decoder, node| decoder.body(node, Site::Execute));
                Some(Execute::KubernetesJob(KubernetesJob {
                    namespace: namespace?,
                    spec: spec?,
                }))
            }),
        }
    }

    /// Merges a shared block and checks the references that came from it.
    fn inherit<T>(&mut self, common: Option<&T>, merge: impl FnOnce(&T) -> Vec<Reference>) {
        let Some(common) = common else { return };
        for reference in merge(common) {
            // Everything but parameters was checked where the shared block stands.
            if reference.root == crate::interpolate::Root::Parameters
                && let Some(unknown) = self.names.check(&reference, Site::Execute)
            {
                let message = format!(
                    "{}, which the shared block of the tool uses",
                    unknown.message
                );
                self.error(unknown.code, message, unknown.help);
            }
        }
    }

    /// Reports a missing key, unless something about the block was reported already.
    fn need(&mut self, there: bool, key: &str, before: usize) -> Option<()> {
        if there {
            return Some(());
        }
        if self.walk.findings().len() == before {
            self.error(
                "TM-005",
                format!("`{key}` is missing, here and in the tool's shared block"),
                None,
            );
        }
        None
    }

    pub(super) fn complete(&mut self, call: &HttpCall, before: usize) -> bool {
        self.need(call.method.is_some(), "method", before).is_some()
            & self.need(call.url.is_some(), "url", before).is_some()
    }

    fn complete_session(&mut self, session: &Session, before: usize) -> bool {
        if self
            .need(session.create.is_some(), "create", before)
            .is_none()
            || self
                .need(session.execute.is_some(), "execute", before)
                .is_none()
        {
            return false;
        }
        let calls = [
            &session.create,
            &session.initialize,
            &session.execute,
            &session.destroy,
        ];
        calls
            .into_iter()
            .flatten()
            .all(|call| self.complete(call, before))
    }

    pub(super) fn complete_mcp(&mut self, mcp: &Mcp, before: usize) -> bool {
        match mcp.transport {
            Some(McpTransport::Stdio) => self.need(mcp.command.is_some(), "command", before),
            Some(_) => self.need(mcp.url.is_some(), "url", before),
            None => self.need(false, "transport", before),
        }
        .is_some()
    }

    /// Reads an HTTP call, complete or not.
    pub(super) fn http(
        &mut self,
        node: NodeRef<'s>,
        site: Site,
        spec: &'static TypeSpec,
    ) -> Option<HttpCall> {
        let mut fields = self.fields(node, spec)?;
        Some(HttpCall {
            method: fields.read("method", |decoder, node| decoder.method(node, site)),
            url: fields.read("url", |decoder, node| decoder.url(node, site)),
            headers: fields
                .read("headers", |decoder, node| decoder.headers(node, site))
                .unwrap_or_default(),
            body: fields.read("body", |decoder, node| decoder.body(node, site)),
            response_path: fields.read("response_path", Decoder::json_path),
        })
    }

    pub(super) fn session(
        &mut self,
        node: NodeRef<'s>,
        common: Option<&Session>,
    ) -> Option<Session> {
        let mut fields = self.fields(node, &fields::SESSION)?;
        let extract = fields
            .read("extract", Decoder::json_paths)
            .unwrap_or_default();
        let call =
            |site| move |decoder: &mut Decoder<'s>, node| decoder.http(node, site, &fields::HTTP);
        let create = fields.read("create", call(Site::Execute));
        let inherited = common.map_or(&[][..], |common| &common.extract);
        let keys: BTreeSet<String> = extract
            .iter()
            .chain(inherited)
            .map(|(key, _): &(String, _)| key.clone())
            .collect();
        // Without `create`, `initialize` is the call that makes the session.
        let has_create = create.is_some() || common.is_some_and(|common| common.create.is_some());
        let site = if has_create {
            Site::Session
        } else {
            Site::Execute
        };
        fields.reader.names.session = Some(keys);
        let mut session = Session {
            create,
            initialize: fields.read("initialize", call(site)),
            extract,
            execute: fields.read("execute", call(Site::Session)),
            destroy: fields.read("destroy", call(Site::Session)),
        };
        fields.reader.names.session = None;
        if !has_create {
            session.create = session.initialize.take();
        }
        Some(session)
    }

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
            let path = self.within(Segment::Key(key), |decoder| decoder.json_path(value));
            paths.extend(path.map(|path| (key.to_owned(), path)));
        }
        Some(paths)
    }

    pub(super) fn openapi(&mut self, node: NodeRef<'s>) -> Option<OpenApi> {
        let mut fields = self.fields(node, &fields::OPENAPI)?;
        Some(OpenApi {
            url: fields.read("url", Decoder::description_place),
            headers: fields
                .read("headers", |decoder, node| {
                    decoder.headers(node, Site::Execute)
                })
                .unwrap_or_default(),
        })
    }

    /// A URL, or a file: `file:./api.yaml` or a path that begins with a name or a dot.
    fn description_place(&mut self, node: NodeRef<'s>) -> Option<DescriptionPlace> {
        let text = node.raw_text().unwrap_or_default();
        let path = text.strip_prefix("file:").unwrap_or(text);
        let is_file = path.len() < text.len()
            || !(text.is_empty() || text.contains([':', '{']) || text.starts_with('/'));
        if !is_file {
            return self.url(node, Site::Execute).map(DescriptionPlace::Url);
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

    pub(super) fn mcp(&mut self, node: NodeRef<'s>) -> Option<Mcp> {
        let site = Site::Execute;
        let mut fields = self.fields(node, &fields::MCP)?;
        Some(Mcp {
            transport: fields.read("transport", Decoder::transport),
            command: fields.read("command", |decoder, node| decoder.template(node, site)),
            args: fields.read("args", |decoder, node| {
                decoder.list(node, |decoder, node| decoder.template(node, site))
            }),
            url: fields.read("url", |decoder, node| decoder.url(node, site)),
            headers: fields
                .read("headers", |decoder, node| decoder.headers(node, site))
                .unwrap_or_default(),
            env: fields
                .read("env", |decoder, node| decoder.template_map(node, site))
                .unwrap_or_default(),
        })
    }

    fn transport(&mut self, node: NodeRef<'s>) -> Option<McpTransport> {
        match node.scalar() {
            Some(Scalar::Text("stdio")) => Some(McpTransport::Stdio),
            Some(Scalar::Text("sse")) => Some(McpTransport::Sse),
            Some(Scalar::Text("streamable_http")) => Some(McpTransport::StreamableHttp),
            _ => {
                let message = format!("{} is not a transport", node.describe());
                let help = Some(format!("use one of: {}", fields::TRANSPORTS.join(", ")));
                self.error("TM-008", message, help);
                None
            }
        }
    }
}

/// Takes what is absent from the shared block; returns the references that came along.
fn take<T: Clone>(own: &mut Option<T>, common: Option<&T>, references: impl FnOnce(&T)) {
    if own.is_none()
        && let Some(common) = common
    {
        references(common);
        *own = Some(common.clone());
    }
}

fn inherit_headers(
    own: &mut Vec<HeaderTemplate>,
    common: &[HeaderTemplate],
    taken: &mut Vec<Reference>,
) {
    for header in common {
        if !own.iter().any(|mine| mine.name == header.name) {
            taken.extend(header.value.references().cloned());
            own.push(header.clone());
        }
    }
}

impl HttpCall {
    fn inherit(&mut self, common: &Self) -> Vec<Reference> {
        let mut taken = Vec::new();
        take(&mut self.method, common.method.as_ref(), |method| {
            taken.extend(method.references().cloned());
        });
        take(&mut self.url, common.url.as_ref(), |url| {
            taken.extend(url.template().references().cloned());
        });
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

impl Session {
    fn inherit(&mut self, common: &Self) -> Vec<Reference> {
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
                taken.extend(own.inherit(common));
            }
        }
        for (key, path) in &common.extract {
            if !self.extract.iter().any(|(own, _)| own == key) {
                self.extract.push((key.clone(), path.clone()));
            }
        }
        taken
    }
}

impl OpenApi {
    fn inherit(&mut self, common: &Self) -> Vec<Reference> {
        let mut taken = Vec::new();
        take(&mut self.url, common.url.as_ref(), |place| {
            if let DescriptionPlace::Url(url) = place {
                taken.extend(url.template().references().cloned());
            }
        });
        inherit_headers(&mut self.headers, &common.headers, &mut taken);
        taken
    }
}

impl Mcp {
    fn inherit(&mut self, common: &Self) -> Vec<Reference> {
        let mut taken = Vec::new();
        take(&mut self.transport, common.transport.as_ref(), |_| {});
        take(&mut self.command, common.command.as_ref(), |text| {
            taken.extend(text.references().cloned());
        });
        take(&mut self.args, common.args.as_ref(), |args| {
            taken.extend(args.iter().flat_map(|text| text.references().cloned()));
        });
        take(&mut self.url, common.url.as_ref(), |url| {
            taken.extend(url.template().references().cloned());
        });
        inherit_headers(&mut self.headers, &common.headers, &mut taken);
        for (name, value) in &common.env {
            if !self.env.iter().any(|(own, _)| own == name) {
                taken.extend(value.references().cloned());
                self.env.push((name.clone(), value.clone()));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_table_is_a_kind_of_its_own() {
        let keys: Vec<&str> = fields::EXECUTE
            .fields
            .iter()
            .map(|field| field.key)
            .collect();
        let kinds: Vec<&str> = BackendKind::ALL.into_iter().map(BackendKind::key).collect();
        assert_eq!(keys, kinds);
    }
}
