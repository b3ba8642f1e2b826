//! What the signature of a webhook is worth, for whom, and how that is kept until the webhook is routed.

use std::collections::BTreeSet;

use proofhouse_manifest::Tool;
use proofhouse_store::model::ToolRef;
use proofhouse_tools::receive::webhook::{
    self, Delivery, Scheme, Verdict, Verification, WebhookKeys,
};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Value;

use super::ingest::ToolAddress;
use super::manifests::ManifestSnapshot;

/// What is kept beside the payload, written without building it first: a flood of webhooks is a flood of these.
#[derive(serde::Serialize)]
pub(super) struct StoredHeaders<'a> {
    pub(super) headers: ShownHeaders<'a>,
    pub(super) signature: &'a Signatures<'a>,
    /// What it belongs to, for whoever acts on it; under the name of [`super::kept_trace::TRACE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<String>,
}

/// The headers that may be shown.
pub(super) struct ShownHeaders<'a>(pub(super) &'a Delivery<'a>);

impl Serialize for ShownHeaders<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(webhook::shown_headers(self.0))
    }
}

/// What the signature of a delivery is worth, for each tool of the address and for triggers.
pub(super) struct Signatures<'s> {
    tools: Vec<(&'s Tool, Verdict)>,
    source: Option<Verification>,
    /// The scheme by which the source's keys find it genuine.
    source_scheme: Option<Scheme>,
}

impl<'s> Signatures<'s> {
    pub(super) fn check(
        snapshot: &'s ManifestSnapshot,
        address: ToolAddress<'s>,
        delivery: &Delivery<'_>,
    ) -> Self {
        let tools = snapshot.named(address);
        let tools = tools.map(|compiled| (&*compiled.tool, compiled.keys.verify(delivery)));
        let source = snapshot.sources.get(address.tool);
        let source = source.filter(|_| snapshot.has_trigger(address));
        let source = source.map(|keys: &WebhookKeys| keys.verify(delivery));
        let source_scheme = source.as_ref().and_then(Verdict::scheme).cloned();
        let source = source.map(|verdict| verdict.whole().clone());
        let tools: Vec<_> = tools.collect();
        // A trigger that the operator has no keys for lets nothing in that the secret of a tool keeps out.
        let source = source.filter(|said| tools.is_empty() || *said != Verification::Unsigned);
        Self {
            tools,
            source,
            source_scheme,
        }
    }

    /// The namespaces whose own secret says that it is genuine.
    pub(super) fn verified_in(&self) -> BTreeSet<String> {
        let is_verified = |said: &Verification| matches!(said, Verification::Verified { .. });
        let tools = self.tools.iter();
        let tools = tools.filter(|(_, verdict)| is_verified(verdict.whole()));
        tools.map(|(tool, _)| tool.namespace.to_string()).collect()
    }

    /// Whether a key of the operator says so, who decides for all namespaces.
    pub(super) fn is_verified_by_operator(&self) -> bool {
        matches!(self.source, Some(Verification::Verified { .. }))
    }

    /// What it is worth for one event of one tool, whose channel it came through.
    pub(super) fn of_event(
        snapshot: &'s ManifestSnapshot,
        tool: &ToolRef,
        event: &str,
        delivery: &Delivery<'_>,
    ) -> (Self, Verification) {
        let tools = snapshot.tool(tool).into_iter();
        let tools = tools.map(|compiled| (&*compiled.tool, compiled.keys.verify(delivery)));
        let tools: Vec<_> = tools.collect();
        let said = tools.first().map(|(_, verdict)| verdict.of(event).clone());
        let signatures = Self {
            tools,
            source: None,
            source_scheme: None,
        };
        (signatures, said.unwrap_or(Verification::Unsigned))
    }

    /// The scheme by which it is genuine for somebody, which says what identifies it.
    pub(super) fn scheme(&self) -> Option<&Scheme> {
        let of_tools = self.tools.iter().find_map(|(_, verdict)| verdict.scheme());
        of_tools.or(self.source_scheme.as_ref())
    }

    /// What speaks for the delivery as a whole.
    pub(super) fn best(&self) -> &Verification {
        let wholes = self.tools.iter().map(|(_, verdict)| verdict.whole());
        let best = wholes.chain(&self.source).min_by_key(|one| match one {
            Verification::Verified { .. } => 0,
            Verification::Unsigned => 1,
            Verification::Refused { .. } => 2,
        });
        best.unwrap_or(&Verification::Unsigned)
    }

    /// What it is worth for triggers: they fire for what the operator's keys accept, else for what the tool of the address
    /// accepts. Where one tool of that name has a secret and another has none, the secret counts.
    fn for_triggers(&self) -> &Verification {
        let best_signed = || {
            let wholes = self.tools.iter().map(|(_, verdict)| verdict.whole());
            let mut signed = wholes.filter(|said| **said != Verification::Unsigned);
            let verified = |said: &&Verification| matches!(said, Verification::Verified { .. });
            signed.clone().find(verified).or_else(|| signed.next())
        };
        match &self.source {
            Some(source) => source,
            None => best_signed().unwrap_or_else(|| self.best()),
        }
    }
}

/// As it is kept for routing: what it is worth for each event, and for triggers.
impl Serialize for Signatures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kept = serializer.serialize_struct("signature", 2)?;
        kept.serialize_field("whole", self.for_triggers())?;
        kept.serialize_field("tools", &OfTools(&self.tools))?;
        kept.end()
    }
}

/// What a signature is worth for each tool, by its namespace: they have the same name.
struct OfTools<'a>(&'a [(&'a Tool, Verdict)]);

impl Serialize for OfTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools = self.0.iter();
        serializer
            .collect_map(tools.map(|(tool, verdict)| (&*tool.namespace, OfEvents(tool, verdict))))
    }
}

/// What a signature is worth for each event of a tool.
struct OfEvents<'a>(&'a Tool, &'a Verdict);

impl Serialize for OfEvents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = self.0.events.iter();
        serializer.collect_map(events.map(|event| (&*event.name, self.1.of(&event.name))))
    }
}

/// What was kept of the signature, for an event of a tool.
pub(super) fn signature_of(headers: &Value, tool: &ToolRef, event: &str) -> Option<Verification> {
    let kept = &headers["signature"]["tools"][tool.namespace.as_str()][event];
    serde_json::from_value(kept.clone()).ok()
}

/// What was kept of the signature, for triggers.
pub(super) fn whole_signature(headers: &Value) -> Option<Verification> {
    serde_json::from_value(headers["signature"]["whole"].clone()).ok()
}
