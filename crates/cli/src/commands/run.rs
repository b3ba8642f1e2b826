//! `proofhouse run`: the main job, which arrives with campaigns.

use clap::Args;

use crate::exit_code::Exit;
use crate::output::{CommandError, Data};

/// Run the main job: the threat library against an agent, ending in a report (not built yet)
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse run")]
pub(crate) struct Run {}

impl Run {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let mut data = Data::new();
        data.line(
            "Attack campaigns are not built yet. When they are, this command runs the shipped threat \
             library\nagainst a gullible and a careful simulated agent, side by side, and ends with a \
             report.\n\nWhat works today: threat documents, attacking an agent you attach, judging \
             recorded traces,\nand declarative tools.\n\n  \
             proofhouse new --mode mcp_server > attack.yaml   write one\n  \
             proofhouse validate attack.yaml                  check it\n  \
             proofhouse explain V-031                         look up a rule\n  \
             proofhouse attack attack.yaml                    play it against your agent\n  \
             proofhouse scan trace.jsonl --rules attack.yaml  judge a recording\n  \
             proofhouse tool list examples/tools/clock.yaml   see what a tool offers",
        )?;
        data.finish()?;
        Ok(Exit::Success)
    }
}
