//! The life of a runtime: initialize once per tool and task, invoke, and tear down when the task ends.

mod environment;
mod error;
mod limits;
mod observe;
mod outcome;
mod preview;
mod task;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

pub(crate) use environment::sounds_secret;
pub use environment::{Environment, Files, MountError, NoTokens, TokenError, TokenSource};
pub use error::{ActionError, ActionFailure, ERROR_TABLE, ErrorClass};
pub use limits::{JobLimits, ToolLimits};
pub use observe::{CallEvent, Observer};
pub use outcome::ActionResult;
pub use preview::Preview;
pub use task::{Invocation, ToolTask};

use proofhouse_manifest::interpolate::Secrets;
use proofhouse_manifest::{BackendKind, Execute, Tool, ToolAction};

/// One invocation of an action: its parameters are complete and checked.
#[derive(Debug, Clone)]
pub struct ActionCall {
    /// Names the invocation; no other has the same.
    pub invocation: String,
    /// The tool.
    pub tool: Arc<Tool>,
    /// The action; that of a shared block has no name while the block is initialized.
    pub action: Arc<ToolAction>,
    /// The values of its parameters.
    pub parameters: Map<String, Value>,
    /// The task's context at this moment.
    pub context: Value,
    /// The secrets among the tool's settings.
    pub secrets: Secrets,
    /// Ends the call early.
    pub cancel: CancellationToken,
}

/// What carries out the actions of one kind of backend: it opens a session for each tool and task.
pub trait ActionRuntime: Send + Sync {
    /// Prepares what the calls of a task share. Called once per tool and task, at the first call.
    fn initialize<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>>;

    /// Whether actions are only known in full after initialization.
    fn completes_actions(&self) -> bool {
        false
    }

    /// Whether a session can be opened without effect to find out what a call would send.
    fn previews_by_session(&self) -> bool {
        false
    }

    /// Whether a cancelled call is left some time to clean up. Others are dropped where they are.
    fn cancels_itself(&self) -> bool {
        false
    }

    /// What a call would do, with its values in place and its secrets masked. Nothing is sent, no token is
    /// fetched and nothing is initialized. Unless a runtime says more, the arguments are shown.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    fn preview(&self, preview: Preview<'_>) -> Result<Value, ActionError> {
        Ok(serde_json::json!({"arguments": preview.call.parameters}))
    }
}

/// What an [`ActionRuntime`] keeps for one tool and one task, from its first call to the task's end.
pub trait ActionSession: Send + Sync {
    /// The names of the actions that a block at the top level of the tool derives, such as all
    /// operations of a description.
    fn derived(&self) -> Vec<String> {
        Vec::new()
    }

    /// An action as it can be called: what the manifest declares, with what the backend knows of it.
    /// Without a declaration it is one that the backend derives; nothing if there is none of the name.
    ///
    /// # Errors
    ///
    /// Returns an error when the declaration names something that the backend does not have.
    fn action(
        &self,
        _name: &str,
        declared: Option<&Arc<ToolAction>>,
    ) -> Result<Option<Arc<ToolAction>>, ActionError> {
        Ok(declared.cloned())
    }

    /// Carries out one action.
    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>>;

    /// Why there are no actions to derive, where there are none.
    fn why_none(&self) -> Option<String> {
        None
    }

    /// What a call would send, where only the session knows.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands, and where nothing is known.
    fn preview(&self, _preview: Preview<'_>) -> Result<Value, ActionError> {
        Err(ActionError::new(
            ActionFailure::NoRuntime,
            "what would be sent is not known",
        ))
    }

    /// Whether something is open elsewhere that the calls of the task share and that its teardown ends.
    fn holds_state(&self) -> bool {
        false
    }

    /// Cleans up when the task ends, also after a failure. Nothing to do where nothing was opened.
    fn teardown<'a>(
        &'a self,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async { Ok(()) })
    }
}

/// What the runtimes of this crate are made from.
pub(crate) struct Setup<'a> {
    pub(crate) limits: &'a ToolLimits,
    pub(crate) egress: crate::http::EgressPolicy,
    /// The client that all runtimes share which send requests.
    pub(crate) client: Arc<crate::http::HttpClient>,
}

impl<'a> Setup<'a> {
    fn new(limits: &'a ToolLimits, egress: crate::http::EgressPolicy) -> Result<Self, ActionError> {
        let client = Arc::new(crate::http::HttpClient::new(limits, egress.clone())?);
        Ok(Self {
            limits,
            egress,
            client,
        })
    }
}

/// The runtimes there are, one for each kind of action.
///
/// ```
/// use proofhouse_tools::http::EgressPolicy;
/// use proofhouse_tools::runtime::{ToolLimits, Runtimes};
///
/// let runtimes = Runtimes::new(&ToolLimits::default(), EgressPolicy::default()).unwrap();
/// assert!(runtimes.keys().any(|key| key == "stateless_http"));
/// ```
#[derive(Clone)]
pub struct Runtimes {
    table: Vec<(BackendKind, Arc<dyn ActionRuntime>)>,
}

impl Runtimes {
    /// The runtimes of this crate.
    ///
    /// # Errors
    ///
    /// Returns an error when the HTTP client cannot be set up.
    pub fn new(
        limits: &ToolLimits,
        egress: crate::http::EgressPolicy,
    ) -> Result<Self, ActionError> {
        let setup = Setup::new(limits, egress)?;
        let kinds = BackendKind::ALL.into_iter();
        let table = kinds.map(|kind| Ok((kind, crate::actions::runtime(kind, &setup)?)));
        Ok(Self {
            table: table.collect::<Result<_, ActionError>>()?,
        })
    }

    /// The same runtimes, with another for one kind.
    #[must_use]
    pub fn with(mut self, kind: BackendKind, runtime: Arc<dyn ActionRuntime>) -> Self {
        self.table.retain(|(known, _)| *known != kind);
        self.table.push((kind, runtime));
        self
    }

    /// The same runtimes without that of a kind, whose actions then end with `no_runtime`.
    #[must_use]
    pub fn without(mut self, kind: BackendKind) -> Self {
        self.table.retain(|(known, _)| *known != kind);
        self
    }

    /// The keys that can be run.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.table.iter().map(|(kind, _)| kind.key())
    }

    /// The runtime of a kind, if there is one.
    #[must_use]
    pub fn get(&self, kind: BackendKind) -> Option<&Arc<dyn ActionRuntime>> {
        let row = self.table.iter().find(|(known, _)| *known == kind);
        row.map(|(_, runtime)| runtime)
    }

    /// The runtime of an action.
    fn find(&self, execute: &Execute) -> Result<Arc<dyn ActionRuntime>, ActionError> {
        let kind = execute.kind();
        match self.get(kind) {
            Some(runtime) => Ok(Arc::clone(runtime)),
            None => Err(ActionError::new(
                ActionFailure::NoRuntime,
                format!("there is no runtime for `{}` here", kind.key()),
            )),
        }
    }
}

impl std::fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys()).finish()
    }
}
