//! The probes that a plan needs, and how one is played.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use proofhouse_oatf::Mode;
use proofhouse_range::{CarrierKind, PayloadField, payload_depths};
use proofhouse_subjects::Subject;
use proofhouse_wire::CancellationToken;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::nonce::Nonce;
use super::templates::{ATTEMPTS, script};
use super::watch::{NonceWatch, ProbeSighting};
use super::{ChannelState, DIRECTORY, ProbeRecord, channel_name, word};
use crate::engine::CampaignSettings;
use crate::judging::line;
use crate::outcome::PROBES_OFF;
use crate::plan::{Plan, PlannedRun};
use crate::result::RunRecord;
use crate::run::RunSetup;
use crate::scratch::ScratchDirectory;

/// Characters of an answer that are shown.
const MAX_SHOWN: usize = 120;

/// What the probes of a campaign need.
pub(crate) struct ProbeSetup<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) subjects: &'a [Arc<dyn Subject>],
    /// The names of the subjects.
    pub(crate) names: Vec<String>,
    pub(crate) settings: &'a Arc<CampaignSettings>,
    pub(crate) turns: &'a [Option<Arc<Semaphore>>],
    pub(crate) scratch: &'a Result<Arc<ScratchDirectory>, Arc<io::Error>>,
}

/// The probes of a campaign, in their order: what is known, and what has to be asked.
#[derive(Default)]
pub(crate) struct PlannedProbes {
    known: BTreeMap<usize, ProbeRecord>,
    /// Of each subject: what has to be asked, and how much is not known yet.
    open: HashMap<usize, OpenProbes>,
}

/// The probes of a subject that are not known yet.
#[derive(Default)]
struct OpenProbes {
    waiting: VecDeque<(usize, ChannelProbe)>,
    running: usize,
}

impl PlannedProbes {
    /// The channels that the documents of a plan need. Those that earlier probes tell are known.
    pub(crate) fn new(setup: &ProbeSetup<'_>) -> Self {
        let mut probes = Self::default();
        for (place, needed) in needed(setup.plan).into_iter().enumerate() {
            let NeededChannel {
                subject,
                mode,
                kind,
                field,
                depth,
            } = needed;
            let name = setup.names[subject].clone();
            let mut earlier = setup.settings.earlier_probes.iter();
            let is_same = |record: &&ProbeRecord| {
                record.subject == name
                    && record.mode == mode
                    && (record.kind, record.field) == (kind, field)
                    && record.depth >= depth
            };
            if let Some(record) = earlier.find(is_same) {
                probes.known.insert(place, record.clone());
                continue;
            }
            let probe = ChannelProbe {
                subject: Arc::clone(&setup.subjects[subject]),
                number: subject,
                name,
                mode,
                kind,
                field,
                depth,
                seed: setup.plan.seed,
                settings: Arc::clone(setup.settings),
                turns: setup.turns[subject].clone(),
                scratch: setup.scratch.clone(),
            };
            if setup.settings.probes {
                let open = probes.open.entry(subject).or_default();
                open.waiting.push_back((place, probe));
            } else {
                let off = probe.not_tried(PROBES_OFF);
                probes.known.insert(place, off);
            }
        }
        probes
    }

    /// Whether there is something to ask a subject.
    pub(crate) fn is_waiting(&self, subject: usize) -> bool {
        let open = self.open.get(&subject);
        open.is_some_and(|open| !open.waiting.is_empty())
    }

    /// Whether everything is known of a subject that is to be.
    pub(crate) fn is_done(&self, subject: usize) -> bool {
        let open = self.open.get(&subject);
        open.is_none_or(|open| open.waiting.is_empty() && open.running == 0)
    }

    /// The next one to ask a subject, with its place.
    pub(crate) fn next(&mut self, subject: usize) -> Option<(usize, ChannelProbe)> {
        let open = self.open.get_mut(&subject)?;
        let next = open.waiting.pop_front()?;
        open.running += 1;
        Some(next)
    }

    /// Notes what became of a probe.
    pub(crate) fn note(&mut self, place: usize, subject: usize, record: ProbeRecord) {
        self.known.insert(place, record);
        if let Some(open) = self.open.get_mut(&subject) {
            open.running = open.running.saturating_sub(1);
        }
    }

    /// What became of them until now.
    pub(crate) fn records(&self) -> Vec<ProbeRecord> {
        self.known.values().cloned().collect()
    }
}

/// A channel in which planned attacks have their payloads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeededChannel {
    /// The number of the subject.
    pub subject: usize,
    /// The mode of the actor that carries something to it.
    pub mode: Mode,
    /// What carries it.
    pub kind: CarrierKind,
    /// In which field of it.
    pub field: PayloadField,
    /// How many characters of it one has to read to the end of the deepest payload.
    #[serde(default)]
    pub depth: usize,
}

/// The channels in which the planned attacks have their payloads, in the order in which they are probed.
#[must_use]
pub fn needed(plan: &Plan) -> BTreeSet<NeededChannel> {
    let channels: Vec<BTreeMap<(Mode, CarrierKind, PayloadField), usize>> = plan
        .documents
        .iter()
        .map(|document| {
            let attack = &document.attack;
            payload_depths(&attack.document, attack.twin.as_deref())
        })
        .collect();
    let mut needed: BTreeMap<(usize, &(Mode, CarrierKind, PayloadField)), usize> = BTreeMap::new();
    for run in plan.runs.iter().filter(|run| !run.twin) {
        for (channel, depth) in &channels[run.document] {
            let deepest = needed.entry((run.subject, channel)).or_default();
            *deepest = (*depth).max(*deepest);
        }
    }
    let needed = needed.into_iter();
    needed
        .map(|((subject, (mode, kind, field)), depth)| NeededChannel {
            subject,
            mode: mode.clone(),
            kind: *kind,
            field: *field,
            depth,
        })
        .collect()
}

/// One channel of one subject.
pub(crate) struct ChannelProbe {
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) mode: Mode,
    pub(crate) kind: CarrierKind,
    pub(crate) field: PayloadField,
    pub(crate) depth: usize,
    pub(crate) seed: u64,
    pub(crate) settings: Arc<CampaignSettings>,
    pub(crate) turns: Option<Arc<Semaphore>>,
    pub(crate) scratch: Result<Arc<ScratchDirectory>, Arc<io::Error>>,
}

impl ChannelProbe {
    /// The record of a probe that was not played.
    pub(crate) fn not_tried(&self, why: &str) -> ProbeRecord {
        ProbeRecord {
            subject: self.name.clone(),
            mode: self.mode.clone(),
            kind: self.kind,
            field: self.field,
            depth: self.depth,
            state: ChannelState::NotTried {
                why: why.to_owned(),
            },
            attempts: 0,
            milliseconds: 0,
            tokens: None,
            traces: Vec::new(),
        }
    }

    /// Asks for the code until it is said, as often as a model may be clumsy; `None` when the campaign was stopped.
    pub(crate) async fn ask(self, stop: CancellationToken) -> Option<ProbeRecord> {
        let mut record = self.not_tried("");
        for (number, attempt) in ATTEMPTS.into_iter().enumerate() {
            let number = number + 1;
            let mut kind = word(&self.kind);
            if !self.field.is_text() {
                kind = format!("{kind}.{}", word(&self.field));
            }
            let id = format!("probe/{}/{}/{kind}/{number}", self.name, self.mode);
            let nonce = Nonce::new(self.seed, &id);
            let place = (self.kind, self.field);
            let made = script(&self.mode, place, self.depth, &nonce, attempt);
            let watch = NonceWatch::new(&nonce, self.kind);
            let (script, watch) = match (made, watch) {
                (Ok(script), Ok(watch)) => (Arc::new(script), Arc::new(watch)),
                (Err(error), _) => return Some(self.not_tried(&error.to_string())),
                (_, Err(error)) => return Some(self.not_tried(&error.to_string())),
            };
            let run = RunSetup {
                planned: PlannedRun {
                    id,
                    document: 0,
                    subject: self.number,
                    repeat: u32::try_from(number).unwrap_or(u32::MAX),
                    twin: false,
                    seed: self.seed,
                },
                document: script.document.attack.id.clone().unwrap_or_default(),
                script,
                subject: Arc::clone(&self.subject),
                name: self.name.clone(),
                settings: Arc::clone(&self.settings),
                turns: self.turns.clone(),
                scratch: self.scratch.clone(),
                folder: DIRECTORY,
                channels: Arc::default(),
                watch: Some(Arc::clone(&watch)),
            };
            let made = run.make(stop.clone()).await?;
            let seen = watch.take();
            record.attempts += 1;
            record.milliseconds = record.milliseconds.saturating_add(made.milliseconds);
            if let Some(tokens) = made.tokens {
                *record.tokens.get_or_insert(0) += tokens;
            }
            record.traces.extend(made.trace.clone());
            record.state = self.state(&made, seen.as_ref());
            let is_final = match &record.state {
                ChannelState::Read { .. } => true,
                // Who does not start, or thinks until the time is up, does so again.
                ChannelState::NotRead { .. }
                | ChannelState::NotProved { .. }
                | ChannelState::NotTried { .. } => seen.is_none_or(|seen| seen.is_time_up),
            };
            if is_final {
                break;
            }
        }
        Some(record)
    }

    fn state(&self, made: &RunRecord, seen: Option<&ProbeSighting>) -> ChannelState {
        let not_proved = |why: &str| ChannelState::NotProved { why: line(why) };
        let Some(seen) = seen else {
            let failure = made.broken.as_deref().or(made.error.as_deref());
            let failure = failure.unwrap_or("no reason was given");
            return not_proved(&format!("the agent could not be asked: {failure}"));
        };
        if let Some(form) = &seen.read {
            return ChannelState::Read { form: line(form) };
        }
        // A probe has no indicators, so that there is no verdict is no failure.
        if let Some(failure) = &made.broken {
            return not_proved(&format!("the subject failed: {failure}"));
        }
        if seen.messages == 0 {
            return not_proved("the subject did not connect");
        }
        let channel = channel_name(Some(&self.mode), self.kind, self.field);
        let answer = made.answer.as_deref().unwrap_or_default().trim();
        let shown: String = answer.chars().take(MAX_SHOWN).collect();
        let answered = if answer.is_empty() {
            "answered nothing".to_owned()
        } else {
            format!("answered something else: {shown}")
        };
        if !seen.is_delivered {
            // What it does with a field that it never saw, nobody knows.
            not_proved(&format!("it never asked for {channel} and {answered}"))
        } else if seen.is_repeated {
            // A model too clumsy to join them has read them; a log that nobody reads has them as well.
            let why = format!("it repeated both halves of the code and did not join them: {shown}");
            not_proved(&why)
        } else {
            let why = format!("it was sent {channel} and {answered}");
            ChannelState::NotRead { why: line(&why) }
        }
    }
}
