//! The flags that say who is attacked.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use proofhouse_agent::model::{self, ModelConfig};
use proofhouse_campaign::subject::Subject;

use super::agent::AgentSubject;
use crate::output::CommandError;

/// The simulations, and what each is.
const SIMULATIONS: [(&str, &str); 2] = [
    (
        "sim:gullible",
        "a simulation that takes every order for the user's",
    ),
    (
        "sim:careful",
        "a simulation that does what the user asked and nothing else",
    ),
];

/// Who is attacked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Subjects")]
pub(crate) struct SubjectOptions {
    /// Who is attacked: sim:gullible or sim:careful; may be given again, to compare [default: both]
    #[arg(long = "subject", value_name = "SUBJECT")]
    subjects: Vec<String>,
}

impl SubjectOptions {
    /// Whether nobody was named, so that the simulations show what the library does.
    pub(crate) fn is_demonstration(&self) -> bool {
        self.subjects.is_empty()
    }

    /// The subjects.
    pub(crate) fn open(&self) -> Result<Vec<Arc<dyn Subject>>, CommandError> {
        let mut subjects: Vec<Arc<dyn Subject>> = Vec::new();
        if self.is_demonstration() {
            for (name, _) in SIMULATIONS {
                subjects.push(simulation(name)?);
            }
        }
        for name in &self.subjects {
            subjects.push(simulation(name)?);
        }
        Ok(subjects)
    }
}

fn simulation(name: &str) -> Result<Arc<dyn Subject>, CommandError> {
    let known = SIMULATIONS.iter().find(|(known, _)| *known == name);
    let about = known.map_or("a simulation", |(_, about)| about);
    let config = ModelConfig {
        directory: Path::new(".").to_owned(),
        ..ModelConfig::default()
    };
    let model = model::open(name, &config)
        .map_err(|error| CommandError::usage(format!("--subject {name}: {error}")))?;
    let subject = AgentSubject::simulation(name, about, model);
    let subject = subject.map_err(CommandError::cannot_run)?;
    Ok(Arc::new(subject))
}
