//! The flags of campaigns that are kept in a store, and of those who work on them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use proofhouse_campaign::config::positive_duration;
use proofhouse_fleet::FleetError;
use proofhouse_fleet::caps::{Cap, CostCap, FleetCaps};
use proofhouse_fleet::join::WorkerTools;
use proofhouse_fleet::name::CampaignName;
use proofhouse_fleet::plan::{NO_RESUME, StoredModel};
use proofhouse_fleet::trace_place::{TraceAccess, TracePlace};
use proofhouse_fleet::traces::TraceStore;
use proofhouse_fleet::worker::{WorkerEvent, WorkerSettings, worker_name};
use proofhouse_wire::gate::LateGate;

use crate::environment::environment;
use crate::generation_options::GenerationOptions;
use crate::output::{CommandError, printable_line, talk};
use crate::proxies;
use crate::semantic_options::SemanticOptions;
use crate::store_options::StoreOptions;
use crate::tools::options::read_settings;

/// A campaign that is kept in a store, where several machines work on it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Campaigns on several machines")]
pub(crate) struct FleetOptions {
    /// Keep the campaign in the store under this name, so that `proofhouse worker` can join it from other machines
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<CampaignName>,

    #[command(flatten)]
    pub(crate) store: StoreOptions,

    /// Plan the campaign in the store, without working on it
    #[arg(long, requires = "name")]
    pub(crate) plan_only: bool,

    /// Store compressed traces in this directory or object store (s3://BUCKET/PATH, gs://…, az://…). Every worker needs
    /// access to it [default: traces are not stored]
    #[arg(long, value_name = "DIR|URL", requires = "name")]
    pub(crate) traces: Option<TracePlace>,

    /// The maximum number of tokens that all workers together may use, for every model (N), for one (MODEL=N) or for all
    /// models of a provider (PROVIDER=N). Runs that have started are not interrupted. Can be repeated
    #[arg(long, value_name = "[MODEL=]N", requires = "name")]
    max_tokens: Vec<Cap>,

    /// The maximum number of runs at the same time on all workers together, for every model (N), for one (MODEL=N) or
    /// for all models of a provider (PROVIDER=N). A run makes one model call at a time. Can be repeated
    #[arg(long, value_name = "[MODEL=]N", requires = "name")]
    max_concurrent: Vec<Cap>,

    /// The maximum number of requests per minute from all workers together, for every model (N), for one (MODEL=N), for
    /// all models of a provider (PROVIDER=N), or for the models that judge (judges=N). Also limits the number of active runs. Can be repeated
    #[arg(long, value_name = "[MODEL=]N", requires = "name")]
    requests_per_minute: Vec<Cap>,

    /// The maximum amount that all workers together may spend, for every model (AMOUNT), for one (MODEL=AMOUNT) or
    /// for all models of a provider (PROVIDER=AMOUNT), in the currency of the prices. Runs that have started are not interrupted. Can be repeated
    #[arg(long, value_name = "[MODEL=]AMOUNT", requires_all = ["name", "prices"])]
    max_cost: Vec<CostCap>,

    /// The operator's settings file with the `prices` of models
    #[arg(long, value_name = "FILE", requires = "max_cost")]
    prices: Option<PathBuf>,

    /// The namespace that the campaign belongs to: keys of `proofhouse serve` that are bound to others do not see it
    #[arg(long, value_name = "NAMESPACE", requires = "name")]
    pub(crate) tenant: Option<String>,
}

impl FleetOptions {
    /// The name of the campaign, if it is kept in a store; such a one is not resumed.
    pub(crate) fn wanted(&self, resume: bool) -> Result<Option<&CampaignName>, CommandError> {
        let is_given = self.name.is_some() || self.store.is_given();
        match &self.name {
            _ if resume && is_given => Err(CommandError::usage(NO_RESUME)),
            None if self.store.is_given() => Err(CommandError::usage(
                "--store needs the name of the campaign; add --name NAME",
            )),
            Some(name) if name.number.is_some() => Err(CommandError::usage(
                "--name: campaigns are numbered by themselves; write the name without a number",
            )),
            wanted => Ok(wanted.as_ref()),
        }
    }

    pub(crate) fn caps(&self) -> Result<FleetCaps, CommandError> {
        let operator = self.prices.as_deref();
        let operator = operator.map(|file| read_settings("--prices", file));
        Ok(FleetCaps {
            tokens: self.max_tokens.clone(),
            concurrent: self.max_concurrent.clone(),
            requests_per_minute: self.requests_per_minute.clone(),
            cost: self.max_cost.clone(),
            prices: operator.transpose()?.unwrap_or_default().prices,
        })
    }
}

/// How a worker works.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkerOptions {
    /// How long a worker may be silent before its runs are given to others
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = positive_duration)]
    lease: Duration,

    /// How long runs may still take after SIGTERM before they are given back
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = positive_duration)]
    drain: Duration,
}

impl WorkerOptions {
    /// The settings of a worker with this many jobs.
    pub(crate) fn settings(
        &self,
        jobs: u16,
        traces: Option<&str>,
    ) -> Result<WorkerSettings, CommandError> {
        Ok(WorkerSettings {
            owner: worker_name(environment()("HOSTNAME")),
            jobs: usize::from(jobs),
            lease: self.lease,
            drain: self.drain,
            traces: traces.map(open_traces).transpose()?,
            program: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

/// What a worker brings along: the models that flags name, and else those of the plan.
pub(crate) fn worker_tools(
    semantic: &SemanticOptions,
    generation: &GenerationOptions,
    settings: &WorkerSettings,
    plan: &[StoredModel],
) -> Result<WorkerTools, CommandError> {
    let gate = LateGate::default();
    let (semantic, generation) = (semantic.or_planned(plan), generation.or_planned(plan));
    let models = semantic.stored().into_iter().chain(generation.stored());
    let models: Vec<StoredModel> = models.collect();
    let keys = StoredModel::check_keys(plan, &models, &environment());
    keys.map_err(|error| failed(&error))?;
    Ok(WorkerTools {
        models,
        semantic: semantic.evaluator_behind(Some(Arc::new(gate.clone())))?,
        generation: generation.provider_behind(Some(Arc::new(gate.clone())))?,
        judge_gate: gate,
        keeps_traces: settings.traces.is_some(),
        program: settings.program.clone(),
    })
}

/// The traces at a place.
pub(crate) fn open_traces(place: &str) -> Result<TraceStore, CommandError> {
    TraceStore::open(place, &trace_access()).map_err(|error| failed(&error.into()))
}

/// What places for traces need of this machine.
pub(crate) fn trace_access() -> TraceAccess {
    TraceAccess {
        environment: environment(),
        proxies: proxies::from_environment(),
    }
}

/// What a library says about a campaign.
pub(crate) fn failed(error: &FleetError) -> CommandError {
    CommandError::of(error, error.is_usage())
}

/// Tells what a worker does.
pub(crate) fn tell(event: &WorkerEvent<'_>, is_verbose: bool) {
    for line in event.lines(is_verbose) {
        talk(&printable_line(&line));
    }
}
