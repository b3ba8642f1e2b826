//! Why a campaign cannot be planned, joined or read.

use std::io;

use proofhouse_campaign::archive::KeptDocumentError;
use proofhouse_campaign::plan::PlanError;
use proofhouse_store::StoreError;
use proofhouse_subjects::SubjectOpenError;

use crate::caps::CapsError;
use crate::subject::StoreSubjectError;
use crate::traces::TraceStoreError;

/// Why a campaign cannot be planned, joined or read.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A subject cannot be kept in the store.
    #[error("subject {name}: {error}")]
    Subject {
        /// Its name.
        name: String,
        /// Why not.
        error: StoreSubjectError,
    },
    /// A subject cannot be started here.
    #[error("subject {name} cannot be started by this worker: {error}")]
    OpenSubject {
        /// Its name.
        name: String,
        /// Why not.
        error: Box<SubjectOpenError>,
    },
    /// A cap cannot be kept.
    #[error(transparent)]
    Caps(#[from] CapsError),
    /// A kept document cannot be used.
    #[error(transparent)]
    Document(#[from] KeptDocumentError),
    /// The name of a campaign is none.
    #[error(
        "`{0}` is not a campaign: write NAME or NAME@NUMBER, with letters, digits, `-`, `_` and `.` in the name"
    )]
    Name(String),
    /// There is no such campaign.
    #[error("there is no campaign {name}; {help}")]
    NoCampaign {
        /// How it was named.
        name: String,
        /// What to do.
        help: String,
    },
    /// It is still being planned.
    #[error("campaign {0} is still being planned")]
    StillPlanned(String),
    /// It needs what this program does not have.
    #[error(
        "campaign {campaign} was planned by Proofhouse {program} and needs {needs}, which this worker (Proofhouse {own}) does not have; {advice}"
    )]
    Refused {
        /// The campaign.
        campaign: String,
        /// The version that planned it.
        program: String,
        /// What is missing.
        needs: String,
        /// The version of this program.
        own: String,
        /// What to do.
        advice: &'static str,
    },
    /// The key of a model of the plan is not there.
    #[error("the campaign needs {model}; set the variable {variable} to its key")]
    NoKey {
        /// The model.
        model: String,
        /// The variable.
        variable: String,
    },
    /// This worker would judge with another model than the other workers.
    #[error(
        "campaign {campaign} was planned with {planned}, and this worker was given {given}; leave out its flags for models, and it uses those of the plan"
    )]
    OtherModel {
        /// The campaign.
        campaign: String,
        /// What the plan says.
        planned: String,
        /// What the worker has.
        given: String,
    },
    /// What the store holds is not what its digest says, or cannot be read.
    #[error("{what} in the store is damaged: {reason}")]
    Damaged {
        /// What.
        what: String,
        /// How.
        reason: String,
    },
    /// Traces cannot be kept or read.
    #[error(transparent)]
    Traces(#[from] TraceStoreError),
    /// The machine says no.
    #[error("cannot make a directory for the runs: {0}")]
    Directory(io::Error),
}

impl FleetError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Plan(_)
            | Self::Subject { .. }
            | Self::Caps(_)
            | Self::Name(_)
            | Self::NoCampaign { .. }
            | Self::OtherModel { .. } => true,
            Self::Traces(error) => error.is_usage(),
            Self::OpenSubject { error, .. } => error.is_usage(),
            Self::Store(StoreError::Conflict(_)) => true,
            Self::Store(_)
            | Self::Document(_)
            | Self::StillPlanned(_)
            | Self::Refused { .. }
            | Self::NoKey { .. }
            | Self::Damaged { .. }
            | Self::Directory(_) => false,
        }
    }
}
