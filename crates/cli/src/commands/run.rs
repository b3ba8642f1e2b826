//! `proofhouse run`: the main job, the threat library or documents of one's own against subjects.

use std::path::{Path, PathBuf};
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
use proofhouse_campaign::plan::{DocumentFilter, Plan};
use proofhouse_campaign::preflight::{Preflight, preflight};
use proofhouse_campaign::replay::traces;
use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_campaign::result::{CampaignResult, SubjectInfo};
use proofhouse_campaign::sensitivity::Sensitivity;
use proofhouse_campaign::store::{self, EarlierCampaign};
use proofhouse_report::preflight::explanation;
use proofhouse_report::{listing, power};
use proofhouse_subjects::Subject;
use proofhouse_subjects::operator::now;
use proofhouse_subjects::spec::SubjectSpec;
use proofhouse_wire::{CancellationToken, adopt_orphans, end_orphans};

use crate::campaign::meter::{CampaignMeter, ProgressMode};
use crate::campaign::reports::{self, CampaignReports};
use crate::campaign::results::ResultsPlace;
use crate::config_options::ConfigOptions;
use crate::exit_code::Exit;
use crate::generation_options::GenerationOptions;
use crate::input::SizeLimit;
use crate::notices;
use crate::output::{CommandError, StdoutData, complain, printable_line, shown_path, talk};
use crate::report::plural;
use crate::rules::unknown_names;
use crate::semantic_options::SemanticOptions;
use crate::signals::{Worked, interruptible};
use crate::subject_options::SubjectOptions;

/// How long leaving at once may take.
const LEAVING: Duration = Duration::from_millis(500);
/// How many runs go on at a time where nobody says it.
const DEFAULT_JOBS: u16 = 8;

/// Attack an agent with the threat library, or with documents of your own, and report what got through
///
/// Reads proofhouse.yaml, if it is here. Without it, the whole library runs against two simulated agents, a gullible and
/// a careful one, to show what a report looks like. Results are kept in .proofhouse/results. Only attack agents that you
/// own or may test.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse run\n  \
    proofhouse run --category capability_poisoning --repeats 5\n  \
    proofhouse run --list --severity critical\n  \
    proofhouse run my-attacks/ --subject sim:careful --format json\n  \
    proofhouse run --command 'python agent.py --mcp {mcp_url} {prompt}' --protocol mcp\n  \
    proofhouse run --subject agent.yaml --model openai:gpt-5 --repeats 10 --out results\n  \
    proofhouse run --config ci/proofhouse.yaml --subject mine\n  \
    proofhouse run --ag-ui-url http://127.0.0.1:8000/ --mcp-listen 127.0.0.1:8080\n\n\
    Exit codes: 0 at least one attack was resisted and none got through, 1 one did (see --fail-on), 2\n\
    inconclusive: nothing was proved, 3 could not run, the preflight failed, or the result could not be\n\
    kept, 64 invalid arguments, 130 interrupted. With both simulations and no --fail-on, 0 when it went as the library expects: the\n\
    gullible one gave way to everything, the careful one to nothing.")]
pub(crate) struct RunCommand {
    /// Threat documents: files, or directories searched for .yaml and .yml [default: the library]
    #[arg(value_name = "DOC")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    config: ConfigOptions,

    #[command(flatten)]
    subjects: SubjectOptions,

    /// What the user asks, for documents that do not say it themselves
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,

    /// Run documents with operations, states or targets that the protocols do not have
    #[arg(long)]
    allow_unknown: bool,

    /// Attacks per document and subject [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,

    /// Runs at a time [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Random seed [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Stop when an attack gets through
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fail_fast: Option<bool>,

    /// Do not ask first what the agents read; nothing can be proved resisted then
    #[arg(long)]
    no_probes: bool,

    /// Do not prove with one control run first that the agent starts, connects and answers
    #[arg(long)]
    no_preflight: bool,

    /// Keep the result, the traces and the reports in this directory [default: .proofhouse/results/TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Keep nothing
    #[arg(long, conflicts_with_all = ["out", "resume", "reports"])]
    no_keep: bool,

    /// Continue the campaign in --out, or the last one in .proofhouse/results
    #[arg(long)]
    resume: bool,

    /// Print what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,

    /// Print the attacks that would be run, and run nothing
    #[arg(long, conflicts_with = "dry_run")]
    list: bool,

    /// Print a line for every run
    #[arg(short, long)]
    verbose: bool,

    /// How to show progress
    #[arg(long, value_name = "MODE", value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,

    /// Only documents with this id; `*` stands for anything; may be given again, as all filters
    #[arg(long = "id", value_name = "ID", help_heading = "Filters")]
    ids: Vec<String>,

    /// Only documents with this tag
    #[arg(long = "tag", value_name = "TAG", help_heading = "Filters")]
    tags: Vec<String>,

    /// Only documents of this category
    #[arg(long = "category", value_name = "CATEGORY", help_heading = "Filters")]
    categories: Vec<String>,

    /// Only documents of this severity
    #[arg(long = "severity", value_name = "LEVEL", help_heading = "Filters")]
    severities: Vec<String>,

    /// Only documents with this protocol: mcp, a2a or ag_ui
    #[arg(long = "protocol", value_name = "PROTOCOL", help_heading = "Filters")]
    protocols: Vec<String>,

    /// Compare with this earlier result
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// How likely a false alarm of the whole comparison with the baseline may be [default: 0.05]
    #[arg(long, value_name = "P")]
    threshold: Option<f64>,

    /// Print how many repeats find a rise of the attack success rate by this much, such as 0.2, and run nothing
    #[arg(long, value_name = "RISE")]
    detect: Option<f64>,

    /// What counts as failure: exploited, partial (and worse), inconclusive, regression, tier=TIER or severity=LEVEL
    /// (and worse), utility<SHARE of control tasks done, exposed<SHARE of runs; several with commas, and any of them
    /// is enough [default: partial]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = str::parse::<FailOn>)]
    fail_on: Vec<FailOn>,

    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = reports::format, help = reports::format_help())]
    format: ReportFormat,

    /// Write this report beside the result; may be given again [default: html]
    #[arg(long = "report", value_name = "FORMAT", value_parser = reports::format)]
    reports: Vec<ReportFormat>,

    #[command(flatten)]
    size: SizeLimit,

    #[command(flatten)]
    semantic: SemanticOptions,

    #[command(flatten)]
    generation: GenerationOptions,

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
                "--fail-on regression: say what to compare with --baseline",
            ));
        }
        let threshold = self.threshold.unwrap_or(DEFAULT_THRESHOLD);
        if !(0.0..=1.0).contains(&threshold) {
            return Err(CommandError::usage(
                "--threshold: write a number from 0 to 1",
            ));
        }
        if self.detect.is_some_and(|rise| !(rise > 0.0 && rise <= 1.0)) {
            return Err(CommandError::usage(
                "--detect: write a number above 0 and up to 1",
            ));
        }
        if baseline.is_some() && self.fail_fast.unwrap_or_default() {
            return Err(CommandError::usage(
                "--fail-fast: a campaign that stops on what it sees cannot be compared with a baseline; add --fail-fast=false",
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
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::cannot_run(format!("cannot start: {error}")))?;
        // What leaves the group of its command stays below us, so that it is found when all is over.
        adopt_orphans();
        let guard = runtime.enter();
        let subjects = self.subjects.open(&configured)?;
        drop(guard);
        let infos: Vec<SubjectInfo> = subjects.iter().map(|subject| subject.info()).collect();
        let plan = Plan::new(
            documents,
            &infos,
            self.repeats.unwrap_or(1),
            self.seed.unwrap_or(0),
        )
        .map_err(|error| CommandError::usage(printable_line(&error.to_string())))?;
        let plan = meetable(plan, &subjects)?;
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
                talk(&format!("warning: nothing will be compared: {reason}"));
            }
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
            if infos.iter().any(|subject| !subject.simulation) {
                talk("Preflight: one run without an attack, to see that the agent is connected.");
            }
            let flying = preflight(&plan, &subjects, &settings, &earlier.runs, &cancel);
            let flown = runtime.block_on(interruptible(flying, || cancel.cancel()));
            let flown = flown
                .map(Worked::into_inner)
                .filter(|_| !cancel.is_cancelled());
            let stopped = match flown {
                None => Some(CommandError {
                    message: "interrupted before the first attack".to_owned(),
                    exit: Exit::Interrupted,
                }),
                Some(flown) => {
                    let stopped = self.not_wired(&flown);
                    earlier.runs.extend(flown.runs);
                    stopped
                }
            };
            if let Some(stopped) = stopped {
                runtime.shutdown_timeout(LEAVING);
                drop(subjects);
                end_orphans();
                return Err(stopped);
            }
        }
        self.place.begin();
        let meter = CampaignMeter::new(self.progress, self.verbose);
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
                message: "quit at once; what was kept before is still there".to_owned(),
                exit: Exit::Interrupted,
            });
        };
        let comparison = baseline.map(|before| {
            let name = self.baseline.as_deref().map(shown_path);
            let name = name.unwrap_or_default();
            compare(&result, &before, &name, threshold)
        });
        let is_kept = self.keep(&result, comparison.as_ref(), &meter);
        self.report(&result, comparison.as_ref(), is_kept)?;
        let decided = gate(&result, &self.fail_on, comparison.as_ref());
        if cancel.is_cancelled() {
            self.tell_how_to_resume();
            // What got through got through, whatever would have come after it.
            return Ok(match Exit::from(decided.gate) {
                Exit::Failure => Exit::Failure,
                _ => Exit::Interrupted,
            });
        }
        if !is_kept {
            return Ok(Exit::CannotRun);
        }
        let is_demonstration = self.subjects.is_demonstration() && configured.is_empty();
        if is_demonstration && self.fail_on.is_empty() {
            return Ok(self.demonstrated(&result));
        }
        if let Some(comparison) = comparison
            .as_ref()
            .filter(|_| self.fail_on.contains(&FailOn::Regression))
        {
            warn_of_what_is_unproved(comparison);
        }
        for line in &decided.told {
            talk(&printable_line(line));
        }
        Ok(decided.gate.into())
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
                    "--resume: every campaign has a directory of its own; name it with --out",
                ));
            }
            self.out = self.out.take().or(file.out.map(at_this_time));
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
            message.push_str(&format!("\n  Its messages: {trace}"));
        }
        message.push_str("\nNo attack was run. --no-preflight runs them all the same.");
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
        let loaded = store::load(path);
        let loaded = loaded
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
        let Some(directory) = &self.place.directory else {
            return true;
        };
        let text = reports::json(result, comparison);
        let written = store::replace(&directory.join(store::FILE), text.as_bytes());
        if let Err(error) = &written {
            complain(&printable_line(&format!(
                "the results cannot be kept: {error}"
            )));
        }
        let lost = result.lost_trace();
        if let Some(lost) = lost {
            complain(&printable_line(&format!(
                "not every trace could be kept: {lost}"
            )));
        }
        written.is_ok() && lost.is_none() && !meter.has_trouble()
    }

    fn tell_how_to_resume(&self) {
        if let Some(directory) = &self.place.directory {
            let directory = shown_path(directory);
            talk(&format!(
                "Continue with the same command and --resume --out {directory}"
            ));
        }
    }

    /// Says how the demonstration went, and what comes next.
    fn demonstrated(&self, result: &CampaignResult) -> Exit {
        let surprises = surprises(result);
        for surprise in &surprises {
            talk(&printable_line(&format!("not as expected: {surprise}")));
        }
        talk(
            "These were simulations. Your own agent: proofhouse init, or proofhouse run --command 'python agent.py {mcp_url} {prompt}'",
        );
        if surprises.is_empty() && result.complete && !has_resisted(result) {
            talk("nothing was resisted, so nothing was shown of an agent that resists");
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
            "warning: the baseline shares no {what} with this campaign, so there is nothing to compare"
        ));
    }
}

/// Where no regression was found, says why that proves nothing, if so.
fn warn_of_what_is_unproved(comparison: &Comparison) {
    if comparison.regressions() > 0 {
        return;
    }
    if let Some(incomparable) = comparison.incomparable {
        complain(&format!("nothing is compared: {}", incomparable.reason()));
    } else if comparison.is_blind() {
        complain(
            "too few runs to find any regression, so finding none proves nothing; --detect 0.2 says how many repeats it takes",
        );
    }
    let unknown = comparison.unknown_successes();
    if unknown > 0 {
        complain(&format!(
            "{} got through of which the baseline says nothing; make a new baseline, or add --fail-on partial",
            plural(unknown, "attack")
        ));
    }
}

/// Takes a list in place of one that is empty.
fn or_take<T>(list: &mut Vec<T>, other: Vec<T>) {
    if list.is_empty() {
        *list = other;
    }
}

/// What stands for the time of a campaign in the name of a directory.
const TIME: &str = "{time}";

fn has_time(path: &Path) -> bool {
    path.to_string_lossy().contains(TIME)
}

/// The path with the time in it, in a form that every file system takes.
fn at_this_time(path: PathBuf) -> PathBuf {
    match path.to_str() {
        Some(text) => text.replace(TIME, &now().replace(':', "-")).into(),
        None => path,
    }
}

/// The plan without documents whose actors cannot meet a subject; how many those are is told.
fn meetable(plan: Plan, subjects: &[Arc<dyn Subject>]) -> Result<Plan, CommandError> {
    let left = plan.meetable(subjects);
    let (plan, left_out) = left.map_err(|error| CommandError::of(&error, true))?;
    for (subject, count) in subjects
        .iter()
        .zip(left_out)
        .filter(|(_, count)| *count > 0)
    {
        let name = printable_line(&subject.info().name);
        let documents = plural(count, "attack");
        talk(&format!(
            "Skipped {documents} that {name} cannot receive. Add --serves, a URL or --mcp-listen to include them."
        ));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_may_be_named_after_the_time() {
        let path = at_this_time(PathBuf::from("results/{time}"));
        assert!(has_time(Path::new("results/{time}")) && !has_time(&path));
        assert!(!path.to_string_lossy().contains(':'), "{path:?}");
    }
}
