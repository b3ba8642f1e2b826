//! Measurements beside peers. Every figure is a ratio taken in one run and printed as one line:
//! `FIGURE name ours=… peer=… ratio=… unit=…`.

mod agent;
mod campaign;
mod cel;
mod corpus;
mod detect;
mod evaluate;
mod figure;
mod fleet;
mod gate;
mod growth;
mod guard;
mod http_load;
mod ingest;
mod load;
mod lsp;
mod mcp_server;
mod memory;
mod openapi_load;
mod patterns;
mod streams;
mod tools;
mod traffic;
mod webhooks;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// The allocator of the program that is measured, for the peers too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure Proofhouse beside its peers.
#[derive(Debug, Parser)]
#[command(name = "proofhouse-bench", version)]
struct Cli {
    #[command(subcommand)]
    subject: Subject,
}

/// What to measure; one file each.
#[derive(Debug, Subcommand)]
enum Subject {
    /// Loading documents: megabytes and documents per second
    Load(Options),
    /// Evaluating one indicator against one message: cost per evaluation
    Evaluate(Options),
    /// Judging messages with a whole library: messages per second, beside evaluating one by one
    Detect(Options),
    /// Judging messages with 100, 1,000 and 10,000 indicators: cost per message, memory
    DetectGrowth(Options),
    /// Regular expressions within a budget of time, beside the bare crate
    Patterns(Options),
    /// CEL: a normal filter beside the bare crate, and hostile expressions
    Cel(Options),
    /// Serving MCP tool calls: calls per second and latency, beside the official SDK and a bare handler
    McpServer(Options),
    /// Tool actions: an HTTP call beside a bare client, CEL beside the bare crate, a large description
    Tools(Options),
    /// Agents: a turn beside the bare call of its model, and the memory of tasks that wait
    Agent(Options),
    /// Campaigns: runs side by side beside one after the other, and the memory of each
    Campaign(campaign::CampaignOptions),
    /// Campaigns of many machines: claims per second beside bare statements, four workers beside one, 200,000 runs
    Fleet(fleet::FleetOptions),
    /// The gate on regressions: false alarms and power in simulated campaigns, beside judging documents one by one
    Gate(Options),
    /// The guard: what it adds to a tool result of 10 KB over HTTP and stdio, beside a bare proxy and no proxy
    Guard(guard::GuardOptions),
    /// A process of the measurement of the guard
    #[command(subcommand, hide = true)]
    GuardPart(guard::StdioPart),
    /// Taking events in: durable events per second, through the store and as webhooks through the whole server,
    /// beside bare batched inserts; a thousand filters for each event
    Ingest(Options),
    /// The language server: keystroke to diagnostics in a document of 10,000 lines, beside the check itself
    Lsp(Options),
    /// Working off a backlog: tasks per second through the engine, beside an ideal loop that does the same writes, on SQLite
    /// and on PostgreSQL
    Work(Options),
    /// A thousand streams that nobody says anything on: what they cost, in percent of a core
    Streams(Options),
}

/// What every subject takes.
#[derive(Debug, Clone, Args)]
struct Options {
    /// Directory of threat documents
    #[arg(
        long,
        value_name = "DIR",
        default_value = "../shared/vectors/oatf-scenarios"
    )]
    documents: PathBuf,

    /// Measure briefly: to see that it works, not for the figures
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    let result = match Cli::parse().subject {
        Subject::Load(options) => load::run(&options),
        Subject::Evaluate(options) => evaluate::run(&options),
        Subject::Detect(options) => detect::run(&options),
        Subject::DetectGrowth(options) => growth::run(&options),
        Subject::Patterns(options) => patterns::run(&options),
        Subject::Cel(options) => cel::run(&options),
        Subject::McpServer(options) => mcp_server::run(&options),
        Subject::Tools(options) => tools::run(&options),
        Subject::Agent(options) => agent::run(&options),
        Subject::Campaign(options) => campaign::run(&options),
        Subject::Fleet(options) => fleet::run(&options),
        Subject::Gate(options) => gate::run(&options),
        Subject::Guard(options) => guard::run(&options),
        Subject::GuardPart(part) => guard::run_part(&part),
        Subject::Ingest(options) => ingest::run(&options),
        Subject::Lsp(options) => lsp::run(&options),
        Subject::Work(options) => work::run(&options),
        Subject::Streams(options) => streams::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            figure::complain(&message);
            ExitCode::FAILURE
        }
    }
}
