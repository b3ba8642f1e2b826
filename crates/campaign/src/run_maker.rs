//! One run at a time, for whoever hands out the runs of a plan: the same runs that [`execute`](crate::engine::execute) makes.

use std::io;
use std::sync::{Arc, RwLock};

use proofhouse_subjects::Subject;
use proofhouse_wire::CancellationToken;
use tokio::sync::Semaphore;

use crate::document::CampaignDocument;
use crate::engine::{CampaignSettings, control_of, turns};
use crate::outcome::InconclusiveReason;
use crate::plan::PlannedRun;
use crate::probes::{self, ChannelProbe, NeededChannel, ProbeRecord, ProvenChannels};
use crate::result::{RunRecord, SubjectInfo};
use crate::run::{RunSetup, TRACES};
use crate::scratch::ScratchDirectory;

/// Makes runs and probes of a plan, as many side by side as it is asked to.
pub struct RunMaker {
    documents: Vec<CampaignDocument>,
    subjects: Vec<Arc<dyn Subject>>,
    infos: Vec<SubjectInfo>,
    settings: Arc<CampaignSettings>,
    seed: u64,
    turns: Vec<Option<Arc<Semaphore>>>,
    channels: RwLock<Arc<ProvenChannels>>,
    scratch: Result<Arc<ScratchDirectory>, Arc<io::Error>>,
}

impl RunMaker {
    /// Makes runs of these documents against these subjects, with the seed of their campaign.
    ///
    /// # Errors
    ///
    /// Returns an error when the directory of the traces cannot be made.
    pub fn new(
        documents: Vec<CampaignDocument>,
        subjects: Vec<Arc<dyn Subject>>,
        settings: CampaignSettings,
        seed: u64,
    ) -> io::Result<Self> {
        if let Some(directory) = &settings.directory {
            for folder in [TRACES, probes::DIRECTORY] {
                std::fs::create_dir_all(directory.join(folder))?;
            }
        }
        Ok(Self {
            infos: subjects.iter().map(|subject| subject.info()).collect(),
            turns: turns(&subjects),
            documents,
            subjects,
            settings: Arc::new(settings),
            seed,
            channels: RwLock::default(),
            scratch: ScratchDirectory::new().map(Arc::new).map_err(Arc::new),
        })
    }

    /// The documents.
    #[must_use]
    pub fn documents(&self) -> &[CampaignDocument] {
        &self.documents
    }

    /// Who the subjects are.
    #[must_use]
    pub fn subjects(&self) -> &[SubjectInfo] {
        &self.infos
    }

    /// Notes which channels the models of the subjects read. Runs that are made from now on know it.
    pub fn note_probes(&self, probes: &[ProbeRecord]) {
        let proven = Arc::new(ProvenChannels::new(probes));
        *self
            .channels
            .write()
            .unwrap_or_else(|held| held.into_inner()) = proven;
    }

    /// The run of a document and a subject, by their numbers; `None` if there are no such.
    #[must_use]
    pub fn planned(
        &self,
        document: usize,
        subject: usize,
        repeat: u32,
        twin: bool,
    ) -> Option<PlannedRun> {
        let of_document = (document, &self.documents.get(document)?.info);
        let of_subject = (subject, self.infos.get(subject)?);
        Some(PlannedRun::new(
            of_document,
            of_subject,
            repeat,
            twin,
            self.seed,
        ))
    }

    /// Makes a run; `None` when it was interrupted, and there is nothing to say.
    pub async fn make(&self, planned: PlannedRun, cancel: CancellationToken) -> Option<RunRecord> {
        self.setup(planned).make(cancel).await
    }

    /// The record of a run that came to nothing for a reason that is not the subject's.
    #[must_use]
    pub fn failed(&self, planned: PlannedRun, why: &str) -> RunRecord {
        let mut record = self.setup(planned).record();
        record.error = Some(why.to_owned());
        record.broken = record.error.clone();
        record.broken_by = Some(InconclusiveReason::AttackFailed);
        record
    }

    /// Settles what an attack or a control came to, by the record of the control, if there is one.
    pub fn settle(&self, document: usize, record: &mut RunRecord, control: Option<&RunRecord>) {
        if let Some(document) = self.documents.get(document) {
            let state = if record.twin {
                control_of(document, Some(&*record))
            } else {
                control_of(document, control)
            };
            record.settle(&state);
        }
    }

    /// Asks a subject whether its model reads a channel; `None` when it was interrupted.
    pub async fn probe(
        &self,
        channel: &NeededChannel,
        cancel: CancellationToken,
    ) -> Option<ProbeRecord> {
        self.channel_probe(channel)?.ask(cancel).await
    }

    /// The record of a probe that came to nothing.
    #[must_use]
    pub fn failed_probe(&self, channel: &NeededChannel, why: &str) -> Option<ProbeRecord> {
        Some(self.channel_probe(channel)?.not_tried(why))
    }

    fn channel_probe(&self, channel: &NeededChannel) -> Option<ChannelProbe> {
        let number = channel.subject;
        Some(ChannelProbe {
            subject: Arc::clone(self.subjects.get(number)?),
            number,
            name: self.infos.get(number)?.name.clone(),
            mode: channel.mode.clone(),
            kind: channel.kind,
            field: channel.field,
            depth: channel.depth,
            seed: self.seed,
            settings: Arc::clone(&self.settings),
            turns: self.turns.get(number)?.clone(),
            scratch: self.scratch.clone(),
        })
    }

    /// What a run needs. Its numbers come from [`RunMaker::planned`].
    fn setup(&self, planned: PlannedRun) -> RunSetup {
        let document = &self.documents[planned.document];
        let channels = self
            .channels
            .read()
            .unwrap_or_else(|held| held.into_inner());
        RunSetup {
            document: document.info.id.clone(),
            script: Arc::clone(document.script(planned.twin)),
            subject: Arc::clone(&self.subjects[planned.subject]),
            name: self.infos[planned.subject].name.clone(),
            settings: Arc::clone(&self.settings),
            turns: self.turns[planned.subject].clone(),
            scratch: self.scratch.clone(),
            folder: TRACES,
            channels: Arc::clone(&channels),
            watch: None,
            planned,
        }
    }
}
