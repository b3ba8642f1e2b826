//! Models on the command line: their names and their recordings.

use std::path::PathBuf;

use clap::Args;
use proofhouse_subjects::agent_models::ModelChoice;

/// Which model an agent has.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model: openai:MODEL, azure:DEPLOYMENT, anthropic:MODEL, google:MODEL, sim:careful, sim:gullible or
    /// sim:scripted:FILE [default: the model of the manifest, or the simulation sim:careful]
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// The base URL of the model provider, if it is not the usual one
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// The sampling temperature of the model
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,

    /// The sampling seed of the model, if its provider supports one
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Record all requests to the model and its answers in this new file, for --replay
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,

    /// Answer from a recorded file instead of a model
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
