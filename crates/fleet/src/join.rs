//! Joins a campaign: reads its plan from the store, refuses what this program cannot do, and makes its documents and subjects again.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use proofhouse_campaign::archive::KeptDocument;
use proofhouse_campaign::document::CampaignDocument;
use proofhouse_campaign::engine::CampaignSettings;
use proofhouse_campaign::run_maker::RunMaker;
use proofhouse_campaign::scratch::ScratchDirectory;
use proofhouse_oatf::{GenerationProvider, SemanticEvaluator};
use proofhouse_store::model::{CampaignRow, CampaignState};
use proofhouse_store::{Store, StoreError};
use proofhouse_subjects::{OpenContext, Subject, open};
use proofhouse_wire::gate::{LateGate, RequestGate};
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::FleetError;
use crate::caps::JUDGES;
use crate::digest::sha256;
use crate::gate::{LaneGate, RemoteGate};
use crate::name::shown;
use crate::plan::{FORMAT, StoredModel, StoredPlan, WorkerNeed};
use crate::subject::StoredSubject;

/// Documents that are read at once: each way to the store and back takes time, and a worker begins with hundreds of them.
const DOCUMENTS_AT_ONCE: usize = 100;

/// What a worker brings along.
#[derive(Clone, Default)]
pub struct WorkerTools {
    /// Judges semantic indicators.
    pub semantic: Option<Arc<dyn SemanticEvaluator>>,
    /// Answers `synthesize` blocks.
    pub generation: Option<Arc<dyn GenerationProvider>>,
    /// Which models these are.
    pub models: Vec<StoredModel>,
    /// What the requests of both go through.
    pub judge_gate: LateGate,
    /// Whether traces are kept.
    pub keeps_traces: bool,
    /// The version of this program.
    pub program: String,
}

/// A campaign that can be worked on.
pub struct JoinedCampaign {
    /// The campaign.
    pub campaign: CampaignRow,
    /// Its plan.
    pub plan: StoredPlan,
    /// Makes its runs.
    pub maker: RunMaker,
    /// Where traces are until they are put away, and the manifests of subjects. It goes away with this.
    pub directory: TempDir,
    /// What that is in; the next worker removes what a killed one left.
    _scratch: ScratchDirectory,
}

/// Reads the plan of a campaign. A program that does not know its form refuses it.
///
/// # Errors
///
/// Returns an error when the plan is not there, is damaged, or was written by a program that knows more.
pub async fn read_plan(
    store: &Store,
    campaign: &CampaignRow,
    program: &str,
) -> Result<StoredPlan, FleetError> {
    if campaign.format != FORMAT {
        let needs = format!("plan format {}", campaign.format);
        return Err(other_version(campaign, program, needs));
    }
    kept(store, (campaign, program), &campaign.plan, "the plan").await
}

/// What a campaign needs that the version which planned it has.
fn other_version(campaign: &CampaignRow, program: &str, needs: String) -> FleetError {
    FleetError::Refused {
        campaign: shown(campaign),
        program: campaign.program.clone(),
        needs,
        own: program.to_owned(),
        advice: "use the version that planned it",
    }
}

/// Why a program cannot read what is in the store: another version wrote it, or it is damaged.
fn unreadable(
    (campaign, program): (&CampaignRow, &str),
    what: &str,
    reason: &impl Display,
) -> FleetError {
    if campaign.program == program {
        FleetError::Damaged {
            what: what.to_owned(),
            reason: reason.to_string(),
        }
    } else {
        let needs = format!("{what} that this version cannot read ({reason})");
        other_version(campaign, program, needs)
    }
}

/// A text that a plan names and the store does not have.
fn missing(digest: &str) -> FleetError {
    StoreError::NotFound(format!("text {digest}")).into()
}

/// What a text of the store says, if it is what its digest says.
fn read_text<T: DeserializeOwned>(
    versions: (&CampaignRow, &str),
    text: &[u8],
    digest: &str,
    what: &str,
) -> Result<T, FleetError> {
    let is = sha256(text);
    if is != digest {
        return Err(FleetError::Damaged {
            what: what.to_owned(),
            reason: format!("its digest is {is}, not {digest}"),
        });
    }
    serde_json::from_slice(text).map_err(|error| unreadable(versions, what, &error))
}

async fn kept<T: DeserializeOwned>(
    store: &Store,
    versions: (&CampaignRow, &str),
    digest: &str,
    what: &str,
) -> Result<T, FleetError> {
    let text = store.campaign_blob(digest).await?;
    read_text(versions, &text, digest, what)
}

impl JoinedCampaign {
    /// Joins a campaign: its subjects are opened as the store describes them, with secrets from the environment of `opening`.
    ///
    /// # Errors
    ///
    /// Returns an error when this program cannot do what the campaign needs, and says what that is.
    pub async fn new(
        store: &Arc<Store>,
        campaign: CampaignRow,
        tools: WorkerTools,
        opening: &OpenContext<'_>,
    ) -> Result<Self, FleetError> {
        if campaign.state == CampaignState::Planning {
            return Err(FleetError::StillPlanned(shown(&campaign)));
        }
        let plan = read_plan(store, &campaign, &tools.program).await?;
        for need in &plan.needs {
            let is_there = match need {
                WorkerNeed::Semantic => tools.semantic.is_some(),
                WorkerNeed::Generation => tools.generation.is_some(),
            };
            if !is_there {
                return Err(FleetError::Refused {
                    campaign: shown(&campaign),
                    program: campaign.program.clone(),
                    needs: need.about().to_owned(),
                    own: tools.program.clone(),
                    advice: "give this worker the same model flags as the command that planned it",
                });
            }
        }
        for planned in &plan.models {
            let given = tools.models.iter().find(|one| one.need == planned.need);
            if let Some(given) = given.filter(|given| !given.is_same(planned)) {
                return Err(FleetError::OtherModel {
                    campaign: shown(&campaign),
                    planned: planned.about(),
                    given: given.about(),
                });
            }
        }
        let versions = (&campaign, tools.program.as_str());
        let scratch = ScratchDirectory::new().map_err(FleetError::Directory)?;
        let directory = scratch.run().map_err(FleetError::Directory)?;
        let lanes = store.campaign_lanes(campaign.id).await?;
        let gate = |name: &str| LaneGate::of(store, campaign.id, &lanes, name);
        if let Some(gate) = gate(JUDGES) {
            let runtime = Handle::current();
            tools.judge_gate.set(Arc::new(RemoteGate { gate, runtime }));
        }
        let mut subjects: Vec<Arc<dyn Subject>> = Vec::new();
        for (number, (digest, info)) in plan.subjects.iter().zip(&plan.subject_infos).enumerate() {
            let stored: StoredSubject = kept(store, versions, digest, "a subject").await?;
            let place = directory.path().join(format!("subject-{number}"));
            std::fs::create_dir_all(&place).map_err(FleetError::Directory)?;
            let spec =
                stored
                    .open(&opening.environment, &place)
                    .map_err(|error| FleetError::Subject {
                        name: info.name.clone(),
                        error,
                    })?;
            let gate = gate(&stored.lane(&info.name));
            let opening = OpenContext {
                environment: Arc::clone(&opening.environment),
                notify: opening.notify,
                gate: gate.map(|gate| Arc::new(gate) as Arc<dyn RequestGate>),
            };
            let opened = open(&spec, &opening).map_err(|error| FleetError::OpenSubject {
                name: info.name.clone(),
                error: Box::new(error),
            })?;
            subjects.push(opened);
        }
        let mut documents: Vec<CampaignDocument> = Vec::new();
        for digests in plan.documents.chunks(DOCUMENTS_AT_ONCE) {
            let texts = store.campaign_blobs(digests.to_vec()).await?;
            let texts = texts.into_iter().map(|text| (text.digest, text.body));
            let texts: HashMap<String, Vec<u8>> = texts.collect();
            for digest in digests {
                let text = texts.get(digest).ok_or_else(|| missing(digest))?;
                let stored: KeptDocument = read_text(versions, text, digest, "a document")?;
                let opened = stored.open();
                documents.push(opened.map_err(|error| unreadable(versions, "a document", &error))?);
            }
        }
        let settings = CampaignSettings {
            semantic: tools.semantic,
            generation: tools.generation,
            probes: !plan.probes.is_empty(),
            directory: tools.keeps_traces.then(|| directory.path().to_owned()),
            ..CampaignSettings::default()
        };
        let maker = RunMaker::new(documents, subjects, settings, plan.seed)
            .map_err(FleetError::Directory)?;
        Ok(Self {
            campaign,
            plan,
            maker,
            directory,
            _scratch: scratch,
        })
    }
}
