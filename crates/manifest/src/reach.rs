//! What can never happen between an agent and its tools: polls without their parameters, rules about calls that nobody
//! can make.

use std::collections::BTreeSet;

use proofhouse_expr::Program;

use super::agent::{Agent, Capability, MiddlewareStep, StepAction};
use super::catalog::{Catalog, Referent};
use super::execute::http::HttpCall;
use super::interpolate::Root;
use super::model::{Receive, Tool};

/// The parameters that the polls and channels of a tool need and that nobody gives them, each with its event.
pub(super) fn unbound<'t>(tool: &'t Tool, rules: &Capability) -> Vec<(&'t str, String)> {
    let is_included = |name: &String| match &rules.include {
        Some(list) => list.contains(name),
        None => true,
    };
    let is_given = |name: &str| {
        let declared = tool.parameters.properties().get(name);
        rules.bindings.iter().any(|(bound, _)| bound == name)
            || declared.is_some_and(|schema| schema.get("default").is_some())
    };
    let mut found = Vec::new();
    for event in tool.events.iter().filter(|event| is_included(&event.name)) {
        let calls: Vec<&HttpCall> = match &event.receive {
            Receive::Webhook(_) => continue,
            Receive::Subscription(one) => {
                let calls = [Some(&one.subscribe), one.unsubscribe.as_ref()];
                calls.into_iter().flatten().collect()
            }
            Receive::Poll(one) => vec![&one.call],
        };
        let references = calls.into_iter().flat_map(HttpCall::references);
        let of_parameters = references.filter(|reference| reference.root == Root::Parameters);
        let names = of_parameters.filter_map(|reference| reference.path.first().cloned());
        let detected = match &event.receive {
            Receive::Poll(one) => detected_by(&one.detect),
            Receive::Webhook(_) | Receive::Subscription(_) => Vec::new(),
        };
        let names = names.chain(detected);
        let missing: BTreeSet<String> = names.filter(|name| !is_given(name)).collect();
        found.extend(missing.into_iter().map(|name| (event.name.as_str(), name)));
    }
    found
}

/// The parameters without which `detect` fails.
fn detected_by(detect: &Program) -> Vec<String> {
    let fields = detect.fields_of("parameters").into_iter();
    // Whoever asks whether one is there does without it.
    let needed =
        fields.filter(|name| !detect.source().contains(&format!("has(parameters.{name})")));
    needed.map(str::to_owned).collect()
}

/// The functions that an agent can call, as far as that can be known without asking a backend.
pub(super) struct ReachableFunctions {
    known: BTreeSet<String>,
    /// What the functions of tools begin with whose actions only their backends know.
    derived: Vec<String>,
}

impl ReachableFunctions {
    pub(super) fn of(catalog: &Catalog, agent: &Agent) -> Self {
        let mut names = Self {
            known: agent.model_capabilities.iter().cloned().collect(),
            derived: Vec::new(),
        };
        for (reference, grant) in &agent.capabilities {
            let plain = |name: &str| name.replace('-', "_");
            match catalog.find(&agent.namespace, reference) {
                Some(Referent::Tool(tool)) if tool.deriving().is_empty() => {
                    let include = grant.capability.as_ref();
                    let include = include.and_then(|rules| rules.include.as_ref());
                    let is_one = tool.actions.len() == 1
                        || include.is_some_and(|include| {
                            let is_in = |name: &String| include.contains(name);
                            let actions = tool.actions.iter();
                            actions.filter(|action| is_in(&action.name)).count() == 1
                        });
                    if is_one {
                        names.known.insert(plain(reference));
                    }
                    let actions = tool.actions.iter();
                    let each = actions.map(|one| plain(&format!("{reference}_{}", one.name)));
                    names.known.extend(each);
                }
                Some(Referent::Agent(_)) => {
                    names.known.insert(plain(reference));
                }
                // What is not there is told by another rule.
                Some(Referent::Tool(_)) | None => names.derived.push(plain(reference)),
            }
        }
        names
    }

    /// The functions that a step counts calls of and that are not there.
    pub(super) fn missing<'s>(&self, step: &'s MiddlewareStep) -> BTreeSet<&'s str> {
        let program: Option<&Program> = match &step.action {
            StepAction::Assert(program) | StepAction::Transform(program) => Some(program),
            StepAction::Invoke { .. } => None,
        };
        let programs = program.into_iter().chain(&step.condition);
        let counted = programs.flat_map(|program| {
            let names = ["context", "c"].into_iter();
            names.flat_map(|name| program.fields_at(name, &["capabilities"]))
        });
        counted.filter(|name| !self.may_be(name)).collect()
    }

    fn may_be(&self, name: &str) -> bool {
        // Agents elsewhere are asked by functions that no manifest names, and long names are shortened.
        name == "_meta"
            || name.starts_with("ask_")
            || name.len() >= MAX_NAME
            || self.known.contains(name)
            || self
                .derived
                .iter()
                .any(|begin| name.starts_with(begin.as_str()))
    }

    pub(super) fn known(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(String::as_str)
    }
}

/// The longest name of a function.
const MAX_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::{Bundle, Catalog};

    const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: github-pr
description: Requests.
parameters: {properties: {feed_id: {type: string}}}
actions:
  - {name: open, description: Opens., execute: {cel: {expression: "1"}}}
  - {name: close, description: Closes., execute: {cel: {expression: "1"}}}
events:
  - name: new_item
    message: "{event.title}"
    receive:
      poll:
        method: GET
        url: "https://example.com/feed/{parameters.feed_id}"
        detect: "response.items.filter(i, i.published_at > poll.last_fetched_at)"
    parameters: {title: item.title}
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities:
  github-pr:
    before:
      - assert: "context.capabilities['github_pr'].count_successful < 3"
      - assert: "c.capabilities.github_pr_open.count_successful < 3 && context.capabilities._meta.count < 9"
"#;

    fn found(text: &str) -> Vec<(&'static str, Option<String>)> {
        let (bundle, findings) = Bundle::read(text);
        assert!(findings.is_empty(), "{findings:#?}");
        let mut catalog = Catalog::default();
        catalog.add(&bundle);
        let findings = catalog.check_all(&bundle).into_iter();
        findings.map(|found| (found.code, found.help)).collect()
    }

    #[test]
    fn what_can_never_happen_is_found() {
        let help = "add `bindings: {feed_id: …}`".to_owned();
        let codes = found(MANIFESTS);
        assert_eq!(codes[0], ("TM-035", Some(help)));
        assert_eq!(codes[1].0, "TM-036");
        let named = codes[1].1.as_deref().unwrap_or_default();
        assert!(named.contains("github_pr_"), "{named}");
        assert_eq!(codes.len(), 2, "{codes:?}");
    }

    #[test]
    fn what_a_poll_looks_for_needs_its_parameters_too() {
        let text = MANIFESTS
            .replace("feed/{parameters.feed_id}", "feed")
            .replace(
                "poll.last_fetched_at",
                "poll.last_fetched_at && i.feed == parameters.feed_id",
            );
        assert_eq!(found(&text)[0].0, "TM-035");
        let bound = text.replace(
            "  github-pr:\n    before:",
            "  github-pr:\n    bindings: {feed_id: \"'f1'\"}\n    before:",
        );
        assert_eq!(found(&bound)[0].0, "TM-036");
        let asked = text.replace(
            "i.feed == parameters.feed_id",
            "(!has(parameters.feed_id) || i.feed == parameters.feed_id)",
        );
        assert_eq!(found(&asked)[0].0, "TM-036");
    }

    #[test]
    fn what_can_happen_is_not() {
        let bound = MANIFESTS.replace(
            "  github-pr:\n    before:",
            "  github-pr:\n    include: [open, new_item]\n    bindings: {feed_id: \"'f1'\"}\n    before:",
        );
        assert_eq!(found(&bound), []);
        let default = bound.replace("{type: string}", "{type: string, default: f1}");
        let default = default.replace("    bindings: {feed_id: \"'f1'\"}\n", "");
        assert_eq!(found(&default), []);
    }
}
