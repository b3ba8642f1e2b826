//! `proofhouse run`: the main job, the threat library or documents of one's own against subjects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use proofhouse_campaign::accepted::AcceptedRisk;
use proofhouse_campaign::baseline::{
    DEFAULT_THRESHOLD, compare, is_fair_sample, missing_in_common,
};
use proofhouse_campaign::comparison::{Comparison, Incomparable};
use proofhouse_campaign::engine::{CampaignProgress, CampaignSettings, execute};
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_campaign::filters;
use proofhouse_campaign::gates::{FailOn, gate, has_resisted, surprises};
use proofhouse_campaign::load::load;
use proofhouse_campaign::plan::{DocumentFilter, Plan, left_out_notes};
use proofhouse_campaign::preflight::{Preflight, preflight};
use proofhouse_campaign::replay::traces;
use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_campaign::result::{CampaignResult, RunRecord, SubjectInfo};
use proofhouse_campaign::results_directory::{at_this_time, has_time};
use proofhouse_campaign::sensitivity::Sensitivity;
use proofhouse_campaign::store::{self, EarlierCampaign};
use proofhouse_fleet::listing::campaign_json;
use proofhouse_fleet::name::{CampaignName, shown};
use proofhouse_fleet::plan::{PlanSettings, PlannedCampaign, StoredModel};
use proofhouse_fleet::report;
use proofhouse_fleet::worker::{WorkerEvent, WorkerSettings, run_worker};
use proofhouse_report::preflight::explanation;
use proofhouse_report::{listing, power};
use proofhouse_store::Store;
use proofhouse_store::model::CampaignRow;
use proofhouse_subjects::operator::now;
use proofhouse_subjects::spec::SubjectSpec;
use proofhouse_subjects::{GuardedSubject, OpenContext, Subject};
use proofhouse_wire::{CancellationToken, adopt_orphans, end_orphans};
use tokio::runtime::Runtime;

use crate::campaign::meter::{CampaignMeter, ProgressMode};
use crate::campaign::on_kubernetes::{print_manifest, work_on_kubernetes};
use crate::campaign::reports::{self, CampaignReports};
use crate::campaign::results::ResultsPlace;
use crate::config_options::ConfigOptions;
use crate::environment::environment;
use crate::exit_code::Exit;
use crate::fleet_options::{FleetOptions, WorkerOptions, failed, tell, worker_tools};
use crate::generation_options::GenerationOptions;
use crate::input::SizeLimit;
use crate::kubernetes_options::KubernetesOptions;
use crate::notices;
use crate::output::{CommandError, StdoutData, complain, printable_line, shown_path, talk};
use crate::rules::unknown_names;
use crate::runtime::runtime;
use crate::semantic_options::SemanticOptions;
use crate::signals::{Worked, interruptible};
use crate::subject_options::SubjectOptions;

/// How long leaving at once may take.
const LEAVING: Duration = Duration::from_millis(500);
/// How many runs go on at a time where nobody says it.
const DEFAULT_JOBS: u16 = 8;

/// Attack an agent with the built-in threat library or your own attacks, and report what got through
///
/// Reads proofhouse.yaml in the current directory if there is one. Otherwise it runs the whole library against two
/// simulated agents, a gullible one and a careful one, to show what a report looks like. Results are kept in
/// .proofhouse/results. Attack only agents that you own or have permission to test.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse run\n  \
    proofhouse run --category capability_poisoning --repeats 5\n  \
    proofhouse run --list --severity critical\n  \
    proofhouse run my-attacks/ --subject sim:careful --format json\n  \
    proofhouse run --command 'python agent.py --mcp {mcp_url} {prompt}' --protocol mcp\n  \
    proofhouse run --subject agent.yaml --model openai:gpt-5 --repeats 10 --out results\n  \
    proofhouse run --config ci/proofhouse.yaml --subject mine\n  \
    proofhouse run --subject sim:gullible --guard stock\n  \
    proofhouse run --ag-ui-url http://127.0.0.1:8000/ --mcp-listen 127.0.0.1:8080\n  \
    proofhouse run --store postgres://proofhouse@db/proofhouse --name nightly --repeats 20\n  \
    proofhouse run --on kubernetes --name nightly --image shop-agent:1 --workers 50 --dry-run\n\n\
    Exit codes:\n  \
    0   no attack got through, and at least one was resisted\n  \
    1   an attack got through, or another condition of --fail-on holds\n  \
    2   inconclusive: no attack got through, but the runs do not prove that one was resisted\n  \
    3   could not run, the preflight failed, or the results cannot be written\n  \
    64  invalid arguments\n  \
    130 stopped by Ctrl-C before anything got through\n\n\
    With --guard, the runs with the guard decide the exit code. It cannot guard attacks without an MCP server or an A2A agent; for these, the runs without it count.\n\n\
    Without a subject and --fail-on, both simulations run, and the exit code is 0 if the gullible one \
    was exploited by every attack and the careful one by none.")]
pub(crate) struct RunCommand {
    /// Threat documents to run: files, directories that are searched for .yaml and .yml files, or ids of the built-in
    /// library [default: all of the library]
    #[arg(value_name = "DOC")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    config: ConfigOptions,

    /// The user's message to the agent, for documents that do not define one
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,

    /// Also run documents that use operations, states or targets unknown to their protocol
    #[arg(long)]
    allow_unknown: bool,

    /// How often to run each attack against each subject [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,

    /// How many runs to make in parallel [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Random seed [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Stop at the first attack that gets through
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fail_fast: Option<bool>,

    /// Skip the channel probes, which find out what the agent's model reads. Without them no attack counts as
    /// resisted
    #[arg(long)]
    no_probes: bool,

    /// Skip the preflight, one run without an attack that checks that the agent starts, connects and answers
    #[arg(long)]
    no_preflight: bool,

    /// Write the result, the traces and the reports to this directory [default: .proofhouse/results/TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Do not write any files
    #[arg(long, conflicts_with_all = ["out", "resume", "reports"])]
    no_keep: bool,

    /// Continue an interrupted campaign: the one in --out, or the latest in .proofhouse/results. Not for --name
    #[arg(long)]
    resume: bool,

    /// Print the runs that would be made, without making them
    #[arg(long)]
    dry_run: bool,

    /// Print the attacks that would be run, without running them
    #[arg(long, conflicts_with = "dry_run")]
    list: bool,

    /// Print a line for every run
    #[arg(short, long)]
    verbose: bool,

    /// How to show progress
    #[arg(long, value_name = "MODE", value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,

    /// Run every attack twice, without and with the guard between the agent and its servers, and compare the results.
    /// POLICY is a policy file, or `stock` for the built-in policy. Calls that a user would have to approve are denied
    #[arg(long, value_name = "POLICY")]
    guard: Option<PathBuf>,

    /// Let the guard see the servers for the first time in every run. By default, it pins their tools and cards in the
    /// control run and withholds what an attack changes
    #[arg(long, requires = "guard")]
    guard_first_use: bool,

    /// Compare with the result.json of an earlier campaign
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// The highest accepted probability that the comparison reports a regression although nothing changed
    /// [default: 0.05]
    #[arg(long, value_name = "P")]
    threshold: Option<f64>,

    /// Print how many repeats are needed to detect a rise of the attack success rate by this much, such as 0.2,
    /// without running anything
    #[arg(long, value_name = "RISE")]
    detect: Option<f64>,

    /// When to fail, as a comma-separated list of conditions: exploited, partial (or worse), inconclusive,
    /// regression, tier=TIER or severity=LEVEL (or worse), utility<SHARE (too few control tasks done),
    /// exposed<SHARE (too few runs exposed). Any of them is enough [default: partial]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = str::parse::<FailOn>)]
    fail_on: Vec<FailOn>,

    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = reports::format, help = reports::format_help())]
    format: ReportFormat,

    /// Write a report in this format next to the result; can be repeated [default: html]
    #[arg(long = "report", value_name = "FORMAT", value_parser = reports::format)]
    reports: Vec<ReportFormat>,

    #[command(flatten)]
    size: SizeLimit,

    #[command(flatten)]
    subjects: SubjectOptions,

    /// Only attacks with this id; `*` matches any text. Like all filters, it can be repeated
    #[arg(long = "id", value_name = "ID", help_heading = "Filters")]
    ids: Vec<String>,

    /// Only attacks with this tag
    #[arg(long = "tag", value_name = "TAG", help_heading = "Filters")]
    tags: Vec<String>,

    /// Only attacks of this category
    #[arg(long = "category", value_name = "CATEGORY", help_heading = "Filters")]
    categories: Vec<String>,

    /// Only attacks of this severity
    #[arg(long = "severity", value_name = "LEVEL", help_heading = "Filters")]
    severities: Vec<String>,

    /// Only attacks over this protocol: mcp, a2a or ag-ui
    #[arg(long = "protocol", value_name = "PROTOCOL", help_heading = "Filters")]
    protocols: Vec<String>,

    #[command(flatten)]
    semantic: SemanticOptions,

    #[command(flatten)]
    generation: GenerationOptions,

    #[command(flatten)]
    fleet: FleetOptions,

    #[command(flatten)]
    worker: WorkerOptions,

    #[command(flatten)]
    kubernetes: KubernetesOptions,

    /// Findings that the configuration accepts.
    #[arg(skip)]
    accepted: Vec<AcceptedRisk>,

    /// Where the results go.
    #[arg(skip)]
    place: ResultsPlace,
}

impl RunCommand {
    pub(crate) fn run(mut self) -> Result<Exit, CommandError> {
        let configured = self.configure()?;
        let baseline = self.baseline()?;
        if self.fail_on.contains(&FailOn::Regression) && baseline.is_none() {
            return Err(CommandError::usage(
                "--fail-on regression needs a result to compare with; add --baseline FILE",
            ));
        }
        let threshold = self.threshold.unwrap_or(DEFAULT_THRESHOLD);
        if !(0.0..=1.0).contains(&threshold) {
            return Err(CommandError::usage(
                "--threshold must be a number from 0 to 1",
            ));
        }
        if self.detect.is_some_and(|rise| !(rise > 0.0 && rise <= 1.0)) {
            return Err(CommandError::usage(
                "--detect must be a number greater than 0 and at most 1",
            ));
        }
        if baseline.is_some() && self.fail_fast.unwrap_or_default() {
            return Err(CommandError::usage(
                "--fail-fast cannot be combined with a baseline: a campaign that stops early cannot be compared. Add --fail-fast=false",
            ));
        }
        WantedFiles::ThreatDocuments.check(&self.paths)?;
        let limits = self.size.limits();
        let unknown = unknown_names(self.allow_unknown);
        let prompt = self.prompt.as_deref();
        let documents = load(&self.paths, &limits, prompt, unknown, &notices::show)?;
        let (documents, idle) = filters::apply(&self.filter(), documents)
            .map_err(|error| CommandError::of(&error, true))?;
        for filter in idle {
            talk(&printable_line(&format!("warning: {filter}")));
        }
        let runtime = runtime()?;
        // What leaves the group of its command stays below us, so that it is found when all is over.
        adopt_orphans();
        let guard = runtime.enter();
        let mut subjects = self.subjects.open(&configured)?;
        drop(guard);
        if self.kubernetes.is_wanted() && self.fleet.name.is_none() {
            return Err(CommandError::usage(
                "--on kubernetes needs the name of the campaign; add --name NAME",
            ));
        }
        if let Some(name) = self.fleet.wanted(self.resume)? {
            if self.guard.is_some() {
                return Err(CommandError::usage(
                    "--guard is not for campaigns in a store: leave out --name, or leave out --guard",
                ));
            }
            let specs = self.subjects.specs(&configured)?;
            let campaign =
                PlannedCampaign::new(documents, &specs, &subjects, self.plan_settings(name)?)
                    .map_err(|error| failed(&error))?;
            return self.run_in_store(&runtime, &campaign, subjects, baseline, threshold);
        }
        if let Some(policy) = &self.guard {
            let guarded = GuardedSubject::all(&subjects, policy, !self.guard_first_use);
            let guarded = guarded.map_err(|error| {
                CommandError::usage(printable_line(&format!("--guard: {error}")))
            })?;
            subjects.extend(guarded);
        }
        let infos: Vec<SubjectInfo> = subjects.iter().map(|subject| subject.info()).collect();
        let plan = Plan::new(
            documents,
            &infos,
            self.repeats.unwrap_or(1),
            self.seed.unwrap_or(0),
        )
        .map_err(|error| CommandError::usage(printable_line(&error.to_string())))?;
        let plan = meetable(plan, &subjects)?;
        let (plan, note) = plan
            .guardable(&infos)
            .map_err(|error| CommandError::of(&error, true))?;
        note.iter().for_each(|note| talk(note));
        if self.list || self.dry_run {
            return self.print_plan(&plan, &infos);
        }
        let sensitivity = Sensitivity::of(&plan, &infos, baseline.as_ref(), threshold);
        if let Some(rise) = self.detect {
            let mut data = StdoutData::new();
            data.write(&power::plan(&sensitivity, rise, baseline.is_some()))?;
            data.finish()?;
            return Ok(Exit::Success);
        }
        if let Some(before) = &baseline {
            warn_of_nothing_shared(&plan, &infos, before);
            // Better told before the campaign than after it.
            if is_fair_sample(before) {
                talk(&power::note(&sensitivity));
            } else {
                let reason = Incomparable::BaselineStopped.reason();
                talk(&format!(
                    "warning: the baseline cannot be compared: {reason}"
                ));
            }
        } else if let Some(later) = power::later(&sensitivity) {
            talk(&later);
        }
        self.place = ResultsPlace::new(self.out.take(), !self.no_keep, self.resume)?;
        let mut earlier = self.earlier(&plan, &infos)?;
        let settings = CampaignSettings {
            jobs: usize::from(self.jobs.unwrap_or(DEFAULT_JOBS)),
            fail_fast: self.fail_fast.unwrap_or_default(),
            semantic: self.semantic.evaluator()?,
            generation: self.generation.provider()?,
            probes: !self.no_probes,
            earlier_probes: earlier.probes,
            accepted: self.accepted.clone(),
            directory: self.place.directory.clone(),
        };
        let cancel = CancellationToken::new();
        if !self.no_preflight {
            match self.preflight(&runtime, &plan, &subjects, &settings, &earlier.runs) {
                Ok(runs) => earlier.runs.extend(runs),
                Err(stopped) => {
                    runtime.shutdown_timeout(LEAVING);
                    drop(subjects);
                    end_orphans();
                    return Err(stopped);
                }
            }
        }
        self.place.begin();
        let meter = CampaignMeter::new(self.progress, self.verbose, plan.kinds());
        let listener = |progress: &CampaignProgress<'_>| meter.tell(progress);
        let version = env!("CARGO_PKG_VERSION");
        let running = execute(
            &plan,
            &subjects,
            settings,
            earlier.runs,
            version,
            &listener,
            &cancel,
        );
        let finished = runtime.block_on(interruptible(running, || {
            meter.erase();
            talk("Interrupted. Scoring what was recorded; press Ctrl-C again to quit.");
            cancel.cancel();
        }));
        meter.erase();
        runtime.shutdown_timeout(LEAVING);
        // Whatever they have open goes back to how it was.
        drop(subjects);
        end_orphans();
        let Some(result) = finished.map(Worked::into_inner) else {
            return Err(CommandError {
                message: "Quit. The results that were already written are kept.".to_owned(),
                exit: Exit::Interrupted,
            });
        };
        let is_demonstration =
            self.subjects.is_demonstration() && configured.is_empty() && self.guard.is_none();
        let is_cancelled = cancel.is_cancelled();
        self.conclude(
            &result,
            baseline,
            threshold,
            &meter,
            (is_cancelled, is_demonstration),
        )
    }

    /// Keeps and reports a result, and decides what it means. Says whether it was cut short, and whether it is a demonstration.
    fn conclude(
        &self,
        result: &CampaignResult,
        baseline: Option<CampaignResult>,
        threshold: f64,
        meter: &CampaignMeter,
        (is_cancelled, is_demonstration): (bool, bool),
    ) -> Result<Exit, CommandError> {
        let comparison = baseline.map(|before| {
            let name = self.baseline.as_deref().map(shown_path);
            let name = name.unwrap_or_default();
            compare(result, &before, &name, threshold)
        });
        let is_kept = self.keep(result, comparison.as_ref(), meter);
        self.report(result, comparison.as_ref(), is_kept)?;
        let decided = gate(result, &self.fail_on, comparison.as_ref());
        if is_cancelled {
            self.tell_how_to_resume();
            // What got through got through, whatever would have come after it.
            return Ok(match Exit::from(decided.gate) {
                Exit::Failure => Exit::Failure,
                Exit::Success
                | Exit::Inconclusive
                | Exit::CannotRun
                | Exit::Usage
                | Exit::Interrupted => Exit::Interrupted,
            });
        }
        if !is_kept {
            return Ok(Exit::CannotRun);
        }
        if is_demonstration && self.fail_on.is_empty() {
            return Ok(self.demonstrated(result));
        }
        if let Some(comparison) = comparison
            .as_ref()
            .filter(|_| self.fail_on.contains(&FailOn::Regression))
        {
            power::unproved(comparison)
                .iter()
                .for_each(|line| complain(line));
        }
        // The report for people has said it.
        let is_said = self.format == ReportFormat::Human;
        let accepted = decided.accepted.iter().filter(|_| !is_said);
        for line in decided.told.iter().chain(accepted) {
            talk(&printable_line(line));
        }
        Ok(decided.gate.into())
    }

    /// One run without an attack per subject, before all others. Gives the runs that need not be made again.
    fn preflight(
        &self,
        runtime: &Runtime,
        plan: &Plan,
        subjects: &[Arc<dyn Subject>],
        settings: &CampaignSettings,
        earlier: &[RunRecord],
    ) -> Result<Vec<RunRecord>, CommandError> {
        if subjects.iter().any(|subject| !subject.info().simulation) {
            talk(
                "Preflight: one run without an attack, to check that the agent starts, connects and answers.",
            );
        }
        let cancel = CancellationToken::new();
        let flying = preflight(plan, subjects, settings, earlier, &cancel);
        let flown = runtime.block_on(interruptible(flying, || cancel.cancel()));
        let flown = flown
            .map(Worked::into_inner)
            .filter(|_| !cancel.is_cancelled());
        let Some(flown) = flown else {
            return Err(CommandError {
                message: "interrupted before the first attack".to_owned(),
                exit: Exit::Interrupted,
            });
        };
        match self.not_wired(&flown) {
            Some(stopped) => Err(stopped),
            None => Ok(flown.runs),
        }
    }

    fn plan_settings(&self, name: &CampaignName) -> Result<PlanSettings, CommandError> {
        // What cannot be asked is told before it is planned.
        self.semantic.evaluator()?;
        self.generation.provider()?;
        Ok(PlanSettings {
            name: name.name.clone(),
            repeats: self.repeats.unwrap_or(1),
            seed: self.seed.unwrap_or(0),
            fail_fast: self.fail_fast.unwrap_or_default(),
            probes: !self.no_probes,
            accepted: self.accepted.clone(),
            models: self.models(),
            caps: self.fleet.caps()?,
            traces: self.fleet.traces.as_ref().map(ToString::to_string),
            namespace: self.fleet.tenant.clone().unwrap_or_default(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// The models beside the agents.
    fn models(&self) -> Vec<StoredModel> {
        let judge = self.semantic.stored().into_iter();
        judge.chain(self.generation.stored()).collect()
    }

    /// The same, as workers elsewhere are told of them.
    fn model_flags(&self) -> Vec<String> {
        self.models().iter().flat_map(StoredModel::flags).collect()
    }

    /// Plans the campaign in a store and works on it until it is over.
    fn run_in_store(
        mut self,
        runtime: &Runtime,
        planned: &PlannedCampaign,
        subjects: Vec<Arc<dyn Subject>>,
        baseline: Option<CampaignResult>,
        threshold: f64,
    ) -> Result<Exit, CommandError> {
        tell_left_out(&subjects, &planned.left_out);
        for model in &planned.unused_caps {
            talk(&printable_line(&format!(
                "warning: no subject uses the model {model} that a cap names"
            )));
        }
        if self.dry_run && self.kubernetes.is_wanted() {
            let name = self.fleet.name.as_ref().map(ToString::to_string);
            let (name, jobs) = (name.unwrap_or_default(), self.jobs.unwrap_or(DEFAULT_JOBS));
            let settings = self.worker.settings(jobs, None)?;
            let pods = self.kubernetes.pods(&name, &settings, self.model_flags())?;
            print_manifest(&pods, self.format == ReportFormat::Json)?;
            return Ok(Exit::Success);
        }
        if self.list || self.dry_run {
            let infos: Vec<SubjectInfo> = subjects.iter().map(|one| one.info()).collect();
            return self.print_plan(planned.first_repeat(), &infos);
        }
        let keeps = (self.out.is_some() || !self.reports.is_empty()) && !self.fleet.plan_only;
        self.place = ResultsPlace::new(self.out.take(), keeps, false)?;
        if let Some(directory) = &self.place.directory {
            let prepared = store::prepare_copy(directory);
            prepared.map_err(|error| CommandError::of(&error, error.is_usage()))?;
        }
        // What works elsewhere is not here to be looked at.
        let is_here = !self.fleet.plan_only && !self.kubernetes.is_wanted();
        if !self.no_preflight && is_here {
            let settings = CampaignSettings::default();
            let flown = self.preflight(runtime, planned.first_repeat(), &subjects, &settings, &[]);
            flown.inspect_err(|_| _ = end_orphans())?;
        }
        // Workers open them as the store has them.
        drop(subjects);
        self.place.begin();
        let drain = CancellationToken::new();
        let working = runtime.block_on(interruptible(self.work_in_store(planned, &drain), || {
            drain.cancel();
        }));
        end_orphans();
        let result = match working.map(Worked::into_inner) {
            Some(result) => result?,
            None => return Ok(Exit::Interrupted),
        };
        let Some(result) = result else {
            return Ok(Exit::Success);
        };
        let meter = CampaignMeter::new(ProgressMode::None, false, (0, 0));
        let is_cancelled = drain.is_cancelled();
        self.conclude(&result, baseline, threshold, &meter, (is_cancelled, false))
    }

    /// Writes the campaign down and works on it. Gives what was found, or nothing if it was only to be planned.
    async fn work_in_store(
        &self,
        planned: &PlannedCampaign,
        drain: &CancellationToken,
    ) -> Result<Option<CampaignResult>, CommandError> {
        let store = self.fleet.store.open().await?;
        let campaign = planned.write(&store).await;
        let campaign = campaign.map_err(|error| failed(&error))?;
        let name = shown(&campaign);
        talk(&format!(
            "Campaign {name}: {} runs, plan sha256:{}",
            campaign.total, campaign.plan
        ));
        if self.fleet.plan_only {
            let mut data = StdoutData::new();
            if self.format == ReportFormat::Json {
                data.json(&campaign_json(&campaign))?;
            } else {
                data.line(&name)?;
            }
            data.finish()?;
            return Ok(None);
        }
        let jobs = self.jobs.unwrap_or(DEFAULT_JOBS);
        let settings = self.worker.settings(jobs, campaign.traces.as_deref())?;
        let campaign = if self.kubernetes.is_wanted() {
            let options = (&self.kubernetes, self.model_flags());
            work_on_kubernetes(options, &settings, &store, campaign, drain).await?
        } else {
            talk(&format!(
                "To help from another machine: proofhouse worker --store … --name {name}"
            ));
            self.work_here(&store, &campaign, &settings, drain).await?
        };
        if let Some(remark) = &campaign.remark {
            talk(&printable_line(&format!(
                "Campaign {name} is {}: {remark}",
                campaign.state
            )));
        }
        let stored = report::read(&store, &campaign, &settings.program).await;
        let mut stored = stored.map_err(|error| failed(&error))?;
        if let (Some(traces), Some(directory)) = (&settings.traces, &self.place.directory) {
            let fetched = stored.fetch_traces(traces, directory).await;
            fetched.map_err(|error| failed(&error))?;
        }
        store.close().await;
        Ok(Some(stored.result))
    }

    /// Works on a campaign of the store in this process, and gives it as it is then.
    async fn work_here(
        &self,
        store: &Arc<Store>,
        campaign: &CampaignRow,
        settings: &WorkerSettings,
        drain: &CancellationToken,
    ) -> Result<CampaignRow, CommandError> {
        let tools = worker_tools(&self.semantic, &self.generation, settings, &[])?;
        let opening = OpenContext {
            environment: environment(),
            notify: &notices::show,
            gate: None,
        };
        let listener = |event: &WorkerEvent<'_>| tell(event, self.verbose);
        let name = CampaignName {
            name: campaign.name.clone(),
            number: Some(campaign.number),
        };
        let worked = run_worker(store, &name, &tools, &opening, settings, &listener, drain);
        let (campaign, _) = worked.await.map_err(|error| failed(&error))?;
        Ok(campaign)
    }

    /// Takes what flags do not say from the configuration of the project, and gives the subjects in it.
    fn configure(&mut self) -> Result<Vec<SubjectSpec>, CommandError> {
        let by_default = self.subjects.need_config();
        let wants = |name: &str| self.subjects.want(name);
        let mut configured = Vec::new();
        if let Some(file) = self.config.load(by_default, &wants)? {
            or_take(&mut self.paths, file.documents);
            or_take(&mut self.ids, file.filter.ids);
            or_take(&mut self.tags, file.filter.tags);
            or_take(&mut self.categories, file.filter.categories);
            or_take(&mut self.severities, file.filter.severities);
            or_take(&mut self.protocols, file.filter.protocols);
            or_take(&mut self.fail_on, file.fail_on);
            or_take(&mut self.reports, file.reports);
            self.accepted = file.accepted;
            self.prompt = self.prompt.take().or(file.prompt);
            self.repeats = self.repeats.or(file.repeats);
            self.jobs = self.jobs.or(file.jobs);
            self.seed = self.seed.or(file.seed);
            self.fail_fast = self.fail_fast.or(file.fail_fast);
            self.baseline = self.baseline.take().or(file.baseline);
            self.threshold = self.threshold.or(file.threshold);
            if self.no_keep {
                self.reports.clear();
            } else if self.out.is_none() && self.resume && file.out.as_deref().is_some_and(has_time)
            {
                return Err(CommandError::usage(
                    "--resume: the directory of each campaign has its own name here; choose one with --out DIR",
                ));
            }
            self.out = self
                .out
                .take()
                .or(file.out.map(|path| at_this_time(path, &now())));
            configured = file.subjects;
        }
        Ok(configured)
    }

    /// Prints what would be run.
    fn print_plan(&self, plan: &Plan, subjects: &[SubjectInfo]) -> Result<Exit, CommandError> {
        let mut data = StdoutData::new();
        if self.format == ReportFormat::Json {
            data.json(&if self.list {
                listing::attacks_json(plan)
            } else {
                listing::runs_json(plan, subjects)
            })?;
        } else {
            let lines = if self.list {
                listing::attacks(plan)
            } else {
                listing::runs(plan, subjects)
            };
            for line in lines {
                data.line(&line)?;
            }
        }
        data.finish()?;
        Ok(Exit::Success)
    }

    /// Says which subjects are not wired up, if some are not.
    fn not_wired(&self, flown: &Preflight) -> Option<CommandError> {
        let (last, others) = flown.failures.split_last()?;
        for failure in others {
            complain(&explanation(failure));
        }
        let mut message = explanation(last);
        if let (Some(directory), Some(trace)) = (&self.place.directory, &last.trace) {
            let trace = shown_path(&directory.join(trace));
            message.push_str(&format!("\n  Recording: {trace}"));
        }
        message.push_str("\nNo attack was run. To run the attacks anyway, add --no-preflight.");
        Some(CommandError::cannot_run(message))
    }

    fn filter(&self) -> DocumentFilter {
        DocumentFilter {
            ids: self.ids.clone(),
            tags: self.tags.clone(),
            categories: self.categories.clone(),
            severities: self.severities.clone(),
            protocols: self.protocols.clone(),
        }
    }

    fn baseline(&self) -> Result<Option<CampaignResult>, CommandError> {
        let Some(path) = &self.baseline else {
            return Ok(None);
        };
        let loaded = store::load_baseline(path)
            .map_err(|error| CommandError::usage(printable_line(&format!("--baseline {error}"))))?;
        Ok(Some(loaded))
    }

    /// What --out has already.
    fn earlier(
        &self,
        plan: &Plan,
        subjects: &[SubjectInfo],
    ) -> Result<EarlierCampaign, CommandError> {
        let Some(directory) = &self.place.directory else {
            return Ok(EarlierCampaign::default());
        };
        let prepared = store::prepare(directory, self.resume, plan, subjects);
        prepared.map_err(|error| CommandError::of(&error, error.is_usage()))
    }

    fn report(
        &self,
        result: &CampaignResult,
        comparison: Option<&Comparison>,
        is_kept: bool,
    ) -> Result<(), CommandError> {
        let traces = match &self.place.directory {
            Some(directory) => traces(result, directory),
            None => Default::default(),
        };
        let reports = CampaignReports {
            result,
            traces: &traces,
            comparison,
            config: self.config.used().map(shown_path),
            directory: self.place.directory.as_deref().map(shown_path),
        };
        let mut data = StdoutData::new();
        data.write(&reports.render(self.format))?;
        data.finish()?;
        if let Some(directory) = &self.place.directory {
            let wanted = match self.reports.as_slice() {
                [] => &[ReportFormat::Html],
                given => given,
            };
            for format in wanted {
                reports.write(*format, directory)?;
            }
            let report = wanted.iter().find(|format| **format == ReportFormat::Html);
            let report = report.or(wanted.first()).map(|format| format.info().file);
            if let Some(report) = report.filter(|_| is_kept) {
                let report = shown_path(&directory.join(report));
                let open = self.place.open_command();
                talk(&format!("Report: {report} (open it with: {open})"));
            }
        }
        Ok(())
    }

    /// Writes the result once more, now with what it adds up to. Says whether all that should be kept is.
    fn keep(
        &self,
        result: &CampaignResult,
        comparison: Option<&Comparison>,
        meter: &CampaignMeter,
    ) -> bool {
        let lost = result.lost_trace();
        if let Some(lost) = lost {
            complain(&printable_line(&format!(
                "some traces could not be written: {lost}"
            )));
        }
        let Some(directory) = &self.place.directory else {
            return lost.is_none();
        };
        let text = reports::json(result, comparison);
        let written = store::replace(&directory.join(store::FILE), text.as_bytes());
        if let Err(error) = &written {
            complain(&printable_line(&format!(
                "the results cannot be written: {error}"
            )));
        }
        written.is_ok() && lost.is_none() && !meter.has_trouble()
    }

    fn tell_how_to_resume(&self) {
        if self.fleet.name.is_some() {
            talk("To continue, run the same command again.");
        } else if let Some(directory) = &self.place.directory {
            let directory = shown_path(directory);
            talk(&format!(
                "To continue, run the same command with --resume --out {directory}"
            ));
        }
    }

    /// Says how the demonstration went, and what comes next.
    fn demonstrated(&self, result: &CampaignResult) -> Exit {
        let surprises = surprises(result);
        for surprise in &surprises {
            talk(&printable_line(&format!("not as expected: {surprise}")));
        }
        talk("These agents were simulations. To test your own agent, run: proofhouse init");
        if surprises.is_empty() && result.complete && !has_resisted(result) {
            talk("No attack was resisted, so the careful simulation proved nothing.");
            Exit::Inconclusive
        } else if surprises.is_empty() && result.complete {
            Exit::Success
        } else {
            Exit::Failure
        }
    }
}

/// A comparison in which nothing is compared is most likely a mistake.
fn warn_of_nothing_shared(plan: &Plan, subjects: &[SubjectInfo], before: &CampaignResult) {
    if let Some(what) = missing_in_common(plan, subjects, before) {
        talk(&format!(
            "warning: the baseline and this campaign have no {what} in common, so there is nothing to compare"
        ));
    }
}

/// Takes a list in place of one that is empty.
fn or_take<T>(list: &mut Vec<T>, other: Vec<T>) {
    if list.is_empty() {
        *list = other;
    }
}

/// The plan without documents whose actors cannot meet a subject; how many those are is told.
fn meetable(plan: Plan, subjects: &[Arc<dyn Subject>]) -> Result<Plan, CommandError> {
    let left = plan.meetable(subjects);
    let (plan, left_out) = left.map_err(|error| CommandError::of(&error, true))?;
    tell_left_out(subjects, &left_out);
    Ok(plan)
}

/// Says how many documents were left out of each subject.
fn tell_left_out(subjects: &[Arc<dyn Subject>], left_out: &[usize]) {
    let notes = left_out_notes(subjects, left_out);
    notes.iter().for_each(|note| talk(&printable_line(note)));
}
