//! The plan of a campaign as the store keeps it: texts named by their digests, and one row per run.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proofhouse_campaign::accepted::AcceptedRisk;
use proofhouse_campaign::archive::KeptDocument;
use proofhouse_campaign::document::CampaignDocument;
use proofhouse_campaign::plan::{Plan, PlanError};
use proofhouse_campaign::probes::{NeededChannel, needed};
use proofhouse_campaign::result::{DocumentInfo, SubjectInfo};
use proofhouse_store::Store;
use proofhouse_store::model::{
    CampaignBlob, CampaignRow, CampaignState, NewCampaign, NewLane, NewRun, PlannedKind, RunGate,
};
use proofhouse_subjects::spec::SubjectSpec;
use proofhouse_subjects::{EnvironmentLookup, Subject};
use serde::{Deserialize, Serialize};

use crate::FleetError;
use crate::caps::FleetCaps;
use crate::digest::sha256;
use crate::kubernetes::given_flags;
use crate::subject::StoredSubject;

/// The version of the form in which plans are kept.
pub const FORMAT: i64 = 1;

/// Runs of one campaign in a store.
pub const MAX_STORED_RUNS: u64 = 10_000_000;

/// Why a campaign in a store is not resumed, and what to do.
pub const NO_RESUME: &str = "--resume continues a campaign in a directory. To continue one in a store, start `proofhouse worker --store … --name NAME`; if it was cancelled, run it again without --resume";

/// Rows that are written at once.
const BATCH: usize = 1_000;

/// What a worker must have beside the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerNeed {
    /// A model that judges semantic indicators.
    Semantic,
    /// A model that answers `synthesize` blocks.
    Generation,
}

impl WorkerNeed {
    /// What it is, for people.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Semantic => "a model for semantic indicators",
            Self::Generation => "a model for generated content",
        }
    }
}

/// A model beside the agents as a plan keeps it, so that whoever makes its runs asks the same one. Its key is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredModel {
    /// What it is for.
    pub need: WorkerNeed,
    /// How it judges, by the name of its flag; none for one that writes content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Where it is.
    pub url: String,
    /// What it is called there.
    pub model: String,
    /// The variable that holds its key, if that is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// Seconds that an answer may take, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// How many requests a worker may make, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
}

impl StoredModel {
    /// Whether it answers like another one. Keys and limits are a matter of each worker.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.need, &self.method, &self.url, &self.model)
            == (other.need, &other.method, &other.url, &other.model)
    }

    /// A model that writes content.
    #[must_use]
    pub fn generation(url: String, model: String, key_env: Option<String>) -> Self {
        Self {
            need: WorkerNeed::Generation,
            method: None,
            url,
            model,
            key_env,
            timeout: None,
            max_requests: None,
        }
    }

    /// The one of these that is needed for this.
    #[must_use]
    pub fn find(plan: &[Self], need: WorkerNeed) -> Option<&Self> {
        plan.iter().find(|model| model.need == need)
    }

    /// The flags that name it to a worker. Its key is in none of them.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let (url, model) = (Some(self.url.clone()), Some(self.model.clone()));
        match self.need {
            WorkerNeed::Semantic => given_flags([
                ("--semantic", self.method.clone()),
                ("--semantic-url", url),
                ("--semantic-model", model),
                ("--semantic-key-env", self.key_env.clone()),
                ("--semantic-timeout", number(self.timeout)),
                ("--semantic-max-requests", number(self.max_requests)),
            ]),
            WorkerNeed::Generation => given_flags([
                ("--generate-url", url),
                ("--generate-model", model),
                ("--generate-key-env", self.key_env.clone()),
            ]),
        }
    }

    /// Looks for the keys of those models that come from the plan.
    ///
    /// # Errors
    ///
    /// Returns an error when one is not set here.
    pub fn check_keys(
        plan: &[Self],
        models: &[Self],
        environment: &EnvironmentLookup,
    ) -> Result<(), FleetError> {
        let mut planned = models.iter().filter(|model| plan.contains(model));
        planned.try_for_each(|model| model.check_key(environment))
    }

    /// Looks for the key in the variable that held it where the plan was made.
    ///
    /// # Errors
    ///
    /// Returns an error when that is not set here.
    fn check_key(&self, environment: &EnvironmentLookup) -> Result<(), FleetError> {
        match &self.key_env {
            Some(name) if environment(name).is_none_or(|key| key.is_empty()) => {
                Err(FleetError::NoKey {
                    model: self.about(),
                    variable: name.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// What it is, for people.
    #[must_use]
    pub fn about(&self) -> String {
        let method = self.method.as_ref();
        let method = method.map_or_else(String::new, |method| format!(" ({method})"));
        format!(
            "{}: {} at {}{method}",
            self.need.about(),
            self.model,
            self.url
        )
    }
}

/// A plan as it is kept. A key that a program does not know makes it refuse the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredPlan {
    /// The random seed of the campaign.
    pub seed: u64,
    /// Attack runs per document and subject.
    pub repeats: u32,
    /// Whether it ends when an attack gets through.
    pub fail_fast: bool,
    /// The digests of the documents.
    pub documents: Vec<String>,
    /// What reports say about them.
    pub document_infos: Vec<DocumentInfo>,
    /// The digests of the subjects.
    pub subjects: Vec<String>,
    /// Who they are.
    pub subject_infos: Vec<SubjectInfo>,
    /// The channels that are probed before the runs.
    pub probes: Vec<NeededChannel>,
    /// Documents and subjects that do not meet, by their numbers.
    pub left_out: Vec<(usize, usize)>,
    /// What a worker must have.
    pub needs: Vec<WorkerNeed>,
    /// The models that these are; plans of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<StoredModel>,
    /// Findings that somebody accepted.
    pub accepted: Vec<AcceptedRisk>,
}

/// How a campaign is to be.
#[derive(Debug, Clone, Default)]
pub struct PlanSettings {
    /// Its name.
    pub name: String,
    /// Attack runs per document and subject.
    pub repeats: u32,
    /// Its seed.
    pub seed: u64,
    /// Whether it ends when an attack gets through.
    pub fail_fast: bool,
    /// Whether channels are probed.
    pub probes: bool,
    /// Findings that somebody accepted.
    pub accepted: Vec<AcceptedRisk>,
    /// The models beside the agents.
    pub models: Vec<StoredModel>,
    /// What all workers together may ask.
    pub caps: FleetCaps,
    /// Where traces go.
    pub traces: Option<String>,
    /// The namespace that it belongs to; empty where it belongs to nobody in particular.
    pub namespace: String,
    /// The version of this program.
    pub program: String,
}

/// A campaign that is ready to be written down.
#[derive(Debug)]
pub struct PlannedCampaign {
    new: NewCampaign,
    plan: StoredPlan,
    lanes_of_subjects: Vec<i64>,
    /// The runs of the first repeat, with their controls.
    first: Plan,
    /// How many documents were left out of each subject.
    pub left_out: Vec<usize>,
    /// Models that a cap names and no subject has.
    pub unused_caps: Vec<String>,
}

impl PlannedCampaign {
    /// Plans a campaign of these documents and subjects. The specifications are those of the subjects, in the same order.
    ///
    /// # Errors
    ///
    /// Returns an error when there is nothing to run, or a secret would be stored.
    pub fn new(
        documents: Vec<CampaignDocument>,
        specs: &[SubjectSpec],
        subjects: &[Arc<dyn Subject>],
        settings: PlanSettings,
    ) -> Result<Self, FleetError> {
        let infos: Vec<SubjectInfo> = subjects.iter().map(|subject| subject.info()).collect();
        let mut blobs = Vec::new();
        let mut stored = Vec::new();
        let (mut lanes, mut lanes_of_subjects): (Vec<NewLane>, Vec<i64>) = Default::default();
        let mut requests = Vec::new();
        // Lanes of subjects whose runs need something for themselves, by that.
        let mut shared: HashMap<String, usize> = HashMap::new();
        for ((spec, info), opened) in specs.iter().zip(&infos).zip(subjects) {
            let subject = StoredSubject::of(spec).map_err(|error| FleetError::Subject {
                name: info.name.clone(),
                error,
            })?;
            let lane = subject.lane(&info.name);
            let need = opened.alone_with();
            let known = need.as_ref().and_then(|need| shared.get(need).copied());
            let named = || lanes.iter().position(|known| known.name == lane);
            let number = match known.or_else(named) {
                Some(known) => known,
                None => {
                    lanes.push(settings.caps.lane(&lane, subject.requests())?);
                    requests.push(subject.requests());
                    lanes.len() - 1
                }
            };
            if let Some(need) = need {
                shared.insert(need, number);
            }
            // Workers know nothing of each other's runs, so an agent that takes few at a time is spared by the store.
            if let Some(most) = opened.at_a_time() {
                let most = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
                let lane = &mut lanes[number];
                lane.max_concurrent = lane.max_concurrent.into_iter().chain([most]).min();
            }
            lanes_of_subjects.push(i64::try_from(number).unwrap_or(i64::MAX));
            stored.push(keep(&mut blobs, "a subject", &subject)?);
        }
        if !settings.models.is_empty() {
            lanes.push(settings.caps.judges());
        }
        settings.caps.add_providers(&mut lanes, &requests)?;
        let mut kept = Vec::new();
        for document in &documents {
            kept.push(keep(&mut blobs, "a document", &KeptDocument::of(document))?);
        }
        let first = Plan::new(documents, &infos, 1, settings.seed)?;
        let all: BTreeSet<(usize, usize)> = first
            .runs
            .iter()
            .map(|run| (run.document, run.subject))
            .collect();
        let (first, left_out) = first.meetable(subjects)?;
        let meet: BTreeSet<(usize, usize)> = first
            .runs
            .iter()
            .map(|run| (run.document, run.subject))
            .collect();
        let probes = if settings.probes {
            needed(&first).into_iter().collect()
        } else {
            Vec::new()
        };
        let plan = StoredPlan {
            seed: settings.seed,
            repeats: settings.repeats.max(1),
            fail_fast: settings.fail_fast,
            documents: kept,
            document_infos: first.documents.iter().map(|one| one.info.clone()).collect(),
            subjects: stored,
            subject_infos: infos,
            probes,
            left_out: all.difference(&meet).copied().collect(),
            needs: settings.models.iter().map(|model| model.need).collect(),
            models: settings.models,
            accepted: settings.accepted,
        };
        let digest = keep(&mut blobs, "the plan", &plan)?;
        let unused = settings.caps.unused(&lanes).map(str::to_owned);
        let unused_caps = unused.collect();
        let planned = Self {
            new: NewCampaign {
                name: settings.name,
                format: FORMAT,
                program: settings.program,
                plan: digest,
                traces: settings.traces,
                namespace: settings.namespace,
                lanes,
                blobs,
            },
            plan,
            lanes_of_subjects,
            first,
            left_out,
            unused_caps,
        };
        let total = planned.total();
        if total > MAX_STORED_RUNS {
            let total = usize::try_from(total).unwrap_or(usize::MAX);
            return Err(PlanError::TooMany(total).into());
        }
        Ok(planned)
    }

    /// The runs of the first repeat, with their controls, as one process would make them.
    #[must_use]
    pub fn first_repeat(&self) -> &Plan {
        &self.first
    }

    /// How many runs it has, probes included.
    #[must_use]
    pub fn total(&self) -> u64 {
        let attacks = self.first.runs.iter().filter(|run| !run.twin).count();
        let again = u64::from(self.plan.repeats.saturating_sub(1)) * attacks as u64;
        (self.plan.probes.len() + self.first.runs.len()) as u64 + again
    }

    /// Every run, in the order in which they are handed out: the probes, every document once, and then all the attacks again. Few
    /// of them are in memory at a time.
    fn runs(&self) -> impl Iterator<Item = NewRun> {
        let lane = |subject: usize| self.lanes_of_subjects.get(subject).copied().unwrap_or(0);
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let probes = self.plan.probes.iter().enumerate();
        let probes = probes.map(move |(place, channel)| NewRun {
            place: 0,
            kind: PlannedKind::Probe,
            document: number(place),
            subject: number(channel.subject),
            repeat: 1,
            lane: lane(channel.subject),
            gate: RunGate::Open,
        });
        let runs = (1..=self.plan.repeats).flat_map(move |repeat| {
            let runs = self.first.runs.iter();
            let wanted = runs.filter(move |run| repeat == 1 || !run.twin);
            wanted.map(move |run| {
                let has_probes = self
                    .plan
                    .probes
                    .iter()
                    .any(|one| one.subject == run.subject);
                let has_control = self.first.documents[run.document].twin.is_some();
                let gate = if has_control && !run.twin {
                    RunGate::Control
                } else if has_probes {
                    RunGate::Probes
                } else {
                    RunGate::Open
                };
                NewRun {
                    place: 0,
                    kind: if run.twin {
                        PlannedKind::Control
                    } else {
                        PlannedKind::Attack
                    },
                    document: number(run.document),
                    subject: number(run.subject),
                    repeat: i64::from(repeat),
                    lane: lane(run.subject),
                    gate,
                }
            })
        });
        probes.chain(runs).zip(0_i64..).map(|(mut run, place)| {
            run.place = place;
            run
        })
    }

    /// Writes the campaign down. The newest of its name goes on if it has the same plan and is not over.
    ///
    /// # Errors
    ///
    /// Returns an error when the store says no, or a campaign of the name with another plan is not over.
    pub async fn write(&self, store: &Store) -> Result<CampaignRow, FleetError> {
        let campaign = store.plan_campaign(self.new.clone()).await?;
        if campaign.state != CampaignState::Planning {
            return Ok(campaign);
        }
        let mut batch = Vec::with_capacity(BATCH);
        for run in self.runs() {
            batch.push(run);
            if batch.len() == BATCH {
                let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                store.add_runs(campaign.id, full).await?;
            }
        }
        store.add_runs(campaign.id, batch).await?;
        let total = i64::try_from(self.total()).unwrap_or(i64::MAX);
        store.begin_campaign(campaign.id, total).await?;
        Ok(store.campaign(campaign.id).await?)
    }
}

/// Adds a value to the texts that are kept, and gives its digest.
fn keep(
    blobs: &mut Vec<CampaignBlob>,
    what: &str,
    value: &impl Serialize,
) -> Result<String, FleetError> {
    let body = serde_json::to_vec(value).map_err(|error| FleetError::Damaged {
        what: what.to_owned(),
        reason: error.to_string(),
    })?;
    let digest = sha256(&body);
    blobs.push(CampaignBlob {
        digest: digest.clone(),
        body,
    });
    Ok(digest)
}
