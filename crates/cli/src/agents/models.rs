//! Models on the command line: their names and their recordings.

use std::path::PathBuf;

use clap::Args;
use proofhouse_subjects::agent_models::ModelChoice;

/// Which model an agent has.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model: openai:MODEL, azure:DEPLOYMENT, anthropic:MODEL, google:MODEL, sim:careful, sim:gullible
    /// or sim:scripted:FILE; without it that of the manifest, and else sim:careful, a simulation
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// Where the provider of the model is, if not at its usual address
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// How freely the model chooses its words
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,

    /// Makes the model's choice repeatable, where its provider knows of it
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Write what the model is asked and says to this new file, for --replay
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,

    /// Answer from such a file instead of a model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "base_url"])]
    replay: Option<PathBuf>,
}

impl ModelArgs {
    /// Which model was chosen.
    pub(crate) fn choice(&self) -> ModelChoice {
        ModelChoice {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            temperature: self.temperature,
            seed: self.seed,
            record: self.record.clone(),
            replay: self.replay.clone(),
        }
    }
}
