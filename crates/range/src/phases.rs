//! The phases of one actor: which one holds, and when the next begins. No clock, no I/O.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use proofhouse_oatf::{
    Action, Actor, AdvanceReason, Extractor, MatchBudget, ProtocolEvent, Trigger, TriggerResult,
    TriggerState, compute_effective_state, evaluate_trigger_within,
};
use serde_json::Value;

use crate::delivery::{DeliveryError, DeliveryModifiers};

/// A phase as drivers see it: its effective state, and what they made of it.
pub struct PhaseView {
    /// Its position in the actor, from 0.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its state, its own or inherited.
    pub state: Value,
    /// Whether the state is its own.
    pub own_state: bool,
    /// How messages are delivered while it holds.
    pub delivery: DeliveryModifiers,
    pub(crate) extractors: Vec<Extractor>,
    trigger: Option<Trigger>,
    on_enter: Vec<Action>,
    prepared: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl PhaseView {
    /// What a driver makes of the state, made once per phase.
    ///
    /// A driver always asks for the same type; for another one, it is made anew every time.
    pub fn prepared<T: Any + Send + Sync>(self: &Arc<Self>, make: impl Fn(&Value) -> T) -> Arc<T> {
        let kept = self
            .prepared
            .get_or_init(|| Box::new(Arc::new(make(&self.state))));
        match kept.downcast_ref::<Arc<T>>() {
            Some(prepared) => Arc::clone(prepared),
            None => Arc::new(make(&self.state)),
        }
    }

    /// Whether the phase lasts until the end.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.trigger.is_none()
    }

    /// Whether what the subject does decides that the phase ends, and not only how often or how long.
    fn ends_by_what_is_done(&self) -> bool {
        let trigger = self.trigger.as_ref();
        trigger.is_some_and(|trigger| trigger.r#match.is_some())
    }

    /// Whether time alone ends the phase, so that the next one comes even if nothing happens.
    #[must_use]
    pub fn ends_with_time(&self) -> bool {
        let trigger = self.trigger.as_ref();
        trigger.is_some_and(|trigger| trigger.after.is_some())
    }
}

impl std::fmt::Debug for PhaseView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PhaseView")
            .field("index", &self.index)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A phase that was entered, and what is to be done on entry.
#[derive(Debug, Clone)]
pub struct PhaseEntry {
    /// The phase.
    pub phase: Arc<PhaseView>,
    /// Why the one before ended; `None` for the first.
    pub reason: Option<AdvanceReason>,
    /// Its entry actions, templates not yet resolved.
    pub actions: Vec<Action>,
}

/// Where one actor stands.
#[derive(Debug)]
pub(crate) struct Phases {
    all: Vec<Arc<PhaseView>>,
    /// Whether the first phase only wins trust for what a later one shows.
    disguised: bool,
    current: usize,
    trigger: TriggerState,
    /// Why a message could not be compared with a trigger.
    untried: Option<String>,
    entered: Instant,
}

impl Phases {
    pub(crate) fn new(actor: &Actor, now: Instant) -> Result<Self, DeliveryError> {
        let mut all = Vec::with_capacity(actor.phases.len());
        for (index, phase) in actor.phases.iter().enumerate() {
            let state = compute_effective_state(&actor.phases, index).cloned();
            all.push(Arc::new(PhaseView {
                index,
                name: phase
                    .name
                    .clone()
                    .unwrap_or_else(|| format!("phase-{}", index + 1)),
                state: state.unwrap_or_default(),
                own_state: phase.state.is_some(),
                delivery: DeliveryModifiers::of(&actor.extensions, &phase.extensions)?,
                extractors: phase.extractors.clone().unwrap_or_default(),
                trigger: phase.trigger.clone(),
                on_enter: phase.on_enter.clone().unwrap_or_default(),
                prepared: OnceLock::new(),
            }));
        }
        let disguised = all.first().is_some_and(|first: &Arc<PhaseView>| {
            !first.ends_by_what_is_done() && all.iter().any(|later| later.state != first.state)
        });
        Ok(Self {
            all,
            disguised,
            current: 0,
            trigger: TriggerState::default(),
            untried: None,
            entered: now,
        })
    }

    pub(crate) fn current(&self) -> Arc<PhaseView> {
        Arc::clone(&self.all[self.current])
    }

    pub(crate) fn all(&self) -> &[Arc<PhaseView>] {
        &self.all
    }

    /// The first phase, where it is a disguise.
    pub(crate) fn disguise(&self) -> Option<&Arc<PhaseView>> {
        self.all.first().filter(|_| self.disguised)
    }

    /// The first phase, as an entry.
    pub(crate) fn begin(&mut self, now: Instant) -> PhaseEntry {
        self.entered = now;
        PhaseEntry {
            phase: self.current(),
            reason: None,
            actions: self.all[0].on_enter.clone(),
        }
    }

    /// Something happened: the entry into the next phase, if it ends this one. One event ends at
    /// most one phase; counters start anew.
    pub(crate) fn happened(
        &mut self,
        event: Option<&ProtocolEvent>,
        now: Instant,
    ) -> Option<PhaseEntry> {
        let phase = &self.all[self.current];
        let trigger = phase.trigger.as_ref()?;
        let elapsed = now.saturating_duration_since(self.entered);
        let budget = &mut MatchBudget::default();
        let result = evaluate_trigger_within(trigger, event, elapsed, &mut self.trigger, budget);
        let reason = match result {
            Ok(TriggerResult::Advanced { reason }) => reason,
            Ok(TriggerResult::NotAdvanced) => return None,
            Err(error) => {
                self.untried.get_or_insert_with(|| error.to_string());
                return None;
            }
        };
        let next = self.all.get(self.current + 1)?;
        self.current += 1;
        self.trigger = TriggerState::default();
        self.entered = now;
        Some(PhaseEntry {
            phase: Arc::clone(next),
            reason: Some(reason),
            actions: next.on_enter.clone(),
        })
    }

    /// Why the last message could not be compared with the trigger of its phase, if so.
    pub(crate) fn take_untried(&mut self) -> Option<String> {
        self.untried.take()
    }

    /// How long until time alone ends the phase.
    pub(crate) fn time_left(&self, now: Instant) -> Option<Duration> {
        let trigger = self.all[self.current].trigger.as_ref()?;
        let after = trigger.after.as_ref()?.duration()?;
        Some(after.saturating_sub(now.saturating_duration_since(self.entered)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::load;
    use serde_json::json;

    fn phases(now: Instant) -> Phases {
        let document = load(
            r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_server
    phases:
      - name: trust
        state: {tools: [{name: a}]}
        trigger: {event: tools/call, count: 2, match: {name: a}}
      - name: wait
        on_enter: [{log: {message: waiting}}]
        trigger: {after: 5s}
      - name: strike
        state: {tools: [{name: b}]}
"#,
        )
        .unwrap()
        .document;
        Phases::new(&document.attack.execution.actors()[0], now).unwrap()
    }

    fn call(name: &str) -> ProtocolEvent {
        ProtocolEvent {
            event_type: "tools/call".to_owned(),
            content: json!({"name": name}),
        }
    }

    #[test]
    fn counts_matches_and_time_lead_on() {
        let start = Instant::now();
        let mut phases = phases(start);
        assert!(phases.happened(Some(&call("a")), start).is_none());
        assert!(phases.happened(Some(&call("other")), start).is_none());
        let entry = phases.happened(Some(&call("a")), start).unwrap();
        assert_eq!(
            (entry.phase.name.as_str(), entry.actions.len()),
            ("wait", 1)
        );
        assert_eq!(
            entry.phase.state,
            json!({"tools": [{"name": "a"}]}),
            "inherited"
        );
        assert!(!entry.phase.own_state);

        let later = start + Duration::from_secs(2);
        assert_eq!(phases.time_left(later), Some(Duration::from_secs(3)));
        assert!(phases.happened(None, later).is_none());
        let entry = phases
            .happened(None, start + Duration::from_secs(5))
            .unwrap();
        assert_eq!(entry.reason, Some(AdvanceReason::Timeout));
        assert!(entry.phase.is_terminal() && entry.phase.own_state);
        assert!(
            phases.happened(Some(&call("b")), later).is_none(),
            "the last one stays"
        );
        assert_eq!(phases.time_left(later), None);
    }

    #[test]
    fn what_a_driver_makes_of_a_state_is_made_once() {
        let view = phases(Instant::now()).current();
        let made = std::sync::atomic::AtomicUsize::new(0);
        let make = |state: &Value| {
            made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            state["tools"][0]["name"].to_string()
        };
        assert_eq!(*view.prepared(make), "\"a\"");
        assert_eq!(*view.prepared(make), "\"a\"");
        assert_eq!(made.into_inner(), 1);
    }
}
