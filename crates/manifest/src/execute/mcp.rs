//! `mcp`: the tools of an MCP server.

use proofhouse_source::NodeRef;
use proofhouse_source::format::{FieldKind as Kind, FormatReader, TypeSpec};

use super::{BackendBlock, inherit_headers, take};
use crate::decode::ManifestDecoder;
use crate::fields::{TEMPLATE, TEMPLATE_MAP, TEMPLATES, field};
use crate::interpolate::{HeaderTemplate, Template, TemplateReference, UrlTemplate};
use crate::names::ReferenceSite;

const TRANSPORTS: &[&str] = &["stdio", "sse", "streamable_http"];

/// How to talk to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpTransport {
    /// A child process.
    Stdio,
    /// Streamable HTTP, then the legacy transport.
    Sse,
    /// Streamable HTTP.
    StreamableHttp,
}

/// An MCP server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mcp {
    /// How to talk to it.
    pub transport: Option<McpTransport>,
    /// What to start.
    pub command: Option<Template>,
    /// Its arguments.
    pub args: Option<Vec<Template>>,
    /// Where it is.
    pub url: Option<UrlTemplate>,
    /// Headers of every request.
    pub headers: Vec<HeaderTemplate>,
    /// Environment of the command.
    pub env: Vec<(String, Template)>,
}

static MCP: TypeSpec = TypeSpec {
    name: "Mcp",
    doc: "A server of the Model Context Protocol.",
    extensions: true,
    exactly_one: None,
    fields: &[
        field("transport", Kind::Choice(TRANSPORTS), "How to talk to it."),
        field("command", TEMPLATE, "What to start, for stdio."),
        field("args", TEMPLATES, "Its arguments."),
        field("url", TEMPLATE, "Where it is, for sse and streamable_http."),
        field("headers", TEMPLATE_MAP, "Headers of every request."),
        field("env", TEMPLATE_MAP, "Environment of the command."),
    ],
};

impl BackendBlock for Mcp {
    const KEY: &'static str = "mcp";
    const SPEC: &'static TypeSpec = &MCP;
    const DOC: &'static str = "The MCP tool of the action's name.";
    const SHARED_DOC: Option<&'static str> = Some("A server whose tools are all actions.");
    const IS_DESCRIBED_BY_BACKEND: bool = true;

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        _common: Option<&Self>,
    ) -> Option<Self> {
        let site = ReferenceSite::Execute;
        let mut fields = decoder.fields(node, &MCP)?;
        Some(Self {
            transport: fields.read("transport", ManifestDecoder::transport),
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

    fn inherit(&mut self, common: &Self) -> Vec<TemplateReference> {
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

    fn is_complete(&self, decoder: &mut ManifestDecoder<'_>, before: usize) -> bool {
        match self.transport {
            Some(McpTransport::Stdio) => decoder.need(self.command.is_some(), "command", before),
            Some(_) => decoder.need(self.url.is_some(), "url", before),
            None => decoder.need(false, "transport", before),
        }
        .is_some()
    }

    fn derives_actions(&self) -> bool {
        self.transport.is_some()
    }

    fn shares_state(&self, other: &Self) -> bool {
        self == other
    }
}

impl<'s> ManifestDecoder<'s> {
    fn transport(&mut self, node: NodeRef<'s>) -> Option<McpTransport> {
        match self.word(node, TRANSPORTS)? {
            "stdio" => Some(McpTransport::Stdio),
            "sse" => Some(McpTransport::Sse),
            _ => Some(McpTransport::StreamableHttp),
        }
    }
}
