//! An MCP server that plays a document, over stdio and Streamable HTTP, in both eras of the protocol.
//!
//! [`service`] holds what connections share, [`http`] and [`stdio`] are the transports. A request
//! becomes a [`call`]; [`answer`], [`content`] and [`results`] answer it from the [`surface`] of its
//! phase, and [`play`] does what has to happen before.

mod answer;
mod batch;
mod call;
mod contacts;
mod content;
mod envelope;
mod http;
mod ids;
mod incoming;
mod input;
mod outlet;
mod peer;
mod play;
mod results;
mod rounds;
mod service;
mod stdio;
mod steps;
mod streams;
mod surface;
mod uri_template;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use proofhouse_oatf::{ActionKind, Mode};
use proofhouse_protocol::mcp::McpMethod;
use proofhouse_wire::server::BoundServer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::actor::ActorContext;
use crate::driver::{
    ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, Driver, EndpointFlag, EndpointForm,
    PreparedActor,
};
use crate::exposure::CarrierKind;
use http::McpServerHttp;
use input::StdinInput;
use service::McpServerService;
pub(crate) use service::carrier;
use surface::OfferedSurface;
pub(super) use surface::has_templates;
pub use surface::offered_tools;

/// The driver of `mcp_server`.
#[derive(Debug)]
pub(super) struct McpServerDriver;

impl Driver for McpServerDriver {
    fn mode(&self) -> Mode {
        Mode::McpServer
    }

    fn endpoint_flags(&self) -> &'static [EndpointFlag] {
        &[EndpointFlag {
            name: "mcp-server",
            form: EndpointForm::Address,
            help: "Where the attack serves MCP: an address such as 127.0.0.1:8080, or `stdio`",
        }]
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        Some(ActorEndpoint::Listen(SocketAddr::from((
            Ipv4Addr::LOCALHOST,
            0,
        ))))
    }

    fn prepare(
        &self,
        context: ActorContext,
        endpoint: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>> {
        Box::pin(async move {
            match endpoint {
                ActorEndpoint::Listen(address) => prepare_http(context, address).await,
                ActorEndpoint::Stdio => {
                    Ok(mcp_over(context, StdinInput::new(), tokio::io::stdout()))
                }
                ActorEndpoint::Command(_) | ActorEndpoint::Url(_) => Err(context.error(
                    ActorErrorKind::Endpoint,
                    "a server listens on an address or speaks over stdio",
                )),
            }
        })
    }
}

async fn prepare_http(
    context: ActorContext,
    address: SocketAddr,
) -> Result<PreparedActor, ActorError> {
    let bound = BoundServer::new(address).await.map_err(|error| {
        let message = format!("cannot listen on {address}: {error}");
        context.error(ActorErrorKind::Bind, message)
    })?;
    let address = bound.address();
    let service = Arc::new(McpServerService::new(context.clone()));
    plan(&context);
    let handler = Arc::new(McpServerHttp {
        service: Arc::clone(&service),
        address,
    });
    Ok(PreparedActor {
        address: Some(format!("http://{address}{}", http::PATH)),
        play: Box::pin(async move {
            let (limits, over) = (context.limits().clone(), context.over().clone());
            let serving = bound.serve_within(handler, limits, context.traffic(), over);
            tokio::join!(serving, entries(&service));
            service.stop().await;
            Ok(())
        }),
    })
}

/// A server for one client at the other end of two pipes.
pub fn mcp_over(
    context: ActorContext,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> PreparedActor {
    plan(&context);
    let service = Arc::new(McpServerService::new(context));
    PreparedActor {
        address: None,
        play: Box::pin(async move {
            tokio::select! {
                () = stdio::serve(&service, input, output) => {}
                () = entries(&service) => {}
            }
            service.stop().await;
            Ok(())
        }),
    }
}

/// Does what is to be done on entry into each phase, until the run is over.
async fn entries(service: &McpServerService) {
    let mut entries = service.context.entries();
    loop {
        tokio::select! {
            () = service.context.over().cancelled() => return,
            entry = entries.recv() => match entry {
                Some(entry) => service.enter(&entry).await,
                None => return service.context.over().cancelled().await,
            },
        }
    }
}

/// Notes everything that could reach the subject, and what in the document makes no sense.
fn plan(context: &ActorContext) {
    for phase in context.all_phases() {
        let surface = phase.prepared(OfferedSurface::of);
        for warning in &surface.warnings {
            context.warn(&format!("phase `{}`: {warning}", phase.name));
        }
        if surface.instructions.is_some() {
            context.planned(CarrierKind::Instructions, "instructions");
        }
        for (list, listed, used) in [
            (
                &surface.tools,
                CarrierKind::ToolListed,
                CarrierKind::ToolResponse,
            ),
            (
                &surface.resources,
                CarrierKind::ResourceListed,
                CarrierKind::Resource,
            ),
            (
                &surface.prompts,
                CarrierKind::PromptListed,
                CarrierKind::Prompt,
            ),
        ] {
            for item in &list.items {
                context.planned(listed, &item.name);
                if !item.responses.is_empty() || item.content.is_some() {
                    context.planned(used, &item.name);
                }
            }
        }
        for item in &surface.templates.items {
            context.planned(CarrierKind::ResourceListed, &item.name);
        }
        if !surface.elicitations.is_empty() {
            context.planned(
                CarrierKind::Elicitation,
                McpMethod::ElicitationCreate.as_str(),
            );
        }
    }
    for kind in context.entry_actions() {
        if let ActionKind::Send { method, .. } = kind {
            context.planned(carrier(method), method);
        }
    }
}
