//! `normalize`: what is implied is written out, and every form becomes the multi-actor form.

use std::collections::HashSet;

use crate::model::{
    Actor, Attack, Correlation, CorrelationLogic, Document, Mode, Phase, Relationship, Status,
};

/// One step of normalization.
pub(crate) struct NormalizationStep {
    pub(crate) code: &'static str,
    pub(crate) spec_ref: &'static str,
    /// The doc comment, one line each.
    pub(crate) doc: &'static [&'static str],
    apply: fn(&mut Attack),
}

macro_rules! steps {
    ($( $(#[doc = $doc:literal])+ $code:literal $spec_ref:literal => $apply:path; )+) => {
        /// Every step, in the order they are applied.
        pub(crate) static STEPS: &[NormalizationStep] =
            &[$(NormalizationStep { code: $code, spec_ref: $spec_ref, doc: &[$($doc),+], apply: $apply }),+];
    };
}

steps! {
    /// Defaults are written out.
    ///
    /// Name `Untitled`, version 1, status draft, severity confidence 50, phase names `phase-N`,
    /// trigger count 1 beside an event, correlation logic any beside indicators, mapping
    /// relationship primary. A phase's mode stays implied where it is inherited: the actor has it.
    "N-001" "format §11.2.1, SDK §2.3" => defaults;
    /// A scalar severity becomes a level with a confidence of 50.
    "N-002" "format §11.2.2, SDK §2.4" => severity;
    /// Indicators without an id get `{attack.id}-{NN}`, or `indicator-{NN}` without one.
    "N-003" "format §11.2.3, SDK §2.12" => indicator_ids;
    /// An indicator's protocol, and the target of its pattern or semantic match, are filled in.
    "N-004" "format §11.2.4, SDK §4.4" => indicator_targets;
    /// A pattern in shorthand gets an explicit `condition`.
    "N-005" "format §11.2.5, SDK §2.13" => pattern_shorthand;
    /// The single-phase form becomes one actor called `default` with one phase.
    "N-006" "format §11.2.6, SDK §2.6" => single_phase;
    /// The multi-phase form becomes one actor called `default`.
    ///
    /// Its mode is `execution.mode`, or that of the first phase.
    "N-007" "format §11.2.7, SDK §2.6" => multi_phase;
    /// Tags become lower case, with `-` for `_` and spaces.
    "N-008" "format §4.5, SDK §2.5" => tags;
}

/// Normalizes a document. Normalizing twice changes nothing.
///
/// ```
/// let document = proofhouse_oatf::parse(r#"
/// oatf: "0.1"
/// attack:
///   severity: high
///   execution: {mode: mcp_server, state: {tools: []}}
/// "#).unwrap();
/// let document = proofhouse_oatf::normalize(document);
/// assert_eq!(document.attack.execution.actors()[0].name, "default");
/// assert_eq!(proofhouse_oatf::normalize(document.clone()), document);
/// ```
#[must_use]
pub fn normalize(mut document: Document) -> Document {
    for step in STEPS {
        (step.apply)(&mut document.attack);
    }
    document
}

fn defaults(attack: &mut Attack) {
    attack.name.get_or_insert_with(|| "Untitled".to_owned());
    attack.version.get_or_insert(1);
    attack.status.get_or_insert(Status::Draft);
    if let Some(classification) = &mut attack.classification {
        for mapping in classification.mappings.iter_mut().flatten() {
            mapping.relationship.get_or_insert(Relationship::Primary);
        }
    }
    if attack.indicators.is_some() {
        let correlation = attack.correlation.get_or_insert_with(Correlation::default);
        correlation.logic.get_or_insert(CorrelationLogic::Any);
    }
    let execution = &mut attack.execution;
    if let Some(phases) = &mut execution.phases {
        phase_defaults(phases);
    }
    for actor in execution.actors.iter_mut().flatten() {
        phase_defaults(&mut actor.phases);
    }
}

fn phase_defaults(phases: &mut [Phase]) {
    let mut taken: HashSet<String> = phases
        .iter()
        .filter_map(|phase| phase.name.clone())
        .collect();
    for (index, phase) in phases.iter_mut().enumerate() {
        if phase.name.is_none() {
            phase.name = Some(free_name(&mut taken, &format!("phase-{}", index + 1)));
        }
        if let Some(trigger) = &mut phase.trigger
            && trigger.event.is_some()
        {
            trigger.count.get_or_insert(1);
        }
    }
}

/// `wanted`, or the first numbered variant of it that nobody has chosen yet.
fn free_name(taken: &mut HashSet<String>, wanted: &str) -> String {
    let mut name = wanted.to_owned();
    let mut suffix = 2;
    while !taken.insert(name.clone()) {
        name = format!("{wanted}-{suffix}");
        suffix += 1;
    }
    name
}

/// The model has one shape for both notations, so the default confidence is all there is to do,
/// and N-001 leaves it to this step.
fn severity(attack: &mut Attack) {
    if let Some(severity) = &mut attack.severity {
        severity.confidence.get_or_insert(50);
    }
}

fn indicator_ids(attack: &mut Attack) {
    let prefix = attack.id.clone().unwrap_or_else(|| "indicator".to_owned());
    let indicators = attack.indicators.as_deref_mut().unwrap_or_default();
    let mut taken: HashSet<String> = indicators.iter().filter_map(|i| i.id.clone()).collect();
    let mut beyond = indicators.len();
    for (index, indicator) in indicators.iter_mut().enumerate() {
        if indicator.id.is_some() {
            continue;
        }
        let mut id = format!("{prefix}-{:02}", index + 1);
        while !taken.insert(id.clone()) {
            beyond += 1;
            id = format!("{prefix}-{beyond:02}");
        }
        indicator.id = Some(id);
    }
}

fn indicator_targets(attack: &mut Attack) {
    let protocol = attack.execution.mode.as_ref().map(Mode::protocol);
    for indicator in attack.indicators.iter_mut().flatten() {
        if indicator.protocol.is_none() {
            indicator.protocol.clone_from(&protocol);
        }
        if let Some(pattern) = &mut indicator.pattern {
            pattern
                .target
                .get_or_insert_with(|| indicator.target.clone());
        }
        if let Some(semantic) = &mut indicator.semantic {
            semantic
                .target
                .get_or_insert_with(|| indicator.target.clone());
        }
    }
}

fn pattern_shorthand(attack: &mut Attack) {
    for indicator in attack.indicators.iter_mut().flatten() {
        if let Some(pattern) = &mut indicator.pattern {
            pattern.shorthand = false;
        }
    }
}

fn single_phase(attack: &mut Attack) {
    let execution = &mut attack.execution;
    if execution.actors.is_some() || execution.phases.is_some() {
        return;
    }
    if let Some(state) = execution.state.take() {
        let phase = Phase {
            name: Some("phase-1".to_owned()),
            state: Some(state),
            ..Phase::default()
        };
        execution.actors = Some(vec![default_actor(execution.mode.take(), vec![phase])]);
    }
}

fn multi_phase(attack: &mut Attack) {
    let execution = &mut attack.execution;
    if execution.actors.is_some() {
        return;
    }
    if let Some(phases) = execution.phases.take() {
        let first = phases.first().and_then(|phase| phase.mode.clone());
        let mode = execution.mode.take().or(first);
        execution.actors = Some(vec![default_actor(mode, phases)]);
    }
}

fn default_actor(mode: Option<Mode>, phases: Vec<Phase>) -> Actor {
    Actor {
        name: "default".to_owned(),
        mode: mode.unwrap_or_default(),
        phases,
        ..Actor::default()
    }
}

fn tags(attack: &mut Attack) {
    let classification = attack.classification.as_mut();
    for tag in classification
        .and_then(|c| c.tags.as_mut())
        .into_iter()
        .flatten()
    {
        *tag = tag.to_lowercase().replace(['_', ' '], "-");
    }
}
