//! The link to a server, over whichever transport. For the SDK there is but one type of them: its client is
//! compiled once for each, and it is large.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpError};

use super::failure::LinkError;
use super::http::SdkHttpTransport;
use super::legacy_sse::LegacySse;
use super::stdio::StdioTransport;

/// The client's end of a connection.
pub(super) enum ServerLink {
    Stdio(StdioTransport),
    Http(StreamableHttpClientTransport<SdkHttpTransport>),
    LegacySse(Box<LegacySse>),
}

impl Transport<RoleClient> for ServerLink {
    /// What the SDK itself has to say of HTTP is an error of its own; ours fits in.
    type Error = StreamableHttpError<LinkError>;

    fn send(
        &mut self,
        mut item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        without_extensions(&mut item);
        let sending: BoxFuture<'static, _> = match self {
            Self::Stdio(link) => link.send(item).map_err(StreamableHttpError::Client).boxed(),
            Self::Http(link) => link.send(item).boxed(),
            Self::LegacySse(link) => link.send(item).map_err(StreamableHttpError::Client).boxed(),
        };
        sending
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self {
            Self::Stdio(link) => link.receive().await,
            Self::Http(link) => link.receive().await,
            Self::LegacySse(link) => link.receive().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match self {
            Self::Stdio(link) => link.close().await.map_err(StreamableHttpError::Client),
            Self::Http(link) => link.close().await,
            Self::LegacySse(link) => link.close().await.map_err(StreamableHttpError::Client),
        }
    }
}

/// Takes back what is offered to servers of the modern era only. The SDK offers the same to those of the legacy era, whose
/// tasks are others.
fn without_extensions(item: &mut TxJsonRpcMessage<RoleClient>) {
    if let ClientJsonRpcMessage::Request(request) = item
        && let ClientRequest::InitializeRequest(initialize) = &mut request.request
    {
        initialize.params.capabilities.extensions = None;
    }
}
