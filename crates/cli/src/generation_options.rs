//! The flags that choose who writes the content of `synthesize` blocks.

use std::sync::Arc;

use clap::Args;
use proofhouse_fleet::plan::{StoredModel, WorkerNeed};
use proofhouse_oatf::GenerationProvider;
use proofhouse_semantic::{Config, Method, OpenAiGeneration, Secret};
use proofhouse_wire::gate::RequestGate;

use crate::output::CommandError;
use crate::proxies;

/// How `synthesize` blocks are filled in.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Generated content")]
pub(crate) struct GenerationOptions {
    /// URL of an OpenAI-compatible API that writes the content of `synthesize` blocks. Without it, their static
    /// content is used
    #[arg(long, value_name = "URL", requires = "generate_model")]
    generate_url: Option<String>,

    /// The name of the model
    #[arg(long, value_name = "NAME", requires = "generate_url")]
    generate_model: Option<String>,

    /// The environment variable that holds the API key
    #[arg(long, value_name = "NAME", requires = "generate_url")]
    generate_key_env: Option<String>,
}

impl GenerationOptions {
    /// The provider that was asked for, if one was.
    pub(crate) fn provider(&self) -> Result<Option<Arc<dyn GenerationProvider>>, CommandError> {
        self.provider_behind(None)
    }

    /// The model that was asked for, as a plan keeps it.
    pub(crate) fn stored(&self) -> Option<StoredModel> {
        let (url, model) = (self.generate_url.clone()?, self.generate_model.clone()?);
        let key = self.generate_key_env.clone();
        Some(StoredModel::generation(url, model, key))
    }

    /// These options, or those that the plan was made with if none are given.
    pub(crate) fn or_planned(&self, plan: &[StoredModel]) -> Self {
        let planned = StoredModel::find(plan, WorkerNeed::Generation);
        let Some(planned) = planned.filter(|_| self.generate_url.is_none()) else {
            return self.clone();
        };
        Self {
            generate_url: Some(planned.url.clone()),
            generate_model: Some(planned.model.clone()),
            generate_key_env: planned.key_env.clone(),
        }
    }

    /// The same, with its requests behind a gate.
    pub(crate) fn provider_behind(
        &self,
        gate: Option<Arc<dyn RequestGate>>,
    ) -> Result<Option<Arc<dyn GenerationProvider>>, CommandError> {
        let (Some(url), Some(model)) = (&self.generate_url, &self.generate_model) else {
            return Ok(None);
        };
        let api_key = match &self.generate_key_env {
            #[expect(clippy::disallowed_methods, reason = "the user names the variable")]
            Some(name) => Some(std::env::var(name).map(Secret::new).map_err(|_| {
                // The name is not repeated: people paste keys here.
                CommandError::usage("--generate-key-env: there is no such variable")
            })?),
            None => None,
        };
        let config = Config {
            api_key,
            gate,
            proxies: proxies::from_environment(),
            // The method is for scores, of which none are asked.
            ..Config::new(url, model, Method::Judge)
        };
        let provider = OpenAiGeneration::new(config)
            .map_err(|error| CommandError::usage(error.to_string()))?;
        Ok(Some(Arc::new(provider)))
    }
}
