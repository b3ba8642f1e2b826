//! What an agent may use in one task: its functions, the tools behind them, and their rules.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use proofhouse_expr::{EvaluateError, Program};
use proofhouse_manifest::interpolate::{ResolveError, Root, TemplateScope};
use proofhouse_manifest::{
    Agent, BackendKind, Binding, Capability, CelCall, Execute, ParameterSchema, Referent,
    StepAction, Tool, ToolAction,
};
use proofhouse_tools::functions::{Function, Functions, ToolReference};
use proofhouse_tools::runtime::{ActionError, ActionFailure, ActionResult, Environment, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

use super::context::{self, ExpressionScope, TaskContext};
use super::host::Host;
use crate::model::ToolSpec;
use crate::remote::{Card, RemoteAgent, Talk};

/// The action that stands for those of a capability that could not be listed: it lists them.
const CONNECT: &str = "connect";

/// How many backends are asked at once what they have. Each may be a program that is started.
const ASKED_AT_ONCE: usize = 8;

/// A capability that is being found out about.
type CapabilityLookup<'a> = BoxFuture<'a, Result<Granted, ActionError>>;

/// Everything an agent may use.
pub(super) struct Capabilities {
    list: Vec<Granted>,
    functions: Functions,
    /// Tools that only steps use.
    helpers: Vec<(String, ToolTask)>,
}

/// One capability.
pub(super) struct Granted {
    /// The reference of the manifest.
    pub(super) reference: String,
    pub(super) target: CapabilityTarget,
    pub(super) rules: Capability,
    actions: Vec<Arc<ToolAction>>,
    /// The actions that the model may call.
    included: Vec<String>,
    /// Whether that is all there is: a backend may not have told yet what it has.
    is_listed: bool,
}

/// What is behind a capability.
pub(super) enum CapabilityTarget {
    Tool(ToolTask),
    Agent(Arc<Agent>),
    Remote(Box<Remote>),
}

/// An agent elsewhere, and how far the conversation with it has come. Questions go one after the other.
pub(super) struct Remote {
    pub(super) agent: Arc<RemoteAgent>,
    /// Empty until it can be had.
    pub(super) card: tokio::sync::OnceCell<Card>,
    pub(super) talk: tokio::sync::Mutex<Talk>,
}

/// A function that can be called.
#[derive(Clone, Copy)]
pub(super) struct Callable<'a> {
    pub(super) function: &'a Function,
    pub(super) granted: &'a Granted,
}

impl Granted {
    /// A tool with what it has. If that cannot be found out now, calls find it out: nobody may need the tool.
    ///
    /// # Errors
    ///
    /// Returns an error when the program of its server is not there: whoever wrote its name wants to know now.
    async fn tool(
        reference: &str,
        task: ToolTask,
        rules: Capability,
        cancel: &CancellationToken,
    ) -> Result<Self, ActionError> {
        let listed = match list_actions(&task, &rules, cancel).await {
            Err(error) if error.failure == ActionFailure::Command => return Err(error),
            listed => listed,
        };
        let is_listed = listed.is_ok();
        let actions = listed.unwrap_or_else(|error| {
            let tool = task.tool();
            tracing::warn!(tool = %tool.name, %error, "what a tool has cannot be listed yet");
            let mut actions = tool.actions.clone();
            if !tool.deriving().is_empty() && !declares_connect(tool) {
                actions.push(connecting(&tool.description, &error));
            }
            actions
        });
        let mut granted = Self {
            reference: reference.to_owned(),
            target: CapabilityTarget::Tool(task),
            rules,
            actions: Vec::new(),
            included: Vec::new(),
            is_listed,
        };
        granted.has(actions);
        Ok(granted)
    }

    fn agent(reference: String, target: CapabilityTarget, rules: Capability, asked: &str) -> Self {
        let action = asking(asked);
        Self {
            reference,
            target,
            rules,
            included: vec![action.name.clone()],
            actions: vec![action],
            is_listed: true,
        }
    }

    fn has(&mut self, actions: Vec<Arc<ToolAction>>) {
        let names = actions.iter().map(|action| action.name.clone());
        let allowed = |name: &String| {
            let include = self.rules.include.as_ref();
            include.is_none_or(|list| list.contains(name))
        };
        self.included = names
            .filter(|name| allowed(name) || (!self.is_listed && name == CONNECT))
            .collect();
        self.actions = actions;
    }

    pub(super) fn has_rules(&self) -> bool {
        let rules = &self.rules;
        !(rules.before_first.is_empty() && rules.before.is_empty() && rules.after.is_empty())
    }
}

impl Callable<'_> {
    /// The names of what there is, if the function is the one that stands for what could not be listed.
    pub(super) async fn connect(
        &self,
        cancel: &CancellationToken,
    ) -> Option<Result<ActionResult, ActionError>> {
        let CapabilityTarget::Tool(task) = &self.granted.target else {
            return None;
        };
        if self.granted.is_listed
            || self.function.action != CONNECT
            || declares_connect(task.tool())
        {
            return None;
        }
        let actions = list_actions(task, &self.granted.rules, cancel).await;
        Some(actions.map(|actions| ActionResult {
            value: json!({"connected": true, "functions": actions.len()}),
            truncated: false,
        }))
    }
}

/// What a tool has. Its description or MCP server is asked, the first time.
async fn list_actions(
    task: &ToolTask,
    rules: &Capability,
    cancel: &CancellationToken,
) -> Result<Vec<Arc<ToolAction>>, ActionError> {
    match &rules.include {
        // Whoever names operations of a large API gets those, and need not search.
        Some(names) if derives_operations(task.tool()) => {
            task.actions_named(names, cancel.clone()).await
        }
        _ => task.actions(cancel.clone()).await,
    }
}

impl Capabilities {
    /// Finds out what there is. Descriptions and MCP servers are asked here, the first time.
    ///
    /// # Errors
    ///
    /// Returns an error when the program of a server is not there.
    pub(super) async fn new(
        host: &Host,
        agent: &Agent,
        environment: &Environment,
        cancel: &CancellationToken,
    ) -> Result<Self, ActionError> {
        // What is asked here ends with the first error that ends the listing.
        let listing = cancel.child_token();
        let mut tasks: Vec<ToolTask> = Vec::new();
        let mut asked: Vec<CapabilityLookup<'_>> = Vec::new();
        for (reference, grant) in &agent.capabilities {
            let rules = grant.capability.clone().unwrap_or_default();
            match host.inner.catalog.find(&agent.namespace, reference) {
                Some(Referent::Tool(tool)) => {
                    let task = tool_task(host, &tool, environment);
                    tasks.push(task.clone());
                    asked.push(Box::pin(Granted::tool(reference, task, rules, &listing)));
                }
                Some(Referent::Agent(other)) => {
                    let target = CapabilityTarget::Agent(Arc::clone(&other));
                    let granted =
                        Granted::agent(reference.clone(), target, rules, &other.description);
                    asked.push(Box::pin(std::future::ready(Ok(granted))));
                }
                // The catalog was checked when the task began.
                None => {}
            }
        }
        let remotes = host.inner.remotes.iter();
        for (_, remote) in remotes.filter(|(of, _)| *of == agent.name) {
            let listing = &listing;
            asked.push(Box::pin(
                async move { Ok(elsewhere(remote, listing).await) },
            ));
        }
        let list = match side_by_side(asked).await {
            Ok(list) => list,
            Err(error) => {
                listing.cancel();
                for error in tear_down(&tasks).await {
                    tracing::warn!(%error, "a tool could not be torn down");
                }
                return Err(error);
            }
        };
        let mut helpers: Vec<(String, ToolTask)> = Vec::new();
        for tool in invoked(agent) {
            let known = list.iter().any(|granted| granted.reference == tool)
                || helpers.iter().any(|(name, _)| *name == tool);
            if let (false, Some(Referent::Tool(found))) =
                (known, host.inner.catalog.find(&agent.namespace, &tool))
            {
                helpers.push((tool, tool_task(host, &found, environment)));
            }
        }
        Ok(Self {
            functions: functions(&list),
            list,
            helpers,
        })
    }

    /// Asks again what a capability has, after calls of these functions: by now its backend may have told. Whether
    /// anything changed.
    pub(super) async fn relist(
        &mut self,
        called: impl Iterator<Item = &str>,
        cancel: &CancellationToken,
    ) -> bool {
        let mut changed = false;
        for name in called {
            let function = self.functions.find(name);
            let Some(granted) = function.and_then(|of| self.list.get_mut(of.reference)) else {
                continue;
            };
            if let CapabilityTarget::Tool(task) = &granted.target
                && !granted.is_listed
                && task.can_list()
                && let Ok(actions) = list_actions(task, &granted.rules, cancel).await
            {
                granted.is_listed = true;
                granted.has(actions);
                changed = true;
            }
        }
        if changed {
            self.functions = functions(&self.list);
        }
        changed
    }

    /// The functions that the model sees.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.visible()
            .map(|function| ToolSpec {
                name: function.name.clone(),
                description: function.description.clone(),
                parameters: function.parameters.clone(),
            })
            .collect()
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.visible().map(|function| function.name.as_str())
    }

    fn visible(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| {
            let granted = self.list.get(function.reference);
            granted.is_some_and(|granted| granted.included.contains(&function.action))
        })
    }

    /// A function that the model may call.
    pub(super) fn find(&self, name: &str) -> Option<Callable<'_>> {
        let function = self.visible().find(|function| function.name == name)?;
        let granted = self.list.get(function.reference)?;
        Some(Callable { function, granted })
    }

    /// A tool that a step invokes, and the function name its use is noted under.
    pub(super) fn helper(&self, reference: &str, action: &str) -> Option<(&ToolTask, String)> {
        let granted = self
            .list
            .iter()
            .position(|granted| granted.reference == reference);
        if let Some(position) = granted
            && let CapabilityTarget::Tool(task) = &self.list[position].target
        {
            let name = self.functions.of(position, action);
            let name = name.map_or_else(
                || plain(reference, action),
                |function| function.name.clone(),
            );
            return Some((task, name));
        }
        let (_, task) = self.helpers.iter().find(|(name, _)| name == reference)?;
        let name = match task.tool().actions.len() {
            1 => plain(reference, ""),
            _ => plain(reference, action),
        };
        Some((task, name))
    }

    pub(super) fn granted(&self) -> impl Iterator<Item = &Granted> {
        self.list.iter()
    }

    /// All tools, for those who want to know what they hold.
    pub(super) fn tools(&self) -> Vec<ToolTask> {
        let granted = self
            .list
            .iter()
            .filter_map(|granted| match &granted.target {
                CapabilityTarget::Tool(task) => Some(task),
                CapabilityTarget::Agent(_) | CapabilityTarget::Remote(_) => None,
            });
        let helpers = self.helpers.iter().map(|(_, task)| task);
        granted.chain(helpers).cloned().collect()
    }

    /// Ends all tools.
    pub(super) async fn teardown(&self) -> Vec<ActionError> {
        tear_down(&self.tools()).await
    }
}

/// Finds out what capabilities have, several at once, so that one dead host is waited for once. They come in the order of the
/// manifest; the first error ends it.
async fn side_by_side(asked: Vec<CapabilityLookup<'_>>) -> Result<Vec<Granted>, ActionError> {
    let mut numbered: Vec<BoxFuture<'_, Result<(usize, Granted), ActionError>>> = Vec::new();
    for (at, asked) in asked.into_iter().enumerate() {
        numbered.push(Box::pin(async move { Ok((at, asked.await?)) }));
    }
    let mut running = stream::iter(numbered).buffer_unordered(ASKED_AT_ONCE);
    let mut listed = Vec::new();
    while let Some(one) = running.next().await {
        listed.push(one?);
    }
    listed.sort_by_key(|(at, _)| *at);
    Ok(listed.into_iter().map(|(_, granted)| granted).collect())
}

/// Ends tools, several at once, for the same reason.
async fn tear_down(tasks: &[ToolTask]) -> Vec<ActionError> {
    let mut ending: Vec<BoxFuture<'_, Vec<ActionError>>> = Vec::new();
    for task in tasks {
        ending.push(Box::pin(task.teardown()));
    }
    let mut ended = stream::iter(ending).buffered(ASKED_AT_ONCE);
    let mut errors = Vec::new();
    while let Some(more) = ended.next().await {
        errors.extend(more);
    }
    errors
}

/// Names the functions of all capabilities.
fn functions(list: &[Granted]) -> Functions {
    let hidden: Vec<Vec<&str>> = list
        .iter()
        .map(|granted| {
            let bindings = granted.rules.bindings.iter();
            bindings.map(|(name, _)| name.as_str()).collect()
        })
        .collect();
    let references: Vec<ToolReference<'_>> = list
        .iter()
        .zip(&hidden)
        .map(|(granted, hidden)| ToolReference {
            name: &granted.reference,
            description: match &granted.target {
                CapabilityTarget::Tool(task) => &task.tool().description,
                CapabilityTarget::Agent(agent) => &agent.description,
                CapabilityTarget::Remote(remote) => {
                    let card = remote.card.get();
                    card.map_or("An agent elsewhere.", |card| &card.description)
                }
            },
            actions: &granted.actions,
            hidden,
            // Other texts name the tools of a server as the server does.
            keeps_names: match &granted.target {
                CapabilityTarget::Tool(task) => {
                    let tool = task.tool();
                    let of_server = tool.actions.is_empty() && granted.is_listed;
                    of_server && tool.shared.of(BackendKind::Mcp).is_some()
                }
                CapabilityTarget::Agent(_) | CapabilityTarget::Remote(_) => false,
            },
        })
        .collect();
    Functions::new(&references)
}

/// An agent elsewhere. One that does not answer now is asked again when it is called, under the name of its host.
async fn elsewhere(agent: &Arc<RemoteAgent>, cancel: &CancellationToken) -> Granted {
    let card = tokio::sync::OnceCell::new();
    let (name, description) = match agent.card(cancel).await {
        Ok(found) => {
            let said = (found.name.clone(), found.description.clone());
            let _ = card.set(found);
            said
        }
        Err(error) => {
            tracing::warn!(%error, "an agent elsewhere does not say who it is");
            let description = "An agent elsewhere, which could not be asked who it is.".to_owned();
            (agent.known_as(), description)
        }
    };
    let remote = Remote {
        agent: Arc::clone(agent),
        card,
        talk: tokio::sync::Mutex::default(),
    };
    let target = CapabilityTarget::Remote(Box::new(remote));
    Granted::agent(
        format!("ask-{name}"),
        target,
        Capability::default(),
        &description,
    )
}

fn tool_task(host: &Host, tool: &Arc<Tool>, environment: &Environment) -> ToolTask {
    let inner = &host.inner;
    let task = ToolTask::new(
        Arc::clone(tool),
        environment.clone(),
        inner.runtimes.clone(),
        inner.limits.clone(),
    );
    match &inner.observer {
        Some(observer) => task.with_observer(Arc::clone(observer)),
        None => task,
    }
}

/// Whether an OpenAPI description says what a tool has.
fn derives_operations(tool: &Tool) -> bool {
    let blocks = tool.deriving();
    let mut blocks = blocks.iter();
    blocks.any(|block| matches!(block, Execute::OpenApi(_)))
}

fn plain(reference: &str, action: &str) -> String {
    let name = match action {
        "" => reference.to_owned(),
        _ => format!("{reference}_{action}"),
    };
    name.replace('-', "_")
}

/// Another agent as an action: one message, and what it says is the result.
fn asking(description: &str) -> Arc<ToolAction> {
    let schema = json!({
        "type": "object",
        "properties": {"message": {"type": "string", "description": "What to ask the agent."}},
        "required": ["message"],
        "additionalProperties": false,
    });
    stand_in("message", description.to_owned(), schema)
}

/// Whether a tool has an action of its own of that name.
fn declares_connect(tool: &Tool) -> bool {
    tool.actions.iter().any(|action| action.name == CONNECT)
}

/// What could not be listed, as one action that tries again.
fn connecting(description: &str, error: &ActionError) -> Arc<ToolAction> {
    let description = format!(
        "{description}\nIts functions cannot be listed yet ({error}). Call this to connect; they are there afterwards."
    );
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    stand_in(CONNECT, description, schema)
}

/// An action that the task carries out itself; nothing evaluates it.
fn stand_in(name: &str, description: String, schema: Value) -> Arc<ToolAction> {
    Arc::new(ToolAction {
        name: name.to_owned(),
        description,
        parameters: ParameterSchema::given(schema),
        execute: Execute::Cel(CelCall {
            expression: Program::compile("null").unwrap_or_else(|_| unreachable!("`null` is CEL")),
        }),
    })
}

/// The tools that the steps of an agent invoke.
fn invoked(agent: &Agent) -> Vec<String> {
    steps(agent)
        .filter_map(|step| match &step.action {
            StepAction::Invoke { tool, .. } => Some(tool.clone()),
            _ => None,
        })
        .collect()
}

/// All steps of an agent.
fn steps(agent: &Agent) -> impl Iterator<Item = &proofhouse_manifest::MiddlewareStep> {
    let rules = agent
        .capabilities
        .iter()
        .filter_map(|(_, grant)| grant.capability.as_ref())
        .flat_map(|rules| {
            rules
                .before_first
                .iter()
                .chain(&rules.before)
                .chain(&rules.after)
        });
    let guardrails = &agent.guardrails;
    rules.chain(&guardrails.before).chain(&guardrails.after)
}

/// The functions whose use any expression of the agent reads.
pub(super) fn functions_read(agent: &Agent) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for step in steps(agent) {
        match &step.action {
            StepAction::Assert(program) | StepAction::Transform(program) => {
                sources.push(program.source().to_owned());
            }
            StepAction::Invoke { bindings, .. } => sources.extend(binding_sources(bindings)),
        }
        sources.extend(
            step.condition
                .iter()
                .map(|program| program.source().to_owned()),
        );
    }
    for (_, grant) in &agent.capabilities {
        if let Some(rules) = &grant.capability {
            sources.extend(binding_sources(&rules.bindings));
        }
    }
    sources.extend(
        agent
            .exposes
            .iter()
            .map(|(_, program)| program.source().to_owned()),
    );
    sources
        .iter()
        .flat_map(|source| context::functions_read(source))
        .collect()
}

fn binding_sources(bindings: &[(String, Binding)]) -> impl Iterator<Item = String> {
    bindings.iter().filter_map(|(_, binding)| match binding {
        Binding::Cel(program) => Some(program.source().to_owned()),
        _ => None,
    })
}

/// Why a bound parameter has no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum BindingError {
    #[error("the binding of `{name}` failed: {source}")]
    Cel { name: String, source: EvaluateError },
    #[error("the binding of `{name}` failed: {source}")]
    Template { name: String, source: ResolveError },
}

/// The values of bindings now.
pub(super) fn bound(
    bindings: &[(String, Binding)],
    context: &TaskContext,
    scope: ExpressionScope<'_>,
    now: &str,
    environment: &Environment,
    runtime: &Value,
) -> Result<Map<String, Value>, BindingError> {
    let mut values = Map::new();
    for (name, binding) in bindings {
        let value = match binding {
            Binding::Literal(text) => Value::String(text.clone()),
            Binding::Cel(program) => {
                let variables = context::variables(program.source(), context, scope, now, runtime);
                let result = program.evaluate(&variables);
                result.map_err(|source| BindingError::Cel {
                    name: name.clone(),
                    source,
                })?
            }
            Binding::Template(template) => {
                let mut templates = TemplateScope::default();
                if let Some(mount) = environment.root(Root::Mount) {
                    templates.set(Root::Mount, mount.clone());
                }
                let value = templates.value(template);
                let value = value.map_err(|source| BindingError::Template {
                    name: name.clone(),
                    source,
                })?;
                value.into_exposed()
            }
        };
        values.insert(name.clone(), value);
    }
    Ok(values)
}
