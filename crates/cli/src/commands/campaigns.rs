//! `proofhouse campaigns`: what the campaigns in a store came to.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::baseline::DEFAULT_THRESHOLD;
use proofhouse_campaign::config::duration;
use proofhouse_campaign::replay::traces;
use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_campaign::store::{FILE, replace};
use proofhouse_fleet::listing::{self, CampaignOverview};
use proofhouse_fleet::name::CampaignName;
use proofhouse_fleet::traces::TraceStore;
use proofhouse_fleet::{report, retention, trend};
use proofhouse_store::Store;
use proofhouse_store::model::CampaignFilter;
use serde_json::{Value, json};

use crate::campaign::reports::{self, CampaignReports};
use crate::exit_code::Exit;
use crate::fleet_options::{failed, open_traces, trace_access};
use crate::output::{CommandError, StdoutData, complain, printable_line, shown_path, talk};
use crate::runtime::runtime;
use crate::store_options::StoreOptions;

const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// List, inspect, compare and cancel the campaigns in a store
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse campaigns list --store postgres://proofhouse@db/proofhouse\n  \
    proofhouse campaigns show nightly\n  \
    proofhouse campaigns report nightly@3 --format html --out report\n  \
    proofhouse campaigns compare nightly@3 nightly@2\n  \
    proofhouse campaigns trend nightly --format json\n  \
    proofhouse campaigns cancel nightly\n  \
    proofhouse campaigns prune --older-than 90d\n\n\
    Exit codes:\n  \
    0   success\n  \
    2   compare: nothing could be compared\n  \
    3   the store cannot be used, or a trace cannot be read\n  \
    64  invalid arguments, or there is no such campaign or store")]
pub(crate) struct Campaigns {
    #[command(subcommand)]
    part: CampaignsPart,

    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Subcommand)]
enum CampaignsPart {
    /// List campaigns, newest first
    #[command(after_help = "Example:\n  proofhouse campaigns list nightly")]
    List {
        /// Only campaigns of this name
        name: Option<String>,
        #[command(flatten)]
        output: ListFormat,
    },
    /// Print the progress, the results and the workers of a campaign
    #[command(after_help = "Example:\n  proofhouse campaigns show nightly@3")]
    Show {
        /// The campaign: NAME for the newest of that name, or NAME@NUMBER
        campaign: CampaignName,
        #[command(flatten)]
        output: ListFormat,
    },
    /// Cancel a campaign: start no more runs, and stop those in progress
    #[command(after_help = "Example:\n  proofhouse campaigns cancel nightly")]
    Cancel {
        /// The campaign: NAME for the newest of that name, or NAME@NUMBER
        campaign: CampaignName,
    },
    /// Print the report of a campaign, finished or not
    #[command(
        after_help = "Example:\n  proofhouse campaigns report nightly --format html --out report"
    )]
    Report {
        /// The campaign: NAME for the newest of that name, or NAME@NUMBER
        campaign: CampaignName,
        #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = reports::format, help = reports::format_help())]
        format: ReportFormat,
        /// Also write the result, the report and the traces to this directory
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print what changed between two campaigns
    #[command(after_help = "Example:\n  proofhouse campaigns compare nightly@2 nightly@1")]
    Compare {
        /// The newer campaign
        campaign: CampaignName,
        /// The campaign to compare it with
        baseline: CampaignName,
        #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = reports::format, help = reports::format_help())]
        format: ReportFormat,
        /// The highest accepted probability that a regression is reported although nothing changed
        #[arg(long, value_name = "P", default_value_t = DEFAULT_THRESHOLD)]
        threshold: f64,
    },
    /// Print how the attack success rate changed over all campaigns of a name, per subject and category
    #[command(after_help = "Example:\n  proofhouse campaigns trend nightly --format json")]
    Trend {
        /// The name of the campaigns
        name: String,
        #[command(flatten)]
        output: ListFormat,
    },
    /// Remove old campaigns that have ended, and traces that no campaign needs any more
    #[command(after_help = "Example:\n  proofhouse campaigns prune --older-than 30d --traces-only")]
    Prune {
        /// Remove campaigns that ended longer ago than this
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        older_than: Duration,
        /// Remove only their traces
        #[arg(long)]
        traces_only: bool,
    },
}

#[derive(Debug, Args)]
struct ListFormat {
    /// The output format
    #[arg(long, value_enum, default_value_t = ListedAs::Human)]
    format: ListedAs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListedAs {
    /// For people
    Human,
    /// For programs
    Json,
}

impl ListFormat {
    fn print(&self, lines: &[String], value: &Value) -> Result<Exit, CommandError> {
        let mut data = StdoutData::new();
        match self.format {
            ListedAs::Human => lines.iter().try_for_each(|line| data.line(line))?,
            ListedAs::Json => data.json(value)?,
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}

/// What the library found, or why not.
async fn found<T>(
    asking: impl Future<Output = Result<T, proofhouse_fleet::FleetError>>,
) -> Result<T, CommandError> {
    asking.await.map_err(|error| failed(&error))
}

fn of_store(error: &proofhouse_store::StoreError) -> CommandError {
    CommandError::of(error, false)
}

impl Campaigns {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let runtime = runtime()?;
        runtime.block_on(async {
            let store = self.store.open_existing().await?;
            let done = self.part.run(&store).await;
            store.close().await;
            done
        })
    }
}

impl CampaignsPart {
    async fn run(self, store: &Store) -> Result<Exit, CommandError> {
        match self {
            Self::List { name, output } => {
                let filter = CampaignFilter {
                    name,
                    limit: 1_000,
                    ..CampaignFilter::default()
                };
                let listed = store.campaigns(filter).await;
                let listed = listed.map_err(|error| of_store(&error))?;
                let values: Vec<Value> = listed.iter().map(listing::campaign_json).collect();
                output.print(
                    &listing::campaign_lines(&listed),
                    &json!({"version": 1, "campaigns": values}),
                )
            }
            Self::Show { campaign, output } => {
                let row = found(campaign.find(store)).await?;
                let overview = found(CampaignOverview::read(store, row)).await?;
                output.print(&overview.lines(), &overview.json())
            }
            Self::Cancel { campaign } => {
                let row = found(campaign.find(store)).await?;
                let ended = store.cancel_campaign(row.id, "cancelled by a person").await;
                let ended = ended.map_err(|error| of_store(&error))?;
                let name = proofhouse_fleet::name::shown(&row);
                talk(&if ended {
                    format!("Cancelled {name}.")
                } else {
                    format!("{name} is already {}.", row.state)
                });
                Ok(Exit::Success)
            }
            Self::Report {
                campaign,
                format,
                out,
            } => report_of(store, &campaign, format, out).await,
            Self::Compare {
                campaign,
                baseline,
                format,
                threshold,
            } => {
                let newer = found(campaign.find(store)).await?;
                let older = found(baseline.find(store)).await?;
                let now = found(report::read(store, &newer, PROGRAM)).await?.result;
                let before = found(report::read(store, &older, PROGRAM)).await?.result;
                let comparison = report::compare((&newer, &now), (&older, &before), threshold);
                let reports = CampaignReports {
                    result: &now,
                    traces: &Default::default(),
                    comparison: Some(&comparison),
                    config: None,
                    directory: None,
                };
                let mut data = StdoutData::new();
                data.write(&reports.render(format))?;
                data.finish()?;
                Ok(comparison.gate().into())
            }
            Self::Trend { name, output } => {
                let points = found(trend::read(store, &name, None, PROGRAM)).await?;
                output.print(
                    &listing::trend_lines(&points),
                    &json!({"version": 1, "name": name, "points": points}),
                )
            }
            Self::Prune {
                older_than,
                traces_only,
            } => {
                let open = |place: &str| TraceStore::open(place, &trace_access());
                let pruned = retention::prune(store, older_than, traces_only, &open);
                let pruned = found(pruned).await?;
                for problem in &pruned.problems {
                    complain(&printable_line(problem));
                }
                for line in pruned.lines() {
                    talk(&printable_line(&line));
                }
                Ok(if pruned.problems.is_empty() {
                    Exit::Success
                } else {
                    Exit::CannotRun
                })
            }
        }
    }
}

/// Prints a report, and writes it with the result and the traces if it has a directory.
async fn report_of(
    store: &Store,
    campaign: &CampaignName,
    format: ReportFormat,
    out: Option<PathBuf>,
) -> Result<Exit, CommandError> {
    let row = found(campaign.find(store)).await?;
    let mut stored = found(report::read(store, &row, PROGRAM)).await?;
    let mut exit = Exit::Success;
    if let (Some(place), Some(out)) = (&row.traces, &out) {
        let from = open_traces(place)?;
        let lost = found(stored.fetch_traces(&from, out)).await?;
        if let Some(first) = lost.first() {
            let line = format!("{} traces cannot be read: {first}", lost.len());
            complain(&printable_line(&line));
            exit = Exit::CannotRun;
        }
    }
    let messages = out.as_deref().map(|out| traces(&stored.result, out));
    let messages = messages.unwrap_or_default();
    let reports = CampaignReports {
        result: &stored.result,
        traces: &messages,
        comparison: None,
        config: None,
        directory: out.as_deref().map(shown_path),
    };
    let mut data = StdoutData::new();
    data.write(&reports.render(format))?;
    data.finish()?;
    if let Some(out) = &out {
        std::fs::create_dir_all(out)?;
        let text = reports::json(&stored.result, None);
        replace(&out.join(FILE), text.as_bytes())
            .map_err(|error| CommandError::of(&error, false))?;
        reports.write(format, out)?;
    }
    Ok(exit)
}
