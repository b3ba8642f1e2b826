//! Names that references may use, by where they stand.

use std::collections::BTreeSet;

use crate::interpolate::{Root, TemplateReference};

/// Which roots a block may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferenceSite {
    /// An execute block without a session.
    Execute,
    /// A call within a session.
    Session,
    /// Subscribe and poll calls.
    Subscribe,
    /// The call that ends a subscription.
    Unsubscribe,
    /// The message of an event.
    Message,
    /// The secret of a webhook.
    Secret,
    /// The prompt of an agent and the error messages of its steps, where names without a root are
    /// variables.
    Prompt,
}

impl ReferenceSite {
    fn allows(self, root: Root) -> bool {
        match self {
            Self::Message => matches!(root, Root::Event),
            Self::Secret => matches!(root, Root::Settings),
            Self::Prompt => matches!(
                root,
                Root::Parameters | Root::Context | Root::Runtime | Root::Agent
            ),
            Self::Execute | Self::Session | Self::Subscribe | Self::Unsubscribe => match root {
                Root::Session => self == Self::Session,
                Root::Subscription => matches!(self, Self::Subscribe | Self::Unsubscribe),
                Root::Subscribe => self == Self::Unsubscribe,
                Root::Event => false,
                Root::Parameters
                | Root::Settings
                | Root::Runtime
                | Root::Agent
                | Root::Context
                | Root::Mount
                | Root::Auth => true,
            },
        }
    }
}

/// What is wrong with a reference.
pub(super) struct Unknown {
    pub(super) code: &'static str,
    pub(super) warning: bool,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// The names a manifest declares.
#[derive(Debug, Clone, Default)]
pub(super) struct DeclaredNames {
    /// `None` where any parameter may be named, in shared blocks.
    pub(super) parameters: Option<BTreeSet<String>>,
    /// `None` if the tool declares no settings.
    pub(super) settings: Option<BTreeSet<String>>,
    /// Keys that the session's creation yields; `None` where they are not known yet.
    pub(super) session: Option<BTreeSet<String>>,
    /// Parameters that a call of the tool may have, which filters compare with; `None` where they are not
    /// all known.
    pub(super) called: Option<BTreeSet<String>>,
    /// Aliases of the event; `None` if any may be there.
    pub(super) aliases: Option<BTreeSet<String>>,
}

impl DeclaredNames {
    /// Checks one reference.
    pub(super) fn check(
        &self,
        reference: &TemplateReference,
        site: ReferenceSite,
    ) -> Option<Unknown> {
        let root = reference.root;
        if !site.allows(root) {
            let message = if reference.bare {
                format!(
                    "`{}` is a parameter, and parameters cannot be used here",
                    reference.path.join(".")
                )
            } else {
                format!("`{root}` cannot be used here")
            };
            return Some(Unknown {
                code: "TM-012",
                warning: false,
                message,
                help: literal(reference),
            });
        }
        let Some(first) = reference.path.first() else {
            if matches!(root, Root::Parameters | Root::Context) {
                return None;
            }
            let message = format!("`{root}` needs a name behind it");
            let help = Some(format!("write {{{root}.name}}"));
            return Some(Unknown {
                code: "TM-012",
                warning: false,
                message,
                help,
            });
        };
        let known: Vec<&str> = match root {
            Root::Parameters => self
                .parameters
                .as_ref()?
                .iter()
                .map(String::as_str)
                .collect(),
            Root::Settings => return self.setting(reference),
            Root::Session => self.session.as_ref()?.iter().map(String::as_str).collect(),
            Root::Runtime => vec!["version", "dashboard_url", "api_root"],
            Root::Agent => vec!["name", "namespace"],
            Root::Mount => vec!["bucket", "prefix", "backend"],
            Root::Subscription => vec!["id", "expires_at_ms"],
            Root::Event => {
                let aliases = self.aliases.as_ref()?.iter().map(String::as_str);
                aliases.chain(["payload"]).collect()
            }
            Root::Context | Root::Auth | Root::Subscribe => return None,
        };
        if known.contains(&first.as_str()) {
            return None;
        }
        let help = match proofhouse_source::did_you_mean(first, known.iter().copied()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None => literal(reference),
        };
        let message = format!("`{root}` has no `{first}`");
        Some(Unknown {
            code: "TM-012",
            warning: false,
            message,
            help,
        })
    }

    fn setting(&self, reference: &TemplateReference) -> Option<Unknown> {
        let path = &reference.path;
        let full = path.join(".");
        let Some(settings) = &self.settings else {
            return Some(Unknown {
                code: "TM-017",
                warning: true,
                message: format!("the tool declares no settings, so it is not given `{full}`"),
                help: Some(format!("declare it: settings.properties.{full}")),
            });
        };
        if (1..=path.len()).any(|length| settings.contains(&path[..length].join("."))) {
            return None;
        }
        let near = proofhouse_source::did_you_mean(&full, settings.iter().map(String::as_str));
        Some(Unknown {
            code: "TM-017",
            warning: false,
            message: format!("there is no setting `{full}`"),
            help: near.map(|near| format!("did you mean `{near}`?")),
        })
    }
}

fn literal(reference: &TemplateReference) -> Option<String> {
    let written = reference.path.join(".");
    reference
        .bare
        .then(|| format!("for the text `{{{written}}}` itself, write `{{{{{written}}}}}`"))
}
