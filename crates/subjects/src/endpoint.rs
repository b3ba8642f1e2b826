//! An agent that runs already as a subject: it is spoken to at its URLs, and knows where our servers are.

use std::net::SocketAddr;

use proofhouse_oatf::{Mode, Protocol};
use proofhouse_range::{ActorEndpoint, BoxFuture};

use crate::Notice;
use crate::headers;
use crate::open::{OpenContext, SubjectOpenError, without_credentials};
use crate::prompt_delivery::{PromptDelivery, PromptEndpoint};
use crate::spec::{EndpointSpec, Urls};
use crate::subject::{
    LiveSubject, Pace, RunContext, Shutdown, Subject, SubjectAnswer, SubjectError, SubjectInfo,
};

impl Urls {
    pub(crate) fn endpoint(&self, mode: &Mode) -> Option<ActorEndpoint> {
        if !mode.is_client() {
            return None;
        }
        let url = match mode.protocol() {
            Protocol::AgUi => &self.ag_ui,
            Protocol::A2a => &self.a2a,
            Protocol::Mcp => &self.mcp,
            Protocol::Other(_) => &None,
        };
        url.clone().map(ActorEndpoint::Url)
    }

    /// Where a user speaks to it.
    pub(crate) fn prompted_at(&self) -> Option<PromptEndpoint> {
        let ag_ui = self.ag_ui.clone().map(PromptEndpoint::AgUi);
        ag_ui.or_else(|| self.a2a.clone().map(PromptEndpoint::A2a))
    }
}

/// An agent that runs already.
pub(crate) struct EndpointSubject {
    info: SubjectInfo,
    spec: EndpointSpec,
    headers: Vec<(String, String)>,
    pace: Pace,
}

impl EndpointSubject {
    /// The agent that is described.
    pub(crate) fn new(
        info: SubjectInfo,
        spec: &EndpointSpec,
        pace: Pace,
        opening: &OpenContext<'_>,
    ) -> Result<Self, SubjectOpenError> {
        for url in spec.urls.all() {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(SubjectOpenError::Url(url.to_owned()));
            }
        }
        if spec.urls.is_empty() {
            return Err(SubjectOpenError::NoUrl);
        }
        for address in [spec.mcp_listen, spec.a2a_listen].into_iter().flatten() {
            if !address.ip().is_loopback() {
                (opening.notify)(Notice::ListensForOthers(address));
            }
        }
        Ok(Self {
            info,
            headers: headers::resolve(&spec.headers, &opening.environment)?,
            spec: spec.clone(),
            pace,
        })
    }
}

impl Subject for EndpointSubject {
    fn info(&self) -> SubjectInfo {
        self.info.clone()
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn listen(&self, mode: &Mode) -> Option<SocketAddr> {
        match mode {
            Mode::McpServer => self.spec.mcp_listen,
            Mode::A2aServer => self.spec.a2a_listen,
            _ => None,
        }
    }

    fn meets(&self, mode: &Mode) -> bool {
        match mode {
            // It cannot be told where a server is, so that one must be where it looks.
            Mode::McpServer | Mode::A2aServer => self.listen(mode).is_some(),
            _ => self.spec.urls.endpoint(mode).is_some(),
        }
    }

    fn start_hints(&self) -> Vec<String> {
        let urls = [
            ("--ag-ui-url", &self.spec.urls.ag_ui),
            ("--a2a-url", &self.spec.urls.a2a),
            ("--mcp-url", &self.spec.urls.mcp),
        ];
        let named = urls.into_iter().filter_map(|(flag, url)| {
            let url = without_credentials(url.as_deref()?);
            Some(format!("Start your agent at {url}, or correct {flag}."))
        });
        named.collect()
    }

    fn at_a_time(&self) -> Option<usize> {
        // Two attacks cannot be at one address, and would not be told apart in one agent.
        Some(1)
    }

    fn alone_with(&self) -> Option<String> {
        let listen = self.spec.mcp_listen.or(self.spec.a2a_listen)?;
        Some(listen.to_string())
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.headers.clone()
    }

    fn secrets(&self) -> Vec<String> {
        headers::secrets(&self.headers)
    }

    fn start<'a>(
        &'a self,
        run: &'a RunContext,
    ) -> BoxFuture<'a, Result<Box<dyn LiveSubject>, SubjectError>> {
        Box::pin(async move {
            let untold = run
                .servers
                .iter()
                .find(|server| self.listen(&server.mode).is_none());
            if let Some(server) = untold {
                let flag = if server.mode == Mode::A2aServer {
                    "--a2a-listen"
                } else {
                    "--mcp-listen"
                };
                return Err(SubjectError::new(format!(
                    "the agent does not know where actor `{}` is: say with {flag} where it looks",
                    server.actor
                )));
            }
            let user = match self.spec.urls.prompted_at() {
                None => None,
                Some(endpoint) => {
                    let thread = run.id.replace('/', "-");
                    Some(PromptDelivery::new(
                        endpoint,
                        &self.headers,
                        &thread,
                        self.pace.deadline,
                    )?)
                }
            };
            let live: Box<dyn LiveSubject> = Box::new(LiveEndpoint {
                urls: self.spec.urls.clone(),
                user,
            });
            Ok(live)
        })
    }
}

struct LiveEndpoint {
    urls: Urls,
    user: Option<PromptDelivery>,
}

impl LiveSubject for LiveEndpoint {
    fn endpoint(&self, mode: &Mode) -> Option<ActorEndpoint> {
        self.urls.endpoint(mode)
    }

    fn prompt<'a>(
        &'a mut self,
        text: &'a str,
    ) -> BoxFuture<'a, Result<SubjectAnswer, SubjectError>> {
        Box::pin(async move {
            let user = self.user.as_mut().ok_or_else(|| {
                SubjectError::new(
                    "nobody can tell the agent what to do: give --ag-ui-url or --a2a-url",
                )
            })?;
            Ok(user.say(text).await?)
        })
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Shutdown> {
        Box::pin(std::future::ready(Shutdown::default()))
    }
}
