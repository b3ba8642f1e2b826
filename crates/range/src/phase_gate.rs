//! One message at a time: a message is noted in the phase that holds, and ends that phase, in one step.
//!
//! Messages of one actor come over many connections at once. Were noting a message and counting it two steps, two
//! calls could both be answered by a phase that ends with the first of them. A model of this file under every
//! schedule of threads is in its tests.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use proofhouse_oatf::ProtocolEvent;
use proofhouse_wire::sync::lock;

use crate::phases::{PhaseEntry, PhaseView, Phases};

/// Something that only one thread may use at a time.
pub(crate) trait Exclusive<T> {
    /// Uses it.
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> Exclusive<T> for Mutex<T> {
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut lock(self))
    }
}

/// The phases of an actor, and the order of its messages.
#[derive(Debug)]
pub(crate) struct PhaseGate<L = Mutex<Phases>>(L);

/// A message that was let through.
pub(crate) struct Admitted<R> {
    /// The phase that held when it came.
    pub(crate) phase: Arc<PhaseView>,
    /// What noting it came to.
    pub(crate) noted: R,
    /// The phases that were entered: by time before the message, and by the message.
    pub(crate) entered: Vec<PhaseEntry>,
    /// Why it could not be compared with the trigger of its phase, if so.
    pub(crate) untried: Option<String>,
}

impl<L: Exclusive<Phases>> PhaseGate<L> {
    pub(crate) fn new(phases: L) -> Self {
        Self(phases)
    }

    /// Looks at the phases, or begins them.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Phases) -> R) -> R {
        self.0.with(look)
    }

    /// A message came. A phase whose time is up ends first, even when nobody has noticed yet. `note` is told which
    /// phase the message belongs to, and no other message of the actor comes between that and the phase it leads to.
    pub(crate) fn admit<R>(
        &self,
        event: Option<&ProtocolEvent>,
        now: Instant,
        note: impl FnOnce(&Arc<PhaseView>) -> R,
    ) -> Admitted<R> {
        self.0.with(|phases| {
            let mut entered: Vec<PhaseEntry> = phases.happened(None, now).into_iter().collect();
            let phase = phases.current();
            let noted = note(&phase);
            if let Some(event) = event {
                entered.extend(phases.happened(Some(event), now));
            }
            Admitted {
                phase,
                noted,
                entered,
                untried: phases.take_untried(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::load;
    use serde_json::json;

    impl<T> Exclusive<T> for shuttle::sync::Mutex<T> {
        fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
            work(&mut self.lock().unwrap())
        }
    }

    fn phases(counts: &[usize]) -> Phases {
        let mut text =
            "oatf: \"0.1\"\nattack:\n  execution:\n    mode: mcp_server\n    phases:\n".to_owned();
        for (index, count) in counts.iter().enumerate() {
            text += &format!(
                "      - {{name: p{index}, state: {{tools: [{{name: t{index}}}]}}, trigger: {{event: tools/call, count: {count}}}}}\n"
            );
        }
        text += "      - {name: zlast, state: {tools: [{name: z}]}}\n";
        let document = load(&text).unwrap().document;
        Phases::new(&document.attack.execution.actors()[0], Instant::now()).unwrap()
    }

    fn call() -> ProtocolEvent {
        ProtocolEvent {
            event_type: "tools/call".to_owned(),
            content: json!({"name": "a"}),
        }
    }

    /// Threads that call at the same moment, under schedules that shuttle chooses: each phase answers exactly as many
    /// calls as its trigger counts, and the record is in the order of the phases.
    fn every_call_is_counted_once(counts: &'static [usize], calls: usize) {
        shuttle::check_random(
            move || {
                let phases = shuttle::sync::Mutex::new(phases(counts));
                let gate = Arc::new(PhaseGate::new(phases));
                let record = Arc::new(shuttle::sync::Mutex::new(Vec::new()));
                let callers: Vec<_> = (0..calls)
                    .map(|_| {
                        let (gate, record) = (Arc::clone(&gate), Arc::clone(&record));
                        shuttle::thread::spawn(move || {
                            let admitted = gate.admit(Some(&call()), Instant::now(), |phase| {
                                shuttle::thread::yield_now();
                                record.lock().unwrap().push(phase.name.clone());
                            });
                            (admitted.phase.index, admitted.entered.len())
                        })
                    })
                    .collect();
                let answered: Vec<_> = callers
                    .into_iter()
                    .map(|caller| caller.join().unwrap())
                    .collect();
                let mut expected: Vec<usize> = Vec::new();
                for (index, count) in counts.iter().enumerate() {
                    expected.extend(std::iter::repeat_n(index, *count));
                }
                expected.resize(calls, counts.len());
                let mut phases: Vec<usize> = answered.iter().map(|(phase, _)| *phase).collect();
                phases.sort_unstable();
                assert_eq!(phases, expected);
                let entries: usize = answered.iter().map(|(_, entries)| entries).sum();
                assert_eq!(entries, counts.len(), "each phase is entered once");
                let record = record.lock().unwrap();
                assert!(
                    record.is_sorted(),
                    "the record is in the order of the phases: {record:?}"
                );
            },
            2_000,
        );
    }

    #[test]
    fn two_calls_at_once_meet_two_phases() {
        every_call_is_counted_once(&[1], 2);
    }

    #[test]
    fn many_calls_at_once_are_counted_exactly() {
        every_call_is_counted_once(&[3, 5], 10);
    }
}
