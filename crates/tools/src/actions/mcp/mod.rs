//! `mcp`: the tools of a Model Context Protocol server, which is started or connected to once per task.

mod authorization;
mod call;
mod catalog;
mod connect;
mod connection;
mod content;
mod endpoint;
mod failure;
mod http;
mod known_secrets;
mod legacy_sse;
mod link;
mod process;
mod server_task;
mod sieve;
mod stdio;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofhouse_mcp_auth::Consent;
use proofhouse_protocol::{ACCEPT_JSON_OR_EVENTS, JSON};
use proofhouse_wire::client::Client;
use proofhouse_wire::{CancellationToken, HeaderMap, HeaderValue, Method};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use url::Url;

pub use self::authorization::McpAuthorization;
use self::catalog::ToolCatalog;
use self::connect::Connector;
use self::connection::McpConnection;
use self::failure::{CallFailure, MAX_SAID, head};
use self::known_secrets::KnownSecrets;
use crate::http::EgressPolicy;
use crate::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Preview,
    Setup, ToolLimits,
};
use proofhouse_manifest::{Execute, Mcp, McpTransport, ParameterSchema, Tool, ToolAction};

/// The path of servers whose manifest sets none. Nothing else of our own environment reaches them.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long a stream may be silent. One that is there for news mostly is.
const STREAM_SILENCE: std::time::Duration = std::time::Duration::from_secs(600);

/// How large an answer about authorization may be, and how long it may take.
const MAX_AUTH_BYTES: usize = 1 << 20;
const AUTH_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// The runtime, as far as it needs nothing from an operator.
pub(super) fn runtime(setup: &Setup<'_>) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    let runtime = McpRuntime::new(setup.limits, setup.egress.clone())?;
    Ok(Arc::new(runtime))
}

/// Starts servers and connects to them.
#[derive(Debug, Clone)]
pub struct McpRuntime {
    client: Client,
    /// The same for the requests of authorization, whose answers are small and come at once.
    auth_client: Client,
    authorization: Option<McpAuthorization>,
    limits: ToolLimits,
    base: Vec<(String, String)>,
}

/// A server for the length of a task.
struct TaskServer {
    connector: Connector,
    current: Mutex<Option<Arc<McpConnection>>>,
}

impl McpRuntime {
    /// A runtime that connects where the policy allows it.
    ///
    /// # Errors
    ///
    /// Returns an error when the HTTP client cannot be set up.
    pub fn new(limits: &ToolLimits, egress: EgressPolicy) -> Result<Self, ActionError> {
        let wire = proofhouse_wire::WireLimits {
            max_message_bytes: limits.max_response_bytes,
            connect_timeout: limits.connect,
            response_timeout: limits.mcp_call,
            idle_timeout: STREAM_SILENCE.max(limits.mcp_call),
            ..proofhouse_wire::WireLimits::default()
        };
        let of_auth = proofhouse_wire::WireLimits {
            max_message_bytes: MAX_AUTH_BYTES,
            response_timeout: AUTH_TIME,
            idle_timeout: AUTH_TIME,
            ..wire
        };
        let egress = Arc::new(egress);
        let guarded = |limits| {
            Client::guarded(limits, egress.clone())
                .map_err(|error| ActionError::new(ActionFailure::Manifest, error.to_string()))
        };
        Ok(Self {
            client: guarded(wire)?,
            auth_client: guarded(of_auth)?,
            authorization: None,
            limits: limits.clone(),
            base: vec![("PATH".to_owned(), DEFAULT_PATH.to_owned())],
        })
    }

    /// The same with another environment of all servers that are commands. What a manifest sets in `env`
    /// comes on top of it.
    ///
    /// ```
    /// use proofhouse_tools::actions::McpRuntime;
    /// use proofhouse_tools::http::EgressPolicy;
    /// use proofhouse_tools::runtime::ToolLimits;
    ///
    /// let runtime = McpRuntime::new(&ToolLimits::default(), EgressPolicy::default()).unwrap();
    /// let runtime = runtime.with_environment([("PATH", "/opt/servers/bin"), ("LANG", "C.UTF-8")]);
    /// ```
    #[must_use]
    pub fn with_environment<K: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.base = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        self
    }

    /// The same with more variables in that environment, each in the place of an earlier one of its name.
    #[must_use]
    pub fn with_variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in variables {
            self.base.retain(|(known, _)| *known != name);
            self.base.push((name, value));
        }
        self
    }

    /// The same with authorization, for the tools that the operator configured it for.
    #[must_use]
    pub fn with_authorization(mut self, authorization: McpAuthorization) -> Self {
        self.authorization = Some(authorization.waiting(self.limits.outage));
        self
    }

    /// Gets a token for the MCP server of a tool, with the consent of a person, and keeps it. Yields the server.
    ///
    /// # Errors
    ///
    /// Returns an error when nothing is configured for the tool, or there is no way to get a token.
    pub async fn log_in(
        &self,
        tool: &Arc<Tool>,
        environment: &Environment,
        consent: Arc<dyn Consent>,
    ) -> Result<Url, ActionError> {
        let url = self.server_of(tool, environment).await?;
        let authorizer = self.authorization.as_ref().and_then(|authorization| {
            authorization.with_consent(tool, &url, &self.auth_client, consent)
        });
        let Some(authorizer) = authorizer else {
            let message = format!(
                "nothing is configured; write `mcp: {{oauth: {{{}/{}: {{}}}}}}` in the operator's file",
                tool.namespace, tool.name
            );
            return Err(ActionError::new(ActionFailure::Setting, message));
        };
        // What the server asks for is in its refusal.
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static(ACCEPT_JSON_OR_EVENTS));
        headers.insert("content-type", HeaderValue::from_static(JSON));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let sent = self
            .auth_client
            .send(Method::POST, url.as_str(), headers, body.into())
            .await;
        let response = sent.map_err(|error| {
            ActionError::new(ActionFailure::Broken, format!("the MCP server: {error}"))
        })?;
        let logged_in = authorizer.log_in(&response.headers).await;
        logged_in.map_err(|error| authorization::failure(&error))?;
        Ok(url)
    }

    /// The address of a tool's MCP server.
    async fn server_of(
        &self,
        tool: &Arc<Tool>,
        environment: &Environment,
    ) -> Result<Url, ActionError> {
        let blocks = tool.deriving();
        let actions = tool.actions.iter().map(|action| &action.execute);
        let mut all = blocks.iter().chain(actions);
        let found = all.find_map(|execute| match execute {
            Execute::Mcp(mcp) => Some((execute, mcp.url.as_ref()?)),
            _ => None,
        });
        let Some((execute, template)) = found else {
            let message = "the tool has no MCP server with a URL";
            return Err(ActionError::new(ActionFailure::Manifest, message));
        };
        let action = ToolAction {
            name: String::new(),
            description: String::new(),
            parameters: ParameterSchema::given(json!({})),
            execute: execute.clone(),
        };
        let call = ActionCall {
            invocation: "login".to_owned(),
            tool: Arc::clone(tool),
            action: Arc::new(action),
            parameters: Map::new(),
            context: Value::Null,
            secrets: environment.secrets(tool),
            cancel: CancellationToken::new(),
        };
        let references = template.template().references();
        let scope = environment.scope(&call, references, false).await?;
        let url = template.render(&scope)?;
        scope.check_hosts(url.expose())?;
        Ok(url.into_exposed())
    }

    async fn open(
        &self,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<TaskServer, ActionError> {
        let block = block_of(call)?;
        let secrets = KnownSecrets::new(environment.clone(), Arc::clone(&call.tool));
        let catalog = ToolCatalog::new(call.action.execute.clone(), secrets.clone());
        let connector = Connector {
            client: self.client.clone(),
            auth_client: self.auth_client.clone(),
            authorization: self.authorization.clone(),
            limits: self.limits.clone(),
            base: self.base.clone(),
            block: block.clone(),
            call: call.clone(),
            environment: environment.clone(),
            secrets,
            catalog: Arc::new(catalog),
        };
        let connected = tokio::select! {
            () = call.cancel.cancelled() => {
                return Err(ActionError::new(ActionFailure::Cancelled, "the call was cancelled"));
            }
            connected = connector.connect() => connected,
        };
        let connection = connected.map_err(|mut error| {
            if error.failure == ActionFailure::Arguments {
                error.failure = ActionFailure::Manifest;
                error.message = format!(
                    "{}; a server is started before any parameter is known",
                    error.message
                );
            }
            error
        })?;
        Ok(TaskServer {
            connector,
            current: Mutex::new(Some(Arc::new(connection))),
        })
    }
}

impl TaskServer {
    fn catalog(&self) -> &Arc<ToolCatalog> {
        &self.connector.catalog
    }

    /// The connection; a new one if the old one is gone. Calls that come in between wait for it.
    async fn connection(&self) -> Result<Arc<McpConnection>, ActionError> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &*current {
            if connection.is_open() {
                return Ok(Arc::clone(connection));
            }
            connection.close().await;
            *current = None;
        }
        let connection = Arc::new(self.connector.connect().await?);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Gives up a connection, unless another one has taken its place.
    async fn leave(&self, connection: &Arc<McpConnection>) {
        let mut current = self.current.lock().await;
        if current
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, connection))
        {
            *current = None;
            drop(current);
            connection.close().await;
        }
    }

    async fn call(
        &self,
        connection: &McpConnection,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, CallFailure> {
        let patience = self.connector.limits.mcp_call;
        let called = call::call(connection, name, arguments);
        // When the time is over the call is dropped, and the server is told that it, or its task, was cancelled.
        let called = tokio::time::timeout(patience, called).await;
        called.unwrap_or_else(|_| {
            let seconds = patience.as_secs_f32();
            let message = format!("the tool gave no answer in {seconds} s");
            let mut error = ActionError::new(ActionFailure::Timeout, message);
            error.outcome_unknown = true;
            Err(CallFailure::Other(error))
        })
    }

    async fn carry_out(&self, call: &ActionCall) -> Result<Value, ActionError> {
        let name = &call.action.name;
        let arguments = with_defaults(call);
        let mut connection = self.connection().await?;
        let mut called = self.call(&connection, name, arguments.clone()).await;
        if matches!(called, Err(CallFailure::SessionEnded)) {
            // The server refused the call because of the session, so it has done nothing.
            self.leave(&connection).await;
            connection = self.connection().await?;
            called = self.call(&connection, name, arguments).await;
        }
        let error = match called {
            Ok(result) => return self.result(name, result),
            Err(CallFailure::Other(error)) => {
                // A session that a server forgot is a bad request for some.
                if failure::status(&error) == Some(400) {
                    self.leave(&connection).await;
                }
                error
            }
            Err(CallFailure::SessionEnded) => {
                self.leave(&connection).await;
                ActionError::new(
                    ActionFailure::Broken,
                    "the server ends every session at once",
                )
            }
            Err(CallFailure::Gone(error)) => {
                // An HTTP connection that broke says nothing of the session.
                if !connection.is_open() {
                    self.leave(&connection).await;
                }
                error
            }
        };
        Err(self.shortened(self.connector.with_words(error, &connection.said().await)))
    }

    fn result(&self, name: &str, called: CallToolResult) -> Result<Value, ActionError> {
        let secrets = self.connector.secrets.all();
        let most = self.connector.limits.max_result_bytes;
        if called.is_error == Some(true) {
            let said = secrets.redact(&content::texts(&called));
            let message = if said.trim().is_empty() {
                "the tool reports an error"
            } else {
                head(&said, MAX_SAID)
            };
            let mut error = ActionError::new(ActionFailure::Tool, message);
            if called.structured_content.is_some() {
                let told = secrets.redact_value(content::result(called, most));
                if told.to_string().len() <= MAX_SAID {
                    error.detail.insert("content".to_owned(), told);
                }
            }
            return Err(error);
        }
        if let Some(structured) = &called.structured_content
            && !self.catalog().keeps_promise(name, structured)
        {
            tracing::warn!("a tool of an MCP server does not keep to its output schema");
        }
        Ok(secrets.redact_value(content::result(called, most)))
    }

    /// An error whose message is not longer than it may be; its secrets are gone already.
    fn shortened(&self, mut error: ActionError) -> ActionError {
        let end = head(&error.message, MAX_SAID).len();
        error.message.truncate(end);
        error
    }
}

/// The arguments, with the defaults of the manifest. Those of the server's schema are the server's.
fn with_defaults(call: &ActionCall) -> Map<String, Value> {
    let mut arguments = call.parameters.clone();
    let mut declared = call.tool.actions.iter();
    let declared = declared.find(|known| known.name == call.action.name);
    let properties = declared.map(|action| action.parameters.properties());
    for (name, property) in properties.into_iter().flatten() {
        if let (false, Some(default)) = (arguments.contains_key(name), property.get("default")) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    arguments
}

fn block_of(call: &ActionCall) -> Result<&Mcp, ActionError> {
    match &call.action.execute {
        Execute::Mcp(block) => Ok(block),
        _ => Err(ActionError::new(
            ActionFailure::Manifest,
            "this is not an `mcp` action",
        )),
    }
}

impl ActionRuntime for McpRuntime {
    fn initialize<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async move {
            let server = self.open(call, environment).await?;
            Ok(Arc::new(server) as Arc<dyn ActionSession>)
        })
    }

    fn completes_actions(&self) -> bool {
        true
    }

    fn preview(&self, mut preview: Preview<'_>) -> Result<Value, ActionError> {
        let mcp = block_of(preview.call)?;
        let transport = match mcp.transport {
            Some(McpTransport::Stdio) => "stdio",
            Some(McpTransport::Sse) => "sse",
            Some(McpTransport::StreamableHttp) => "streamable_http",
            None => "none",
        };
        let mut server = json!({"transport": transport});
        if let Some(command) = &mcp.command {
            server["command"] = preview.text(command)?.into();
            let args = mcp.args.iter().flatten();
            let args: Result<Vec<String>, ActionError> =
                args.map(|arg| preview.text(arg)).collect();
            server["args"] = args?.into();
            let mut env = Map::new();
            for (name, value) in &mcp.env {
                env.insert(name.clone(), preview.text(value)?.into());
            }
            server["env"] = env.into();
        }
        if mcp.url.is_some() {
            server["url"] = preview.url(mcp.url.as_ref())?;
            server["headers"] = preview.headers(&mcp.headers)?;
        }
        Ok(json!({
            "server": server,
            "tool": preview.call.action.name,
            "arguments": preview.call.parameters,
        }))
    }
}

impl ActionSession for TaskServer {
    fn holds_state(&self) -> bool {
        true
    }

    fn derived(&self) -> Vec<String> {
        self.catalog().names()
    }

    fn action(
        &self,
        name: &str,
        declared: Option<&Arc<ToolAction>>,
    ) -> Result<Option<Arc<ToolAction>>, ActionError> {
        match declared {
            None => Ok(self.catalog().derived(name)),
            Some(declared) => self.catalog().completed(declared).map(Some),
        }
    }

    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(self.carry_out(call))
    }

    fn teardown<'a>(
        &'a self,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async move {
            let connection = self.current.lock().await.take();
            if let Some(connection) = connection {
                connection.close().await;
            }
            Ok(())
        })
    }
}
