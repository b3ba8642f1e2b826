//! An agent that runs already as a subject: it is spoken to at its URLs, and knows where our servers are.

use std::net::SocketAddr;

use proofhouse_campaign::result::SubjectInfo;
use proofhouse_campaign::subject::{
    Answer, Farewell, LiveSubject, Pace, RunContext, Subject, SubjectError,
};
use proofhouse_range::{BoxFuture, Endpoint};

use super::user::{Door, User};

/// Where an agent is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Urls {
    pub(crate) ag_ui: Option<String>,
    pub(crate) a2a: Option<String>,
    pub(crate) mcp: Option<String>,
}

impl Urls {
    pub(crate) fn is_empty(&self) -> bool {
        self.ag_ui.is_none() && self.a2a.is_none() && self.mcp.is_none()
    }

    pub(crate) fn endpoint(&self, mode: &str) -> Option<Endpoint> {
        let url = match mode {
            "ag_ui_client" => &self.ag_ui,
            "a2a_client" => &self.a2a,
            "mcp_client" => &self.mcp,
            _ => &None,
        };
        url.clone().map(Endpoint::Url)
    }

    /// Where a user speaks to it.
    pub(crate) fn door(&self) -> Option<Door> {
        let ag_ui = self.ag_ui.clone().map(Door::AgUi);
        ag_ui.or_else(|| self.a2a.clone().map(Door::A2a))
    }
}

/// An agent that runs already.
pub(crate) struct EndpointSubject {
    pub(crate) name: String,
    pub(crate) urls: Urls,
    /// Where servers of documents listen, because the agent was told so.
    pub(crate) mcp_listen: Option<SocketAddr>,
    pub(crate) a2a_listen: Option<SocketAddr>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pace: Pace,
}

impl Subject for EndpointSubject {
    fn info(&self) -> SubjectInfo {
        let urls = [&self.urls.ag_ui, &self.urls.a2a, &self.urls.mcp];
        let urls: Vec<&str> = urls.into_iter().flatten().map(String::as_str).collect();
        SubjectInfo {
            name: self.name.clone(),
            kind: "endpoint".to_owned(),
            simulation: false,
            description: format!("an agent at {}", urls.join(", ")),
        }
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn listen(&self, mode: &str) -> Option<SocketAddr> {
        match mode {
            "mcp_server" => self.mcp_listen,
            "a2a_server" => self.a2a_listen,
            _ => None,
        }
    }

    fn at_a_time(&self) -> Option<usize> {
        // Two attacks cannot be at one address, and would not be told apart in one agent.
        Some(1)
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
                let flag = match server.mode.as_str() {
                    "a2a_server" => "--a2a-listen",
                    _ => "--mcp-listen",
                };
                return Err(SubjectError::new(format!(
                    "the agent does not know where actor `{}` is: say with {flag} where it looks",
                    server.actor
                )));
            }
            let user = match self.urls.door() {
                None => None,
                Some(door) => Some(
                    User::new(door, &self.headers, &run.id.replace('/', "-"))
                        .map_err(SubjectError)?,
                ),
            };
            let live: Box<dyn LiveSubject> = Box::new(LiveEndpoint {
                urls: self.urls.clone(),
                user,
            });
            Ok(live)
        })
    }
}

struct LiveEndpoint {
    urls: Urls,
    user: Option<User>,
}

impl LiveSubject for LiveEndpoint {
    fn endpoint(&self, mode: &str) -> Option<Endpoint> {
        self.urls.endpoint(mode)
    }

    fn prompt<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, Result<Answer, SubjectError>> {
        Box::pin(async move {
            let user = self.user.as_mut().ok_or_else(|| {
                SubjectError::new(
                    "nobody can tell the agent what to do: give --ag-ui-url or --a2a-url",
                )
            })?;
            let text = user.say(text).await.map_err(SubjectError)?;
            Ok(Answer { text: Some(text) })
        })
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Farewell> {
        Box::pin(std::future::ready(Farewell::default()))
    }
}
