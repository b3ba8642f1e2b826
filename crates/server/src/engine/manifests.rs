//! The manifests an engine runs with: one snapshot at a time, compiled for routing, swapped as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};

use proofhouse_agent::task::Host;
use proofhouse_manifest::{Agent, Capability, Catalog, Receive, Referent, Tool, ToolEvent};
use proofhouse_store::model::{TaskRecord, TaskState, ToolRef};
use proofhouse_tools::receive::filter::{CompiledFilter, ParameterTypes};
use proofhouse_tools::receive::webhook::WebhookKeys;
use proofhouse_wire::sync::{read, write};
use serde::Serialize;

use super::ingest::ToolAddress;
use super::options::EngineOptions;

/// Something wrong with a file of manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestProblem {
    /// The file, as it is called below the directory.
    pub file: String,
    /// Where in it, from 1; 0 if that is not known.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// `error` or `warning`.
    pub severity: String,
    /// The code of the rule.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// A file of manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LoadedFile {
    /// Its name below the directory.
    pub path: String,
    /// Whether an older version is in use, because this one has errors.
    pub stale: bool,
    /// What is in use of it: kind, namespace and name.
    pub holds: Vec<(String, String, String)>,
    /// What is wrong with it, and what is worth a warning.
    pub problems: Vec<ManifestProblem>,
}

/// The manifests that are in use, and what is wrong with those that are not.
pub struct Manifests {
    current: RwLock<Arc<ManifestSnapshot>>,
}

/// One version of the manifests.
pub struct ManifestSnapshot {
    /// Counts the versions of this process.
    pub version: u64,
    /// The host of tasks with them.
    pub host: Host,
    /// The files, with what is in them and what is wrong with them.
    pub files: Vec<LoadedFile>,
    /// The agents whose tasks can go on, each as `namespace/name`.
    able: Arc<[String]>,
    tools: BTreeMap<ToolRef, CompiledTool>,
    pub(super) sources: BTreeMap<String, WebhookKeys>,
}

/// A tool, ready for routing.
pub(super) struct CompiledTool {
    pub(super) tool: Arc<Tool>,
    pub(super) types: ParameterTypes,
    pub(super) filters: BTreeMap<String, CompiledFilter>,
    pub(super) keys: WebhookKeys,
}

impl CompiledTool {
    /// Whether it is sent events, and does not only ask for them.
    pub(super) fn is_sent_events(&self) -> bool {
        let mut events = self.tool.events.iter();
        events.any(|event| !matches!(event.receive, Receive::Poll(_)))
    }

    pub(super) fn event(&self, name: &str) -> Option<&ToolEvent> {
        self.tool.events.iter().find(|event| event.name == name)
    }
}

impl Manifests {
    pub(super) fn new(snapshot: ManifestSnapshot) -> Self {
        Self {
            current: RwLock::new(Arc::new(snapshot)),
        }
    }

    /// The manifests as they are now.
    #[must_use]
    pub fn current(&self) -> Arc<ManifestSnapshot> {
        let current = read(&self.current);
        Arc::clone(&current)
    }

    pub(super) fn swap(&self, snapshot: ManifestSnapshot) {
        let mut current = write(&self.current);
        *current = Arc::new(snapshot);
    }
}

impl ManifestSnapshot {
    pub(super) fn new(
        version: u64,
        catalog: Catalog,
        files: Vec<LoadedFile>,
        options: &EngineOptions,
    ) -> Self {
        let mut tools = BTreeMap::new();
        for tool in catalog.tools() {
            let filters = tool.events.iter();
            let filters = filters.map(|event| (event.name.clone(), CompiledFilter::of(event)));
            let keys = options.webhook_keys(tool, &catalog);
            let compiled = CompiledTool {
                types: ParameterTypes::of(tool),
                filters: filters.collect(),
                keys: keys.unwrap_or_else(|_| WebhookKeys::missing(tool)),
                tool: Arc::clone(tool),
            };
            // The first one of a name is the one that references find.
            tools.entry(tool_ref(tool)).or_insert(compiled);
        }
        let mut sources = BTreeMap::new();
        for trigger in catalog.triggers() {
            let kind = &trigger.source.kind;
            let source = options.webhook_source(kind);
            let keys = source.as_ref().map(WebhookKeys::of_source);
            sources
                .entry(kind.clone())
                .or_insert_with(|| keys.unwrap_or_default());
        }
        let host = options.host_of(catalog);
        let able = host.agents().filter(|agent| host.can_start(agent).is_ok());
        Self {
            version,
            able: able
                .map(|agent| full_name(&agent.namespace, &agent.name))
                .collect(),
            host,
            files,
            tools,
            sources,
        }
    }

    /// The tools, agents, triggers and schedules.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        self.host.catalog()
    }

    /// A tool by its full name.
    pub(super) fn tool(&self, tool: &ToolRef) -> Option<&CompiledTool> {
        self.tools.get(tool)
    }

    /// The tools that are meant by an address: in its namespace, or in all of them if it says none.
    pub(super) fn named<'s>(
        &'s self,
        address: ToolAddress<'s>,
    ) -> impl Iterator<Item = &'s CompiledTool> {
        let tools = self.tools.iter();
        tools
            .filter(move |(tool, _)| tool.name == address.tool && address.has(&tool.namespace))
            .map(|(_, compiled)| compiled)
    }

    /// Whether a trigger that is meant by an address listens to it.
    pub(super) fn has_trigger(&self, address: ToolAddress<'_>) -> bool {
        let mut triggers = self.catalog().triggers();
        triggers.any(|one| one.source.kind == address.tool && address.has(&one.namespace))
    }

    /// The namespaces whose tools or triggers hear what is posted to an address.
    pub(super) fn namespaces_at(&self, address: ToolAddress<'_>) -> BTreeSet<String> {
        let triggers = self.catalog().triggers();
        let triggers = triggers.filter(|one| one.source.kind == address.tool);
        let triggers = triggers.map(|one| one.namespace.clone());
        let tools = self.named(address);
        let tools = tools.filter(|compiled| compiled.is_sent_events());
        let tools = tools.map(|compiled| compiled.tool.namespace.to_string());
        tools
            .chain(triggers)
            .filter(|one| address.has(one))
            .collect()
    }

    /// An agent by its full name.
    pub(super) fn agent(&self, namespace: &str, name: &str) -> Option<Arc<Agent>> {
        self.host.find(namespace, &full_name(namespace, name))
    }

    /// The agents whose tasks can go on, each as `namespace/name`.
    pub(crate) fn able(&self) -> Arc<[String]> {
        Arc::clone(&self.able)
    }

    /// Why a task cannot go on with these manifests, if it cannot.
    pub(crate) fn why_stuck(&self, task: &TaskRecord) -> Option<String> {
        let (namespace, name) = (&task.agent_namespace, &task.agent_name);
        let full = full_name(namespace, name);
        if task.state == TaskState::Ended || self.able.contains(&full) {
            return None;
        }
        match self.agent(namespace, name) {
            None => Some(format!("there is no agent `{full}` any more")),
            Some(agent) => {
                let error = self.host.can_start(&agent).err()?;
                Some(format!("agent `{full}` cannot be started: {error}"))
            }
        }
    }

    /// An agent and its tools as they are written, to see whether they have changed.
    pub(super) fn definitions(&self, namespace: &str, name: &str) -> Option<String> {
        let agent = self.agent(namespace, name)?;
        let references = agent.capabilities.iter().map(|(reference, _)| reference);
        let found = references.map(|reference| self.catalog().find(namespace, reference));
        let tools = found.filter_map(|found| match found? {
            Referent::Tool(tool) => Some(tool),
            Referent::Agent(_) => None,
        });
        Some(format!("{agent:?}{:?}", tools.collect::<Vec<_>>()))
    }

    /// What an agent calls a tool, and the rules of that capability.
    pub(super) fn capability<'a>(
        &self,
        agent: &'a Agent,
        tool: &ToolRef,
    ) -> Option<(&'a str, Option<&'a Capability>)> {
        let mut capabilities = agent.capabilities.iter();
        let (reference, grant) = capabilities
            .find(|(reference, _)| self.resolve(agent, reference).as_ref() == Some(tool))?;
        Some((reference, grant.capability.as_ref()))
    }

    /// The tool that an agent means by a reference.
    pub(super) fn resolve(&self, agent: &Agent, reference: &str) -> Option<ToolRef> {
        match self.catalog().find(&agent.namespace, reference)? {
            Referent::Tool(tool) => Some(tool_ref(&tool)),
            Referent::Agent(_) => None,
        }
    }
}

pub(super) fn full_name(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

pub(super) fn tool_ref(tool: &Tool) -> ToolRef {
    ToolRef::new(&*tool.namespace, &*tool.name)
}
