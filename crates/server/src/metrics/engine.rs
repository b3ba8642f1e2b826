//! What the engine counts: events, polls, channels, deliveries, leases, manifests.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use proofhouse_store::model::ToolRef;
use proofhouse_wire::sync::lock;

use super::counts::{CounterLabel, LabelledCounters, kinds};
use crate::engine::EngineProgress;

kinds! {
    /// What became of an event.
    RoutingOutcome {
        Delivered = "delivered",
        Discarded = "discarded",
        Unwanted = "unwanted",
        Elsewhere = "elsewhere",
        Failed = "failed",
    }
    /// What became of a delivery.
    SettledOutcome {
        Given = "given",
        Discarded = "discarded",
    }
    /// What was done about a push channel.
    ChannelStep {
        Opened = "opened",
        OpenFailed = "open_failed",
        Renewed = "renewed",
        RenewFailed = "renew_failed",
        Closed = "closed",
        CloseFailed = "close_failed",
        Lost = "lost",
    }
    /// Who begins tasks.
    TaskStarter {
        Api = "api",
        Trigger = "trigger",
        Schedule = "schedule",
    }
    /// What the engine does all the time.
    EngineLoop {
        Router = "router",
        Deliverer = "deliverer",
        Polls = "polls",
        Channels = "channels",
        Schedules = "schedules",
        Manifests = "manifests",
        Changes = "changes",
        Sweeps = "sweeps",
        Heartbeat = "heartbeat",
        Releases = "releases",
    }
    /// How a poll went.
    PollOutcome {
        Done = "done",
        Failed = "failed",
        Gone = "gone",
        Lost = "lost",
    }
}

/// Why a task did not get an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiscardLabel(usize);

impl DiscardLabel {
    /// The one with this word of `Discard`.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let place = Self::WORDS.iter().position(|known| *known == word)?;
        Some(Self(place))
    }
}

impl CounterLabel for DiscardLabel {
    const WORDS: &'static [&'static str] = &[
        "filter",
        "empty_parameter",
        "failed",
        "budget",
        "not_included",
        "signature",
        "unsigned",
        "assertion",
        "disabled",
        "timed_out",
    ];

    fn place(self) -> usize {
        self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PollLabels {
    tool: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

/// What the engine counts.
#[derive(Debug)]
pub(crate) struct EngineMetrics {
    pub(crate) routed: LabelledCounters<RoutingOutcome>,
    pub(crate) discards: LabelledCounters<DiscardLabel>,
    pub(crate) settled: LabelledCounters<SettledOutcome>,
    pub(crate) channel_steps: LabelledCounters<ChannelStep>,
    pub(crate) begun: LabelledCounters<TaskStarter>,
    pub(crate) start_failures: LabelledCounters<TaskStarter>,
    pub(crate) restarts: LabelledCounters<EngineLoop>,
    pub(crate) working: Gauge,
    pub(crate) lease_losses: Counter,
    pub(crate) lease_orphans: Counter,
    oldest_event: Gauge<f64, AtomicU64>,
    oldest_command: Gauge<f64, AtomicU64>,
    idle_leases: Gauge<u64, AtomicU64>,
    pub(crate) manifest_reloads: Counter,
    manifest_problems: Gauge<u64, AtomicU64>,
    polls: Family<PollLabels, Counter>,
    polled: Family<ToolLabels, Gauge<f64, AtomicU64>>,
    /// The tools with polls: their manifests decide how many there are.
    tools: Mutex<BTreeSet<String>>,
}

impl EngineMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let help = "Events that were decided about, by what became of them";
        let routed = LabelledCounters::register(registry, "events_routed", help, "outcome");
        let help = "Tasks that did not get an event they listen for, by the reason";
        let discards = LabelledCounters::register(registry, "event_discards", help, "reason");
        let help = "Deliveries that tasks were given, or that were discarded at last";
        let settled = LabelledCounters::register(registry, "deliveries", help, "outcome");
        let help = "What was done about push channels";
        let channel_steps = LabelledCounters::register(registry, "channel_steps", help, "step");
        let help = "Tasks that were begun, by whom";
        let begun = LabelledCounters::register(registry, "tasks_begun", help, "by");
        let help = "Tasks that could not be begun, by who wanted to";
        let start_failures = LabelledCounters::register(registry, "start_failures", help, "by");
        let help = "Times that a part of the engine panicked and was started again";
        let restarts = LabelledCounters::register(registry, "engine_restarts", help, "loop");
        let working = Gauge::default();
        let help = "Tasks that this process works on";
        registry.register("tasks_working", help, working.clone());
        let lease_losses = Counter::default();
        let help = "Tasks that this process let go of because their lease had moved or run out";
        registry.register("lease_losses", help, lease_losses.clone());
        let lease_orphans = Counter::default();
        let help = "Leases of this process that nobody worked on, and that it released";
        registry.register("lease_orphans", help, lease_orphans.clone());
        let oldest_event = Gauge::default();
        let help = "Seconds that the oldest acknowledged event has waited which no task has got, though one could have";
        registry.register("oldest_event_seconds", help, oldest_event.clone());
        let oldest_command = Gauge::default();
        let help = "Seconds that the oldest command to a task has waited which nobody has obeyed";
        registry.register("oldest_command_seconds", help, oldest_command.clone());
        let idle_leases = Gauge::default();
        let help = "Leases of this process that nobody works under";
        registry.register("leases_without_worker", help, idle_leases.clone());
        let manifest_reloads = Counter::default();
        let help = "Times that changed manifests were read";
        registry.register("manifest_reloads", help, manifest_reloads.clone());
        let manifest_problems = Gauge::default();
        let help = "Problems in the manifests as they are now";
        registry.register("manifest_problems", help, manifest_problems.clone());
        let polls = Family::default();
        let help = "Polls, by tool and by how they went";
        registry.register("polls", help, polls.clone());
        let polled = Family::default();
        let help = "When a poll of the tool last went well, in seconds since 1970";
        registry.register("poll_last_success_timestamp_seconds", help, polled.clone());
        Self {
            routed,
            discards,
            settled,
            channel_steps,
            begun,
            start_failures,
            restarts,
            working,
            lease_losses,
            lease_orphans,
            oldest_event,
            oldest_command,
            idle_leases,
            manifest_reloads,
            manifest_problems,
            polls,
            polled,
            tools: Mutex::default(),
        }
    }

    /// Counts a poll that ended at this time, in milliseconds.
    pub(crate) fn poll(&self, tool: &ToolRef, outcome: PollOutcome, now: i64) {
        let name = format!("{}/{}", tool.namespace, tool.name);
        let labels = PollLabels {
            tool: name.clone(),
            outcome: PollOutcome::WORDS[outcome.place()],
        };
        self.polls.get_or_create(&labels).inc();
        if outcome == PollOutcome::Done {
            #[expect(clippy::cast_precision_loss, reason = "there is no such year")]
            let seconds = now as f64 / 1_000.0;
            let labels = ToolLabels { tool: name.clone() };
            self.polled.get_or_create(&labels).set(seconds);
        }
        let mut tools = lock(&self.tools);
        tools.insert(name);
    }

    /// Notes how work goes on.
    pub(crate) fn progress(&self, progress: &EngineProgress) {
        let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        self.oldest_event.set(seconds(progress.oldest_event));
        self.oldest_command.set(seconds(progress.oldest_command));
        self.idle_leases.set(progress.idle_leases);
    }

    /// Notes what the manifests are like, and forgets the tools that are in none any more.
    pub(crate) fn manifests(&self, problems: usize, is_known: impl Fn(&str) -> bool) {
        self.manifest_problems.set(problems as u64);
        let mut tools = lock(&self.tools);
        tools.retain(|tool| {
            let keeps = is_known(tool);
            if !keeps {
                for outcome in PollOutcome::WORDS {
                    let tool = tool.clone();
                    self.polls.remove(&PollLabels { tool, outcome });
                }
                self.polled.remove(&ToolLabels { tool: tool.clone() });
            }
            keeps
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use proofhouse_tools::receive::Discard;

    #[test]
    fn every_reason_has_its_counter() {
        let message = || "m".to_owned();
        let name = message;
        let reason = proofhouse_tools::receive::webhook::Refusal::Missing;
        let number = 0;
        for discard in [
            Discard::Filter,
            Discard::EmptyParameter { name: name() },
            Discard::Failed { message: message() },
            Discard::Budget { message: message() },
            Discard::NotIncluded,
            Discard::Signature { reason },
            Discard::Unsigned,
            Discard::Assertion {
                number,
                message: Some(message()),
            },
            Discard::Disabled,
            Discard::TimedOut,
        ] {
            assert!(DiscardLabel::named(discard.word()).is_some(), "{discard:?}");
        }
    }

    #[test]
    fn a_tool_that_is_gone_is_forgotten() {
        let metrics = Metrics::default();
        let engine = &metrics.engine;
        for name in ["stays", "goes"] {
            engine.poll(&ToolRef::new("shop", name), PollOutcome::Done, 5_000);
        }
        engine.manifests(2, |tool| tool == "shop/stays");
        let text = metrics.text();
        assert!(text.contains("polls_total{tool=\"shop/stays\",outcome=\"done\"} 1"));
        let since = "poll_last_success_timestamp_seconds{tool=\"shop/stays\"} 5.0";
        assert!(text.contains(since), "{text}");
        assert!(text.contains("manifest_problems 2"), "{text}");
        assert!(!text.contains("shop/goes"), "{text}");
    }
}
