//! `kubernetes_job`: a Job in the operator's cluster.

use proofhouse_source::NodeRef;
use proofhouse_source::format::{FormatReader, TypeSpec};

use super::BackendBlock;
use crate::decode::ManifestDecoder;
use crate::fields::{BODY, TEMPLATE, needed};
use crate::interpolate::{BodyTemplate, Template};
use crate::names::ReferenceSite;

/// A Kubernetes Job.
#[derive(Debug, Clone)]
pub struct KubernetesJob {
    /// The namespace.
    pub namespace: Template,
    /// A JobSpec, or a whole Job.
    pub spec: BodyTemplate,
}

static KUBERNETES_JOB: TypeSpec = TypeSpec {
    name: "KubernetesJob",
    doc: "A Kubernetes Job whose output is the result.",
    extensions: true,
    exactly_one: None,
    fields: &[
        needed("namespace", TEMPLATE, "The namespace of the Job."),
        needed("spec", BODY, "A JobSpec, or a whole Job."),
    ],
};

impl BackendBlock for KubernetesJob {
    const KEY: &'static str = "kubernetes_job";
    const SPEC: &'static TypeSpec = &KUBERNETES_JOB;
    const DOC: &'static str = "A Kubernetes Job.";

    fn read<'s>(
        decoder: &mut ManifestDecoder<'s>,
        node: NodeRef<'s>,
        _common: Option<&Self>,
    ) -> Option<Self> {
        let mut fields = decoder.fields(node, &KUBERNETES_JOB)?;
        let namespace = fields.read("namespace", |decoder, node| {
            decoder.template(node, ReferenceSite::Execute)
        });
        let spec = fields.read("spec", |decoder, node| {
            decoder.body(node, ReferenceSite::Execute)
        });
        Some(Self {
            namespace: namespace?,
            spec: spec?,
        })
    }
}
