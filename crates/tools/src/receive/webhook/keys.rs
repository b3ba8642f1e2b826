//! The keys of a tool's webhooks: those of the operator and those of the manifest, and what they say.

use super::{Delivery, Refusal, SCHEMES, Scheme, Verification};
use crate::operator::WebhookSource;
use crate::runtime::Environment;
use proofhouse_manifest::interpolate::{Root, Sealed, TemplateScope};
use proofhouse_manifest::{Receive, Tool};

/// A secret and the schemes it is good for.
#[derive(Debug, Clone)]
struct WebhookKey {
    scheme: Scheme,
    bytes: Sealed<Vec<u8>>,
}

/// What an event needs of a signature beside the operator's keys.
#[derive(Debug, Clone)]
enum OfEvent {
    /// The manifest names no secret.
    None,
    /// The manifest names one that cannot be had: nothing fits.
    Broken,
    /// The manifest names one.
    Keys(Vec<WebhookKey>),
}

/// The keys that deliveries to one tool, or to one source of triggers, are checked with.
#[derive(Debug, Clone, Default)]
pub struct WebhookKeys {
    operator: Vec<WebhookKey>,
    events: Vec<(String, OfEvent)>,
}

/// What the keys say about one delivery: for the delivery, and for each event of the tool. Events may have
/// secrets of their own, and one that has is not reached by what another's secret signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    whole: Verification,
    events: Vec<(String, Verification)>,
    scheme: Option<Scheme>,
}

impl Verdict {
    /// What speaks for the delivery as a whole: the best of what the operator's keys and the events say. It
    /// decides what is stored and whether triggers fire.
    #[must_use]
    pub fn whole(&self) -> &Verification {
        &self.whole
    }

    /// The scheme by which it is genuine, which says what identifies the delivery.
    #[must_use]
    pub fn scheme(&self) -> Option<&Scheme> {
        self.scheme.as_ref()
    }

    /// What is said for an event; for one that the tool does not have, what the operator's keys say.
    #[must_use]
    pub fn of(&self, event: &str) -> &Verification {
        let found = self.events.iter().find(|(name, _)| name == event);
        found.map_or(&self.whole, |(_, verification)| verification)
    }
}

impl WebhookKeys {
    /// The keys of a tool: those the operator configures for it, and the secret of each webhook event.
    #[must_use]
    pub fn of_tool(tool: &Tool, source: Option<&WebhookSource>, environment: &Environment) -> Self {
        let mut keys = source.map(Self::of_source).unwrap_or_default();
        let mut scope = TemplateScope::default();
        scope.set(Root::Settings, environment.settings_of(tool));
        for event in &tool.events {
            let secret = match &event.receive {
                Receive::Webhook(webhook) => webhook.secret.as_ref(),
                Receive::Subscription(_) => None,
                // Nobody posts what is asked for.
                Receive::Poll(_) => continue,
            };
            let of_event = match secret.map(|secret| scope.text(secret)) {
                None => OfEvent::None,
                Some(Err(_)) => OfEvent::Broken,
                Some(Ok(secret)) => match manifest_keys(secret.expose()) {
                    keys if keys.is_empty() => OfEvent::Broken,
                    keys => OfEvent::Keys(keys),
                },
            };
            keys.events.push((event.name.clone(), of_event));
        }
        keys
    }

    /// No keys for a tool that must have some: nothing that is sent to it is taken.
    #[must_use]
    pub fn missing(tool: &Tool) -> Self {
        let events = tool.events.iter();
        Self {
            operator: Vec::new(),
            events: events
                .map(|event| (event.name.clone(), OfEvent::Broken))
                .collect(),
        }
    }

    /// The keys the operator configures for a source.
    #[must_use]
    pub fn of_source(source: &WebhookSource) -> Self {
        let secrets = source.secrets.iter();
        let keys = secrets.filter_map(|secret| {
            let bytes = Sealed::new(source.scheme.key(secret.expose()).ok()?);
            let scheme = source.scheme.clone();
            Some(WebhookKey { scheme, bytes })
        });
        Self {
            operator: keys.collect(),
            events: Vec::new(),
        }
    }

    /// Whether no delivery could be checked for some event, or for triggers: what a warning is about.
    #[must_use]
    pub fn accepts_unsigned(&self) -> bool {
        let open = |of: &OfEvent| matches!(of, OfEvent::None);
        self.operator.is_empty()
            && (self.events.is_empty() || self.events.iter().any(|(_, of)| open(of)))
    }

    /// Checks a delivery.
    #[must_use]
    pub fn verify(&self, delivery: &Delivery<'_>) -> Verdict {
        let operator = judge(&self.operator, delivery);
        let events: Vec<(String, Verification)> = self
            .events
            .iter()
            .map(|(name, of_event)| {
                let own = match of_event {
                    OfEvent::None => None,
                    OfEvent::Broken => Some(Verification::Refused {
                        reason: Refusal::Unconfigured,
                    }),
                    OfEvent::Keys(keys) => judge(keys, delivery),
                };
                let best = better(own, operator.clone());
                (name.clone(), best.unwrap_or(Verification::Unsigned))
            })
            .collect();
        let of_events = events.iter().map(|(_, verification)| verification.clone());
        let whole = of_events.fold(operator, |best, next| better(best, Some(next)));
        let whole = whole.unwrap_or(Verification::Unsigned);
        let scheme = match &whole {
            Verification::Verified { scheme } => self.scheme(scheme).cloned(),
            Verification::Unsigned | Verification::Refused { .. } => None,
        };
        Verdict {
            whole,
            events,
            scheme,
        }
    }

    /// The scheme of a name, as one of the keys has it.
    fn scheme(&self, name: &str) -> Option<&Scheme> {
        let of_events = self.events.iter().flat_map(|(_, of)| match of {
            OfEvent::Keys(keys) => keys.as_slice(),
            OfEvent::None | OfEvent::Broken => &[],
        });
        let schemes = self.operator.iter().chain(of_events).map(|key| &key.scheme);
        schemes.into_iter().find(|scheme| scheme.name == name)
    }
}

/// What keys say together; nothing if there are none.
fn judge(keys: &[WebhookKey], delivery: &Delivery<'_>) -> Option<Verification> {
    let said = keys.iter().map(
        |key| match key.scheme.verify(delivery, key.bytes.expose()) {
            Ok(()) => Verification::Verified {
                scheme: key.scheme.name.clone().into_owned(),
            },
            Err(reason) => Verification::Refused { reason },
        },
    );
    said.max_by_key(Verification::rank)
}

fn better(one: Option<Verification>, other: Option<Verification>) -> Option<Verification> {
    [one, other]
        .into_iter()
        .flatten()
        .max_by_key(Verification::rank)
}

/// The keys that a manifest's secret is: one for each scheme it can be a secret of. Which one it is, the headers of the
/// delivery say.
fn manifest_keys(secret: &str) -> Vec<WebhookKey> {
    let schemes = SCHEMES.iter().filter(|scheme| scheme.is_for_manifests);
    let keys = schemes.filter_map(|scheme| {
        let bytes = Sealed::new(scheme.key(secret).ok()?);
        let scheme = scheme.clone();
        Some(WebhookKey { scheme, bytes })
    });
    keys.collect()
}
