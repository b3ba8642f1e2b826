//! `proofhouse model serve`: a simulation or a recording over OpenAI's chat completions.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use proofhouse_agent::model::{self, Model, ModelConfig};
use proofhouse_agent::serve::{ModelServer, ModelServerLimits};
use proofhouse_wire::{CancellationToken, listen_address};
use serde_json::json;

use crate::agents::show;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::tools::work::until_interrupted;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// The kinds of models that can be served. Whoever can use a real one does not need us in between, and its key
/// would be everybody's.
const SERVED: [&str; 2] = ["sim:", "replay:"];

/// Serve a simulated or recorded model over OpenAI's chat completions API
///
/// Give your agent this base URL instead of that of its model provider. It then runs with a model that obeys
/// everything it reads (sim:gullible) or only its user (sim:careful). This needs no API key and no network, and is
/// fully repeatable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse model serve sim:gullible\n  \
    proofhouse model serve sim:careful --listen 127.0.0.1:0 --format json\n\n\
    Exit codes:\n  \
    0   stopped by Ctrl-C or a signal\n  \
    3   the address cannot be used\n  \
    64  invalid arguments")]
pub(crate) struct ModelServe {
    /// The model: sim:gullible, sim:careful, sim:scripted:FILE or replay:FILE
    #[arg(value_name = "SPEC")]
    model: String,

    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8766", value_parser = listen_address)]
    listen: SocketAddr,

    /// Allow an address that other machines can reach. Anyone who reaches it can use the model
    #[arg(long)]
    allow_remote: bool,

    /// How to report the address
    #[arg(long, value_enum, default_value_t = ModelServeFormat::Human)]
    format: ModelServeFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelServeFormat {
    /// As sentences on stderr
    Human,
    /// As a line of JSON on stdout
    Json,
}

impl ModelServe {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let model = self.open()?;
        if !self.listen.ip().is_loopback() {
            let listen = self.listen;
            if !self.allow_remote {
                return Err(CommandError::usage(format!(
                    "other machines can reach {listen}, and nothing asks them who they are; \
                     --allow-remote listens there all the same"
                )));
            }
            talk(&format!(
                "warning: anyone who can reach {listen} can use the model"
            ));
        }
        let stop = CancellationToken::new();
        let serving = self.serve(model, stop.clone());
        until_interrupted(&stop, serving)?.into_inner()?;
        Ok(Exit::Success)
    }

    fn open(&self) -> Result<Arc<dyn Model>, CommandError> {
        if !SERVED.iter().any(|kind| self.model.starts_with(kind)) {
            return Err(CommandError::usage(printable_line(&format!(
                "{}: write sim:gullible, sim:careful, sim:scripted:FILE or replay:FILE; \
                 an agent reaches other models by itself",
                self.model
            ))));
        }
        model::open(&self.model, &ModelConfig::default())
            .map_err(|error| CommandError::usage(printable_line(&error.to_string())))
    }

    async fn serve(
        &self,
        model: Arc<dyn Model>,
        stop: CancellationToken,
    ) -> Result<(), CommandError> {
        let (name, simulation) = (model.name().to_owned(), model.is_simulation());
        let server = ModelServer::bind(model, self.listen, ModelServerLimits::default());
        let server = server.await.map_err(|error| {
            CommandError::cannot_run(format!("cannot listen on {}: {error}", self.listen))
        })?;
        let url = server.base_url();
        match self.format {
            ModelServeFormat::Human => {
                talk(&show::model_line(&name, simulation));
                talk(&format!("serving chat completions at {url}"));
            }
            ModelServeFormat::Json => {
                let mut data = StdoutData::new();
                let told = json!({
                    "version": VERSION,
                    "base_url": url,
                    "model": {"name": name, "simulation": simulation},
                });
                data.line(&told.to_string())?;
                data.finish()?;
            }
        }
        server.serve(stop).await;
        Ok(())
    }
}
