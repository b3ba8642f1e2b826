//! What rules look at: a document with its actors laid out alike whatever form it is written in.

use std::collections::HashSet;

use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, DocPath, PathSegment, Source, Span, did_you_mean,
};
use serde_json::Value;

use super::templates::FoundTemplate;
use super::{RULES, ValidationResult, ValidationRule};
use crate::error::ValidationError;
use crate::model::{Document, Indicator, Mode, Phase, Protocol};

/// A document under validation and what was found in it.
pub(super) struct ValidationPass<'d> {
    pub(super) document: &'d Document,
    pub(super) actors: Vec<ActorView<'d>>,
    pub(super) indicators: Vec<IndicatorView<'d>>,
    /// The rule that is being checked.
    pub(super) rule: &'static ValidationRule,
    findings: Vec<(&'static ValidationRule, Diagnostic)>,
    /// How many findings the current rule has.
    count: usize,
    /// Takes what goes beyond the limit.
    overflow: Option<Diagnostic>,
    actor_names: HashSet<&'d str>,
    /// How many more large regular expressions may be tried.
    pub(super) large_regexes: usize,
    /// The templates of the document, once a rule has asked for them.
    pub(super) templates: Option<Vec<FoundTemplate<'d>>>,
}

/// How many findings of one rule are kept. A hostile document may break a rule a million times.
const MAX_FINDINGS: usize = 10_000;
/// How many findings of one rule come with a suggestion.
const MAX_SUGGESTIONS: usize = 1_000;

/// An actor, or what stands for one in the short forms.
pub(super) struct ActorView<'d> {
    pub(super) name: &'d str,
    pub(super) mode: Option<&'d Mode>,
    pub(super) path: DocPath<'d>,
    /// Whether it is written as an actor.
    pub(super) explicit: bool,
    /// Whether it is written as phases, with or without actors.
    pub(super) has_phases: bool,
    pub(super) phases: Vec<CheckedPhase<'d>>,
}

/// A phase, or the single state of the single-phase form.
pub(super) struct CheckedPhase<'d> {
    pub(super) path: DocPath<'d>,
    /// Absent in single-phase form.
    pub(super) phase: Option<&'d Phase>,
    pub(super) state: Option<&'d Value>,
}

pub(super) struct IndicatorView<'d> {
    pub(super) path: DocPath<'d>,
    pub(super) indicator: &'d Indicator,
    /// The protocol, written or taken from `execution.mode`.
    pub(super) protocol: Option<Protocol>,
}

/// A list of response entries inside protocol state.
pub(super) struct DispatchList<'d> {
    pub(super) key: &'static str,
    pub(super) path: DocPath<'d>,
    pub(super) entries: &'d [Value],
}

impl<'d> ValidationPass<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        let execution = &document.attack.execution;
        let root = attack_path().key("execution");
        let mut actors = Vec::new();
        if let Some(state) = &execution.state {
            let phases = vec![CheckedPhase {
                path: root.clone(),
                phase: None,
                state: Some(state),
            }];
            actors.push(ActorView {
                name: "default",
                mode: execution.mode.as_ref(),
                path: root.clone(),
                explicit: false,
                has_phases: false,
                phases,
            });
        }
        if let Some(phases) = &execution.phases {
            let mode = execution.mode.as_ref();
            let mode = mode.or_else(|| phases.first().and_then(|p| p.mode.as_ref()));
            actors.push(ActorView {
                name: "default",
                mode,
                path: root.clone(),
                explicit: false,
                has_phases: true,
                phases: phase_views(&root, phases),
            });
        }
        for (index, actor) in execution.actors().iter().enumerate() {
            let path = root.key("actors").index(index);
            actors.push(ActorView {
                name: &actor.name,
                mode: Some(&actor.mode),
                phases: phase_views(&path, &actor.phases),
                path,
                explicit: true,
                has_phases: true,
            });
        }
        let default_protocol = execution.mode.as_ref().map(Mode::protocol);
        let list = attack_path().key("indicators");
        let indicators = document
            .attack
            .indicators()
            .iter()
            .enumerate()
            .map(|(index, indicator)| IndicatorView {
                path: list.index(index),
                indicator,
                protocol: indicator
                    .protocol
                    .clone()
                    .or_else(|| default_protocol.clone()),
            })
            .collect();
        let actor_names = match &execution.actors {
            Some(actors) => actors.iter().map(|actor| actor.name.as_str()).collect(),
            None => HashSet::from(["default"]),
        };
        Self {
            document,
            actors,
            indicators,
            rule: &RULES[0],
            findings: Vec::new(),
            count: 0,
            overflow: None,
            actor_names,
            large_regexes: 200,
            templates: None,
        }
    }

    /// Goes on to another rule.
    pub(super) fn begin(&mut self, rule: &'static ValidationRule) {
        self.rule = rule;
        self.count = 0;
    }

    /// The known word nearest to a mistyped one, as long as there are few findings.
    pub(super) fn near<'k>(
        &self,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Option<&'k str> {
        if self.count < MAX_SUGGESTIONS {
            did_you_mean(word, known.into_iter().take(100))
        } else {
            None
        }
    }

    /// The names of the actors that are written as such, for suggestions.
    pub(super) fn written_actors(&self) -> impl Iterator<Item = &'d str> + use<'d> {
        let actors = self.document.attack.execution.actors();
        actors.iter().map(|actor| actor.name.as_str())
    }

    /// Reports a violation of the current rule at `path`.
    pub(super) fn report(
        &mut self,
        path: &DocPath<'d>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(path, |source| source.span_of(path), message.into())
    }

    /// Reports a violation inside the scalar at `path`.
    pub(super) fn report_within(
        &mut self,
        path: &DocPath<'d>,
        range: std::ops::Range<usize>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let span = |source: &Source| source.span_within(path, range.start, range.end);
        self.push(path, span, message.into())
    }

    /// Reports a violation by the key at the end of `path` rather than its value.
    pub(super) fn report_key(
        &mut self,
        path: &DocPath<'d>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(path, |source| source.key_span_of(path), message.into())
    }

    /// Reports something well-formed that is over a limit of ours, whatever rule is being checked.
    pub(super) fn report_limit(&mut self, path: &DocPath<'d>, message: impl Into<String>) {
        self.report_by(&super::OVER_LIMIT, path, message);
    }

    /// Reports what no reader would take for its size, whatever rule is being checked.
    pub(super) fn report_too_large(&mut self, path: &DocPath<'d>, message: impl Into<String>) {
        self.report_by(&super::TOO_DEEP, path, message);
    }

    fn report_by(
        &mut self,
        rule: &'static ValidationRule,
        path: &DocPath<'d>,
        message: impl Into<String>,
    ) {
        let rule = std::mem::replace(&mut self.rule, rule);
        self.report(path, message);
        self.rule = rule;
    }

    fn push(
        &mut self,
        path: &DocPath<'d>,
        span: impl FnOnce(&Source) -> Span,
        message: String,
    ) -> &mut Diagnostic {
        let mut diagnostic = Diagnostic {
            severity: self.rule.severity,
            code: self.rule.code,
            path: None,
            span: None,
            message,
            help: None,
        };
        self.count += 1;
        if self.count > MAX_FINDINGS {
            return self.overflow.insert(diagnostic);
        }
        diagnostic.path = Some(path.to_string());
        diagnostic.span = self.document.source.as_deref().map(span);
        let position = self.findings.len();
        self.findings.push((self.rule, diagnostic));
        &mut self.findings[position].1
    }

    pub(super) fn finish(self) -> ValidationResult {
        let mut result = ValidationResult::default();
        for (rule, diagnostic) in self.findings {
            if diagnostic.severity == DiagnosticSeverity::Warning {
                result.warnings.push(diagnostic);
            } else {
                result.errors.push(ValidationError {
                    rule: rule.code,
                    spec_ref: rule.spec_ref,
                    message: diagnostic.message,
                    path: diagnostic.path.unwrap_or_default(),
                    span: diagnostic.span,
                    help: diagnostic.help,
                });
            }
        }
        result.warnings.extend_from_slice(self.document.notes());
        result
            .errors
            .sort_by_key(|error| error.span.map(|span| span.offset));
        result
            .warnings
            .sort_by_key(|warning| warning.span.map(|span| span.offset));
        result
    }

    /// Calls `visit` for every phase of every actor. The views are lent out for the time.
    pub(super) fn each_phase(
        &mut self,
        mut visit: impl FnMut(&mut Self, &ActorView<'d>, &CheckedPhase<'d>),
    ) {
        self.each_actor(|check, actor| {
            for phase in &actor.phases {
                visit(check, actor, phase);
            }
        });
    }

    pub(super) fn each_actor(&mut self, mut visit: impl FnMut(&mut Self, &ActorView<'d>)) {
        let actors = std::mem::take(&mut self.actors);
        for actor in &actors {
            visit(self, actor);
        }
        self.actors = actors;
    }

    pub(super) fn each_indicator(&mut self, mut visit: impl FnMut(&mut Self, &IndicatorView<'d>)) {
        let indicators = std::mem::take(&mut self.indicators);
        for indicator in &indicators {
            visit(self, indicator);
        }
        self.indicators = indicators;
    }

    /// Whether the document has an actor of this name; the short forms have `default`.
    pub(super) fn has_actor(&self, name: &str) -> bool {
        self.actor_names.contains(name)
    }
}

impl<'d> CheckedPhase<'d> {
    pub(super) fn state_path(&self) -> DocPath<'d> {
        self.path.key("state")
    }

    /// The dispatch lists of this phase's state, where the bindings put them.
    pub(super) fn dispatch_lists(&self) -> Vec<DispatchList<'d>> {
        let mut lists = Vec::new();
        let Some(state) = self.state.and_then(Value::as_object) else {
            return lists;
        };
        let root = self.state_path();
        for key in [
            "sampling_responses",
            "elicitation_responses",
            "task_responses",
            "tool_responses",
        ] {
            if let Some(Value::Array(entries)) = state.get(key) {
                lists.push(DispatchList {
                    key,
                    path: root.key(key),
                    entries,
                });
            }
        }
        for owner in ["tools", "prompts"] {
            let Some(Value::Array(items)) = state.get(owner) else {
                continue;
            };
            for (index, item) in items.iter().enumerate() {
                if let Some(Value::Array(entries)) = item.get("responses") {
                    let path = root.key(owner).index(index).key("responses");
                    lists.push(DispatchList {
                        key: "responses",
                        path,
                        entries,
                    });
                }
            }
        }
        lists
    }

    /// `elicitations`, which have `when` but no fallback.
    pub(super) fn elicitations(&self) -> Option<DispatchList<'d>> {
        let entries = self.state?.as_object()?.get("elicitations")?.as_array()?;
        Some(DispatchList {
            key: "elicitations",
            path: self.state_path().key("elicitations"),
            entries,
        })
    }

    /// Every `when` predicate of the state, with its path.
    pub(super) fn when_predicates(
        &self,
    ) -> impl Iterator<Item = (DocPath<'d>, &'d serde_json::Map<String, Value>)> {
        self.dispatch_lists()
            .into_iter()
            .chain(self.elicitations())
            .flat_map(|list| {
                let predicates: Vec<_> = list
                    .entries
                    .iter()
                    .enumerate()
                    .filter_map(|(index, entry)| {
                        let when = entry.get("when")?.as_object()?;
                        Some((list.path.index(index).key("when"), when))
                    })
                    .collect();
                predicates
            })
    }
}

pub(super) fn attack_path<'d>() -> DocPath<'d> {
    let mut path = DocPath::default();
    path.push(PathSegment::Key("attack"));
    path
}

fn phase_views<'d>(owner: &DocPath<'d>, phases: &'d [Phase]) -> Vec<CheckedPhase<'d>> {
    let list = owner.key("phases");
    phases
        .iter()
        .enumerate()
        .map(|(index, phase)| CheckedPhase {
            path: list.index(index),
            phase: Some(phase),
            state: phase.state.as_ref(),
        })
        .collect()
}
