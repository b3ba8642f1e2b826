//! `proofhouse worker`: works on a campaign that is kept in a store.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use clap::Args;
use proofhouse_fleet::join::read_plan;
use proofhouse_fleet::name::{CampaignName, shown};
use proofhouse_fleet::worker::{WorkerEnd, WorkerEvent, run_worker};
use proofhouse_store::model::CampaignState;
use proofhouse_subjects::OpenContext;
use proofhouse_wire::{CancellationToken, adopt_orphans, end_orphans};

use crate::environment::environment;
use crate::exit_code::Exit;
use crate::fleet_options::{WorkerOptions, failed, tell, worker_tools};
use crate::generation_options::GenerationOptions;
use crate::notices;
use crate::output::{CommandError, printable_line, talk};
use crate::runtime::runtime;
use crate::semantic_options::SemanticOptions;
use crate::signals::{Worked, interruptible};
use crate::store_options::StoreOptions;

/// How long a worker waits for a store that is not up yet.
const PATIENCE: Duration = Duration::from_secs(60);

/// Work on a campaign that `proofhouse run --name` planned in a store
///
/// Joins the campaign from any machine, makes runs until none is left, and ends. At SIGTERM it takes no further runs,
/// finishes those under way and gives back the rest. Secrets are not in the store: set the variables that the agents and
/// their models need.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse worker --store postgres://proofhouse@db/proofhouse --name nightly --jobs 16\n  \
    PROOFHOUSE_STORE=postgres://… proofhouse worker --name nightly@3\n\n\
    Exit codes:\n  \
    0   the campaign is finished\n  \
    3   the campaign was cancelled or reached a limit, or this worker cannot run it\n  \
    64  invalid arguments, or there is no such campaign\n  \
    130 stopped before the campaign was finished")]
pub(crate) struct WorkerCommand {
    /// The campaign: NAME for the newest of that name, or NAME@NUMBER
    #[arg(long, value_name = "NAME")]
    name: CampaignName,

    #[command(flatten)]
    store: StoreOptions,

    /// How many runs to make in parallel
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,

    /// Print a line for every run
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    options: WorkerOptions,

    #[command(flatten)]
    semantic: SemanticOptions,

    #[command(flatten)]
    generation: GenerationOptions,
}

impl WorkerCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let runtime = runtime()?;
        adopt_orphans();
        let drain = CancellationToken::new();
        let working = runtime.block_on(interruptible(self.work(&drain), || drain.cancel()));
        runtime.shutdown_timeout(Duration::from_millis(500));
        end_orphans();
        match working.map(Worked::into_inner) {
            Some(exit) => exit,
            None => Ok(Exit::Interrupted),
        }
    }

    async fn work(&self, drain: &CancellationToken) -> Result<Exit, CommandError> {
        let begun = Instant::now();
        // Whoever starts a fleet may start its database at the same time.
        let told = OnceCell::new();
        let store = loop {
            match self.store.open_existing().await {
                Err(error) if error.exit == Exit::CannotRun && begun.elapsed() < PATIENCE => {
                    told.get_or_init(|| talk(&printable_line(&format!("{error}; trying again"))));
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_secs(1)) => {}
                        () = drain.cancelled() => return Ok(Exit::Interrupted),
                    }
                }
                opened => break opened?,
            }
        };
        let campaign = self.name.find(&store).await;
        let campaign = campaign.map_err(|error| failed(&error))?;
        let settings = self
            .options
            .settings(self.jobs, campaign.traces.as_deref())?;
        // A plan that cannot be read is told below, where the store hears of it as well.
        let plan = read_plan(&store, &campaign, &settings.program).await;
        let models = plan.map(|plan| plan.models).unwrap_or_default();
        let tools = worker_tools(&self.semantic, &self.generation, &settings, &models)?;
        let opening = OpenContext {
            environment: environment(),
            notify: &notices::show,
            gate: None,
        };
        let listener = |event: &WorkerEvent<'_>| tell(event, self.verbose);
        let worked = run_worker(
            &store, &self.name, &tools, &opening, &settings, &listener, drain,
        );
        let worked = worked.await;
        store.close().await;
        let (campaign, end) = worked.map_err(|error| failed(&error))?;
        let name = shown(&campaign);
        Ok(match end {
            WorkerEnd::Drained => Exit::Interrupted,
            WorkerEnd::Over(state) => {
                talk(&format!("campaign {name} is {state}"));
                match state {
                    CampaignState::Finished | CampaignState::Stopped => Exit::Success,
                    CampaignState::Planning
                    | CampaignState::Running
                    | CampaignState::Cancelled
                    | CampaignState::Capped => Exit::CannotRun,
                }
            }
        })
    }
}
