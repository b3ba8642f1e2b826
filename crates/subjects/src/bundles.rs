//! Where agents come from: manifests that are read, checked one by one and with each other.

use std::collections::HashSet;
use std::path::PathBuf;

use proofhouse_manifest::{Agent, Bundle, BundleLimits, Catalog, Manifest};
use proofhouse_source::{Diagnostic, DiagnosticSeverity, did_you_mean};
use proofhouse_wire::files::{CollectError, DOCUMENTS, collect};

use crate::Notice;

/// The agent that needs no manifest.
const ASSISTANT: &str = include_str!("assistant.yaml");

/// Why the manifests of an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The files cannot be found.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// Files cannot be used; what is wrong with them was told before.
    #[error("{unusable} of {files} file{} cannot be used", if *.files == 1 { "" } else { "s" })]
    Unusable {
        /// How many.
        unusable: usize,
        /// Of how many.
        files: usize,
    },
    /// No manifest is of an agent.
    #[error("there is no agent manifest")]
    NoAgent,
    /// Nothing says which agent is meant.
    #[error("there are several agents; name one with --agent: {}", .0.join(", "))]
    Several(Vec<String>),
    /// No agent has this name.
    #[error("there is no agent `{name}`{}", .near.as_ref().map(|near| format!(", did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// The name that was given.
        name: String,
        /// What may have been meant.
        near: Option<String>,
    },
    /// Agents of several namespaces have this name.
    #[error("several agents have the name `{name}`; write the namespace, too: {first}")]
    Ambiguous {
        /// The name that was given.
        name: String,
        /// The first of them, with its namespace.
        first: String,
    },
}

impl BundleError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Collect(_) | Self::Several(_) | Self::Unknown { .. } | Self::Ambiguous { .. } => {
                true
            }
            Self::Unusable { .. } | Self::NoAgent => false,
        }
    }
}

/// What is wrong between the manifests of several files: for each file, in order, its findings.
#[must_use]
pub fn across(bundles: &[&Bundle]) -> Vec<Vec<Diagnostic>> {
    let mut catalog = Catalog::default();
    for bundle in bundles {
        catalog.add(bundle);
    }
    let of_file = |bundle: &&Bundle| catalog.check_all(bundle);
    bundles.iter().map(of_file).collect()
}

/// Reads the manifests of files and directories, or that of the assistant if none is named. What is wrong is told, all
/// of it; one file that cannot be used is an error, because what it lacks would be missed later.
///
/// # Errors
///
/// Returns an error when files are not there or cannot be used.
pub fn read(paths: &[PathBuf], notify: &dyn Fn(Notice)) -> Result<Vec<Bundle>, BundleError> {
    if paths.is_empty() {
        return Ok(vec![Bundle::read(ASSISTANT).0]);
    }
    let mut inputs = collect(paths, DOCUMENTS)?;
    let mut seen = HashSet::new();
    inputs.retain(|input| seen.insert(input.name()));
    let mut files = Vec::new();
    let mut unusable = 0;
    for input in &inputs {
        match input.read(BundleLimits::default().max_bytes) {
            Ok(text) => {
                let (bundle, findings) = Bundle::read(&text);
                files.push((input, text, bundle, findings));
            }
            Err(error) => {
                notify(Notice::Unreadable {
                    name: input.name(),
                    error,
                });
                unusable += 1;
            }
        }
    }
    let bundles: Vec<&Bundle> = files.iter().map(|(_, _, bundle, _)| bundle).collect();
    let between = across(&bundles);
    let mut read = Vec::new();
    for ((input, text, bundle, mut findings), more) in files.into_iter().zip(between) {
        findings.extend(more);
        let is_unset = !bundle.unset_variables.is_empty();
        unusable += usize::from(is_unset || is_unusable(&findings));
        sort(&mut findings);
        notify(Notice::Findings {
            name: input.name(),
            text,
            findings,
        });
        read.push(bundle);
    }
    match unusable {
        0 => Ok(read),
        _ => Err(BundleError::Unusable {
            unusable,
            files: inputs.len(),
        }),
    }
}

fn is_unusable(findings: &[Diagnostic]) -> bool {
    let mut severities = findings.iter().map(|finding| finding.severity);
    severities.any(|severity| severity == DiagnosticSeverity::Error)
}

/// Puts findings in the order of their places.
pub fn sort(findings: &mut [Diagnostic]) {
    findings.sort_by_key(|finding| finding.span.map(|span| (span.offset, span.length)));
}

/// The agent that is meant: the one of a name, or the only one that no other agent uses.
///
/// # Errors
///
/// Returns an error when there is none, or when it is not clear which.
pub fn chosen<'b>(
    bundles: &'b mut [Bundle],
    name: Option<&str>,
) -> Result<&'b mut Agent, BundleError> {
    let known: Vec<(String, String)> = bundles
        .iter()
        .flat_map(Bundle::agents)
        .map(|agent| (agent.namespace.clone(), agent.name.clone()))
        .collect();
    let wanted = match name {
        Some(name) => named(&known, name)?,
        None => {
            let used: HashSet<&str> = bundles
                .iter()
                .flat_map(Bundle::agents)
                .flat_map(|agent| {
                    let others = agent.capabilities.iter().map(|(name, _)| name.as_str());
                    others.filter(|other| last_part(other) != agent.name)
                })
                .map(last_part)
                .collect();
            let free = known
                .iter()
                .filter(|(_, name)| !used.contains(name.as_str()));
            match (free.collect::<Vec<_>>().as_slice(), known.as_slice()) {
                ([one], _) => (*one).clone(),
                ([], [one]) => one.clone(),
                (_, []) => return Err(BundleError::NoAgent),
                _ => {
                    let names = known.into_iter().map(|(_, name)| name);
                    return Err(BundleError::Several(names.collect()));
                }
            }
        }
    };
    let manifests = bundles.iter_mut().flat_map(|bundle| &mut bundle.manifests);
    let mut agents = manifests.filter_map(|manifest| match manifest {
        Manifest::Agent(agent) => Some(agent),
        _ => None,
    });
    let found = agents.find(|agent| agent.namespace == wanted.0 && agent.name == wanted.1);
    found.ok_or(BundleError::NoAgent)
}

/// The agent of a name, or of a namespace and a name.
fn named(known: &[(String, String)], wanted: &str) -> Result<(String, String), BundleError> {
    let is_it = |(namespace, name): &&(String, String)| match wanted.split_once('/') {
        Some((in_namespace, wanted)) => namespace == in_namespace && name == wanted,
        None => name == wanted,
    };
    match known.iter().filter(is_it).collect::<Vec<_>>().as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let near = did_you_mean(wanted, known.iter().map(|(_, name)| name.as_str()));
            Err(BundleError::Unknown {
                name: wanted.to_owned(),
                near: near.map(str::to_owned),
            })
        }
        [(namespace, name), ..] => Err(BundleError::Ambiguous {
            name: wanted.to_owned(),
            first: format!("{namespace}/{name}"),
        }),
    }
}

fn last_part(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(namespace: &str, name: &str, rest: &str) -> String {
        format!(
            "kind: commonagents.info/v1beta2/agent\nnamespace: {namespace}\nname: {name}\n\
             description: d\nprompt: p\n{rest}---\n"
        )
    }

    #[test]
    fn the_agent_is_the_one_that_nobody_uses() {
        let text = agent("a", "front", "capabilities: {back: '*'}\n") + &agent("a", "back", "");
        let mut bundles = [Bundle::read(&text).0];
        assert_eq!(chosen(&mut bundles, None).unwrap().name, "front");
        assert_eq!(chosen(&mut bundles, Some("back")).unwrap().name, "back");
        assert_eq!(chosen(&mut bundles, Some("a/back")).unwrap().name, "back");
        let error = chosen(&mut bundles, Some("bakc")).unwrap_err().to_string();
        assert!(error.contains("did you mean `back`?"), "{error}");
        let text = agent("a", "one", "") + &agent("a", "two", "") + &agent("b", "two", "");
        let mut bundles = [Bundle::read(&text).0];
        let error = chosen(&mut bundles, None).unwrap_err().to_string();
        assert!(error.contains("--agent: one, two, two"), "{error}");
        assert!(chosen(&mut bundles, Some("two")).is_err());
        assert_eq!(chosen(&mut bundles, Some("b/two")).unwrap().namespace, "b");
        assert!(chosen(&mut [], None).is_err());
    }

    #[test]
    fn the_agent_without_a_manifest_is_one() {
        let (bundle, findings) = Bundle::read(ASSISTANT);
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(bundle.agents().count(), 1);
    }
}
