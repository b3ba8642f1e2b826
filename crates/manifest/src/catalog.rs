//! Catalogs: tools, agents, triggers and schedules that know each other, and what is wrong between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofhouse_source::{Diagnostic, DiagnosticSeverity, Span, did_you_mean};

use super::agent::{Agent, Binding, Capability, MiddlewareStep, StepAction};
use super::bundle::{Bundle, Manifest};
use super::model::Tool;
use super::reach::{self, ReachableFunctions};
use super::triggers::{EventTrigger, Schedule};

/// The manifests that are there, from one file or many.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    tools: Vec<Arc<Tool>>,
    agents: Vec<Arc<Agent>>,
    triggers: Vec<Arc<EventTrigger>>,
    schedules: Vec<Arc<Schedule>>,
}

fn count<T>(all: &[Arc<T>], is_it: impl Fn(&T) -> bool) -> usize {
    all.iter().filter(|one| is_it(one)).count()
}

/// What a reference names.
#[derive(Debug, Clone)]
pub enum Referent {
    /// A tool.
    Tool(Arc<Tool>),
    /// Another agent.
    Agent(Arc<Agent>),
}

impl Catalog {
    /// Adds the manifests of a file.
    ///
    /// ```
    /// use proofhouse_manifest::{Bundle, Catalog};
    ///
    /// let (bundle, _) = Bundle::read(r#"
    /// kind: commonagents.info/v1beta2/agent
    /// namespace: demo
    /// name: clerk
    /// description: Answers.
    /// prompt: You answer questions.
    /// capabilities: {notes: "*"}
    /// "#);
    /// let mut catalog = Catalog::default();
    /// catalog.add(&bundle);
    /// let findings = catalog.check(bundle.agents().next().unwrap());
    /// assert_eq!(findings[0].code, "TM-020");
    /// ```
    pub fn add(&mut self, bundle: &Bundle) {
        for manifest in &bundle.manifests {
            match manifest {
                Manifest::Tool(tool) => self.tools.push(Arc::new(tool.clone())),
                Manifest::Agent(agent) => self.agents.push(Arc::new(agent.clone())),
                Manifest::Trigger(trigger) => self.triggers.push(Arc::new(trigger.clone())),
                Manifest::Schedule(schedule) => self.schedules.push(Arc::new(schedule.clone())),
                Manifest::Other(_) => {}
            }
        }
    }

    /// Adds a tool that stands in no file.
    pub fn add_tool(&mut self, tool: Tool) {
        self.tools.push(Arc::new(tool));
    }

    /// The agents.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.iter()
    }

    /// The triggers.
    pub fn triggers(&self) -> impl Iterator<Item = &Arc<EventTrigger>> {
        self.triggers.iter()
    }

    /// The schedules.
    pub fn schedules(&self) -> impl Iterator<Item = &Arc<Schedule>> {
        self.schedules.iter()
    }

    /// What is wrong between the manifests of a file and those of the catalog.
    #[must_use]
    pub fn check_all(&self, bundle: &Bundle) -> Vec<Diagnostic> {
        let agents = bundle.agents().flat_map(|agent| self.check(agent));
        let triggers = bundle.triggers().flat_map(|one| self.check_trigger(one));
        let schedules = bundle.schedules().flat_map(|one| self.check_schedule(one));
        let twice = self.check_names(bundle);
        agents
            .chain(triggers)
            .chain(schedules)
            .chain(twice)
            .collect()
    }

    /// What of a file is there more than once. A copy that was forgotten must not stand in for the one that is looked at.
    fn check_names(&self, bundle: &Bundle) -> Vec<Diagnostic> {
        let mut seen = BTreeSet::new();
        let mut findings = Vec::new();
        for manifest in &bundle.manifests {
            let (kind, namespace, name) = match manifest {
                Manifest::Tool(one) => ("tool", &one.namespace, &one.name),
                Manifest::Agent(one) => ("agent", &one.namespace, &one.name),
                Manifest::Trigger(one) => ("trigger", &one.namespace, &one.name),
                Manifest::Schedule(one) => ("schedule", &one.namespace, &one.name),
                Manifest::Other(_) => continue,
            };
            let is_it = |of: &str, its: &str| of == namespace && its == name;
            let count = match kind {
                "tool" => count(&self.tools, |one| is_it(&one.namespace, &one.name)),
                "agent" => count(&self.agents, |one| is_it(&one.namespace, &one.name)),
                "trigger" => count(&self.triggers, |one| is_it(&one.namespace, &one.name)),
                _ => count(&self.schedules, |one| is_it(&one.namespace, &one.name)),
            };
            if count > 1 && seen.insert((kind, namespace, name)) {
                findings.push(Diagnostic {
                    severity: DiagnosticSeverity::Warning,
                    code: "TM-032",
                    path: None,
                    span: None,
                    message: format!(
                        "the {kind} `{namespace}/{name}` is defined {count} times; the first that is read is used"
                    ),
                    help: Some("remove the others, or give them other names".to_owned()),
                });
            }
        }
        findings
    }

    /// The tools.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter()
    }

    /// What a reference of an agent in `namespace` names: `name`, best in the same namespace, or
    /// `namespace/name`.
    #[must_use]
    pub fn find(&self, namespace: &str, reference: &str) -> Option<Referent> {
        let (wanted, name) = match reference.split_once('/') {
            Some((wanted, name)) => (wanted, name),
            None => (namespace, reference),
        };
        let anywhere = !reference.contains('/');
        let near = |of: &str, its: &str, any: bool| its == name && (any || of == wanted);
        for any in [false, true] {
            if any && !anywhere {
                break;
            }
            let mut tools = self.tools.iter();
            if let Some(tool) = tools.find(|tool| near(&tool.namespace, &tool.name, any)) {
                return Some(Referent::Tool(Arc::clone(tool)));
            }
            let mut agents = self.agents.iter();
            if let Some(agent) = agents.find(|agent| near(&agent.namespace, &agent.name, any)) {
                return Some(Referent::Agent(Arc::clone(agent)));
            }
        }
        None
    }

    /// What is wrong between an agent and the tools and agents it names.
    #[must_use]
    pub fn check(&self, agent: &Agent) -> Vec<Diagnostic> {
        let mut check = CatalogCheck {
            catalog: self,
            agent,
            functions: ReachableFunctions::of(self, agent),
            findings: Vec::new(),
        };
        for (reference, grant) in &agent.capabilities {
            check.grant(reference, grant.capability.as_ref(), grant.span);
        }
        let guardrails = &agent.guardrails;
        check.steps(guardrails.before.iter().chain(&guardrails.after));
        check.findings
    }
}

struct CatalogCheck<'a> {
    catalog: &'a Catalog,
    agent: &'a Agent,
    functions: ReachableFunctions,
    findings: Vec<Diagnostic>,
}

impl CatalogCheck<'_> {
    fn push(
        &mut self,
        severity: DiagnosticSeverity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) {
        self.findings.push(Diagnostic {
            severity,
            code,
            path: None,
            span: Some(span),
            message,
            help,
        });
    }

    fn error(&mut self, code: &'static str, span: Span, message: String, help: Option<String>) {
        self.push(DiagnosticSeverity::Error, code, span, message, help);
    }

    fn find(&mut self, reference: &str, span: Span) -> Option<Referent> {
        let found = self.catalog.find(&self.agent.namespace, reference);
        if found.is_none() {
            let tools = self.catalog.tools.iter().map(|tool| tool.name.as_str());
            let agents = self.catalog.agents.iter().map(|agent| agent.name.as_str());
            let help = match did_you_mean(reference, tools.chain(agents)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "give the file that has it, too".to_owned(),
            };
            let message = format!("there is no tool or agent `{reference}`");
            self.error("TM-020", span, message, Some(help));
        }
        found
    }

    fn grant(&mut self, reference: &str, capability: Option<&Capability>, span: Span) {
        let nothing = Capability::default();
        let rules = capability.unwrap_or(&nothing);
        match self.find(reference, span) {
            Some(Referent::Tool(tool)) => {
                self.bindings_of(&tool, &rules.bindings, span, rules.include.as_deref());
                self.names(&tool, rules, span);
                for (event, name) in reach::unbound(&tool, rules) {
                    let message = format!(
                        "the event `{event}` of `{reference}` needs `{name}`, which has neither a binding nor a default"
                    );
                    let help = Some(format!("add `bindings: {{{name}: …}}`"));
                    self.push(DiagnosticSeverity::Warning, "TM-035", span, message, help);
                }
            }
            Some(Referent::Agent(other)) => {
                let declared = other.parameters.properties();
                for (name, _) in &rules.bindings {
                    if name != "message" && !declared.contains_key(name) {
                        self.undeclared(name, &other.name, declared.keys(), span);
                    }
                }
                let unbound = declared.iter().filter(|(name, schema)| {
                    schema
                        .get("require_binding")
                        .is_some_and(|flag| flag == true)
                        && !rules.bindings.iter().any(|(bound, _)| bound == *name)
                });
                for (name, _) in unbound {
                    self.unbound(name, &other.name, span);
                }
            }
            None => {}
        }
        let steps = rules
            .before_first
            .iter()
            .chain(&rules.before)
            .chain(&rules.after);
        self.steps(steps);
    }

    fn undeclared<'n>(
        &mut self,
        name: &str,
        of: &str,
        known: impl Iterator<Item = &'n String>,
        span: Span,
    ) {
        let near = did_you_mean(name, known.map(String::as_str));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        self.error(
            "TM-021",
            span,
            format!("`{of}` has no parameter `{name}`"),
            help,
        );
    }

    fn unbound(&mut self, name: &str, of: &str, span: Span) {
        let message = format!("`{name}` of `{of}` needs a binding");
        let help = Some(format!("add `bindings: {{{name}: …}}`"));
        self.error("TM-022", span, message, help);
    }

    /// Bindings of a tool's parameters: declared, and all there that must be.
    fn bindings_of(
        &mut self,
        tool: &Tool,
        bindings: &[(String, Binding)],
        span: Span,
        include: Option<&[String]>,
    ) {
        // What a backend derives is only known when it is asked.
        let derives = !tool.deriving().is_empty();
        let included = |name: &str| include.is_none_or(|list| list.iter().any(|one| one == name));
        let mut declared: BTreeSet<String> = BTreeSet::new();
        let mut needed: BTreeSet<String> = BTreeSet::new();
        let actions = tool.actions.iter().filter(|action| included(&action.name));
        let of_actions = actions.map(|action| &action.parameters);
        let events = tool.events.iter().filter(|event| included(&event.name));
        let of_events = events.filter_map(|event| match &event.parameters {
            super::EventParameters::Schema(schema) => Some(schema),
            _ => None,
        });
        let schemas = of_actions.chain(of_events).chain([&tool.parameters]);
        for (name, schema) in schemas.flat_map(super::ParameterSchema::properties) {
            declared.insert(name.clone());
            let flag = schema.get("require_binding");
            if flag.is_some_and(|flag| flag == true) {
                needed.insert(name.clone());
            }
        }
        let completed = tool
            .actions
            .iter()
            .any(|action| action.execute.kind().is_described_by_backend());
        for (name, _) in bindings {
            if !derives && !completed && !declared.contains(name) {
                self.undeclared(name, &tool.name, declared.iter(), span);
            }
        }
        for name in needed {
            if !bindings.iter().any(|(bound, _)| *bound == name) {
                self.unbound(&name, &tool.name, span);
            }
        }
    }

    /// `include` and `match` name actions and events.
    fn names(&mut self, tool: &Tool, rules: &Capability, span: Span) {
        if !tool.deriving().is_empty() {
            return;
        }
        let known: Vec<&str> = tool
            .actions
            .iter()
            .map(|action| action.name.as_str())
            .chain(tool.events.iter().map(|event| event.name.as_str()))
            .collect();
        let included = rules.include.iter().flatten().map(|name| (name, span));
        let steps = rules
            .before_first
            .iter()
            .chain(&rules.before)
            .chain(&rules.after);
        let matched = steps.filter_map(|step| Some((step.matches.as_ref()?, step.span)));
        for (name, span) in included.chain(matched).collect::<Vec<_>>() {
            if !known.contains(&name.as_str()) {
                let near = did_you_mean(name, known.iter().copied());
                let help = near.map(|near| format!("did you mean `{near}`?"));
                let message = format!("`{}` has no action or event `{name}`", tool.name);
                self.error("TM-026", span, message, help);
            }
        }
    }

    fn steps<'s>(&mut self, steps: impl Iterator<Item = &'s MiddlewareStep>) {
        for step in steps {
            for name in self.functions.missing(step) {
                let near = did_you_mean(name, self.functions.known());
                let help = match near {
                    Some(near) => Some(format!("did you mean `{near}`?")),
                    None => {
                        let begin = format!("{name}_");
                        let its = self.functions.known().filter(|one| one.starts_with(&begin));
                        let its: Vec<String> = its.map(|one| format!("`{one}`")).collect();
                        (!its.is_empty()).then(|| format!("its functions are {}", its.join(", ")))
                    }
                };
                let message =
                    format!("the agent has no function `{name}`, so no call of it is ever counted");
                self.push(
                    DiagnosticSeverity::Warning,
                    "TM-036",
                    step.span,
                    message,
                    help,
                );
            }
            let StepAction::Invoke {
                tool,
                action,
                bindings,
            } = &step.action
            else {
                continue;
            };
            let Some(Referent::Tool(found)) = self.find(tool, step.span) else {
                continue;
            };
            let mut actions = found.actions.iter();
            let known = match action {
                Some(name) => actions.any(|known| known.name == *name),
                None => found.actions.len() == 1,
            };
            if !known && found.deriving().is_empty() {
                let message = match action {
                    Some(name) => format!("`{tool}` has no action `{name}`"),
                    None => format!("`{tool}` has several actions; say which: `{tool}:action`"),
                };
                self.error("TM-026", step.span, message, None);
                continue;
            }
            let only = action.clone().map(|action| vec![action]);
            self.bindings_of(&found, bindings, step.span, only.as_deref());
        }
    }
}
